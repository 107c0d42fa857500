"""The interfaces of plugins. There are no base classes: any object with the right attributes is accepted.

A plugin is registered by an entry point in the group ``askew.<kind>``, for instance::

    [project.entry-points."askew.measure"]
    MyMeasure = "my_package.my_module:MyMeasure"
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError
from askew.core.measure import Direction, Measure, Value
from askew.core.ranking import Floats, Hits, Ints, Rankings

if TYPE_CHECKING:
    import pyarrow as pa

# The interface of a log format, which reads the files of one kind of query log as tables.

_EXAMPLES = 3


@dataclass
class Rejected:
    """Rows left out, by reason, with some of their places. It contains no text of a log, only the shape of a value."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1, examples: Iterable[str] = ()) -> None:
        """Count rows left out for one reason."""
        if count:
            self.counts[reason] += count
            examples_so_far = self.examples.setdefault(reason, [])
            examples_so_far += list(examples)[: _EXAMPLES - len(examples_so_far)]

    def merge(self, other: Rejected) -> None:
        """Add the rows left out of another part of the log."""
        for reason, count in other.counts.items():
            self.add(reason, count, other.examples.get(reason, ()))

    @property
    def total(self) -> int:
        """All rows left out."""
        return sum(self.counts.values())


@dataclass
class LogBatch:
    """Some rows of a log in their stored form: ``table`` has the columns of LOG_COLUMNS that the log has."""

    table: pa.Table
    rows: int
    rejected: Rejected = field(default_factory=Rejected)


