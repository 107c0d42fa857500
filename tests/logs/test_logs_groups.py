"""Any groups: with words of age nothing of another attribute is in any output, and what needs other groups is told."""

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import polars as pl
import pytest

from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.logs.analyze import logs
from askew.logs.association import Association, WordPairs
from askew.logs.numbers import SPECULATION
from askew.logs.page import report_page
from askew.logs.settings import LogSettings
from askew.ui.cli.main import run

AGE = {
    "old": ["elderly", "seniors", "old people"], "young": ["teens", "kids", "young people"], "middle": ["middle aged"],
}  # fmt: skip
ADDED = ("seniors", "for kids", "for old people", "teens", "middle aged", "elderly kids")
# Whatever could come from the groups that are the default.
OTHER = re.compile(r"\b(?:fe)?males?\b|\b(?:wo)?m[ae]ns?\b|\bs?he\b|gender|gsqr|rekabsaz", re.IGNORECASE)


def searches():
    """Eight users who each add every block to every query, with clicks, results, texts and entry points."""
    rows = []
    for user in range(8):
        for number, query in enumerate(("boots", "train times", "is he a nurse", "golf clubs")):
            for at, block in enumerate(ADDED):
                for side, text in enumerate((query, f"{query} {block}")):
                    page = [f"http://s{place}.example/{query[:2]}" for place in range(3 + side)]
                    rows.append({
                        "user": f"u{user}", "session": f"{user}-{number}-{at}", "time": 100 * at + 9 * side,
                        "query": text, "entry": ["", "edited"][side], "topic": query[:3], "results": page,
                        "click_doc": page[-1:],
                        "texts": ["seniors and kids", "the elderly", "young people"][: 1 + side + at % 2],
                    })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The report on a log with groups of age, with word vectors and a review, and all that was written."""
    folder = tmp_path_factory.mktemp("age")
    np.save(folder / "vectors.npy", np.eye(8, dtype=np.float32))
    (folder / "vocab.txt").write_text("\n".join(["seniors", "kids", "boots", "golf", "she", "he", "nurse", "train"]))
    (folder / "pairs.toml").write_text('groups = ["old", "young"]\npairs = [["seniors", "kids"]]\n')
    settings = LogSettings(
        vectors=folder / "vectors.npy", pairs=folder / "pairs.toml", min_events=1, review=folder / "review.tsv"
    )
    report = logs(searches(), groups=AGE, settings=settings)
    report.report(folder / "out")
    report.review(folder / "review.tsv")
    return folder, report


def test_with_groups_of_age_no_output_has_anything_of_another_attribute(outputs):
    folder, report = outputs
    written = [path for path in (folder / "out").rglob("*") if path.suffix in (".json", ".html", ".csv")]
    texts = {path.name: path.read_text() for path in written}
    texts |= {"review": (folder / "review.tsv").read_text(), "repr": repr(report), "html": report._repr_html_()}
    assert {"report.json", "report.html", "association.csv", "kinds.csv", "keyphrases.csv", "topics.csv"} <= set(texts)
    for name, text in texts.items():
        # The one text of the log itself with such a word.
        assert not OTHER.findall(text.replace("is he a nurse", "")), name


def test_more_than_two_groups_have_a_row_in_every_table_of_groups(outputs):
    _, report = outputs
    assert report.groups == ("old", "young", "middle")
    assert report.tables["groups"]["hits"].to_list() == [64, 64, 32, 32]
    for name in ("gaps", "clicks", "ranks", "kinds", "lean", "entries"):
        assert set(report.tables[name]["group"]) == {"all", "old", "young", "middle"}
    assert {"share_old", "share_young", "share_middle"} <= set(report.tables["topics"].columns)
    assert {"n_old", "n_young", "n_middle", "n_several"} <= set(report.tables["queries"].columns)


def test_phrases_about_other_groups_withhold_nothing_and_this_is_said(outputs):
    _, report = outputs
    assert "is he a nurse" in report.tables["queries"]["original"].to_list()
    assert report.tables["withheld"].filter(reason=SPECULATION).height == 0
    assert "no-phrases" in [getattr(note, "code", "") for note in report.notes]
    published = logs([row | {"query": row["query"].replace("kids", "women")} for row in searches()])
    assert "is he a nurse" not in published.tables["queries"]["original"].to_list()
    assert not any("speculate" in note for note in published.notes)


def test_a_classifier_that_gives_topics_counts_the_groups_that_were_chosen():
    report = logs(searches(), groups=AGE, settings=LogSettings(topics="lexical"))
    assert set(report.tables["topics"]["topic"]) == {"neutral", "old", "young", "middle"}


def test_names_of_persons_are_withheld_whatever_the_groups_are():
    rows = [row | {"query": row["query"].replace("golf", "mary")} for row in searches()]
    assert "mary" not in json.dumps(logs(rows, groups=AGE).to_dict())


def test_word_vectors_without_pairs_for_the_groups_are_refused_before_anything_is_read(tmp_path):
    with pytest.raises(ConfigError) as found:
        logs(searches(), groups=AGE, settings=LogSettings(vectors=tmp_path / "absent.npy"))
    assert (found.value.code, found.value.values) == ("no-pairs", {"groups": ("old", "young", "middle")})
    assert not OTHER.search(str(found.value))


def test_the_direction_of_one_pair_is_of_the_pairs_that_are_given():
    words, vectors = ["she", "he", "kids", "seniors"], np.eye(4, dtype=np.float32)
    found = Association(words, vectors, WordPairs(("young", "old"), (("kids", "seniors"),)))
    assert found.of(pl.Series(["she", "kids", "seniors"])).to_list() == pytest.approx([0, 0.5**0.5, -(0.5**0.5)])


def test_pairs_whose_words_have_the_same_vector_give_no_direction():
    vectors = np.array([[1, 2, 3], [1, 2, 3]], np.float32)
    with pytest.raises(DataError) as error:
        Association(["kids", "seniors"], vectors, WordPairs(("young", "old"), (("kids", "seniors"),)))
    assert error.value.code == "no-direction"


def test_some_groups_of_a_lexicon_can_be_chosen_in_an_order():
    report = logs(searches(), groups=Groups(AGE, ["young", "old"]))
    assert report.groups == ("young", "old")
    assert report.tables["groups"]["hits"].to_list() == [64, 64, 32]


def test_a_term_of_two_groups_is_of_several_or_of_the_first():
    words = {"old": ["seniors", "students"], "young": ["kids", "students"]}
    rows = [{"user": f"u{i // 2}", "time": i, "query": ["boots", "boots students"][i % 2]} for i in range(12)]
    hits = {overlap: logs(rows, groups=Groups(words, overlap=overlap)) for overlap in ("all", "first")}
    assert hits["all"].tables["groups"]["hits"].to_list() == [0, 0, 6]
    assert hits["first"].tables["groups"]["hits"].to_list() == [6, 0, 0]


def test_the_command_takes_groups_by_file_and_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{term},{group}" for group, terms in AGE.items() for term in terms]
    (tmp_path / "age.csv").write_text("\n".join(["term,group", *lines]) + "\n")
    pl.DataFrame(searches()).write_parquet("log.parquet")

    def said(*words):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            assert run(["logs", "log.parquet", "--format", "parquet", *words]) == 0
        return out.getvalue() + err.getvalue()

    for words in (("--groups", "age.csv:old,young"), ("--lexicon", "age.csv", "--groups", "old,young")):
        text = said(*words)
        assert "old" in text and "middle" not in text
        assert not OTHER.search(text.replace("is he a nurse", ""))
    assert "middle" in said("--lexicon", "age.csv")


def test_the_page_of_a_report_on_the_published_groups_has_them(outputs):
    rows = [row | {"query": row["query"].replace("kids", "women")} for row in searches()]
    assert OTHER.search(report_page(logs(rows)))
