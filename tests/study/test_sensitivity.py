"""Sensitivity: combinations, agreement of the orders, conclusions that change."""

import itertools
import math
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.measure import Direction
from askew.study.sensitivity import Combination, SensitivityReport

DOCS = {"m": "he he", "f": "she", "b": "he she", "n": "weather", "k": "king"}
RUNS = {
    "male": {"q": {"m": 2.0, "b": 1.0}},
    "even": {"q": {"b": 2.0, "n": 1.0}},
    "female": {"q": {"f": 2.0, "n": 1.0}},
}


def combination(number, direction, means, **choices):
    return Combination(number, {"measure": "M", **choices}, f"M{number}", direction, tuple(means))


def by_hand():
    """Leans of a, b, c: (1, 2, 3), (1, 2, 3), (2, 1, 3), all equal."""
    return SensitivityReport(
        ["a", "b", "c"],
        [
            combination(1, Direction.ZERO, [-0.1, 0.2, -0.3], lexicon="x", cutoff=5),
            combination(2, Direction.UP, [0.9, 0.8, 0.7], lexicon="x", cutoff=10),
            combination(3, Direction.DOWN, [0.2, 0.1, 0.3], lexicon="y", cutoff=5),
            combination(4, Direction.DOWN, [0.5, 0.5, 0.5], lexicon="y", cutoff=10),
        ],
    )


def test_tau_and_its_summary_by_hand():
    report = by_hand()
    assert report.tau[0, 1] == 1.0
    assert report.tau[0, 2] == pytest.approx(1 / 3)
    found = report.summary()
    assert (found["highest_tau"], found["lowest_pair"]) == (1.0, [1, 3])
    assert found["lowest_tau"] == found["median_tau"] == pytest.approx(1 / 3)
    assert (found["undefined_combinations"], found["undefined_pairs"]) == (1, 3)
    assert any("lexicon y, cutoff 10" in one for one in report.sentences())


def test_an_axis_is_judged_by_the_combinations_that_differ_on_it_only():
    axes = {one.axis: one for one in by_hand().axes}
    # lexicon: 1-3 has 1/3, 2-4 is undefined; cutoff: 1-2 has 1, 3-4 is undefined.
    assert (axes["lexicon"].pairs, axes["lexicon"].undefined) == (2, 1)
    assert axes["lexicon"].mean_tau == pytest.approx(1 / 3)
    assert axes["cutoff"].mean_tau == 1.0
    assert [one.axis for one in by_hand().axes] == ["lexicon", "cutoff"]
    assert by_hand().within("lexicon")[0, 1] == pytest.approx(1 / 3)


def test_an_axis_that_one_measure_lacks_is_not_compared():
    first = combination(1, Direction.DOWN, [1.0, 2.0], sign="abs", cutoff=5)
    second = Combination(2, {"measure": "N", "cutoff": 5}, "N", Direction.UP, (1.0, 2.0))
    (only,) = SensitivityReport(["a", "b"], [first, second]).axes
    assert (only.axis, only.mean_tau) == ("measure", -1.0)


def test_conclusions_that_change_by_hand():
    report = by_hand()
    assert [(one.first, one.second, one.first_less, one.second_less, one.equal) for one in report.pairs] == [
        ("a", "b", 2, 1, 1),
        ("a", "c", 3, 0, 1),
        ("b", "c", 3, 0, 1),
    ]
    assert [one.flips for one in report.pairs] == [True, False, False]
    assert report.order(report.combinations[2]) == [["b"], ["a"], ["c"]]
    assert report.order(report.combinations[3]) == [["a", "b", "c"]]
    assert [(one.system, one.best, one.median, one.worst, one.least) for one in report.ranks] == [
        ("a", 1, 1.0, 2, 3),
        ("b", 1, 1.5, 2, 2),
        ("c", 1, 3.0, 3, 1),
    ]


MEANS = st.lists(st.lists(st.integers(-4, 4), min_size=3, max_size=3), min_size=2, max_size=5)