class LogFile(Protocol):
    """A file of a log. Its bytes are decompressed, without a byte-order mark; progress is shown while they are read."""

    @property
    def path(self) -> Path:
        """The path of the file."""

    def blocks(self) -> Iterator[bytes]:
        """Yield the bytes in blocks."""

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of complete lines, each with the number of its first line."""


@dataclass(frozen=True)
class LogRows:
    """The rows of one file.

    ``columns`` are the columns of LOG_COLUMNS that the rows have: at least time, query, and user or session. ``blocks``
    are read one after the other. Each is a table with these columns, and ``line`` if rows are not simply numbered. A
    format that is slow to parse gives blocks of another type and ``parse(block, key)``, which is called in several
    threads. ``sessions_as_users``: a session may be used as a user if no user is named.
    """

    columns: frozenset[str]
    blocks: Iterable[Any]
    parse: Callable[[Any, Any], LogBatch] | None = None
    sessions_as_users: bool = False


@runtime_checkable
class LogFormat(Protocol):
    """One format of query logs: ``name`` is the value for format=, ``endings`` are those of its files in a folder.

    The first line of its docstring says what it reads.
    """

    name: str
    endings: tuple[str, ...]

    def read(self, file: LogFile, columns: Mapping[str, str] | None = None) -> LogRows:
        """Return the rows of a file. ``columns`` maps columns of LOG_COLUMNS to their names in the file."""


# The interface of a mitigation method: it gets queries with the results of a first search, and returns ranked lists.


@dataclass(frozen=True)
class MitigationTask:
    """The input of a mitigation method: queries, their first results, and how often each document names each group.

    ``first`` has a list for each query, best first; its ``docs`` are document numbers. Row d of ``counts`` belongs to
    document d, and has a column for each of ``groups``. ``search`` retrieves documents for any texts with the base
    ranker. ``reformulate`` takes the name of a reformulator and returns the reformulations of each query that keep its
    meaning. ``text_of`` returns the text of a document. Each call is counted as a cost. These three functions are None
    if only a run is given.
    """

    query_ids: Sequence[str]
    texts: Sequence[str]
    first: Hits
    groups: tuple[str, ...]
    counts: npt.NDArray[np.int32]
    search: Callable[[Sequence[str]], Hits] | None = None
    reformulate: Callable[[str], list[list[str]]] | None = None
    text_of: Callable[[int], str] | None = None

    @property
    def ranks(self) -> Ints:
        """The rank of each entry of the first results, from 0."""
        return np.arange(len(self.first.docs)) - np.repeat(self.first.offsets[:-1], np.diff(self.first.offsets))

    def weights(self) -> Floats:
        """Return ln(1 + count) of each group, for each entry of the first results; ARaB(tf) sums these values."""
        return np.log1p(self.counts[self.first.docs].astype(np.float64))

    def reordered(self, order: Ints) -> Hits:
        """Return the first results in another order; scores decrease by one per rank, as only the order is known."""
        return Hits(self.first.offsets, self.first.docs[order], -self.ranks.astype(np.float32))


@runtime_checkable
class MitigationPlugin(Protocol):
    """A mitigation method: one ranked list for each query of a task."""

    def rank(self, task: MitigationTask) -> Hits:
        """Return the results of each query, best first."""


def check_lists(hits: Hits, task: MitigationTask, who: str) -> Hits:
    """Return the lists of a method; refuse them if they are not lists of documents of the collection."""
    queries, documents = len(task.query_ids), len(task.counts)
    if len(hits.offsets) != queries + 1:
        raise DataError(
            f"method {who}: expected a list for each of {queries:,} queries, found {len(hits)}",
            code="wrong-lists",
            method=who,
            queries=queries,
        )
    docs = np.asarray(hits.docs)
    if len(docs) != int(hits.offsets[-1]) or len(hits.scores) != len(docs):
        counts = f"found {len(docs):,} documents and {len(hits.scores):,} scores"
        raise DataError(f"method {who}: expected {int(hits.offsets[-1]):,} documents, each with a score, {counts}")
    if len(docs) and not 0 <= int(docs.min()) <= int(docs.max()) < documents:
        raise DataError(f"method {who}: expected document numbers from 0 to {documents - 1:,}, found another number")
    pairs = hits.rows().astype(np.int64) * max(documents, 1) + docs
    if len(np.unique(pairs)) < len(pairs):
        raise DataError(f"method {who}: a list has a document twice; return each document once for a query")
    return hits


# The interfaces of plugins for reformulation: reformulators, classifiers of queries, filters of candidates.


@dataclass(frozen=True)
class Passage:
    """A document that a first search retrieved for a query."""

    doc_id: str
    text: str
    score: float


@runtime_checkable
class CollectionStatistics(Protocol):
    """The statistics of the terms of a collection. Terms are analyzed words (for the default index: stems).

    ``documents`` counts the documents whose text is not blank, ``tokens`` the terms of all of them.
    """

    documents: int
    tokens: int

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, lower-cased, each with its term; None for a stop word."""

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split`` for many texts together, which is much faster."""

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the number of documents that contain each term; 0 for an unknown term."""

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return how often each term occurs in the collection; 0 for an unknown term."""


@dataclass(frozen=True)
class QueryBatch:
    """Queries to be reformulated. ``passages`` are the results of a first search for each query, best first.

    ``contexts`` gives the user and the time of each query in one line, if the queries come from a log with both.
    """

    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    passages: tuple[tuple[Passage, ...], ...] | None = None
    statistics: CollectionStatistics | None = None
    contexts: tuple[str | None, ...] | None = None

    def __len__(self) -> int:
        return len(self.query_ids)


@dataclass
class Candidates:
    """The candidates of a batch: candidate i is a reformulation of the query of row ``rows[i]``.

    ``kinds`` has the kind of each candidate, if the method has kinds. ``rejected`` counts rejected texts by reason:
    nothing is dropped silently.
    """

    rows: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    doc_ids: list[str | None] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    kinds: list[str | None] = field(default_factory=list)

    def add(self, row: int, text: str, doc_id: str | None = None, kind: str | None = None) -> None:
        """Add a candidate for the query of a row, with the document it came from and its kind, if there are any."""
        self.rows.append(row)
        self.texts.append(text)
        self.doc_ids.append(doc_id)
        self.kinds.append(kind)

    def reject(self, reason: str, count: int = 1) -> None:
        """Count rejected texts."""
        self.rejected[reason] += count

    def __len__(self) -> int:
        return len(self.rows)


@runtime_checkable
class ReformulatorPlugin(Protocol):
    """Makes candidates for queries; the same settings and seed give the same candidates.

    ``method`` is its name; ``reads`` names the data of ``QueryBatch`` that it needs besides the texts: "passages",
    "statistics". A method that makes one candidate from several passages (``doc_id`` None) may have the attribute
    ``mixes``: the number of top-ranked passages that it uses.
    """

    method: str
    reads: frozenset[str]

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates, as JSON; models by their weights."""

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return the reformulations of each query, best first."""


@dataclass(frozen=True)
class Classified:
    """A probability for each label (columns) of each text (rows); ``chosen`` is -1 if the classifier abstains."""

    labels: tuple[str, ...]
    probabilities: npt.NDArray[np.float64]
    chosen: npt.NDArray[np.int64]

    def names(self) -> list[str | None]:
        """The label of each text; None where the classifier abstains."""
        return [None if i < 0 else self.labels[i] for i in self.chosen.tolist()]


@runtime_checkable
class ClassifierPlugin(Protocol):
    """Predicts which group a query asks about, or none (neutral)."""

    name: str
    labels: tuple[str, ...]

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the texts that determines the result, as JSON values."""

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return a label and its probability for each text."""


@runtime_checkable
class FilterPlugin(Protocol):
    """Decides which candidates are kept.

    ``check`` gets the original and the candidate of each pair. Pairs with the same value in ``rows`` belong to the same
    query, in the order in which its candidates were made. ``check`` returns a reason for each candidate that is
    dropped, and None for each that is kept.
    """

    name: str

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the texts that determines the result, as JSON values."""

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """For each candidate reformulation, return the reason why it is dropped, or None to keep it."""


