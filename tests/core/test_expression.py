"""Criteria written by users: they mean what they mean in Python, and nothing else can be written."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.expression import DEEPEST, LONGEST, Criterion


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
    ("text", "message"),
    [
        ("", "at character 1, found the end"),
        ("   ", "at character 4, found the end"),
        ("refined >", "at character 10, found the end"),
        ("refined", "expected true or false beginning at character 1, found 'refined'"),
        ("refined and original", "expected true or false beginning at character 1, found 'refined'"),
        ("refined > 0 and original", "expected true or false beginning at character 17, found 'original'"),
        ("(refined > 0) + 1 > 0", "expected a number beginning at character 1"),
        ("1 + (refined > 0) > 0", "expected a number beginning at character 5"),
        ("-(refined > 0) > 0", "expected a number beginning at character 2"),
        ("not refined", "expected true or false beginning at character 5"),
        ("refined > not 1", r"at character 11, found 'not'"),
        ("0 < refined < 1", r"the end \(join comparisons with 'and'\) at character 13, found '<'"),
        ("1 > 0 or not 1 > 2 > 3", r"the end \(join comparisons with 'and'\) at character 20, found '>'"),
        ("(0 < refined < 1) and 1 > 0", r"expected '\)' at character 14, found '<'"),
        ("refined = 1", "at character 9, found '='"),
        ("refined.real > 1", r"at character 8, found '\.'"),
        ("refined > 1.2.3", "a space after the number at character 14"),
        ("refined > 1and 1 > 0", "a space after the number at character 12"),
        ("refined ** 2 > 1", r"at character 10, found '\*'"),
        ("refined // 2 > 1", "at character 10, found '/'"),
        ("refined[0] > 1", r"at character 8, found '\['"),
        ("'a' == 'a'", "at character 1"),
        ("refind > 1", "expected a number, .* the names refined, .* at character 1, found 'refind'"),
        ("__import__ > 1", "found '__import__'"),
        ("exec(1) > 1", "found 'exec'"),
        ("refined(1) > 1", r"expected the end at character 8, found '\('"),
        ("(refined > 1", r"expected '\)' at character 13, found the end"),
        ("refined > 1)", r"expected the end at character 12, found '\)'"),
        ("abs > 1", r"'\(' after abs at character 5"),
        ("abs(refined, 1) > 1", r"expected exactly one value in abs\(\.\.\.\) at character 1, found 2"),
        ("max(refined) > 1", r"expected at least two values in max\(\.\.\.\) at character 1, found 1"),
        ("max(refined, 1 > 0", r"expected ',' or '\)' at character 16"),
        ("max() > 1", r"at character 5, found '\)'"),
        ("max(refined > 0, 1) > 1", r"expected ',' or '\)' at character 13"),
        ("refined > 1e999", "a finite number at character 11"),
        ("refined > 1; 1 > 0", "at character 12, found ';'"),
        ("refined > ١", "at character 11"),
        ("lambda: 1", "found"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_its_place(text, message):
    with pytest.raises(ConfigError, match=message):
        Criterion.parse(text)


def test_long_and_deep_criteria_are_refused():
    with pytest.raises(ConfigError, match=f"at most {LONGEST} characters"):
        Criterion.parse("1 > 0" + " or 1 > 0" * LONGEST)
    with pytest.raises(ConfigError, match="nested brackets at character 31"):
        Criterion.parse("(" * (DEEPEST + 1) + "1 > 0" + ")" * (DEEPEST + 1))
    with pytest.raises(ConfigError, match="nested brackets"):
        Criterion.parse("abs(" * (DEEPEST + 1) + "1" + ")" * (DEEPEST + 1) + "> 0")
    assert met("(" * DEEPEST + "1 > 0" + ")" * DEEPEST, 0.0)


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
