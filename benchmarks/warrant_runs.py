"""Data of the study ``warrant.py``: labels, judgements, public runs and runs of BM25; and how tables are printed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from mention_model import GREPBIAS

import askew
from askew.core.lexicon import load_lexicon
from askew.measures.mentions import Marker
from askew.measures.statistics.intervals import bca_interval

DL = "msmarco_dl1920"
NAMES = {"boolq": "BoolQ", "squad_part": "SQuAD", DL: "DL", GREPBIAS: "GrepBiasIR"}


@dataclass(frozen=True)
class Study:
    """Where the data is, and how much of it is used."""

    data: Path
    work: Path
    queries: int
    draws: int
    keep: Path | None = None

    @property
    def dl(self) -> Path:
        return self.data / DL

    def labels(self) -> list[dict[str, Any]]:
        lines = (self.data / "mentions" / "mentions.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def interval(value: float, low: float, high: float) -> str:
    return f"{value:.0%} [{low:.0%}, {high:.0%}]"


def clustered_share(hits: Any, queries: Sequence[str], draws: int) -> str:
    _, unit = np.unique(np.array(queries), return_inverse=True)
    rows, found = np.bincount(unit), np.bincount(unit, hits)
    with np.errstate(invalid="ignore"):
        value, low, high = bca_interval(lambda w: (w @ found) / (w @ rows), len(rows), resamples=draws)
    # No draw differs where all rows are alike: the end is then that of as many such rows as queries.
    if not found.sum():
        high = 1 - 0.025 ** (1 / len(rows))
    elif found.sum() == rows.sum():
        low = 0.025 ** (1 / len(rows))
    return interval(value, low, high)


def judgements(data: Path, name: str) -> dict[tuple[str, str], int]:
    files = (data / name).glob("qrels*.txt")
    lines = (line.split() for file in files for line in file.read_text(encoding="utf-8").splitlines())
    return {(query, doc): int(grade) for query, _, doc, grade in lines}


@dataclass(frozen=True)
class RunSet:
    """Runs over the same queries, and what they are measured with; ``background`` is for NFaiRR."""

    title: str
    runs: Mapping[str, Any]
    docs: Path
    qrels: Path
    queries: Path
    background: str = "BM25"
    missing: str | None = None

    def measure(self, measures: Sequence[str], **options: Any) -> askew.MeasureReport:
        if "background" in options:
            options["background"] = self.runs[self.background]
        return askew.measure(
            self.runs,
            self.docs,
            list(measures),
            qrels=self.qrels,
            queries=self.queries,
            missing=self.missing,
            **options,
        )


def dl_runs(study: Study, year: str) -> RunSet:
    files = sorted((study.dl / "runs").glob(f"{year}.*.trec"))
    runs = {file.stem.partition(".")[2]: file for file in files}
    names = study.dl / "docs.tsv", study.dl / f"qrels.{year}.txt", study.dl / f"queries.{year}.tsv"
    return RunSet(year.upper(), runs, *names)


def cpjku_runs(study: Study) -> RunSet:
    runs = {file.stem: file for file in sorted((study.data / "cpjku_dl19_runs").glob("*.run"))}
    names = study.dl / "docs.tsv", study.dl / "qrels.dl19.txt", study.dl / "queries.dl19.tsv"
    return RunSet("cpjku DL19", runs, *names, missing="zero")


@cache
def own_bm25(study: Study, name: str) -> RunSet:
    """BM25 of askew for a sample of the queries that name no group."""
    folder = study.data / name
    marker = Marker(load_lexicon("rekabsaz2020"))
    lines = (folder / "queries.tsv").read_text(encoding="utf-8").splitlines()
    kept = [line.split("\t", 1) for line in lines if not marker.spans(line.split("\t", 1)[1])]
    drawn = sorted(random.Random(0).sample(kept, min(study.queries, len(kept))))
    texts = study.work / f"{name}.queries.tsv"
    texts.write_text("".join(f"{query}\t{text}\n" for query, text in drawn), encoding="utf-8")
    run = askew.Ranker("bm25").index(folder / "docs.tsv").search(texts, k=100)
    return RunSet(NAMES[name], {"BM25": run}, folder / "docs.tsv", folder / "qrels.txt", texts)
