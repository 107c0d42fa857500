"""The paper's scheme and the repository's, against slow plain readings of them."""

import itertools

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from selection_toys import BIAS, DIRECTIONS, EFFECTIVENESS, MEASURES, SIGNED, TWO, scored, tables

from askew.core.errors import ConfigError, UnknownName
from askew.core.measure import Direction, column_of, new_column
from askew.pairs.refairmulate import RefairmulatePaper, RefairmulateRepo

ARAB = BIAS[1:]
PAPER_ACCEPT = {1: {0, 1, 2, 3}, 2: {0, 2}, 3: {0, 1}, 4: {0}}
ALL_BIAS = " ".join(["ARaB(tf)@10", *(name for name in BIAS if name != "ARaB(tf)@10")])


# --- slow and plain, from the descriptions -------------------------------------------------------------------------


def group(row, least=1.0, most=0.0):
    effective = all(row[name] >= least for name in EFFECTIVENESS)
    biased = any(abs(row[name]) > most for name in BIAS)
    if effective:
        return 2 if biased else 1
    return 4 if biased else 3


def paper_label(old, new):
    effectiveness = new["RR@10"] - old["RR@10"]
    bias = abs(new["ARaB(tf)@10"]) - abs(old["ARaB(tf)@10"])
    if effectiveness > 0 and bias < 0:
        return 0
    if effectiveness > 0 and bias == 0:
        return 1
    if effectiveness == 0 and bias < 0:
        return 2
    return 3 if effectiveness == 0 and bias == 0 else 4


def all_say(signs):
    """Whether all are better, the same, worse."""
    return [all(sign == each for each in signs) for sign in (1, 0, -1)]


def compare(high, low):
    return (high > low) - (high < low)


def repo_label(old, new):
    better_e, same_e, worse_e = all_say([compare(new[m], old[m]) for m in EFFECTIVENESS])
    better_b, same_b, worse_b = all_say([compare(abs(old[m]), abs(new[m])) for m in BIAS])
    cases = [
        (better_e and better_b, 0), (better_b and same_e, 1), (better_e and same_b, 2), (same_e and same_b, 3),
        (better_b and worse_e, 4), (better_e and worse_b, 5), (worse_e and worse_b, 6),
    ]  # fmt: skip
    return next((label for true, label in cases if true), 7)


def perfect(row, least=1.0, most=0.0):
    return all(row[m] >= least for m in EFFECTIVENESS) and all(abs(row[m]) <= most for m in BIAS)


def paper_query(old, variants, least=1.0, most=0.0):
    rows, number = [], group(old, least, most)
    for new in variants:
        label = paper_label(old, new)
        score = (new["RR@10"] - old["RR@10"]) + (abs(old["ARaB(tf)@10"]) - abs(new["ARaB(tf)@10"]))
        worse = new["RR@10"] < old["RR@10"] or abs(new["ARaB(tf)@10"]) > abs(old["ARaB(tf)@10"])
        rows.append({"group": number, "label": label, "accepted": label in PAPER_ACCEPT[number],
                     "score": score, "perfect": perfect(new, least, most), "negative": worse})  # fmt: skip
    best, optimal, effective = -1, -1, -1
    for i, row in enumerate(rows):
        if not row["accepted"]:
            continue
        if best < 0 or row["score"] > rows[best]["score"]:
            best = i
        if row["perfect"] and row["group"] != 1:
            optimal = i if optimal < 0 or row["score"] > rows[optimal]["score"] else optimal
        elif effective < 0 or row["score"] > rows[effective]["score"]:
            effective = i
    return [{**row, "is_best": i == best, "optimal": i == optimal, "effective": i == effective,
             "fair": i in (optimal, effective)} for i, row in enumerate(rows)]  # fmt: skip


def repo_valid(number, new):
    zero = all(new[m] == 0 for m in ARAB)
    full = new["RR@10"] == 1 and new["AP@10"] == 1
    return {1: True, 2: not zero, 3: not full, 4: not (full and zero)}[number]


def repo_query(old, variants):
    rows, best, optimal = [], -1, -1
    for i, new in enumerate(variants):
        label, number = repo_label(old, new), group(old)
        score = sum(new[m] - old[m] for m in EFFECTIVENESS) + sum(abs(old[m]) - abs(new[m]) for m in BIAS)
        accepted = {1: 3, 2: 1, 3: 2, 4: 0}[number] == label
        rows.append({"group": number, "label": label, "accepted": accepted, "score": score, "perfect": perfect(new),
                     "valid": repo_valid(number, new)})  # fmt: skip
        if accepted and repo_valid(number, new) and (best < 0 or score > rows[best]["score"]):
            best = i
        if accepted and perfect(new):
            optimal = i
    return [{**row, "is_best": i == best, "optimal": i == optimal, "effective": i == best,
             "fair": i in (optimal, best), "optimal_score": 1.0 if i == optimal else None}
            for i, row in enumerate(rows)]  # fmt: skip


