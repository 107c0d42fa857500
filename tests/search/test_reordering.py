"""Methods that reorder results by the groups that documents name: examples worked out by hand, and laws."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.core.plugins import build, names
from askew.core.protocols import MitigationPlugin, MitigationTask, check_lists
from askew.core.ranking import Hits
from askew.search.mitigation import DetConstSort, FairTopK, GreedyWindow, MarginalRelevance, document_groups
from askew.study.bench.methods import make_plugin, read_method
from askew.testing.contracts import check_mitigation

# Documents by their counts of two groups: 0 and 1 name the first group, 2 and 3 the second, 4 none.
COUNTS = np.array([[3, 0], [1, 0], [0, 3], [0, 1], [0, 0]], np.int32)


def task_of(lists, counts=COUNTS, groups=("a", "b"), scores=None):
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    docs = np.array([doc for one in lists for doc in one], np.int32)
    falling = np.concatenate([-np.arange(len(one), dtype=np.float32) for one in lists]) if len(docs) else np.zeros(0)
    first = Hits(offsets, docs, np.asarray(falling if scores is None else scores, np.float32))
    return MitigationTask([f"q{i}" for i in range(len(lists))], ["text"] * len(lists), first, groups, counts)


def docs_of(plugin, *lists, **given):
    made = plugin.rank(task_of(lists, **given))
    return [made.docs[start:end].tolist() for start, end in zip(made.offsets, made.offsets[1:], strict=False)]


def test_the_greedy_window_keeps_rank_1_and_then_brings_the_running_lean_closest_to_zero():
    # After document 0 (+ln 4), of 1, 2 and 3 the second (-ln 4) brings the sum to zero; then 1 and 3 are equally far
    # from zero, and 1 is first.
    assert docs_of(GreedyWindow(3), [0, 1, 2, 3]) == [[0, 2, 1, 3]]
    # A window of two does not see the last document at rank 2.
    assert docs_of(GreedyWindow(2), [0, 1, 3, 2]) == [[0, 3, 2, 1]]


def test_a_window_of_one_changes_nothing():
    assert docs_of(GreedyWindow(1), [0, 1, 2], [4, 3]) == [[0, 1, 2], [4, 3]]


def test_of_one_group_the_documents_that_name_it_least_come_first():
    assert docs_of(GreedyWindow(3), [0, 1, 2], counts=np.array([[3], [2], [0]], np.int32), groups=("a",)) == [[0, 2, 1]]


def test_of_three_groups_the_running_sums_are_brought_together():
    counts = np.array([[2, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 2]], np.int32)
    # The largest and the smallest sum stay ln 3 apart until each group has one: of equals the first.
    assert docs_of(GreedyWindow(4), [0, 1, 2, 3], counts=counts, groups=("a", "b", "c")) == [[0, 2, 3, 1]]


def test_marginal_relevance_ranks_by_score_alone_at_strength_0_and_by_lean_alone_at_1():
    lists = [0, 1, 2, 3, 4]
    assert docs_of(MarginalRelevance(0.0), lists) == [lists]
    # By lean alone: the document without a group first, then pairs that cancel.
    assert docs_of(MarginalRelevance(1.0), lists)[0][0] == 4


def test_marginal_relevance_reads_scores_and_not_only_ranks():
    # Document 1 leans half as much as document 0: 0.4 * 0.5 is more than it is behind by its score, or less.
    assert docs_of(MarginalRelevance(0.4), [0, 1, 2], scores=[10.0, 1.0, 0.9])[0][0] == 0
    assert docs_of(MarginalRelevance(0.4), [0, 1, 2], scores=[10.0, 9.9, 0.0])[0][0] == 1


def test_a_document_belongs_to_the_group_that_it_names_most():
    assert document_groups(np.array([[3, 2, 2], [3, 3, 0], [0, 0, 0], [0, 1, 0]], np.int32)).tolist() == [1, 0, 0, 2]


def test_detconstsort_at_strength_0_asks_for_the_shares_that_a_list_has():
    # Half of each group: at full strength and at none the targets are the same.
    lists = [0, 1, 2, 3]
    assert docs_of(DetConstSort(0.0), lists) == docs_of(DetConstSort(1.0), lists) == [[0, 2, 1, 3]]


def test_fairtopk_moves_a_document_up_where_a_group_has_fewer_than_the_quantile():
    counts = np.array([[1, 0]] * 8 + [[0, 1]] * 2, np.int32)
    lists = list(range(10))
    # The 10% quantile of Binomial(k, 0.5) is 1 from k = 4 on, and 2 from k = 7 on.
    (made,) = docs_of(FairTopK(1.0, alpha=0.1), lists, counts=counts)
    assert made[:4] == [0, 1, 2, 8] and made[:7].count(9) == 1
    (weak,) = docs_of(FairTopK(0.0, alpha=0.1), lists, counts=counts)
    assert weak == lists


def test_targets_that_do_not_name_the_groups_are_refused():
    with pytest.raises(ConfigError, match="neutral, a, b"):
        DetConstSort(targets="neutral:0.5,x:0.5").rank(task_of([[0]]))


def test_shares_need_two_groups():
    with pytest.raises(ConfigError) as caught:
        FairTopK().rank(task_of([[0]], counts=COUNTS[:, :1], groups=("a",)))
    assert caught.value.code == "too-few-groups" and caught.value.values == {"groups": ("a",)}


@pytest.mark.parametrize("name", names("mitigation"))
def test_a_strength_out_of_range_is_refused_with_the_range(name):
    with pytest.raises(ConfigError, match="strength"):
        build("mitigation", name, {"strength": -1})


list_of_documents = st.lists(st.integers(0, 4), unique=True, max_size=5)


@pytest.mark.parametrize("name", names("mitigation"))
@given(lists=st.lists(list_of_documents, min_size=1, max_size=4))
def test_every_method_gives_the_same_documents_with_falling_scores(name, lists):
    plugin = build("mitigation", name, {})
    assert isinstance(plugin, MitigationPlugin)
    task = task_of(lists)
    made = check_lists(plugin.rank(task), task, name)
    for row, given_docs in enumerate(lists):
        part = slice(made.offsets[row], made.offsets[row + 1])
        assert sorted(made.docs[part].tolist()) == sorted(given_docs)
        assert (np.diff(made.scores[part]) < 0).all()


@pytest.mark.parametrize("name", names("mitigation"))
def test_every_method_keeps_the_contract(name):
    check_mitigation(build("mitigation", name, {}))


def test_the_example_of_the_documentation_keeps_the_contract():
    file = Path(__file__).parents[2] / "docs" / "contributing" / "interleave.py"
    method = read_method(f"{file}:Interleave@5")
    made = check_mitigation(make_plugin(method))
    # The groups of the first list in turn: documents 0 and 1, 5 and 4; 2 names none and stays.
    assert made.docs[:6].tolist() == [0, 1, 2, 3, 4, 5]


class Careless:
    def rank(self, task):
        task.first.docs[:6] = task.first.docs[:6][::-1]
        return task.reordered(np.arange(len(task.first.docs)))


class Mixing:
    """What a query gets depends on how many there are."""

    def rank(self, task):
        return GreedyWindow(1 if len(task.query_ids) == 1 else 3).rank(task)


@pytest.mark.parametrize(
    ("method", "words"), [(Careless(), "must not change"), (Mixing(), "depend on the other queries")]
)
def test_the_contract_finds_what_is_wrong(method, words):
    with pytest.raises(AssertionError, match=words):
        check_mitigation(method)


@given(lists=st.lists(list_of_documents.filter(bool), min_size=1, max_size=4), window=st.integers(1, 6))
def test_what_a_query_gets_does_not_depend_on_the_others(lists, window):
    together = docs_of(GreedyWindow(window), *lists)
    assert together == [docs_of(GreedyWindow(window), one)[0] for one in lists]
    assert [one[0] for one in together] == [one[0] for one in lists]


@pytest.mark.parametrize(
    ("hits", "words"),
    [
        (Hits(np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.float32)), "a list for each of 1 queries, found 0"),
        (Hits(np.array([0, 2]), np.array([1, 1], np.int32), np.zeros(2, np.float32)), "a document twice"),
        (Hits(np.array([0, 1]), np.array([9], np.int32), np.zeros(1, np.float32)), "from 0 to 4"),
        (
            Hits(np.array([0, 2]), np.array([1], np.int32), np.zeros(1, np.float32)),
            "2 documents, each with a score, found 1 documents",
        ),
    ],
)
def test_lists_that_are_none_are_refused_with_the_name_of_the_method(hits, words):
    with pytest.raises(DataError, match=words) as error:
        check_lists(hits, task_of([[0, 1]]), "mine")
    assert "method mine" in str(error.value)
