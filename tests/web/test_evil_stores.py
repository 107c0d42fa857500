"""A store, recipe or index from somebody else is data: without --trust-store it runs no code and sends no request."""

import json
import shutil

import polars as pl
import pytest

from askew.core.errors import ConfigError, StoreError
from askew.core.files import fingerprint
from askew.core.store.manifest import key_of
from askew.core.store.store import Store, check_store
from askew.pairs.plan import prepare
from askew.pairs.recipe import read_recipe
from askew.pairs.verify import verify
from askew.search.disk import FORMAT, read_header, write_sealed
from askew.train.selector import built_of
from askew.ui.cli.main import run
from askew.ui.explorer.opening import Sources, open_sources
from search_server import SearchServer

PYTHON = """
from pathlib import Path
Path({mark!r}).write_text("ran")
class Evil:
    pass
def find(query, k):
    return ["0"]
"""
RECIPE = """[collection]
source = "demo"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
[evaluate]
measures = ["RR@10", "ARaB(tf)@10"]
"""


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    root = tmp_path_factory.mktemp("honest")
    (root / "r.toml").write_text(RECIPE)
    store = Store(root / "store")
    prepare(read_recipe(root / "r.toml"), store).plan.run(store)
    return root / "store"


class Evil:
    """A copy of the store whose recorded plan or files somebody has changed, with a file of code beside it."""

    def __init__(self, honest, folder):
        self.root, self.mark = shutil.copytree(honest, folder / "store"), folder / "ran"
        self.code = folder / "evil.py"
        self.code.write_text(PYTHON.format(mark=str(self.mark)))

    def change_plan(self, **sections):
        (path,) = (self.root / "plans").iterdir()
        plan = json.loads(path.read_text())
        path.unlink()
        plan["sections"] |= sections
        plan["collection"] = sections.get("collection", plan["sections"]["collection"])["source"]
        (self.root / "plans" / f"{fingerprint(plan)}.json").write_text(json.dumps(plan))

    def change_ranker(self, **ranker):
        """Change the manifest of the search itself, which says what was searched with."""
        (folder,) = self.root.glob("runs-*")
        facts = json.loads((folder / "manifest.json").read_text())
        facts["settings"]["ranker"] = ranker
        key = key_of(facts["stage"], facts["version"], facts["settings"], facts["input_key"])
        (path,) = (self.root / "plans").iterdir()
        plan = json.loads(path.read_text().replace(facts["key"], key))
        path.unlink()
        (self.root / "plans" / f"{fingerprint(plan)}.json").write_text(json.dumps(plan))
        facts["key"] = key
        (folder / "manifest.json").write_text(json.dumps(facts))
        folder.rename(self.root / f"runs-{key}")

    def change_index(self, **facts):
        for path in self.root.glob("index-*/header.json"):
            header = {name: value for name, value in read_header(path.parent).items() if name != "checksum"}
            write_sealed(path, header | facts)

    def damage(self):
        next(self.root.glob("scores-*/part-*")).unlink()


@pytest.fixture
def evil(honest, tmp_path):
    return Evil(honest, tmp_path)


@pytest.fixture
def server():
    with SearchServer({"0": "a nurse"}) as listening:
        yield listening


def sections_of(kind, evil, server):
    code, url = f"{evil.code}:find", f"{server.url}/?q={{query}}"
    return {
        "callable": {"retrieve": {"ranker": "callable", "function": code}},
        "command": {"retrieve": {"ranker": "callable", "function": "subprocess:getoutput"}},
        "http": {"retrieve": {"ranker": "http", "url": url, "auth_file": str(evil.code)}},
        "first pass": {"first_pass": {"ranker": "callable", "function": code}},
        "nested": {"retrieve": {"ranker": "fusion", "rankers": [{"ranker": "callable", "function": code}]}},
        "cross": {"cross": [{"ranker": "http", "url": url}]},
        "measure": {"evaluate": {"measures": ["RR@10", f"{evil.code}:Evil@10"]}},
        "language model": {"reformulate": [{"method": "llm", "model": "m", "base_url": server.url,
                                            "key_variable": "PATH"}]},
        "model": {"filter": [{"filter": "semantic", "model": "somebody/something"}]},
        "collection": {"collection": {"source": "s3://somewhere/else"}},
        "download": {"collection": {"source": "irds:beir/nfcorpus"}},
    }[kind]  # fmt: skip


KINDS = ("callable", "command", "http", "first pass", "nested", "cross", "measure", "language model", "model",
         "collection", "download")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_explorer_opens_a_store_with_such_a_plan_from_its_tables_only(kind, evil, server):
    evil.change_plan(**sections_of(kind, evil, server))
    sources = Sources(store=evil.root)
    found = open_sources(sources)
    assert found.explorer is None
    assert [(note.code, bool(note.values["settings"])) for note in found.notes] == [("not-trusted", True)]
    assert "--trust-store" in found.reason
    assert found.store.steps()
    assert not evil.mark.exists() and server.requests == []


def test_training_on_a_build_of_somebody_else_runs_no_code_of_its_measures(evil):
    pairs = pl.DataFrame({"query_id": ["1"], "text": ["a"], "original_text": ["b"]})
    built = built_of(pairs, ["RR@10", f"{evil.code}:Evil@10"], whole=True)
    assert list(built.measures) == ["RR@10"] and not evil.mark.exists()


