"""The shipped lexicons: what each states of itself, and the precision that the documentation reports."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from askew.core.lexicon import load_lexicon, shipped_lexicons
from askew.core.text import build_vocabulary, word
from askew.measures.mentions import MentionCounter

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
PAGE = (ROOT / "docs" / "lexicons.md").read_text(encoding="utf-8")
REASONS = {"name", "thing", "animal", "meaning", "group", "relation", "relative", "text"}
MEASURED = ["age", "gender", "nationality", "religion"]
COMPILED = ["age", "nationality", "religion"]

spec = importlib.util.spec_from_file_location("lexicon_precision", ROOT / "benchmarks" / "lexicon_precision.py")
precision = importlib.util.module_from_spec(spec)
# A dataclass looks its module up by name.
sys.modules[spec.name] = precision
spec.loader.exec_module(precision)


def sheet(name):
    return precision.read_sheet(precision.SHEETS / f"{name}.jsonl")


def place(row):
    return row["collection"], row["doc_id"], row["start"]


@pytest.mark.parametrize("name", shipped_lexicons())
def test_each_shipped_lexicon_states_what_a_user_must_know(name):
    lexicon = load_lexicon(name)
    assert lexicon.title and lexicon.note and lexicon.language == "en"
    assert "not stated" not in (lexicon.source, lexicon.license)


@pytest.mark.parametrize("name", shipped_lexicons())
def test_no_term_of_a_shipped_lexicon_is_in_two_groups(name):
    assert load_lexicon(name).shared_terms() == {}


@pytest.mark.parametrize(
    ("name", "text", "group"),
    [
        ("age", "An old man waited.", "old"),
        ("age", "Suicide among young people is rising.", "young"),
        ("age", "It is common in children.", "child"),
        ("religion", "Buddhist monks and Buddhists", "buddhist"),
        ("religion", "two Muslim women", "muslim"),
        ("nationality", "Chinese students in Paris", "chinese"),
        ("nationality", "most Germans", "german"),
    ],
)
def test_words_for_people_are_counted(name, text, group):
    counter = MentionCounter(load_lexicon(name))
    counts = dict(zip(counter.groups, counter.count(pa.array([text])).counts[0].tolist(), strict=True))
    assert counts.pop(group) >= 1
    assert not any(counts.values())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("age", "a 32-year-old man"),
        ("age", "baby quail, the Karate Kid, a minor change, an elder tree, high school seniors"),
        ("religion", "the Muslim world, a Christian church, Jewish law, Christian Bale"),
        ("nationality", "American cheese, nail polish, a turkey, tent poles, the Portuguese man o' war"),
        ("nationality", "a British general election"),
    ],
)
def test_words_that_mostly_mean_something_else_are_not_counted(name, text):
    assert MentionCounter(load_lexicon(name)).count(pa.array([text])).counts.sum() == 0


# --- precision ------------------------------------------------------------------------------------


def test_the_documentation_reports_the_precision_that_the_sheets_give():
    assert precision.table() in (precision.SHEETS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", shipped_lexicons())
def test_the_documentation_lists_each_shipped_lexicon_with_its_size_and_license(name):
    lexicon = load_lexicon(name)
    terms = sum(len(terms) for terms in lexicon.groups.values())
    row = re.search(rf"^\| `{name}` \| (\d+) \| (\d+) \| [^|]* \| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert row and row.groups() == (str(len(lexicon.groups)), str(terms), lexicon.license)


def test_the_documentation_says_which_terms_of_the_nonbinary_group_were_dropped_after_reading():
    dropped = precision.read_sheet(precision.SHEETS / "gender.first.jsonl")
    kept = [row for row in sheet("gender") if row["group"] == "nonbinary"]
    assert {row["label"] for row in dropped} == {"no"}
    assert f"all {len(dropped) + len(kept)} mentions" in PAGE
    assert f"all {len(dropped)} were wrong" in PAGE
    assert f"that of the {len(kept)} mentions of the remaining terms" in PAGE
    assert not {"mx", "xe", "ze", "a-gender"} & set(load_lexicon("gender").groups["nonbinary"])


def test_the_sheets_are_those_of_the_measured_lexicons():
    assert [path.stem for path in precision.reported()] == MEASURED


@pytest.mark.parametrize("name", MEASURED)
def test_a_sheet_has_two_hundred_read_mentions_or_more_and_every_group(name):
    rows = sheet(name)
    assert len(rows) >= 200
    assert {row["group"] for row in rows} == set(load_lexicon(name).group_names)
    assert len({place(row) for row in rows}) == len(rows)


@pytest.mark.parametrize("name", MEASURED)
def test_a_reported_mention_is_of_a_term_that_the_lexicon_has(name):
    vocabulary = build_vocabulary(load_lexicon(name), word, "word")
    for row in sheet(name):
        tokens = row["word"].split()
        mask, used = vocabulary.match(tokens, 0)
        assert (used, mask) == (len(tokens), 1 << vocabulary.groups.index(row["group"])), row


@pytest.mark.parametrize("name", COMPILED)
def test_no_reported_mention_was_read_when_the_words_were_chosen(name):
    assert not {place(row) for row in sheet(name)} & {place(row) for row in sheet(f"{name}.first")}


@pytest.mark.parametrize("path", sorted(precision.SHEETS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_each_row_of_a_sheet_is_labeled_and_only_openly_licensed_text_is_kept(path):
    for row in precision.read_sheet(path):
        assert row["lexicon"] == path.stem.removesuffix(".first")
        assert (row["label"], row["reason"]) == ("yes", "person") or (row["label"] == "no" and row["reason"] in REASONS)
        assert ("context" in row) == (row["collection"] in ("boolq", "squad_part"))
        assert len(row.get("context", "").split()) <= 12


@pytest.mark.parametrize(("right", "count", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634)])
def test_the_interval_is_wilsons(right, count, low, high):
    assert precision.wilson(right, count) == pytest.approx((low, high), abs=5e-5)


# --- drawing --------------------------------------------------------------------------------------

TEXT = "The Germans met an old man, Old Men and old ladies; GERMANS, Germans and Germans: İ? No."


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("text", [TEXT.replace("İ", ""), "", "Muslims' children; a child’s rabbi, he and she"])
def test_the_mentions_drawn_from_are_those_that_askew_counts(name, text, monkeypatch):
    monkeypatch.setattr(precision, "PER_DOCUMENT", 1000)
    counter = MentionCounter(load_lexicon(name))
    found = list(precision.mentions_in(counter.vocabulary, "c", "d", text))
    counted = [sum(mention.group == group for mention in found) for group in counter.groups]
    assert counted == counter.count(pa.array([text])).counts[0].tolist()
    for mention in found:
        assert " ".join(word(text[mention.start : mention.end])) == mention.word


def test_a_word_is_drawn_at_most_three_times_from_a_document():
    vocabulary = build_vocabulary(load_lexicon("nationality"), word, "word")
    assert len(list(precision.mentions_in(vocabulary, "c", "d", "Germans " * 7))) == 3


def test_a_draw_is_the_same_for_the_same_seed_and_has_as_many_as_asked_for_of_each_group():
    vocabulary = build_vocabulary(load_lexicon("nationality"), word, "word")
    texts = [f"Germans and Canadians, text {i}" for i in range(40)] + ["one German painter", "Swedes"]
    found = [m for i, text in enumerate(texts) for m in precision.mentions_in(vocabulary, f"c{i % 3}", str(i), text)]
    for by in ("share", "word"):
        drawn = precision.sample(found, 9, 5, by)
        assert drawn == precision.sample(found, 9, 5, by)
        assert len(set(drawn)) == len(drawn)
        groups = [mention.group for mention in drawn]
        assert {group: groups.count(group) for group in groups} == {"german": 9, "canadian": 9, "swedish": 1}
    assert "german painter" in {mention.word for mention in precision.sample(found, 9, 5, "word")}


def test_the_reported_mentions_can_be_drawn_again_from_the_collections(tmp_path, monkeypatch):
    if not all((DATA / name / "docs.tsv").is_file() for name in precision.COLLECTIONS):
        pytest.skip("the real data is not there: expected a folder ../shared/data beside the checkout")
    first = str(precision.SHEETS / "religion.first.jsonl")
    out = tmp_path / "religion.jsonl"
    options = ["--data", str(DATA), "--out", str(out), "--seed", "2", "--per-group", "60", "--not-in", first]
    monkeypatch.setattr("sys.argv", ["lexicon_precision.py", "draw", "religion", *options])
    precision.main()
    drawn = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [place(row) for row in drawn] == [place(row) for row in sheet("religion")]
