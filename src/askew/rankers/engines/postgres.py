"""Search a PostgreSQL table through psycopg (extra ``postgres``): full text, or vectors of pgvector. It only reads."""

from __future__ import annotations

import contextlib
import math
import weakref
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from askew.core.address import is_secret_name
from askew.core.errors import ConfigError
from askew.plugins.limits import Between, Count, OneOf, Positive
from askew.rankers.engines.client import Answer, EngineError, Found
from askew.rankers.engines.opened import Opened, close_all, library, names_in, sendable
from askew.rankers.engines.plugin import EnginePlugin
from askew.rankers.engines.postgres_errors import connect_error, is_of_the_query, query_error
from askew.rankers.engines.postgres_sql import DISTANCES, QUERIES, RANKS, Columns, FullText, Vectors
from askew.rankers.engines.secret import SecretSource
from askew.rankers.engines.vectors import BATCH, QueryEncoder

_TIME_LIMIT = "SELECT set_config('statement_timeout', %s, true)"


class PostgresEngine:
    """A table of PostgreSQL, searched by full text or by vectors of pgvector.

    ``url`` is postgresql://user@host:5432/database, without a password. The password is read from the environment
    variable ``auth_env`` or the file ``auth_file``, or found by PostgreSQL's own rules. ``table`` may be preceded by
    its schema and a dot. ``id_column`` has the document id, ``text_columns`` the text. With ``search="text"``,
    the words of ``tsvector_column`` are searched, or by default those of the text columns with the text search
    configuration ``language``. ``query_form`` is websearch, plain (all words) or any (at least one word); ``rank`` and
    ``normalization`` determine the score. With ``search="vector"``, ``vector_column`` is searched by ``distance``
    (cosine, dot or l2) for queries encoded by ``model``; ``probes`` is for an IVFFlat index. Each query is a read-only
    transaction of at most ``timeout_s`` seconds.
    """

    how_asked = frozenset({"auth_env", "auth_file", "timeout_s", "device"})

    def __init__(
        self, url: str, table: str, search: Annotated[str, OneOf(("text", "vector"))] = "text", id_column: str = "id",
        text_columns: str = "text", tsvector_column: str | None = None, language: str = "english",
        query_form: Annotated[str, OneOf(QUERIES)] = "websearch", rank: Annotated[str, OneOf(RANKS)] = "ts_rank_cd",
        normalization: Annotated[int, Between(0, 63)] = 0, vector_column: str = "embedding",
        distance: Annotated[str, OneOf(tuple(DISTANCES))] = "cosine", probes: Count | None = None,
        model: str | None = None, revision: str | None = None, query_prompt: str = "", device: str | None = None,
        auth_env: str | None = None, auth_file: str | None = None, timeout_s: Positive = 30.0,
    ) -> None:  # fmt: skip
        parts = checked_server(url)
        self._url, self._server = url, _shown(parts)
        columns = Columns(table, id_column, tuple(names_in(text_columns)))
        self._asked: FullText | Vectors
        self._encoder: QueryEncoder | None = None
        if search == "text":
            if tsvector_column is None and not columns.texts:
                raise ConfigError(
                    "postgres: expected a column to search, found none; give tsvector_column= or text_columns="
                )
            self._asked = FullText(columns, tsvector_column, language, query_form, rank, normalization)
        else:
            self._asked = Vectors(columns, vector_column, distance, probes)
            self._encoder = QueryEncoder("postgres", model, revision, query_prompt, device)
        self.batch_size = BATCH if self._encoder else 1
        self._auth, self._timeout = SecretSource("auth", auth_env, auth_file), timeout_s
        self._idle: deque[Any] = deque()
        weakref.finalize(self, close_all, self._idle)
        self._statement = Opened(lambda: self._asked.statement(library("psycopg.sql", "postgres")))
        self.id = f"postgres-{table}-{search}"

    def settings(self) -> Mapping[str, Any]:
        """The table, its columns and the settings of the search."""
        return {"server": self._server, **self._asked.settings(), **(self._encoder.settings() if self._encoder else {})}

    def find(self, queries: Sequence[str], k: int) -> Sequence[Answer]:
        """The rows of each query, with one transaction per query."""
        asked = (
            [sendable(query) for query in queries]
            if self._encoder is None
            else [f"[{','.join(map(repr, vector))}]" for vector in self._encoder.dense(queries)]
        )
        with self._connection() as connection:
            return [self._find(connection, one, k) for one in asked]

    def close(self) -> None:
        """Close the connections that are not in use."""
        close_all(self._idle)

    def _find(self, connection: Any, asked: str, k: int) -> Answer:
        statement, errors = self._statement.get(), library("psycopg.errors", "postgres")
        try:
            with connection.transaction(), connection.cursor() as cursor:
                for setting in ((_TIME_LIMIT, [str(math.ceil(self._timeout * 1000))]), *self._asked.before(k)):
                    cursor.execute(*setting)
                cursor.execute(statement, [asked, k])
                return [self._found(row) for row in cursor.fetchall()]
        except errors.Error as error:
            found = query_error(error, self._server, self._asked, self._timeout)
            if is_of_the_query(error) and self._encoder is None and not connection.closed:
                return found
            raise found from None

    def _found(self, row: Sequence[Any]) -> Found:
        doc, value, *texts = row
        if not doc:
            raise EngineError(f"{self._server}: a row has no document id; check id_column=")
        said = [text for text in texts if text is not None]
        return Found(doc, None if value is None else self._asked.score(value), " ".join(said) if said else None)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection for one thread. It is kept for the next request unless an error occurs."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connected()
        try:
            yield connection
        except BaseException:
            connection.close()
            # The idle connections may be lost too, and each would cost an attempt.
            self.close()
            raise
        self._idle.append(connection)

    def _connected(self) -> Any:
        psycopg = library("psycopg", "postgres")
        secret = {"password": self._auth.read()} if self._auth else {}
        seconds = math.ceil(self._timeout)
        try:
            connection = psycopg.connect(
                self._url, connect_timeout=max(2, seconds), tcp_user_timeout=1000 * seconds, application_name="askew",
                autocommit=True, prepare_threshold=None, **secret,
            )  # fmt: skip
        except psycopg.Error as error:
            raise connect_error(error, self._server, bool(self._auth)) from None
        connection.read_only = True
        return connection

    def __repr__(self) -> str:
        return f"PostgresEngine({self.id!r})"


def checked_server(url: str) -> SplitResult:
    """Check a PostgreSQL address without a password, and return its parts."""
    try:
        parts = urlsplit(url)
        is_sound = parts.scheme in ("postgresql", "postgres") and url.isprintable() and " " not in url
        is_sound = is_sound and (parts.port is None or parts.port > 0)
    except ValueError:
        is_sound = False
    if not is_sound:
        raise ConfigError(
            "postgres: url= should be an address such as postgresql://host:5432/database, found something else"
        )
    if parts.password or any(is_secret_name(name) for name, _ in parse_qsl(parts.query)):
        raise ConfigError("postgres: url= should have no password; give the password with auth_env= or auth_file=")
    return parts


def _shown(parts: SplitResult) -> str:
    """Host and database without the user, for messages and to identify the server."""
    host = parts.netloc.rpartition("@")[2] or dict(parse_qsl(parts.query)).get("host", "")
    return f"postgresql://{host}/{parts.path.strip('/')}"


postgres = EnginePlugin(PostgresEngine)
