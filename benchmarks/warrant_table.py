"""The decisive table of the study ``warrant.py``: what each measure of lean tells apart, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mention_model import GREPBIAS, read_texts
from warrant_runs import DL, NAMES, RunSet, Study, cpjku_runs, dl_runs, judgements, own_bm25, table

import askew
from askew.measures.statistics.intervals import bca_interval
from askew.measures.statistics.significance import pair_signs, tau_b
from askew.search.rerank import RerankSettings, rerank

REFERENCE = "ARaB(tf,tokens=word,lexicon=rekabsaz2020)@10"
LEXICONS = ("rekabsaz2020", "rekabsaz2021", "gender")
WHOS = ("any", "generic", "real+fictional+generic")
NEURAL = ("knrm", "conv_knrm", "match_pyramid", "tk", "bert_L2", "bert_L4")
UNWARRANTED = ("offtopic", "stereotype")


@dataclass(frozen=True)
class Row:
    """A measure of the decisive table; ``single`` is that of one document."""

    family: str
    kind: str
    sign: str
    lexicon: str
    who: str
    on: str

    def _text(self, family: str, cutoff: int) -> str:
        given = {"sign": self.sign, "lexicon": self.lexicon, "who": self.who, "on": self.on}
        if family in ("NFaiRR", "FaiRR"):
            given = {"lexicon": self.lexicon, "who": self.who}
        inner = [*([self.kind] if self.kind else []), *(f"{key}='{value}'" for key, value in given.items())]
        return f"{family}({','.join(inner)})@{cutoff}"

    @property
    def measure(self) -> str:
        return self._text(self.family, 10)

    @property
    def single(self) -> str:
        # NFaiRR of one document is 1 against itself: its neutrality is FaiRR@1.
        return self._text("FaiRR" if self.family == "NFaiRR" else self.family, 1)

    @property
    def estimated(self) -> bool:
        return self.who != "any" or self.on == "relevant"

    def cells(self) -> list[str]:
        return [f"{self.family}({self.kind})" if self.kind else self.family, self.sign or "-", self.who, self.on or "-"]


def rows_of(lexicon: str) -> list[Row]:
    families = [("ARaB", kind, sign) for kind in ("tc", "tf", "bool") for sign in ("signed", "abs")]
    families += [("LexiconShare", "", "abs"), ("NFaiRR", "", "")]
    return [
        Row(*family, lexicon, who, on if family[0] != "NFaiRR" else "")
        for family in families
        for who in WHOS
        for on in (("any", "relevant") if family[0] != "NFaiRR" else ("any",))
    ]


@dataclass(frozen=True)
class Area:
    """An area under the curve with its interval."""

    value: float
    low: float
    high: float

    @property
    def tells_nothing(self) -> bool:
        return self.low <= 0.5 <= self.high

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]{'†' if self.tells_nothing else ''}"


@dataclass
class Labeled:
    """The labeled mentions of a column, and the size of the lean of their documents under each measure."""

    title: str
    rows: list[dict[str, Any]]
    positive: tuple[str, ...]
    sizes: dict[str, Any] = field(default_factory=dict)

    def chosen(self, estimated: bool) -> Any:
        """Estimates were learned from the training rows, but for those of MS MARCO."""
        return np.array([not estimated or r["split"] == "test" or r["collection"] == DL for r in self.rows])

    def describe(self) -> str:
        told = []
        for estimated in (False, True):
            part = [r for r, use in zip(self.rows, self.chosen(estimated), strict=True) if use]
            positive = sum(r["why"] in self.positive for r in part)
            are = "" if estimated else "labeled mentions are positive "
            told.append(f"{positive} of {len(part)} {are}({len({r['id'] for r in part})} queries)")
        return f"AUC {self.title}: {told[0]}. For a measure with an estimated `who` or `on`: {told[1]}."

    def auc(self, row: Row, draws: int) -> Area:
        """The area under the curve of the size of a document's lean; queries are drawn."""
        use = self.chosen(row.estimated)
        size = self.sizes[row.single][use]
        wanted = np.array([r["why"] in self.positive for r in self.rows])[use]
        _, unit = np.unique([f"{r['collection']} {r['id']}" for r in self.rows], return_inverse=True)
        _, unit = np.unique(unit[use], return_inverse=True)
        units = int(unit.max()) + 1
        better = (size[wanted][:, None] > size[~wanted]) + 0.5 * (size[wanted][:, None] == size[~wanted])
        pairs, every = np.zeros((units, units)), np.zeros((units, units))
        np.add.at(pairs, (unit[wanted][:, None], unit[~wanted]), better)
        np.add.at(every, (unit[wanted][:, None], unit[~wanted]), 1.0)

        def statistic(weights: Any) -> Any:
            with np.errstate(invalid="ignore"):
                return ((weights @ pairs) * weights).sum(axis=1) / ((weights @ every) * weights).sum(axis=1)

        return Area(*bca_interval(statistic, units, resamples=draws))


