"""How many lists of BM25, query likelihood, RM3 and Rocchio are those of Anserini (Lucene)?

``--data`` is a folder with msmarco_dl1920 and fairytaleqa (docs.tsv, queries). The DL19 and DL20 passages are taken as
they are. Of fairytaleqa every 50th text is replaced, in turn by an empty text, white space, stop words and punctuation,
and every seventh query is searched. A list is identical if it has the same documents in the same order.

Where lists differ, the scores that askew gave to the documents in one place are compared. With feedback, Lucene rounds
the weight of a term times its idf to 32 bits before it computes a score, and askew does not; documents whose scores
differ in the last place then change places. Needs the extra ``lucene``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pyarrow as pa
from anserini import RANKERS, Anserini

from askew.core.ranking import Hits
from askew.data.documents import read_documents
from askew.data.queries import read_queries
from askew.search.bm25.ranker import make_index
from askew.search.retrieve import make_ranker

EMPTY = ("", " \t", "the of and", "... !")


def read(folder: Path, *queries: str) -> tuple[pa.Table, list[str]]:
    texts = [text for name in queries for text in read_queries(folder / name)["text"].to_pylist()]
    return pa.concat_tables(list(read_documents(folder / "docs.tsv"))), texts


def with_empty_texts(documents: pa.Table) -> pa.Table:
    texts = documents["text"].to_pylist()
    for turn, row in enumerate(range(0, len(texts), 50)):
        texts[row] = EMPTY[turn % len(EMPTY)]
    return pa.table({"doc_id": documents["doc_id"], "text": pa.array(texts, pa.large_string())})


def rows(hits: Hits) -> list[tuple[list[int], list[float]]]:
    parts = [slice(a, b) for a, b in zip(hits.offsets[:-1], hits.offsets[1:], strict=True)]
    return [(hits.docs[part].tolist(), hits.scores[part].tolist()) for part in parts]


def moved(docs: list[int], scores: list[float], theirs: list[int]) -> float:
    """The largest difference between the scores of the two documents in one place, as a share of the score.

    A document that is in their list alone has at most the last score of ours.
    """
    known = dict(zip(docs, scores, strict=True))
    pairs = [(score, known.get(other, scores[-1])) for score, other in zip(scores, theirs, strict=True)]
    return max(abs(a - b) / a for a, b in pairs)


def compare(name: str, documents: pa.Table, queries: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        facts = make_index([documents], folder / "askew")
        peer = Anserini(folder / "anserini", documents["text"].to_pylist())
        empty = f"{facts['documents'] - facts['filled']} of them without a term ({facts['blank']} blank)"
        print(f"{name}: {facts['documents']:,} documents, {empty}; {len(queries):,} queries")
        for ranker in RANKERS:
            made = make_ranker({"ranker": ranker, "index": str(folder / "askew")})
            for k in (10, 1000):
                ours, theirs = rows(made.search(queries, k)), rows(peer.search(ranker, queries, k))
                print(f"  {ranker:8} k={k:<5} {outcome(ours, [docs for docs, _ in theirs])}", flush=True)


def outcome(ours: list[tuple[list[int], list[float]]], theirs: list[list[int]]) -> str:
    other = [(one, docs) for one, docs in zip(ours, theirs, strict=True) if one[0] != docs]
    same = len(ours) - len(other)
    text = f"{same:,} of {len(ours):,} lists identical ({same / len(ours):.2%})"
    if any(len(one[0]) != len(docs) for one, docs in other):
        return f"{text}; some lists have different lengths"
    if other:
        text += f"; scores of documents that changed places differ by {max(moved(*one, d) for one, d in other):.1e}"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    documents, queries = read(options.data / "msmarco_dl1920", "queries.dl19.tsv", "queries.dl20.tsv")
    compare("msmarco_dl1920", documents, queries)
    documents, queries = read(options.data / "fairytaleqa", "queries.tsv")
    print("every 50th text of fairytaleqa is replaced by an empty text, white space, stop words or punctuation")
    compare("fairytaleqa", with_empty_texts(documents), queries[::7])


if __name__ == "__main__":
    main()
