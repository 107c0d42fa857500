"""The work of a worker in any kind of process: build the stage of a step, and run it on shards."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from askew.core import errors
from askew.core.address import without_secrets
from askew.core.errors import AskewError, StageError
from askew.core.version import __version__
from askew.engine.run import step_key
from askew.engine.shard import Columns, Done, StepJob, run_shard
from askew.engine.store import StepWriter
from askew.plugins.kinds import Stage

VERSIONS = {"askew": __version__, "pyarrow": pa.__version__}
# Libraries read these variables at import, so they are set before a worker starts.
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)  # fmt: skip


def thread_settings(threads: int) -> dict[str, str]:
    """The environment variables that limit each library of a worker to this number of threads."""
    return dict.fromkeys(_THREADS, str(threads))


@dataclass(frozen=True)
class StageReady:
    """The stage is built, and the worker is ready for shards."""


@dataclass(frozen=True)
class Failure:
    """An error in a worker, in a form that can always be pickled."""

    kind: str
    text: str
    facts: dict[str, str]
    trace: str

    @classmethod
    def of(cls, error: BaseException, where: str) -> Failure:
        """Describe an error: askew's own errors completely, others by their type and first line."""
        trace = without_secrets("".join(traceback.format_exception(error)))
        kind = next((base.__name__ for base in type(error).__mro__ if base.__module__ == errors.__name__), None)
        if kind is not None:
            facts = {name: value for name, value in vars(error).items() if isinstance(value, str)}
            return cls(kind, str(error), facts, trace)
        lines = str(error).splitlines()
        return cls(StageError.__name__, ": ".join([where, type(error).__name__, *lines[:1]]), {}, trace)

    def error(self) -> AskewError:
        """Rebuild the error. Its class is not called, because its constructor may need more than the text."""
        kind: type[AskewError] = getattr(errors, self.kind)
        error = kind.__new__(kind, self.text)
        vars(error).update(self.facts)
        error.add_note(f"in a worker:\n{self.trace}")
        return error


Answer = Done | StageReady | Failure


class Worker:
    """Builds the stage of a step once, then runs it on any number of shards. Errors are returned as answers."""

    def __init__(self) -> None:
        self._held: tuple[str, Stage, StepWriter] | None = None

    def open(self, packed: bytes) -> Answer:
        """Build the stage of a step."""
        # Release the stage of the last step first: both stages may be large.
        self._held = None
        where = "a step"
        try:
            job, versions = pickle.loads(packed)
            where = f"step {job.step!r}"
            self._held = where, _make(job, versions), job.store.writer(job.step, job.key)
        except (Exception, SystemExit) as error:
            return Failure.of(error, f"{where}: a worker could not build its stage")
        return StageReady()

    def run(self, start: int, rows: Any, columns: Columns) -> Answer:
        """Run the stage on rows that ``pack`` serialized."""
        if self._held is None:
            raise RuntimeError("a worker received rows before it received the step to run on them")
        where, stage, writer = self._held
        table = unpack(rows)
        try:
            return run_shard(stage, table, start, writer, columns)
        except (Exception, SystemExit) as error:
            return Failure.of(error, f"{where}, rows {start} to {start + table.num_rows}")


def _make(job: StepJob, versions: dict[str, str]) -> Stage:
    if versions != VERSIONS:
        raise StageError(
            f"step {job.step!r}: the main process has {_listed(versions)}, but a worker has {_listed(VERSIONS)}; "
            "install the same versions for both"
        )
    if job.maker is None:
        raise StageError(
            f"step {job.step!r} cannot run in a worker process, because the step has no 'maker' (a function that "
            "builds the stage of the step in another process); set 'maker', or run without an executor"
        )
    stage = job.maker()
    if step_key(stage, job.input_key) != job.key:
        raise StageError(
            f"step {job.step!r}: a worker has other settings of the stage {stage.name!r} than the main process; "
            "check whether a file has changed since the start of the run"
        )
    return stage


def _listed(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def pack_job(job: StepJob, dumps: Callable[[object], bytes]) -> bytes:
    """Serialize a job, with the versions of the libraries that determine its results."""
    try:
        return dumps((job, VERSIONS))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise StageError(
            f"step {job.step!r}: the 'maker' of the step (a function that builds its stage in another process) cannot "
            f"be pickled, so it cannot be sent to a worker process ({error})"
        ) from None


def pack(table: pa.Table) -> pa.Buffer:
    """Serialize rows. Of a slice of a larger table only the slice is written."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()


def unpack(rows: Any) -> pa.Table:
    """Deserialize rows."""
    return pa.ipc.open_stream(rows).read_all()
