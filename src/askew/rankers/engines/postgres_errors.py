"""One-line messages for PostgreSQL errors by SQLSTATE, because its own messages may quote queries and documents."""

from __future__ import annotations

from typing import Any

from askew.rankers.engines.client import EngineError
from askew.rankers.engines.postgres_sql import FullText, Vectors

_TIMED_OUT = "57014"
# Errors after which the same statement may succeed: connections, resources, shutdown, conflicts.
_TRANSIENT = ("08", "53", "57P", "40", "58")
# A refused connection has no SQLSTATE, so permanent errors are recognized by words of PostgreSQL's messages.
_FOR_GOOD = ("authentication", "password", "does not exist", "pg_hba.conf", "permission denied", "invalid", "SSL")
_MISSING = {
    "42P01": "there is no table {table!r}; check the setting table=",
    "3F000": "the schema of the table {table!r} does not exist; check the setting table=",
    "42703": "the table {table!r} lacks a column; check the settings {columns}",
    "42501": "this user may not read the table {table!r}",
}


def is_of_the_query(error: Any) -> bool:
    """Whether the error may concern only this query: it was refused, or took too long."""
    state = error.sqlstate or ""
    return state == _TIMED_OUT or state[:2] in ("22", "54")


def query_error(error: Any, server: str, asked: FullText | Vectors, timeout_s: float) -> EngineError:
    """The error of a failed search."""
    state, table = error.sqlstate or "", asked.columns.table
    if state == _TIMED_OUT:
        return EngineError(f"{server}: no reply within {timeout_s:g} seconds (timeout_s=)", transient=True)
    is_lost = not state and type(error).__name__ in ("OperationalError", "InterfaceError")
    if is_lost or state.startswith(_TRANSIENT):
        return EngineError(f"{server}: the connection was lost; check that the engine runs", transient=True)
    if state in _MISSING:
        columns = "id_column= and text_columns=" + (
            " and tsvector_column=" if isinstance(asked, FullText) else " and vector_column="
        )
        return EngineError(f"{server}: {_MISSING[state].format(table=table, columns=columns)}")
    return EngineError(f"{server}: {_hint(state, asked)} (SQLSTATE {state or 'none'})")


def _hint(state: str, asked: FullText | Vectors) -> str:
    if isinstance(asked, FullText):
        if state == "42704":
            return f"there is no text search configuration {asked.language!r}; check language="
        return (
            "the PostgreSQL server refused a query"
            if state[:2] in ("22", "54")
            else "the server refused the search; check the settings"
        )
    if state in ("42883", "42704", "42804"):
        return f"{asked.vector!r} is not a column of vectors, or the extension vector is not installed in the database"
    if state[:2] == "22":
        return f"the query vectors do not fit the column {asked.vector!r}; model= should be the encoder of this column"
    return "the server refused the search; check the settings"


def connect_error(error: Any, server: str, has_secret: bool) -> EngineError:
    """The error of a failed connection."""
    said = str(error)
    if any(word in said for word in _FOR_GOOD):
        refused = f"{server}: the server refused the connection; check the user and the database in url="
        if has_secret:
            return EngineError(f"{refused} and the secret")
        return EngineError(f"{refused}. If the server needs a password, give it with auth_env= or auth_file=")
    return EngineError(f"{server}: no connection; check that the engine runs", transient=True)
