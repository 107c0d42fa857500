"""askew report: a page that stands alone, the same each time, with every table, and hostile texts as texts."""

import csv
import dataclasses
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import polars as pl
import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from askew.core.errors import AskewError, ConfigError
from askew.core.store.steps import Plan, Step
from askew.core.store.store import Store
from askew.pairs.build import Pairs
from askew.pairs.figures import Results
from askew.pairs.gains import parts_of
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe
from askew.pairs.report import DECIDES, TWIN, UNUSED, effect_of, roles_of
from askew.pairs.stages import NO_ORIGINAL
from askew.ui.cli.build import report_command

HOSTILE = "<script>alert(1)</script> nurse"
DOCS = [
    "the nurse said she likes her work", "a nurse he met said he likes his work", "nurse pay and hours of work",
    "the doctor told him that he was ill", "a doctor and her patients she helps", "doctor pay and hours of work",
    "football for him and his sons", "football for her and her daughters", "football rules and the field",
]  # fmt: skip
QUERIES = {"q1": HOSTILE, "q2": 'doctor "onload="alert(1)', "q3": "football \u202eslles\u202c", "q4": "nurse work"}
CANDIDATES = [
    ("q1", "nurse pay hours"), ("q1", "<img src=x onerror=alert(1)> nurse she"), ("q2", "doctor pay"),
    ("q2", "doctor patients she"), ("q3", "football rules field"), ("q3", "football sons"), ("q4", "nurse pay"),
]  # fmt: skip
SELECTIONS = {
    "refairmulate": {"selector": "refairmulate-paper", "bias": "ARaB(tf)@10"},
    "boxes": {"selector": "boxes", "measure": "RR@10", "bias": "ARaB(tf)@10"},
    "plain boxes": {"selector": "boxes", "measure": "RR@10", "boxes": "close: refined >= 0.5 * original"},
}

SVG = "http://www.w3.org/2000/svg"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("toy")
    (place / "docs.tsv").write_text("".join(f"d{i}\t{text}\n" for i, text in enumerate(DOCS)))
    (place / "queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    judged = {"q1": 2, "q2": 5, "q3": 8, "q4": 2}
    (place / "qrels.txt").write_text("".join(f"{query} 0 d{doc} 1\n" for query, doc in judged.items()))
    lines = [f"{query}\t{text}\n" for query, text in CANDIDATES]
    (place / "candidates.tsv").write_text("query_id\ttext\n" + "".join(lines))
    return place


def sections(folder, selection, ranker="bm25"):
    return {
        "title": "Toy <b>title</b>", "about": "What </title> it is.", "collection": {"source": str(folder)},
        "reformulate": [{"method": "replay", "file": str(folder / "candidates.tsv")}, {"method": "reduce"}],
        "retrieve": {"ranker": ranker, "k": 10},
        "evaluate": {"measures": ["RR@10", "AP@10", "ARaB(tf)@10", "NFaiRR@10"]}, "select": selection,
    }  # fmt: skip


def built(folder, store, selection="refairmulate", cross=()):
    chosen = SELECTIONS[selection]
    build = prepare(Recipe("toy", sections(folder, chosen)), store)
    steps = list(build.plan.steps)
    for ranker in cross:
        others = {
            one.name: one.stage for one in prepare(Recipe("toy", sections(folder, chosen, ranker)), store).plan.steps
        }
        steps += [Step(f"runs-{ranker}", others["runs"], "kept"),
                  Step(f"cross-{ranker}", others["scores"], f"runs-{ranker}")]  # fmt: skip
    build = dataclasses.replace(build, plan=Plan(build.plan.sources, steps))
    return build, build.plan.run(store)


@pytest.fixture(scope="module")
def store(folder):
    return Store(folder / "store")


def reported(folder, store, out, selection="refairmulate", cross=(), **options):
    build, outcomes = built(folder, store, selection, cross)
    return Pairs(build, store, outcomes).report(out, **options)


class Seen(HTMLParser):
    """What a browser would see."""

    def __init__(self, text):
        super().__init__()
        self.names, self.attributes, self.captions, self.words = [], [], [], []
        self._caption = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        self._caption = self._caption or tag == "caption"

    def handle_endtag(self, tag):
        self._caption = self._caption and tag != "caption"

    def handle_data(self, data):
        self.words.append(data)
        if self._caption:
            self.captions.append(data)


@pytest.fixture(scope="module")
def page(folder, store, tmp_path_factory):
    done = reported(folder, store, tmp_path_factory.mktemp("out"), cross=("qld",))
    return done.html.read_text(encoding="utf-8")


def test_hostile_texts_are_texts_wherever_they_stand(page):
    seen = Seen(page)
    assert not {"script", "img", "b", "iframe", "object", "link"} & set(seen.names)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "style")]
    assert seen.names.count("title") == 1 + page.count('role="img"')
    assert HOSTILE in seen.words
    assert "Toy <b>title</b>: report" in seen.words
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page)