@given(MEANS, st.permutations(range(3)), st.sampled_from(Direction))
def test_the_order_in_which_runs_are_given_changes_nothing(rows, places, direction):
    def report(order):
        names = ["a", "b", "c"]
        combinations = [
            combination(n, direction, [row[i] for i in order], cutoff=n) for n, row in enumerate(rows, start=1)
        ]
        return SensitivityReport([names[i] for i in order], combinations)

    one, other = report(range(3)), report(places)
    assert np.array_equal(one.tau, other.tau, equal_nan=True)
    assert np.array_equal(one.tau, one.tau.T, equal_nan=True)
    assert (one.summary(), one.axes, one.ranks) == (other.summary(), other.axes, other.ranks)
    assert one.pairs == other.pairs


def test_each_mean_is_that_of_measure():
    report = askew.sensitivity(RUNS, DOCS, "ARaB(tf) NFaiRR", tokens="word", cutoffs=[2])
    assert len(report.combinations) == 4 * (3 + 1) * 2
    for one in report.combinations:
        alone = askew.measure(RUNS, DOCS, [one.signature])
        assert one.means == pytest.approx([alone[name, one.signature].mean for name in RUNS])


def test_measures_are_compared_in_every_combination_of_what_they_have():
    report = askew.sensitivity(RUNS, DOCS, cutoffs="1,2")
    # 4 lexicons, 2 cutoffs; ARaB has three kinds and three signs, LexiconShare two signs. Any mentions and generic ones
    # for three tokenizers; seyedsalehi does not tell where words stand.
    assert len(report.combinations) == 4 * 2 * (3 * 3 + 1 + 2) * (3 * 2 + 1)
    assert report.values("lexicon") == ("gender", "gsqr2023", "rekabsaz2020", "rekabsaz2021")
    assert report.values("missing") == ()
    assert report.values("who") == ("any", "generic")
    generic = {one.choices["tokens"] for one in report.combinations if one.choices["who"] == "generic"}
    assert generic == {"word", "blank", "unclipped"}
    assert {one.choices.get("sign") for one in report.combinations if one.choices["measure"] == "NFaiRR"} == {None}


def test_what_the_text_of_a_measure_says_stays():
    report = askew.sensitivity(RUNS, DOCS, "ARaB(tf,sign=abs)@1 RaB(lexicon=gender)", tokens=["word"], cutoffs=[2])
    fixed = [one for one in report.combinations if one.choices["measure"] == "ARaB(tf)"]
    assert {(one.choices["sign"], one.choices["cutoff"]) for one in fixed} == {("abs", 1)}
    others = [one for one in report.combinations if one.choices["measure"] == "RaB"]
    assert {one.choices["lexicon"] for one in others} == {"gender"}


def test_rules_for_missing_texts_are_compared_only_where_texts_are_missing():
    docs = {name: text for name, text in DOCS.items() if name != "m"}
    report = askew.sensitivity(RUNS, docs, "ARaB(tf)", lexicons="gender", tokens="word", cutoffs=[2])
    assert report.values("missing") == ("zero", "drop", "skip")
    note = report.notes[0]
    assert (note.code, note.values) == ("missing-texts", {"documents": 1, "rules": ["zero", "drop", "skip"]})
    chosen = askew.sensitivity(RUNS, docs, "ARaB(tf)", lexicons="gender", tokens="word", missing="zero,skip")
    assert chosen.values("missing") == ("zero", "skip")
    with pytest.raises(askew.DataError, match="have no text"):
        askew.sensitivity(RUNS, docs, "ARaB(tf)", missing="error")


