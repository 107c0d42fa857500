"""The service under attack: does it answer others meanwhile, and do memory and log stay bounded?

The server is a process of its own, started as a user would (``askew serve``), on loopback only. Every attack is bounded
in number and time. Meanwhile somebody else asks: one new connection after the other, ten a second, every second time
with a query that nobody asked before. The other and the attacker have the same address, so that no limit by address
tells them apart; only whole requests are counted by address, so those of ``slow bodies`` come from another. Memory is
the resident set of the server and the processes it started.

``slow heads``   900 connections that send half of a request head, go on with a byte a second, and come back when closed
``few files``    the same where the process may open 300 files
``many``         4,000 connections that send nothing, opened as fast as it goes
``slow bodies``  60 requests whose body comes a byte a second, and 4 such uploads
``garbage``      2,000 connections that send what is no HTTP
``uploads``      3 uploads at once of two large runs each, measured and compared
``crowd``        200 clients with addresses of their own, who search and ask again as soon as they have an answer; one
                 request in twenty is a reformulation of a query that nobody asked before. At the end all close their
                 connections at once: how long is the service still at work for nobody?
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import itertools
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import IO, Any

from askew.data.collection import demo_files

ASKEW = [str(Path(sys.executable).with_name("askew")), "serve", "--port", "0"]
HOST = "127.0.0.1"
HALF = b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
QUERIES = ["how to become a nurse", "symptoms of heart attack", "best software engineer", "famous scientists"]


class Server:
    def __init__(self, log: IO[bytes], limit: str) -> None:
        command = ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", *ASKEW]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self.port = urllib.parse.urlsplit(self.process.stdout.readline().removeprefix("askew: ")).port or 0
        for query in QUERIES:
            ask(self.port, query)

    def memory(self) -> float:
        """Resident megabytes of the server and its children."""
        found = 0.0
        for process in [self.process.pid, *children(self.process.pid)]:
            with contextlib.suppress(OSError, StopIteration):
                lines = Path(f"/proc/{process}/status").read_text().splitlines()
                found += int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{process}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []


def ask(port: int, query: str, kind: str = "search") -> int:
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", f"/api/{kind}?" + urllib.parse.urlencode({"q": query}))
        reply = connection.getresponse()
        reply.read()
        return reply.status


class Other(threading.Thread):
    """Somebody who asks all the while."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server, self.done = server, threading.Event()
        self.seconds: list[float] = []
        self.seen: Counter[str] = Counter()
        self.memory = [server.memory()]

    def run(self) -> None:
        chance = random.Random(1)
        for turn in itertools.count():
            query = chance.choice(QUERIES) + (f" {turn}" if turn % 2 else "")
            start = time.perf_counter()
            try:
                self.seen[str(ask(self.server.port, query))] += 1
            except OSError as error:
                self.seen[type(error).__name__] += 1
            self.seconds.append(time.perf_counter() - start)
            self.memory.append(self.server.memory())
            if self.done.wait(0.1):
                return


