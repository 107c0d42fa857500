"""What a specializing reformulation is: tables of pairs, laws, and the analysis of a log against the plain words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain import read_block, specialization

from askew.core.errors import ConfigError
from askew.core.lexicon import Lexicon, load_lexicon
from askew.logs.definition import build_vocabulary, canonical, published_prepositions, terms

FEMALE, MALE = 1, 2

# First query, second query, the block, the groups.
FOR_A_GROUP = [
    ("olympic 2021 soccer results", "olympic 2021 women's soccer results", "women's", FEMALE),
    ("leadership quotes", "leadership quotes by women", "by women", FEMALE),
    ("bmi calculator", "bmi calculator for men", "for men", MALE),
    ("ncaa scores", "NCAA Women's Scores", "women's", FEMALE),
    ("nurse", "male nurse", "male", MALE),
    ("tech jobs", "women in tech jobs", "women in", FEMALE),
    ("heart attack", "heart attack according to men", "according to men", MALE),
    ("shoes", "shoes for women without men", "for women without men", FEMALE | MALE),
    ("shoes", "shoes men women", "men women", FEMALE | MALE),
    ("shoes", "womens female shoes", "womens female", FEMALE),
    ("shoes", "shoes, women\u2019s", "women's", FEMALE),
    ('"running shoes"', "(running shoes) for men!", "for men", MALE),
    ("men", "men men", "men", MALE),
    ("for men", "for men for men", "for men", MALE),
    ("a b a b", "a b women a b", "women", FEMALE),
    ("chaussures été", "chaussures ÉTÉ for women", "for women", FEMALE),
    ("靴", "靴 women", "women", FEMALE),
]

# Specializing, and for no group.
FOR_NONE = [
    ("durable shoes", "durable shoes for hiking", "for hiking"),
    ("shoes", "shoes for", "for"),
    ("shoes", "shoes for tall women", "for tall women"),
    ("shoes", "shoes for women over 50", "for women over 50"),
    ("shoes", "shoes -men", "-men"),
    ("shoes", "shoes menswear", "menswear"),
    ("shoes", "shoes according men", "according men"),
    ("shoes", "men and women shoes", "men and women"),
]

# Not specializing.
NOT_AT_ALL = [
    ("shoes for men", "shoes"),
    ("shoes", "shoes"),
    ("shoes", "SHOES!"),
    ("red shoes", "shoes red men"),
    ("red shoes", "men red women shoes"),
    ("red shoes", "red men"),
    ("s class", "men's class"),
    ("shoe", "shoes men"),
    ("hoes", "men shoes"),
    ("", "men"),
    ("?", "men ?"),
    ("a b c", "men a c b"),
]


@pytest.mark.parametrize(("first", "second", "block", "mask"), FOR_A_GROUP)
def test_pairs_that_add_a_group_are_found(first, second, block, mask, vocabulary, walked):
    found = specialization(first, second, vocabulary)
    assert found is not None
    assert (" ".join(found.block), found.mask) == (block, mask)
    events = walked([(1, 0, first), (1, 9, second)], vocabulary).events.to_dicts()
    assert [(event["block"], event["mask"], event["gap"]) for event in events] == [(block, mask, 9000)]


@pytest.mark.parametrize(("first", "second", "block"), FOR_NONE)
def test_pairs_that_add_something_else_are_specializing_and_for_no_group(first, second, block, vocabulary, walked):
    found = specialization(first, second, vocabulary)
    assert found is not None
    assert (" ".join(found.block), found.mask) == (block, 0)
    counts = walked([(1, 0, first), (1, 9, second)], vocabulary).counts
    assert (counts["specializing"], counts["for_group"]) == (1, 0)


@pytest.mark.parametrize(("first", "second"), NOT_AT_ALL)
def test_pairs_that_reorder_replace_or_take_away_are_not_specializing(first, second, vocabulary, walked):
    assert specialization(first, second, vocabulary) is None
    if terms(first) and terms(second):
        assert walked([(1, 0, first), (1, 9, second)], vocabulary).counts["specializing"] == 0


def test_the_lexicon_has_the_18_terms_and_16_prepositions_of_the_paper(vocabulary):
    assert (len(vocabulary.masks), len(published_prepositions())) == (18, 16)
    assert vocabulary.masks["women's"] == FEMALE
    assert "according to" in vocabulary.prepositions


def test_terms_are_cut_at_blanks_and_lose_the_marks_at_their_ends():
    assert terms("  “Women’s”\tT-Shirts, c++ & (-men) ...") == ("women's", "t-shirts", "c++", "-men")
    assert canonical("a\u00a0b\u3000c\x1fd") == "a b c d"


def test_terms_of_several_words_and_prefixes_are_read_in_any_lexicon(walked):
    lexicon = Lexicon("age", {"old": ("over 50", "senior*"), "young": ("kids", "under 10"), "any": ("all ages",)})
    vocabulary = build_vocabulary(lexicon)
    pairs = {
        ("games", "games for seniors over 50"): 1,
        ("games", "games for kids under 10"): 2,
        ("games", "games for kids of all ages"): 6,
        ("games over 50", "games over over 50 50"): 1,
        ("games 50", "games 50 over 50"): 1,
        ("games 50", "games 50 under 50"): 0,
        ("over 50", "over 50 over 50"): 1,
    }
    for (first, second), mask in pairs.items():
        found = specialization(first, second, vocabulary)
        assert found is not None
        assert found.mask == mask
        counts = walked([(1, 0, first), (1, 9, second)], vocabulary).counts
        assert (counts["specializing"], counts["for_group"]) == (1, int(mask > 0))


def test_the_longest_term_is_read_first_but_never_at_the_cost_of_the_rest():
    vocabulary = build_vocabulary(Lexicon("x", {"g": ("a", "a b", "b c")}), ())
    assert read_block(("a", "b"), vocabulary) == [1]
    assert read_block(("a", "b", "c"), vocabulary) == [1, 1]
    assert read_block(("a", "c"), vocabulary) is None


def test_a_block_of_many_repeated_terms_is_read_at_once(walked):
    vocabulary = build_vocabulary(Lexicon("x", {"g": ("a", "a a")}), ())
    second = "q " + "a " * 60
    assert specialization("q", second, vocabulary).mask == 1
    assert specialization("q", second + "x", vocabulary).mask == 0
    assert specialization("q", "q " + "a " * 70, vocabulary).mask == 0
    assert walked([(1, 0, "q"), (1, 1, "q " + "a " * 70)], vocabulary).counts["for_group"] == 0


def test_more_groups_than_a_mask_has_bits_are_refused():
    with pytest.raises(ConfigError, match="at most 62 groups"):
        build_vocabulary(Lexicon("x", {f"g{i}": (f"t{i}",) for i in range(63)}))


word = st.sampled_from(["a", "b", "shoes", "men's", "for", "to", "according", "été", "x1", "-men"])
query = st.lists(word, min_size=1, max_size=6)
group_term = st.sampled_from(sorted(t for terms in load_lexicon("gsqr2023").groups.values() for t in terms))
preposition = st.sampled_from(published_prepositions())
block = st.tuples(st.lists(preposition, max_size=2), group_term, st.lists(preposition | group_term, max_size=2)).map(
    lambda parts: " ".join([*parts[0], parts[1], *parts[2]]).split()
)


@given(query, block, st.integers(0, 6))
def test_a_block_put_anywhere_into_a_query_is_found(first, added, place):
    vocabulary = build_vocabulary(load_lexicon("gsqr2023"))
    place = min(place, len(first))
    second = [*first[:place], *added, *first[place:]]
    found = specialization(" ".join(first), " ".join(second), vocabulary)
    assert found is not None
    assert found.mask > 0
    assert sorted([*found.block, *first]) == sorted(second)


@given(st.lists(word, min_size=2, max_size=6, unique=True), block, st.randoms())
def test_a_query_whose_terms_change_places_is_not_specialized(first, added, random):
    vocabulary = build_vocabulary(load_lexicon("gsqr2023"))
    shuffled = first.copy()
    random.shuffle(shuffled)
    fresh = [term for term in added if term not in first]
    if shuffled != first and fresh == added:
        assert specialization(" ".join(first), " ".join([*shuffled, *added]), vocabulary) is None


@given(st.lists(st.tuples(query, query), min_size=1, max_size=30))
def test_the_analysis_agrees_with_the_plain_definition(pairs):
    compare([(" ".join(a), " ".join(b)) for a, b in pairs])


@given(
    st.lists(
        st.tuples(st.text("aA ,'’“é\u00a0\t", max_size=8), st.text("aA ,'’“é\u00a0\tmen", max_size=12)),
        min_size=1,
        max_size=20,
    )
)
def test_columns_of_queries_are_cut_as_the_plain_definition_does(pairs):
    compare([(f"q {a}", f"q {b}") for a, b in pairs])


def compare(pairs):
    import numpy as np
    import polars as pl
    import pyarrow as pa

    from askew.logs.pairs import Walk, walk
    from askew.logs.tables import canonical_column

    vocabulary = build_vocabulary(load_lexicon("gsqr2023"))
    texts = [text for pair in pairs for text in pair]
    column = canonical_column(pa.array(texts))
    assert column.to_pylist() == [canonical(text) for text in texts]
    rows = pl.DataFrame(
        {
            "user": np.repeat(np.arange(len(pairs), dtype=np.uint64), 2),
            "time": np.arange(2 * len(pairs)),
            "query": pl.Series(column),
            "line": np.arange(2 * len(pairs)),
        }
    )
    found = walk(rows, Walk(vocabulary, 30 * 60_000))
    plain = [specialization(a, b, vocabulary) for a, b in pairs if canonical(a) != canonical(b)]
    plain = [one for one in plain if one is not None]
    assert found.counts["specializing"] == len(plain)
    events = found.events.to_dicts()
    assert [(e["block"], e["mask"], e["terms"]) for e in events] == [
        (" ".join(one.block), one.mask, one.group_terms) for one in plain if one.mask
    ]
