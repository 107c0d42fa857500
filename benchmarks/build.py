"""The evaluation part of a build, search + annotate + score + select, against the same work done the papers' way.

``--data`` is a collection (docs.tsv, queries.tsv, qrels.txt). Variants are made first and not timed; nor is indexing.
The peer searches with Lucene query by query, as RePair and Refairmulate do through Pyserini, or with bm25s (numba
backend, the same terms, its queries analysed before the clock starts); writes a TREC run and reads it back, as they do;
counts words with a Counter for each document; and scores and selects in loops over variants. askew writes every step to
its store and reads it back. The peer's selection on askew's own runs is compared with askew's. Both sides have one
thread; CPU seconds. Needs ``pip install bm25s`` and the extra ``lucene``.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numba
import numpy as np
import polars as pl
import pyarrow as pa
from anserini import Anserini

from askew.core.lexicon import load_lexicon
from askew.core.measure import new_column
from askew.core.store.steps import run_step
from askew.core.store.store import Store
from askew.pairs.plan import prepare
from askew.pairs.recipe import read_recipe, with_settings
from askew.pairs.resources import TableSource
from askew.search.bm25.analyze import Analyzer

EFFECTIVENESS = ("RR@10", "AP@10")
BIAS = ("ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10")
MEASURES = (*EFFECTIVENESS, *BIAS)
WORDS = re.compile(r"\w+")


class Askew:
    """The steps runs, scores and pairs of the recipe, and the mentions of the collection."""

    def __init__(self, data: Path, store: Store) -> None:
        changes: dict[str, dict[str, Any]] = {
            "collection": {"source": str(data)}, "evaluate": {"measures": list(MEASURES)},
            "select": {"effectiveness": "RR@10", "bias": " ".join(BIAS)},
        }  # fmt: skip
        self.recipe = with_settings(read_recipe("refairmulate-paper"), changes)
        self.store, self.data = store, data
        build = prepare(self.recipe, store, "kept")
        outcome = build.plan.run(store)["kept"]
        self.variants = pa.concat_tables(store.read(outcome.manifest))
        self.resources = build.resources
        _ = self.resources.doc_ids  # makes the index

    def stages(self, folder: Path) -> tuple[Store, dict[str, Any]]:
        """The stages over a new store: nothing is remembered but the index."""
        folder.mkdir()
        for index in self.store.root.glob("index-*"):
            (folder / index.name).symlink_to(index.resolve())
        store = Store(folder)
        build = prepare(self.recipe, store)
        _ = build.resources.judgements, build.resources.doc_ids
        return store, {step.name: step.stage for step in build.plan.steps}

    def evaluate(self, rows: pa.Table, store: Store, steps: dict[str, Any]) -> tuple[pl.DataFrame, pa.Table]:
        """The pairs of some variants, and their runs; every step is written to the store and read back."""
        source, found = TableSource(rows), {}
        object.__setattr__(source, "key", "variants")
        for name in ("runs", "scores", "pairs"):
            manifest = run_step(store, name, steps[name], source).manifest
            found[name] = pa.concat_tables(store.read(manifest))
            source = TableSource(found[name])
            object.__setattr__(source, "key", name)
        return pl.DataFrame(pl.from_arrow(found["pairs"])), found["runs"]


class Published:
    """bm25s and loops."""

    def __init__(self, askew: Askew, folder: Path) -> None:
        import bm25s

        collection = askew.resources.collection
        self._folder = folder
        self.texts = [text for batch in collection.documents() for text in batch["text"].to_pylist()]
        self._lucene = Anserini(folder / "lucene", self.texts)
        groups = load_lexicon("rekabsaz2020").groups
        self.lists = set(groups["female"]), set(groups["male"])
        self.qrels: dict[str, dict[int, int]] = {}
        self.doc_ids = askew.resources.doc_ids.to_pylist()
        place = {doc: i for i, doc in enumerate(self.doc_ids)}
        for row in collection.judgements.to_pylist():
            self.qrels.setdefault(row["query_id"], {})[place[row["doc_id"]]] = row["relevance"]
        self._analyzer = Analyzer()
        terms = self._terms(self.texts)
        vocabulary = {term: i for i, term in enumerate(sorted({term for row in terms for term in row}))}
        self._bm25s, self._vocabulary = bm25s, vocabulary
        self._model = bm25s.BM25(method="lucene", k1=0.82, b=0.68, backend="numba")
        ids = [[vocabulary[term] for term in row] for row in terms]
        self._model.index(bm25s.tokenization.Tokenized(ids, vocabulary), show_progress=False)

    def _terms(self, texts: list[str]) -> list[list[str]]:
        return [[term for _, term in row if term] for row in self._analyzer.pairs_of(texts)]

    def tokenized(self, texts: list[str]):
        known = [[self._vocabulary[t] for t in terms if t in self._vocabulary] for terms in self._terms(texts)]
        return self._bm25s.tokenization.Tokenized(known, self._vocabulary)

    def search_bm25s(self, queries) -> list[list[tuple[int, float]]]:
        docs, scores = self._model.retrieve(queries, k=100, show_progress=False, n_threads=0)
        return [list(zip(*row, strict=True)) for row in zip(docs.tolist(), scores.tolist(), strict=True)]

    def search_lucene(self, texts: list[str]) -> list[list[tuple[int, float]]]:
        runs = []
        for text in texts:
            hits = self._lucene.search("bm25", [text], 100, k1=0.82, b=0.68)
            runs.append(list(zip(hits.docs.tolist(), hits.scores.tolist(), strict=True)))
        return runs

    def through_file(self, ids: list[str], runs: list[list[tuple[int, float]]]) -> list[list[int]]:
        """The runs as a TREC file, written and read."""
        path = self._folder / "run.trec"
        with path.open("w") as file:
            for query, docs in zip(ids, runs, strict=True):
                for rank, (doc, score) in enumerate(docs, start=1):
                    file.write(f"{query} Q0 {doc} {rank} {score:.5f} peer\n")
        found: dict[str, list[int]] = {query: [] for query in ids}
        with path.open() as file:
            for line in file:
                fields = line.split()
                found[fields[0]].append(int(fields[2]))
        return list(found.values())

    def annotate(self) -> dict[str, list[float]]:
        female, male = self.lists
        found: dict[str, list[float]] = {"tc": [], "tf": [], "bool": []}
        for text in self.texts:
            counts = Counter(WORDS.findall(text.lower()))
            f = m = 0
            for word in counts:
                if word in female:
                    f += counts[word]
                elif word in male:
                    m += counts[word]
            found["tc"].append(m - f)
            found["tf"].append(math.log(m + 1) - math.log(f + 1))
            found["bool"].append((m > 0) - (f > 0))
        return found

    def score(self, queries: list[str], runs: list[list[int]], leans: dict[str, list[float]]) -> list[list[float]]:
        rows = []
        for query, docs in zip(queries, runs, strict=True):
            relevant = self.qrels[query]
            rr, hits, precision = 0.0, 0, 0.0
            for rank, doc in enumerate(docs[:10], start=1):
                if relevant.get(doc, 0) > 0:
                    hits += 1
                    precision += hits / rank
                    rr = rr or 1 / rank
            row = [rr, precision / len(relevant)]
            for kind in ("tf", "tc", "bool"):
                values = [leans[kind][doc] for doc in docs[:10]]
                running = [sum(values[:t]) / t for t in range(1, len(values) + 1)]
                row.append(sum(running) / len(running))
            rows.append(row)
        return rows

    def select(self, queries: list[str], texts: list[str], original: list[bool], scores: list[list[float]]):
        """The best accepted variant of each query that is not perfect, as the paper's groups and Eq. 1 have it."""
        first = {query: i for i, (query, is_first) in enumerate(zip(queries, original, strict=True)) if is_first}
        best: dict[str, tuple[float, int]] = {}
        for i, query in enumerate(queries):
            old, new = scores[first[query]], scores[i]
            if original[i] or texts[i] == texts[first[query]]:
                continue
            effective, unbiased = old[0] == 1, all(value == 0 for value in old[2:])
            better, leaner = new[0] - old[0], abs(old[2]) - abs(new[2])
            if better > 0 and leaner > 0:
                label = 0
            elif better > 0 and leaner == 0:
                label = 1
            elif better == 0 and leaner > 0:
                label = 2
            else:
                label = 3 if better == 0 and leaner == 0 else 4
            group = (1 if unbiased else 2) if effective else (3 if unbiased else 4)
            accepted = {1: (0, 1, 2, 3), 2: (0, 2), 3: (0, 1), 4: (0,)}[group]
            perfect = group != 1 and new[0] == 1 and all(value == 0 for value in new[2:])
            gain = better + leaner
            if label in accepted and not perfect and (query not in best or gain > best[query][0]):
                best[query] = (gain, i)
        return {query: i for query, (_, i) in best.items()}


