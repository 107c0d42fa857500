"""The files of a release: write a folder atomically, checksums, and read a folder from an untrusted source.

Nothing outside the folder is read: file names come from listing it, and links are reported and not followed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from askew.core.errors import ConfigError, DataError, Note
from askew.core.files import HALF_WRITTEN, flush, parse_json

CHECKSUMS = "checksums.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  (\S(?:.*\S)?)")


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A temporary folder to write to. It is renamed to ``out`` on success and deleted after an error."""
    refuse_full(out)
    target = out.resolve()
    temporary = target.parent / f"{HALF_WRITTEN}{secrets.token_hex(4)}-{target.name}"
    temporary.mkdir(parents=True)
    try:
        yield temporary
        for root, _, names in os.walk(temporary):
            for name in [*names, ""]:
                flush(Path(root, name))
        try:
            temporary.rename(target)
        except OSError:
            refuse_full(target)
            raise
        flush(target.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def refuse_no_parent(out: Path, made: bool = False) -> None:
    """Raise an error that names the missing parent folder. ``made``: missing parent folders will be created."""
    nearest = next((parent for parent in out.parents if parent.exists()), out.parent)
    if nearest.exists() and not nearest.is_dir():
        raise ConfigError(f"{out}: expected a folder {nearest}, found a file; give another place")
    if not made and nearest != out.parent:
        parent = str(out.parent)
        raise ConfigError(
            f"{out}: expected a folder {parent}, found none; make it first", code="no-parent", folder=parent
        )


def refuse_full(out: Path) -> None:
    """Raise if ``out`` is a link, a file or a folder that is not empty, or if one of its parents is a file."""
    refuse_no_parent(out, made=True)
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ConfigError(
            f"{out}: expected a new or an empty folder, found something there; give another one", code="not-empty"
        )


def place(folder: Path, name: str) -> Path:
    """The path of a file of the release; its folder is created."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write(folder: Path, name: str, data: bytes | str) -> None:
    """Write a file of the release."""
    path = place(folder, name)
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)


def walk(folder: Path) -> tuple[dict[str, Path], list[str]]:
    """The plain files of a folder by their relative names, and one line for each link or special file."""
    files: dict[str, Path] = {}
    refused: list[str] = []
    waiting = [("", folder)]
    while waiting:
        prefix, place = waiting.pop()
        with os.scandir(place) as listing:
            for item in listing:
                name = f"{prefix}{item.name}"
                if item.is_symlink():
                    refused.append(Note(f"files: {name!r} is a link; links are not followed", code="link", file=name))
                elif item.is_dir(follow_symlinks=False):
                    waiting.append((f"{name}/", Path(item.path)))
                elif item.is_file(follow_symlinks=False):
                    files[name] = Path(item.path)
                else:
                    refused.append(Note(f"files: {name!r} is not a regular file", code="no-file", file=name))
    return dict(sorted(files.items())), sorted(refused)


def checksum_text(digests: Mapping[str, str]) -> str:
    """The text of the file that ``sha256sum -c`` reads, sorted by name."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def read_checksums(text: str) -> tuple[dict[str, str], list[str]]:
    """Digests by name, and one line for each problem, such as a name that points outside the folder."""
    digests: dict[str, str] = {}
    wrong: list[str] = []
    lines = text.removesuffix("\n").split("\n") if text else []
    for number, line in enumerate(lines, 1):
        match, where = _LINE.fullmatch(line), f"{CHECKSUMS}, line {number}"
        if match is None:
            problem = f"{where}: expected a SHA-256, two blanks and a name"
            wrong.append(Note(problem, code="no-checksum", line=number))
        elif not _inside(match[2]):
            problem = f"{where}: {match[2][:60]!r} is not a path inside the folder"
            wrong.append(Note(problem, code="outside", file=match[2]))
        elif match[2] in digests:
            wrong.append(Note(f"{where}: {match[2][:60]!r} appears twice", code="twice", file=match[2]))
        else:
            digests[match[2]] = match[1]
    return digests, wrong


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    plain = "\\" not in name and ":" not in name and name.isprintable() and str(path) == name
    return plain and not path.is_absolute() and ".." not in path.parts


def checksum_problems(stated: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """One line for each missing, extra or altered file."""
    for name in sorted(stated.keys() | found.keys() - {CHECKSUMS}):
        if name not in found:
            yield Note(f"checksums: {name!r} is missing", code="missing", file=name)
        elif name not in stated:
            yield Note(f"checksums: {name!r} is not listed in {CHECKSUMS}", code="not-listed", file=name)
        elif stated[name] != found[name]:
            change = f"checksums: {name!r} was changed; its SHA-256 differs from the one in {CHECKSUMS}"
            yield Note(change, code="changed", file=name)


def read_text(files: Mapping[str, Path], name: str) -> str:
    """The text of a file of the release."""
    if name not in files:
        raise DataError(f"{name}: missing")
    try:
        return files[name].read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: cannot be read as UTF-8 text ({type(error).__name__})") from None


def read_json(files: Mapping[str, Path], name: str) -> Any:
    """The value of a JSON file; a repeated key is an error."""
    text = read_text(files, name)
    try:
        return parse_json(text, object_pairs_hook=_once)
    except ValueError as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{name}: not the JSON of a release ({first[:100]})") from None


def _once(items: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(items)
    if len(value) != len(items):
        raise ValueError("an object has the same key twice")
    return value