def expected(table, query_of):
    rows = table.rename({column_of(name): name for name in MEASURES}).rows(named=True)
    found = []
    for query in dict.fromkeys(row["query_id"] for row in rows):
        mine = [row for row in rows if row["query_id"] == query]
        found += query_of(mine[0], mine[1:])
    return found


def agree(selected, table, query_of):
    slow = expected(table, query_of)
    assert len(slow) == len(selected)
    if slow:
        assert selected.select(list(slow[0])).rows(named=True) == slow


def everything():
    """Every way of scoring: all originals of two values a measure, each with all variants of three."""
    originals = list(itertools.product([0.5, 1.0], [0.5, 1.0], *[[0.0, 1.0]] * 4))
    variants = list(itertools.product([0.25, 0.5, 1.0], [0.25, 0.5, 1.0], *[[0.0, 1.0, 2.0]] * 4))
    return scored({f"q{i}": [original, *variants] for i, original in enumerate(originals)})


@pytest.fixture(scope="module")
def whole():
    return everything()


def paper_selector(**settings):
    return RefairmulatePaper(**{"effectiveness": "RR@10 AP@10", "bias": ALL_BIAS, **settings})


def test_the_paper_scheme_agrees_with_the_slow_one_on_every_combination(whole):
    selected = paper_selector().select(whole, DIRECTIONS)
    # With thresholds at the ends of the scales an effective original cannot gain, nor an unbiased one.
    possible = {1: {3, 4}, 2: {2, 3, 4}, 3: {1, 3, 4}, 4: {0, 1, 2, 3, 4}}
    found = set(selected.select("group", "label").unique().rows())
    assert found == {(group, label) for group, labels in possible.items() for label in labels}
    agree(selected, whole, paper_query)


def test_the_paper_scheme_agrees_with_the_slow_one_at_thresholds_where_every_group_has_every_label():
    originals = list(itertools.product(*[[0.25, 0.5]] * 2, *[[1.0, 2.0]] * 4))
    variants = list(itertools.product([0.25, 0.5, 1.0], [0.5, 1.0], [0.0, 1.0], [1.0, 2.0], [0.0, 1.0, 2.0], [1.0]))
    table = scored({f"q{i}": [original, *variants] for i, original in enumerate(originals)})
    selected = paper_selector(theta_eff=0.5, theta_bias=1.0).select(table, DIRECTIONS)
    assert set(selected.select("group", "label").unique().rows()) == set(itertools.product(range(1, 5), range(5)))
    agree(selected, table, lambda old, new: paper_query(old, new, 0.5, 1.0))


def test_the_repository_scheme_agrees_with_the_slow_one_on_every_combination(whole):
    selected = RefairmulateRepo().select(whole, DIRECTIONS)
    assert set(selected["label"].unique()) == set(range(8))
    agree(selected, whole, repo_query)


few = tables([[0.5, 1.0], [0.5, 1.0], *[[0.0, 1.0, -1.0]] * 4], most=8)


@given(few)
def test_the_paper_scheme_agrees_with_the_slow_one_on_ties_and_signs(table):
    agree(paper_selector().select(table, SIGNED), table, paper_query)


@given(few)
def test_the_repository_scheme_agrees_with_the_slow_one_on_ties_and_signs(table):
    agree(RefairmulateRepo().select(table, SIGNED), table, repo_query)


# --- examples that can be followed by hand -------------------------------------------------------------------------


def simple(rows, **settings):
    selector = RefairmulatePaper(effectiveness="RR@10", bias="ARaB(tf)@10", **settings)
    return selector.select(scored({"q": rows}, list(TWO)), TWO)


def test_more_bias_is_never_rewarded():
    # As Eq. 4 is printed the second variant would win: 0.25 + 1.0 against 0.25 - 1.0.
    selected = simple([(0.5, 2.0), (0.75, 1.0), (0.75, 1.5)])
    assert selected["score"].to_list() == [1.25, 0.75]
    assert selected["is_best"].to_list() == [True, False]