def test_own_words_are_compared_with_the_shipped_lexicons_of_the_same_groups(tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("she,female\nhe,male\nking,male\n")
    report = askew.sensitivity(RUNS, DOCS, "ARaB(tf)", groups=str(own), tokens="word", signs="signed", cutoffs=[2])
    assert report.values("lexicon") == ("own", "gender", "gsqr2023", "rekabsaz2020", "rekabsaz2021")
    age = askew.sensitivity(RUNS, DOCS, "ARaB(tf)", groups="age:old,young", tokens="word", cutoffs=[2])
    assert age.values("lexicon") == ("age",)
    assert "one-lexicon" in [note.code for note in age.notes]


def test_who_is_meant_is_compared_as_asked_for():
    def report(text="ARaB(tf) NFaiRR", tokens="word", **options):
        return askew.sensitivity(RUNS, DOCS, text, lexicons="gender", tokens=tokens, cutoffs=[2], **options)

    assert report(who="real,name+other").values("who") == ("real", "name+other")
    own = report("ARaB(tf,who=generic)")
    assert {one.choices["who"] for one in own.combinations} == {"generic"}
    with pytest.raises(askew.ConfigError) as error:
        report(tokens="seyedsalehi", who="generic")
    assert (error.value.code, error.value.values) == ("no-positions", {"tokens": "seyedsalehi"})
    # Trained on words for women and men, it is not compared for others unless asked for.
    age = {"groups": "age:old,young", "tokens": "word", "cutoffs": [2]}
    assert askew.sensitivity(RUNS, DOCS, "ARaB(tf)", **age).values("who") == ()
    assert askew.sensitivity(RUNS, DOCS, "ARaB(tf)", who="any,name", **age).values("who") == ("any", "name")


def test_runs_without_any_difference_have_no_tau():
    same = {"a": RUNS["even"], "b": {"q": {"b": 5.0, "n": 4.0}}}
    report = askew.sensitivity(same, DOCS, "ARaB(tf)", lexicons="gender", tokens="word")
    assert np.isnan(report.tau).all()
    assert report.summary()["lowest_tau"] is None
    assert report.lowest is None
    assert report.to_dict()["tau"][0][0] is None
    assert len(report.undefined) == len(report.combinations)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measures": "nDCG"}, "nDCG is not a measure of lean"),
        ({"signs": "upward"}, "signs=: expected one or more of abs, running-abs, signed; found 'upward'"),
        ({"measures": "NFaiRR", "signs": "abs"}, "signs=: no requested measure has this parameter; leave out signs="),
        ({"tokens": "words"}, "unknown tokenizer 'words'"),
        ({"tokens": ","}, "tokens=: expected one value or more"),
        ({"cutoffs": "5,ten"}, "cutoffs=: expected whole numbers of 1 or more"),
        ({"cutoffs": [0]}, "cutoffs=: expected whole numbers of 1 or more"),
        ({"cutoffs": "9" * 5000}, "the cutoff must be from 1"),
        ({"lexicons": "age"}, "unknown group 'male'"),
        ({"lexicons": []}, "lexicons=: expected one lexicon or more"),
        ({"groups": "age"}, "name the two groups to compare"),
        ({"cutoffs": range(1, 100)}, "more than 10,000 combinations"),
    ],
)
def test_what_cannot_be_compared_is_refused(options, words):
    with pytest.raises(askew.AskewError) as error:
        askew.sensitivity(RUNS, DOCS, **options)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_one_run_has_no_order():
    with pytest.raises(askew.ConfigError) as error:
        askew.sensitivity({"alone": RUNS["male"]}, DOCS)
    assert (error.value.code, error.value.values) == ("too-few-runs", {"runs": 1})


def test_the_tables_hold_every_combination(tmp_path):
    report = askew.sensitivity(RUNS, DOCS, "ARaB(tf)", tokens="word", cutoffs=[1, 2], out=tmp_path / "out")
    n = len(report.combinations)
    tau = pl.read_parquet(tmp_path / "out" / "tables" / "tau.parquet")
    assert tau.height == n * (n - 1) // 2
    for row in itertools.islice(tau.iter_rows(), 20):
        expected = report.tau[row[0] - 1, row[1] - 1]
        assert (row[2] is None) == math.isnan(expected)
        assert row[2] is None or row[2] == expected
    assert pl.read_csv(tmp_path / "out" / "tables" / "combinations.csv").height == n == report.to_polars().height
    # The same folder again: files of ours are replaced.
    askew.sensitivity(RUNS, DOCS, "ARaB(tf)", tokens="word", cutoffs=[1], out=tmp_path / "out")


EVIL = '"><script>alert(1)<b> & co'


@pytest.mark.parametrize("cutoffs", [[1], [1, 2, 3, 4]])
def test_a_page_escapes_names_and_loads_nothing(tmp_path, cutoffs):
    page = tmp_path / "page.html"
    runs = {EVIL: RUNS["male"], "even": RUNS["even"]}
    report = askew.sensitivity(runs, DOCS, "ARaB(tf) NFaiRR LexiconShare", cutoffs=cutoffs, who="any", html=page)
    text = page.read_text()
    assert (len(report.combinations) > 150) == (len(cutoffs) == 4)
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;b&gt; &amp; co" in text
    assert "http" not in re.sub(r' xmlns="[^"]*"| http-equiv=', "", text)
    for section in ("summary", "axes", "agreement", "flips"):
        assert f'id="{section}"' in text
