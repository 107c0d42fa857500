"""Workers on Ray: on this machine or on a cluster. Ray Core actors run the same shards as local workers do."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from askew.core.address import Address, without_secrets
from askew.core.errors import ConfigError, MissingExtra
from askew.engine.executor import Shard
from askew.engine.pool import Lost, Packed, PoolWorker, WorkerPool
from askew.engine.shard import Columns, Done, StepJob
from askew.engine.worker import Answer, Worker, pack, thread_settings


class Remote(PoolWorker):
    """An actor, and what it has been asked last."""

    def __init__(self, actor: Any) -> None:
        self.actor, self.asked = actor, None


class Actor:
    """A worker in Ray's keeping. It stands where the driver stands, if there is such a folder on its machine."""

    def __init__(self, folder: str, path: list[str]) -> None:
        with contextlib.suppress(OSError):
            os.chdir(folder)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        self._worker = Worker()

    def open(self, packed: bytes) -> Answer:
        """Build the stage of a step."""
        return self._worker.open(packed)

    def run(self, start: int, rows: pa.Buffer, columns: Columns) -> Answer:
        """Run a shard; Ray has brought its rows."""
        return self._worker.run(start, rows, columns)


class RayExecutor(WorkerPool[Remote]):
    """Runs shards in Ray actors: ``address`` of a cluster, or a Ray that is started here and ended with this.

    Where the program is connected to Ray already, that connection is used and left as it is.
    ``workers`` is as many as the cluster has room for, unless it is given; each has ``threads`` cores to itself. The
    cluster's machines need askew, and a store and a collection that all of them see under the same name.

    ``gpus`` is the share of a GPU that each actor of a step with a neural model has: such a step has as many actors as
    the GPUs of the cluster have room for, and no more than ``workers``. 0, or a cluster without GPUs: all steps alike.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, threads: int = 1, gpus: float = 1.0
    ) -> None:
        if threads < 1 or (workers is not None and workers < 1):
            raise ConfigError(f"expected 1 or more workers and threads, found {workers} and {threads}")
        if not gpus >= 0 or (gpus > 1 and gpus != int(gpus)):
            raise ConfigError(f"gpus=: expected a share from 0 to 1, or a whole number of GPUs, found {gpus}")
        super().__init__()
        self._address = None if address is None else Address(address)
        self._workers, self._threads, self._gpus = workers, threads, gpus
        self._ours = self._neural = False

    @cached_property
    def _ray(self) -> Any:
        """Ray, connected at the first use. It keeps quiet and tells nobody that it is used."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise MissingExtra("running on Ray", "ray") from None
        if not ray.is_initialized():
            self._connect(ray)
        return ray

    def _connect(self, ray: Any) -> None:
        # Ray prints the death of a worker to stdout, whatever it is told; stdout is for results.
        ray._private.worker._worker_logs_enabled = False
        quiet = {"include_dashboard": False} if self._address is None else {}
        cores = self._workers * self._threads if self._workers and self._address is None else None
        whole = "local" if self._address is None else self._address.reveal()
        try:
            _knock(None if self._address is None else whole)
            # Ray starts processes only where it is not reached at an address.
            with _own_sigterm(), _own_session() if self._address is None else contextlib.nullcontext():
                ray.init(whole, num_cpus=cores, logging_level=logging.ERROR, log_to_driver=False, **quiet)
        except (RuntimeError, ValueError, OSError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            first = first if self._address is None else self._address.scrub(first)
            raise ConfigError(f"Ray at {self._address or 'this machine'}: cannot be reached ({first})") from None
        self._ours = True

    def run(self, job: StepJob, shards: Iterable[Shard], columns: Columns) -> Generator[Done, None, None]:
        """Each shard as it is done; by actors with a GPU where the step has a use for one, and there is one."""
        neural = job.neural and self._room_on_gpus() > 0
        if neural != self._neural:
            # Actors keep what they were given: those of the other kind leave first, so that there is room.
            super().close()
            self._neural = neural
        yield from super().run(job, shards, columns)

    def _room_on_gpus(self) -> int:
        if not self._gpus:
            return 0
        nodes = [node["Resources"].get("GPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        # An actor is on one machine, so what is left over on each is lost.
        return sum(math.floor(have / self._gpus + 1e-9) for have in nodes)

    @property
    def count(self) -> int:
        """As many as were asked for, or as there is room for."""
        resources = self._ray.cluster_resources()
        room = max(1, int(resources.get("CPU", 1)) // self._threads)
        if self._neural:
            room = min(room, self._room_on_gpus())
            return room if self._workers is None else min(self._workers, room)
        return room if self._workers is None else self._workers

    def _actor(self) -> Any:
        # A worker that dies is replaced by the pool, which knows what it was doing: Ray need not.
        return self._ray.remote(Actor).options(
            num_cpus=self._threads, num_gpus=self._gpus if self._neural else 0, max_restarts=0,
            runtime_env={"env_vars": thread_settings(self._threads)},
        )  # fmt: skip

    def start(self) -> Remote:
        """Begin an actor. It comes when the cluster has room for it, and has no shard until then."""
        return Remote(self._actor().remote(str(os.getcwd()), sys.path))  # noqa: PTH109

    def pack(self, rows: pa.Table) -> Any:
        """The rows in Ray's object store: whichever actor gets them reads them there."""
        return self._ray.put(pack(rows))

    def dumps(self, value: object) -> bytes:
        """With Ray's own pickle: a program that is run is no module that an actor could import."""
        return bytes(self._ray.cloudpickle.dumps(value))

    def send_job(self, worker: Remote, job: bytes) -> None:
        """Ask without waiting."""
        worker.asked = worker.actor.open.remote(job)

    def send_shard(self, worker: Remote, shard: Packed, columns: Columns) -> None:
        """Ask without waiting."""
        worker.asked = worker.actor.run.remote(shard.start, shard.rows, columns)

    def answers(self, workers: Sequence[Remote], timeout: float | None) -> Iterator[tuple[Remote, Answer | Lost]]:
        """The first answer that is there."""
        asked = {worker.asked: worker for worker in workers}
        ready, _ = self._ray.wait(list(asked), num_returns=1, timeout=timeout)
        for one in ready:
            try:
                answer: Answer | Lost = self._ray.get(one)
            except self._ray.exceptions.RayError as error:
                answer = Lost(without_secrets(str(error).splitlines()[0]))
            yield asked[one], answer

    def stop(self, worker: Remote) -> None:
        """End an actor at once."""
        self._ray.kill(worker.actor, no_restart=True)

    def close(self) -> None:
        """End all actors, and Ray too if it was begun here."""
        super().close()
        if self._ours:
            self._ray.shutdown()
            self._ray._private.worker._worker_logs_enabled = True
            self.__dict__.pop("_ray", None)
            self._ours = False


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray answers SIGTERM with a dump of its stack and exits: the program's own answer is put back in its place."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread() and before is not None:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _own_session() -> Iterator[None]:
    """Ray's processes begin in a session of their own.

    A signal to the group of this process would end them first, and Ray's native code then ends this process without a
    word. They end with this process all the same, as Ray sees to it.
    """
    from ray._private import services

    plain = services.ConsolePopen

    class Apart(plain):  # type: ignore[misc, valid-type, unused-ignore]
        def __init__(self, *words: object, **options: object) -> None:
            super().__init__(*words, **{**options, "start_new_session": True})

    services.ConsolePopen = Apart
    try:
        yield
    finally:
        services.ConsolePopen = plain


def _knock(address: str | None) -> None:
    """Ray itself goes on trying for minutes where nobody listens; OSError says it at once."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()
