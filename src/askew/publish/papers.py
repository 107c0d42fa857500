"""Write the files of a release in the layouts of the papers Refairmulate and RePair, one block of pairs at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol

import polars as pl

from askew.core.errors import DataError
from askew.publish import files, layouts
from askew.publish.facts import BOXES, REFAIRMULATE, Facts
from askew.publish.repair import Agreement, Tables, agg_files, box_lines
from askew.publish.selection import GROUPS

_PIECE = 1 << 20


class Papers(Protocol):
    """Writes the files of a paper."""

    def add(self, block: pl.DataFrame) -> None:
        """Add a block of pairs; it must have all pairs of its queries."""

    def finish(self) -> None:
        """Write the remaining content; raise if the files do not agree with the pairs."""

    def close(self) -> None:
        """Close all files, also after an error."""


def papers_of(folder: Path, facts: Facts, repair: Tables | None) -> Papers:
    """The writer of the papers' files for the scheme of a release."""
    if facts.scheme == BOXES:
        return _Repair(folder, facts, repair)
    return _Refairmulate(folder, facts) if facts.scheme == REFAIRMULATE else _None()


def group_file(group: int) -> str:
    """The published name of a group's table."""
    return f"group_{group}_results.tsv"


class _None:
    def add(self, block: pl.DataFrame) -> None:
        pass

    def finish(self) -> None:
        pass

    def close(self) -> None:
        pass


class _TextFiles:
    """Text files in a folder that are written in pieces, addressed by name."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._open, self._stack = folder, dict[str, IO[str]](), ExitStack()

    def write(self, name: str, text: str) -> None:
        if name not in self._open:
            path = files.place(self._folder, name)
            self._open[name] = self._stack.enter_context(path.open("w", encoding="utf-8", newline=""))
        self._open[name].write(text)

    def close(self) -> None:
        self._stack.close()


class _Refairmulate:
    """Subsets as JSON, a file for each, and groups as TSV."""

    def __init__(self, folder: Path, facts: Facts) -> None:
        self._folder, self._facts, self._texts = folder, facts, _TextFiles(folder)
        # A JSON file has the groups one after the other, so each group is first written to a temporary file.
        self._place = tempfile.TemporaryDirectory(prefix="askew-")
        self._lines = _TextFiles(Path(self._place.name))
        for group in GROUPS:
            self._texts.write(f"tsv/{group_file(group)}", layouts.tsv_text([layouts.header(facts)]))
            for subset in layouts.SUBSET_FILES:
                self._lines.write(f"{subset}-{group}", "")
        self._begun: set[str] = set()

    def add(self, block: pl.DataFrame) -> None:
        for group in GROUPS:
            self._texts.write(f"tsv/{group_file(group)}", layouts.group_lines(block, self._facts, group))
        for subset in layouts.SUBSET_FILES:
            for name, queries in layouts.entries(block, self._facts, subset).items():
                if queries:
                    self._add_lines(f"{subset}-{name}", layouts.json_lines(queries))

    def _add_lines(self, name: str, lines: str) -> None:
        self._lines.write(name, f",\n{lines}" if name in self._begun else lines)
        self._begun.add(name)

    def finish(self) -> None:
        self._lines.close()
        for subset, name in layouts.SUBSET_FILES.items():
            groups = {str(group): self._pieces(f"{subset}-{group}") for group in GROUPS}
            for piece in layouts.json_pieces(groups):
                self._texts.write(f"json/{name}", piece)
        self._texts.close()

    def close(self) -> None:
        self._lines.close()
        self._texts.close()
        self._place.cleanup()

    def _pieces(self, name: str) -> Iterator[str]:
        with (Path(self._place.name) / name).open(encoding="utf-8", newline="") as file:
            while piece := file.read(_PIECE):
                yield piece


class _Repair:
    """Boxes and their judgements, and the aggregated tables."""

    def __init__(self, folder: Path, facts: Facts, tables: Tables | None) -> None:
        self._facts, self._tables, self._texts = facts, tables, _TextFiles(folder)
        aggregated = agg_files(facts, tables)
        self._agreement = Agreement(aggregated, facts)
        for name, text in aggregated.items():
            self._texts.write(name, text)

    def add(self, block: pl.DataFrame) -> None:
        for name, lines in box_lines(block, self._facts, self._tables).items():
            self._texts.write(name, lines)
        self._agreement.look(block)

    def close(self) -> None:
        self._texts.close()

    def finish(self) -> None:
        self._texts.close()
        if self._agreement.problems:
            raise DataError(self._agreement.problems[0])