def test_the_page_stands_alone_and_is_well_formed(page):
    assert set(re.findall(r"https?://[^\s\"'<]+|@import|url\(", page)) <= {SVG}
    read = ElementTree.fromstring(page)
    ids = [element.get("id") for element in read.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in read.iter():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set((element.get(name) or "").split()) <= set(ids)


def test_every_table_has_a_caption_and_every_picture_a_title_and_a_description(page):
    read = ElementTree.fromstring(page)
    tables = list(read.iter("table"))
    assert len(tables) >= 7
    assert all(table.find("caption") is not None and table.find("thead") is not None for table in tables)
    assert all(cell.get("scope") for table in tables for cell in table.iter("th"))
    svg = f"{{{SVG}}}"
    pictures = list(read.iter(f"{svg}svg"))
    assert len(pictures) >= 4
    for picture in pictures:
        assert picture.find(f"{svg}title").text and picture.find(f"{svg}desc").text


def test_the_held_out_figures_come_before_the_in_sample_ones(page):
    said = " ".join(Seen(page).captions)
    assert said.index("Held-out means") < said.index("In-sample means")
    said = " ".join(Seen(page).words)
    assert 'column "random"' in said
    # Held out, in-sample, all candidates.
    first = next(text for text in Seen(page).words if text.startswith("In the subset fair, "))
    assert len(re.findall(r" by [+\N{MINUS SIGN}]\d+\.\d%", first)) == 3


def test_the_head_says_what_was_chosen_by_what_and_what_is_reported_only(page):
    said = " ".join(Seen(page).words)
    # Each query has one relevant document, so that AP says what RR says.
    roles = re.search(r"The selector refairmulate-paper .* by (\S+ and \S+)\. .*: (\S+)\. .*: (\S+)\.", said)
    assert roles and roles.groups() == ("RR@10 and ARaB(tf)@10", "AP@10", "NFaiRR@10")
    assert "*: pairs were chosen" in said


def test_the_means_of_the_page_are_those_of_the_summary(folder, store, tmp_path):
    build, outcomes = built(folder, store)
    results = Pairs(build, store, outcomes)
    results.report(tmp_path / "r")
    expected = results.in_sample
    assert pl.read_csv(tmp_path / "r/tables/subsets.csv").equals(pl.read_csv(expected.write_csv().encode()))
    with (tmp_path / "r/tables/steps.csv").open() as lines:
        steps = {row["step"]: row for row in csv.DictReader(lines)}
    for name, outcome in outcomes.items():
        assert (steps[name]["key"], int(steps[name]["rows_out"])) == (outcome.manifest.key, outcome.manifest.rows_out)
        assert int(steps[name]["dropped"]) == sum(outcome.manifest.dropped.values())


def test_the_same_store_gives_the_same_bytes(folder, store, tmp_path):
    first, second = (reported(folder, store, tmp_path / name, figures=["svg"], latex=True) for name in "ab")
    assert [path.name for path in first.files] == [path.name for path in second.files]
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_files_come_on_request_and_no_query_text_is_in_tables(folder, store, tmp_path):
    done = reported(folder, store, tmp_path / "r")
    assert {path.suffix for path in done.files} == {".html", ".csv"}
    done = reported(folder, store, tmp_path / "r", figures=["svg"], latex=True)
    assert {path.suffix for path in done.files} == {".html", ".csv", ".svg", ".tex"}
    for path in done.files:
        if path.suffix == ".svg":
            ElementTree.fromstring(path.read_bytes())
        if path.parent.name == "tables":
            assert "nurse" not in path.read_text()


def test_another_ranker_has_its_table_and_its_figure(folder, store, tmp_path):
    done = reported(folder, store, tmp_path / "r", cross=("qld",), figures=["svg"])
    names = [path.name for path in done.files]
    assert "cross-ranker.csv" in names and "cross-ranker-fair.svg" in names
    found = pl.read_csv(tmp_path / "r/tables/cross-ranker.csv")
    assert set(found["ranker"]) == {"qld"}
    assert (found["chosen"] >= found["pairs"]).all()


@pytest.mark.parametrize("selection", list(SELECTIONS))
def test_every_selector_has_a_report(folder, store, tmp_path, selection):
    done = reported(folder, store, tmp_path / "r", selection, cross=("qld",))
    assert "replay" in pl.read_csv(done.html.parent / "tables/methods.csv")["method"]


@pytest.mark.parametrize("selection", list(SELECTIONS))
def test_a_run_without_any_pair_has_a_report_that_says_so(folder, tmp_path, selection):
    (tmp_path / "none.tsv").write_text("query_id\ttext\nnobody\tx\n")
    given = sections(folder, SELECTIONS[selection])
    given["reformulate"] = [{"method": "replay", "file": str(tmp_path / "none.tsv")}]
    store = Store(tmp_path / "store")
    build = prepare(Recipe("toy", given), store)
    done = Pairs(build, store, build.plan.run(store)).report(tmp_path / "r")
    assert "0 pairs of 0 queries" in done.html.read_text()


def test_a_query_whose_original_found_nothing_does_not_stop_the_report(folder, tmp_path):
    for name in ("docs.tsv", "qrels.txt", "candidates.tsv"):
        (tmp_path / name).write_text((folder / name).read_text())
    (tmp_path / "queries.tsv").write_text("q1\tzzz\nq2\tdoctor\n")
    store = Store(tmp_path / "store")
    build, outcomes = built(tmp_path, store, "boxes")
    assert outcomes["pairs"].manifest.dropped[NO_ORIGINAL] == 2
    done = Pairs(build, store, outcomes).report(tmp_path / "r")
    assert f"2 {NO_ORIGINAL}" in done.html.read_text()


def test_what_only_names_the_outcome_is_not_said_to_choose(folder, store):
    build, outcomes = built(folder, store, "boxes")
    stage = next(step.stage for step in build.plan.steps if step.name == "pairs")
    pairs = pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest)))
    roles = roles_of(stage.selector, build.evaluate, parts_of(pairs))
    assert roles == {"RR@10": DECIDES, "AP@10": TWIN, "ARaB(tf)@10": UNUSED, "NFaiRR@10": UNUSED}
    apart = roles_of(stage.selector, build.evaluate, parts_of(pairs.with_columns(pl.col("new_AP_10") / 2)))
    assert apart["AP@10"] == UNUSED


