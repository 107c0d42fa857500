"""Criteria written by users: they mean what they mean in Python, and nothing else can be written."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.expression import LONGEST, Criterion


def met(text, refined, original=0.0):
    return bool(Criterion.parse(text).met(np.array([refined]), np.array([original]))[0])


@pytest.mark.parametrize(
    ("text", "refined", "original", "expected"),
    [
        ("refined > original", 0.5, 0.5, False),
        ("refined >= original", 0.5, 0.5, True),
        ("refined - original >= 0.25", 0.5, 0.25, True),
        ("refined_q_metric >= original_q_metric and refined_q_metric > 0", 0.0, 0.0, False),
        ("refined == 1 or original == 1", 0.0, 1.0, True),
        ("not refined == 1", 1.0, 0.0, False),
        ("not not (refined == 1)", 1.0, 0.0, True),
        ("1 + 2 * 3 == 7", 0.0, 0.0, True),
        ("(1 + 2) * 3 == 9", 0.0, 0.0, True),
        ("8 / 2 / 2 == 2 and 8 - 2 - 2 == 4", 0.0, 0.0, True),
        ("-refined < -original", 0.5, 0.25, True),
        ("--refined == refined and -+-1 == 1", 0.5, 0.0, True),
        ("abs(refined - original) <= .1e1", -0.5, 0.5, True),
        ("max(refined, original, 0.75) == 0.75 and min(refined, original) == 0.25", 0.5, 0.25, True),
        ("refined == 1 or refined == 2 and original == 9", 1.0, 0.0, True),
        ("(refined == 1 or refined == 2) and original == 9", 1.0, 0.0, False),
        ("refined!=original", 1.0, 0.0, True),
        ("((refined > original))\n and\trefined == 1", 1.0, 0.0, True),
    ],
)  # fmt: skip
def test_criteria_mean_what_they_say(text, refined, original, expected):
    assert met(text, refined, original) is expected


def test_columns_are_judged_row_by_row_and_constants_hold_for_all():
    refined, original = np.array([0.0, 0.5, 1.0]), np.array([0.5, 0.5, 0.5])
    assert Criterion.parse("refined > original").met(refined, original).tolist() == [False, False, True]
    assert Criterion.parse("1 < 2").met(refined, original).tolist() == [True, True, True]
    assert Criterion.parse("1 < 2").met(np.zeros(0), np.zeros(0)).tolist() == []


def test_what_is_undefined_is_not_met_either_way():
    assert not met("refined / original > 1", 1.0, 0.0)
    assert not met("not refined / original > 1", 1.0, 0.0)
    assert not met("refined > original", math.nan, 0.0)
    assert not met("not refined > original", math.nan, 0.0)
    assert not met("refined == refined", math.nan)
    assert not met("max(refined, 1) == 1", math.nan)


def test_what_is_certain_without_the_undefined_part_is_met():
    assert met("original == 0 or refined / original >= 2", 1.0, 0.0)
    assert met("refined / original >= 2 or original == 0", 1.0, 0.0)
    assert met("not (original > 0 and refined / original >= 2)", 1.0, 0.0)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("", 1), ("   ", 4), ("refined >", 10), ("refined", 1), ("refined and original", 1),
        ("refined > 0 and original", 17), ("(refined > 0) + 1 > 0", 2), ("1 + (refined > 0) > 0", 6),
        ("-(refined > 0) > 0", 3), ("not refined", 5), ("refined > not 1", 11), ("0 < refined < 1", 15),
        ("1 > 0 or not 1 > 2 > 3", 22), ("(0 < refined < 1) and 1 > 0", 16), ("refined = 1", 9),
        ("refined.real > 1", 1), ("refined > 1.2.3", 14), ("refined > 1and 1 > 0", 11), ("refined ** 2 > 1", 1),
        ("refined // 2 > 1", 1), ("refined[0] > 1", 1), ("'a' == 'a'", 1), ("refind > 1", 1), ("__import__ > 1", 1),
        ("exec(1) > 1", 1), ("refined(1) > 1", 1), ("(refined > 1", 1), ("refined > 1)", 12), ("abs > 1", 1),
        ("abs(refined, 1) > 1", 1), ("max(refined) > 1", 1), ("max(refined, 1 > 0", 4), ("max() > 1", 1),
        ("max(refined > 0, 1) > 1", 5), ("refined > 1e999", 11), ("refined > 1; 1 > 0", 12), ("refined > ١", 11),
        ("lambda: 1", 1), ("True", 1), ("max(*refined, 1) > 0", 5), ("abs(x=1) > 0", 1), ("refined > 1j", 11),
        ("refined > " + "9" * 400, 11),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_place(text, at):
    with pytest.raises(ConfigError) as error:
        Criterion.parse(text)
    assert (error.value.code, error.value.values["at"]) == ("bad-criterion", at)


def test_long_and_deep_criteria_are_refused():
    with pytest.raises(ConfigError) as error:
        Criterion.parse("1 > 0" + " or 1 > 0" * LONGEST)
    assert error.value.code == "too-long"
    for deep in ("(" * 300 + "1 > 0" + ")" * 300, "abs(" * 150 + "1" + ")" * 150 + " > 1)", "-" * 990 + "1 > 0"):
        with pytest.raises(ConfigError) as error:
            Criterion.parse(deep)
        assert error.value.code == "bad-criterion"
    assert met("(" * 30 + "1 > 0" + ")" * 30, 0.0)


def test_the_longest_chains_are_read_and_run_without_deep_recursion():
    assert met("+".join(["1"] * 400) + " == 400", 0.0)
    assert met("not " * 200 + "1 > 0", 0.0)
    assert met("- " * 200 + "1 == 1", 0.0)


def test_equal_texts_are_equal_criteria():
    assert Criterion.parse("refined > 1") == Criterion.parse("refined > 1")
    assert Criterion.parse("refined > 1") != Criterion.parse("refined > 2")


numbers = st.one_of(
    st.sampled_from(["refined", "original", "refined_q_metric", "original_q_metric"]),
    st.integers(0, 20).map(str), st.floats(0, 4, allow_subnormal=False).map(repr),
)  # fmt: skip
blanks = st.sampled_from(["", " ", "  "])


def wider(part):
    joined = st.tuples(part, blanks, st.sampled_from("+-*/"), blanks, part).map("".join)
    called = st.tuples(st.sampled_from(["min", "max"]), st.lists(part, min_size=2, max_size=3))
    return st.one_of(
        joined, joined.map("({})".format), part.map("-{}".format), part.map("abs({})".format),
        called.map(lambda found: f"{found[0]}({', '.join(found[1])})"),
    )  # fmt: skip


arithmetic = st.recursive(numbers, wider, max_leaves=6)
comparisons = st.tuples(arithmetic, blanks, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), blanks, arithmetic)
criteria = st.recursive(
    comparisons.map("".join),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from([" and ", " or "]), part).map("".join),
        part.map("({})".format), part.map("not {}".format),
    ),
    max_leaves=4,
)  # fmt: skip
scores = st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0, -2.0])


@given(criteria, scores, scores)
def test_criteria_agree_with_python(text, refined, original):
    assume(len(text) <= LONGEST)
    known = {"refined": refined, "refined_q_metric": refined, "original": original, "original_q_metric": original}
    try:
        expected = eval(text, {"__builtins__": {}, "abs": abs, "min": min, "max": max}, known)
    except ZeroDivisionError:
        assume(False)
    assert met(text, refined, original) is expected


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        Criterion.parse(text).met(np.zeros(2), np.ones(2))
    except ConfigError as error:
        assert str(error)


TOKENS = [
    "refined",
    "original",
    "1",
    ".5",
    "(",
    ")",
    "+",
    "-",
    "*",
    "/",
    "<",
    "==",
    "and",
    "or",
    "not",
    "abs",
    "max",
    ",",
]


@given(st.lists(st.sampled_from(TOKENS), max_size=14))
def test_whatever_is_accepted_python_accepts_too(tokens):
    text = " ".join(tokens)
    try:
        criterion = Criterion.parse(text)
    except ConfigError:
        return
    try:
        expected = eval(text, {"__builtins__": {}, "abs": abs, "max": max, "refined": 0.5, "original": 0.25})
    except ZeroDivisionError:
        return
    assert bool(criterion.met(np.array([0.5]), np.array([0.25]))[0]) is expected
