"""``askew verify``: a dataset, a store or an index; damage is found, and repaired to the bytes of before."""

import json
import shutil
from pathlib import Path

import pytest

from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.report.page import write_report

RECIPE = """[collection]
source = "demo"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
[evaluate]
measures = ["RR@10", "ARaB(tf)@10"]
"""


def flip(path, place=0.5):
    data = bytearray(path.read_bytes())
    data[int(len(data) * place)] ^= 4
    path.write_bytes(bytes(data))


def contents(root):
    """Everything that is the result: not when and where it was computed."""
    skipped = ("provenance.json", "digests.json")
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and path.name not in skipped and ".locks" not in path.parts
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store of a recipe, made once."""
    from askew.pairs.plan import prepare
    from askew.pairs.recipe import read_recipe

    root = tmp_path_factory.mktemp("made")
    (root / "r.toml").write_text(RECIPE)
    store = Store(root / "store")
    prepare(read_recipe(root / "r.toml"), store).plan.run(store, shard_rows=40)
    return root / "store"


@pytest.fixture
def store(made, tmp_path):
    shutil.copytree(made, tmp_path / "s")
    return tmp_path / "s"


def test_a_whole_store_is_told_to_be_one(askew_cli, store):
    done = askew_cli(["verify", "s"])
    assert done.code == 0
    assert done.out.startswith("s: store, 5 steps, ")
    assert done.out.endswith(" 1 index: no damage found\n")
    assert json.loads(askew_cli(["verify", "s", "--json"]).out)["kind"] == "store"


@pytest.mark.parametrize("step", ["variants", "kept", "runs", "scores", "mentions"])
def test_a_flipped_byte_in_a_part_is_found_and_repaired_to_the_same_bytes(askew_cli, store, step):
    before = contents(store)
    part = sorted(store.glob(f"{step}-*/part-*"))[0]
    flip(part)
    found = askew_cli(["verify", "s"])
    assert found.code == 3
    assert f"{part.parent.name}/{part.name}: " in found.out
    assert contents(store) != before
    repaired = askew_cli(["verify", "s", "--repair"])
    assert repaired.code == 0, repaired.out
    assert f"s/{part.parent.name}: recomputed" in repaired.out
    assert contents(store) == before
    assert askew_cli(["verify", "s"]).code == 0


def test_several_damaged_parts_missing_parts_and_manifests_are_repaired_together(askew_cli, store):
    before = contents(store)
    for part in list(store.glob("runs-*/part-*"))[:2]:
        flip(part, 0.1)
    next(iter(store.glob("kept-*/part-*"))).unlink()
    flip(next(iter(store.glob("scores-*/manifest.json"))), 0.9)
    assert askew_cli(["verify", "s"]).out.count("damaged") >= 3
    assert askew_cli(["verify", "s", "--repair"]).code == 0
    assert contents(store) == before


def test_every_flipped_byte_of_a_manifest_is_found_or_says_the_same(askew_cli, store):
    path = next(iter(store.glob("runs-*/manifest.json")))
    whole = path.read_bytes()
    missed = []
    for at in range(0, len(whole), 23):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        if askew_cli(["verify", "s"]).code == 0:
            missed.append(whole[max(at - 20, 0) : at + 20])
    assert missed == []


def test_a_damaged_index_of_a_store_is_made_again(askew_cli, store):
    before = contents(store)
    index = next(iter(store.glob("index-bm25-*")))
    flip(index / "docs.i32")
    assert askew_cli(["verify", "s"]).code == 3
    assert ": askew verify s --repair" in askew_cli(["verify", "s"]).out
    repaired = askew_cli(["verify", "s", "--repair"])
    assert repaired.code == 0, repaired.out
    assert {name: data for name, data in before.items() if "weights-" not in name} == {
        name: data for name, data in contents(store).items() if "weights-" not in name
    }


def test_a_store_that_does_not_know_its_recipe_says_what_to_run_and_keeps_everything(askew_cli, store):
    shutil.rmtree(store / "plans")
    flip(next(iter(store.glob("runs-*/part-*"))))
    flip(next(iter(store.glob("mentions-*/part-*"))))
    damaged = contents(store)
    done = askew_cli(["verify", "s", "--repair"])
    assert done.code == 3
    assert "askew run RECIPE" in done.out and "askew annotate DOCS" in done.out
    assert contents(store) == damaged


def test_a_recipe_whose_collection_has_changed_repairs_nothing(askew_cli, tmp_path):
    demo = demo_files()
    shutil.copytree(demo.docs.parent, tmp_path / "c")
    (tmp_path / "r.toml").write_text(RECIPE.replace('"demo"', '"c"'))
    assert askew_cli(["run", "r.toml", "--store", "s"]).code == 0
    flip(next(iter((tmp_path / "s").glob("runs-*/part-*"))))
    with (tmp_path / "c" / demo.queries_file.name).open("a") as file:
        file.write("q999\tone more query\n")
    done = askew_cli(["verify", "s", "--repair"])
    assert done.code == 3
    assert "recipe r: " in done.out and "has changed" in done.out


def test_a_step_of_another_format_is_refused_with_the_command_and_repaired(askew_cli, store):
    before = contents(store)
    path = next(iter(store.glob("runs-*/manifest.json")))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    done = askew_cli(["verify", "s"])
    assert "format 0, " in done.out and f": askew verify {store.name} --repair" in done.out
    assert askew_cli(["verify", "s", "--repair"]).code == 0
    assert contents(store) == before


@pytest.fixture
def index(askew_cli, tmp_path):
    assert askew_cli(["index", str(demo_files().docs), "--out", "ix", "--analyzer", "plain"]).code == 0
    assert askew_cli(["search", str(demo_files().queries_file), "--index", "ix", "--out", "before.run"]).code == 0
    return tmp_path / "ix"


def test_a_damaged_index_is_found_and_made_again_from_its_documents(askew_cli, index, tmp_path):
    before = contents(index)
    assert askew_cli(["verify", "ix"]).out.startswith("ix: index, ")
    for name in ("docs.i32", "texts.u8"):
        flip(index / name)
    found = askew_cli(["verify", "ix"])
    assert found.code == 3
    assert found.out.count("damaged between") == 2
    search = ["search", str(demo_files().queries_file), "--index", "ix", "--out", "after.run"]
    refused = askew_cli(search)
    assert refused.code == 5
    assert "askew verify ix --repair" in refused.err
    repaired = askew_cli(["verify", "ix", "--repair"])
    assert repaired.code == 0, repaired.out
    assert f"ix: rebuilt from {demo_files().docs}" in repaired.out
    assert askew_cli(search).code == 0
    assert contents(index) == before
    assert (tmp_path / "after.run").read_bytes() == (tmp_path / "before.run").read_bytes()


def test_damaged_weights_are_computed_again_from_the_postings(askew_cli, index):
    before = contents(index)
    flip(next(iter(index.glob("weights-*/impacts.f32"))))
    assert askew_cli(["verify", "ix"]).code == 3
    assert askew_cli(["verify", "ix", "--repair"]).code == 0
    assert not list(index.glob("weights-*"))
    assert askew_cli(["search", str(demo_files().queries_file), "--index", "ix", "--out", "r.run"]).code == 0
    assert contents(index) == before


@pytest.mark.parametrize("known", [True, False])
def test_an_index_of_unknown_format_is_made_again_or_the_command_is_said(askew_cli, index, known):
    before = contents(index)
    header = index / "header.json"
    header.write_text(json.dumps({**json.loads(header.read_text()), "format": 0}))
    if not known:
        (index / "source.json").unlink()
    done = askew_cli(["verify", "ix", "--repair"])
    assert done.code == (0 if known else 3)
    if known:
        assert {name for name in before if "weights-" not in name} == set(contents(index))
    else:
        assert ": askew index DOCS" in done.out


def test_an_index_is_not_made_again_from_other_documents(askew_cli, tmp_path):
    (tmp_path / "docs.tsv").write_text("a\tone text\nb\tanother text\n")
    askew_cli(["index", "docs.tsv", "--out", "ix"])
    (tmp_path / "docs.tsv").write_text("a\tone text\nb\tanother one\n")
    flip(tmp_path / "ix" / "docs.i32")
    damaged = contents(tmp_path / "ix")
    done = askew_cli(["verify", "ix", "--repair"])
    assert done.code == 2
    assert "docs.tsv" in done.err and "have changed" in done.err and "askew index" in done.err
    assert contents(tmp_path / "ix") == damaged


def test_what_is_no_folder_or_only_one_step_is_refused(askew_cli, store):
    assert askew_cli(["verify", "nowhere"]).code == 2
    step = next(iter(store.glob("runs-*")))
    assert f": askew verify {step.parent}" in askew_cli(["verify", str(step)]).err


def test_a_folder_of_other_files_is_no_damaged_dataset(askew_cli, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "README.md").write_text("hello")
    done = askew_cli(["verify", "other"])
    assert done.code == 2
    assert "other: not a folder" in done.err
    assert "nowhere: " in askew_cli(["verify", "nowhere"]).err
    (tmp_path / "other" / "askew.json").write_text("{}")
    (tmp_path / "other" / "data").mkdir()
    assert ": askew verify other\n" in askew_cli(["verify", "other/data"]).err


def test_a_report_is_checked_against_its_checksums(tmp_path, askew_cli):
    write_report(tmp_path / "report", {"report.html": b"<p>one</p>", "tables/pairs.csv": b"a,b\n"})
    done = askew_cli(["verify", str(tmp_path / "report")])
    assert (done.code, done.out) == (0, f"{tmp_path / 'report'}: report, 2 files: no damage found\n")
    (tmp_path / "report" / "report.html").write_bytes(b"<p>two</p>")
    (tmp_path / "report" / "tables" / "pairs.csv").unlink()
    done = askew_cli(["verify", str(tmp_path / "report"), "--repair"])
    assert done.code == 3
    assert "report.html: " in done.out and "tables/pairs.csv: missing\n" in done.out
