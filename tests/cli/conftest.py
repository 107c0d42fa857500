"""A small world of real files in an empty folder, and the command run inside it."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from askew.ui.cli.main import run

# Mentions (female, male) of rekabsaz2020: d1 (0, 2), d2 (2, 0), d3 none, d4 (1, 1), d5 (1, 2).
DOCS = {
    "d1": "He is a man.",
    "d2": "She is a woman.",
    "d3": "The weather is fine.",
    "d4": "He and she met.",
    "d5": "he he she",
}
OLD = {"q1": ["d1", "d2", "d3"], "q2": ["d1", "d4", "d3"]}
NEW = {"q1": ["d2", "d3", "d1"], "q2": ["d3", "d4", "d1"]}


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert (self.code, self.out.count("\n")) == (0, 1), self.err
        return json.loads(self.out)

    @property
    def table(self) -> str:
        assert self.code == 0, self.err
        assert max(map(len, self.out.splitlines())) <= 80
        return self.out

    @property
    def notes(self) -> list[str]:
        return [line.removeprefix("note: ") for line in self.err.splitlines() if line.startswith("note: ")]

    def noted(self, *values: str) -> bool:
        """Whether one note has all of these values."""
        return any(all(value in note for value in values) for note in self.notes)

    def refused(self, code: int, *words: str) -> None:
        """One line of talk, the right exit code, and nothing that looks like a result."""
        assert self.code == code, self.err
        assert self.out == ""
        assert self.err.startswith("askew: ")
        assert self.err.count("\n") == 1
        assert self.err.removesuffix("\n").isprintable()
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err


class Files:
    """Writes the files a test needs."""

    def text(self, name: str, text: str) -> Path:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def docs(self, name: str, docs: Mapping[str, str]) -> Path:
        return self.text(name, "".join(f"{doc}\t{text}\n" for doc, text in docs.items()))

    def run(self, name: str, ranked: Mapping[str, Sequence[str]]) -> Path:
        lines = [
            f"{query} Q0 {doc} {rank} {10 - rank} tag\n"
            for query, docs in ranked.items()
            for rank, doc in enumerate(docs, start=1)
        ]
        return self.text(name, "".join(lines))


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("ASKEW_STORE", "ASKEW_DEBUG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    made = Files()
    made.docs("docs.tsv", DOCS)
    made.run("old.run", OLD)
    made.run("new.run", NEW)
    made.text("qrels.txt", "q1 0 d2 1\nq1 0 d3 0\nq2 0 d1 1\n")
    return made


@pytest.fixture
def askew(capsys: pytest.CaptureFixture[str]) -> Callable[[str | list[str]], Result]:
    """Run a command written as in a shell, or as a list of words."""

    def call(command: str | list[str]) -> Result:
        capsys.readouterr()
        code = run(shlex.split(command) if isinstance(command, str) else command)
        return Result(code, *capsys.readouterr())

    return call
