"""A store is opened as what it is: Dataset, Compare, the REST service and the published files have the same numbers."""

import html
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import polars as pl
import pytest
from fastapi.testclient import TestClient

import askew
from askew.core.errors import Note
from askew.core.groups import Groups
from askew.core.measure import pair_columns
from askew.core.store.store import Store
from askew.measures.requested import listed
from askew.report import markup as n
from askew.ui.explorer.opening import Sources, open_sources
from askew.ui.explorer.pairs import datasets
from askew.ui.explorer.searched import NO_FILES, OTHER_FILES
from askew.ui.web.app import create_app
from askew.ui.web.pages.parts import signed
from askew.ui.web.settings import Settings
from conftest import BASE, FREE

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
MEASURES = [
    "RR@10", "AP@10", "nDCG@5", "ARaB(tf,who=generic)@10", "ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10",
    "LexiconShare@10", "NFaiRR@10",
]  # fmt: skip
# Settings that nothing has by itself, so that whoever falls back to a default is found out.
RECIPE = f"""
[collection]
source = "demo"
[classify]
classifier = "lexical"
keep = ["neutral"]
[[reformulate]]
method = "reduce"
[[filter]]
filter = "rules"
[retrieve]
ranker = "bm25"
k1 = 1.7
b = 0.3
k = 40
index = {{analyzer = "plain"}}
[evaluate]
measures = {MEASURES!r}
[select]
selector = "refairmulate-paper"
effectiveness = "RR@10"
bias = "ARaB(tf)@10 ARaB(tc)@10 ARaB(bool)@10"
tolerance = 0.01
held_out = false
[publish]
license = "other"
contact = "nobody"
"""


def slice_of(name, folder, queries, documents):
    """Some queries of a collection, the documents judged for them and others, with two queries of the same words."""
    source = DATA / name
    if not source.is_dir():
        pytest.skip(f"needs {name} of the shared data")
    folder.mkdir()
    lines = {file: (source / file).read_text().splitlines() for file in ("queries.tsv", "qrels.txt", "docs.tsv")}
    asked = lines["queries.tsv"][:queries]
    ids = {line.split("\t")[0] for line in asked}
    judged = [line for line in lines["qrels.txt"] if line.split()[0] in ids]
    wanted = {line.split()[2] for line in judged}
    docs = [line for line in lines["docs.tsv"] if line.split("\t")[0] in wanted]
    docs += [line for line in lines["docs.tsv"][:documents] if line.split("\t")[0] not in wanted]
    # The same words under two ids, with other judgements: only the id says which is meant.
    first = next(line for line in asked if line.split("\t")[1].lower().startswith(("is ", "what ", "who ", "how ")))
    asked.append(f"twin\t{first.split(chr(9))[1]}")
    judged.append(f"twin 0 {docs[-1].split(chr(9))[0]} 1")
    for file, content in (("queries.tsv", asked), ("qrels.txt", judged), ("docs.tsv", docs)):
        (folder / file).write_text("\n".join(content) + "\n")
    return folder


@pytest.fixture(scope="module", params=["demo", "boolq", "squad_part"])
def built(request, tmp_path_factory):
    """A store of a collection, its service and its published files."""
    folder = tmp_path_factory.mktemp(request.param)
    collection = "demo"
    if request.param != "demo":
        collection = slice_of(request.param, folder / "collection", 260, 1500)
    (folder / "own.toml").write_text(RECIPE)
    made = askew.build(folder / "own.toml", collection, store=folder / "store")
    made.publish(folder / "published")
    app = create_app(Settings(Sources(store=folder / "store"), limits=FREE))
    with TestClient(app, base_url=BASE) as client:
        yield made, client, folder


def all_pairs(client):
    """Every pair as the REST service gives it, by variant."""
    found, page = {}, 1
    while page is not None:
        reply = client.get("/api/pairs", params={"page": page, "size": 200}).json()
        found |= {row["variant_id"]: row for row in reply["rows"]}
        page = reply["next"]
    return found


