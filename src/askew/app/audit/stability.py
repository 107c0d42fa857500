"""Check whether the verdict of an audit is the same with other word lists, tokenizers and measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from askew.app.audit.measures import AuditMeasures, toward
from askew.app.measure.choices import axes_of
from askew.app.measure.measure import measure_defined
from askew.app.measure.sensitivity import sensitivity
from askew.app.scoring.comparable import comparable
from askew.core import defaults
from askew.core.groups import Groups
from askew.core.measure import Measure
from askew.measures.catalogue import find_family

_MEASURES = ("ARaB(tf)", "ARaB(tc)", "ARaB(bool)", "NFaiRR", "LexiconShare")
_TOKENS = ("unclipped", "word")


@dataclass(frozen=True)
class Alternative:
    """The mean with one measure, word list and tokenizer, with its interval and the group that it leans toward."""

    label: str
    measure: str
    mean: float
    low: float | None
    high: float | None
    n: int
    toward: str | None


@dataclass(frozen=True)
class Stability:
    """The verdict of the audit, and the means with other combinations of measure, word list and tokenizer.

    The suggested reformulations lean less in ``less`` of the ``compared`` combinations.
    """

    verdict: str | None = None
    alternatives: tuple[Alternative, ...] = ()
    less: int = 0
    compared: int = 0
    notes: tuple[str, ...] = ()

    @property
    def decided(self) -> list[Alternative]:
        """The combinations that have a verdict; empty if the audit itself has no verdict."""
        return [one for one in self.alternatives if one.toward is not None and self.verdict is not None]

    @property
    def same(self) -> int:
        """The number of combinations that have the same verdict as the audit."""
        return sum(one.toward == self.verdict for one in self.decided)


def stability_of(
    name: str, lines: pl.DataFrame, docs: Mapping[str, str], measures: AuditMeasures, verdict: str | None,
    missing: str | None,
) -> Stability:  # fmt: skip
    """Measure the results with every combination of a few measures, lexicons and tokenizers."""
    counted, texts = _counted(measures), _texts(measures)
    listed = {"tokens": _TOKENS, "who": ("any",), "missing": (missing or "error",), "sign": _signs(texts, "signed")}
    axes = axes_of(counted, texts, None, listed, None)
    choices = {measure.text: chosen for measure, chosen in axes.combinations()}
    scored, left_out = measure_defined({name: lines}, dict(docs), list(choices), groups=counted)
    found = []
    for one in scored.asked:
        mean, chosen = scored.mean(scored.runs[0], one), choices[one.text]
        label = " ".join(str(chosen[axis]) for axis in ("measure", "lexicon", "tokens") if axis in chosen)
        found.append(Alternative(label, one.text, mean.mean, mean.low, mean.high, mean.n, toward(one, mean)))
    return Stability(verdict, tuple(found), notes=tuple(left_out))


def times_less(
    originals: pl.DataFrame, suggested: pl.DataFrame, docs: Mapping[str, str], measures: AuditMeasures,
    missing: str | None,
) -> tuple[int, int]:  # fmt: skip
    """Count the combinations in which suggested reformulations lean less than their queries, and all combinations."""
    queries = suggested["query_id"].unique()
    runs = {"original": originals.filter(pl.col("query_id").is_in(queries.implode())), "reformulated": suggested}
    report = sensitivity(
        runs, dict(docs), _texts(measures), groups=_counted(measures), tokens=_TOKENS,
        signs=_signs(_texts(measures), "signed", "abs"), who=("any",), missing=None if missing is None else (missing,),
    )  # fmt: skip
    return sum(new < old for old, new in (one.leans for one in report.combinations)), len(report.combinations)


def _counted(measures: AuditMeasures) -> Groups:
    return Groups.of(defaults.SENSITIVITY_GROUPS) if measures.named is None else measures.named


def _signs(texts: Sequence[str], *signs: str) -> tuple[str, ...] | None:
    """Return the signs if a measure has the parameter ``sign``, else None."""
    return signs if any("sign" in find_family(Measure.parse(text).name).parameters for text in texts) else None


def _texts(measures: AuditMeasures) -> Sequence[str]:
    return comparable([f"{name}@{measures.cutoff}" for name in _MEASURES], _counted(measures))
