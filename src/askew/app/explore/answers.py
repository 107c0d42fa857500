"""What the explorer says of a query: its results, their bias (lean), its reformulations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askew.app.explore.warrant import Warrant
from askew.core.outcome import Outcome, outcome_of
from askew.mentions.marks import Mark

EFFECTIVENESS, LEAN = "effectiveness", "lean"
# The orders of reformulations: the best first, or by one of these.
ORDERS = ("", "lean", "effectiveness", "text")


@dataclass(frozen=True)
class ShownResult:
    """A document that was found. ``text`` may be cut; ``marks`` are places in it, ``mentions`` count the whole text.

    ``relevance`` is what the judgements of the query say, None where they say nothing.
    """

    rank: int
    doc_id: str
    score: float
    text: str
    cut: bool
    marks: tuple[Mark, ...]
    mentions: Mapping[str, int]
    relevance: int | None = None


@dataclass(frozen=True)
class Value:
    """What a measure says of a list. None: it is not defined for this list."""

    measure: str
    value: float | None
    better: str
    kind: str
    signature: str


@dataclass(frozen=True)
class Setting:
    """What was asked: the collection, the ranker, and the groups whose words are marked, in the order they are drawn.

    ``sign`` says how a value of the lean is read. Where it is ``signed``, the first group is on the negative side.
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
    """The results of one query. ``mentions`` are summed over the results that are shown."""

    query: str
    query_id: str | None
    judged: bool
    results: tuple[ShownResult, ...]
    found: int
    mentions: Mapping[str, int]
    values: tuple[Value, ...]
    warrant: Warrant
    setting: Setting


@dataclass(frozen=True)
class Variant:
    """A reformulation, or the query itself. ``front``: it is Pareto-optimal in effectiveness and lean.

    ``groups`` are those that its words name. ``outcome`` is null where the query has no judgements; ``lean_verdict``
    (less, same, more) is there nonetheless.
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


@dataclass(frozen=True)
class Alternatives:
    """Reformulations of a query with their measures. ``effectiveness`` names the measure that they are placed by.

    Of a query without judgements it is ``AGREEMENT``, which is no effectiveness: ``proxy`` says so. ``dropped`` counts
    the candidates that were made and not kept, by reason.
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

    @property
    def without_group(self) -> Variant | None:
        """The query with the words of a group exchanged or left out so that it names none, where there is one."""
        return next((one for one in self.candidates if one.method == "swap" and not one.groups), None)

    def ordered(self, order: str = "") -> list[Variant]:
        """The candidates in one of ``ORDERS``; what has no value comes last."""

        def high(value: float | None) -> float:
            return float("inf") if value is None else -value

        def key(one: Variant) -> tuple[object, ...]:
            if order == "text":
                return one.text.casefold(), one.text
            if order == "effectiveness":
                return high(one.values.get(self.effectiveness)), one.text
            lean = high(one.gains.get(self.lean)), one.text
            return lean if order == "lean" else (not self._loses_nothing(one), not one.front, *lean)

        return sorted(self.candidates, key=key)

    def _loses_nothing(self, one: Variant) -> bool:
        """Whether it retrieves as well as the original query, or better, and leans less."""
        outcome = outcome_of(one.gains.get(self.effectiveness), one.gains.get(self.lean))
        return outcome in (Outcome.BETTER_LESS, Outcome.SAME_LESS)


@dataclass(frozen=True)
class Move:
    """The rank of a document in two lists; None where it is not in the top ``depth``."""

    doc_id: str
    old: int | None
    new: int | None


@dataclass(frozen=True)
class Comparison:
    """A query and a reformulation: both result lists, the moves of their documents, and what is gained.

    ``moves`` are of the documents that are shown in one list or both, in the order of the old list, then the new.
    ``outcome`` is null where the query has no judgements; ``lean_verdict`` (less, same, more) is there nonetheless.
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