def test_a_perfect_variant_is_optimal_and_the_next_best_is_effective():
    selected = simple([(0.5, 2.0), (0.75, 1.0), (1.0, 0.0), (0.75, 0.5), (0.25, 0.0)])
    assert selected["optimal"].to_list() == [False, True, False, False]
    assert selected["effective"].to_list() == [False, False, True, False]
    assert selected["is_best"].to_list() == [False, True, False, False]
    assert selected["negative"].to_list() == [False, False, False, True]


def test_of_equal_scores_the_first_wins():
    selected = simple([(0.5, 2.0), (0.75, 1.0), (0.75, 1.0)])
    assert selected["effective"].to_list() == [True, False]


def test_perfect_originals_go_to_effective_unless_optimal_takes_group_one():
    rows = [(1.0, 0.0), (1.0, 0.0)]
    assert simple(rows).select("group", "label", "optimal", "effective").row(0) == (1, 3, False, True)
    assert simple(rows, optimal_groups="1 2 3 4").select("optimal", "effective").row(0) == (True, False)


def test_the_repository_puts_a_perfect_original_in_both():
    table = scored({"q": [(1, 1, 0, 0, 0, 0)] * 3})
    selected = RefairmulateRepo().select(table, DIRECTIONS)
    assert selected["effective"].to_list() == [True, False]
    assert selected["optimal"].to_list() == [False, True]
    assert selected["score"].to_list() == [0.0, 0.0]
    assert selected["optimal_score"].to_list() == [None, 1.0]


def test_the_repository_does_not_look_at_the_lexicon_share_when_it_leaves_perfect_ones_out():
    # Group 2: the share is not yet zero, so the variant is not perfect; ARaB is, so it is not valid either.
    table = scored({"q": [(1, 1, 2, 1, 1, 1), (1, 1, 1, 0, 0, 0)]})
    row = RefairmulateRepo().select(table, DIRECTIONS).row(0, named=True)
    assert (row["group"], row["label"], row["accepted"]) == (2, 1, True)
    assert not (row["effective"] or row["optimal"])


def test_thresholds_move_the_groups():
    rows = [(0.8, -0.1), (0.8, 0.1)]
    assert simple(rows)["group"].to_list() == [4]
    assert simple(rows, theta_eff=0.8)["group"].to_list() == [2]
    assert simple(rows, theta_bias=0.1)["group"].to_list() == [3]
    assert simple(rows, theta_eff=0.8, theta_bias=0.1)["group"].to_list() == [1]


def test_a_tolerance_turns_small_gains_into_equality():
    rows = [(0.5, 2.0), (0.51, 1.99)]
    assert simple(rows)["label"].to_list() == [0]
    assert simple(rows, tolerance=0.02)["label"].to_list() == [3]


def test_what_is_accepted_can_be_narrowed():
    rows = [(1.0, 2.0), (1.0, 1.0)]
    assert simple(rows)["accepted"].to_list() == [True]
    assert simple(rows, accept="2: 0")["accepted"].to_list() == [False]


def test_negatives_can_be_read_in_three_ways():
    rows = [(0.5, 1.0), (0.25, 2.0), (0.25, 0.5), (1.0, 2.0), (0.5, 1.0)]
    assert simple(rows)["negative"].to_list() == [True, True, True, False]
    assert simple(rows, negative="both")["negative"].to_list() == [True, False, False, False]
    assert simple(rows, negative="effectiveness")["negative"].to_list() == [True, True, False, False]


