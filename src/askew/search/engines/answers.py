"""The cache of engine answers: one SQLite file, so that a resumed search sends no query twice.

Queries are private. The key of an answer is a keyed hash of the engine, its settings, k and the query; the query itself
is not stored. An answer has ids and scores, and each document text is stored once. Without encryption, the hash key is
in the file: anyone with the file can read the documents and test whether a guessed query is in it. With encryption
(AES-256-GCM), both keys are derived from the user's secret by scrypt, and the file allows neither.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from askew.core.errors import ConfigError, MissingExtra, StoreError
from askew.search.engines.client import Found
from askew.search.engines.wire import SecretSource

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


_FORMAT = b"1"
_NONCE = 12
_LEAST_SECRET = 16
# The number of keys that are looked up in one statement. Old versions of SQLite allow 999.
_AT_ONCE = 500
_CHECKED = b"askew answers"


def _answer(value: Any) -> list[tuple[str, float | None, str | None]]:
    """Check the shape of a stored answer."""
    rows = [(doc, score, None if ref is None else bytes.fromhex(ref).hex()) for doc, score, ref in value]
    if not all(isinstance(doc, str) and type(score) in (int, float, NoneType) for doc, score, _ in rows):
        raise TypeError("expected ids and scores")
    return rows


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("expected a text")
    return value


_SHAPES: dict[str, Callable[[Any], Any]] = {"answers": _answer, "texts": _text}


class AnswerFile:
    """A file of answers. Several threads and processes may use it at once."""

    def __init__(self, path: Path, secret: SecretSource | None = None) -> None:
        self.path = path
        self._secret = secret or SecretSource("cache_key")
        self._lock = threading.RLock()
        self._state: tuple[sqlite3.Connection, bytes, AESGCM | None] | None = None
        self._written: set[bytes] = set()

    def key(self, facts: Mapping[str, Any], query: str) -> bytes:
        """The key of the answer to a query."""
        text = json.dumps([facts, query], sort_keys=True).encode()
        return hashlib.blake2b(text, key=self._opened[1], digest_size=32).digest()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, list[Found]]:
        """The stored answers to these keys. Answers that are damaged or lack a text are left out."""
        answers = self._rows("answers", keys)
        text_keys = {bytes.fromhex(ref) for rows in answers.values() for _, _, ref in rows if ref is not None}
        texts: dict[str | None, str | None] = {key.hex(): text for key, text in self._rows("texts", text_keys).items()}
        texts[None] = None
        return {
            key: [Found(doc, score, texts[ref]) for doc, score, ref in rows]
            for key, rows in answers.items()
            if all(ref in texts for _, _, ref in rows)
        }

    def write(self, answers: Mapping[bytes, Sequence[Found]]) -> None:
        """Write answers to the file and commit them. A text that occurs in several answers is stored once."""
        distinct = {doc.text for answer in answers.values() for doc in answer if doc.text is not None}
        hashed = partial(hashlib.blake2b, key=self._opened[1], digest_size=16)
        texts = {text: hashed(text.encode("utf-8", "surrogatepass")).digest() for text in distinct}
        new = {text: key for text, key in texts.items() if key not in self._written}
        rows = {
            key: [(doc.doc_id, doc.score, None if doc.text is None else texts[doc.text].hex()) for doc in answer]
            for key, answer in answers.items()
        }
        with self._used() as file, file:
            for table, values in (("texts", {key: text for text, key in new.items()}), ("answers", rows)):
                packed = [(key, self._pack(key, value)) for key, value in values.items()]
                file.executemany(f"INSERT OR REPLACE INTO {table} VALUES (?, ?)", packed)
        self._written.update(new.values())

    def _rows(self, table: str, keys: Collection[bytes]) -> dict[bytes, Any]:
        """The values of these keys in a table, without damaged ones."""
        values, listed = {}, list(keys)
        with self._used() as file:
            for start in range(0, len(listed), _AT_ONCE):
                part = listed[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                chosen = f"SELECT key, value FROM {table} WHERE key IN ({marks})"  # nosec B608 - no part is from a user
                for key, value in file.execute(chosen, part):
                    with contextlib.suppress(ValueError, TypeError, RecursionError, zlib.error):
                        values[key] = _SHAPES[table](self._unpack(key, value))
        return values

    def __len__(self) -> int:
        with self._used() as file:
            return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._state is not None:
                self._state[0].close()
                self._state = None

    def _pack(self, key: bytes, value: Any) -> bytes:
        packed = zlib.compress(json.dumps(value, separators=(",", ":")).encode())
        cipher = self._opened[2]
        if cipher is None:
            return packed
        nonce = secrets.token_bytes(_NONCE)
        # The key is authenticated with the value, so that an answer moved to another query is refused.
        return nonce + bytes(cipher.encrypt(nonce, packed, key))

    def _unpack(self, key: bytes, value: bytes) -> Any:
        cipher = self._opened[2]
        if cipher is not None:
            from cryptography.exceptions import InvalidTag

            try:
                value = cipher.decrypt(value[:_NONCE], value[_NONCE:], key)
            except InvalidTag:
                raise ValueError("changed") from None
        return json.loads(zlib.decompress(value))

    @contextlib.contextmanager
    def _used(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            file = self._opened[0]
            try:
                yield file
            except sqlite3.Error as error:
                raise self._unusable(error) from None

    @property
    def _opened(self) -> tuple[sqlite3.Connection, bytes, AESGCM | None]:
        """The file, the hash key, and the cipher if there is a secret. The file is opened once."""
        with self._lock:
            if self._state is None:
                self._state = self._open()
                weakref.finalize(self, self._state[0].close)
            return self._state

    def _open(self) -> tuple[sqlite3.Connection, bytes, AESGCM | None]:
        if not self.path.parent.is_dir():
            raise ConfigError(f"⟨cache⟩ {self.path}: the folder {self.path.parent} does not exist; create it first")
        try:
            # Only the owner may read the file. SQLite gives its other files the same mode.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            file = sqlite3.connect(self.path, timeout=60.0, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from None
        try:
            return file, *self._keys(self._facts(file), file)
        except BaseException as error:
            file.close()
            if isinstance(error, sqlite3.Error):
                raise self._unusable(error) from None
            raise

    def _facts(self, file: sqlite3.Connection) -> dict[str, bytes]:
        """The facts about the file: format, encryption and salt. A new file is set up first."""
        tables = {name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables - {"about", "answers", "texts"}:
            raise StoreError(f"⟨cache⟩ {self.path}: the file is not a cache of answers; name another file")
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        about = {"format": _FORMAT, "encrypted": b"1" if self._secret else b"0", "salt": secrets.token_bytes(32)}
        with file:
            # Another process may create the tables at the same time: the salt that is written first is used.
            file.execute("CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
            for table in ("answers", "texts"):
                file.execute(f"CREATE TABLE IF NOT EXISTS {table} (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
            if not file.execute("SELECT count(*) FROM about").fetchone()[0]:
                file.executemany("INSERT OR IGNORE INTO about VALUES (?, ?)", list(about.items()))
        return dict(file.execute("SELECT name, value FROM about"))

    def _keys(self, facts: Mapping[str, bytes], file: sqlite3.Connection) -> tuple[bytes, AESGCM | None]:
        if facts.get("format") != _FORMAT:
            raise StoreError(f"⟨cache⟩ {self.path}: this version of askew cannot read its format; name another file")
        if (facts["encrypted"] == b"1") != bool(self._secret):
            is_so, do = ("not encrypted", "leave out") if self._secret else ("encrypted", "give")
            problem = f"⟨cache⟩ {self.path}: the cache is {is_so}; {do} ⟨cache_key_env⟩ or ⟨cache_key_file⟩"
            raise ConfigError(problem, code=is_so.replace(" ", "-"))
        if not self._secret:
            return facts["salt"], None
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingExtra("an encrypted cache", "encryption") from None
        secret = self._secret.read()
        if len(secret) < _LEAST_SECRET:
            raise ConfigError(f"the secret of the cache should have {_LEAST_SECRET} characters or more, found fewer")
        derived = hashlib.scrypt(secret.encode(), salt=facts["salt"], n=1 << 14, r=8, p=1, dklen=64)
        lookup, cipher = derived[:32], AESGCM(derived[32:])
        check = hashlib.blake2b(_CHECKED, key=lookup, digest_size=16).digest()
        if "check" not in facts:
            with file:
                file.execute("INSERT OR IGNORE INTO about VALUES ('check', ?)", (check,))
        elif not secrets.compare_digest(facts["check"], check):
            problem = f"⟨cache⟩ {self.path}: encrypted with another secret; give it, or delete the file"
            raise ConfigError(problem, code="other-secret")
        return lookup, cipher

    def _unusable(self, error: Exception) -> StoreError:
        why = getattr(error, "strerror", None) or type(error).__name__
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            why = "no space left on the disk"
        problem = (
            f"⟨cache⟩ {self.path}: the file cannot be used ({why}); free some space, move it away, or name another file"
        )
        return StoreError(problem, code="unusable", kind=type(error).__name__)
