"""A recipe in this process, in processes of this machine and on Ray: the same bytes."""

from pathlib import Path

import pytest


def content(folder):
    """Every finished file of the steps by name, but what says when and where it was made."""
    parts = (path for path in Path(folder).glob("*-*/*") if path.suffix in (".parquet", ".json"))
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in parts
        if path.name != "provenance.json" and not path.parent.name.startswith("index-")
    }


SETTINGS = "--set reformulate.0.count=3"


def test_two_workers_leave_the_same_bytes_as_none(askew_cli):
    alone = askew_cli(f"run demo {SETTINGS} --store one".split())
    result = askew_cli(f"run demo {SETTINGS} --store two --workers 2".split())
    assert (alone.code, result.code, result.err) == (0, 0, alone.err)
    assert content("one") == content("two")
    assert any(name.startswith("pairs-") for name in content("one"))


def test_ray_leaves_the_same_bytes_as_this_process(askew_cli):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    assert askew_cli(f"run demo {SETTINGS} --store one".split()).code == 0
    result = askew_cli(f"run demo {SETTINGS} --store two --engine ray --workers 2".split())
    assert result.code == 0
    assert content("one") == content("two")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--engine rey", "did you mean 'ray'"),
        ("--address auto", "--address is only for --engine ray"),
        ("--workers 0", "--workers: expected 1 or more, found 0"),
    ],
)
def test_an_engine_that_is_not_there_is_refused_before_any_work(askew_cli, options, said):
    result = askew_cli(["run", "demo", "--store", "s", *options.split()])
    assert result.code == 2
    assert said in result.err
    assert not Path("s").exists()
