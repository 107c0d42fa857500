"""The data of negatives.py: what rankers are trained on, what they are tested on, and a check that the two are apart.

A test document counts as seen in training if its normalized text is that of a training document, or if a tenth of its
sequences of eight words or more occur in training documents. Queries with a seen document among their candidates or
their relevant documents are left out and counted.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from askew.core.protocols import DocMentions
from askew.core.text import normal
from askew.data.collection import open_collection
from askew.measures.mentions import counter_for
from askew.rewrite.classifiers import make_classifier
from askew.search.annotated import Counting, document_lean
from askew.search.bm25.ranker import bm25
from askew.search.retrieve import index as index_documents

TRAIN = "squad_part"
# name: the folder, and how many neutral queries are sampled (0: all judged queries)
TESTS = {
    "boolq": ("boolq", 1000),
    "fairytaleqa": ("fairytaleqa", 1000),
    "dl19": ("msmarco_dl1920@dl19", 0),
    "dl20": ("msmarco_dl1920@dl20", 0),
}
# Queries that no model of askew was trained on, where others were: the same are used for the methods that rewrite.
UNSEEN = {"boolq": Path(__file__).parent.parent / "datasets" / "candidates" / "boolq.tsv.gz"}
CANDIDATES, SEED = 100, 7
WORDS, MOST_SHARED = 8, 0.1
SEEN_FOUND, SEEN_RELEVANT = "a candidate seen in training", "a relevant document seen in training"
NO_DOCUMENT = -1


@dataclass(frozen=True)
class Seen:
    """The training documents by their normalized texts and by their sequences of words."""

    texts: frozenset[str]
    sequences: frozenset[str]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Seen:
        """Those of some documents."""
        known = frozenset(normal(text) for text in texts)
        return cls(known, frozenset(one for text in known for one in sequences(text)))

    def has(self, text: str) -> bool:
        """Whether a document was seen in training."""
        words = normal(text)
        found = sequences(words)
        return words in self.texts or (len(found) > 0 and len(found & self.sequences) >= MOST_SHARED * len(found))


def sequences(words: str, length: int = WORDS) -> set[str]:
    """The sequences of so many words of a normalized text."""
    parts = words.split()
    return {" ".join(parts[at : at + length]) for at in range(len(parts) - length + 1)}


@dataclass(frozen=True)
class TestSet:
    """Queries of a collection with the candidates that BM25 finds for them.

    ``candidates`` has a row for each query, best first: places in ``doc_ids``, NO_DOCUMENT where there are fewer.
    ``relevant`` are the texts of the relevant documents of the queries.
    """

    name: str
    query_ids: Sequence[str]
    queries: Sequence[str]
    doc_ids: Sequence[str]
    docs: Sequence[str]
    candidates: Any
    relevant: Sequence[str]
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Names the queries and their candidates."""
        state = hashlib.sha256()
        for query, row in zip(self.query_ids, self.candidates, strict=True):
            found = (self.doc_ids[doc] for doc in row if doc != NO_DOCUMENT)
            state.update("\t".join([query, *found]).encode() + b"\n")
        return state.hexdigest()[:16]


def frame(table: Any) -> pl.DataFrame:
    """An Arrow table as a data frame."""
    return pl.DataFrame(pl.from_arrow(table))


def documents(data: Path, folder: str) -> pl.DataFrame:
    """Ids and texts of the documents of a collection."""
    batches = open_collection(f"{data}/{folder}").documents()
    return pl.concat([frame(batch.select(["doc_id", "text"])) for batch in batches])


def open_test_set(data: Path, name: str, seen: Seen, most: int | None = None) -> TestSet:
    """The queries and candidates of a test collection, without queries that reach documents seen in training."""
    folder, count = TESTS[name]
    docs, opened = documents(data, folder), open_collection(f"{data}/{folder}")
    queries = frame(opened.judged_queries().select(["query_id", "text"]))
    if name in UNSEEN:
        unseen = pl.read_csv(UNSEEN[name], separator="\t", quote_char=None)["query_id"].unique()
        queries = queries.filter(pl.col("query_id").is_in(unseen.implode()))
    if count:
        labels = make_classifier({"classifier": "lexical"}).classify(queries["text"].to_list()).names()
        queries = queries.filter(pl.Series([label == "neutral" for label in labels], dtype=pl.Boolean))
    candidates = first_candidates(docs, queries)
    judged = frame(opened.judgements.select(["query_id", "doc_id", "relevance"])).filter(pl.col("relevance") > 0)
    relevant = relevant_of(docs, queries, judged)
    is_seen = np.array([seen.has(text) for text in docs["text"].to_list()] + [False])
    kept, left_out = unseen_queries(candidates, relevant, is_seen)
    wanted = min(count or len(kept), most or len(kept))
    kept = np.sort(np.random.default_rng(SEED).permutation(kept)[:wanted])
    used, places = np.unique(candidates[kept], return_inverse=True)
    shift = int(len(used) > 0 and used[0] == NO_DOCUMENT)
    there = np.unique(np.concatenate([np.zeros(0, np.int64), *(relevant[row] for row in kept)]))
    return TestSet(
        name, queries["query_id"].gather(kept).to_list(), queries["text"].gather(kept).to_list(),
        docs["doc_id"].gather(used[shift:]).to_list(), docs["text"].gather(used[shift:]).to_list(),
        places.reshape(len(kept), CANDIDATES) - shift, docs["text"].gather(there).to_list(), left_out,
    )  # fmt: skip