def test_a_recipe_that_chooses_nothing_has_no_report(folder, store, tmp_path):
    given = sections(folder, {})
    given.pop("select")
    build = prepare(Recipe("toy", given), store)
    with pytest.raises(ConfigError, match="needs a section"):
        Pairs(build, store, build.plan.run(store)).report(tmp_path / "r")


app = typer.Typer()
app.command()(report_command)


def cli(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def recipe(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        f'[collection]\nsource = "{folder}"',
        f'[[reformulate]]\nmethod = "replay"\nfile = "{folder}/candidates.tsv"',
        '[retrieve]\nranker = "bm25"',
        '[evaluate]\nmeasures = ["RR@10", "ARaB(tf)@10"]',
        '[select]\nselector = "refairmulate-paper"\nbias = "ARaB(tf)@10"',
    ]
    (tmp_path / "toy.toml").write_text("\n".join(lines))
    return "toy.toml"


def test_the_command_prints_a_path_on_each_line(recipe, tmp_path):
    done = cli(recipe, "--out", "out", "--figures", "svg", "--latex", "--store", "s")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "out/report.html"
    assert all((tmp_path / line).is_file() and len(line) < 80 for line in lines)
    again = json.loads(cli(recipe, "--out", "out", "--store", "s", "--json").stdout)
    assert again["html"] == "out/report.html"
    assert len(again["files"]) < len(lines)
    assert not list((tmp_path / "out").rglob("*.svg"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--figures", "pdf"], "expected some of svg, png, found 'pdf'"),
        (["--out", "toy.toml"], "expected a folder or a new name"),
    ],
)
def test_a_wrong_option_is_told_before_any_work(recipe, tmp_path, more, message):
    done = cli(recipe, "--out", "out", "--store", "s", *more)
    assert isinstance(done.exception, AskewError)
    assert message in str(done.exception)
    assert not (tmp_path / "s").exists()


def test_what_the_chosen_pairs_change_is_compared_with_pairs_that_are_chosen_on_placebo_lists(folder, store, tmp_path):
    build, outcomes = built(folder, store, "refairmulate", ())
    results = Results(build, store, outcomes)
    found = effect_of(results, "fair", "ARaB(tf)@10")
    assert found is not None and found.by_chance is not None and found.words.keys() == {"male", "female"}
    lean = results.in_sample.filter(subset="fair", measure="ARaB(tf)@10").row(0, named=True)
    # Over all queries, also those without a pair.
    queries = pl.concat(results.rows_of("pairs").frames(["query_id"]))["query_id"].n_unique()
    assert 0 > found.change > lean["change"] / 100 or lean["queries"] == queries
    done = reported(folder, store, tmp_path / "r")
    assert "pairs of the subset" in done.html.read_text()