def timed(function, *arguments):
    start = time.process_time()
    found = function(*arguments)
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--variants", type=int, default=100_000)
    parser.add_argument("--store", type=Path, help="a store that has the variants already")
    options = parser.parse_args()
    numba.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        askew = Askew(options.data, Store(options.store or place / "store"))
        peer = Published(askew, place)
        rows = askew.variants.slice(0, options.variants)
        queries, ids, texts = (rows[name].to_pylist() for name in ("query_id", "variant_id", "text"))
        original = [method == "original" for method in rows["method"].to_pylist()]
        askew.evaluate(rows.slice(0, 500), *askew.stages(place / "warm"))
        print(f"{rows.num_rows:,} variants of {sum(original):,} queries, {len(peer.texts):,} passages, k=100")
        totals = {}
        for name, search, given in (
            ("Lucene", peer.search_lucene, texts), ("bm25s", peer.search_bm25s, peer.tokenized(texts))
        ):  # fmt: skip
            search(peer.tokenized(texts[:500]) if name == "bm25s" else texts[:500])
            parts = {}
            parts["search"], runs = timed(search, given)
            parts["run file"], read = timed(peer.through_file, ids, runs)
            parts["annotate"], leans = timed(peer.annotate)
            parts["score"], scores = timed(peer.score, queries, read, leans)
            parts["select"], _ = timed(peer.select, queries, texts, original, scores)
            totals[name] = sum(parts.values())
            shown = ", ".join(f"{k} {v:.1f}" for k, v in parts.items())
            print(f"papers' way with {name}: {totals[name]:.1f} CPU s ({shown})")
        for part in (rows.num_rows // 4, rows.num_rows // 2, rows.num_rows):
            ready = askew.stages(place / f"askew-{part}")
            cpu, (pairs, mine) = timed(askew.evaluate, rows.slice(0, part), *ready)
            print(f"askew, {part:,} variants: {cpu:.1f} CPU s, {1e6 * cpu / part:.0f} us a variant")
        ratios = ", ".join(f"{total / cpu:.1f}x with {name}" for name, total in totals.items())
        print(f"ratio at {rows.num_rows:,}: {ratios}")
        compare(peer, leans, pairs, mine)


def compare(peer: Published, leans: dict[str, list[float]], pairs: pl.DataFrame, mine: pa.Table) -> None:
    """Does the peer choose the same pairs from askew's runs?"""
    queries, texts = mine["query_id"].to_pylist(), mine["text"].to_pylist()
    original = [method == "original" for method in mine["method"].to_pylist()]
    # Ties as askew has them: by document id, descending.
    names = peer.doc_ids
    runs = [
        [doc for _, _, doc in sorted(((score, names[doc], doc) for doc, score in zip(*row, strict=True)), reverse=True)]
        for row in zip(mine["doc"].to_pylist(), mine["score"].to_pylist(), strict=True)
    ]
    scores = peer.score(queries, runs, leans)
    best = peer.select(queries, texts, original, scores)
    ids = mine["variant_id"].to_pylist()
    theirs = {query: ids[i] for query, i in best.items()}
    chosen = pairs.filter("effective")
    ours = dict(zip(chosen["query_id"], chosen["variant_id"], strict=True))
    same = sum(theirs.get(query) == variant for query, variant in ours.items())
    every = len(ours.keys() | theirs.keys())
    known = dict(zip(ids, scores, strict=True))
    values = np.array([known[variant] for variant in pairs["variant_id"]])
    apart = [
        float(np.nanmax(np.abs(values[:, i] - pairs[new_column(name)].to_numpy()))) for i, name in enumerate(MEASURES)
    ]
    print(f"on askew's runs the peer chooses the same pair for {same:,} of {every:,} queries")
    print("largest difference of a value: " + ", ".join(f"{n} {v:.1g}" for n, v in zip(MEASURES, apart, strict=True)))


if __name__ == "__main__":
    main()