def first_candidates(docs: pl.DataFrame, queries: pl.DataFrame) -> Any:
    """What ``askew index`` and ``askew search -k 100`` find: a row of places for each query."""
    with tempfile.TemporaryDirectory() as scratch:
        index_documents(docs, Path(scratch) / "index")
        hits = bm25(Path(scratch) / "index").search(queries["text"].to_arrow().cast(pa.string()), CANDIDATES)
    found = np.full((queries.height, CANDIDATES), NO_DOCUMENT, np.int64)
    rows = hits.rows()
    found[rows, np.arange(len(rows)) - hits.offsets[rows]] = hits.docs
    return found


def relevant_of(docs: pl.DataFrame, queries: pl.DataFrame, judged: pl.DataFrame) -> list[Any]:
    """The relevant documents of each query, as places; those without a text are left out."""
    place = {doc: at for at, doc in enumerate(docs["doc_id"].to_list())}
    by_query: dict[str, list[int]] = {}
    for query, doc in judged.select("query_id", "doc_id").iter_rows():
        if doc in place:
            by_query.setdefault(query, []).append(place[doc])
    return [np.array(by_query.get(query, []), np.int64) for query in queries["query_id"].to_list()]


def unseen_queries(candidates: Any, relevant: Sequence[Any], is_seen: Any) -> tuple[Any, dict[str, int]]:
    """The rows of queries that reach no seen document, and how many others there are; NO_DOCUMENT is never seen."""
    found = is_seen[candidates].any(axis=1)
    judged = np.array([is_seen[docs].any() for docs in relevant], bool)
    left_out = Counter({SEEN_FOUND: int(found.sum()), SEEN_RELEVANT: int((judged & ~found).sum())})
    return np.flatnonzero(~found & ~judged), {why: count for why, count in left_out.items() if count}


def lean_of(texts: Sequence[str]) -> Any:
    """How far each document leans, as the default of ``askew train ranker`` counts it."""
    counting = Counting()
    found = counter_for(counting.groups.counted, counting.groups.tokenizer, counting.groups.overlap).count(
        pa.array(texts, pa.string())
    )
    mentions = DocMentions(found.groups, found.counts, found.tokens, np.ones(len(texts), bool))
    return document_lean(mentions, counting.lean, counting.groups.difference)


def seen_lean(test: TestSet, seen: Seen) -> float:
    """The share of the lean of all candidates that lies in documents seen in training."""
    docs = test.candidates[test.candidates != NO_DOCUMENT]
    lean, known = lean_of(test.docs)[docs], np.array([seen.has(text) for text in test.docs])[docs]
    return float(lean[known].sum() / max(lean.sum(), np.finfo(float).tiny))


def share_of_top(negatives: Any, documents: int, top: float = 0.01) -> float:
    """The share of negatives that the most used 1% of the training documents supply."""
    counts = np.sort(np.bincount(negatives, minlength=documents))[::-1]
    return float(counts[: max(1, round(top * documents))].sum() / max(1, counts.sum()))


def share_relevant(negatives: Any, docs: Sequence[str], tests: Iterable[TestSet]) -> float:
    """The share of negatives that are relevant to a test query, by their normalized text or sequences of words."""
    known = Seen.of(text for test in tests for text in test.relevant)
    relevant = np.array([known.has(text) for text in docs])
    return float(relevant[negatives].mean()) if len(negatives) else 0.0


def facts_of(
    tests: Sequence[TestSet], seen: Seen, negatives: Mapping[str, Any], docs: Sequence[str], most: int | None = None
) -> dict[str, Any]:
    """What training and tests share, as JSON values; ``most`` is how many queries each has at most."""
    used = {key: found[found >= 0] for key, found in negatives.items()}
    return {
        "most": most,
        "tests": {
            test.name: {
                "queries": len(test.query_ids), "documents": len(test.docs), "left_out": dict(test.left_out),
                "seen_lean": seen_lean(test, seen), "digest": test.digest,
            }
            for test in tests
        },
        "negatives": {
            key: {
                "number": len(found), "of_top_1_percent": share_of_top(found, len(docs)),
                "relevant_to_tests": share_relevant(found, docs, tests),
            }
            for key, found in used.items()
        },
    }  # fmt: skip


def print_facts(facts: Mapping[str, Any]) -> None:
    """What training and tests share, for people."""
    for name, one in facts["tests"].items():
        left = ", ".join(f"{count:,} with {why}" for why, count in one["left_out"].items()) or "none"
        print(
            f"{name}: {one['queries']:,} queries, {one['documents']:,} candidate documents (digest {one['digest']}); "
            f"queries left out: {left}; share of the lean of candidates in documents seen in training: "
            f"{one['seen_lean']:.4f}"
        )
    for name, one in facts["negatives"].items():
        print(
            f"{name}: {one['number']:,} negatives, {one['of_top_1_percent']:.1%} of them from 1% of the documents, "
            f"{one['relevant_to_tests']:.4f} relevant to test queries"
        )