@runtime_checkable
class ScoringFilter(Protocol):
    """A filter that can return its scores."""

    def score(self, originals: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
        """Return the scores of each pair, by which the filter decides."""


@runtime_checkable
class JudgingFilter(ScoringFilter, Protocol):
    """A filter that decides only by its scores, the probabilities ``same`` and ``natural``."""

    def reason(self, scores: Mapping[str, float]) -> str | None:
        """Return the reason why a pair with these probabilities is dropped; None if it is kept."""


def seed_for(seed: int, *parts: str) -> int:
    """Return a separate seed for each query and method, so that other queries and their order never change a sample."""
    text = "\0".join([str(seed), *parts])
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


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
        allowed = int if self.number == "whole" else int | float
        is_number = isinstance(value, allowed) and not isinstance(value, bool)
        if not self.number or (is_number and self.least <= float(value) <= self.most and abs(float(value)) < math.inf):
            return ""
        kind = "a whole number" if self.number == "whole" else "a finite number"
        ends = [f"{word} {end:g}" for word, end in (("from", self.least), ("to", self.most)) if math.isfinite(end)]
        return " ".join([kind, *ends])


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
    ``find_articles`` and ``find_shares`` are what the null of an excess needs: the articles of documents (and whether
    they are known, see ``articles``), and the shares of some groups (columns of the counts) in the collection: of the
    documents that name one of them most, and of the words.
    """

    run_name: str
    doc_ids: pa.Array
    rankings: Mapping[str, Rankings]
    find_mentions: Callable[..., DocMentions] | None = None
    judgements: Judgements | None = None
    background: Mapping[str, Rankings] | Rankings | None = None
    find_relevance: Callable[[Rankings, int, str | None], Floats] | None = None
    find_articles: Callable[[Ints], tuple[Ints, bool]] | None = None
    find_shares: Callable[[Measure, Sequence[int]], Floats] | None = None

    def articles(self, docs: Ints) -> tuple[Ints, bool]:
        """The number of each document's article, and whether ids or headings say it.

        Each document is an article of its own if none are given.
        """
        return (docs, True) if self.find_articles is None else self.find_articles(docs)

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
            raise ConfigError("⟨on⟩: needs the relevance of documents; measure a run with ⟨qrels⟩", code="no-relevance")
        return self.find_relevance(rankings, level, resolver)

    def mentions(self, lexicon: str, tokens: str, overlap: str = "all", *who: str) -> DocMentions:
        """Mentions counted with a lexicon and a tokenizer; ``who`` are classes of mentions and the resolver's id."""
        if self.find_mentions is None:
            raise ConfigError(
                "measures of lean need the document texts: give the documents with ⟨docs⟩", code="no-texts"
            )
        return self.find_mentions(lexicon, tokens, overlap, *who)


@runtime_checkable
class MeasureFamily(Protocol):
    """All measures of one name: their parameters, the data they read, their direction, and their scores.

    ``score`` returns one value per query of ``inputs.ranked(order)``, and NaN if the measure is not defined for a query
    and the parameters say to leave it out. A family may also have a method ``check(measure)``, which is called before
    anything is read and raises ConfigError for a measure that can never be computed. A method ``unread(measure)`` names
    the parameters that have no effect because of the values of other parameters; a signature omits them. A method
    ``bounds(measure)`` returns the lowest and the highest value that a query can have; if both are finite, intervals
    are conjectured to be valid for every distribution, and a loss can be ruled out. Without this method a measure has
    no bounds.
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
