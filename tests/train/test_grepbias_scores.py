"""Cells, winners and averages by hand; and the published tables, whose averages follow from their own cells."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from askew.train.grepbias import (
    MethodLogits,
    accuracy_table,
    average_zero_shot,
    cell_accuracy,
    cell_fractions,
    fractions_table,
    group_rows,
    published_cells,
    summarize,
    summary_table,
    winners,
)

PROGRAM = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "grepbias.py")))

NAMES = ("a", "b")


def small():
    """Two categories of two queries; of each a relevant document in three versions and an irrelevant one."""
    query = np.repeat(["q0", "q1", "q2", "q3"], 4)
    category = np.repeat(["a", "a", "b", "b"], 4)
    relevant = np.tile([True, True, True, False], 4)
    gender = np.tile(["M", "F", "N", "N"], 4)
    return group_rows(NAMES, category, query, relevant, gender)


LOGITS = np.array(
    [
        [3, 1, 2, -1, 1, 2, 0.5, -1, -1, -2, -3, 1, 1, 1, 2, -1],  # trained on a
        [1, 2, 3, -1, 1, 2, 3, -1, 2, 1, 0, -1, -1, 4, 0.5, 2],  # trained on b
    ],
    float,
)


def test_cells_winners_and_averages_worked_out_by_hand():
    groups = small()
    accuracy = cell_accuracy(LOGITS, groups)
    # a on b: the first query has all four rows wrong, the second none; b on b: N of q2 is 0, M and the last of q3 wrong
    np.testing.assert_allclose(accuracy, [[1.0, 4 / 8], [1.0, 5 / 8]])
    np.testing.assert_allclose(average_zero_shot(accuracy), [4 / 8, 1.0])
    won = winners(LOGITS, groups)
    # of q2 no version is retrieved by the first, of q3 M and F are alike; neither counts
    assert won.tolist() == [[0, 1, -1, -1], [2, 2, 0, 1]]
    shares = cell_fractions(won, groups)
    np.testing.assert_allclose(shares[0, 0], [0.5, 0.5, 0])
    assert np.isnan(shares[0, 1]).all()
    np.testing.assert_allclose(shares[1], [[0, 0, 1], [0.5, 0.5, 0]])
    np.testing.assert_allclose(PROGRAM.male_minus_female(shares), [0.0, 0.0])


def test_a_summary_agrees_with_the_tables_and_its_intervals_hold_it():
    groups = small()
    found = summarize(LOGITS[None], groups, np.concatenate([LOGITS[0, :8], LOGITS[1, 8:]])[None])
    assert found.zero_shot.value == pytest.approx((4 / 8 + 1.0) / 2)
    assert found.fitted.value == pytest.approx((1 + 5 / 8) / 2)
    assert found.inside.value == pytest.approx((1 + 5 / 8) / 2)
    assert found.zero_shot.low <= found.zero_shot.value <= found.zero_shot.high
    assert found.lean.value == pytest.approx(0.0) and found.gap.value == pytest.approx(0.0)
    # trained on a: (zM - zF)^2 of q2, q3 are 1, 0; trained on b: of q0, q1 both 1
    distances = [np.sqrt(0.5) / LOGITS[0, 8:].std(), 1.0 / LOGITS[1, :8].std()]
    assert found.distance.value == pytest.approx(np.mean(distances))


def test_a_query_with_another_label_of_gender_is_in_no_triple():
    groups = group_rows(
        ("a",), np.array(["a"] * 3), np.array(["q"] * 3), np.ones(3, bool), np.array(["M", "both", "N"])
    )
    assert winners(np.array([[3.0, 2.0, 1.0]]), groups).tolist() == [[-1]]


@pytest.mark.parametrize(("table", "mean", "sd"), [("1", 0.5144, 0.0252), ("2", 0.6935, 0.0199)])
def test_the_published_averages_follow_from_the_published_cells(table, mean, sd):
    cells = published_cells(table)
    names = list(dict.fromkeys(train for train, _, _ in cells))
    assert len(names) == 7
    accuracy = np.array([[cells[a, b, "accuracy"] for b in names] for a in names])
    found = average_zero_shot(accuracy)
    printed = [cells[a, "Average*", "accuracy"] for a in names]
    np.testing.assert_allclose(found, printed, atol=1.01e-4)
    assert found.mean() == pytest.approx(mean, abs=1e-4)
    assert found.std(ddof=1) == pytest.approx(sd, abs=1e-4)


def test_the_published_gaps_follow_from_the_published_shares():
    cells = published_cells("6")
    names = list(dict.fromkeys(train for train, _, _ in cells))
    for when, mean in (("before", 0.1114), ("after", 0.0571)):
        gaps = [cells[name, "Average", f"{when} |M-F|"] for name in names]
        assert np.mean(gaps) == pytest.approx(mean, abs=1e-4)
        for name, gap in zip(names, gaps, strict=True):
            shares = [cells[name, "Average", f"{when} {g}"] for g in "MF"]
            assert abs(shares[0] - shares[1]) == pytest.approx(gap, abs=0.0101)


def test_tables_show_ours_and_in_brackets_the_published():
    names = tuple(dict.fromkeys(train for train, _, _ in published_cells("2")))
    query = np.repeat([f"q{i}" for i in range(7)], 4)
    groups = group_rows(
        names, np.repeat(names, 4), query, np.tile([True, True, True, False], 7), np.tile(["M", "F", "N", "N"], 7)
    )
    rng = np.random.default_rng(0)
    before, after, untrained = (MethodLogits(name, rng.normal(size=(2, 7, 28))) for name in ("one", "two", "cosine"))
    shown = accuracy_table("2", before, groups, untrained)
    assert shown.rows[0][1].endswith("[0.957]") and shown.rows[0][-1].endswith("[0.679]")
    assert shown.rows[-2][0] == "mean" and shown.rows[-2][-1].endswith("[0.694]")
    assert fractions_table(before, groups, untrained).rows[1][1] == "0.13/0.18/0.69"
    assert PROGRAM.before_after_table(before, after, groups, untrained).rows[-2][-1].endswith("[0.057]")
    total = summary_table([before, after], groups)
    assert [row[0] for row in total.rows] == ["one", "two"] and total.rows[0][-1].startswith("2 (")


def test_top_words_are_frequent_here_and_rare_elsewhere():
    documents = {"Career": ["the job the job career work"], "Child Care": ["the baby the baby work parents"]}
    table = PROGRAM.words_table(("Career", "Child Care"), documents, frozenset({"the"}))
    assert table.rows[0][1].startswith("job (") and table.rows[1][1].startswith("baby (")
    # job: 2 (ln(3/2) + 1), career: 1 (ln(3/2) + 1), work: 1; as shares of the length of the whole
    idf = np.log(3 / 2) + 1
    assert f"job ({2 * idf / np.sqrt((2 * idf) ** 2 + idf**2 + 1):.2f})" in table.rows[0][1]
    assert table.rows[0][2] == "job (0.10), career (0.08), home (0.08)"
