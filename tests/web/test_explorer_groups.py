"""The explorer counts the groups of the store it opens, or those it is given, and no others."""

import contextlib
import json
import os
import re
from types import SimpleNamespace

import anyio
import pytest
from fastapi.testclient import TestClient

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.store.store import Store
from askew.data.memory import run_in_memory
from askew.measures.mentions import Marker
from askew.measures.requested import listed
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.ui.cli.main import run
from askew.ui.explorer.answers import ShownMark, WarrantRules
from askew.ui.explorer.counting import counting_of
from askew.ui.explorer.opening import Sources, open_sources
from askew.ui.explorer.pairs import open_pairs
from askew.ui.explorer.plan import recorded_plan
from askew.ui.explorer.runs import audit
from askew.ui.web.app import create_app
from askew.ui.web.pages.parts import explained, lean_bar, legend
from askew.ui.web.settings import ServerLimits, Settings

FREE = ServerLimits(rate=1e6, burst=1_000_000)
QUERY = "exercise for elderly people"
# What must not be on a page of a collection whose queries and documents have none of these words.
GENDER = re.compile(
    r"gender|\b(?:fe)?males?\b|\bm[ae]n\b|\bwom[ae]n\b|\bs?he\b|rekabsaz|\bbodies\b|\bbirth\b|biology|breeding",
    re.IGNORECASE,
)
# Old comes first and no order is given, so that a difference is old minus young, as the first minus the second.
TWO = 'old = ["old", "elderly", "senior"]\nyoung = ["young", "teenager", "child"]'
THREE = TWO + '\nadult = ["adult", "adults", "worker"]'
DOCS = {
    "d1": "gentle exercise for elderly people and other senior people",
    "d2": "exercise plans for young people and every teenager",
    "d3": "elderly people and exercise: walking, swimming, a senior class",
    "d4": "a child needs exercise and sleep, a teenager too",
    "d5": "exercise at home for adult beginners, adults and workers",
    "d6": "healthy food for people of every age, old and young",
    "d7": "walking is good exercise for people",
    "d8": "swimming lessons for a child or an adult worker",
}


