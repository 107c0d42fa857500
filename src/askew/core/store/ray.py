"""Workers on Ray, on this machine or on a cluster. Ray Core actors run the same shards as local workers."""

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
from askew.core.store.steps import Done, Shard, StepJob
from askew.core.store.workers import Answer, Packed, PoolWorker, Worker, WorkerPool, thread_settings


class Remote(PoolWorker):
    """An actor, and the reference to its last request."""

    def __init__(self, actor: Any) -> None:
        self.actor, self.request = actor, None


class Actor(Worker):
    """A worker in a Ray actor. It uses the driver's working directory, if its machine has that folder."""

    def __init__(self, folder: str, path: list[str]) -> None:
        with contextlib.suppress(OSError):
            os.chdir(folder)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        super().__init__()


class RayExecutor(WorkerPool[Remote]):
    """Runs shards in Ray actors on the cluster at ``address``, or on a local Ray that this executor starts and stops.

    If the program is already connected to Ray, that connection is used and stays open. ``workers`` is by default the
    number of actors that fit on the cluster; each actor has ``threads`` cores. All machines of the cluster need askew,
    and must see the store and the collection under the same name.

    ``gpus`` is the share of a GPU for each actor of a step with a neural model. Such a step has as many actors as fit
    on the GPUs, and at most ``workers``. With 0, or on a cluster without GPUs, all steps are treated alike.
    """

    def __init__(
        self, address: str | None = None, workers: int | None = None, threads: int = 1, gpus: float = 1.0
    ) -> None:
        if threads < 1 or (workers is not None and workers < 1):
            raise ConfigError(f"expected 1 or more workers and threads, found {workers} workers and {threads} threads")
        if not gpus >= 0 or (gpus > 1 and gpus != int(gpus)):
            raise ConfigError(f"⟨gpus⟩: expected a share from 0 to 1, or a whole number of GPUs, found {gpus}")
        super().__init__()
        self._address = None if address is None else Address(address)
        self._workers, self._threads, self._gpus = workers, threads, gpus
        self._ours = self._neural = False

    @cached_property
    def _ray(self) -> Any:
        """The ray module, connected at first use. Usage statistics are off unless the environment turns them on."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise MissingExtra("running on Ray", "ray") from None
        if not ray.is_initialized():
            self._connect(ray)
        return ray

    def _connect(self, ray: Any) -> None:
        # Ray prints worker deaths to stdout regardless of its options, but stdout is for results.
        ray._private.worker._worker_logs_enabled = False
        quiet = {"include_dashboard": False} if self._address is None else {}
        cores = self._workers * self._threads if self._workers and self._address is None else None
        whole = "local" if self._address is None else self._address.reveal()
        try:
            _knock(None if self._address is None else whole)
            # Ray starts processes only if no address is given.
            with _own_sigterm(), _own_session() if self._address is None else contextlib.nullcontext():
                ray.init(whole, num_cpus=cores, logging_level=logging.ERROR, log_to_driver=False, **quiet)
        except Exception as error:  # Ray raises errors of many kinds
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            first = first if self._address is None else self._address.scrub(first)
            raise ConfigError(f"Ray at {self._address or 'this machine'}: cannot be reached ({first})") from None
        self._ours = True

    def run(self, job: StepJob, shards: Iterable[Shard]) -> Generator[Done, None, None]:
        """Yield each shard when it is done. Steps with a neural model run on actors with a GPU, if there is one."""
        neural = job.neural and self._room_on_gpus() > 0
        if neural != self._neural:
            # Actors keep their resources, so stop those of the other kind first to free the resources.
            super().close()
            self._neural = neural
        yield from super().run(job, shards)

    def _room_on_gpus(self) -> int:
        if not self._gpus:
            return 0
        nodes = [node["Resources"].get("GPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        # An actor runs on one machine, so the remaining GPU share of each machine is unused.
        return sum(math.floor(have / self._gpus + 1e-9) for have in nodes)

    @property
    def count(self) -> int:
        """The requested number of workers, or the number that fits on the cluster."""
        room = max(1, int(self._ray.cluster_resources().get("CPU", 1)) // self._threads)
        if not self._neural:
            return self._workers or room
        room = min(room, self._room_on_gpus())
        return min(self._workers or room, room)

    def start(self) -> Remote:
        """Start an actor. It receives no shard before the cluster has room for it."""
        # No restarts by Ray: the pool replaces a worker that dies, because it knows its shard.
        actor = self._ray.remote(Actor).options(
            num_cpus=self._threads, num_gpus=self._gpus if self._neural else 0, max_restarts=0,
            runtime_env={"env_vars": thread_settings(self._threads)},
        )  # fmt: skip
        return Remote(actor.remote(str(os.getcwd()), sys.path))  # noqa: PTH109

    def pack(self, rows: pa.Table) -> Any:
        """Put the rows into Ray's object store, from which any actor can read them."""
        return self._ray.put(super().pack(rows))

    def dumps(self, value: object) -> bytes:
        """Serialize with Ray's cloudpickle: actors cannot import objects from the main script."""
        return bytes(self._ray.cloudpickle.dumps(value))

    def send_job(self, worker: Remote, job: bytes) -> None:
        """Send a job without waiting."""
        worker.request = worker.actor.open.remote(job)

    def send_shard(self, worker: Remote, shard: Packed) -> None:
        """Send a shard without waiting."""
        worker.request = worker.actor.run.remote(shard.start, shard.rows)

    def answers(self, workers: Sequence[Remote], timeout: float | None) -> Iterator[tuple[Remote, Answer]]:
        """Yield the first available answer."""
        requests = {worker.request: worker for worker in workers}
        ready, _ = self._ray.wait(list(requests), num_returns=1, timeout=timeout)
        for request in ready:
            try:
                answer: Answer = self._ray.get(request)
            except self._ray.exceptions.RayError as error:
                answer = without_secrets(str(error).splitlines()[0])
            yield requests[request], answer

    def stop(self, worker: Remote) -> None:
        """Stop an actor at once."""
        self._ray.kill(worker.actor, no_restart=True)

    def close(self) -> None:
        """Stop all actors, and disconnect from Ray if this executor connected to it."""
        super().close()
        if self._ours:
            self._ray.shutdown()
            self._ray._private.worker._worker_logs_enabled = True
            self.__dict__.pop("_ray", None)
            self._ours = False


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Restore the program's SIGTERM handler: Ray installs one that prints its stack and exits."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _own_session() -> Iterator[None]:
    """Start Ray's processes in their own session.

    Otherwise a signal to the process group would end them first, and Ray's native code would then end this process
    without a message. Ray still ends them together with this process.
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
    """Raise OSError at once if nothing listens at the address. Ray itself would retry for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()