def measure_pairs(study: Study, labels: Sequence[dict[str, Any]], measures: Sequence[str]) -> dict[str, Any]:
    """The size of the lean of the document of each label, each pair of query and document as a run of one line."""
    sizes = {one: np.full(len(labels), np.nan) for one in measures}
    for name in sorted({r["collection"] for r in labels}):
        places = [place for place, r in enumerate(labels) if r["collection"] == name]
        run = {f"p{place}": {labels[place]["doc"]: 1.0} for place in places}
        judged = judgements(study.data, name)
        grades: dict[str, dict[str, int]] = {}
        for place in places:
            one = labels[place]
            grade = 1 if name == GREPBIAS else judged.get((one["id"], one["doc"]))
            if grade is not None:
                grades[f"p{place}"] = {one["doc"]: grade}
        texts = study.work / f"{name}.pairs.tsv"
        lines = (f"p{place}\t{' '.join(labels[place]['query'].split())}\n" for place in places)
        texts.write_text("".join(lines), encoding="utf-8")
        report = askew.measure(run, read_texts(study.data, name), list(measures), qrels=grades, queries=texts)
        where = [int(query[1:]) for query in report.runs[0].query_ids]
        for text, request in zip(measures, report.asked, strict=True):
            values = report.runs[0].values[request.text]
            sizes[text][where] = 1 - values if text.startswith("FaiRR") else np.abs(values)
    undefined = [text for text, found in sizes.items() if np.isnan(found).any()]
    if undefined:
        raise SystemExit(f"no value for some labeled documents: {', '.join(undefined)}")
    return sizes


def labeled_columns(study: Study, measures: Sequence[str]) -> list[Labeled]:
    labels = study.labels()
    sizes = measure_pairs(study, labels, measures)

    def column(title: str, positive: tuple[str, ...], use: Callable[[dict[str, Any]], bool]) -> Labeled:
        places = [place for place, r in enumerate(labels) if use(r)]
        return Labeled(title, [labels[p] for p in places], positive, {one: sizes[one][places] for one in measures})

    made = [
        column(
            f"unwarranted, {NAMES[name]}", UNWARRANTED, lambda r, name=name: r["collection"] == name and r["rank"] >= 1
        )
        for name in ("boolq", "squad_part", DL)
    ]
    made.append(column("stereotype, GrepBiasIR and DL", ("stereotype",), lambda r: r["rank"] == 0))
    made.append(column("stereotype, DL", ("stereotype",), lambda r: r["collection"] == DL and r["rank"] == 0))
    return made


