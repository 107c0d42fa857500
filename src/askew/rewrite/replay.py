"""Candidates from a file that another program wrote, such as QueryGym.

The file is a TSV table with a header, or JSON Lines. The query's id is in the column ``query_id`` (or qid, q_id, id,
_id), the candidate in ``reformulated_query`` (or reformulation, variation, text, query). Lines can be selected by the
values of other columns: ``where="method=genqr model=openai/gpt-4.1"``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, place
from askew.core.files import DATA, check_file, digest_file, parse_json
from askew.core.plugins import Count
from askew.core.protocols import Candidates, QueryBatch
from askew.data.files import read_text

NOT_IN_FILE = "query not in the file"
_ID_NAMES = ("query_id", "qid", "q_id", "id", "_id")
_TEXT_NAMES = ("reformulated_query", "reformulation", "variation", "text", "query")


# Written by the method rewrite with its defaults; candidates with another meaning or poor wording were removed by hand.
DEMO = DATA / "demo" / "reformulations.tsv"


class ReplayReformulator:
    """Reads candidates from a TSV or JSON Lines file, such as the unchanged output of QueryGym.

    ``file="demo"`` names a shipped file of reformulations for the queries of the embedded demo. ``count`` is the
    maximum number of candidates per query. ``where`` keeps only lines with these values: NAME=VALUE, separated by
    blanks. A column ``kind`` is copied to the candidates.
    """

    method = "replay"
    reads: frozenset[str] = frozenset()

    def __init__(
        self, file: str, where: str = "", query_column: str = "", text_column: str = "", count: Count | None = None
    ) -> None:
        self._path, self._count = DEMO if file == "demo" else Path(file), count
        self._where: dict[str, str] = {}
        for condition in where.split():
            name, sign, value = condition.partition("=")
            if not sign or not name:
                expected = "expected where= to be NAME=VALUE pairs separated by blanks"
                raise ConfigError(f"replay: {expected}, found {condition!r}")
            self._where[name] = value
        self._columns = (query_column, text_column)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the file identified by its content."""
        content = digest_file(check_file(self._path, "replay"))[:12]
        count = {} if self._count is None else {"count": self._count}
        return {"file": content, "where": self._where, "columns": list(self._columns), **count}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """The candidates of each query in the order of the file."""
        candidates = Candidates()
        for row, query_id in enumerate(batch.query_ids):
            texts = self._texts.get(query_id, [])[: self._count]
            for text, kind in texts:
                if text:
                    candidates.add(row, text, kind=kind)
                else:
                    candidates.reject("empty")
            if not texts:
                candidates.reject(NOT_IN_FILE)
        return candidates

    @cached_property
    def _texts(self) -> dict[str, list[tuple[str, str | None]]]:
        texts: dict[str, list[tuple[str, str | None]]] = {}
        for number, row in _rows(self._path):
            query = _value(row, self._columns[0], _ID_NAMES, self._path, number, "the query's id")
            text = _value(row, self._columns[1], _TEXT_NAMES, self._path, number, "the candidate's text")
            missing = [name for name in self._where if name not in row]
            if missing:
                raise DataError(
                    f"{place(self._path, number)}: there is no column {missing[0]!r}; found {', '.join(row)}"
                )
            if all(str(row[name]) == value for name, value in self._where.items()):
                kind = row.get("kind")
                texts.setdefault(query, []).append((" ".join(text.split()), str(kind) if kind else None))
        if not texts:
            if not self._where:
                raise DataError(f"replay {self._path}: the file has no reformulations")
            conditions = " ".join(f"{name}={value}" for name, value in self._where.items())
            raise DataError(
                f"replay {self._path}: no line has the values that the parameter 'where' requires ({conditions})"
            )
        return texts


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = read_text(path, "replay").split("\n")
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered:
        raise DataError(
            f"replay {path}: the file has no lines; expected JSON Lines, or a header line and lines with one "
            "reformulation each"
        )
    if numbered[0][1].lstrip().startswith("{"):
        for number, line in numbered:
            try:
                row = parse_json(line)
            except ValueError as error:
                raise DataError(f"{place(path, number)}: not JSON ({error})") from None
            if not isinstance(row, dict):
                raise DataError(f"{place(path, number)}: expected an object, found {type(row).__name__}")
            yield number, row
        return
    header = numbered[0][1].split("\t")
    for number, line in numbered[1:]:
        fields = line.split("\t")
        if len(fields) != len(header):
            raise DataError(
                f"{place(path, number)}: expected {len(header)} columns ({', '.join(header)}), found {len(fields)}"
            )
        yield number, dict(zip(header, fields, strict=True))


def _value(row: dict[str, Any], column: str, names: tuple[str, ...], path: Path, number: int, what: str) -> str:
    name = column or next((name for name in names if name in row), "")
    if name not in row or not isinstance(row[name], str | int):
        expected = column or " or ".join(names)
        raise DataError(
            f"{place(path, number)}: expected {what} in the column {expected}; found {', '.join(map(str, row))}"
        )
    return str(row[name])
