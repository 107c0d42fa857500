"""Lean beyond chance: error rates and power by simulation, and how much of a measured lean is chance.

    python benchmarks/chance.py simulate --data DATA     engines without lean, and with a planted lean, on real results
    python benchmarks/chance.py tables --data DATA       what chance explains of real results

``simulate`` takes the top 100 of BM25 for real queries. All passages of an article, or all near-duplicates, get one
direction: directions are permuted among articles, so that the engine is topical and has no lean. In some queries a lean
is then planted: a share of the top 10 is taken from the best documents that name one group most, women or men by turns.
The headline of askew is computed from these counts. The articles are those of the data (stories, headings) or, of DL,
passages that share sequences of words. "hidden": askew sees neither ids nor headings. Where it does
not know which documents are of one article (hidden, and DL), it tests nothing.

``tables`` compares the lean of BM25 with three nulls: the direction of each document drawn anew at the share of the
collection (A), counts permuted among the retrieved documents that name anyone (B), and the null of askew, by article.
What methods change beyond chance: arena.py effects.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from negatives_data import documents, first_candidates, sequences
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import binomtest

from askew.core.lexicon import load_lexicon
from askew.core.protocols import DocMentions, Inputs
from askew.core.ranking import Rankings
from askew.core.text import normal
from askew.measures.articles import Articles
from askew.measures.chance import chance
from askew.measures.common import directions_of, even_shares
from askew.measures.headline import headline_of
from askew.measures.mentions import Marker, counter_for
from askew.measures.requested import headline_measures

COLLECTIONS = {"BoolQ": "boolq", "FairytaleQA": "fairytaleqa", "DL": "msmarco_dl1920"}
CUTOFF, DRAWS, SEED = 10, 200, 20
# The share of the queries with a planted lean, and the share of their top 10 that is chosen by direction.
PLANTED, SIZES = 0.2, (0.3, 0.6, 1.0)
# Near-duplicates share at least this part of their sequences of eight words.
SHARED = 0.2


@dataclass(frozen=True)
class Results:
    """The top documents of queries: ``lists`` has a row for each query, -1 where there are fewer."""

    doc_ids: Sequence[str]
    texts: Sequence[str]
    mentions: DocMentions
    lists: Any
    articles: Any


def open_results(data: Path, name: str, queries: int) -> Results:
    """BM25 for a sample of the queries without words for a group."""
    docs = documents(data, COLLECTIONS[name])
    lexicon = load_lexicon("rekabsaz2020")
    files = sorted((data / COLLECTIONS[name]).glob("queries*.tsv"))
    asked = sorted({line.split("\t", 1)[1] for file in files for line in file.read_text("utf-8").splitlines()})
    marker = Marker(lexicon, "unclipped")
    neutral = [text for text in asked if not marker.spans(text)]
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(neutral))[:queries])
    table = pl.DataFrame({"query_id": [str(row) for row in chosen], "text": [neutral[row] for row in chosen]})
    ids, texts = docs["doc_id"].to_list(), docs["text"].to_list()
    found = counter_for(lexicon, "unclipped", "all").count(pa.array(texts, pa.large_string()))
    mentions = DocMentions(found.groups, found.counts, found.tokens, np.ones(len(texts), np.bool_))
    return Results(ids, texts, mentions, first_candidates(docs, table), articles_of(name, ids, texts))


def articles_of(name: str, ids: Sequence[str], texts: Sequence[str]) -> Any:
    """The article of each document, by a rule that askew does not use for DL."""
    if name != "DL":
        names = [one.rpartition(":")[0] for one in ids] if name == "FairytaleQA" else [
            text.partition(" -- ")[0] for text in texts]  # fmt: skip
        return np.unique(names, return_inverse=True)[1]
    holders: dict[str, list[int]] = {}
    sizes = np.zeros(len(texts))
    for row, text in enumerate(texts):
        own = sequences(normal(text))
        sizes[row] = max(len(own), 1)
        for one in own:
            holders.setdefault(one, []).append(row)
    pairs = np.array([(a, b) for rows in holders.values() for a in rows[:1] for b in rows[1:]] or [(0, 0)])
    shared = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(texts),) * 2).tocsr().tocoo()
    near = shared.data >= SHARED * np.minimum(sizes[shared.row], sizes[shared.col])
    links = coo_array((shared.data[near], (shared.row[near], shared.col[near])), shape=shared.shape)
    return connected_components(links, directed=False)[1]


def without_lean(results: Results, rng: np.random.Generator) -> DocMentions:
    """The counts with directions permuted among the articles that name anyone."""
    counts = results.mentions.counts
    totals = np.zeros((results.articles.max() + 1, 2), np.int64)
    np.add.at(totals, results.articles, counts)
    named = np.flatnonzero(totals.sum(axis=1) > 0)
    side = np.sign(totals[:, 0] - totals[:, 1])
    side[side == 0] = rng.choice([-1, 1], int((side == 0).sum()))
    new = side.copy()
    new[named] = rng.permutation(side[named])
    turned = (new != side)[results.articles]
    return replace(results.mentions, counts=np.where(turned[:, None], counts[:, ::-1], counts))


def top_of(results: Results, counts: Any, planted: Any, size: float, rng: np.random.Generator) -> Rankings:
    """The top 10; each place of a planted list has, with probability ``size``, the best document of its group."""
    ranked = []
    for row, docs in enumerate(results.lists):
        rest = docs[docs >= 0].tolist()
        top: list[int] = []
        toward = [doc for doc in rest if planted[row] * (counts[doc, 0] - counts[doc, 1]) > 0]
        while rest and len(top) < CUTOFF:
            pool = toward if toward and rng.random() < size else rest
            top.append(pool[0])
            rest.remove(top[-1])
            toward = [doc for doc in toward if doc != top[-1]]
        ranked.append(top)
    offsets = np.cumsum([0, *map(len, ranked)])
    ids = pa.array([str(row) for row in range(len(ranked))])
    return Rankings(ids, offsets, np.array([doc for top in ranked for doc in top], np.int64))


def inputs_of(results: Results, ranked: Rankings, mentions: DocMentions, finder: Any) -> Inputs:
    """What ``askew measure`` reads: the counts of the ranked documents, and the shares of the whole collection."""
    read = np.zeros(len(mentions.known), np.bool_)
    read[ranked.docs] = True

    def shares(_: Any, columns: Sequence[int]) -> Any:
        counts = mentions.counts[:, list(columns)]
        found = directions_of(counts)
        return np.stack([even_shares(np.bincount(found[found >= 0], minlength=2)), even_shares(counts.sum(axis=0))])

    seen = replace(mentions, known=read)
    return Inputs("engine", pa.array(results.doc_ids), {"score": ranked}, lambda *_: seen, find_articles=finder,
                  find_shares=shares)  # fmt: skip


def simulate(options: argparse.Namespace) -> None:
    """False positives, false discoveries and power, on each collection."""
    print(
        f"{options.queries} queries at most; {options.draws} engines without lean and {options.draws // 2} with each "
        f"planted lean, in {PLANTED:.0%} of the queries; intervals are binomial (Clopper and Pearson), 95%\n"
    )
    print("| collection | articles | planted | runs beyond chance | runs with a side | runs with a false discovery | "
          "false among discoveries | mean share false | planted lists found, by group | |")  # fmt: skip
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    asked = headline_measures(None, CUTOFF, None)
    for name in COLLECTIONS:
        results = open_results(options.data, name, options.queries)
        for hidden in (False, True) if name != "DL" else (False,):
            finder = finder_of(results, hidden, name)
            for size in (0.0, *SIZES):
                print(row_of(f"| {name} | {'hidden' if hidden else 'seen'}", results, finder, asked, size,
                             options.draws if size == 0 else options.draws // 2), flush=True)  # fmt: skip


def finder_of(results: Results, hidden: bool, name: str) -> Any:
    """How askew numbers articles. ``hidden``: neither ids nor headings say which documents belong together."""
    ids, texts = list(results.doc_ids), list(results.texts)
    if hidden:
        ids = [f"d{row}" for row in range(len(ids))]
        texts = [text.partition(" -- ")[2] or text for text in texts] if name == "BoolQ" else texts
    read = np.unique(results.lists[:, :CUTOFF])
    return Articles(pa.array(ids), lambda docs: [texts[doc] for doc in docs.tolist()], lambda: read[read >= 0]).of


def row_of(title: str, results: Results, finder: Any, asked: Any, size: float, draws: int) -> str:
    rng = np.random.default_rng(SEED)
    queries = len(results.lists)
    flagged = sided = wrong = false = found = 0
    hits, planted_lists = np.zeros(2, np.int64), np.zeros(2, np.int64)
    shares = []
    for _ in range(draws):
        mentions = without_lean(results, rng)
        # The first group, the second (-1), or no lean (0).
        planted = np.zeros(queries, np.int64)
        if size:
            planted[rng.permutation(queries)[: round(PLANTED * queries)]] = 1
            planted[np.flatnonzero(planted)[1::2]] = -1
        ranked = top_of(results, mentions.counts, planted, size, rng)
        inputs = inputs_of(results, ranked, mentions, finder)
        part = headline_of("engine", inputs, asked, {}, "").deciding
        beyond = np.array([int(query) for query in part.beyond], np.int64)
        bad = int((planted[beyond] == 0).sum())
        flagged, sided, wrong = flagged + part.is_beyond, sided + (part.toward is not None), wrong + (bad > 0)
        false, found = false + bad, found + len(beyond)
        hits += [(planted[beyond] == side).sum() for side in (1, -1)]
        planted_lists += [(planted == side).sum() for side in (1, -1)]
        shares.append(bad / max(1, len(beyond)))
    mean = f"{np.mean(shares):.1%} ± {1.96 * np.std(shares) / draws**0.5:.1%}"
    return " | ".join([
        title, f"{size:.0%}", share(flagged, draws), share(sided, draws), share(wrong, draws), share(false, found),
        mean,
        *(f"{mentions.groups[row]} {share(int(hits[row]), int(planted_lists[row]))}" for row in range(2)),
    ]) + " |"  # fmt: skip


def share(count: int, total: int) -> str:
    if not total:
        return "-"
    ends = binomtest(count, total).proportion_ci()
    return f"{count:,} of {total:,}, {count / total:.1%} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"


def tables(options: argparse.Namespace) -> None:
    """How much of the mean |ARaB(tf)@10| of BM25 chance explains, and what methods change beyond it."""
    print("| collection | queries | observed | null A | null B | by article [excess, 95%] | p |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    asked = headline_measures(None, CUTOFF, None)
    for name in COLLECTIONS:
        results = open_results(options.data, name, options.queries)
        queries = len(results.lists)
        ranked = top_of(results, results.mentions.counts, np.zeros(queries), 0.0, np.random.default_rng(SEED))
        inputs = inputs_of(results, ranked, results.mentions, finder_of(results, False, name))
        part = headline_of("bm25", inputs, asked, {}, "").deciding
        one, observed = asked[0], part.observed.mean
        by_document = one.measure.with_params({**dict(one.measure.params), "units": "documents"})
        null_a = float(np.nanmean(chance(one.family, by_document, inputs).expected))
        docs = np.unique(ranked.docs)
        named = docs[results.mentions.counts[docs].any(axis=1)]
        rng, drawn = np.random.default_rng(SEED), []
        for _ in range(100):
            counts = results.mentions.counts.copy()
            counts[named] = counts[rng.permutation(named)]
            mixed = replace(results.mentions, counts=counts)
            drawn.append(one.family.score(one.measure, replace(inputs, find_mentions=lambda *_, m=mixed: m)).mean())
        kept = " | ".join(f"{value:.4f} ({value / observed:.0%})" for value in (null_a, float(np.mean(drawn))))
        ends = f"[{part.excess.mean:+.4f}, {part.excess.low:+.4f} to {part.excess.high:+.4f}]"
        print(f"| {name} | {queries} | {observed:.4f} | {kept} | {part.expected:.4f} ({part.expected / observed:.0%}) "
              f"{ends} | {part.p:.4f} |", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("simulate")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--queries", type=int, default=200)
    one.add_argument("--draws", type=int, default=DRAWS)
    one.set_defaults(do=simulate)
    one = parts.add_parser("tables")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--queries", type=int, default=200)
    one.set_defaults(do=tables)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
