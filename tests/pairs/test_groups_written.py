"""What a build of other groups writes names these groups, and no word of the published ones."""

import json
import re
import tomllib

import polars as pl
import pytest

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.lexicon import load_lexicon
from askew.core.store.store import Store
from askew.pairs.build import build, plan
from askew.pairs.plan import remembered_groups
from askew.pairs.recipe import Recipe, groups_of, read_recipe, recipe_text

QUERIES = {
    f"q{i}": f"{topic} advice for everyone"
    for i, topic in enumerate(("housing", "exercise", "music", "travel", "cooking", "savings", "reading", "sleep"))
}
# Who is named in the documents of a topic, by rank.
NAMED = ("elderly people", "young people", "the elderly", "teenagers", "a committee")
GENDERED = re.compile(r"male|female|gender|\bwomen|rekabsaz")


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collection")
    docs, judged = [], []
    for number, (query, text) in enumerate(QUERIES.items()):
        topic = text.split()[0]
        for rank in range(len(NAMED)):
            who = NAMED[(rank + number) % len(NAMED)]
            docs.append(f"{query}-{rank}\t{' '.join([topic] * (5 - rank))} advice written for {who} and everyone")
        judged.append(f"{query} 0 {query}-{number % 3} 1")
    (folder / "docs.tsv").write_text("\n".join(docs) + "\n")
    (folder / "queries.tsv").write_text("".join(f"{query}\t{text}\n" for query, text in QUERIES.items()))
    (folder / "qrels.txt").write_text("\n".join(judged) + "\n")
    return folder


@pytest.fixture(scope="module")
def written(collection, tmp_path_factory):
    """The folder of a report and that of a dataset, with groups old and young."""
    measures = ["RR@10", "ARaB(tf)@10", "LexiconShare@10", "NFaiRR@10"]
    recipe = Recipe("ages", {
        "title": "Ages", "about": "A recipe for a test.",
        "collection": {"source": str(collection)},
        "groups": {"lexicon": "age", "names": ["old", "young"]},
        "reformulate": [{"method": "reduce"}, {"method": "stem.porter"}],
        "retrieve": {"ranker": "bm25", "k": 10},
        "evaluate": {"measures": measures},
        "select": {"selector": "refairmulate", "bias": "ARaB(tf)@10 LexiconShare@10"},
        "publish": {"title": "Pairs by age", "license": "cc0-1.0", "contact": "Data desk", "homepage": "https://e.org"},
    })  # fmt: skip
    folder = tmp_path_factory.mktemp("written")
    pairs = build(recipe, store=folder / "store")
    pairs.report(folder / "report", latex=True, figures=["svg"])
    pairs.publish(folder / "dataset")
    return folder


def test_the_report_and_the_dataset_have_no_word_of_other_groups(written):
    files = [path for part in ("report", "dataset") for path in sorted((written / part).rglob("*")) if path.is_file()]
    assert {path.suffix for path in files} >= {".html", ".csv", ".tex", ".md", ".json", ".tsv", ".parquet"}
    for path in files:
        text = path.read_bytes().decode() if path.suffix != ".parquet" else pl.read_parquet(path).write_csv()
        found = GENDERED.search(text.lower())
        assert found is None, (path.name, text[max(0, found.start() - 80) : found.end() + 80])


def test_the_facts_the_card_and_the_metadata_name_the_groups_with_license_and_source(written):
    lexicon, folder = load_lexicon("age"), written / "dataset"
    facts = json.loads((folder / "askew.json").read_text())["facts"]
    stated = {"id": lexicon.id, "groups": ["young", "old"], "license": lexicon.license, "source": lexicon.source}
    assert facts["lexicons"] == [stated]
    card = (folder / "README.md").read_text()
    assert f"| `{lexicon.id}` | young, old | `{lexicon.license}` | {lexicon.source}" in card.replace("&#59;", ";")
    metadata = json.loads((folder / "croissant.json").read_text())
    assert f"{lexicon.id} (groups young, old; license {lexicon.license};" in metadata["rai:dataAnnotationProtocol"]
    page = (written / "report" / "report.html").read_text()
    assert f"young, old (lexicon {lexicon.id})" in page
    assert "these groups: young, old." in page


def test_what_the_recipe_says_of_the_dataset_is_in_the_card_the_metadata_and_the_facts(written):
    folder = written / "dataset"
    facts = json.loads((folder / "askew.json").read_text())["facts"]
    assert (facts["title"], facts["description"]) == ("Pairs by age", "A recipe for a test.")
    assert (facts["license"], facts["contact"], facts["homepage"]) == ("cc0-1.0", "Data desk", "https://e.org")
    assert tomllib.loads(facts["recipe"])["publish"]["title"] == "Pairs by age"
    metadata = json.loads((folder / "croissant.json").read_text())
    assert (metadata["name"], metadata["license"], metadata["url"]) == ("Pairs by age", "cc0-1.0", "https://e.org")
    assert metadata["rai:dataReleaseMaintenancePlan"].endswith("Contact: Data desk")
    card = (folder / "README.md").read_text()
    assert 'pretty_name: "Pairs by age"\nlicense: cc0-1.0\n' in card
    assert "\nContact: Data desk\n" in card


