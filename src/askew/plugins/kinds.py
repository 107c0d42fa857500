"""The interfaces of plugins. There are no base classes: any object with the right attributes is accepted.

A plugin is registered by an entry point in the group ``askew.<kind>``, for instance::

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
    """A parameter of a measure: its default, its allowed values, and its meaning.

    ``number`` is "whole" or "any" for a parameter that must be a number from ``least`` to ``most``. A ``quiet``
    parameter is in a signature only if it is not the default.
    """

    default: Value | None
    about: str
    choices: tuple[Value, ...] = ()
    number: str = ""
    least: float = -math.inf
    most: float = math.inf
    quiet: bool = False

    def expected(self, value: Value) -> str:
        """Return what the value should have been, in words; empty if the value is allowed."""
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

    ``malformed`` marks documents whose line did not have two columns; None if there are none. Only reading as in the
    published scripts accepts them, as known documents with an empty text.
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
    """Everything a measure may read. Reading missing data raises an error; missing data never counts as zero.

    ``background`` has the rankings of the background run: under each order rule, or the same for all rules.
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
        """The background run under an order rule; None if no background was given."""
        return self.background[order] if isinstance(self.background, Mapping) else self.background

    def relevance(self, rankings: Rankings, level: int, resolver: str | None) -> Floats:
        """Return how likely each ranked document is relevant: 1 or 0 if judged, else an estimate of the resolver.

        Without a resolver, documents that are not judged count as not relevant.
        """
        if self.find_relevance is None:
            raise ConfigError(
                "on=: this parameter needs the relevance of documents, which is not known here; measure a run with "
                "qrels= instead"
            )
        return self.find_relevance(rankings, level, resolver)

    def mentions(self, lexicon: str, tokens: str, overlap: str = "all", *who: str) -> DocMentions:
        """Mentions counted with a lexicon and a tokenizer; ``who`` are classes of mentions and the resolver's id."""
        if self.find_mentions is None:
            raise ConfigError("measures of lean need the document texts: give the documents with docs=")
        return self.find_mentions(lexicon, tokens, overlap, *who)


@runtime_checkable
class MeasureFamily(Protocol):
    """All measures of one name: their parameters, the data they read, their direction, and their scores.

    ``score`` returns one value per query of ``inputs.ranked(order)``, and NaN if the measure is not defined for a query
    and the parameters say to leave it out. A family may also have a method ``check(measure)``, which is called before
    anything is read and raises ConfigError for a measure that can never be computed. A method ``unread(measure)`` names
    the parameters that have no effect because of the values of other parameters; a signature omits them. A method
    ``bounds(measure)`` returns the lowest and the highest value that a query can have; if both are finite, intervals
    are valid for every distribution and a loss can be ruled out. Without this method a measure has no bounds.
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
    """One kind of step, which turns a table into a table and accounts for every row.

    A stage may name a column in ``together``: consecutive rows with the same value in this column, such as the variants
    of a query, are then passed to it in one piece. It may have a method ``prepare``, which is called once before any
    rows are passed, and which makes the data that all copies of the stage in other processes read.
    """

    name: str
    version: int

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the input that determines the result, as JSON values."""

    def run(self, rows: pa.Table) -> tuple[pa.Table, Mapping[str, int]]:
        """Return the output for these rows, and how many rows were dropped, by reason."""


@runtime_checkable
class RankerPlugin(Protocol):
    """Ranks documents for texts.

    ``id`` identifies the ranker and its settings: one word, because it is the last column of a TREC run. ``search``
    returns at most ``k`` documents for every text, best first; ties are in the order of ``doc_ids``. A ranker that
    searches an index takes its folder as the setting ``index``. The index is made by a plugin of the kind ``index``
    with the same name as the ranker: a function of documents, a folder and settings.
    """

    id: str
    doc_ids: pa.Array

    def search(self, texts: Sequence[str] | pa.Array, k: int) -> Hits:
        """The k best documents of each text."""


@runtime_checkable
class SelectorPlugin(Protocol):
    """Pairs scored variants with their originals, and marks the chosen pairs.

    ``select_counted`` returns an object with ``table``, the pairs as a polars data frame, and ``dropped``, the counts
    of variants that cannot be compared, by reason. ``subsets`` names the columns of the table that mark chosen pairs.
    """

    name: str
    subsets: tuple[str, ...]

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the scores that determines the selection, as JSON values."""

    def measures(self) -> tuple[str, ...]:
        """Return the measures that determine the selection."""

    def select_counted(self, scored: Any, directions: Mapping[str, Direction]) -> Any:
        """Return the pairs, and the counts of the variants that were left out."""
