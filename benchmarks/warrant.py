"""What do measures of lean count? Clipped words, labels, parts of public runs, and what each measure tells apart.

    python benchmarks/warrant.py --data DATA                     everything
    python benchmarks/warrant.py --data DATA --quick             fewer queries and draws

``DATA`` has mentions, msmarco_dl1920, cpjku_dl19_runs, boolq, squad_part and gender_queries. Prints Markdown.
What is estimated was learned from labels of BoolQ, SQuAD and GrepBiasIR, so that rows which need an estimate are
compared with the labels of the test split alone; nothing was learned from the passages of MS MARCO.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mention_model import read_texts
from warrant_runs import (
    DL,
    NAMES,
    Study,
    clustered_share,
    cpjku_runs,
    dl_runs,
    interval,
    judgements,
    own_bm25,
    table,
)
from warrant_table import conclusion_tests, decisive

from askew.core.groups import WHO, resolver_id
from askew.core.lexicon import load_lexicon
from askew.core.text import is_clipped
from askew.measures.mentions import Marker
from askew.measures.relevance import WHY, confusion, open_estimator
from askew.measures.resolver import class_probabilities, open_resolver
from askew.measures.statistics.intervals import RESAMPLES, corrected

REASONS = ("offtopic", "asked", "warranted", "stereotype")
# Estimates do not tell it from warranted.
MERGED = {"stereotype": "warranted"}
RANKS = ((1, 1), (2, 3), (4, 6), (7, 10))


def clipped_words(study: Study) -> None:
    """How much of the male lean of DL19 and DL20 is words that lost their beginning."""
    print("## Clipped words")
    marker = Marker(load_lexicon("rekabsaz2020"), "word")
    counts = {"male": [0, 0], "female": [0, 0]}
    for text in read_texts(study.data, DL).values():
        for mark in marker.find(text):
            for group in mark.groups:
                counts[group][0] += 1
                counts[group][1] += is_clipped(text, mark.start)
    for group, (found, clipped) in counts.items():
        print(f"\n{clipped:,} of {found:,} {group} mentions in the passages are clipped ({clipped / found:.1%}).")
    tokens = ("word", "unclipped", "blank")
    rows = []
    for year in ("dl19", "dl20"):
        runs = dl_runs(study, year)
        report = runs.measure([f"ARaB(tf,tokens={one})@10" for one in tokens])
        for run in report.runs:
            means = [report.mean(run, one) for one in report.asked]
            cells = [f"{one.mean:+.4f} [{one.low:+.3f}, {one.high:+.3f}]" for one in means]
            rows.append([runs.title, run.name, str(means[0].n), *cells, f"{1 - means[1].mean / means[0].mean:.0%}"])
    head = [
        "queries of",
        "run",
        "queries",
        *(f"tokens={one}" for one in tokens),
        "share of `word` that is clipped words",
    ]
    table(head, rows)


def labeled_shares(study: Study) -> None:
    """Shares of why and of who in BM25's top 10, by collection and rank: labels, no estimates."""
    rows = [one for one in study.labels() if one["rank"] >= 1]
    for kind, classes in (("why", REASONS), ("who", WHO)):
        print(f"\n## Labels: shares of {kind}, BM25's top 10")
        lines = []
        for name in ("boolq", "squad_part", DL, "all"):
            for low, high in ((1, 10), *RANKS):
                part = [r for r in rows if name in (r["collection"], "all") and low <= r["rank"] <= high]
                queries = [f"{r['collection']} {r['id']}" for r in part]
                cells = [
                    clustered_share(np.array([r[kind] == one for r in part], float), queries, study.draws)
                    for one in classes
                ]
                ranks = f"{low}" if low == high else f"{low}-{high}"
                lines.append([NAMES.get(name, name), ranks, str(len(part)), str(len(set(queries))), *cells])
        table(["collection", "ranks", "mentions", "queries", *classes], lines)


def estimates_and_labels(study: Study) -> None:
    """Shares of why and who by label, as estimated, and as corrected: where nothing was learned from the labels.

    ``--keep`` writes those of mentions that are off topic to a file of the estimators (relevance.json).
    """
    print("\n## Estimates against labels")
    lines, kept = [], dict[str, dict[str, float]]()
    for name, judged in (("boolq", False), ("squad_part", False), (DL, False), (DL, True)):
        texts = read_texts(study.data, name)
        rows = [
            r
            for r in study.labels()
            if r["collection"] == name and (r["rank"] == 0) == judged and (name == DL or r["split"] == "test")
            and not is_clipped(texts[r["doc"]], r["at"]) and not (judged and r["why"] == "offtopic")
        ]  # fmt: skip
        which = "DL, documents judged relevant" if judged else f"{NAMES[name]}, top 10"
        compared = _compared(study, rows, [texts[r["doc"]] for r in rows], judged)
        lines += [[which, *cells] for *cells, _ in compared]
        off = next((cells for cells in compared if cells[0] == "why: offtopic"), None)
        if off is not None:
            share = sum(r["why"] == "offtopic" for r in rows) / len(rows)
            kept[NAMES[name]] = {
                "labels": round(share, 4),
                "estimated": round(float(off[-1]), 4),
                "mentions": len(rows),
            }
    if study.keep is not None:
        facts = json.loads(study.keep.read_text(encoding="utf-8"))
        facts["offtopic"] = kept
        study.keep.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    table(["mentions", "class", "n", "labels [95% interval]", "most likely class", "corrected", "as decomposed"], lines)


