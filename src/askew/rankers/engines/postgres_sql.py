"""The statements of a search in PostgreSQL: names quoted as identifiers, queries only as parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

QUERIES = ("websearch", "plain", "any")
RANKS = ("ts_rank_cd", "ts_rank")
# The operator of pgvector, and how what it gives becomes a score: so much minus the value.
DISTANCES = {"cosine": ("<=>", 1.0), "dot": ("<#>", 0.0), "l2": ("<->", 0.0)}
# An HNSW index finds no more rows than this setting says; its largest value is 1000. What the database has set stays
# where it is enough.
_EF_SEARCH = """
SELECT set_config('hnsw.ef_search', least(1000, greatest(%s,
    coalesce(nullif(current_setting('hnsw.ef_search', true), '')::int, 40)))::text, true)
"""


@dataclass(frozen=True)
class Columns:
    """A table, its column of document ids and those of texts."""

    table: str
    doc_id: str
    texts: tuple[str, ...]

    def parts(self, sql: Any) -> dict[str, Any]:
        """The pieces of a statement that every search has."""
        texts = [sql.SQL(", {}::text").format(_column(sql, name)) for name in self.texts]
        names = self.table.split(".", 1)
        return {
            "table": _identifier(sql, *names), "doc": sql.SQL("{}::text").format(_column(sql, self.doc_id)),
            "texts": sql.SQL("").join(texts),
        }  # fmt: skip


@dataclass(frozen=True)
class FullText:
    """A search of words."""

    columns: Columns
    tsvector: str | None
    language: str
    form: str
    rank: str
    normalization: int

    def settings(self) -> Mapping[str, Any]:
        """What tells this search from another."""
        return {"search": "text", **asdict(self)}

    def before(self, k: int) -> Sequence[tuple[Any, ...]]:
        """What is set before the search."""
        return ()

    def score(self, value: float) -> float:
        """The rank is a score."""
        return float(value)

    def statement(self, sql: Any) -> Any:
        """The search, with parameters for the query and k."""
        # A literal and no parameter: only so is an index of this expression used.
        language = _literal(sql, self.language)
        if self.tsvector is not None:
            words = _column(sql, self.tsvector)
        else:
            texts = [_column(sql, name) for name in self.columns.texts]
            whole = texts[0] if len(texts) == 1 else sql.SQL("concat_ws(' ', {})").format(sql.SQL(", ").join(texts))
            words = sql.SQL("to_tsvector({}, {})").format(language, whole)
        return sql.SQL(
            "SELECT {doc}, {rank}({words}, asked.query, {how}){texts} "
            "FROM {table} AS searched, {query} AS asked(query) WHERE {words} @@ asked.query ORDER BY 2 DESC, 1 LIMIT %s"
        ).format(
            rank=sql.SQL(self.rank), words=words, how=sql.Literal(self.normalization),
            query=self._query(sql, language), **self.columns.parts(sql),
        )  # fmt: skip

    def _query(self, sql: Any, language: Any) -> Any:
        if self.form == "websearch":
            return sql.SQL("websearch_to_tsquery({}, %s)").format(language)
        if self.form == "plain":
            return sql.SQL("plainto_tsquery({}, %s)").format(language)
        # Words are in quotes there, so that only operators have spaces around them.
        either = "CAST(replace(CAST(plainto_tsquery({}, %s) AS text), ' & ', ' | ') AS tsquery)"
        return sql.SQL(f"(SELECT {either})").format(language)


@dataclass(frozen=True)
class Vectors:
    """A search of vectors."""

    columns: Columns
    vector: str
    distance: str
    probes: int | None

    def settings(self) -> Mapping[str, Any]:
        """What tells this search from another."""
        return {"search": "vector", **asdict(self)}

    def before(self, k: int) -> Sequence[tuple[Any, ...]]:
        """What is set before the search, for this transaction."""
        found: list[tuple[Any, ...]] = [(_EF_SEARCH, [k])]
        if self.probes is not None:
            found.append(("SELECT set_config('ivfflat.probes', %s, true)", [str(self.probes)]))
        return found

    def score(self, value: float) -> float:
        """A score that falls as the distance grows."""
        return DISTANCES[self.distance][1] - float(value)

    def statement(self, sql: Any) -> Any:
        """The search, with parameters for the vector and k."""
        # An index is used only where the distance alone orders; equal distances are then ordered by id.
        return sql.SQL(
            "SELECT * FROM (SELECT {doc}, {vector} {operator} %s{texts} FROM {table} AS searched "
            "WHERE {vector} IS NOT NULL ORDER BY 2 LIMIT %s) AS found ORDER BY 2, 1"
        ).format(
            vector=_column(sql, self.vector), operator=sql.SQL(DISTANCES[self.distance][0]), **self.columns.parts(sql)
        )


def _column(sql: Any, name: str) -> Any:
    return _identifier(sql, "searched", name)


def _identifier(sql: Any, *names: str) -> Any:
    # In a statement with parameters a percent sign is written twice.
    return sql.Identifier(*(name.replace("%", "%%") for name in names))


def _literal(sql: Any, value: str) -> Any:
    return sql.Literal(value.replace("%", "%%"))
