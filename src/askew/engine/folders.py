"""Copy a folder, such as an index, to a store once, and fetch it on every machine that lacks it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from askew.core.errors import StoreError
from askew.core.whole_files import HALF_WRITTEN
from askew.engine.files import Files

# Written last: without this file the folder is incomplete and ignored.
CONTENTS = "contents.json"
_PIECE = 1 << 26


def has_folder(files: Files, name: str) -> bool:
    """Whether the store has the complete folder."""
    return files.exists(f"{name}/{CONTENTS}")


def put_folder(files: Files, name: str, folder: Path) -> None:
    """Copy the files of a folder to a store, in pieces."""
    contents: dict[str, list[str]] = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        place = path.relative_to(folder).as_posix()
        digests: list[str] = []
        with path.open("rb") as file:
            while (data := file.read(_PIECE)) or not digests:
                files.write(f"{name}/{_piece(place, len(digests))}", data)
                digests.append(hashlib.sha256(data).hexdigest())
        contents[place] = digests
    files.write(f"{name}/{CONTENTS}", json.dumps(contents, indent=1, sort_keys=True).encode())


def fetch_folder(files: Files, name: str, folder: Path) -> None:
    """Fetch a folder and check each piece. The folder appears only when it is complete."""
    where = f"{files.where}/{name}"
    half = folder.with_name(f"{HALF_WRITTEN}{folder.name}")
    shutil.rmtree(half, ignore_errors=True)
    try:
        contents = json.loads(files.read(f"{name}/{CONTENTS}"))
        for place, digests in contents.items():
            path = half / place
            _refuse_outside(half, path)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                for number, digest in enumerate(digests):
                    file.write(_checked(files.read(f"{name}/{_piece(place, number)}"), digest, place))
        # An interrupted build may have left an incomplete folder here.
        shutil.rmtree(folder, ignore_errors=True)
        half.rename(folder)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise StoreError(f"{where}: cannot be fetched ({error}); delete it there and run again") from None
    finally:
        shutil.rmtree(half, ignore_errors=True)


def _refuse_outside(folder: Path, path: Path) -> None:
    if folder.resolve() not in path.resolve().parents:
        raise ValueError(f"{path.name!r} is outside the folder")


def _checked(data: bytes, digest: str, place: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError(f"a block of {place} is damaged")
    return data


def _piece(place: str, number: int) -> str:
    return f"{place}.{number:05d}"
