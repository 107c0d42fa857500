"""Short replies for a language model: the values that decide come first, texts are cut, full lists only on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askew.app.explore.answers import Alternatives, Answer, Comparison, Variant
from askew.app.explore.texts import MeasuredText

_DIGITS = 4
# The maximum number of words listed for a text.
_MOST_WORDS = 40


@dataclass(frozen=True)
class BriefResult:
    """A result. ``mentions`` counts the words of each group in the whole text."""

    rank: int
    doc_id: str
    relevance: int | None
    mentions: Mapping[str, int]
    text: str


@dataclass(frozen=True)
class BriefAnswer:
    """The results of a query. ``lean`` says how far they lean by the deciding measure, in a sentence."""

    query: str
    judged: bool
    sign: str
    lean: str
    values: Mapping[str, float | None]
    results: list[BriefResult]
    parts: Mapping[str, float]
    warrant: str
    notes: list[str]

    @classmethod
    def of(cls, found: Answer, characters: int) -> BriefAnswer:
        """Shorten an answer."""
        results = [BriefResult(one.rank, one.doc_id, one.relevance, one.mentions, _cut(one.text, characters))
                   for one in found.results]  # fmt: skip
        lean = "nothing was found" if found.lean is None else found.lean.meaning
        parts = {one.part: round(one.share, 2) for one in found.parts}
        return cls(found.query, found.judged, found.setting.sign, lean, _values(found), results, parts,
                   found.warrant.status, list(found.notes))  # fmt: skip


@dataclass(frozen=True)
class BriefVariant:
    """A reformulation: ``gains`` are positive where it is better. ``outcome`` is null without judgements."""

    text: str
    outcome: str | None
    lean: str | None
    same_meaning: float | None
    kept_of_top_10: float | None
    gains: Mapping[str, float | None]

    @classmethod
    def of(cls, one: Variant, deciding: tuple[str, ...]) -> BriefVariant:
        """Shorten a reformulation."""
        gains = {name: _short(one.gains.get(name)) for name in deciding}
        return cls(one.text, one.outcome, one.lean_verdict, _short(one.same), _short(one.kept), gains)


@dataclass(frozen=True)
class BriefAlternatives:
    """The best reformulations, those without a loss first; ``more`` is the number of further ones.

    ``leans`` is false if the results of the query do not lean, so that no reformulation is needed.
    """

    query: str
    judged: bool
    sign: str
    leans: bool | None
    original: Mapping[str, float | None]
    best: list[BriefVariant]
    more: int
    notes: list[str]

    @classmethod
    def of(cls, found: Alternatives, count: int) -> BriefAlternatives:
        """Shorten the first ``count`` reformulations."""
        ordered = found.ordered()
        original = {name: _short(found.original.values.get(name)) for name in found.deciding}
        best = [BriefVariant.of(one, found.deciding) for one in ordered[:count]]
        return cls(found.query, found.judged, found.setting.sign, found.leans, original, best,
                   len(ordered) - len(best), list(found.notes))  # fmt: skip


@dataclass(frozen=True)
class BriefComparison:
    """A query and a reformulation: for each measure the old value, the new one and the gain, positive if better."""

    query: str
    reformulation: str
    judged: bool
    sign: str
    outcome: str | None
    lean: str | None
    same_meaning: float | None
    kept_of_top_10: float
    original: str
    reformulated: str
    measures: Mapping[str, list[float | None]]

    @classmethod
    def of(cls, found: Comparison) -> BriefComparison:
        """Shorten a comparison."""
        old, new = _values(found.old), _values(found.new)
        measures = {name: [old[name], new.get(name), _short(found.gains.get(name))] for name in old}
        said = ["" if one.lean is None else one.lean.meaning for one in (found.old, found.new)]
        return cls(found.old.query, found.new.query, found.old.judged, found.old.setting.sign, found.outcome,
                   found.lean_verdict, _short(found.same), found.agreement, said[0], said[1], measures)  # fmt: skip


@dataclass(frozen=True)
class BriefMeasured:
    """The measures of a query's results, and their ``signatures`` on request."""

    query: str
    judged: bool
    sign: str
    lean: str
    values: Mapping[str, float | None]
    signatures: list[str]

    @classmethod
    def of(cls, found: Answer, signatures: bool) -> BriefMeasured:
        """Shorten an answer to its measures."""
        lean = "nothing was found" if found.lean is None else found.lean.meaning
        told = [one.signature for one in found.values] if signatures else []
        return cls(found.query, found.judged, found.setting.sign, lean, _values(found), told)


@dataclass(frozen=True)
class BriefText:
    """The words of groups in a text, as ``word: group, who it points to``, and its measures as the only result."""

    sign: str
    mentions: Mapping[str, int]
    words: list[str]
    values: Mapping[str, float | None]
    notes: list[str]

    @classmethod
    def of(cls, found: MeasuredText) -> BriefText:
        """Shorten a measured text."""
        pairs = zip(found.words, found.marks, strict=True)
        words = [f"{word}: {', '.join([*mark.groups, *([mark.who] if mark.who else [])])}" for word, mark in pairs]
        values = {name: _short(value) for name, value in found.values.items()}
        return cls(found.sign, found.mentions, words[:_MOST_WORDS], values, list(found.notes))


def _values(found: Answer) -> dict[str, float | None]:
    return {one.measure: _short(one.value) for one in found.values}


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters].rstrip() + "…"
