"""Better, same or worse: explorer, selector, report and pages say the same of the same values."""

import math
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from askew.core.measure import Direction, column_of
from askew.core.outcome import Outcome, Verdict, outcome_of, verdict
from askew.data.runs import Run
from askew.measures.statistics.significance import paired
from askew.pairs.gains import make_pairs
from askew.pairs.summary import summarize
from askew.ui.explorer.answers import Sides
from askew.ui.explorer.counting import counting_of
from askew.ui.explorer.explorer import Explorer
from askew.ui.explorer.runs import audit
from askew.ui.web.pages.parts import outcome_words

EFFECT, LEAN = "nDCG@10", "ARaB(tf)@10"
SIDES = ("improved", "unchanged", "worsened")
WAYS = {EFFECT: Direction.UP, LEAN: Direction.ZERO}
# A grid, so that ties and tolerances that are just met are common.
values = st.one_of(st.sampled_from([-0.5, -0.25, 0.0, 0.25, 0.5, 1.0]), st.floats(-1, 1).map(lambda x: round(x, 6)))
quadruples = st.tuples(values, values, values, values)
JUDGED, UNJUDGED = "how to become a nurse", "women nursing school"


@pytest.fixture(scope="module")
def explorer(explorer):
    """The demo with one measure on each side."""
    made = Explorer(explorer.searched, counting_of(measures=[EFFECT, LEAN]))
    # What is typical is known before scores are made up.
    assert len(made.leaning.known)
    return made


def compared(explorer, query, old, new):
    """A comparison of the explorer in which both lists have these values."""
    sides = iter([old, new])

    def score(hits, doc_ids, texts, grades, also=()):
        found = next(sides)
        told = {name: np.array([found[name]]) for name in found if grades[0] is not None or name != EFFECT}
        return told | {one.text: np.array([math.nan]) for one in also}

    with patch.object(explorer.scorer, "score", score):
        return explorer.compare(query, "become nurse", 2)


def scored(old, new):
    rows = [("q", "q", "nurse", "original", None, old), ("q", "v", "become nurse", "m", None, new)]
    names = ("query_id", "variant_id", "text", "method", "doc_id")
    table = pl.DataFrame([row[:5] for row in rows], schema=dict.fromkeys(names, pl.String), orient="row")
    return table.with_columns(*(pl.Series(column_of(name), [row[5][name] for row in rows]) for name in WAYS))


def sides(first, second):
    return {EFFECT: first, LEAN: second}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(quadruples)
def test_explorer_selector_and_report_agree_on_every_pair(explorer, four):
    old, new = sides(*four[:2]), sides(*four[2:])
    pairs = make_pairs(scored(old, new), WAYS, [EFFECT], [LEAN]).table.with_columns(every=pl.lit(True))
    outcome = pairs["outcome"][0]
    assert compared(explorer, JUDGED, old, new).outcome == outcome
    summary = {row["measure"]: row for row in summarize(pairs, WAYS, ["every"]).to_dicts()}
    for name, word in zip(WAYS, outcome.split("-"), strict=True):
        told = verdict(old[name], new[name], WAYS[name])
        assert word == (told.value if name == EFFECT else told.lean)
        place = list(Verdict).index(told)
        assert [summary[name][f"{side}_pairs"] for side in SIDES].index(1) == place
        tested = paired(np.array([old[name]]), np.array([new[name]]), WAYS[name])
        assert [tested.improved, tested.unchanged, tested.worsened].index(1) == place


@given(st.lists(values, min_size=6, max_size=6), st.sampled_from([0.0, 0.25, 0.1]))
def test_explorer_and_selection_agree_where_several_measures_decide(six, tolerance):
    names = [EFFECT, LEAN, "ARaB(tc)@10"]
    ways = {EFFECT: Direction.UP, LEAN: Direction.ZERO, "ARaB(tc)@10": Direction.ZERO}
    old, new = (dict(zip(names, part, strict=True)) for part in (six[:3], six[3:]))
    rows = pl.concat([scored(old, new).with_columns(pl.Series("ARaB_tc_10", [old[names[2]], new[names[2]]]))])
    pairs = make_pairs(rows, ways, names[:1], names[1:], tolerance).table
    gains = {name: np.array([ways[name].gain(old[name], new[name])]) for name in names}
    sides = Sides(tuple(names[:1]), tuple(names[1:]), tolerance)
    assert sides.outcomes(gains, 1) == [pairs["outcome"][0]]
    assert sides.lean_verdicts(gains, 1) == [pairs["outcome"][0].partition("-")[2]]
    unjudged = {**gains, EFFECT: np.array([math.nan])}
    assert sides.outcomes(unjudged, 1) == [None] and sides.lean_verdicts(unjudged, 1) != [None]


