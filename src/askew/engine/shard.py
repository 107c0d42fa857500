"""Run a stage on one shard: check that every row is accounted for, and write the result at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from askew.core.errors import StageError
from askew.engine.manifest import Part
from askew.engine.store import StepWriter, Store, columns_of, listed
from askew.plugins.kinds import Stage

Columns = dict[str, str]


@dataclass(frozen=True)
class StepJob:
    """A step to run. ``maker`` builds its stage in another process; None if only the driver can run the step.

    ``neural``: the stage runs a neural model, which is faster on a GPU.
    """

    step: str
    key: str
    input_key: str
    store: Store
    maker: Callable[[], Stage] | None = None
    neural: bool = False


@dataclass(frozen=True)
class Done:
    """A finished shard. Its part is in the store."""

    part: Part
    columns: Columns


def run_shard(stage: Stage, rows: pa.Table, start: int, writer: StepWriter, before: Columns) -> Done:
    """Run the stage on these rows and write the part. ``before`` are the columns of earlier parts, if any."""
    table, dropped = stage.run(rows)
    columns = columns_of(table.schema)
    refuse_other_columns(stage, start, before, columns)
    kept = _kept(stage, table, rows, dropped)
    return Done(writer.write(table, start, start + rows.num_rows, kept, dict(dropped)), columns)


def refuse_other_columns(stage: Stage, start: int, before: Columns, now: Columns) -> None:
    """Raise an error if a shard has other columns than earlier ones: all parts of a step are one table."""
    if before and now != before:
        raise StageError(
            f"stage {stage.name!r} changed its columns at row {start}: "
            f"they were {listed(before)} before and are {listed(now)} now"
        )


def _kept(stage: Stage, table: pa.Table, rows: pa.Table, dropped: Mapping[str, int]) -> int:
    """The number of kept input rows. A stage that makes several rows of one counts them in ``rows_used``."""
    used = getattr(stage, "rows_used", None)
    kept = int(used(table)) if used is not None else table.num_rows
    if any(count < 0 for count in dropped.values()) or kept + sum(dropped.values()) != rows.num_rows:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "none"
        raise StageError(
            f"stage {stage.name!r} lost rows: "
            f"{rows.num_rows} rows in, {kept} rows kept, rows dropped by reason: {reasons}"
        )
    return kept
