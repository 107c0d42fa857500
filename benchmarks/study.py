"""How much gender bias do lexicon measures measure? The tables of docs/study.md, and the sheet for human annotators.

    python benchmarks/study.py tables --data DATA                     systems and mitigations
    python benchmarks/study.py sheet --data DATA                      write benchmarks/study/sheet.tsv: ids, no texts
    python benchmarks/study.py sheet --data DATA --texts SHEET        the same sheet with queries and passages, to read
    python benchmarks/study.py agreement SHEET --data DATA            annotations against the labels of the model

``DATA`` has cpjku_dl19_runs, msmarco_dl1920, querygym, boolq, squad_part and mentions. Whom and why a mention is
counted is estimated by the resolver of askew, which was trained on labels by a language model.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import polars as pl
from mention_model import read_texts
from rewrite_reading import kappa
from warrant_runs import DL, NAMES, RunSet, Study, clustered_share, cpjku_runs, dl_runs, table

import askew
from askew.core.lexicon import load_lexicon
from askew.core.text import is_clipped
from askew.measures.catalogue import Catalogue
from askew.measures.effects import Effect, effects_of_runs, lean_without_sign
from askew.measures.mentions import Marker
from askew.measures.relevance import WHY
from askew.measures.resolver import default_resolver
from askew.search.rerank import reorder

LEAN = "ARaB(tf,sign=abs)@10"
RERANKERS, RERANKED = ("greedy@3", "detconstsort@1"), ("BM25", "D_BERT_KD_TASB")
HERE = Path(__file__).with_name("study")
ITEMS, SEED = 200, 40
SHEET = ("item", "collection", "query_id", "doc_id", "at", "length", "who", "why", "note")


@dataclass(frozen=True)
class Mitigation:
    """A run that replaces a base run of the same queries; ``method`` if it reorders the base."""

    name: str
    base: Any
    run: Any
    docs: Path
    qrels: Path | None = None
    queries: Path | None = None
    method: str = ""


def systems(sets: Sequence[RunSet], clipped: Mapping[str, tuple[int, int]], with_reasons: bool) -> None:
    """What the mean lean of each run is made of."""
    print("Systems")
    rows = []
    reasons = WHY if with_reasons else ()
    for one in sets:
        report = one.measure([LEAN, LEAN.replace(")", ",excess=collection)"), "ARaB(tf)@10"], undefined="drop")
        parts = one.measure(["ARaB(tf)@10"], decompose=True).parts if reasons else []
        for run, found in zip_longest(report.runs, parts):
            mean, excess, _ = (report.mean(run, each) for each in report.asked)
            top = pl.DataFrame(run_lines(one.runs[run.name])).group_by("query_id").head(10)
            words = [clipped.get(doc, (0, 0)) for doc in top["doc_id"].to_list()]
            share = {part.name: f"{part.share:.0%}" for part in found.parts if part.kind == "why"} if found else {}
            rows.append([
                one.title, run.name, str(mean.n), f"{mean.mean:.4f}",
                f"{1 - excess.mean / mean.mean:.0%}" if mean.mean else "-",
                f"{excess.mean:+.4f}{ends(excess.low, excess.high)}",
                f"{sum(cut for _, cut in words) / max(1, sum(count for count, _ in words)):.0%}",
                *(share.get(reason, "-") for reason in reasons),
            ])  # fmt: skip
    head = ["queries of", "run", "queries", "mean", "by chance", "excess [95%]", "clipped"]
    table([*head, *reasons], rows)


def ends(low: float | None, high: float | None) -> str:
    """An interval; nothing for too few queries."""
    return "" if low is None or high is None else f" [{low:+.4f}, {high:+.4f}]"


def run_lines(file: Path) -> dict[str, list[str]]:
    """Queries and documents of a run, the best first."""
    rows = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: (row[0], -float(row[4])))
    return {"query_id": [row[0] for row in rows], "doc_id": [row[2] for row in rows]}


def clipped_words(data: Path) -> dict[str, tuple[int, int]]:
    """For each passage of DL, the counted words with the tokenizer ``word``, and how many of them are clipped."""
    marker = Marker(load_lexicon("rekabsaz2020"), "word")
    found = {}
    for doc, text in read_texts(data, DL).items():
        if marks := marker.find(text):
            found[doc] = len(marks), sum(is_clipped(text, mark.start) for mark in marks)
    return found


def mitigations_of(sets: Sequence[RunSet], data: Path, work: Path) -> list[Mitigation]:
    """All mitigations of the protocol."""
    cpjku = sets[0]
    found = [
        Mitigation(f"AdvBERT {size}, base BERT", cpjku.runs[f"bert_{size}"], cpjku.runs[f"advbert_{size}"], cpjku.docs,
                   cpjku.qrels, cpjku.queries)
        for size in ("L2", "L4")
    ]  # fmt: skip
    for one in sets[1:]:
        found += [
            Mitigation(f"{method}, {one.title} {name}", one.runs[name],
                       reordered(one.runs[name], one.docs, method), one.docs, one.qrels, one.queries, method)
            for name in RERANKED for method in RERANKERS
        ]  # fmt: skip
    return [*found, *querygym(sets[1:], data, work), *fair_pairs(data)]


def reordered(run: Path, docs: Path, method: str) -> pl.DataFrame:
    """A run in the order of a mitigation method."""
    name, _, strength = method.partition("@")
    return reorder(run, docs, method=name, strength=float(strength))


def querygym(sets: Sequence[RunSet], data: Path, work: Path) -> list[Mitigation]:
    """The first run of each method of QueryGym, both years together: BM25 for the reformulated queries."""
    docs = sets[0].docs
    ranker = askew.Ranker("bm25").index(docs)
    lines = [line for one in sets for line in one.queries.read_text(encoding="utf-8").splitlines()]
    queries = dict(line.split("\t", 1) for line in lines)
    base, found = ranker.search(queries, k=100), []
    read = [pl.read_csv(data / "querygym" / f"{one.title.lower()}.tsv", separator="\t", quote_char=None,
                        schema_overrides={"qid": pl.String}) for one in sets]  # fmt: skip
    every = pl.concat([one.filter(pl.col("qid").is_in(list(queries))) for one in read])
    for method in every["method"].unique().sort().to_list():
        own = every.filter(method=method).unique("qid", keep="first", maintain_order=True)
        texts = dict(own.select("qid", "reformulated_query").rows())
        found.append(Mitigation(f"{method} (QueryGym), DL BM25", base, ranker.search(texts, k=100), docs))
    return found


def fair_pairs(data: Path) -> list[Mitigation]:
    """The pairs of the subset fair: BM25 for the original query and for the reformulation."""
    found = []
    for name, folder in (("boolq", "boolq"), ("squad", "squad_part"), ("dl20", DL)):
        pairs = pl.read_parquet(f"{HERE.parent.parent / 'datasets' / name}/data/*.parquet").filter("fair")
        if name == "dl20":
            # The dataset has the ids of the queries only.
            lines = (data / DL / "queries.dl20.tsv").read_text(encoding="utf-8").splitlines()
            original = pl.col("query_id").replace_strict(dict(line.split("\t", 1) for line in lines))
            pairs = pairs.with_columns(original.alias("original_text"))
        docs = data / folder / "docs.tsv"
        ranker = askew.Ranker("bm25").index(docs)
        base, run = (
            ranker.search(dict(pairs.select("variant_id", column).rows()), k=100)
            for column in ("original_text", "text")
        )
        found.append(Mitigation(f"{pairs.height} pairs of the subset fair, {NAMES[folder]}", base, run, docs))
    return found


def mitigations(found: Sequence[Mitigation], with_reasons: bool) -> None:
    """What each mitigation changes; by reason, the exposure (mentions weighted by rank) before and after."""
    print("\nMitigations")
    catalogue = Catalogue()
    reasons = [*WHY, "off topic, of the removed"] if with_reasons else []
    # Rows are printed as they are computed: estimates of reasons take minutes for each.
    table(
        ["mitigation", "change", "by chance", "excess before", "its change [95%]", "words for women",
         "words for men", "nobody", *reasons, "verdict"],
        [],
    )  # fmt: skip
    lean = lean_without_sign(catalogue.complete([LEAN]))
    assert lean is not None, "expected a measure of two groups"
    for one in found:
        lean_of = lean
        if one.name.startswith("AdvBERT"):
            (lean_of,) = Catalogue(overrides={"missing": "zero"}).complete([LEAN])
        given = {"methods": [one.method]} if one.method else {"runs": {one.name: one.run}}
        (effect,) = effects_of_runs(one.base, one.docs, lean_of, catalogue.lexicons, **given).values()
        cells = [*effect_cells(effect), *(reason_cells(one) if with_reasons else ()), effect.verdict]
        print(f"| {' | '.join([one.name, *cells])} |", flush=True)


def effect_cells(effect: Effect) -> list[str]:
    """The cells of one effect."""
    change, *interval = effect.excess_change
    words = [f"{after / before - 1:+.0%}" if before else "-"
             for before, after in (effect.words[name] for name in ("female", "male"))]  # fmt: skip
    by_chance = "-" if effect.by_chance is None else f"{effect.by_chance:+.0%}"
    change_of = "-" if effect.change is None else f"{effect.change:+.0%}"
    return [change_of, by_chance, f"{effect.excess[0]:.4f}", f"{change:+.4f}{ends(*interval)}", *words,
            f"{effect.nobody[0]:.0%} to {effect.nobody[1]:.0%}"]  # fmt: skip


def reason_cells(one: Mitigation) -> list[str]:
    """The change of the exposure of each reason, and the share of off-topic exposure in what is removed."""
    if one.queries is None:
        return ["-"] * (len(WHY) + 1)
    missing = "zero" if one.name.startswith("AdvBERT") else None
    found = askew.measure(
        {"before": one.base, "after": one.run}, one.docs, ["ARaB(tf)@10"], qrels=one.qrels, queries=one.queries,
        decompose=True, missing=missing,
    ).parts  # fmt: skip
    before, after = ({part.name: sum(part.amounts.values()) for part in each.parts if part.kind == "why"}
                     for each in found)  # fmt: skip
    cells = [f"{before.get(name, 0):.3f} to {after.get(name, 0):.3f}" for name in WHY]
    removed = {name: before.get(name, 0) - after.get(name, 0) for name in WHY}
    total = sum(removed.values())
    return [*cells, f"{removed['offtopic'] / total:.0%}" if total > 0 and min(removed.values()) >= 0 else "-"]


def tables(options: argparse.Namespace) -> None:
    """Systems, mitigations and the labels of stereotypes."""
    with tempfile.TemporaryDirectory() as work:
        study = Study(options.data, Path(work), 0, 1000)
        sets = [cpjku_runs(study), dl_runs(study, "dl19"), dl_runs(study, "dl20")]
        print(f"Reasons: estimates of {default_resolver()}; mean: {LEAN}\n")
        if "systems" in options.only:
            systems(sets, clipped_words(options.data), options.reasons)
        if "mitigations" in options.only:
            mitigations(mitigations_of(sets, options.data, Path(work)), options.reasons)
        rows = [one for one in study.labels() if one["rank"] >= 1]
        print("\nLabels of a language model: stereotypes among mentions in the top 10 of BM25\n")
        for name in ("boolq", "squad_part", DL):
            part = [one for one in rows if one["collection"] == name]
            hits = [float(one["why"] == "stereotype") for one in part]
            print(f"{NAMES[name]}: {clustered_share(hits, [one['id'] for one in part], study.draws)} of {len(part)}")


def items(data: Path) -> list[dict[str, Any]]:
    """The labeled mentions of the sheet: all of DL, and as many of BoolQ and SQuAD as are missing, one per query."""
    labels = [one for one in Study(data, data, 0, 0).labels() if one["rank"] >= 1]
    chosen = [one for one in labels if one["collection"] == DL]
    rng = random.Random(SEED)
    for name, left in (("boolq", 2), ("squad_part", 1)):
        own = {one["id"]: one for one in labels if one["collection"] == name}
        chosen += rng.sample(list(own.values()), (ITEMS - len(chosen)) // left)
    rng.shuffle(chosen)
    return chosen


def sheet(options: argparse.Namespace) -> None:
    """Write the sheet for annotators; with texts to another file, which must not be published."""
    rows = [
        {"item": number, "collection": one["collection"], "query_id": one["id"], "doc_id": one["doc"], "at": one["at"],
         "length": len(one["word"]), "who": None, "why": None, "note": None}
        for number, one in enumerate(items(options.data), 1)
    ]  # fmt: skip
    if options.texts is None:
        HERE.mkdir(exist_ok=True)
        pl.DataFrame(rows).select(SHEET).write_csv(HERE / "sheet.tsv", separator="\t")
        return
    texts = {name: read_texts(options.data, name) for name in {row["collection"] for row in rows}}
    for row, one in zip(rows, items(options.data), strict=True):
        text, at, end = texts[row["collection"]][row["doc_id"]], row["at"], row["at"] + row["length"]
        marked = f"{text[:at]}**{text[at:end]}**{text[end:]}"
        row |= {"query": one["query"], "passage": " ".join(marked.split())}
    pl.DataFrame(rows).select(*SHEET, "query", "passage").write_csv(options.texts, separator="\t")


def agreement(options: argparse.Namespace) -> None:
    """Cohen's kappa of the annotations of a sheet and the labels of the language model."""
    given = pl.read_csv(options.sheet, separator="\t", schema_overrides={"query_id": pl.String}).sort("item")
    labels = items(options.data)
    for kind in ("who", "why"):
        pairs = [(row[kind], labels[row["item"] - 1][kind]) for row in given.to_dicts() if row[kind]]
        if not pairs:
            raise SystemExit(f"{options.sheet}: expected labels in the column {kind!r}, found none")
        print(f"{kind}: kappa {kappa(*zip(*pairs, strict=True)):.2f} of {len(pairs)} mentions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    for name, do in (("tables", tables), ("sheet", sheet), ("agreement", agreement)):
        one = parts.add_parser(name)
        one.add_argument("--data", type=Path, required=True)
        one.set_defaults(do=do)
        if name == "tables":
            one.add_argument("--only", nargs="*", default=["systems", "mitigations"])
            one.add_argument(
                "--reasons", action=argparse.BooleanOptionalAction, default=True, help="slow: estimate why"
            )
        if name == "sheet":
            one.add_argument("--texts", type=Path)
        if name == "agreement":
            one.add_argument("sheet", type=Path)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
