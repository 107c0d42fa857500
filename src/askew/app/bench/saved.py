"""Write the runs of a bench to a folder; other files in this folder are never overwritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from askew.app.bench.methods import MitigationMethod
from askew.app.search.retrieve import run_lines, write_run
from askew.core.errors import ConfigError
from askew.core.fingerprint import digest_file
from askew.core.ranking import Hits
from askew.publish.files import checksum_text, read_checksums
from askew.publish.page.parts import slug
from askew.publish.page.writing import check_out
from askew.rankers.common import one_word

# Lists the files of the last bench with their checksums; only these files are replaced.
LIST = "runs.sha256"


def check_place(out: Path, methods: Sequence[MitigationMethod]) -> None:
    """Refuse a folder that the report or the runs cannot be written to, before any work."""
    check_out(out)
    folder = out / "runs"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"{folder}: expected a folder or a new name, found another kind of file; give another out=")
    known = _known(folder)
    for name in run_names(methods).values():
        for path in (folder / f"{name}.run", folder / f"{name}.parquet"):
            if path.exists() and known.get(path.name) != digest_file(path):
                raise ConfigError(f"{path}: this file exists and is not a run of an earlier bench; give another out=")


def _known(folder: Path) -> dict[str, str]:
    path = folder / LIST
    return read_checksums(path.read_bytes().decode("utf-8", "replace"))[0] if path.is_file() else {}


def run_names(methods: Sequence[MitigationMethod]) -> dict[str, str]:
    """Return a file name (without an extension) for the run of each method, by the text of the method."""
    taken: dict[str, str] = {}
    for method in methods:
        taken[slug(method.text, taken, before="")] = method.text
    return {text: name for name, text in taken.items()}


def write_runs(
    out: Path, runs: Mapping[MitigationMethod, Hits], query_ids: Sequence[str], doc_ids: pa.Array
) -> list[Path]:
    """Write the results of each method to runs/*.run, or as Parquet if an id contains white space.

    Runs of an earlier bench are replaced, or removed if this bench has no run of that name.
    """
    folder = out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    known, ids = _known(folder), pa.array(query_ids, pa.string())
    # White space inside an id would start another column in a TREC run.
    blank = any(pc.any(pc.match_substring_regex(one, r"\s")).as_py() for one in (ids, doc_ids))
    names, written = run_names(list(runs)), []
    for method, hits in runs.items():
        path = folder / f"{names[method.text]}{'.parquet' if blank else '.run'}"
        write_run([run_lines(ids, hits, doc_ids)], path, one_word(method.text))
        written.append(path)
    for name in known.keys() - {path.name for path in written}:
        if (folder / name).is_file() and digest_file(folder / name) == known[name]:
            (folder / name).unlink()
    (folder / LIST).write_text(checksum_text({path.name: digest_file(path) for path in written}), encoding="utf-8")
    return written
