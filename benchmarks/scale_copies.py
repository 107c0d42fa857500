"""A finished store with its queries repeated under other ids: ``report`` and ``publish`` at any size, without a run.

Every part of every step is written as often as there are copies, with other query ids, under the keys that the plan of
the larger collection has; so the commands find a finished build. Equal values would be computed once: those of measures
that have no part in the selection differ between copies, by powers of two, so that every rule of a dataset still holds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from askew.app.build.prepare import prepare
from askew.app.build.recipe import read_recipe
from askew.engine.manifest import Manifest
from askew.engine.store import Store

_IDS = ("query_id", "variant_id")
_OTHERS = ("ARaB_tf_10", "ARaB_tc_10", "ARaB_bool_10", "LexiconShare", "NFaiRR")
_SHARED = ("index-", "mapped-", "mentions-", "half-mentions-")


def copy_collection(source: Path, place: Path, times: int) -> None:
    """The same documents; the queries and judgements so many times."""
    place.mkdir(parents=True)
    (place / "docs.tsv").symlink_to((source / "docs.tsv").resolve())
    for name in ("queries.tsv", "qrels.txt"):
        lines = (source / name).read_text().splitlines(keepends=True)
        with (place / name).open("w") as file:
            for copy in range(times):
                file.writelines(f"{copy}x{line}" for line in lines)


def copy_store(recipe: Path, source: Path, larger: Path, place: Path, times: int) -> None:
    """The steps of a finished build of ``recipe`` as those of the build of ``larger``."""
    for folder in source.iterdir():
        if folder.name.startswith(_SHARED):
            shutil.copytree(folder, place / folder.name, copy_function=os.link)
    old, new = Store(source), Store(place)
    before, after = prepare(read_recipe(recipe), old).plan, prepare(read_recipe(larger), new).plan
    keys, known = before.keys(), {name: one.key for name, one in after.sources.items()} | after.keys()
    for step in after.steps:
        found = old.finished(step.name, keys[step.name])
        assert found is not None, f"{source}: the step {step.name} is not finished"
        with new.writing(step.name, known[step.name]) as writer:
            parts, at = [], 0
            for copy, part, table in _copies(old, found, times):
                stop = at + part.stop - part.start
                parts.append(writer.write(_renamed(table, copy), at, stop, part.kept, part.dropped))
                at = stop
            made = Manifest(
                step.name, known[step.name], found.stage, found.version, dict(step.stage.settings()),
                known[step.reads], found.columns, parts,
            )  # fmt: skip
            writer.finish(made, {})


def _copies(store: Store, manifest: Manifest, times: int) -> Iterator[tuple[int, object, pa.Table]]:
    for copy in range(times):
        for part, table in zip(manifest.parts, store.read(manifest), strict=True):
            yield copy, part, table


def _renamed(table: pa.Table, copy: int) -> pa.Table:
    for at, name in enumerate(table.column_names):
        if any(one in name for one in _OTHERS) and table.schema.field(name).type == pa.float64():
            table = table.set_column(at, name, pc.multiply(table[name], 0.5 ** (copy % 8)))
    for name in _IDS:
        if name in table.column_names:
            at = table.column_names.index(name)
            table = table.set_column(at, name, pc.binary_join_element_wise(f"{copy}x", table[name], ""))
    return table
