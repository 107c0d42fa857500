"""The text of a measure is its identity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, UnknownName
from askew.core.lexicon import Lexicon
from askew.core.measure import Direction, Measure, check_columns, column_of, pair_columns, split_measures
from askew.measures.catalogue import Catalogue, presets

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
plain = st.text(st.characters(blacklist_characters="'\"\\", blacklist_categories=("Cs", "Cc")), max_size=8)
parameters = st.dictionaries(
    names, st.integers(-99, 99) | st.booleans() | plain | st.floats(allow_nan=False, allow_infinity=False), max_size=3
)


@given(names, parameters, st.none() | st.integers(1, 1000))
def test_what_is_printed_is_read_back_as_the_same(name, params, cutoff):
    measure = Measure(name, (), cutoff).with_params(params)
    assert Measure.parse(str(measure)) == measure
    assert str(Measure.parse(str(measure))) == str(measure)


def test_the_order_of_parameters_does_not_matter():
    assert Measure.parse("A(x=1,y='b')@5") == Measure.parse("A( y = b , x=1 )@5")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@10",
        "A@",
        "A@0",
        "A@x",
        "A@1.5",
        "A(",
        "A(x=)",
        "A(x=1,x=2)",
        "A(x=1)y",
        "A(,)",
        "A('x)",
        "1A",
        "A(x=1",
        "A B",
    ],
)
def test_what_is_not_a_measure_is_refused_with_an_example(text):
    with pytest.raises(ConfigError, match="measure"):
        Measure.parse(text)


def test_a_measure_text_is_never_evaluated():
    with pytest.raises(ConfigError):
        Measure.parse("A(x=__import__('os'))@1")


def test_measures_are_split_outside_brackets():
    text = "RR@10, ARaB(bool, sign=abs)@10  NFaiRR(targets='female:0.5,male:0.5')@5"
    assert split_measures(text) == ["RR@10", "ARaB(bool, sign=abs)@10", "NFaiRR(targets='female:0.5,male:0.5')@5"]
    with pytest.raises(ConfigError, match="not closed"):
        split_measures("ARaB(tf@10 RR@10")


@given(st.sampled_from(list(Direction)), st.floats(-9, 9), st.floats(-9, 9))
def test_a_gain_turns_its_sign_when_old_and_new_are_swapped(direction, old, new):
    assert direction.gain(old, new) == -direction.gain(new, old)


def test_each_direction_knows_what_better_means():
    assert Direction.UP.gain(0.2, 0.5) == pytest.approx(0.3)
    assert Direction.DOWN.gain(0.2, 0.5) == pytest.approx(-0.3)
    assert Direction.ZERO.gain(-0.5, 0.2) == pytest.approx(0.3)


def test_short_for_a_full_signature():
    (asked,) = Catalogue().complete(["ARaB(tf)@10"])
    assert asked.text == "ARaB(tf)@10"
    for part in ("kind='tf'", "sign='signed'", "groups='male-female'", "tokens='unclipped'", "missing='error'", "@10"):
        assert part in asked.signature
    assert "lexicon='rekabsaz2020@" in asked.signature


@pytest.mark.parametrize("preset", sorted(presets()))
def test_a_signature_can_be_measured_again_and_stands_for_itself(preset):
    for asked in Catalogue(presets()[preset]).complete(presets()[preset].measures):
        (again,) = Catalogue().complete([asked.signature])
        assert again.signature == asked.signature


def test_the_measure_wins_over_the_option_and_the_option_over_the_preset():
    catalogue = Catalogue(presets()["refairmulate2025"], {"missing": "zero", "order": "score"})
    (asked,) = catalogue.complete(["ARaB(tf, missing=error)@10"])
    assert asked.measure.param("missing") == "error"
    assert asked.measure.param("order") == "score"
    assert asked.measure.param("sign") == "running-abs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ARAB(tf)@10", "did you mean 'ARaB'"),
        ("ARaB(tff)@10", "kind must be one of tc, tf, bool"),
        ("ARaB(kid=tf)@10", "did you mean 'kind'"),
        ("ARaB(tf, tc)@10", "too many values without a parameter name"),
        ("ARaB(tf, kind=tc)@10", "given twice"),
        ("nDGC@10", "did you mean '[nN]DCG'"),
        ("ARaB(lexicon=rekabsaz2022)@10", "did you mean 'rekabsaz202"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_was_meant(text, message):
    with pytest.raises(ConfigError, match=message):
        Catalogue().complete([text])


def test_unknown_names_list_what_there_is():
    with pytest.raises(UnknownName, match="known: a, b"):
        raise UnknownName("letter", "zzz", ["b", "a"])


def test_a_value_without_a_name_is_part_of_the_measure():
    measure = Measure.parse("ARaB(tf)@10")
    assert str(measure) == "ARaB('tf')@10"
    assert measure != Measure.parse("ARaB(bool)@10")
    assert measure == Measure.parse(str(measure))
    assert str(Measure.parse("ARaB(bool, sign=abs)@10")) == "ARaB('bool',sign='abs')@10"


@pytest.mark.parametrize(
    ("other", "name"),
    [("MRR", "RR"), ("MAP", "AP"), ("NDCG", "nDCG"), ("Precision", "P"), ("Recall", "R"), ("LIWC", "LexiconShare")],
)
def test_a_signature_has_the_one_name_of_a_measure(other, name):
    one, same = Catalogue().complete([f"{other}@10", f"{name}@10"])
    assert one.signature == same.signature
    assert one.signature.startswith(f"{name}(")


def test_another_name_that_sets_a_parameter_keeps_it_in_the_signature():
    (asked,) = Catalogue().complete(["SetRelP"])
    assert asked.signature.startswith("SetP(") and "relative=True" in asked.signature
    (again,) = Catalogue().complete([asked.signature])
    assert again.signature == asked.signature


def test_what_is_said_of_a_background_run_is_left_out_where_there_is_none():
    (own,) = Catalogue().complete(["NFaiRR(background=self)@10"])
    (other,) = Catalogue().complete(["NFaiRR(background='run@0123456789ab')@10"])
    assert "depth" not in own.signature and "unmatched" not in own.signature
    assert "background='run',depth=200" in other.signature


def test_an_unknown_tokenizer_is_refused_when_the_measure_is_completed():
    with pytest.raises(UnknownName, match="did you mean 'word'"):
        Catalogue().complete(["ARaB(tokens=wrod)@10"])


def test_the_order_of_the_groups_is_part_of_what_a_lexicon_is():
    words = {"young": ("kid",), "old": ("elder",)}
    turned = dict(reversed(words.items()))
    assert Lexicon("age", words).hash != Lexicon("age", turned).hash
    assert Lexicon("age", {"young": ("a", "b")}).hash == Lexicon("age", {"young": ("b", "a")}).hash


@pytest.mark.parametrize(
    ("text", "column"),
    [("RR@10", "RR_10"), ("ARaB(tf)@10", "ARaB_tf_10"), ("ARaB(tf, sign='abs')@10", "ARaB_tf_sign_abs_10"),
     ("RR(rel=0.5)", "RR_rel_0_5"), ("LexiconShare", "LexiconShare"), ("α_nDCG@20", "α_nDCG_20"), ("@", "")],
)  # fmt: skip
def test_the_column_of_a_measure_has_letters_digits_and_single_underscores(text, column):
    assert column_of(text) == column
    assert pair_columns(text) == (f"old_{column}", f"new_{column}", f"gain_{column}")


@given(st.text())
def test_every_column_of_pairs_is_an_identifier(text):
    assert all(name.isidentifier() for name in pair_columns(text))
    column = column_of(text)
    assert "__" not in column and column == column.strip("_") == column_of(column)


@pytest.mark.parametrize(
    ("texts", "said"),
    [(["RR@10", "AP@10", "RR@10"], "RR@10 is requested twice; request it only once"),
     (["A(x=1)@5", "A(x=-1)@5"],
      "A(x=1)@5 and A(x=-1)@5 have the same column name A_x_1_5; leave one out"),
     # SQL reads names without regard to case.
     (["RR@10", "rr@10"], "RR@10 and rr@10 have the same column name rr_10; leave one out")],
)  # fmt: skip
def test_measures_that_would_share_a_column_are_refused(texts, said):
    with pytest.raises(ConfigError) as error:
        check_columns(texts)
    assert str(error.value) == f"measures: {said}"
    check_columns(["RR@10", "RR@100", "AP@10"])
