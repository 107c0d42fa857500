"""Which documents become negatives: samples worked out by hand, and laws."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.core.ranking import Rankings
from askew.search.annotated import JudgedPairs
from askew.train.negatives import (
    FEW,
    FEW_LEANING,
    NO_NEGATIVES,
    NO_RELEVANT,
    NONE,
    PRESETS,
    NegativeSampling,
    groups_of,
    sample_negatives,
)


def lists(**queries):
    sizes = [len(docs) for docs in queries.values()]
    every = [doc for docs in queries.values() for doc in docs]
    return Rankings(pa.array(list(queries), pa.string()), np.cumsum([0, *sizes]), np.array(every, np.int64))


def judged(*triples):
    rows = np.array(triples, np.int64).reshape(-1, 3)
    return JudgedPairs(rows[:, 0], rows[:, 1], rows[:, 2] > 0)


def of(found, row):
    mine = found.row == row
    return found.doc[mine].tolist(), found.leaning[mine].tolist()


LEAN = np.array([0.0, 3.0, 1.0, 2.0, 0.0, 3.0, 0.0, 0.5])


def test_the_published_preset_is_twelve_of_twenty_from_the_first_thousand():
    how = PRESETS["bigdeli2022"]
    assert (how.count, how.leaning, how.depth) == (20, 12, 1000)
    assert PRESETS["original"].leaning == 0


def test_the_most_leaning_come_first_and_the_better_ranked_of_equals():
    # Leans by rank: 0, 3, 1, 2, 0, 3. The two of lean 3 are documents 1 (rank 2) and 5 (rank 6), then document 3.
    found = sample_negatives(lists(q=[0, 1, 2, 3, 4, 5]), LEAN, judged(), NegativeSampling(4, 0.75, 10))
    docs, leaning = of(found, 0)
    assert set(docs[:3]) == {1, 3, 5} and leaning == [True, True, True, False]
    assert docs[3] in (0, 2, 4)
    two = sample_negatives(lists(q=[5, 1, 3]), LEAN, judged(), NegativeSampling(1, 1.0, 10))
    assert of(two, 0)[0] == [5]


def test_only_the_first_documents_of_a_list_are_looked_at():
    found = sample_negatives(lists(q=[0, 2, 4, 1]), LEAN, judged(), NegativeSampling(2, 0.5, 3))
    assert 1 not in found.doc and of(found, 0)[0][0] == 2


def test_documents_that_lean_nowhere_are_never_counted_as_leaning():
    found = sample_negatives(lists(q=[0, 4, 6, 7]), LEAN, judged(), NegativeSampling(4, 0.75, 10))
    docs, leaning = of(found, 0)
    assert sorted(docs) == [0, 4, 6, 7] and sum(leaning) == 1
    assert found.short == {FEW_LEANING: 1}


def test_relevant_documents_are_never_negatives_and_by_default_no_judged_one_is():
    run, known = lists(q=[0, 1, 2, 3]), judged((0, 1, 1), (0, 3, 0))
    strict = sample_negatives(run, LEAN, known, NegativeSampling(4, 0.5, 10))
    assert sorted(strict.doc) == [0, 2]
    loose = sample_negatives(run, LEAN, known, NegativeSampling(4, 0.5, 10, exclude="relevant"))
    assert sorted(loose.doc) == [0, 2, 3]


def test_queries_with_too_few_documents_are_counted_by_reason():
    found = sample_negatives(lists(a=[0, 1, 2], b=[1], c=[]), LEAN, judged((1, 1, 1)), NegativeSampling(2, 0.5, 10))
    assert found.short == {NONE: 2}
    few = sample_negatives(lists(a=[0, 1], b=[0, 1, 2, 3]), LEAN, judged(), NegativeSampling(3, 0.3, 10))
    assert few.short == {FEW: 1}


@pytest.mark.parametrize("wrong", [{"count": 0}, {"share": 1.5}, {"depth": 0}, {"exclude": "some"}, {"seed": -1}])
def test_a_wrong_setting_is_told(wrong):
    with pytest.raises(ConfigError, match="negatives"):
        NegativeSampling(**wrong)


RUNS = st.lists(st.lists(st.integers(0, 29), max_size=25, unique=True), min_size=1, max_size=6)
LEANS = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0]), min_size=30, max_size=30)


@settings(max_examples=60)
@given(RUNS, LEANS, st.integers(1, 12), st.sampled_from([0.0, 0.25, 0.6, 1.0]), st.integers(0, 3), st.data())
def test_counts_are_exact_and_nothing_judged_or_repeated_is_drawn(run, lean, count, share, seed, data):
    known = [
        (row, doc, data.draw(st.integers(0, 1)))
        for row, docs in enumerate(run)
        for doc in docs
        if data.draw(st.booleans())
    ]
    how = NegativeSampling(count, share, 20, seed=seed)
    given_lists = lists(**{f"q{i}": docs for i, docs in enumerate(run)})
    found = sample_negatives(given_lists, np.array(lean), judged(*known), how)
    for row, docs in enumerate(run):
        free = [doc for doc in docs[:20] if (row, doc) not in {(r, d) for r, d, _ in known}]
        leaning = [doc for doc in free if lean[doc] > 0]
        drawn, marks = of(found, row)
        assert len(drawn) == len(set(drawn)) == min(count, len(free))
        assert set(drawn) <= set(free)
        assert sum(marks) == min(how.leaning, len(leaning))
        taken = [doc for doc, mark in zip(drawn, marks, strict=True) if mark]
        left = [doc for doc in leaning if doc not in taken]
        assert not taken or not left or min(lean[doc] for doc in taken) >= max(lean[doc] for doc in left)


@settings(max_examples=40)
@given(RUNS, LEANS, st.randoms(use_true_random=False))
def test_the_order_of_the_queries_makes_no_difference(run, lean, random):
    names = {f"q{i}": docs for i, docs in enumerate(run)}
    mixed = list(names.items())
    random.shuffle(mixed)
    how = NegativeSampling(5, 0.4, 20)
    found = [sample_negatives(lists(**dict(order)), np.array(lean), judged(), how) for order in (names.items(), mixed)]
    for i, name in enumerate(names):
        j = [one for one, _ in mixed].index(name)
        assert of(found[0], i) == of(found[1], j)


def test_the_same_seed_draws_the_same_and_another_seed_draws_otherwise():
    run = lists(q=list(range(200)))
    nowhere = np.zeros(200)
    first, again, other = (
        sample_negatives(run, nowhere, judged(), NegativeSampling(20, 0, 200, seed=s)) for s in (1, 1, 2)
    )
    assert first.doc.tolist() == again.doc.tolist() != other.doc.tolist()


def test_random_negatives_are_spread_over_the_whole_list():
    run = lists(**{f"q{i}": list(range(100)) for i in range(300)})
    found = sample_negatives(run, np.zeros(100), judged(), NegativeSampling(10, 0, 100))
    counts = np.bincount(found.doc, minlength=100)
    # 3,000 draws over 100 places: 30 each on average, with a spread of about 5.
    assert counts.min() > 8 and counts.max() < 56


def test_all_negatives_are_used_once_and_relevant_documents_take_turns():
    relevant = np.array([0, 0, 1]), np.array([90, 91, 92])
    negatives = np.array([0] * 5 + [1] * 2 + [2] * 3), np.arange(10)
    made = groups_of(relevant, negatives, 4, each=2)
    assert made.left.tolist() == [0, 0, 0, 1]
    assert made.right[:, 0].tolist() == [90, 91, 90, 92]
    assert sorted(made.right[:3, 1:].reshape(-1)) == [-1, 0, 1, 2, 3, 4] and sorted(made.right[3, 1:]) == [5, 6]
    assert made.labels.tolist() == [[1.0, 0.0, 0.0]] * 4
    assert made.left_out == {NO_RELEVANT: 2}
    assert groups_of(relevant, (np.array([0]), np.array([4])), 2, each=2).left_out == {NO_NEGATIVES: 1}
