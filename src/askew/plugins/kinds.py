"""The shapes of plugins. No base classes: any object of the right shape will do.

A plugin is announced by an entry point in the group ``askew.<kind>``, for instance::

    [project.entry-points."askew.measure"]
    MyMeasure = "my_package.my_module:MyMeasure"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.measure import Direction, Measure, Value
from askew.core.ranking import Floats, Hits, Ints, Rankings

KINDS = (
    "measure", "tokenizer", "stage", "ranker", "index", "analyzer", "reformulator", "classifier", "filter", "selector",
    "log_format", "mitigation",
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter of a measure: its default, what it may be, and what it means.

    ``number`` is "whole" or "any" for a parameter that must be a number from ``least`` to ``most``. A ``quiet`` one
    stands in a signature only where it is not the default.
    """

    default: Value | None
    about: str
    choices: tuple[Value, ...] = ()
    number: str = ""
    least: float = -math.inf
    most: float = math.inf
    quiet: bool = False

    def expected(self, value: Value) -> str:
        """What the value should have been, in words; empty where the value will do."""
        if self.choices:
            return "" if value in self.choices else f"one of {', '.join(map(str, self.choices))}"
        if not self.number or self._is_number(value):
            return ""
        kind = "a whole number" if self.number == "whole" else "a finite number"
        ends = [f"{word} {end:g}" for word, end in (("from", self.least), ("to", self.most)) if math.isfinite(end)]
        return " ".join([kind, *ends])

    def _is_number(self, value: Value) -> bool:
        allowed = int if self.number == "whole" else int | float
        if isinstance(value, bool) or not isinstance(value, allowed):
            return False
        return self.least <= value <= self.most and abs(value) < math.inf


@dataclass(frozen=True)
class DocMentions:
    """Mentions of each group by document ordinal; ``known`` says which documents have a text.

    ``malformed`` marks documents whose line was not two columns; None where there are none. Only the published way of
    reading lets them through, as known documents with an empty text.
    """

    groups: tuple[str, ...]
    counts: npt.NDArray[np.int32]
    tokens: npt.NDArray[np.int32]
    known: npt.NDArray[np.bool_]
    malformed: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Judgements:
    """Judgements by query row: the documents judged for row i are ``docs[offsets[i]:offsets[i + 1]]``.

    ``judged`` is False for queries that have no judgement at all.
    """

    offsets: Ints
    docs: Ints
    relevance: Ints
    judged: npt.NDArray[np.bool_]

    def relevant(self, level: int = 1) -> Ints:
        """How many documents of each query are judged with this grade or a higher one."""
        running = np.concatenate([[0], np.cumsum(self.relevance >= level)])
        return np.asarray(running[self.offsets[1:]] - running[self.offsets[:-1]], np.int64)


@dataclass(frozen=True)
class Inputs:
    """Everything a measure may read. What is not there raises when asked for; it never counts as zero.

    ``background`` is one run's rankings under each order rule, or one that serves for all.
    """

    run_name: str
    doc_ids: pa.Array
    rankings: Mapping[str, Rankings]
    find_mentions: Callable[..., DocMentions] | None = None
    judgements: Judgements | None = None
    background: Mapping[str, Rankings] | Rankings | None = None
    find_relevance: Callable[[Rankings, int, str | None], Floats] | None = None

    def ranked(self, order: str) -> Rankings:
        """The rankings under an order rule."""
        return self.rankings[order]

    def background_ranked(self, order: str) -> Rankings | None:
        """The background run under an order rule; None where no background was given."""
        return self.background[order] if isinstance(self.background, Mapping) else self.background

    def relevance(self, rankings: Rankings, level: int, resolver: str | None) -> Floats:
        """How likely each ranked document is relevant: 1 or 0 by judgement, an estimate of the resolver elsewhere.

        Without a resolver, documents that are not judged count as not relevant.
        """
        if self.find_relevance is None:
            raise ConfigError("on=: which documents are relevant is not known here; measure a run with qrels= instead")
        return self.find_relevance(rankings, level, resolver)

    def mentions(self, lexicon: str, tokens: str, overlap: str = "all", *who: str) -> DocMentions:
        """Mentions counted with a lexicon and a tokenizer; ``who`` are classes of mentions and the resolver's id."""
        if self.find_mentions is None:
            raise ConfigError("measures of lean need the texts: give the documents with docs=")
        return self.find_mentions(lexicon, tokens, overlap, *who)


@runtime_checkable
class MeasureFamily(Protocol):
    """All measures of one name: what can be set, what is read, which way is better, how to score.

    ``score`` gives one value per query of ``inputs.ranked(order)``, and NaN where the measure is not
    defined for a query and leaving it out is what the parameters say. A family may also have a method
    ``check(measure)``: it is called before anything is read, and raises ConfigError for what can never be computed.
    A method ``unread(measure)`` names the parameters that make no difference given the others; a signature leaves
    them out. A method ``bounds(measure)`` gives the lowest and the highest value that a query can have; where both are
    finite, intervals hold for every distribution and a loss can be ruled out. Without it a measure has no bounds.
    """

    name: str
    about: str
    positional: tuple[str, ...]
    parameters: Mapping[str, Parameter]
    reads: frozenset[str]

    def direction(self, measure: Measure) -> Direction:
        """Which way is better."""

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        """One value per query."""


@runtime_checkable
class Stage(Protocol):
    """One kind of step: a table in, a table out, every row accounted for.

    A stage may name a column in ``together``: rows that follow each other with the same value there, such as the
    variants of a query, are then given to it in one piece. It may have a method ``prepare``, called once before any
    rows are given out: there it makes what all its copies in other processes will read.
    """

    name: str
    version: int

    def settings(self) -> Mapping[str, Any]:
        """What the result depends on besides its input, as JSON values."""

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """The output for these rows, and how many rows were dropped, by reason."""


@runtime_checkable
class RankerPlugin(Protocol):
    """Texts in, ranked documents out.

    ``id`` says which ranker with which settings made a run: one word, for it stands in the last column of a TREC run.
    ``search`` answers every text, with at most ``k`` documents, best first; equal scores in the order of ``doc_ids``.
    A ranker that searches an index takes its folder as the setting ``index``; how the index is made is a plugin of the
    kind ``index``, under the name that the ranker has: a function of documents, a folder and settings.
    """

    id: str
    doc_ids: pa.Array

    def search(self, texts: Sequence[str] | pa.Array, k: int) -> Hits:
        """The k best documents of each text."""


@runtime_checkable
class SelectorPlugin(Protocol):
    """Scored variants in, pairs with their originals out, and which of them are chosen.

    ``select_counted`` gives an object with ``table``, the pairs as a polars data frame, and ``dropped``, the variants
    that cannot be compared, by reason. ``subsets`` names the columns of the table that say what a pair is chosen for.
    """

    name: str
    subsets: tuple[str, ...]

    def settings(self) -> Mapping[str, Any]:
        """What the choice depends on besides the scores, as JSON values."""

    def measures(self) -> tuple[str, ...]:
        """The measures it selects by."""

    def select_counted(self, scored: Any, directions: Mapping[str, Direction]) -> Any:
        """The pairs, and what was left out."""