def leans(runs: RunSet, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """How far each run is from the best value of each measure; lower leans less."""
    report = runs.measure(measures, background=True)
    return {
        text: {run.name: one.direction.gain(report.mean(run, one).mean, 0.0) for run in report.runs}
        for text, one in zip(measures, report.asked, strict=True)
    }


def mitigated(study: Study, runs: RunSet) -> RunSet:
    """BM25 before and after detconstsort."""
    out = study.work / f"{runs.title}.reranked.run"
    rerank(runs.runs["BM25"], runs.docs, out, settings=RerankSettings(method="detconstsort"))
    return RunSet(runs.title, {"BM25": runs.runs["BM25"], "after": out}, runs.docs, runs.qrels, runs.queries)


def tau(found: Mapping[str, dict[str, float]], measure: str) -> float:
    values = np.array([list(found[measure].values()), list(found[REFERENCE].values())])
    return float(tau_b(pair_signs(values))[0, 1])


def less(found: dict[str, float], lower: str, higher: str) -> bool:
    return found[lower] < found[higher] - 1e-12


@dataclass(frozen=True)
class Systems:
    """How far runs lean under every measure: cpjku, DL19, DL20; and BM25 before and after reranking."""

    public: list[dict[str, dict[str, float]]]
    reranked: list[dict[str, dict[str, float]]]

    def taus(self, measure: str) -> list[float]:
        return [tau(found, measure) for found in self.public]

    def conclusions(self, measure: str) -> tuple[int, int, list[bool]]:
        """AdvBERT leans less than BERT (of 2), neural rankers more than BM25 (of 6), reranked runs less than before."""
        here = self.public[0][measure]
        adversarial = sum(less(here, f"advbert_{size}", f"bert_{size}") for size in ("L2", "L4"))
        neural = sum(less(here, "BM25", one) for one in NEURAL)
        return adversarial, neural, [less(one[measure], "after", "BM25") for one in self.reranked]

    def cells(self, measure: str) -> list[str]:
        adversarial, neural, fell = self.conclusions(measure)
        return [f"{adversarial} of 2", f"{neural} of 6", " ".join("yes" if one else "no" for one in fell)]


CONCLUSIONS = ["AdvBERT leans less", "neural leans more", "less after reranking: DL19 DL20 BoolQ"]
TAUS = ["tau cpjku (10)", "tau DL19 (6)", "tau DL20 (6)"]


def decisive(study: Study) -> None:
    """Measures by lexicon, sign, who and on: what they tell apart, and whether published conclusions hold."""
    rows = [one for lexicon in LEXICONS for one in rows_of(lexicon)]
    columns = labeled_columns(study, list(dict.fromkeys(one.single for one in rows)))
    measures = [REFERENCE, *(one.measure for one in rows)]
    public = [leans(runs, measures) for runs in (cpjku_runs(study), dl_runs(study, "dl19"), dl_runs(study, "dl20"))]
    before = [dl_runs(study, "dl19"), dl_runs(study, "dl20"), own_bm25(study, "boolq")]
    systems = Systems(public, [leans(mitigated(study, runs), measures) for runs in before])
    areas = {one: [column.auc(one, study.draws) for column in columns] for one in rows}
    print("\n## Decisive table\n\nPositive labels behind each area under the curve (AUC):\n")
    for column in columns:
        print(f"- {column.describe()}")
    table(["measure", *CONCLUSIONS], [[REFERENCE, *systems.cells(REFERENCE)]])
    titles = [f"AUC {one.title}" for one in columns]
    summary(areas, systems, titles)
    for lexicon in LEXICONS:
        print(f"\n### Lexicon {lexicon}")
        lines = [
            [*one.cells(), *map(str, areas[one]), *map(signed, systems.taus(one.measure)), *systems.cells(one.measure)]
            for one in rows
            if one.lexicon == lexicon
        ]
        table(["measure", "sign", "who", "on", *titles, *TAUS, *CONCLUSIONS], lines)


def signed(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:+.2f}"


def summary(areas: Mapping[Row, list[Area]], systems: Systems, titles: Sequence[str]) -> None:
    """The range of each column over the measures and lexicons, by who and on."""
    print("\n### Summary by who and on\n\nlowest to highest; in brackets how many intervals exclude 0.5")
    lines = []
    for who in WHOS:
        for on in ("any", "relevant"):
            part = [one for one in areas if one.who == who and (one.on or "any") == on]
            cells = []
            for place in range(len(titles)):
                here = [areas[one][place] for one in part]
                told = sum(not one.tells_nothing for one in here)
                values = [one.value for one in here]
                cells.append(f"{min(values):.2f} to {max(values):.2f} ({told} of {len(here)})")
            for place in range(len(TAUS)):
                found = [value for one in part if not np.isnan(value := systems.taus(one.measure)[place])]
                cells.append(f"{min(found):+.2f} to {max(found):+.2f}")
            held = [systems.conclusions(one.measure) for one in part]
            kept = [sum(h[0] == 2 for h in held), sum(h[1] == len(NEURAL) for h in held), sum(all(h[2]) for h in held)]
            lines.append([who, on, *cells, *(f"{one} of {len(part)}" for one in kept)])
    head = ["AdvBERT leans less, 2 of 2", "neural leans more, 6 of 6", "less after reranking, 3 of 3"]
    table(["who", "on", *titles, *TAUS, *head], lines)


def bound(value: float | None) -> str:
    return "none" if value is None else f"{value:+.3f}"


def number(value: float | None) -> str:
    return "none" if value is None else "<0.01" if value < 0.01 else f"{value:.2f}"


def difference(found: Any) -> str:
    """A mean difference with its interval and p; or that the two runs have equal values."""
    if found.improved == found.worsened == 0:
        return "0 (no query differs)"
    return f"{found.gain:+.4f} [{bound(found.low)}, {bound(found.high)}] p {number(found.p)}"


def conclusion_tests(study: Study) -> None:
    """Are the differences behind the published conclusions within chance on these 30 queries?"""
    print("\n## Published conclusions, paired tests on the 30 cpjku queries")
    print("\nmean gain in the size of lean per query [95% interval], p without correction for several tests")
    runs = cpjku_runs(study)
    pairs = [("bert_L2", "advbert_L2"), ("bert_L4", "advbert_L4"), *((one, "BM25") for one in NEURAL)]
    measures = [REFERENCE, "ARaB(tf)@10", "ARaB(tf,who=generic)@10"]
    lines = []
    for more, fewer in pairs:
        report = askew.compare(
            runs.runs[more],
            runs.runs[fewer],
            runs.docs,
            measures,
            qrels=runs.qrels,
            queries=runs.queries,
            missing="zero",
        )
        found = [report.results[one.text] for one in report.asked]
        lines.append([f"{fewer} leans less than {more}", *map(difference, found)])
    table(["conclusion", *measures], lines)