def values_of(comparison):
    old, new = ({one["measure"]: one["value"] for one in comparison[side]["values"]} for side in ("old", "new"))
    gains = comparison["gains"]
    return {name: {"old": old[name], "new": new[name], "gain": gains[name]} for name in old}


def test_every_number_and_verdict_is_the_same_in_dataset_compare_rest_and_the_published_files(built):
    made, client, folder = built
    pairs = all_pairs(client)
    assert pairs.keys() == set(made.table()["variant_id"])
    published = pl.concat([pl.read_parquet(file) for file in (folder / "published").rglob("*.parquet")], how="diagonal")
    released = {row["variant_id"]: row for row in published.iter_rows(named=True)}
    assert released.keys() <= pairs.keys() and len(released) > 5
    some = [pairs[name] for name in dict.fromkeys([*released, *pairs])][:120]
    assert len(some) > 50
    for row in some:
        asked = {"q": row["original_text"], "to": row["text"], "query_id": row["query_id"], "k": 1}
        compared = client.get("/api/compare", params=asked).json()
        assert values_of(compared) == row["measures"], row
        assert set(row["measures"]) == set(MEASURES)
        assert compared["outcome"] == row["outcome"]
        assert compared["lean_verdict"] == row["outcome"].partition("-")[2]
        told = released.get(row["variant_id"])
        for name, values in row["measures"].items() if told else ():
            assert list(values.values()) == [told[column] for column in pair_columns(name)]
        assert told is None or told["outcome"] == row["outcome"]


def test_a_link_of_dataset_leads_to_the_same_numbers_on_compare(built):
    _, client, _ = built
    pairs = {(row["query_id"], row["text"]): row for row in all_pairs(client).values()}
    links = [
        html.unescape(link)
        for link in re.findall(r'href="(/compare\?[^"]+)"', client.get("/pairs", params={"subset": "all"}).text)
    ]
    assert len(links) == 25
    for link in links[:10]:
        asked = parse_qs(urlparse(link).query)
        row = pairs[asked["query_id"][0], asked["to"][0]]
        page = client.get(link).text
        cells = re.findall(r'<th scope="row" class="code"><code>([^<]+)</code></th>(.*?)</tr>', page)
        assert [html.unescape(name) for name, _ in cells] == MEASURES
        for name, rest in cells:
            values = row["measures"][html.unescape(name)]
            shown = re.findall(r">([^<>▲▼]+)<", re.sub(r"<span aria-hidden.*?</span>", "", rest))
            assert shown == [n.mean(values["old"], 3), n.mean(values["new"], 3), signed(values["gain"])]


def test_the_foot_of_each_page_says_what_is_open_in_words(built):
    _, client, _ = built
    text = html.unescape(client.get("/").text)
    assert "recipe own." in text and "BM25 (k1 1.7, b 0.3, analyzer plain)" in text
    assert f"Groups {listed(['female', 'male'])}." in text


def test_what_is_measured_does_not_depend_on_how_many_results_are_shown(built):
    _, client, _ = built
    query = next(iter(all_pairs(client).values()))["original_text"]
    few, many = (client.get("/api/search", params={"q": query, "k": k}).json()["values"] for k in (1, 100))
    assert few == many


@pytest.fixture
def moved(tmp_path):
    """A store of a collection in files of its own."""
    demo = Path(askew.__file__).parent / "shipped" / "demo"
    (tmp_path / "collection").mkdir()
    for name in ("docs.tsv", "queries.tsv", "qrels.txt"):
        shutil.copy(demo / name, tmp_path / "collection" / name)
    (tmp_path / "own.toml").write_text(RECIPE)
    made = askew.build(tmp_path / "own.toml", tmp_path / "collection", store=tmp_path / "store")
    return made, tmp_path


def lean_of(explorer, row):
    found = explorer.compare(row["original_text"], row["text"], 1, row["query_id"])
    return found, {one.measure: one.value for one in found.new.values}


