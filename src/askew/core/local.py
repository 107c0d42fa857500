"""What is published names no place of the machine it was made on: a path becomes the name of its file or folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from askew.core.address import without_secret_values, without_secrets

# In a sentence or a command: a root and at least two names. What stands after a letter is part of another word or URL.
_IN_TEXT = re.compile(
    r"(?<![\w:/.~-])(?:file:/{1,3}|~[\w.-]*/|/)(?:[^\s/'\"<>|,;()\[\]{}=]+/)+[^\s/'\"<>|,;()\[\]{}=]*"
)
_WHOLE = re.compile(r"(?:/|~|\.{1,2}/|file:/)[^\n]*")


def name_of(path: str) -> str:
    """The last name of a path; a path without names stays as it is."""
    return PurePosixPath(path.removeprefix("file:")).name or path


def without_local_paths(text: str) -> str:
    """A text in which every absolute path is the name of what lies there."""
    if _WHOLE.fullmatch(text) and len(text) > 1 and "://" not in text.removeprefix("file://"):
        return name_of(text.rstrip("/"))
    home = str(Path.home())
    if len(home) > 1:
        # Also where a path has blanks in it, so that nobody can say where it ends.
        text = text.replace(f"{home}/", "")
    return _IN_TEXT.sub(lambda found: name_of(found[0].rstrip("/")), text)


def public_text(text: str) -> str:
    """A text without local paths and credentials."""
    return without_local_paths(without_secrets(text))


def public(value: Any) -> Any:
    """JSON values as they may be published: no local path and no credentials, in keys neither."""
    if isinstance(value, Mapping):
        return {public_text(key) if isinstance(key, str) else key: public(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [public(one) for one in value]
    return public_text(value) if isinstance(value, str) else value


def public_settings(value: Any) -> Any:
    """Settings as they may be published: also without values that are named like a secret."""
    return without_secret_values(value, without_local_paths)
