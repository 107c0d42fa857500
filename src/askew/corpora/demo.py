"""The embedded demo collection: passages, queries, judgements and runs, written for askew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from askew.core.shipped import DATA

_FOLDER = DATA / "demo"


@dataclass(frozen=True)
class DemoFiles:
    """The paths and the sizes of the demo collection."""

    docs: Path
    qrels: Path
    queries_file: Path
    runs: list[Path]
    documents: int
    queries: int
    about: str


def demo_files() -> DemoFiles:
    """The files of the embedded demo."""
    docs, queries = _FOLDER / "docs.tsv", _FOLDER / "queries.tsv"
    runs = sorted(_FOLDER.glob("*.run"))
    return DemoFiles(
        docs,
        _FOLDER / "qrels.txt",
        queries,
        runs,
        _count_lines(docs),
        _count_lines(queries),
        ", ".join(run.stem for run in runs),
    )


def _count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")
