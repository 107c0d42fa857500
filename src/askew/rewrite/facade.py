"""Classes for scripts and notebooks: rankers, reformulators and filters by name."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.plugins import names
from askew.core.protocols import ScoringFilter
from askew.data.runs import Run
from askew.rewrite.reformulate import (
    SCHEMA,
    FirstPass,
    Tally,
    default_filters,
    make_filter,
    make_reformulator,
    reformulate,
)
from askew.search.disk import read_header
from askew.search.retrieve import as_queries, make_ranker, run_lines
from askew.search.retrieve import index as index_documents


class Ranker:
    """The ranker with a given name. Example: ``Ranker("bm25").index(collection).search(queries, k=100)``.

    ``settings`` are the settings of the ranker (``askew show ranker NAME``). Some rankers need no index.
    """

    def __init__(self, name: str = defaults.RANKER, **settings: Any) -> None:
        self.name, self.settings = name, settings
        self.folder: Path | None = Path(settings["index"]) if "index" in settings else None
        self._made: Any = None

    def index(self, collection: object, folder: str | Path | None = None, **settings: Any) -> Ranker:
        """Index a collection in a new folder, by default a temporary one. ``settings`` are the index settings."""
        if folder is None:
            temporary = tempfile.mkdtemp(prefix="askew-")
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
            folder = Path(temporary) / "index"
        kind = self.name if self.name in names("index") else "bm25"
        index_documents(collection, Path(folder), kind, settings)
        self.folder, self._made = Path(folder), None
        return self

    @classmethod
    def open(cls, folder: str | Path, name: str | None = None, **settings: Any) -> Ranker:
        """Open an existing index. The default ranker is the one that the index was made for."""
        return cls(name or str(read_header(Path(folder))["kind"]), index=str(folder), **settings)

    @property
    def _ranker(self) -> Any:
        if self._made is None:
            index = {} if self.folder is None else {"index": str(self.folder)}
            if not index and self.name in {*names("index"), "bm25-msmarco", "qld", "rm3", "rocchio"}:
                raise ConfigError(f"ranker {self.name}: there is no index yet; call index(collection), or open(folder)")
            self._made = make_ranker({"ranker": self.name, **self.settings, **index})
        return self._made

    def search(self, queries: object, k: int = defaults.RESULTS) -> Run:
        """The k best documents of each query, as a run. Queries without a result are not in the run."""
        table = as_queries(queries)
        hits = self._ranker.search(table["text"].combine_chunks(), k)
        lines = run_lines(table["query_id"].combine_chunks(), hits, self._ranker.doc_ids)
        notes = [f"{hits.empty} of {table.num_rows} queries find nothing"] if hits.empty else []
        return Run.of(lines, self._ranker.id).noted(notes)

    def __repr__(self) -> str:
        return f"Ranker({self.name!r}, index={None if self.folder is None else str(self.folder)!r})"


class Reformulator:
    """The reformulator with a given name. Example: ``Reformulator("reduce").reformulate(queries)``.

    ``groups`` are the demographic groups, for methods that count words of groups. ``settings`` are the settings of the
    method (``askew show reformulator NAME``). ``filters`` are the names of filters; a candidate reformulation must pass
    all of them; the default is that of ``askew reformulate``. If the filter ``equivalence`` is one of them, the
    candidates of a query are the ``best`` ones (None: all), best first. After a call of ``reformulate``, ``tally`` has
    the number of candidates that were made, the number that were kept, and the number that were rejected for each
    reason.
    """

    def __init__(
        self,
        name: str,
        *,
        groups: GroupsLike | None = None,
        filters: Sequence[str] | None = None,
        depth: int = defaults.PASSAGES,
        best: int | None = defaults.SUGGESTIONS,
        **settings: Any,
    ) -> None:
        counted = None if groups is None else Groups.of(groups)
        self.name, self.depth, self._best = name, depth, best
        self._method = make_reformulator({"method": name, **settings}, counted)
        named = default_filters([name]) if filters is None else filters
        self._filters = [make_filter({"filter": filter_name}, counted) for filter_name in named]
        self.tally: Tally | None = None

    def reformulate(self, queries: object, ranker: Ranker | None = None) -> pl.DataFrame:
        """Candidates of each query, a row for each: its text, method, settings, document, kind and probabilities.

        ``ranker`` is a BM25 ranker with an index, for methods that read passages or statistics of a collection.
        """
        first = None
        if self._method.reads:
            if ranker is None or ranker.folder is None:
                raise ConfigError(
                    f"reformulator {self.name}: this method reads {' and '.join(sorted(self._method.reads))} of a "
                    "collection; give ranker=Ranker('bm25').index(collection)"
                )
            first = FirstPass(ranker.folder, ranker._ranker, self.depth)
        table, (self.tally,) = reformulate(as_queries(queries), [self._method], self._filters, first, count=self._best)
        return table.select(list(SCHEMA))

    def __repr__(self) -> str:
        return f"Reformulator({self.name!r})"


class Filter:
    """The filter with a given name. Example: ``Filter("rules").check([(original, reformulation), ...])``.

    ``groups`` are the demographic groups, for filters that count words of groups. ``settings`` are the settings of the
    filter (``askew show filter NAME``).
    """

    def __init__(self, name: str, *, groups: GroupsLike | None = None, **settings: Any) -> None:
        self.name = name
        self._filter = make_filter({"filter": name, **settings}, None if groups is None else Groups.of(groups))

    def check(self, pairs: Sequence[tuple[str, str]]) -> list[str | None]:
        """For each pair (original query, reformulation), return why it is rejected, or None if it is kept."""
        originals = [original for original, _ in pairs]
        first: dict[str, int] = {}
        rows = [first.setdefault(original, place) for place, original in enumerate(originals)]
        return self._filter.check(originals, [text for _, text in pairs], rows)

    def keep(self, pairs: Sequence[tuple[str, str]]) -> list[bool]:
        """Whether each pair is kept."""
        return [reason is None for reason in self.check(pairs)]

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, float]]:
        """The scores that the filter decides by, for each pair: ``same`` and ``natural`` for ``equivalence``."""
        if not isinstance(self._filter, ScoringFilter):
            raise ConfigError(
                f"filter {self.name}: this filter computes no scores; call check(pairs)", code="no-scores"
            )
        return self._filter.score([original for original, _ in pairs], [text for _, text in pairs])

    def __repr__(self) -> str:
        return f"Filter({self.name!r})"