def _compared(study: Study, rows: list[dict[str, Any]], texts: list[str], judged: bool) -> list[list[str]]:
    starts = np.array([r["at"] for r in rows])
    ends = starts + np.array([len(r["word"]) for r in rows])
    who = class_probabilities(open_resolver(), texts, np.arange(len(rows)), starts, ends)
    estimator, queries = open_estimator(), [r["query"] for r in rows]
    relevance = np.ones(len(rows)) if judged else estimator.relevance(queries, texts)
    why = estimator.why(queries, texts, starts.tolist(), who, relevance)
    lines = []
    for kind, classes, found in (
        ("why", WHY, why),
        ("who", WHO, who),
    ):
        counts = np.bincount(found.argmax(axis=1), minlength=len(classes)).astype(np.float64)[None]
        # As in a decomposition: a document that is judged relevant is not off topic.
        kept = [place for place, one in enumerate(classes) if not (judged and one == "offtopic")]
        right = np.zeros_like(counts)
        errors = confusion(kind)[None]
        right[:, kept] = corrected(counts[:, kept], errors[:, kept][:, :, kept])
        used = found.mean(axis=0) if kind == "why" else right[0] / right.sum()
        for place in kept:
            labels = [MERGED.get(r[kind], r[kind]) == classes[place] for r in rows]
            share = clustered_share(np.array(labels, float), queries, study.draws)
            lines.append([
                f"{kind}: {classes[place]}", str(len(rows)), share, f"{counts[0, place] / counts.sum():.0%}",
                f"{right[0, place] / right.sum():.0%}", f"{used[place]:.0%}", f"{used[place]}",
            ])  # fmt: skip
    return lines


def most_frequent(study: Study) -> None:
    """What an estimate of why must exceed: always answering the most frequent class of the test split."""
    print("\n## Always answering the most frequent why, test split")
    lines = []
    rows = [one for one in study.labels() if one["split"] == "test"]
    texts = {name: read_texts(study.data, name) for name in NAMES}
    rows = [r for r in rows if not is_clipped(texts[r["collection"]][r["doc"]], r["at"])]
    for name in ("all", *NAMES):
        part = [MERGED.get(r["why"], r["why"]) for r in rows if name in ("all", r["collection"])]
        best = max(WHY, key=part.count)
        lines.append([NAMES.get(name, name), str(len(part)), best, f"{part.count(best) / len(part):.2f}"])
    table(["collection", "mentions", "most frequent", "accuracy"], lines)


def judged_not_relevant(study: Study) -> None:
    """A judgement of 0 says that a passage does not answer, not that it is about something else."""
    grades = judgements(study.data, DL)
    rows = [r for r in study.labels() if r["collection"] == DL and r["rank"] >= 1]
    zero = [r for r in rows if grades.get((r["id"], r["doc"])) == 0]
    on_topic = np.array([r["why"] != "offtopic" for r in zero], float)
    share = clustered_share(on_topic, [r["id"] for r in zero], study.draws)
    print(f"\nOf {len(zero)} labeled DL mentions in documents judged 0, {int(on_topic.sum())} are on topic: {share}.")


def decompositions(study: Study) -> None:
    """The parts of ARaB(tf)@10 of public runs, by the product's own path."""
    sets = [dl_runs(study, "dl19"), dl_runs(study, "dl20"), cpjku_runs(study)]
    sets += [own_bm25(study, "boolq"), own_bm25(study, "squad_part")]
    parts: dict[str, list[list[str]]] = {"why": [], "who": []}
    for runs in sets:
        report = runs.measure(["ARaB(tf)@10"], decompose=True)
        for run, found in zip(report.runs, report.parts, strict=True):
            begin = [runs.title, run.name, str(found.mentions), f"{found.judged:.0%}", f"{found.value:+.4f}"]
            for kind, lines in parts.items():
                chosen = [one for one in found.parts if one.kind == kind]
                before = {one.name: f" {one.found:.0%};" if kind == "who" else "" for one in chosen}
                cells = [
                    f"{interval(one.share, one.low, one.high)};{before[one.name]} {one.net:+.3f}" for one in chosen
                ]
                lines.append([*begin, *cells])
    for kind, classes in (("why", WHY), ("who", WHO)):
        print(f"\n## Parts of ARaB(tf)@10 by {kind}")
        print(
            "\nshare [95% interval]; net"
            if kind == "why"
            else "\nshare [95% interval]; share before the correction; net"
        )
        head = ["queries of", "run", "mentions", "in judged documents", "ARaB(tf)@10", *classes]
        table(head, parts[kind])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path, help="relevance.json: only the errors of estimated shares are measured")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        sizes = (100, 200) if given.quick else (1000, RESAMPLES)
        study = Study(given.data, Path(work), *sizes, given.keep)
        print(f"Estimates: {resolver_id()}\n")
        if given.keep is not None:
            estimates_and_labels(study)
            return
        clipped_words(study)
        labeled_shares(study)
        judged_not_relevant(study)
        most_frequent(study)
        estimates_and_labels(study)
        decompositions(study)
        conclusion_tests(study)
        decisive(study)


if __name__ == "__main__":
    main()
