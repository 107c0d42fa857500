"""The service under load: 200 clients at once on /api/reformulate for a minute, on the demo; then too much at once.

The server is a process of its own, started as a user would (``askew serve``). Every client has an address of its own on
loopback and asks again as soon as it has an answer. Methods and filters are those of serve.toml. ``known`` asks the
queries of the demo over and over, as a cache likes it; ``mixed`` makes one in ten a query that nobody asked before.
Memory is the resident set of the server: before the load, five seconds into it, in the middle, at the end. ``overload``
lets 20 requests wait and makes every query new: refusals must be 429 with Retry-After, and afterwards the service must
answer as before. ``stop`` sends SIGTERM while 50 new queries are being worked on: every one must be answered. ``start``
is the time until the first answer of /api/health; ``first paint`` is how long chromium, which runs already, takes for a
page that it opens as soon as the address is told.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.data.collection import demo_files

# The limit on what may wait is no option of the command, so overload starts the service from within.
OVERLOADED = """
import sys
from askew.ui.explorer.opening import Sources
from askew.ui.web.server import serve
from askew.ui.web.settings import ServerLimits, Settings
settings = Settings(Sources(recipe=sys.argv[1]), port=0, limits=ServerLimits(waiting=20))
serve(settings, lambda address: print("askew:", address, flush=True))
"""
RECIPE = str(Path(__file__).with_name("serve.toml"))
ASKEW = [str(Path(sys.executable).with_name("askew")), "serve", "--port", "0", "--recipe", RECIPE]
ASKED = "api/reformulate?q=how+to+become+a+nurse"
PAINT = """new Promise(done => new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (one.name === 'first-contentful-paint') done(one.startTime);
}).observe({type: 'paint', buffered: true}))"""


@dataclass
class Seen:
    codes: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)
    told_when: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)


class Server:
    def __init__(self, command: list[str]) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip().removeprefix("askew: ")
        self.port = urllib.parse.urlsplit(self.url).port or 0

    def get(self, path: str) -> bytes:
        found: bytes = urllib.request.urlopen(self.url + path).read()
        return found

    def since(self) -> float:
        """Seconds since the process was started."""
        return time.perf_counter() - self.begun

    def memory(self) -> float:
        """Resident megabytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def cpu(self) -> float:
        """Seconds of a processor so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


class Client:
    """A connection that stays open, from an address of its own."""

    def __init__(self, number: int, port: int, seen: Seen) -> None:
        self.number, self.port, self.seen, self.chance = number, port, seen, random.Random(number)

    async def open(self) -> None:
        address = (f"127.0.{1 + self.number // 200}.{1 + self.number % 200}", 0)
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=address)

    async def ask(self, query: str, new: bool) -> int:
        start = time.perf_counter()
        self.send(query)
        code = await self.read()
        took = time.perf_counter() - start
        self.seen.seconds.append(took)
        if new:
            self.seen.new.append(took)
        return code

    def send(self, query: str) -> None:
        path = "/api/reformulate?" + urllib.parse.urlencode({"q": query})
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    async def read(self) -> int:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        body = await self.reader.readexactly(int(head.partition("content-length:")[2].split("\r\n")[0]))
        code = int(head.split()[1])
        self.seen.codes[code] += 1
        self.seen.told_when += code == 429 and "retry-after:" in head
        self.seen.errors["not an answer"] += code == 200 and not body.startswith(b'{"query"')
        return code

    def query(self, queries: list[str], fresh: float, turn: int) -> str:
        query = self.chance.choice(queries)
        if self.chance.random() >= fresh:
            return query
        return f"{query} {' '.join(self.chance.choice(queries).split()[-2:])} {self.number} {turn}"

    async def go_on(self, until: float, queries: list[str], fresh: float) -> None:
        try:
            await self.open()
            for turn in itertools.count():
                if time.perf_counter() > until:
                    break
                query = self.query(queries, fresh, turn)
                if await self.ask(query, query not in queries) == 429:
                    await asyncio.sleep(1)
            self.writer.close()
        except (OSError, EOFError, ValueError) as error:
            self.seen.errors[type(error).__name__] += 1


async def load(server: Server, clients: int, seconds: float, fresh: float, queries: list[str]) -> Seen:
    seen, start = Seen(memory=[server.memory()]), time.perf_counter()
    tasks = [
        asyncio.ensure_future(Client(n, server.port, seen).go_on(start + seconds, queries, fresh))
        for n in range(clients)
    ]
    for moment in (min(5.0, seconds / 4), seconds / 2):
        await asyncio.sleep(start + moment - time.perf_counter())
        seen.memory.append(server.memory())
    await asyncio.gather(*tasks)
    seen.memory.append(server.memory())
    return seen


def percentiles(seconds: list[float]) -> list[float]:
    """The median and the 99th percentile, in milliseconds."""
    times = sorted(seconds)
    return [1000 * times[min(len(times) - 1, int(share * len(times)))] for share in (0.5, 0.99)]


def told(name: str, seen: Seen, seconds: float, cpu: float) -> None:
    times = sorted(seen.seconds)
    p50, p99 = percentiles(seen.seconds)
    codes = ", ".join(f"{count:,} x {code}" for code, count in sorted(seen.codes.items()))
    print(f"{name}: {len(times) / seconds:,.0f} answers a second ({codes}), errors {sum(seen.errors.values())}")
    print(f"  p50 {p50:.0f} ms, p99 {p99:.0f} ms, slowest {1000 * times[-1]:.0f} ms; "
          f"{1000 * cpu / len(times):.2f} ms CPU an answer")  # fmt: skip
    if seen.new:
        p50, p99 = percentiles(seen.new)
        print(f"  new queries alone: {len(seen.new):,}, p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    start, early, middle, end = seen.memory
    print(f"  memory before {start:.0f} MB, early {early:.0f} MB, middle {middle:.0f} MB, end {end:.0f} MB")


def measured(name: str, clients: int, seconds: float, fresh: float, queries: list[str]) -> None:
    server = Server(ASKEW)
    server.get(ASKED)
    before = server.cpu()
    seen = asyncio.run(load(server, clients, seconds, fresh, queries))
    told(name, seen, seconds, server.cpu() - before)
    server.stop()


def overloaded(clients: int, seconds: float, queries: list[str]) -> None:
    server = Server([sys.executable, "-c", OVERLOADED, RECIPE])
    server.get(ASKED)
    before = server.cpu()
    seen = asyncio.run(load(server, clients, seconds, 1.0, queries))
    told("overload, 20 may wait, every query new", seen, seconds, server.cpu() - before)
    print(f"  refusals that say when to come back: {seen.told_when:,} of {seen.codes[429]:,}")
    print(f"  afterwards: {len(json.loads(server.get(ASKED))['candidates'])} candidates, exit code {server.stop()}")


async def stopped(server: Server, clients: int, queries: list[str]) -> Seen:
    """Ask, let the first answer come, send SIGTERM, and read the rest."""
    seen = Seen()
    asking = [Client(number, server.port, seen) for number in range(clients)]
    await asyncio.gather(*(one.open() for one in asking))
    for one in asking:
        one.send(one.query(queries, 1.0, 0))
    reading = [asyncio.ensure_future(one.read()) for one in asking]
    await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
    server.process.send_signal(signal.SIGTERM)
    found = await asyncio.gather(*reading, return_exceptions=True)
    seen.errors.update(type(one).__name__ for one in found if isinstance(one, BaseException))
    for one in asking:
        one.writer.close()
    return seen


def drained(queries: list[str]) -> None:
    server = Server(ASKEW)
    server.get(ASKED)
    seen = asyncio.run(stopped(server, 50, queries))
    print(f"SIGTERM with 50 requests at work: {seen.codes[200]} answered, {sum(seen.errors.values())} lost, "
          f"exit code {server.process.wait()}")  # fmt: skip


def started(repeats: int) -> None:
    listens, ready, asked = [], [], []
    for _ in range(repeats):
        server = Server(ASKEW)
        listens.append(server.since())
        server.get("api/health")
        ready.append(server.since())
        begun = time.perf_counter()
        server.get("?q=how+to+become+a+nurse")
        asked.append(time.perf_counter() - begun)
        server.stop()
    print(f"start, median of {repeats} (slowest): listens after {spread(listens)} s, "
          f"ready after {spread(ready)} s, first query answered in {spread(asked)} s")  # fmt: skip


def painted(repeats: int) -> None:
    chromium = os.environ.get("ASKEW_CHROMIUM") or shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("first paint: not measured, for there is no chromium or no playwright")
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print_paints(browser, repeats)
        browser.close()


def print_paints(browser: Any, repeats: int) -> None:
    browser.new_page().close()
    first, again, query = list[float](), list[float](), list[float]()
    for _ in range(repeats):
        server = Server(ASKEW)
        context = browser.new_context()
        page = context.new_page()
        for path, times in (("", first), ("", again), ("?q=how+to+become+a+nurse", query)):
            page.goto(server.url + path, wait_until="commit")
            times.append(page.evaluate(PAINT) / 1000)
        context.close()
        server.stop()
    print(f"first paint, median of {repeats} (slowest): Ask right after the start {spread(first)} s, "
          f"again {spread(again)} s, with a query {spread(query)} s")  # fmt: skip


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", choices=("start", "paint", "known", "mixed", "overload", "stop"))
    given = parser.parse_args()
    lines = demo_files().queries_file.read_text(encoding="utf-8").splitlines()
    queries = [line.split("\t")[1] for line in lines]
    print(f"{given.clients} clients, {given.seconds:.0f} s each; {platform.machine()}, {os.cpu_count()} cores")
    parts: dict[str, Callable[[], None]] = {
        "start": lambda: started(given.repeats),
        "paint": lambda: painted(given.repeats),
        "known": lambda: measured("known queries", given.clients, given.seconds, 0.0, queries),
        "mixed": lambda: measured("mixed, one query in ten is new", given.clients, given.seconds, 0.1, queries),
        "overload": lambda: overloaded(given.clients, min(given.seconds, 15.0), queries),
        "stop": lambda: drained(queries),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            part()


if __name__ == "__main__":
    main()
