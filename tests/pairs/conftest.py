"""The command, run in an empty folder."""

from dataclasses import dataclass

import pytest

from askew.ui.cli.main import run


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str


@pytest.fixture
def askew_cli(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def call(arguments):
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        return Result(code, said.out, said.err)

    return call
