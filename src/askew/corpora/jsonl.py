"""The reader of JSON Lines for runs, judgements, queries and documents."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from askew.core.errors import DataError, place
from askew.corpora.lines import WHITE, no_value, numbered

# The content of a line may be private, so messages name only its type.
_KINDS: dict[type, str] = {
    str: "a text", list: "a list", dict: "an object", int: "a number", float: "a number", bool: "true or false",
    type(None): "null",
}  # fmt: skip


def json_rows(
    blocks: Iterable[tuple[int, str]], path: Path, expected: str
) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    """Each object with its line number. ``expected`` describes the content of a line in error messages."""
    for number, line in numbered(blocks):
        if not line.strip(WHITE):
            continue
        row = _parsed(line, place(path, number), expected)
        if not isinstance(row, dict):
            raise DataError(f"{place(path, number)}: expected {expected}, one on each line; found {_kind(row)}")
        yield number, row


def _parsed(line: str, where: str, expected: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        why = f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError:
        # Python refuses to read whole numbers of several thousand digits.
        why = "a number has too many digits"
    raise DataError(f"{where}: not valid JSON ({why}); expected {expected}, one on each line")


def json_id(value: object, name: str, path: Path, line: int) -> str:
    """Return an id as text. It must be a text that is not blank, or a number."""
    if value is None or (isinstance(value, str) and not value.strip(WHITE)):
        raise no_value(path, line, name)
    return json_text(value, name, path, line)


def json_text(value: object, name: str, path: Path, line: int) -> str:
    """Return a text or a number as text. Lists and objects are refused: their words would come from Python's repr."""
    if isinstance(value, str):
        _check_whole(value, name, path, line)
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return str(value)
    raise DataError(f"{place(path, line)}: expected a text or a number as {name}, found {_kind(value)}")


def _kind(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return _KINDS.get(type(value), type(value).__name__)


def _check_whole(text: str, name: str, path: Path, line: int) -> None:
    """Raise an error for a lone surrogate: JSON can express it, but it is no character and cannot be stored."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{place(path, line)}: expected characters in {name}, found half a surrogate pair "
            f"{text[error.start]!r}; remove it or write the whole pair"
        ) from None
