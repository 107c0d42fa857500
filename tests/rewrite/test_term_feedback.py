"""Feedback by hand: RM3, Rocchio, top words of passages, and RM3 by passages that lean less."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon
from askew.core.protocols import Passage, QueryBatch
from askew.measures.mentions import MentionCounter
from askew.rewrite.feedback import (
    FairFeedback,
    Leaning,
    RelevanceFeedback,
    Rm3Reformulator,
    RocchioReformulator,
    less_lean,
    relevance,
)
from askew.rewrite.reformulate import IndexStatistics
from askew.search.bm25.ranker import make_index
from askew.search.feedback import EXACT, Rm3, Rocchio, mean_vector, relevance_model
from askew.testing.contracts import ToyStatistics, check_reformulator

FILLER = [f"other{i} thing{i}" for i in range(60)]
WORDS = ["fig", "kiwi", "plum", "pear", "lemon", "mango"]


def asked(query, *passages, collection=()):
    """One query with passages, given as texts with scores, in a collection of these and fillers."""
    found = tuple(Passage(f"d{i}", text, score) for i, (text, score) in enumerate(passages))
    statistics = ToyStatistics([*(text for text, _ in passages), *collection, *FILLER])
    return QueryBatch(("q",), (query,), (found,), statistics)


def texts(method, *arguments, **options):
    return method.reformulate(asked(*arguments, **options)).texts


def weights_of(method, batch):
    return method.weigh(method.read(batch))


# RM3


def test_rm3_mixes_shares_of_the_query_and_of_the_passages_by_their_scores():
    one = asked("lemon fig", ("fig fig fig kiwi", 2.0), ("kiwi plum", 1.0))
    # fig: 3/4 * 2 = 1.5, kiwi: 1/4 * 2 + 1/2 * 1 = 1.0, plum: 0.5; the best two: fig 0.6, kiwi 0.4
    (weights,) = weights_of(Rm3Reformulator(terms=2), one)
    assert weights == pytest.approx({"lemon": 0.25, "fig": 0.25 + 0.3, "kiwi": 0.2})
    assert Rm3Reformulator(terms=2).reformulate(one).texts == ["lemon fig kiwi"]
    assert Rm3Reformulator(terms=3).reformulate(one).texts == ["lemon fig kiwi plum"]


def test_only_the_first_passages_and_their_most_frequent_terms_count():
    passages = [("kiwi kiwi plum", 3.0), ("pear", 2.5), ("mango", 1.0)]
    assert texts(Rm3Reformulator(documents=2, terms=10), "lemon", *passages) == ["lemon pear kiwi plum"]
    # Of each passage one term: kiwi 1 * 3, pear 1 * 2.5; the best one of these.
    assert texts(Rm3Reformulator(terms=1), "lemon", *passages) == ["lemon kiwi"]


def test_common_long_short_and_odd_terms_are_left_out():
    passage = ("kiwi x naïve supercalifragilisticexpialidocious common1 12", 1.0)
    many = ["common1"] * 10
    assert texts(Rm3Reformulator(), "lemon", passage, collection=many) == ["lemon 12 kiwi"]
    assert texts(Rm3Reformulator(common=1.0), "lemon", passage, collection=many) == ["lemon 12 common1 kiwi"]


def test_a_term_in_exactly_a_tenth_of_the_documents_is_usable():
    # With the passage and the fillers there are 70 documents; kiwi is in 7 of them, then in 8.
    for copies, expected in ((6, ["lemon kiwi plum"]), (7, ["lemon plum"])):
        others = ["kiwi"] * copies + ["filler"] * (9 - copies)
        assert texts(Rm3Reformulator(), "lemon", ("kiwi plum", 1.0), collection=others) == expected


def test_words_are_written_in_the_form_that_stands_most_often():
    passages = [("Stations station STATIONS", 1.0), ("station Stations kiwis kiwi", 1.0)]
    assert texts(Rm3Reformulator(), "lemon", *passages) == ["lemon stations kiwi"]


def test_a_term_that_the_query_has_in_another_form_is_not_appended():
    assert texts(Rm3Reformulator(), "old stations", ("station kiwi", 1.0)) == ["old stations kiwi"]


def test_the_query_stays_as_it_is_but_for_white_space():
    assert texts(Rm3Reformulator(), " Why,\tLemon?\n", ("kiwi", 1.0)) == ["Why, Lemon? kiwi"]


def test_all_weight_on_the_original_appends_nothing():
    found = Rm3Reformulator(original=1.0).reformulate(asked("lemon", ("kiwi", 1.0)))
    assert (found.texts, found.rejected) == ([], {"nothing found": 1})


def test_a_query_without_passages_keeps_its_own_terms_and_is_counted():
    one = asked("lemon lemon fig")
    assert weights_of(Rm3Reformulator(), one) == [pytest.approx({"lemon": 2 / 3, "fig": 1 / 3})]
    assert Rm3Reformulator().reformulate(one).rejected == {"nothing found": 1}


def test_a_blank_query_is_not_expanded():
    found = Rm3Reformulator().reformulate(asked("  ", ("kiwi", 1.0)))
    assert (found.texts, found.rejected) == ([], {"nothing found": 1})


bags = st.dictionaries(st.sampled_from(WORDS), st.integers(1, 9).map(float), min_size=1)
scored = st.lists(st.tuples(bags, st.floats(0.1, 50)), min_size=1, max_size=6)


@given(bags, scored, st.integers(1, 6), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_rm3_gives_the_weights_of_the_ranker_of_that_name(query, documents, terms, original):
    kept = [(dict(sorted(d.items(), key=lambda i: (-i[1], i[0]))[:terms]), score) for d, score in documents]
    expected = Rm3(terms=terms, original=original).mix(query, kept, EXACT)
    passages = [(_text(bag), score) for bag, score in documents]
    (weights,) = weights_of(Rm3Reformulator(terms=terms, original=original, common=1.0), asked(_text(query), *passages))
    # Sums that are equal but for rounding may fall on either side of the last place.
    assert sorted(weights.values()) == pytest.approx(sorted(expected.values()))
    assert sum(weights.values()) == pytest.approx(1.0)


@given(bags, scored, st.integers(1, 6))
def test_rocchio_gives_the_weights_of_the_ranker_of_that_name(query, documents, terms):
    expected = Rocchio(terms=terms).mix(query, documents, EXACT)
    passages = [(_text(bag), score) for bag, score in documents]
    (weights,) = weights_of(RocchioReformulator(terms=terms, common=1.0), asked(_text(query), *passages))
    assert sorted(weights.values()) == pytest.approx(sorted(expected.values()))


@given(st.lists(bags, min_size=1, max_size=6), st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_passages_of_equal_scores_plays_no_part(documents, random, terms):
    passages = [(_text(bag), 0.3) for bag in documents]
    shuffled = random.sample(passages, len(passages))
    for method in (Rm3Reformulator(terms=terms, common=1.0), RocchioReformulator(terms=terms, common=1.0)):
        one, other = asked("quark", *passages), asked("quark", *shuffled)
        assert weights_of(method, one) == weights_of(method, other)
        assert method.reformulate(one).texts == method.reformulate(other).texts


@given(bags, st.integers(1, 5))
def test_of_one_passage_more_terms_are_the_fewer_and_others_after_them(bag, terms):
    for make in (Rm3Reformulator, RocchioReformulator):
        fewer, more = (texts(make(terms=n, common=1.0), "quark", (_text(bag), 2.0)) for n in (terms, terms + 1))
        assert more[0].startswith(fewer[0])


@given(scored, st.floats(0.01, 100))
def test_scores_of_another_scale_change_nothing(documents, factor):
    one, other = (
        relevance_model([bag for bag, _ in documents], relevance([score * f for _, score in documents]), 4)
        for f in (1.0, factor)
    )
    assert sorted(one.values()) == pytest.approx(sorted(other.values()))


def _text(bag):
    return " ".join(word for word, count in bag.items() for _ in range(int(count)))


# Relevance


def test_relevance_is_the_share_of_the_highest_score_or_the_exponential_of_logarithms():
    assert relevance([4.0, 2.0, 0.0]) == [1.0, 0.5, 0.0]
    assert relevance([-1.0, -2.0]) == pytest.approx([1.0, math.exp(-1)])
    assert relevance([2.0, -1.0]) == pytest.approx([1.0, math.exp(-3)])
    assert relevance([0.0, 0.0]) == [1.0, 1.0]
    assert relevance([]) == []


@given(st.lists(st.floats(-1e6, 1e6), min_size=1))
def test_relevance_is_from_0_to_1_and_keeps_the_order(scores):
    found = relevance(scores)
    assert all(0 <= value <= 1 for value in found)
    assert max(found) == 1.0
    assert [value for _, value in sorted(zip(scores, found, strict=True))] == sorted(found)


# Rocchio and ReQue's feedback


def test_rocchio_adds_the_mean_of_the_passages_to_the_query():
    one = asked("lemon", ("fig fig fig kiwi kiwi kiwi kiwi", 9.0), ("kiwi", 1.0))
    # mean: fig 3/5 / 2 = 0.3, kiwi (4/5 + 1) / 2 = 0.9; alone it has length 1, both together sqrt(0.9)
    assert weights_of(RocchioReformulator(terms=1), one) == [pytest.approx({"lemon": 1.0, "kiwi": 0.75})]
    both = {"lemon": 1.0, "kiwi": 0.75 * 0.9 / math.sqrt(0.9), "fig": 0.75 * 0.3 / math.sqrt(0.9)}
    assert weights_of(RocchioReformulator(), one) == [pytest.approx(both)]
    assert RocchioReformulator().reformulate(one).texts == ["lemon kiwi fig"]


def test_rocchio_reads_every_term_of_a_passage_and_keeps_the_best_of_the_mean():
    passages = [(f"pear pear {fruit} {fruit} {fruit}", 1.0) for fruit in ("fig", "kiwi", "plum")]
    assert texts(RocchioReformulator(terms=1), "lemon", *passages) == ["lemon pear"]
    # RM3 with one term counts of each passage its most frequent term alone.
    assert texts(Rm3Reformulator(terms=1), "lemon", *passages) == ["lemon fig"]


def test_rocchio_takes_terms_of_any_letters():
    passage = ("kiwi x naïve 日 😀 supercalifragilisticexpialidocious", 1.0)
    assert texts(RocchioReformulator(), "lemon", passage) == ["lemon kiwi naïve 😀"]


@pytest.mark.parametrize("method", [Rm3Reformulator(), RocchioReformulator()])
def test_passages_without_text_are_not_documents_when_common_terms_are_left_out(method):
    # kiwi is in 7 documents: with the passages and the fillers there are 69, the blank ones left out, then 70.
    others = ["kiwi"] * 6 + ["filler"] * 2
    assert texts(method, "lemon", ("kiwi plum", 1.0), collection=[*others, "", " \n"]) == ["lemon plum"]
    assert texts(method, "lemon", ("kiwi plum", 1.0), collection=[*others, "the"]) == ["lemon kiwi plum"]


def test_an_index_counts_the_documents_that_have_text(tmp_path):
    texts = ["kiwi plum", "\u00a0", "the", "", " \n\0"]
    documents = pa.table({"doc_id": list("abcde"), "text": pa.array(texts, pa.large_string())})
    make_index([documents], tmp_path / "i")
    assert IndexStatistics(tmp_path / "i").documents == ToyStatistics(texts).documents == 3


def test_the_mean_is_that_of_vectors_of_length_one():
    assert mean_vector([{"a": 3.0, "b": 4.0}, {"b": 1.0}]) == pytest.approx({"a": 0.3, "b": 0.9})


def test_relevance_feedback_appends_the_word_of_the_highest_tf_idf_of_each_passage():
    # 65 documents. plum is in 3, fig in 2: 2 * ln(65/3) = 6.15 for plums, ln(65/2) = 3.48 for figs.
    passages = [("plums plums fig", 3.0), ("fig lemon", 2.0), ("plum", 1.0)]
    found = texts(RelevanceFeedback(), "lemon", *passages, collection=["lemon", "lemon"])
    assert found == ["lemon plums fig"]


def test_relevance_feedback_of_more_passages_begins_with_that_of_fewer():
    passages = [(word, 9.0 - i) for i, word in enumerate(WORDS)]
    found = [texts(RelevanceFeedback(documents=n), "quark", *passages)[0] for n in (1, 3, 6)]
    assert found == ["quark fig", "quark fig kiwi plum", "quark fig kiwi plum pear lemon mango"]


def test_a_word_that_is_everywhere_says_nothing():
    one = QueryBatch(("q",), ("lemon",), ((Passage("d", "fig", 1.0),),), ToyStatistics(["fig"]))
    assert RelevanceFeedback().reformulate(one).rejected == {"nothing found": 1}


# Lean


def test_lean_is_the_distance_of_the_groups_in_shares_of_their_mentions():
    leaning = Leaning(Groups.of("gender:female,male"))
    assert leaning.groups == ("female", "male")
    assert leaning.lean("He said he saw her.") == pytest.approx(1 / 3)
    assert leaning.lean("she") == 1.0
    assert leaning.lean("He and she") == leaning.lean("nobody here") == leaning.lean("") == 0.0
    # Who is neither female nor male is named, but not compared.
    assert leaning.lean("nonbinary people, he and she") == 0.0


def test_any_number_of_groups_can_be_compared():
    colours = Lexicon("colours", {"red": ("red", "crimson"), "green": ("green",), "blue": ("blue",)})
    leaning = Leaning(Groups(colours))
    assert leaning.groups == ("red", "green", "blue")
    assert leaning.lean("red crimson red green") == pytest.approx(3 / 4)
    assert leaning.lean("red crimson green green blue") == pytest.approx(1 / 5)
    assert Leaning(Groups(colours, ["green", "blue"])).lean("red red green") == 1.0


def test_groups_that_cannot_be_compared_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'male'"):
        FairFeedback(groups="gender:mal,female")
    for groups in ("gender:female", {"red": ["red"]}):
        with pytest.raises(ConfigError) as refused:
            FairFeedback(groups=groups)
        assert refused.value.code == "one-group"


def test_terms_that_could_never_be_found_are_refused():
    for term, expected in (("!!", "has no token"), ("step mo*", "must be a single token")):
        with pytest.raises(DataError, match=f"lexicon 'odd': .* {expected}"):
            Leaning(Groups(Lexicon("odd", {"one": (term,), "two": ("she",)})))


def test_which_group_is_named_makes_no_difference_to_the_lean():
    for groups in ("male,female", "female,male"):
        assert Leaning(Groups.of(f"gender:{groups}")).lean("he he she") == pytest.approx(1 / 3)


TRICKY = Lexicon(
    "tricky",
    {"one": ("he", "mother", "mother in law", "fem*", "ma'am"), "two": ("she", "in law", "he", "femin*", "law")},
)
tokens = st.sampled_from(
    ["he", "she", "mother", "in", "law", "mother-in-law", "female", "feminine", "ma'am", "x", "He,"]
)


@given(st.lists(tokens, max_size=12).map(" ".join), st.sampled_from(["word", "blank", "seyedsalehi"]))
def test_mentions_are_counted_as_measures_count_them(text, tokenizer):
    expected = MentionCounter(TRICKY, tokenizer).count(pa.array([text])).counts[0].tolist()
    assert Leaning(Groups(TRICKY, tokens=tokenizer)).counts(text) == expected


# Feedback that leans less


def test_a_passage_counts_its_relevance_less_its_lean_and_never_less_than_nothing():
    assert less_lean(1.0, 1 / 3, 0.5) == pytest.approx(1 / 3)
    assert less_lean(0.5, 0.0, 0.5) == 0.25
    assert less_lean(0.5, 1.0, 0.5) == 0.0
    assert less_lean(0.7, 1.0, 0.0) == 0.7


def test_feedback_comes_from_passages_that_lean_less():
    one = asked("lemon", ("he kiwi he she", 4.0), ("plum fig", 2.0), ("he mango", 2.0))
    # kiwi: 0.5 * 1 - 0.5 * 1/3 = 1/3; plum and fig half of 0.5 * 0.5 = 1/8 each; mango 0.25 - 0.5 < 0
    expected = {"lemon": 0.5, "kiwi": 0.5 * 4 / 7, "plum": 0.5 * 3 / 14, "fig": 0.5 * 3 / 14}
    assert weights_of(FairFeedback(), one) == [pytest.approx(expected)]
    assert FairFeedback().reformulate(one).texts == ["lemon kiwi fig plum"]
    assert FairFeedback(lambda_=0.0).reformulate(one).texts == ["lemon kiwi mango fig plum"]


def test_words_that_name_a_group_can_be_kept():
    passage = ("her mother nursing kiwi kiwi", 1.0)
    assert texts(FairFeedback(lambda_=0.2), "lemon", passage) == ["lemon kiwi nursing"]
    assert texts(FairFeedback(lambda_=0.2, keep_group_terms=True), "lemon", passage) == [
        "lemon kiwi her mother nursing"
    ]


def test_a_group_word_of_the_query_itself_stays():
    assert texts(FairFeedback(), "her lemon", ("kiwi her", 1.0), ("plum", 1.0)) == ["her lemon plum"]


def test_lambda_1_leaves_nothing_to_count_by():
    found = FairFeedback(lambda_=1.0).reformulate(asked("lemon", ("kiwi", 2.0), ("he plum", 1.0)))
    assert found.rejected == {"nothing found": 1}


gendered = st.lists(st.sampled_from([*WORDS, "he", "she", "mother", "king"]), min_size=1, max_size=8).map(" ".join)


@given(st.lists(st.tuples(gendered, st.floats(-5, 50)), max_size=5), st.integers(1, 5), st.sampled_from([0.0, 0.5]))
def test_lambda_0_is_rm3(passages, terms, original):
    one = asked("lemon he", *passages)
    fair = FairFeedback(lambda_=0.0, terms=terms, original=original, keep_group_terms=True, common=1.0)
    plain = Rm3Reformulator(terms=terms, original=original, common=1.0)
    assert weights_of(fair, one) == weights_of(plain, one)
    assert fair.reformulate(one).texts == plain.reformulate(one).texts


@given(st.floats(0, 0.99), st.floats(0, 0.99))
def test_the_larger_lambda_the_less_a_leaning_passage_counts_beside_a_balanced_one(a, b):
    one = asked("lemon", ("he kiwi", 2.0), ("he she plum", 1.0))
    low, high = (weights_of(FairFeedback(lambda_=x, original=0.0), one)[0].get("kiwi", 0.0) for x in sorted((a, b)))
    assert high <= low + 1e-12


@given(st.lists(st.tuples(gendered, st.floats(0.1, 9)), min_size=1, max_size=4), st.floats(0, 1))
def test_no_word_that_names_a_group_is_ever_appended(passages, lambda_):
    for text in texts(FairFeedback(lambda_=lambda_, common=1.0), "lemon", *passages):
        assert not {"he", "she", "mother", "king"} & set(text.split())


# The contract


@pytest.mark.parametrize("method", [Rm3Reformulator, RocchioReformulator, FairFeedback])
def test_feedback_keeps_the_contract_of_reformulators(method):
    check_reformulator(method())
    found = check_reformulator(method(common=1.0, terms=3))
    assert set(found.rows) >= {1, 4}
    assert all(text.split()[:2] in (["is", "she"], ["history", "of"], ["who", "was"], ["naïve", "façades"])
               for text in found.texts)  # fmt: skip


def test_relevance_feedback_keeps_the_contract_of_reformulators():
    assert len(check_reformulator(RelevanceFeedback())) == 4


def test_a_lexicon_or_tokenizer_that_is_not_there_is_refused():
    with pytest.raises(UnknownName):
        FairFeedback(groups="gendr")
    with pytest.raises(DataError):
        FairFeedback(groups="nowhere.toml")
    with pytest.raises(UnknownName):
        FairFeedback(groups=Groups.load("gender", tokens="wrd"))


def test_settings_name_the_lexicon_by_its_content():
    assert FairFeedback().settings()["lexicon"].startswith("gender@")
    assert FairFeedback().settings()["groups"] == "female-male"


@pytest.mark.parametrize("method", [Rm3Reformulator, RocchioReformulator, FairFeedback, RelevanceFeedback])
def test_what_is_not_there_to_read_is_one_clear_line(method):
    for passages, statistics, code in (
        (None, ToyStatistics(["fig"]), "no-passages"), (((),), None, "no-statistics")
    ):  # fmt: skip
        with pytest.raises(ConfigError) as refused:
            method().reformulate(QueryBatch(("q",), ("lemon",), passages, statistics))
        assert refused.value.code == code