def test_the_columns_are_identifiers_and_the_same_in_the_store_and_the_dataset(written):
    stored = pl.concat([pl.read_parquet(path) for path in sorted((written / "store").glob("pairs-*/*.parquet"))])
    released = pl.concat([pl.read_parquet(path) for path in sorted((written / "dataset/data").glob("*.parquet"))])
    assert all(name.isidentifier() for name in (*stored.columns, *released.columns))
    assert set(released.columns) - set(stored.columns) == set()
    assert {"old_RR_10", "new_ARaB_tf_10", "gain_LexiconShare_10"} <= set(released.columns)
    both = ["query_id", "variant_id", "gain_RR_10", "new_ARaB_tf_10"]
    assert released.select(both).join(stored.select(both), on=both, how="anti").is_empty()
    scores = pl.concat([pl.read_parquet(path) for path in sorted((written / "store").glob("scores-*/*.parquet"))])
    assert {"RR_10", "ARaB_tf_10", "LexiconShare_10", "NFaiRR_10"} <= set(scores.columns)


def recipe_of(collection, bias):
    return Recipe("ages", {
        "collection": {"source": str(collection)},
        "groups": {"lexicon": "age", "names": ["old", "young"]},
        "reformulate": [{"method": "reduce"}],
        "retrieve": {"ranker": "bm25", "k": 10},
        "evaluate": {"measures": ["RR@10", "ARaB(tf)@10", "ARaB(tf,who=generic)@10"]},
        "select": {"selector": "refairmulate", "bias": bias, "agreeing": 1},
    })  # fmt: skip


def test_a_build_of_other_groups_states_the_sign_and_which_measures_rely_on_a_model_of_other_groups(
    collection, tmp_path
):
    named = "ARaB(tf,who=generic,resolver=neural)@10"
    recipe = recipe_of(collection, named)
    recipe.sections["evaluate"]["measures"].append(named)
    pairs = build(recipe, store=tmp_path / "store")
    assert "ARaB(tf)@10: positive leans toward old, negative toward young; 0 is balanced." in pairs.notes
    (found,) = [note for note in pairs.notes if "other groups" in note]
    assert found.startswith(f"{named}: ") and found.endswith(" in select.bias")
    assert pairs.build.select.selector.measures()[1:] == (named,)


def test_a_build_of_the_published_groups_has_no_such_notes(collection, tmp_path):
    recipe = recipe_of(collection, "ARaB(tf)@10")
    sections = {name: value for name, value in recipe.sections.items() if name != "groups"}
    notes = build(Recipe("plain", sections), store=tmp_path / "store").notes
    assert not [note for note in notes if "positive leans" in note or "other groups" in note]


AGES = Groups.load("age", ["old", "young"])
GENERIC = [f"ARaB({kind},who=generic)@10" for kind in ("tf", "tc", "bool")]
PLAIN = [f"ARaB({kind})@10" for kind in ("tf", "tc", "bool")]


def measured(ready):
    """The measures of a planned build, those that select, and what its store would record of both."""
    recorded = ready.recipe.sections
    assert [one.text for one in ready.evaluate.asked] == recorded["evaluate"]["measures"]
    return recorded["evaluate"]["measures"], list(ready.select.selector.measures())


@pytest.mark.parametrize("name", ["demo", "refairmulate"])
@pytest.mark.parametrize(
    "given", [{"groups": AGES}, {"settings": {"groups": {"lexicon": "age", "names": ["old", "young"]}}}]
)
def test_a_shipped_recipe_does_not_rely_on_a_model_of_other_groups(name, given, tmp_path):
    ready, _ = plan(name, store=tmp_path, **given)
    measures, select = measured(ready)
    assert select == ["RR@10", *PLAIN] and set(PLAIN) < set(measures) and len(set(measures)) == len(measures)
    assert not [text for text in measures if "who=" in text]
    assert not [note for note in ready.notes if "other groups" in note]


@pytest.mark.parametrize(
    "groups",
    [
        None,
        Groups.load("gender"),
        Groups.load("gender", ["male", "female"]),
        {"female": ["actress"], "male": ["actor"]},
    ],
)
def test_a_shipped_recipe_keeps_its_measures_for_the_groups_that_the_model_knows(groups, tmp_path):
    ready, _ = plan("demo", groups=groups, store=tmp_path)
    assert measured(ready) == (read_recipe("demo").table("evaluate")["measures"], ["RR@10", *GENERIC])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"select": {"bias": " ".join(GENERIC)}},
        {"evaluate": {"measures": ["RR@10", *GENERIC]}},
        {"evaluate": {"measures": ["AP@10", *GENERIC]}, "select": {"effectiveness": "AP@10"}},
    ],
)
def test_every_measure_of_people_in_general_counts_all_mentions_of_other_groups_and_a_note_says_so(settings, tmp_path):
    ready, _ = plan("demo", groups=AGES, settings=settings, store=tmp_path)
    assert measured(ready)[1][1:] == PLAIN
    (note,) = [note for note in ready.notes if "who=" in note]
    assert note.code == "without-who" and note.values["measures"] == tuple(GENERIC)


