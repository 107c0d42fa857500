"""askew publish and askew verify: a released dataset keeps its promises, and one that was touched is found out."""

import json

import polars as pl
import pytest


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def published(askew_cli, store, *more):
    done = askew_cli(["publish", "demo", "--out", "ds", "--store", str(store), *more])
    assert done.code == 0, done.err
    return done


def test_a_dataset_is_published_and_verified(askew_cli, store, tmp_path):
    done = published(askew_cli, store, "--json")
    facts = json.loads(done.out)
    assert facts["subsets"]["effective"] > 30
    rows = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "ds" / "data").iterdir())])
    assert rows.height == sum(facts["splits"].values())
    effective = rows.filter(pl.col("effective"))
    assert (effective["gain:RR@10"] >= 0).all()
    assert (effective["gain:ARaB(tf)@10"] >= 0).all()
    checked = askew_cli(["verify", "ds"])
    assert (checked.code, "all rules hold" in checked.out) == (0, True)


def test_the_same_recipe_publishes_the_same_bytes(askew_cli, store, tmp_path):
    published(askew_cli, store)
    (tmp_path / "ds").rename(tmp_path / "first")
    published(askew_cli, store)
    for path in sorted((tmp_path / "first").rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "ds" / path.relative_to(tmp_path / "first")).read_bytes()


def test_one_changed_number_is_found(askew_cli, store, tmp_path):
    published(askew_cli, store)
    path = tmp_path / "ds" / "json" / "Effective.json"
    path.write_text(path.read_text().replace("1.0", "0.9", 1))
    done = askew_cli(["verify", "ds", "--json"])
    assert done.code == 3
    assert any("Effective.json" in line for line in json.loads(done.out)["wrong"])


def test_boxes_have_no_subsets_to_publish_yet_and_say_so(askew_cli, store):
    done = askew_cli(["publish", "repair", "--out", "ds", "--store", str(store)])
    assert (done.code, "take refairmulate" in done.err) == (2, True)


def test_a_folder_that_is_full_is_not_written_over(askew_cli, store, tmp_path):
    (tmp_path / "ds").mkdir()
    (tmp_path / "ds" / "mine.txt").write_text("x")
    assert askew_cli(["publish", "demo", "--out", "ds", "--store", str(store)]).code in (2, 3)
    assert (tmp_path / "ds" / "mine.txt").read_text() == "x"