def test_measures_that_are_not_named_do_not_select():
    table = scored({"q": [(0.5, 0.5, 9, 9, 2, 9), (1.0, 0.1, 99, 99, 1, 99)]})
    selected = RefairmulatePaper(effectiveness="RR@10", bias="ARaB(tf)@10").select(table, DIRECTIONS)
    assert selected["effective"].to_list() == [True]
    assert selected["gain_LexiconShare_10"].to_list() == [-90.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"theta_bias": -1.0}, "theta_bias: expected a finite number of 0 or more"),
        ({"weight_eff": 0.0, "weight_bias": 0.0}, "at least one of them above zero"),
        ({"weight_eff": -1.0}, "weight_eff: expected"),
        ({"accept": "5: 0"}, "the group '5'"),
        ({"accept": "1: 9"}, "accept, group 1: expected some of 0, 1, 2, 3, 4, found '9'"),
        ({"accept": "1: 0; 1: 1"}, "each name once"),
        ({"accept": ""}, "one part or more"),
        ({"optimal_groups": "0"}, "optimal_groups: expected some of"),
        ({"negative": "none"}, "negative: expected one of any, both, effectiveness"),
        ({"effectiveness": " "}, "effectiveness: expected one or more measures"),
        ({"tolerance": -1.0}, "tolerance: expected"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_before_any_work(settings, message):
    with pytest.raises(ConfigError, match=message):
        RefairmulatePaper(**settings)


def test_measures_that_do_not_fit_thresholds_are_refused():
    table = scored({"q": [(0.5, 2.0), (0.75, 1.0)]}, list(TWO))
    with pytest.raises(ConfigError, match="best at zero"):
        RefairmulatePaper("RR@10", "ARaB(tf)@10").select(table, dict.fromkeys(TWO, Direction.UP))
    with pytest.raises(ConfigError, match="higher is better"):
        RefairmulatePaper("RR@10", "ARaB(tf)@10").select(table, dict.fromkeys(TWO, Direction.DOWN))
    with pytest.raises(ConfigError, match="best at zero"):
        RefairmulatePaper("RR@10", "ARaB(tf)@10").select(table, {**TWO, "ARaB(tf)@10": "a direction added later"})
    with pytest.raises(UnknownName, match="unknown measure 'AP@10'"):
        RefairmulateRepo().select(table, TWO)
    with pytest.raises(ConfigError, match=r"valid_bias: .*\(ARaB\(tf\)@10\), found "):
        RefairmulateRepo(bias="ARaB(tf)@10").select(scored({}), DIRECTIONS)


def test_what_is_left_out_is_counted():
    table = scored({"q": [(0.5, 2.0), (0.75, None)]}, list(TWO))
    pairs = RefairmulatePaper("RR@10", "ARaB(tf)@10").select_counted(table, TWO)
    assert pairs.dropped == {"no score": 1}


# --- laws ----------------------------------------------------------------------------------------------------------

SELECTORS = [paper_selector, RefairmulateRepo]
FLAGS = ["is_best", "optimal", "effective", "fair", "negative"]


@pytest.mark.parametrize("make", SELECTORS)
@given(table=few, factor=st.sampled_from([0.5, 2.0, 8.0]))
def test_the_scale_of_the_weights_does_not_matter(make, table, factor):
    plain = make(weight_eff=1.0, weight_bias=0.5).select(table, SIGNED)
    scaled = make(weight_eff=factor, weight_bias=0.5 * factor).select(table, SIGNED)
    assert plain.select(FLAGS).equals(scaled.select(FLAGS))


@pytest.mark.parametrize("make", SELECTORS)
@given(table=few, data=st.data())
def test_the_order_of_the_rows_matters_only_for_ties(make, table, data):
    order = data.draw(st.permutations(range(len(table))))
    here, there = (make().select(each, SIGNED) for each in (table, table[order]))
    free = ["variant_id", "group", "label", "accepted", "score", "perfect", "negative", "outcome"]
    assert sorted(here.select(free).rows()) == sorted(there.select(free).rows())
    for flag in ("is_best", "optimal", "effective"):
        keys = ["query_id"] if flag == "optimal" else ["query_id", "score"]
        chosen = [sorted(each.filter(pl.col(flag)).select(keys).rows()) for each in (here, there)]
        assert chosen[0] == chosen[1]


@given(few)
def test_fair_is_optimal_and_effective_and_nothing_else(table):
    selected = paper_selector().select(table, SIGNED)
    optimal, effective = (set(selected.filter(pl.col(flag))["variant_id"]) for flag in ("optimal", "effective"))
    assert not optimal & effective
    assert set(selected.filter(pl.col("fair"))["variant_id"]) == optimal | effective
    assert set(selected.filter(pl.col("is_best"))["variant_id"]) <= optimal | effective


@pytest.mark.parametrize("make", SELECTORS)
@given(table=few)
def test_subsets_keep_their_promises(make, table):
    selected = make().select(table, SIGNED)
    for flag in ("optimal", "effective", "is_best"):
        found = selected.filter(pl.col(flag))
        assert found["accepted"].all()
        assert found["query_id"].n_unique() == len(found)
        assert not found["negative"].any()
    for row in selected.filter(pl.col("optimal")).rows(named=True):
        assert all(row[new_column(m)] == 1 for m in EFFECTIVENESS)
        assert all(row[new_column(m)] == 0 for m in BIAS)


def test_all_measures_are_named():
    assert set(RefairmulateRepo().measures()) == set(MEASURES)
