"""The answers of the explorer to a query: its results, their bias (lean), its reformulations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askew.app.explore.leaning import LEAST_LEAN, LeanPicture
from askew.app.explore.reasons import CountedPart, ShownMark
from askew.app.explore.warrant import Warrant
from askew.core.outcome import Outcome, Verdict

EFFECTIVENESS, LEAN = "effectiveness", "lean"
# The orders of reformulations; the empty one puts the best first.
ORDERS = ("", "lean", "effectiveness", "text")


@dataclass(frozen=True)
class ShownResult:
    """A retrieved document. ``text`` may be cut; ``marks`` are positions in it. ``mentions`` are of the whole text.

    ``relevance`` is the judgement of the document for the query, None without one. ``english`` is false if the text
    does not look like English; the word lists and models are for English.
    """

    rank: int
    doc_id: str
    score: float
    text: str
    cut: bool
    marks: tuple[ShownMark, ...]
    mentions: Mapping[str, int]
    relevance: int | None = None
    english: bool = True


@dataclass(frozen=True)
class Value:
    """The value of a measure for a list; None if the measure is not defined for it."""

    measure: str
    value: float | None
    better: str
    kind: str
    signature: str


@dataclass(frozen=True)
class Setting:
    """The collection, the ranker, and the groups with marked words, in the order of the drawing.

    ``sign`` explains how to read a value of the lean. If it is ``signed``, the first group is on the negative side.
    """

    collection: str
    documents: int
    ranker: str
    lexicon: str
    groups: tuple[str, ...]
    signed: bool
    sign: str


@dataclass(frozen=True)
class Answer:
    """The results of one query. ``mentions`` are summed over the results that are shown.

    ``lean`` is the drawing of the deciding measure, null without results. ``parts`` are the shares of the measure
    ``parts_of`` that the light models estimate to be off topic and on topic; empty for groups that the models do not
    know. ``without_group`` is the query without the words that name a group. ``notes`` are about this query.
    """

    query: str
    query_id: str | None
    judged: bool
    results: tuple[ShownResult, ...]
    found: int
    mentions: Mapping[str, int]
    values: tuple[Value, ...]
    warrant: Warrant
    setting: Setting
    lean: LeanPicture | None = None
    parts: tuple[CountedPart, ...] = ()
    parts_of: str | None = None
    without_group: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variant:
    """A reformulation, or the query itself. ``front`` is true if it is Pareto-optimal in effectiveness and lean.

    ``groups`` are the groups that its words name. ``outcome`` is null if the query has no judgements; ``lean_verdict``
    (less, same, more) needs none. ``same`` is the probability that it asks for the same thing as the query, and
    ``natural`` the probability that a person would type it. ``kept`` is the share of the original query's top 10
    documents that it also retrieves. ``stored`` is true if it is one of the pairs of the store.
    """

    variant_id: str
    text: str
    method: str
    doc_id: str | None
    values: Mapping[str, float | None]
    gains: Mapping[str, float | None]
    outcome: str | None
    lean_verdict: str | None
    front: bool
    groups: tuple[str, ...]
    same: float | None = None
    natural: float | None = None
    kept: float | None = None
    stored: bool = False


@dataclass(frozen=True)
class Alternatives:
    """Reformulations of a query with their measures. ``effectiveness`` is the measure that is compared with lean.

    For a query without judgements it is ``AGREEMENT``, which does not measure effectiveness; then ``proxy`` is true.
    ``dropped`` has the numbers of dropped candidates by reason. ``leans`` is false if the results of the query are at
    most ``threshold`` from the best value; then no reformulation is needed. ``methods`` made the candidates. The
    measures of ``deciding`` determine the outcome.
    """

    query: str
    query_id: str | None
    judged: bool
    effectiveness: str
    proxy: bool
    lean: str
    original: Variant
    candidates: tuple[Variant, ...]
    dropped: Mapping[str, int]
    signatures: Mapping[str, str]
    better: Mapping[str, str]
    setting: Setting
    leans: bool | None = None
    threshold: float = LEAST_LEAN
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    deciding: tuple[str, ...] = ()

    def ordered(self, order: str = "") -> list[Variant]:
        """Sort the candidates in one of ``ORDERS``; by default without a loss first, then by lean. No value is last."""

        def high(value: float | None) -> float:
            return float("inf") if value is None else -value

        def key(one: Variant) -> tuple[object, ...]:
            if order == "text":
                return one.text.casefold(), one.text
            if order == "effectiveness":
                return high(one.values.get(self.effectiveness)), one.text
            lean = high(one.gains.get(self.lean)), high(one.same), one.text
            return lean if order == "lean" else (_lost(one), *lean)

        return sorted(self.candidates, key=key)


def _lost(one: Variant) -> int:
    """Return 0 if it leans less without a loss, 1 if it also loses effectiveness, 2 if it does not lean less."""
    if one.lean_verdict != Verdict.BETTER.lean:
        return 2
    return 1 if one.outcome == Outcome.WORSE_LESS.value else 0


@dataclass(frozen=True)
class Move:
    """The ranks of a document in two lists; None if it is not in the top ``depth``."""

    doc_id: str
    old: int | None
    new: int | None


@dataclass(frozen=True)
class Comparison:
    """A query and a reformulation: both result lists, the rank changes of their documents, and the gains.

    ``moves`` has the documents that are shown in at least one list, in the order of the old list, then of the new one.
    ``outcome`` is null if the query has no judgements; ``lean_verdict`` (less, same, more) needs none. ``same`` is the
    probability that both ask for the same thing, and ``natural`` the probability that a person would type the
    reformulation.
    """

    old: Answer
    new: Answer
    depth: int
    moves: tuple[Move, ...]
    gains: Mapping[str, float | None]
    agreement: float
    outcome: str | None
    lean_verdict: str | None
    effectiveness: str
    proxy: bool
    lean: str
    tolerance: float = 0.0
    same: float | None = None
    natural: float | None = None
