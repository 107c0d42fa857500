"""``[publish] query_text = false``: the dataset of a recipe without the text of its original queries."""

import html
import json
import re

import polars as pl
import pytest

from askew import Selector
from askew.core.errors import DataError
from askew.data.collection import Collection
from askew.pairs.publish import recipe_text
from askew.pairs.recipe import read_recipe
from askew.train.rewriter import read_pairs
from askew.train.selector import read_built

WITHOUT = ("--set", "publish.query_text=false")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


def published(askew_cli, store, recipe="demo", more=WITHOUT):
    done = askew_cli(["publish", recipe, "--out", "ds", "--store", str(store), "--json", *more])
    assert done.code == 0, done.err
    return json.loads(done.out)


def demo_queries():
    return pl.DataFrame(pl.from_arrow(Collection.open("demo").queries.select(["query_id", "text"])))


def rows_of(folder):
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / "data").iterdir())])


def written(path):
    """What a file says: its bytes as text; of a Parquet file, whose pages are compressed, its values as well."""
    text = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".parquet":
        text += json.dumps(pl.read_parquet(path).to_dicts(), ensure_ascii=False)
    # What Markdown and JSON escape must not hide a text.
    return re.sub(r"\s+", " ", html.unescape(text).replace("\\", "")).casefold()


def reformulations(folder):
    """All texts of reformulations, those of RePair's tables as well, the longest first."""
    found = set(rows_of(folder)["text"])
    for path in folder.glob("repair/*.agg.all.tsv"):
        table = pl.read_csv(path, separator="\t", infer_schema=False)
        found |= set(table.filter(pl.col("order") != "-1")["query"])
    return sorted((one.casefold() for one in found), key=len, reverse=True)


def given_away(folder):
    """The kinds of files that have an original query of three words or more, not as a part of a reformulation."""
    originals = [text.casefold() for text in demo_queries()["text"] if len(text.split()) >= 3]
    assert len(originals) > 50
    ours, kinds = reformulations(folder), set()
    for path in (path for path in folder.rglob("*") if path.is_file()):
        text = written(path)
        if any(one in text for one in originals):
            for one in ours:
                text = text.replace(one, "\n")
        if any(one in text for one in originals):
            kinds.add(path.suffix)
    return kinds | ({"reformulation"} if set(originals) & set(ours) else set())


@pytest.mark.parametrize("recipe", ["demo", "repair"])
def test_no_byte_of_the_dataset_gives_an_original_query(askew_cli, store, tmp_path, recipe):
    published(askew_cli, store, recipe)
    assert given_away(tmp_path / "ds") == set()


def test_every_kind_of_file_of_a_dataset_with_the_texts_gives_them(askew_cli, store, tmp_path):
    published(askew_cli, store, more=())
    assert given_away(tmp_path / "ds") == {".parquet", ".md", ".json", ".tsv"}


@pytest.mark.parametrize("recipe", ["demo", "repair"])
def test_verify_passes_with_one_note_and_the_fact(askew_cli, store, recipe):
    published(askew_cli, store, recipe)
    done = askew_cli(["verify", "ds", "--json"])
    found = json.loads(done.out)
    assert (done.code, found["wrong"], found["query_text"]) == (0, [], False)
    assert [line for line in found["notes"] if "query_text = false" in line] == found["notes"]
    assert len(found["notes"]) == 1


def test_the_splits_are_those_of_the_dataset_with_the_texts(askew_cli, store, tmp_path):
    published(askew_cli, store, more=())
    (tmp_path / "ds").rename(tmp_path / "whole")
    assert "query_text" not in json.loads((tmp_path / "whole" / "askew.json").read_text())["facts"]
    published(askew_cli, store)
    for path in sorted((tmp_path / "whole" / "data").iterdir()):
        whole, without = pl.read_parquet(path), pl.read_parquet(tmp_path / "ds" / "data" / path.name)
        assert set(without["variant_id"]) <= set(whole["variant_id"])


def test_reformulations_in_the_words_of_their_original_are_left_out_and_reported(askew_cli, store, tmp_path):
    # Capitals and punctuation alone: another text with the same results, which gives the query away.
    lines = [f"{one}\t{text.upper()}?!" for one, text in demo_queries().iter_rows()]
    (tmp_path / "upper.tsv").write_text("\n".join(["query_id\ttext", *lines]) + "\n")
    # The filter rules would drop them; a recipe need not have it.
    sections = {name: one for name, one in read_recipe("repair").sections.items() if name != "filter"}
    sections["reformulate"] = [
        {"method": "replay", "name": "upper", "file": "upper.tsv"},
        {"method": "replay", "name": "rewrite", "file": "demo"},
    ]
    sections["select"] = {**sections["select"], "every": True}
    (tmp_path / "mine.toml").write_text(recipe_text(sections))
    assert published(askew_cli, store, "mine.toml", ())["left_out"] == 0
    upper = rows_of(tmp_path / "ds").filter(pl.col("method") == "upper").height
    (tmp_path / "ds").rename(tmp_path / "whole")
    assert published(askew_cli, store, "mine.toml")["left_out"] == upper > 50
    assert set(rows_of(tmp_path / "ds")["method"]) == {"rewrite"}
    shown = askew_cli(["publish", "mine.toml", "--out", "again", "--store", str(store), *WITHOUT]).out
    assert f"is false: {upper} pairs " in " ".join(shown.split())


@pytest.mark.parametrize("value", ['"no"', "0"])
def test_query_text_of_a_recipe_is_true_or_false(askew_cli, store, value):
    done = askew_cli(["publish", "demo", "--out", "ds", "--store", str(store), "--set", f"publish.query_text={value}"])
    assert done.code != 0
    assert "publish.query_text" in done.err


def test_training_says_that_the_texts_are_missing_and_how_to_join_them(askew_cli, store, tmp_path):
    published(askew_cli, store, "repair")
    agg = next((tmp_path / "ds" / "repair").glob("*.agg.all.tsv"))
    box = next((tmp_path / "ds" / "repair").glob("*.boxes/gold.tsv"))
    table = rows_of(tmp_path / "ds")
    for read in (
        lambda: read_built(tmp_path / "ds"),
        lambda: read_pairs(tmp_path / "ds", "gold"),
        lambda: read_pairs(agg, "gold"),
        lambda: read_pairs(box, "gold"),
        lambda: Selector().fit(table),
    ):
        with pytest.raises(DataError, match=r"query_text = false.* by query_id") as found:
            read()
        assert "\n" not in str(found.value)


def test_pairs_with_the_texts_joined_are_read_again(askew_cli, store, tmp_path):
    published(askew_cli, store, "repair")
    queries = demo_queries().rename({"text": "original_text"})
    joined = rows_of(tmp_path / "ds").drop("original_text").join(queries, on="query_id")
    joined.filter("gold").select("original_text", "text").write_csv(
        tmp_path / "pairs.tsv", separator="\t", include_header=False
    )
    pairs, left_out = read_pairs(tmp_path / "pairs.tsv", "gold")
    assert (pairs.height, dict(left_out)) == (joined.filter("gold").height, {})