@given(quadruples, st.sampled_from([0.0, 0.25, 0.5, 0.1]))
def test_selector_and_report_agree_under_a_tolerance(four, tolerance):
    old, new = sides(*four[:2]), sides(*four[2:])
    pairs = make_pairs(scored(old, new), WAYS, [EFFECT], [LEAN], tolerance).table.with_columns(every=pl.lit(True))
    told = [verdict(old[name], new[name], way, tolerance) for name, way in WAYS.items()]
    assert pairs["outcome"][0] == f"{told[0].value}-{told[1].lean}"
    for row in summarize(pairs, WAYS, ["every"], tolerance=tolerance).to_dicts():
        word = told[list(WAYS).index(row["measure"])]
        assert [row[f"{side}_pairs"] for side in SIDES].index(1) == list(Verdict).index(word)


@pytest.mark.parametrize(
    ("old", "new", "direction", "tolerance", "expected"),
    [
        (0.5, 0.75, Direction.UP, 0.0, Verdict.BETTER),
        (0.5, 0.75, Direction.UP, 0.25, Verdict.SAME),
        (0.5, 0.75, Direction.DOWN, 0.0, Verdict.WORSE),
        (-0.5, 0.25, Direction.ZERO, 0.0, Verdict.BETTER),
        (-0.5, 0.5, Direction.ZERO, 0.0, Verdict.SAME),
        (None, 0.5, Direction.UP, 0.0, None),
        (0.5, math.nan, Direction.UP, 1.0, None),
    ],
)
def test_a_verdict_follows_the_direction_and_the_tolerance(old, new, direction, tolerance, expected):
    assert verdict(old, new, direction, tolerance) is expected


@pytest.mark.parametrize(("effectiveness", "lean"), [(None, 1.0), (1.0, None), (math.nan, 1.0), (1.0, math.nan)])
def test_a_pair_with_one_side_unknown_has_no_outcome(effectiveness, lean):
    assert outcome_of(effectiveness, lean) is None
    assert outcome_of(1.0, 1.0) is Outcome.BETTER_LESS


def test_an_unjudged_query_has_no_verdict_on_effectiveness(explorer):
    found = explorer.compare(UNJUDGED, "nursing school")
    assert found.proxy and found.outcome is None and found.lean_verdict in ("less", "same", "more")
    candidates = explorer.reformulate(UNJUDGED).candidates
    assert candidates and all(one.outcome is None for one in candidates)
    for one in candidates:
        assert one.lean_verdict == verdict(0.0, one.gains[LEAN], Direction.UP).lean


def test_a_judged_query_has_both_verdicts(explorer):
    for one in explorer.reformulate(JUDGED).candidates:
        assert one.outcome.partition("-")[2] == one.lean_verdict
    found = explorer.compare(JUDGED, "become nurse")
    assert found.outcome.partition("-")[2] == found.lean_verdict


def test_pages_of_an_unjudged_query_speak_of_lean_only(client):
    text = client.get("/compare", params={"q": UNJUDGED, "to": "nursing school"}).text
    assert any(words in text for words in ("leans less", "leans as much", "leans more")) and "retrieves" not in text
    assert outcome_words(None, "more") == "leans more"


def test_what_is_left_of_rounding_is_no_loss_on_the_page_of_two_runs(explorer):
    """0.1 + 0.2 is not 0.3: the figure and the list of losses agree with the table that nothing changed."""
    ids = explorer.searched.ranker.doc_ids[:2].to_pylist()
    runs = {name: Run.of({"q1": dict(zip(ids, (2.0, 1.0), strict=True))}, name) for name in ("a", "b")}
    found = audit(runs, explorer, missing="zero")
    found.report.runs[0].values[LEAN][:] = 0.3
    found.report.runs[1].values[LEAN][:] = 0.1 + 0.2
    _, gains = found.gains(LEAN)
    assert gains.tolist() == [0.0] and found.worst(LEAN, 1) == []
