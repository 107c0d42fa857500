"""Swapping the words of groups: by hand, and the laws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import DataError, UnknownName
from askew.core.lexicon import load_lexicon
from askew.core.protocols import QueryBatch
from askew.rewrite.lexical import SAME
from askew.rewrite.swap import Rewriter, SwapReformulator, key_of, load_swaps, shipped_swaps
from askew.testing.contracts import check_reformulator

LEXICON = load_swaps("gender-en")
REWRITER = Rewriter(LEXICON)
ALL = Rewriter(LEXICON, names=False)
FILLERS = ["the", "best", "nurse", "of", "london", "?", ",", "and", "who", "sees", "her2", "façade", "1984", "mankato"]


@pytest.mark.parametrize(
    ("text", "swapped", "neutral"),
    [
        ("Is she a good nurse?", "Is he a good nurse?", "Are they a good nurse?"),
        ("how old was he when his mother died", "how old was she when her father died",
         "how old were they when their parent died"),
        ("i saw her with her book, was it hers or his?", "i saw him with his book, was it his or hers?",
         "i saw them with their book, was it theirs?"),
        ("give her the book", "give him the book", "give them the book"),
        ("first stewardess", "first steward", "first flight attendant"),
        ("SHE SAID HE IS", "HE SAID SHE IS", "THEY SAID THEY ARE"),
        ("She's a queen; he isn't", "He's a king; she isn't", "They're a monarch; they aren't"),
        ("what does she do, hasn't he", "what does he do, hasn't she", "what do they do, haven't they"),
        ("the policemen's ball and the ladies’ room", "the policewomen's ball and the gentlemen’s room",
         "the police officers' ball and the people’s room"),
        ("an actress and a niece", "an actor and a nephew", "a performer and a relative"),
        ("a female engineer", "a male engineer", "an engineer"),
        ("a countess", "an earl", "a noble"),
        ("what is his or her name", "what is her or his name", "what is their name"),
        ("my mother-in-law", "my father-in-law", "my parent-in-law"),
        ("step-mother", "step-father", "step-parent"),
        ("Fiancée of the PRINCE", "Fiancé of the PRINCESS", "Betrothed of the ROYAL CHILD"),
        ("when s/he is ill", "when s/he is ill", "when they are ill"),
        ("men and women in rome", "women and men in rome", "people in rome"),
    ],
)  # fmt: skip
def test_words_become_their_counterparts_or_words_for_anyone(text, swapped, neutral):
    assert REWRITER.rewrite(text, "swap") == swapped
    assert REWRITER.rewrite(text, "neutral") == neutral


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("best running shoes for women", "best running shoes"),
        ("Women’s and men's jackets", "jackets"),
        ("mens haircuts", "haircuts"),
        ("symptoms of heart attack in women over 50", "symptoms of heart attack over 50"),
        ("average height for men and women in usa", "average height in usa"),
        ("salary of a female engineer, in texas", "salary of an engineer, in texas"),
        ("gifts for him, cheap", "gifts, cheap"),
        # What is no added block stays.
        ("what percentage of women are married", "what percentage of women are married"),
        ("male to female ratio", "male to female ratio"),
        ("has a female ever won", "has a female ever won"),
        ("why do men cheat", "why do men cheat"),
        ("isle of man", "isle of man"),
        ("is she a nurse", "is she a nurse"),
    ],
)
def test_an_added_group_is_left_out_with_its_preposition(text, rest):
    assert REWRITER.rewrite(text, "remove") == rest


@pytest.mark.parametrize(
    "text",
    ["burger king menu", "who was Queen Anne", "Stephen King books", "queen-size bed", "mary and john", "humankind"],
)
def test_names_and_other_words_are_left_alone(text):
    assert [REWRITER.rewrite(text, mode) for mode in ("swap", "neutral", "remove")] == [text] * 3


def test_without_names_every_listed_word_is_changed():
    assert ALL.rewrite("burger king and Queen Anne", "swap") == "burger queen and King Anne"


def test_a_capitalised_question_word_makes_no_name():
    assert REWRITER.rewrite("Is King a title", "swap") == "Is Queen a title"


def test_all_modes_give_a_candidate_each():
    found = SwapReformulator().reformulate(QueryBatch(("a", "b"), ("shoes for\twomen", "station")))
    assert (found.rows, found.texts) == ([0, 0, 0], ["shoes for men", "shoes for people", "shoes"])
    assert found.rejected == {"nothing found": 1}


def test_a_candidate_twice_or_none_at_all_is_counted():
    found = SwapReformulator().reformulate(QueryBatch(("a", "b"), ("is she", "mens shoes")))
    assert found.texts == ["is he", "are they", "womens shoes", "shoes"]
    assert found.rejected == {SAME: 1, "same as another": 1}


@pytest.mark.parametrize("mode", ["swap", "neutral", "remove", "all"])
def test_swap_keeps_the_contract(mode):
    found = check_reformulator(SwapReformulator(mode=mode))
    assert len(found) == {"swap": 2, "neutral": 2, "remove": 0, "all": 4}[mode]


def test_the_shipped_list_says_where_it_is_from_and_is_long_enough():
    import tomllib
    from importlib import resources

    text = resources.files("askew").joinpath("shipped/swaps/gender-en.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    assert shipped_swaps() == ["gender-en"]
    assert all(data[key] for key in ("source", "license", "version", "language"))
    assert len(data["pairs"]) >= 120
    assert all(len(pair) == 3 for pair in data["pairs"])


def test_no_word_of_the_shipped_list_is_also_in_another_line_of_it():
    import tomllib
    from importlib import resources

    data = tomllib.loads(resources.files("askew").joinpath("shipped/swaps/gender-en.toml").read_text(encoding="utf-8"))
    terms = [term for pair in data["pairs"] for term in pair[:2]] + [*data["one_way"], *data["before_noun"]]
    assert sorted(term for term in terms if terms.count(term) > 1) == []


def test_swapping_moves_a_word_into_the_other_group_of_the_lexicon():
    lexicon = load_lexicon("gender")
    female, male = (set(lexicon.groups[group]) for group in ("female", "male"))
    wrong = [
        (term, other)
        for term, (other, _) in LEXICON.swaps.items()
        if (term in female and other in female) or (term in male and other in male)
    ]
    assert wrong == []


def test_a_users_list_of_any_two_groups_is_enough_with_its_pairs(tmp_path):
    path = tmp_path / "age.toml"
    path.write_text('groups = ["young", "old"]\npairs = [["young", "old", "any"], ["teens", "seniors", "people"]]\n')
    swap = SwapReformulator(pairs=str(path))
    found = check_reformulator(swap, QueryBatch(("q",), ("Young nurses and seniors' cars",)))
    assert found.texts == ["Old nurses and teens' cars", "Any nurses and people's cars"]
    assert swap.settings()["pairs"].startswith("age@")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('groups = ["a"]\npairs = []\n', "two groups"),
        ('groups = ["a", "b"]\n', "expected a list of pairs"),
        ('groups = ["a", "b"]\npairs = [["x", "y"]]\n', r"found \['x', 'y'\]"),
        ('groups = ["a", "b"]\npairs = [["x", "y", "old y"]]\n', "contains 'y', which names a group"),
        ('groups = ["a", "b"]\npairs = [["x", "y", "z"]]\nkept = 1\n', "did you mean 'keep'"),
        ('groups = ["a", "b"]\npairs = [["x", "y", "z"]]\nwords = 1\n', "does not have the structure"),
        ("groups = [", "not valid TOML"),
    ],
)
def test_a_damaged_list_says_what_was_expected(tmp_path, content, message):
    path = tmp_path / "pairs.toml"
    path.write_text(content)
    with pytest.raises((DataError, UnknownName), match=message):
        load_swaps(str(path))


def test_wrong_settings_are_refused():
    with pytest.raises(UnknownName, match="gender-en"):
        SwapReformulator(pairs="gender")


CASES = [str.lower, str.capitalize, str.upper]


def in_cases(terms):
    return st.builds(lambda term, case: case(term), st.sampled_from(sorted(terms)), st.sampled_from(CASES))


def possessive(term):
    """A term with its possessive, as English writes it."""
    ending = "'" if term.lower().endswith("s") and not term.lower().endswith("ss") else "'s"
    return term + (ending.upper() if term.isupper() else ending)


def reversible(lexicon):
    """The words that swapping changes and, done twice, brings back, whatever follows them."""
    back = {term: near for term, (near, far) in lexicon.swaps.items() if near == far != term}
    return [term for term, other in back.items() if back.get(key_of(other)) == term]


REVERSIBLE = in_cases(reversible(LEXICON))
TOKENS = st.one_of(st.sampled_from(FILLERS), REVERSIBLE)


@given(st.lists(TOKENS, min_size=1, max_size=8))
def test_swapping_twice_gives_the_text_back(tokens):
    text = " ".join(tokens)
    assert ALL.rewrite(ALL.rewrite(text, "swap"), "swap") == text


@given(REVERSIBLE)
def test_swapping_twice_gives_a_possessive_back(term):
    text = f"the {possessive(term)} name"
    once = ALL.rewrite(text, "swap")
    assert once != text
    assert ALL.rewrite(once, "swap") == text


@given(st.lists(st.one_of(st.sampled_from(FILLERS), in_cases(LEXICON.swaps)), max_size=8))
def test_a_neutral_text_has_no_listed_word_left(tokens):
    text = " ".join(tokens)
    assert ALL.find(ALL.rewrite(text, "neutral")) == []
    assert ALL.rewrite(ALL.rewrite(text, "neutral"), "swap") == ALL.rewrite(text, "neutral")


@given(st.text(max_size=40), st.sampled_from(["swap", "neutral", "remove"]))
def test_a_text_without_listed_words_stays_as_it_is(text, mode):
    line = " ".join(text.replace("\0", " ").split())
    if not ALL.find(line):
        assert ALL.rewrite(line, mode) == line


@given(st.lists(st.one_of(st.sampled_from(FILLERS), in_cases(LEXICON.swaps)), max_size=8))
def test_leaving_a_group_out_adds_no_word(tokens):
    text = " ".join(tokens)
    rest = iter(text.casefold().replace(",", " ,").replace("?", " ?").split())
    for one in REWRITER.rewrite(text, "remove").casefold().replace(",", " ,").replace("?", " ?").split():
        assert one in rest
