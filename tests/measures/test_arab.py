"""RaB and ARaB against hand-computed values of the published formulas."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError, DataError

DOCS = {
    "m2f1": "he met him and a woman",
    "f1": "she",
    "none": "the train is late",
    "m3f1": "man woman man man",
}


def score(text, docs=DOCS, ranking=("m2f1", "f1", "none", "m3f1"), **options):
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(ranking)}}
    report = askew.measure({"r": run}, docs, measures=[text], **options)
    return report.runs[0].values[text][0]


def test_rab_tc_is_the_mean_of_the_count_differences():
    assert score("RaB(tc)@1") == 1
    assert score("RaB(tc)@2") == 0
    assert score("RaB(tc)@4") == pytest.approx((1 - 1 + 0 + 2) / 4)


def test_arab_tc_averages_the_running_means():
    assert score("ARaB(tc)@3") == pytest.approx((1 + 0 + 0) / 3)
    assert score("ARaB(tc)@4") == pytest.approx((1 + 0 + 0 + 0.5) / 4)


def test_arab_tf_takes_the_logarithm_of_the_total_count_not_of_each_word():
    x = [log(3) - log(2), -log(2), 0.0]
    expected = (x[0] + (x[0] + x[1]) / 2 + sum(x) / 3) / 3
    assert score("ARaB(tf)@3") == pytest.approx(expected)


def test_arab_bool_sees_only_presence():
    assert score("ARaB(bool)@1") == 0
    assert score("ARaB(bool)@2") == pytest.approx((0 + -0.5) / 2)


def test_a_list_shorter_than_the_cutoff_is_averaged_over_what_is_there():
    assert score("ARaB(tc)@10") == score("ARaB(tc)@4") == score("ARaB(tc)")


def test_absolute_is_the_magnitude_of_the_query():
    assert score("ARaB(tc, sign=abs)@2", ranking=("f1", "f1b"), docs={"f1": "she", "f1b": "her girl"}) == pytest.approx(
        (1 + 1.5) / 2
    )
    assert score("ARaB(tc)@2", ranking=("f1", "f1b"), docs={"f1": "she", "f1b": "her girl"}) == pytest.approx(-1.25)


def test_running_absolute_takes_each_running_mean_without_its_sign():
    ranking = ("f1", "m3f1")
    assert score("ARaB(tc)@2", ranking=ranking) == pytest.approx((-1 + 0.5) / 2)
    assert score("ARaB(tc, sign=running-abs)@2", ranking=ranking) == pytest.approx((1 + 0.5) / 2)


def test_one_group_alone_gives_its_own_magnitude_and_the_two_make_up_the_difference():
    male, female = score("ARaB(tf, groups=male)@4"), score("ARaB(tf, groups=female)@4")
    assert male - female == pytest.approx(score("ARaB(tf)@4"))


def test_a_lexicon_of_other_groups_is_measured_in_the_same_way(tmp_path):
    path = tmp_path / "age.csv"
    path.write_text("term,group\nyoung,young\nteenager,young\nold,old\n")
    docs = {"a": "young and old and young", "b": "an old house"}
    assert score("RaB(tc, groups=old-young)@2", docs=docs, ranking=("a", "b"), groups=str(path)) == 0.0
    assert score("RaB(tc, groups=old-young)@1", docs=docs, ranking=("a", "b"), groups=str(path)) == -1.0


def test_three_groups_need_to_be_told_which_two(tmp_path):
    path = tmp_path / "three.csv"
    path.write_text("red,a\ngreen,b\nblue,c\n")
    with pytest.raises(ConfigError, match="two groups"):
        score("ARaB@2", groups=str(path))
    assert score("RaB(tc, groups=c-a)@1", docs={"d": "blue blue red"}, ranking=("d",), groups=str(path)) == 1.0


def test_unknown_group_names_the_groups_there_are():
    with pytest.raises(ConfigError, match="did you mean 'female'"):
        score("ARaB(groups=femal)@2")


def test_a_ranked_document_without_text_is_an_error_that_names_it():
    with pytest.raises(DataError, match="'ghost' at rank 2 of query 'q'"):
        score("ARaB@10", ranking=("f1", "ghost"))


def test_a_missing_document_beyond_the_cutoff_does_not_matter():
    assert score("ARaB(tc)@1", ranking=("f1", "ghost")) == -1


def test_missing_documents_can_count_as_zero_be_dropped_or_be_skipped():
    ranking = ("ghost", "f1", "m3f1")
    assert score("RaB(tc, missing=zero)@2", ranking=ranking) == -0.5
    assert score("RaB(tc, missing=drop)@2", ranking=ranking) == pytest.approx((-1 + 2) / 2)
    assert score("RaB(tc, missing=skip)@2", ranking=ranking) == -1


def test_a_query_left_without_any_known_document_has_no_value_rather_than_zero():
    run = {"q": {"f1": 1.0}, "empty": {"ghost": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=["ARaB(tc, missing=drop)@5"])
    assert report.to_dict(per_query=True)["runs"][0]["per_query"]["empty"] == {}
    assert report.mean(report.runs[0], report.asked[0]).n == 1
    assert any("1 of 2" in note for note in report.notes)


counts = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


def texts_of(pairs):
    return {f"d{i:02d}": "he " * m + "she " * f + "x" for i, (m, f) in enumerate(pairs)}


@given(counts, st.sampled_from(["tc", "tf", "bool"]), st.integers(1, 15))
def test_arab_equals_the_harmonic_weights_of_its_definition(pairs, kind, cutoff):
    magnitude = {"tc": float, "tf": lambda c: log(1 + c), "bool": lambda c: float(c > 0)}[kind]
    docs = texts_of(pairs)
    size = min(cutoff, len(pairs))
    weights = [sum(1 / s for s in range(i, size + 1)) / size for i in range(1, size + 1)]
    expected = sum(w * (magnitude(m) - magnitude(f)) for w, (m, f) in zip(weights, pairs, strict=False))
    assert score(f"ARaB({kind})@{cutoff}", docs, list(docs)) == pytest.approx(expected, abs=1e-12)


@given(counts, st.sampled_from(["tc", "tf", "bool"]))
def test_swapping_the_groups_flips_the_sign(pairs, kind):
    docs = texts_of(pairs)
    one = score(f"ARaB({kind})@10", docs, list(docs))
    other = score(f"ARaB({kind}, groups=female-male)@10", docs, list(docs))
    swapped = score(f"ARaB({kind})@10", texts_of([(f, m) for m, f in pairs]), list(docs))
    assert other == pytest.approx(-one, abs=1e-12)
    assert swapped == pytest.approx(-one, abs=1e-12)


@given(counts)
def test_arab_bool_stays_within_minus_one_and_one(pairs):
    docs = texts_of(pairs)
    assert -1 <= score("ARaB(bool)@10", docs, list(docs)) <= 1


@given(counts)
def test_the_absolute_of_running_means_is_never_below_the_absolute_of_the_mean(pairs):
    docs = texts_of(pairs)
    running, mean = (score(f"ARaB(tf, sign={sign})@10", docs, list(docs)) for sign in ("running-abs", "abs"))
    assert running >= mean - 1e-12