@pytest.mark.parametrize("kind", ["callable", "http", "measure"])
def test_a_store_that_the_user_trusts_is_opened_with_everything_in_it(kind, evil, server):
    evil.change_plan(**sections_of(kind, evil, server))
    sources = Sources(store=evil.root, trust_store=True)
    if kind == "measure":
        with pytest.raises(ConfigError):
            open_sources(sources)
        assert evil.mark.exists()
    else:
        assert not [note for note in open_sources(sources).notes if getattr(note, "code", "") == "not-trusted"]


def test_a_ranker_that_only_the_manifest_of_the_search_names_is_not_made(evil):
    evil.change_ranker(ranker="fusion", rankers=[{"ranker": "callable", "function": f"{evil.code}:find"}])
    found = open_sources(Sources(store=evil.root))
    assert found.explorer is None and not evil.mark.exists()


def test_an_index_elsewhere_is_not_opened_through_a_manifest(evil, tmp_path):
    evil.change_ranker(ranker="bm25", index="x/../../elsewhere")
    assert open_sources(Sources(store=evil.root)).explorer is None


def test_a_model_that_only_the_index_names_is_not_loaded(evil):
    shutil.rmtree(evil.root / "plans")
    evil.change_index(kind="dense", model="somebody/something")
    found = open_sources(Sources(store=evil.root))
    assert found.explorer is None and "--trust-store" in found.reason


@pytest.mark.parametrize("kind", KINDS)
def test_a_repair_runs_nothing_of_such_a_plan(kind, evil, server):
    evil.change_plan(**sections_of(kind, evil, server))
    evil.damage()
    before = sorted(path.name for path in evil.root.iterdir())
    found = verify(str(evil.root), repair=True)
    assert not found.ok and found.repaired == []
    assert any("--trust-store" in note for note in found.notes)
    assert sorted(path.name for path in evil.root.iterdir()) == before
    assert not evil.mark.exists() and server.requests == []


def test_an_index_is_not_built_again_from_an_address_or_with_a_model_of_somebody_else(evil):
    (index,) = evil.root.glob("index-*")
    for change in ({"docs": "s3://somewhere/else"}, {"ranker": "dense", "settings": {"model": "somebody/something"}}):
        source = {"docs": "demo", "ranker": "bm25", "settings": {}, "fields": [], "texts": True}
        write_sealed(index / "source.json", {**source, **change, "format": FORMAT, "files": {}})
        (index / "doc_ids.arrow").write_bytes(b"damaged")
        found = verify(str(index), repair=True)
        assert not found.ok and any("--trust-store" in note for note in found.notes)


def test_a_plan_of_a_recipe_imports_nothing(evil, tmp_path, capsys):
    recipe = tmp_path / "r.toml"
    store = str(tmp_path / "s")
    recipe.write_text(RECIPE.replace('ranker = "bm25"', f'ranker = "callable"\nfunction = "{evil.code}:find"'))
    assert run(["plan", str(recipe), "--store", store]) == 0
    recipe.write_text(RECIPE.replace('"RR@10"', f'"{evil.code}:Evil@10"'))
    assert run(["plan", str(recipe), "--store", store]) == 2
    capsys.readouterr()
    assert not evil.mark.exists()


@pytest.mark.parametrize("name", ["../../victim.txt", "/etc/victim", "victim.txt", "part-1.parquet", "", "a\0b"])
def test_a_manifest_that_names_another_file_is_damaged_and_the_file_stays(name, evil):
    victim = evil.root.parent / "victim.txt"
    victim.write_text("mine")
    (path,) = evil.root.glob("scores-*/manifest.json")
    facts = json.loads(path.read_text())
    facts["parts"][0]["file"] = name
    path.write_text(json.dumps(facts))
    with pytest.raises(StoreError):
        Store(evil.root).steps()
    assert [one.file for one in check_store(Store(evil.root)).damaged] == [""]
    verify(str(evil.root), repair=True)
    assert victim.read_text() == "mine"
    assert verify(str(evil.root)).ok


@pytest.mark.parametrize(
    ("field", "value"),
    [("rows", -1), ("rows", 2**63), ("size", -1), ("start", 7), ("stop", -1), ("kept", -3), ("sha256", "x" * 64),
     ("dropped", {"why": -2}), ("dropped", {"why": "many"}), ("dropped", {"why": 1.5})],
)  # fmt: skip
def test_a_manifest_with_impossible_numbers_is_damaged(field, value, evil):
    (path,) = evil.root.glob("scores-*/manifest.json")
    facts = json.loads(path.read_text())
    facts["parts"][0][field] = value
    path.write_text(json.dumps(facts))
    with pytest.raises(StoreError):
        Store(evil.root).steps()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"sections": ' * 50_000, "[1]", '{"sections": 3, "recipe": 1}'])
def test_a_plan_that_is_no_plan_is_left_out(text, evil):
    (path,) = (evil.root / "plans").iterdir()
    path.unlink()
    try:
        name = fingerprint(json.loads(text))
    except RecursionError:
        name = "0" * 16
    (evil.root / "plans" / f"{name}.json").write_text(text)
    assert open_sources(Sources(store=evil.root)).explorer is not None