@pytest.mark.usefixtures("all_mentions")
def test_without_a_resolver_all_mentions_decide_and_a_note_says_so(tmp_path):
    ready, _ = plan("demo", store=tmp_path)
    assert measured(ready)[1][1:] == PLAIN and not any("who=" in text for text in ready.evaluate.directions)
    (note,) = [note for note in ready.notes if "who=" in note]
    assert note.code == "without-who" and "all mentions decide" in note


def test_a_recipe_that_names_the_removed_resolver_is_refused(tmp_path):
    named = {"evaluate": {"measures": ["RR@10", "ARaB(tf,who=generic,resolver=light)@10"]}}
    with pytest.raises(ConfigError) as caught:
        plan("demo", settings=named, store=tmp_path)
    assert caught.value.code == "removed"


def test_the_default_measures_of_a_selector_do_not_rely_on_a_model_of_other_groups(collection, tmp_path):
    sections = dict(recipe_of(collection, "").sections)
    sections["select"] = {"selector": "refairmulate"}
    sections["evaluate"] = {"measures": ["RR@10", *PLAIN, *GENERIC]}
    ready, _ = plan(Recipe("ages", sections), store=tmp_path)
    assert measured(ready)[1] == ["RR@10", *PLAIN] and ready.recipe.table("select")["bias"] == " ".join(PLAIN)
    plain = {name: value for name, value in sections.items() if name != "groups"}
    ready, _ = plan(Recipe("plain", plain), store=tmp_path)
    assert measured(ready)[1] == ["RR@10", *GENERIC] and "bias" not in ready.recipe.table("select")


def test_a_dataset_states_the_origin_of_a_lexicon_file(collection, tmp_path):
    words = tmp_path / "ranks.toml"
    words.write_text(
        'language = "en"\ntitle = "Ages in talks"\nsource = "our own list"\nlicence = "CC0-1.0"\n'
        '[groups]\nold = ["elderly"]\nyoung = ["young", "teenagers"]\n'
    )
    recipe = Recipe("ages", {
        "collection": {"source": str(collection)}, "reformulate": [{"method": "stem.porter"}],
        "retrieve": {"ranker": "bm25", "k": 10}, "evaluate": {"measures": ["RR@10", "ARaB(tf)@10"]},
        "select": {"selector": "refairmulate", "bias": "ARaB(tf)@10", "agreeing": 1},
    })  # fmt: skip
    store = tmp_path / "store"
    pairs = build(recipe, groups=str(words), store=store)
    pairs.publish(tmp_path / "dataset")
    facts = json.loads((tmp_path / "dataset" / "askew.json").read_text())["facts"]
    (lexicon,) = facts["lexicons"]
    assert (lexicon["id"].partition("@")[0], lexicon["source"]) == ("ranks", "our own list")
    assert lexicon["license"] == "CC0-1.0"
    (plan,) = Store(store).plans()
    again = remembered_groups(plan["groups"])
    assert again.lexicon == load_lexicon(words)


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ({"lexicon": "age", "source": "mine"}, "'groups.source' needs"),
        ({"words": {"old": ["elderly"]}, "source": 3}, "found 3"),
    ],
)
def test_what_is_said_about_words_needs_words_and_is_a_text(groups, problem):
    with pytest.raises(ConfigError, match=problem):
        groups_of(Recipe("own", {"groups": groups}))


@pytest.mark.parametrize("name", ["refairmulate", "demo"])
def test_a_copy_of_a_shipped_recipe_plans_the_steps_of_the_recipe(tmp_path, name):
    (tmp_path / "mine.toml").write_text(recipe_text(name)[1])
    given = {"groups": {"old": ["old"], "young": ["young"]}, "store": tmp_path / "store"}
    own = {} if name == "demo" else {"settings": {"collection": {"source": "demo"}}}
    (shipped, _), (copied, _) = (plan(one, **given, **own) for one in (name, tmp_path / "mine.toml"))
    assert copied.plan.keys() == shipped.plan.keys()
    assert not any("who=" in text for text in copied.evaluate.directions)
    (tmp_path / "mine.toml").write_text(recipe_text(name)[1].replace('"LexiconShare@10"', '"LexiconShare@5"'))
    changed, _ = plan(tmp_path / "mine.toml", **given, **own)
    assert "LexiconShare@5" in changed.evaluate.directions
    assert not any("who=" in text for text in changed.evaluate.directions)
