"""Others' tools read a release: Hugging Face datasets and mlcroissant. Both are optional here."""

import json
import logging

import polars as pl
import pytest
from toy_choices import boxed_facts, boxed_pairs, own_facts, own_pairs, repair_tables
from toy_release import facts, frame, row, toy_pairs

from askew.pairs.dataset.release import publish


@pytest.fixture
def offline(monkeypatch, tmp_path):
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("queries", [40, 1])
def test_load_dataset_reads_the_folder_offline(tmp_path, offline, queries):
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    pairs = toy_pairs().filter(pl.col("query_id").is_in([f"q{i}" for i in range(queries)]))
    done = publish(pairs, facts(title="T: [x] # y", description="`|` <b>"), tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(offline))
    assert {name: part.num_rows for name, part in loaded.items()} == {name: n for name, n in done.splits.items() if n}
    for part in loaded.values():
        assert set(part.column_names) == set(pairs.columns)
    rows = [one for part in loaded.values() for one in part.to_list()]
    wanted = sorted(pairs.to_dicts(), key=lambda one: (one["query_id"], one["variant_id"]))
    assert sorted(rows, key=lambda one: (one["query_id"], one["variant_id"])) == wanted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["boxes", "own"])
def test_load_dataset_reads_other_selections_too(tmp_path, offline, kind):
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
    robust = pl.Series("robust", [True, None, False])
    stated = {"robust_rankers": ["bm25", "qld"], "robust_measures": ["RR@10"]}
    if kind == "boxes":
        pairs = boxed_pairs().with_columns(robust)
        publish(pairs, {**boxed_facts(), **stated}, tmp_path / "out", repair=repair_tables())
    else:
        pairs = own_pairs().with_columns(robust)
        publish(pairs, {**own_facts(), **stated}, tmp_path / "out")
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(offline))
    rows = [one for part in loaded.values() for one in part.to_list()]
    assert sorted(rows, key=lambda one: (one["query_id"], one["variant_id"])) == pairs.to_dicts()


@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_validates_the_metadata_of_boxes_and_reads_the_records(tmp_path, caplog):
    mlcroissant = pytest.importorskip("mlcroissant", reason="the package mlcroissant is not installed")
    more = {"citation": "Us (2026)", "homepage": "https://e.org/x"}
    publish(boxed_pairs(), {**boxed_facts(), **more}, tmp_path / "out", repair=repair_tables())
    with caplog.at_level(logging.WARNING):
        found = mlcroissant.Dataset(str(tmp_path / "out" / "croissant.json"))
    assert not found.metadata.issues.errors
    # A release has no date: the same build gives the same bytes.
    assert ["datePublished" in warning for warning in found.metadata.issues.warnings] == [True]
    rows = sum(len(list(found.records(split))) for split in ("train", "dev", "test"))
    assert rows == boxed_pairs().height


@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_validates_the_metadata_and_reads_the_records(tmp_path, caplog):
    mlcroissant = pytest.importorskip("mlcroissant", reason="the package mlcroissant is not installed")
    more = {"citation": "Us (2026)", "homepage": "https://e.org/x"}
    publish(toy_pairs(), facts(**more), tmp_path / "out")
    with caplog.at_level(logging.WARNING):
        found = mlcroissant.Dataset(str(tmp_path / "out" / "croissant.json"))
    assert not found.metadata.issues.errors
    # A release has no date: the same build gives the same bytes.
    assert ["datePublished" in warning for warning in found.metadata.issues.warnings] == [True]
    rows = sum(len(list(found.records(split))) for split in ("train", "dev", "test"))
    assert rows == 200
    one = next(iter(found.records("train")))
    assert one["train/query_id"] in ("q0", b"q0")
    assert len(one) == len(toy_pairs().columns)


@pytest.mark.filterwarnings("ignore")
def test_mlcroissant_takes_queries_and_titles_of_any_kind(tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant", reason="the package mlcroissant is not installed")
    rows = [row("http://q", "@id", (0.5, 0.0, 1.0), (0.5, 0.0, 0.5), original='{"@id": "x"} <b>\n', text="@type: y")]
    publish(frame(rows), facts(title='T "x": {@id} <b>\n\u2028'), tmp_path / "out")
    found = mlcroissant.Dataset(str(tmp_path / "out" / "croissant.json"))
    assert not found.metadata.issues.errors


def test_the_metadata_names_every_file_with_its_digest_and_every_column(tmp_path):
    publish(toy_pairs(), facts(), tmp_path / "out")
    found = json.loads((tmp_path / "out" / "croissant.json").read_text())
    lines = (tmp_path / "out" / "checksums.sha256").read_text().splitlines()
    own = {"README.md", "askew.json", "croissant.json"}
    stated = {one["contentUrl"]: one["sha256"] for one in found["distribution"]}
    assert stated == {line[66:]: line[:64] for line in lines if line[66:] not in own}
    for records in found["recordSet"]:
        assert {field["source"]["extract"]["column"] for field in records["field"]} == set(toy_pairs().columns)
        ids = [field["@id"] for field in records["field"]]
        assert len(set(ids)) == len(ids)
        assert not any(":" in one or "@" in one for one in ids)
