"""What the explorer says of a query: its results, how they lean, other ways to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from askew.app.explore.marks import Mark
from askew.app.explore.warrant import Warrant

EFFECTIVENESS, LEAN = "effectiveness", "lean"


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
    """What was asked: the collection, the ranker, and which side of a bar each group has."""

    collection: str
    documents: int
    ranker: str
    lexicon: str
    left: str
    right: str


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
    """One way to ask a query. ``front``: no other candidate is better on one side and as good on the other.

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
    """Other ways to ask a query, each with its measures. ``effectiveness`` names the measure that they are placed by.

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


@dataclass(frozen=True)
class Move:
    """Where a document stands in two lists; None where it is not among the first ``depth``."""

    doc_id: str
    old: int | None
    new: int | None


@dataclass(frozen=True)
class Comparison:
    """Two ways to ask the same: both result lists, the moves of their documents, and what is gained.

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
