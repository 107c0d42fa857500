"""Write the files of a report into a folder that may have other files, which are never overwritten."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from askew.core.errors import ConfigError
from askew.core.whole_files import write_whole
from askew.publish.files import checksum_text, read_checksums

# The list of written files with their digests, by which a later report recognizes them.
LIST = "report.sha256"
_OURS = re.compile(r"report\.html|audit\.json|(figures|tables)/[a-z0-9-]+\.(svg|png|csv|parquet|tex)")


def check_out(out: Path) -> None:
    """Raise before any work if the report cannot be written to the folder, as far as that is known by then."""
    known = _known(out)
    page = out / "report.html"
    if (page.is_symlink() or page.exists()) and not known:
        raise _in_the_way(page)
    for name in ("figures", "tables"):
        _refuse_no_folder(out / name)


def write_report(out: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, given by their names in the folder. Files of an earlier report are replaced or removed.

    If a file with one of the names exists that is not from an earlier report, or was changed since, an error is raised
    before anything is written.
    """
    strange = [name for name in files if not _OURS.fullmatch(name)]
    if strange:
        raise ValueError(f"a report of askew must not have a file with the name {strange[0]!r}")
    known = _known(out)
    for name, data in files.items():
        _refuse_foreign(out / name, data, known.get(name))
    for name, data in files.items():
        write_whole(out / name, data)
    for name in known.keys() - files.keys():
        if _digest_of(out / name) == known[name]:
            (out / name).unlink()
    write_whole(out / LIST, checksum_text({name: _digest(data) for name, data in files.items()}).encode())
    return [out / name for name in files]


def check_report(folder: Path) -> tuple[int, list[str]]:
    """The number of files of a report, and a message for each of them that is missing or has other bytes."""
    known = _known(folder)
    found = {name: _digest_of(folder / name) for name in known}
    wrong = [
        f"{name}: {'missing' if found[name] is None else 'it has other bytes than when it was written'}"
        for name in known
        if found[name] != known[name]
    ]
    return len(known), wrong


def _known(out: Path) -> dict[str, str]:
    """The files of an earlier report in the folder, with their digests."""
    _refuse_no_folder(out)
    path = out / LIST
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise ConfigError(f"{path}: expected the list of an earlier report, found something else; give another folder")
    if not path.exists():
        return {}
    digests, wrong = read_checksums(path.read_bytes().decode("utf-8", "replace"))
    if wrong:
        raise ConfigError(f"{path}: not the list of an earlier report ({wrong[0]}); give another folder")
    return {name: digest for name, digest in digests.items() if _OURS.fullmatch(name)}


def _refuse_foreign(path: Path, data: bytes, known: str | None) -> None:
    _refuse_no_folder(path.parent)
    if not path.is_symlink() and not path.exists():
        return
    found = _digest_of(path)
    if found not in (known, _digest(data)) or found is None:
        raise _in_the_way(path)


def _in_the_way(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: the file exists and is not an unchanged file of an earlier report; move it or give another folder"
    )


def _refuse_no_folder(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ConfigError(f"{path}: expected a folder or a new name, found something else; give another one")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_of(path: Path) -> str | None:
    """The digest of a plain file, None for anything else."""
    return None if path.is_symlink() or not path.is_file() else _digest(path.read_bytes())
