"""What the explorer says of a query: its results, their bias (lean), its reformulations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askew.app.explore.leaning import LEAST_LEAN, LeanPicture
from askew.app.explore.reasons import CountedPart, ShownMark
from askew.app.explore.warrant import Warrant
from askew.core.outcome import Outcome, Verdict

EFFECTIVENESS, LEAN = "effectiveness", "lean"
# The orders of reformulations: the best first, or by one of these.
ORDERS = ("", "lean", "effectiveness", "text")


@dataclass(frozen=True)
class ShownResult:
    """A document that was found. ``text`` may be cut; ``marks`` are places in it, ``mentions`` count the whole text.

    ``english`` is false where the text does not look like English, which the words and models here are for.

    ``relevance`` is what the judgements of the query say, None where they say nothing.
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
    """The results of one query. ``mentions`` are summed over the results that are shown.

    ``lean`` is the deciding measure as it is drawn, null where nothing was found. ``parts`` say which share of what a
    measure counts is off topic and on topic, by the light models; none for groups that they do not know.
    ``without_group`` is the query without the words that name a group. ``notes`` are about this query.
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
    """A reformulation, or the query itself. ``front``: it is Pareto-optimal in effectiveness and lean.

    ``groups`` are those that its words name. ``outcome`` is null where the query has no judgements; ``lean_verdict``
    (less, same, more) is there nonetheless. ``same`` is the probability that it asks for the same thing, ``natural``
    that a person would type it, ``kept`` the share of the original query's top 10 documents that it finds too.
    ``stored``: it is one of the pairs that the store was built with.
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
    """Reformulations of a query with their measures. ``effectiveness`` names the measure that they are placed by.

    Of a query without judgements it is ``AGREEMENT``, which is no effectiveness: ``proxy`` says so. ``dropped`` counts
    the candidates that were made and not kept, by reason. ``leans`` is false where the results of the query are no
    further than ``threshold`` from the best value: then no reformulation is needed. ``methods`` made the candidates;
    the measures of ``deciding`` give the outcome.
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
        """The candidates in one of ``ORDERS``: by itself nothing lost first, then lean. What has no value is last."""

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
    """0 where it leans less and loses nothing, 1 where it loses effectiveness, 2 where it does not lean less."""
    if one.lean_verdict != Verdict.BETTER.lean:
        return 2
    return 1 if one.outcome == Outcome.WORSE_LESS.value else 0


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
    ``same`` is the probability that both ask for the same thing, ``natural`` that a person would type the new one.
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