def write_collection(folder):
    folder.mkdir()
    (folder / "docs.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in DOCS.items()))
    (folder / "queries.tsv").write_text(f"q1\t{QUERY}\nq2\tswimming lessons\nq3\thealthy food for people\n")
    (folder / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d3 1\nq2 0 d8 1\nq3 0 d6 1\n")
    return folder


def recipe_text(collection, words, measures, selection):
    return f"""
[collection]
source = "{collection}"
[groups.words]
{words}
[[reformulate]]
method = "extract"
[[reformulate]]
method = "fairfeedback"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
k = 20
[evaluate]
measures = {json.dumps(measures)}
[select]
{selection}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Builds a store of a small collection for some words."""
    folder = tmp_path_factory.mktemp("age")
    collection = write_collection(folder / "collection")

    def build(name, words, measures, selection):
        (folder / f"{name}.toml").write_text(recipe_text(collection, words, measures, selection))
        store = Store(folder / name)
        prepare(read_recipe(folder / f"{name}.toml"), store).plan.run(store)
        return Sources(store=store.root, collection=str(collection))

    return build


@pytest.fixture(scope="module")
def two(made):
    selection = 'selector = "refairmulate-paper"\neffectiveness = "RR@5"\nbias = "ARaB(tc)@5"'
    return made("two", TWO, ["RR@5", "ARaB(tf)@5", "ARaB(tc)@5", "NFaiRR@5"], selection)


@pytest.fixture(scope="module")
def three(made):
    return made("three", THREE, ["RR@5", "NFaiRR@5"], 'selector = "boxes"\nmeasure = "RR@5"\nbias = "NFaiRR@5"')


@pytest.fixture(scope="module")
def served():
    with contextlib.ExitStack() as stack:
        yield lambda sources: stack.enter_context(
            TestClient(create_app(Settings(sources, limits=FREE)), base_url="http://127.0.0.1:8642")
        )


def everything(client):
    """What the pages and the REST service show, by address."""
    run_lines = "".join(f"q1 Q0 {doc} {rank} {9 - rank} t\nq3 Q0 {doc} {rank} {9 - rank} t\n"
                        for rank, doc in enumerate(["d2", "d4", "d6"], 1))  # fmt: skip
    other = run_lines.replace("d2", "d1")
    link = client.post("/runs", files=[("files", ("a.run", run_lines)), ("files", ("b.run", other))])
    assert link.status_code == 200, link.text
    scores = {"mine": {"q1": {"d1": 2.0, "d2": 1.0}}, "yours": {"q1": {"d2": 2.0, "d1": 1.0}}}
    asked = {"q": QUERY, "to": "exercise people"}
    replies = {
        "runs": link,
        "measured": client.post("/api/measure", json={"runs": scores}),
        "batch": client.post("/api/reformulate", json={"queries": [QUERY]}),
        **{path: client.get(path, params=asked) for path in (
            "/", "/compare", "/api/search", "/api/reformulate", "/api/compare", "/api/measure")},
        **{path: client.get(path) for path in (
            "/", "/pairs", "/runs", "/audit", "/plan", "/logs", "/api/pairs", "/openapi.json")},
        "search": client.get("/", params={"q": QUERY, "reformulations": "now"}),
        "reformulations": client.get("/reformulations", params={"q": QUERY}),
        "verdict": client.get("/verdict", params=asked),
    }  # fmt: skip
    assert {name: reply.status_code for name, reply in replies.items()} == dict.fromkeys(replies, 200)
    return {name: reply.text for name, reply in replies.items()}


def tools_say(sources):
    """What a language model is told: the instructions, the tools, and an answer of each."""
    pytest.importorskip("mcp", reason="the tools for a language model need the extra web")
    from mcp import Client

    from askew.ui.web.mcp import make_server

    async def go():
        async with Client(make_server(sources)) as client:
            answers = [await client.call_tool(name, {"query": QUERY}) for name in ("search", "reformulate", "measure")]
            tools = [tool.model_dump_json() for tool in (await client.list_tools()).tools]
            return [client.instructions, *tools, *(json.dumps(one.structured_content) for one in answers)]

    return anyio.run(go)


@pytest.mark.parametrize("name", ["two", "three"])
def test_an_explorer_of_other_groups_says_nothing_of_gender(request, served, name):
    found = everything(served(request.getfixturevalue(name)))
    assert {place: said for place, text in found.items() if (said := GENDER.findall(text))} == {}
    for group in ("old", "young"):
        assert f">{group}</mark>" in found["search"] and f'"{group}"' in found["/api/search"]


@pytest.mark.parametrize("name", ["two", "three"])
def test_the_tools_of_other_groups_say_nothing_of_gender(request, name):
    assert GENDER.search("\n".join(tools_say(request.getfixturevalue(name)))) is None


def test_a_store_is_opened_with_the_groups_and_measures_of_its_recipe(two):
    found = open_sources(two).explorer
    assert [one.text for one in found.scorer.asked] == ["RR@5", "ARaB(tf)@5", "ARaB(tc)@5", "NFaiRR@5"]
    assert (found.effectiveness, found.lean) == ("RR@5", "ARaB(tc)@5")
    assert found.search(QUERY).mentions == {"young": 5, "old": 5}
    assert found.search(QUERY).warrant.groups == ("old",)


def test_the_sign_of_an_explorer_is_that_of_its_build(two):
    store = Store(two.store)
    scores = next(one for one in store.steps() if one.stage == "evaluate")
    assert "groups='old-young'" in scores.settings["measures"]["ARaB(tc)@5"]
    found = open_sources(two).explorer
    signatures = {one.text: one.signature for one in found.scorer.asked}
    assert signatures["ARaB(tc)@5"] == scores.settings["measures"]["ARaB(tc)@5"]
    assert found.setting.groups == ("young", "old") and found.setting.signed
    assert found.setting.sign == "ARaB(tc)@5: positive leans toward old, negative toward young; 0 is balanced."
    page = found.search("elderly people", 1)
    assert next(one.value for one in page.values if one.measure == "ARaB(tc)@5") > 0


def test_groups_and_measures_that_are_given_win(two):
    given = Groups({"walk": ["walking"], "swim": ["swimming"]})
    found = open_sources(Sources(two.store, collection=two.collection, groups=given, measures=("AP@3", "RaB(tc)@3")))
    assert found.explorer.search("swimming", 5).mentions == {"walk": 1, "swim": 2}
    assert (found.explorer.effectiveness, found.explorer.lean) == ("AP@3", "RaB(tc)@3")
    assert found.explorer.setting.groups == ("swim", "walk")


def test_recorded_measures_that_cannot_compare_given_groups_are_left_out_and_told(two):
    given = Groups({"a": ["walking"], "b": ["swimming"], "c": ["food"]})
    found = open_sources(Sources(two.store, collection=two.collection, groups=given))
    assert [one.text for one in found.explorer.scorer.asked] == ["RR@5", "NFaiRR@5"]
    left_out = [note.values for note in found.notes if getattr(note, "code", "") == "measure-left-out"]
    assert {"measure": "ARaB(tc)@5", "groups": ("a", "b", "c")} in left_out


def test_a_recipe_that_is_given_brings_its_methods_and_the_store_keeps_its_groups(two, three, tmp_path):
    text = (three.store.parent / "three.toml").read_text()
    (tmp_path / "other.toml").write_text(text.replace('[[reformulate]]\nmethod = "extract"\n', ""))
    found = open_sources(Sources(two.store, collection=two.collection, recipe=str(tmp_path / "other.toml"))).explorer
    assert found.setting.groups == ("young", "old") and list(found.searched.methods) == ["fairfeedback", "reduce"]
    index = next(two.store.glob("index-bm25-*"))
    assert open_sources(Sources(index=index, recipe=str(tmp_path / "other.toml"))).groups.names == (
        "old", "young", "adult"
    )  # fmt: skip


def test_the_recipe_of_the_steps_finished_last_is_the_recorded_one(two, three, tmp_path):
    store = Store(tmp_path)
    assert recorded_plan(store) is None
    for number, name in enumerate(["three", "two", "three"]):
        outcomes = prepare(read_recipe(two.store.parent / f"{name}.toml"), store).plan.run(store)
        for one in outcomes.values():
            folder = store.folder(one.manifest.step, one.manifest.key)
            os.utime(folder / "manifest.json", (number, number))
        assert recorded_plan(store).recipe.name == name


def test_runs_are_measured_by_the_groups_and_measures_of_the_explorer(two):
    explorer = open_sources(two).explorer
    found = audit({"mine": run_in_memory({"q1": {"d1": 3.0, "d2": 2.0, "d7": 1.0}}, "mine")}, explorer)
    assert found.measures == ["RR@5", "ARaB(tf)@5", "ARaB(tc)@5", "NFaiRR@5"]
    assert found.report.runs[0].values["ARaB(tc)@5"][0] == pytest.approx(2 / 3)
    assert "old-young" in found.asked("ARaB(tc)@5").signature


def test_the_demo_can_be_looked_at_with_other_groups(served):
    groups = Groups({"city": ["city", "cities"], "country": ["village", "farm"]})
    client = served(Sources(groups=groups))
    asked = client.get("/api/reformulate", params={"q": "how to become a nurse"}).json()
    assert asked["setting"]["groups"] == ["country", "city"] and "swap" not in {
        one["method"] for one in asked["candidates"]
    }
    text = client.get("/pairs").text
    assert open_pairs(open_sources(Sources(groups=groups)).store).manifest.rows_out > 0
    assert not re.search("gender|rekabsaz|female", text)


def test_a_measure_with_a_lexicon_of_its_own_says_which_groups_methods_count(tmp_path):
    path = tmp_path / "age.csv"
    path.write_text("old,old\nelderly,old\nyoung,young\n")
    found = counting_of(measures=[f"ARaB(tf,lexicon='{path}')@10"])
    assert found.groups is None and set(found.named.names) == {"old", "young"}
    assert counting_of(measures=["ARaB(tf)@10"]).named is None
    with pytest.raises(ConfigError, match="measures="):
        counting_of(measures=["RR@10"])


def test_a_store_whose_file_of_words_is_gone_opens_with_the_words_it_was_built_with(two, tmp_path):
    words = tmp_path / "age.csv"
    words.write_text("old,old\nyoung,young\n")
    recipe = read_recipe(two.store.parent / "two.toml")
    store = Store(tmp_path / "store")
    prepare(Recipe("lost", {**recipe.sections, "groups": {"lexicon": str(words)}}), store).plan.run(store)
    words.unlink()
    assert open_sources(Sources(store.root)).explorer.marker.lexicon.groups == {"old": ("old",), "young": ("young",)}
    assert open_sources(Sources(store.root, groups=Groups({"a": ["young"], "b": ["old"]}))).explorer


def test_where_the_words_of_a_tokenizer_cannot_be_marked_that_is_told(two):
    groups = Groups({"old": ["old", "elderly"], "young": ["young"]}, tokens="seyedsalehi")
    found = open_sources(Sources(two.store, groups=groups))
    assert found.explorer.search("elderly people", 1).mentions == {"old": 1, "young": 0}
    assert any("tokens of seyedsalehi cannot be marked" in note for note in found.notes)


def test_rules_of_warrant_are_only_for_the_groups_they_were_written_for(two, served):
    age = WarrantRules(Groups({"old": ["old"], "young": ["young"]})).look("prostate screening for old henry")
    assert (age.words, age.reasons, age.rules, age.status) == (("old",), (), (), "no rules")
    own = WarrantRules(Groups({"female": ["lady"], "male": ["lad"]})).look("prostate screening for a lad")
    assert own.words == ("lad",) and own.status == "warranted"
    assert served(two).get("/api/search", params={"q": QUERY}).json()["warrant"]["rules"] == []
    assert 'class="notice plain"' in served(two).get("/", params={"q": QUERY}).text


def test_a_word_of_a_group_that_is_not_compared_is_not_marked():
    groups = Groups({"old": ["old"], "young": ["young"], "adult": ["old hand"]}, ["old", "young"])
    marker = Marker(groups.lexicon, names=groups.names)
    assert [mark.start for mark in marker.find("old hand, old or young")] == [10, 17]
    assert marker.count(marker.find("old hand")) == {"old": 0, "young": 0}


def drawn(*groups, signed=False):
    return SimpleNamespace(groups=groups, signed=signed, lexicon="own", sign="S")


def test_each_of_many_groups_has_a_color_and_a_name():
    setting = drawn("a", "b", "c")
    marks = [ShownMark(0, 1, ("a",)), ShownMark(1, 2, ("b",)), ShownMark(2, 3, ("c",)), ShownMark(3, 4, ("a", "b"))]
    assert re.findall('class="(.*?)"', explained("abcd", marks, setting)) == ["g1", "g2", "g3", "several"]
    bar = lean_bar({"a": 5, "b": 5, "c": 10}, setting)
    assert [float(x) for x in re.findall(r'fill-g\d" x="([\d.]+)"', bar)] == [0, 50, 100]
    assert 'aria-label="5 a, 5 b, 10 c words"' in bar and "middle" not in bar
    assert re.findall('<mark class="(.*?)">(.*?)</mark>', legend(setting)) == [("g1", "a"), ("g2", "b"), ("g3", "c")]
    assert "<code>own</code>" in legend(setting) and legend(setting).endswith(". S</p>")
    assert listed(["a"]) == "a" and re.findall('<mark class="(.*?)">(.*?)</mark>', legend(drawn("a"))) == [("g1", "a")]


def edges(bar):
    found = re.findall(r'fill-g\d" x="([\d.]+)" y="0" width="([\d.]+)"', bar)
    return [(float(start), float(start) + float(width)) for start, width in found]


def test_a_bar_of_more_words_than_fit_is_full_and_names_the_true_numbers():
    three = lean_bar({"a": 30, "b": 10, "c": 40}, drawn("a", "b", "c"))
    assert edges(three) == [(0, 75), (75, 100), (100, 200)] and 'aria-label="30 a, 10 b, 40 c words"' in three
    two = lean_bar({"a": 30, "b": 5}, drawn("a", "b"))
    assert edges(two) == [(0, 100), (100, 150)] and 'aria-label="30 a, 5 b words"' in two


def test_a_lean_without_a_sign_is_drawn_without_sides(three, served):
    text = served(three).get("/", params={"q": QUERY, "reformulations": "now"}).text
    assert "NFaiRR@5 (higher is better)" in text and "← " not in text
    assert "NFaiRR@5 compares old, young and adult; higher is better." in text


def test_the_command_takes_groups_a_lexicon_and_measures(monkeypatch, tmp_path):
    taken = []
    monkeypatch.setattr("askew.ui.web.server.serve", lambda settings, *more: taken.append(settings.sources))
    words = tmp_path / "age.csv"
    words.write_text("old,old\nyoung,young\nadult,adult\n")
    given = ["serve", "--lexicon", str(words), "--groups", "old,young", "--measures", "RR@5 ARaB(tf)@5"]
    assert run(given) == 0
    assert taken[0].groups.names == ("old", "young") and taken[0].measures == ("RR@5", "ARaB(tf)@5")
    assert run(["serve"]) == 0 and (taken[1].groups, taken[1].measures, taken[1].recipe) == (None, None, None)
