"""Removes local paths from published files: a path is replaced by the name of its file or folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from askew.core.address import without_secret_values, without_secrets

# A path in a sentence or a command: a root and at least two names. After a letter it is part of another word or URL.
_IN_TEXT = re.compile(
    r"(?<![\w:/.~-])(?:file:/{1,3}|~[\w.-]*/|/)(?:[^\s/'\"<>|,;()\[\]{}=]+/)+[^\s/'\"<>|,;()\[\]{}=]*"
)
_WHOLE = re.compile(r"(?:/|~|\.{1,2}/|file:/)[^\n]*")


def name_of(path: str) -> str:
    """The last name of a path. A path without names is returned unchanged."""
    return PurePosixPath(path.removeprefix("file:")).name or path


def without_local_paths(text: str) -> str:
    """The text with every absolute path replaced by the name of its file or folder."""
    if _is_path(text):
        return name_of(text.rstrip("/"))
    home = str(Path.home())
    if len(home) > 1:
        # This also covers paths with blanks, whose end the pattern below cannot find.
        text = text.replace(f"{home}/", "")
    return _IN_TEXT.sub(lambda found: name_of(found[0].rstrip("/")), text)


def public_text(text: str) -> str:
    """A text without local paths and credentials."""
    return without_local_paths(without_secrets(text))


def public(value: Any, paths: Iterable[str] = ()) -> Any:
    """JSON values fit for publication, without local paths and credentials in keys and values.

    ``paths`` are known local paths. They are also found if they contain blanks.
    """
    known = sorted(paths, key=len, reverse=True)
    if isinstance(value, Mapping):
        return {public(key, known): public(inner, known) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [public(one, known) for one in value]
    if not isinstance(value, str):
        return value
    for path in known:
        value = value.replace(path, name_of(path.rstrip("/")))
    return public_text(value)


def local_paths(value: Any) -> set[str]:
    """All values of the settings that are local paths."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return set[str]().union(*map(local_paths, value))
    return {value} if isinstance(value, str) and _is_path(value) else set()


def _is_path(text: str) -> bool:
    return len(text) > 1 and _WHOLE.fullmatch(text) is not None and "://" not in text.removeprefix("file://")


def public_settings(value: Any) -> Any:
    """Settings fit for publication: without local paths, credentials and values of settings named like a secret."""
    return public(without_secret_values(value), local_paths(value))