class Attack:
    """What an attacker does, for so many seconds, and what came of it."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port, self.until, self.address = port, time.monotonic() + seconds, HOST
        self.seen: Counter[str] = Counter()

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.seen["opened"] += 1
        return await asyncio.open_connection(HOST, self.port, local_addr=(self.address, 0))

    async def drip(self, begin: bytes) -> None:
        """Begin a request, then send a byte a second; come back when it is closed."""
        while self.goes_on:
            try:
                reader, writer = await self.connect()
                writer.write(begin)
                while self.goes_on and not reader.at_eof():
                    writer.write(b"x")
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(1):
                            head = await reader.readline()
                            self.seen[head.split()[1].decode() if head.split()[1:] else "closed"] += 1
                            break
                writer.close()
            except OSError as error:
                self.seen[type(error).__name__] += 1
            await asyncio.sleep(0.1)

    async def send(self, data: bytes, stay: bool = False) -> None:
        with contextlib.suppress(OSError):
            _, writer = await self.connect()
            writer.write(data)
            while stay and self.goes_on:
                await asyncio.sleep(0.5)
            writer.close()


async def slow_heads(attack: Attack) -> None:
    await asyncio.gather(*(attack.drip(HALF) for _ in range(900)))


async def many(attack: Attack) -> None:
    await asyncio.gather(*(attack.send(b"", stay=True) for _ in range(4000)))


async def slow_bodies(attack: Attack) -> None:
    attack.address = "127.0.0.2"
    head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: 900000\r\n\r\n"
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
    plain = head % (b"/api/search", b"application/json")
    upload = head % (b"/audit", b"multipart/form-data; boundary=x") + part
    await asyncio.gather(*(attack.drip(plain) for _ in range(60)), *(attack.drip(upload) for _ in range(4)))


async def garbage(attack: Attack) -> None:
    for _ in range(100):
        await asyncio.gather(*(attack.send(os.urandom(200) + b"\r\n\r\n") for _ in range(20)))
        if not attack.goes_on:
            break


async def uploads(attack: Attack) -> None:
    threads = [threading.Thread(target=upload, args=(attack, number)) for number in range(3)]
    for thread in threads:
        thread.start()
    await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))


def upload(attack: Attack, number: int) -> None:
    """Two runs of 330,000 lines (9 MB) each, and the page that measures and compares them."""
    parts = [run(2 * number + side) for side in range(2)]
    head = 'Content-Disposition: form-data; name="files"; filename="{}.run"\r\n\r\n'
    body = b"".join(b"--x\r\n" + head.format(at).encode() + part + b"\r\n" for at, part in enumerate(parts))
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    start = time.perf_counter()
    page = "/runs"
    for method, sent in (("POST", body + b"--x--\r\n"), ("GET", None)):
        connection = http.client.HTTPConnection(HOST, attack.port, timeout=600)
        with contextlib.closing(connection):
            connection.request(method, page, sent, kind if sent else {})
            reply = connection.getresponse()
            reply.read()
        attack.seen[f"{method} {reply.status}"] += 1
        page = reply.headers.get("location", "")
        if not page:
            break
    attack.seen["seconds of the slowest"] = max(
        attack.seen["seconds of the slowest"], round(time.perf_counter() - start)
    )


def run(seed: int) -> bytes:
    chance, docs = random.Random(seed), demo_docs()
    lines = []
    for query in range(33_000):
        found = chance.sample(docs, 10)
        lines += [f"q{query:05} Q0 {doc} {rank} {200 - rank} t\n" for rank, doc in enumerate(found, 1)]
    return "".join(lines).encode()


def demo_docs() -> list[str]:
    lines = demo_files().docs.read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines]


class Crowd:
    """Clients who all ask for so many seconds, and then leave without waiting for their answers."""

    def __init__(self, server: Server, clients: int, seconds: float) -> None:
        self.server, self.clients, self.until = server, clients, time.monotonic() + seconds
        self.seen: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {"search": [], "reformulate": []}

    async def client(self, number: int) -> None:
        chance, address = random.Random(number), f"127.0.1.{1 + number}"
        reader, writer = await asyncio.open_connection(HOST, self.server.port, local_addr=(address, 0))
        for turn in itertools.count():
            kind = "reformulate" if chance.random() < 0.05 else "search"
            new = f" {number} {turn}" if kind == "reformulate" else ""
            given = urllib.parse.urlencode({"q": chance.choice(QUERIES) + new})
            path = f"/api/{kind}?{given}"
            start = time.perf_counter()
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            await reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
            self.seen[f"{kind} {head.split()[1]}"] += 1
            if head.split()[1] == "200":
                self.seconds[kind].append(time.perf_counter() - start)
            else:
                await asyncio.sleep(1)

    async def ask(self) -> None:
        tasks = [asyncio.ensure_future(self.client(number)) for number in range(self.clients)]
        await asyncio.sleep(self.until - time.monotonic())
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            self.seen[type(found).__name__] += not isinstance(found, asyncio.CancelledError)

    def idle_after(self) -> float:
        """Seconds until the server uses less than a tenth of a core over half a second."""
        start = time.monotonic()
        while time.monotonic() - start < 120:
            before = cpu(self.server.process.pid)
            time.sleep(0.5)
            if cpu(self.server.process.pid) - before < 0.05:
                break
        return time.monotonic() - start


def cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def crowded(seconds: float) -> None:
    with tempfile.TemporaryFile() as log:
        server = Server(log, "-S -n 1024")
        before, crowd = server.memory(), Crowd(server, 200, seconds)
        asyncio.run(crowd.ask())
        idle, after = crowd.idle_after(), server.memory()
        start = time.perf_counter()
        again = ask(server.port, QUERIES[0], "reformulate")
        print(f"crowd: {', '.join(f'{count:,} x {what}' for what, count in sorted(crowd.seen.items()) if count)}")
        for kind, times in crowd.seconds.items():
            p50, p99 = (1000 * sorted(times)[int(share * len(times))] for share in (0.5, 0.99)) if times else (0, 0)
            print(f"  {kind}: {len(times):,} answers, p50 {p50:.0f} ms, p99 {p99:.0f} ms")
        print(f"  memory before {before:.0f} MB, after {after:.0f} MB; idle {idle:.1f} s after all have gone")
        took = time.perf_counter() - start
        print(f"  then a reformulation: {again} in {took:.1f} s; exit code {server.stop()}", flush=True)


ATTACKS: dict[str, Callable[[Attack], Coroutine[Any, Any, None]]] = {
    "slow heads": slow_heads, "few files": slow_heads, "many": many, "slow bodies": slow_bodies, "garbage": garbage,
    "uploads": uploads,
}  # fmt: skip


def attacked(name: str, seconds: float) -> None:
    with tempfile.TemporaryFile() as log:
        server = Server(log, "-n 300" if name == "few files" else "-S -n 1024")
        other = Other(server)
        other.start()
        time.sleep(1)
        calm, attack = len(other.seconds), Attack(server.port, seconds)
        asyncio.run(ATTACKS[name](attack))
        other.done.set()
        other.join()
        after = server.stop()
        report(name, other, calm, attack, log.seek(0, os.SEEK_END), after)
        log.seek(0)
        for line in log.read(600).decode("utf-8", "replace").splitlines()[:4]:
            print(f"    log: {line}")


def report(name: str, other: Other, calm: int, attack: Attack, log: int, code: int) -> None:
    times = sorted(other.seconds[calm:])
    answers = ", ".join(f"{count:,} x {what}" for what, count in sorted(other.seen.items()))
    print(f"{name}: others got {answers}; median {1000 * times[len(times) // 2]:.0f} ms, "
          f"slowest {1000 * times[-1]:.0f} ms")  # fmt: skip
    print(f"  attacker: {', '.join(f'{count:,} x {what}' for what, count in sorted(attack.seen.items()))}")
    print(f"  memory before {other.memory[0]:.0f} MB, most {max(other.memory):.0f} MB; log {log:,} bytes; "
          f"exit code {code}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", choices=[*ATTACKS, "crowd"])
    given = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 16384)), hard))
    print(f"{given.seconds:.0f} s each; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    for name in [*ATTACKS, "crowd"] if given.only is None else [given.only]:
        crowded(given.seconds) if name == "crowd" else attacked(name, given.seconds)


if __name__ == "__main__":
    main()
