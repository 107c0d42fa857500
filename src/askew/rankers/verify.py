"""Verify every byte of an index against its checksums, and find the command that rebuilds the index."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core.errors import AskewError, StoreError
from askew.rankers.blocks import check_file
from askew.rankers.disk import FORMAT, TEXTS, read_header, read_sealed, write_sealed

SOURCE = "source.json"
# These files identify the documents of an index of any kind: equal files mean equal documents.
_DOCUMENTS = ("doc_ids.arrow", TEXTS)


@dataclass
class IndexCheck:
    """The result of a check. ``damaged`` has a message for each damaged file, by the folder of its header."""

    kind: str = "unknown"
    files: int = 0
    damaged: dict[Path, list[str]] = field(default_factory=dict)

    @property
    def messages(self) -> list[str]:
        """One message for each damaged file."""
        return [line for lines in self.damaged.values() for line in lines]


def check_index(folder: Path) -> IndexCheck:
    """Compare every file of an index and of its weights with its checksums."""
    found = IndexCheck()
    for path in sorted(folder.rglob("header.json")):
        try:
            header = read_header(folder) if path.parent == folder else read_sealed(path, f"weights {path.parent}")
        except AskewError as error:
            found.damaged.setdefault(path.parent, []).append(str(error))
            continue
        if path.parent == folder:
            found.kind = str(header["kind"])
        for name, known in header["files"].items():
            found.files += 1
            try:
                check_file(path.parent / name, known)
            except StoreError as error:
                found.damaged.setdefault(path.parent, []).append(str(error))
    return found


def write_source(folder: Path, source: dict[str, Any]) -> None:
    """Save the source and the settings of an index, so that it can be rebuilt."""
    write_sealed(folder / SOURCE, {**source, "format": FORMAT, "files": {}})


def read_source(folder: Path) -> dict[str, Any] | None:
    """The source and the settings of an index; None if they are not known."""
    try:
        return read_sealed(folder / SOURCE, f"index {folder}")
    except StoreError:
        return None


def rebuild_command(folder: Path, kind: str) -> str:
    """The command that rebuilds an index, as far as its source is known."""
    source = read_source(folder)
    if source is None:
        more = "" if kind in ("bm25", "unknown") else f" --ranker {kind}"
        return f"askew index DOCS --out {shlex.quote(str(folder))}{more}"
    words = ["askew", "index", source["docs"], "--out", str(folder), "--ranker", source["ranker"]]
    words += ["--fields", ",".join(source["fields"])] if source["fields"] else []
    words += [] if source["texts"] else ["--no-texts"]
    for name, value in source["settings"].items():
        words += ["--set", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def same_documents(one: Path, other: Path) -> bool:
    """Whether two indexes have the same documents; True if a header cannot be read."""
    try:
        files = [read_header(folder)["files"] for folder in (one, other)]
    except AskewError:
        return True
    return all(files[0].get(name) == files[1].get(name) for name in _DOCUMENTS)


def put_in_place(made: Path, folder: Path) -> None:
    """Replace a damaged index by a new one."""
    retired = folder.with_name(f".{folder.name}.damaged")
    shutil.rmtree(retired, ignore_errors=True)
    folder.rename(retired)
    made.rename(folder)
    shutil.rmtree(retired)