@pytest.mark.parametrize("change", ["gone", "judgements", "documents"])
def test_files_that_are_gone_or_changed_are_told_and_only_what_is_exact_is_shown(moved, change):
    made, folder = moved
    collection = folder / "collection"
    if change == "gone":
        shutil.rmtree(collection)
    elif change == "judgements":
        lines = (collection / "qrels.txt").read_text().splitlines()
        (collection / "qrels.txt").write_text("\n".join(lines[5:]) + "\n")
    else:
        (collection / "docs.tsv").write_text("d1\tshe is a nurse\n")
    opened = open_sources(Sources(store=folder / "store"))
    assert any(NO_FILES in note if change == "gone" else OTHER_FILES in note for note in opened.notes)
    assert len(opened.notes) == 1
    judged = change == "documents"
    for row in made.table().head(20).iter_rows(named=True):
        found, new = lean_of(opened.explorer, row)
        assert (found.outcome is not None) is judged and found.proxy is not judged
        assert new["ARaB(tf)@10"] == row["new_ARaB_tf_10"]
        assert ("RR@10" in new) is judged


def test_a_store_that_was_built_with_a_relative_path_opens_from_anywhere(moved, monkeypatch):
    _, folder = moved
    monkeypatch.chdir(folder)
    askew.build("own.toml", "collection", store="other")
    monkeypatch.chdir("/")
    opened = open_sources(Sources(store=folder / "other"))
    assert opened.notes == () and opened.explorer.searched.known.grades


def test_words_of_groups_are_those_that_the_store_was_built_with(moved):
    _, folder = moved
    (folder / "own.csv").write_text("nurse,care\nlawyer,law\n")
    recipe = RECIPE.replace("[classify]", f'[groups]\nlexicon = "{folder}/own.csv"\n[classify]')
    (folder / "groups.toml").write_text(recipe.replace("ARaB(tf,who=generic)@10", "RaB(tf)@10"))
    askew.build(folder / "groups.toml", folder / "collection", store=folder / "groups")
    before = open_sources(Sources(store=folder / "groups")).explorer.search("nurse")
    (folder / "own.csv").write_text("doctor,care\njudge,law\n")
    after = open_sources(Sources(store=folder / "groups")).explorer.search("nurse")
    assert before == after and before.setting.groups == ("law", "care")


def test_an_index_never_shows_the_pairs_of_the_demo(store, service):
    assert datasets(store)
    index = next(store.root.glob("index-bm25-*"))
    client = service(sources=Sources(index=index))
    assert client.get("/api/pairs").status_code == 400
    assert "no pairs" in client.get("/pairs").text


def test_pairs_of_another_plan_of_the_store_are_not_opened_beside_other_results(moved, service):
    _, folder = moved
    (folder / "two.toml").write_text(RECIPE.replace("k1 = 1.7", "k1 = 0.5"))
    askew.build(folder / "two.toml", folder / "collection", store=folder / "store")
    client = service(sources=Sources(store=folder / "store"))
    last, first = (f"{one.step}-{one.key}" for one in datasets(Store(folder / "store")))
    assert "/compare?" in client.get("/pairs", params={"dataset": last}).text
    assert "/compare?" not in client.get("/pairs", params={"dataset": first}).text


def test_groups_that_are_given_are_said_to_make_other_numbers(moved):
    _, folder = moved
    groups = Groups({"care": ["nurse"], "law": ["lawyer"]})
    opened = open_sources(Sources(store=folder / "store", groups=groups))
    assert {note.code: note.values for note in opened.notes if isinstance(note, Note)} == {
        "not-used": {"given": ["groups"]}
    }


def test_an_unjudged_query_has_no_verdict_on_effectiveness_in_rest(built):
    _, client, _ = built
    found = client.get("/api/compare", params={"q": "nurse and doctor", "to": "nurse"}).json()
    assert found["proxy"] and found["outcome"] is None and found["lean_verdict"] in ("less", "same", "more")
    found = client.get("/api/reformulate", params={"q": "is it a nurse or a doctor"}).json()
    assert found["proxy"] and all(one["outcome"] is None for one in found["candidates"])
