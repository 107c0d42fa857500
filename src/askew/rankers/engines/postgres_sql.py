"""The SQL statements of a PostgreSQL search. Names are quoted as identifiers, and queries are passed as parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

QUERIES = ("websearch", "plain", "any")
RANKS = ("ts_rank_cd", "ts_rank")
# The operator of pgvector, and the constant from which its value is subtracted to give a score.
DISTANCES = {"cosine": ("<=>", 1.0), "dot": ("<#>", 0.0), "l2": ("<->", 0.0)}
# An HNSW index returns at most hnsw.ef_search rows, and the largest value of that setting is 1000. If the
# database already sets a sufficient value, it is kept.
_EF_SEARCH = """
SELECT set_config('hnsw.ef_search', least(1000, greatest(%s,
    coalesce(nullif(current_setting('hnsw.ef_search', true), '')::int, 40)))::text, true)
"""


@dataclass(frozen=True)
class Columns:
    """A table, its column with document ids, and its columns with texts."""

    table: str
    doc_id: str
    texts: tuple[str, ...]

    def parts(self, sql: Any) -> dict[str, Any]:
        """The parts of a statement that all searches share."""
        texts = [sql.SQL(", {}::text").format(_column(sql, name)) for name in self.texts]
        names = self.table.split(".", 1)
        return {
            "table": _identifier(sql, *names), "doc": sql.SQL("{}::text").format(_column(sql, self.doc_id)),
            "texts": sql.SQL("").join(texts),
        }  # fmt: skip


@dataclass(frozen=True)
class FullText:
    """A full-text search."""

    columns: Columns
    tsvector: str | None
    language: str
    form: str
    rank: str
    normalization: int

    def settings(self) -> Mapping[str, Any]:
        """The settings that identify this search."""
        return {"search": "text", **asdict(self)}

    def before(self, k: int) -> Sequence[tuple[Any, ...]]:
        """The statements to run before the search: none."""
        return ()

    def score(self, value: float) -> float:
        """The score of a row: its rank."""
        return float(value)

    def statement(self, sql: Any) -> Any:
        """The search, with parameters for the query and k."""
        # A literal, because PostgreSQL does not use an index on this expression with a parameter.
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
        # The text of a tsquery quotes its words, so only operators have spaces around them.
        either = "CAST(replace(CAST(plainto_tsquery({}, %s) AS text), ' & ', ' | ') AS tsquery)"
        return sql.SQL(f"(SELECT {either})").format(language)


@dataclass(frozen=True)
class Vectors:
    """A vector search."""

    columns: Columns
    vector: str
    distance: str
    probes: int | None

    def settings(self) -> Mapping[str, Any]:
        """The settings that identify this search."""
        return {"search": "vector", **asdict(self)}

    def before(self, k: int) -> Sequence[tuple[Any, ...]]:
        """The statements to run before the search, with settings for this transaction."""
        found: list[tuple[Any, ...]] = [(_EF_SEARCH, [k])]
        if self.probes is not None:
            found.append(("SELECT set_config('ivfflat.probes', %s, true)", [str(self.probes)]))
        return found

    def score(self, value: float) -> float:
        """The score of a row, which decreases with the distance."""
        return DISTANCES[self.distance][1] - float(value)

    def statement(self, sql: Any) -> Any:
        """The search, with parameters for the vector and k."""
        # An index is used only to order by distance alone, so an outer query orders equal distances by id.
        return sql.SQL(
            "SELECT * FROM (SELECT {doc}, {vector} {operator} %s{texts} FROM {table} AS searched "
            "WHERE {vector} IS NOT NULL ORDER BY 2 LIMIT %s) AS found ORDER BY 2, 1"
        ).format(
            vector=_column(sql, self.vector), operator=sql.SQL(DISTANCES[self.distance][0]), **self.columns.parts(sql)
        )


def _column(sql: Any, name: str) -> Any:
    return _identifier(sql, "searched", name)


def _identifier(sql: Any, *names: str) -> Any:
    # A percent sign must be doubled in a statement with parameters.
    return sql.Identifier(*(name.replace("%", "%%") for name in names))


def _literal(sql: Any, value: str) -> Any:
    return sql.Literal(value.replace("%", "%%"))
