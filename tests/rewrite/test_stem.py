"""The eight stemmers: published examples, and agreement with other programs where these are installed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core import text as porter
from askew.core.protocols import QueryBatch
from askew.core.text import word
from askew.rewrite import stem
from askew.rewrite import stem as lovins
from askew.rewrite import stem as paicehusk
from askew.rewrite import stem as porter2
from askew.rewrite import stem as simple
from askew.rewrite.lexical import SAME
from askew.testing.contracts import check_reformulator

DEMO = Path(askew.__file__).parent / "shipped" / "demo" / "docs.tsv"
BOOLQ = Path(__file__).resolve().parents[3] / "shared" / "data" / "boolq" / "docs.tsv"
OURS = [stem.lovins, stem.paicehusk, stem.porter, stem.porter2, stem.sstemmer, stem.trunc4, stem.trunc5]
RULES = [
    lovins.lovins_stem,
    paicehusk.paicehusk_stem,
    porter.stem,
    porter2.porter2_stem,
    simple.s_stem,
]


@pytest.fixture(scope="module", params=["demo", "boolq"])
def words(request):
    if request.param == "demo":
        return sorted(set(word(DEMO.read_text(encoding="utf-8"))))
    if not BOOLQ.is_file():
        pytest.skip("the real data is not there: expected ../shared/data/boolq beside the checkout")
    # Every fourth of some 65 000 words, so that the test stays short.
    return sorted(set(word(BOOLQ.read_text(encoding="utf-8"))))[::4]


def agreement(words, one, other):
    return sum(one(w) == other(w) for w in words) / len(words)


def pairs(text):
    return [tuple(pair.split(":")) for pair in text.split()]


@pytest.mark.parametrize(
    ("given_word", "expected"),
    pairs("""
        consigned:consign consignment:consign consistency:consist consolation:consol consolatory:consolatori
        consolidating:consolid conspicuous:conspicu conspiracy:conspiraci knackeries:knackeri knavish:knavish
        knightly:knight knocked:knock knots:knot generously:generous generation:generat skies:sky dying:die
        news:news herrings:herring succeeding:succeed added:ad cries:cri ties:tie gas:gas gaps:gap kiwis:kiwi
        luxuriated:luxuri hoping:hope youth:youth say:say by:by 'tis:tis boy's:boy
    """),
)
def test_porter2_gives_the_stems_that_snowball_published(given_word, expected):
    assert porter2.porter2_stem(given_word) == expected


@pytest.mark.parametrize(
    ("given_word", "expected"),
    pairs("""
        maximum:maxim presumably:presum multiply:multiply provision:provid owed:ow ear:ear saying:say crying:cry
        string:string meant:meant cement:cem strengthening:strength reply:reply derivative:der a1s:a1s
    """),
)
def test_paice_and_husk_stem_as_the_paper_says(given_word, expected):
    assert paicehusk.paicehusk_stem(given_word) == expected


@pytest.mark.parametrize(
    ("given_word", "expected"),
    pairs("""
        nationally:nat sitting:sit believable:belief induction:induc consumption:consum absorption:absorb
        recursive:recur administrate:administer parametric:parameter dissolved:dissolut angular:angl index:indic
        matrix:matric button:button basing:bas sing:sing extend:extens send:send hermit:hermis ox:ox
    """),
)
def test_lovins_takes_the_longest_ending_and_respells(given_word, expected):
    assert lovins.lovins_stem(given_word) == expected


def test_the_tables_are_as_long_as_those_that_were_published():
    assert len(lovins.ENDINGS) == 294
    assert len([rule for rules in paicehusk._BY_LAST_LETTER.values() for rule in rules]) == 115


@pytest.mark.parametrize(
    ("given_word", "expected"),
    pairs("""
        panels:panel aerodynamics:aerodynamic subjected:subjected cities:city flies:flie eyes:eye goes:goe
        census:census glass:glass gas:gas glasses:glasse zombies:zomby
    """),
)
def test_the_s_stemmer_uses_the_first_rule_that_fits(given_word, expected):
    assert simple.s_stem(given_word) == expected


def test_truncating_keeps_the_first_characters():
    asked = QueryBatch(("q",), ("railway sky",))
    assert stem.trunc4().reformulate(asked).texts == ["rail sky"]
    assert stem.trunc5().reformulate(asked).texts == ["railw sky"]


def test_porter_agrees_with_nltk_on_every_word(words):
    nltk = pytest.importorskip("nltk.stem.porter")
    assert agreement(words, porter.stem, nltk.PorterStemmer(mode="MARTIN_EXTENSIONS").stem) == 1.0


def test_porter2_agrees_with_nltk_on_all_but_a_few_words(words):
    # NLTK leaves an e where two endings go one after the other: ionization -> ionize.
    nltk = pytest.importorskip("nltk.stem.snowball")
    assert agreement(words, porter2.porter2_stem, nltk.SnowballStemmer("english").stem) > 0.9995


def test_porter2_agrees_with_snowball_but_for_what_its_version_3_changed(words):
    snowball = pytest.importorskip("snowballstemmer")
    share = agreement(words, porter2.porter2_stem, snowball.stemmer("english").stemWord)
    assert share > 0.995


def test_paice_and_husk_agree_with_nltk_but_for_its_test_of_a_stem(words):
    # NLTK wants a vowel among the first three letters and does not count the new ones; the paper says neither.
    nltk = pytest.importorskip("nltk.stem.lancaster")
    assert agreement(words, paicehusk.paicehusk_stem, nltk.LancasterStemmer().stem) > 0.98


@given(st.text(alphabet="abcdeghilmnoprstuvyz'é1", max_size=25))
def test_a_stem_is_never_lost_and_never_breaks(text):
    for rule in RULES:
        found = rule(text)
        assert isinstance(found, str)
        assert found or not text.strip("'s")


@pytest.mark.parametrize("make", OURS)
def test_a_stemming_reformulator_keeps_the_contract(make):
    reformulator = make()
    found = check_reformulator(reformulator)
    assert reformulator.method.startswith("stem.")
    assert found.rejected["nothing found"] == 1


def test_a_candidate_has_the_stems_in_the_order_of_the_words():
    found = stem.porter().reformulate(QueryBatch(("a", "b", "c"), ("Nurses, caring!", "she ran", "  ")))
    assert (found.rows, found.texts) == ([0], ["nurs care"])
    assert found.rejected == {SAME: 1, "nothing found": 1}


POSSESSIVES = "Women's running shoes", "the nurse’s uniform", "nurses' station"
# The stems of women running shoes, the nurse uniform, nurses station.
OF_POSSESSIVES = {
    "lovins": ("wom run sho", "th nur uniform", "nur stat"),
    "paicehusk": ("wom run sho", "the nurs uniform", "nurs stat"),
    "porter": ("women run shoe", "the nurs uniform", "nurs station"),
    "porter2": ("women run shoe", "the nurs uniform", "nurs station"),
    "sstemmer": ("women running shoe", "the nurse uniform", "nurse station"),
    "trunc4": ("wome runn shoe", "the nurs unif", "nurs stat"),
    "trunc5": ("women runni shoes", "the nurse unifo", "nurse stati"),
}


@pytest.mark.parametrize("make", OURS)
def test_a_possessive_is_stemmed_without_its_ending_and_no_letter_stands_alone(make):
    found = make().reformulate(QueryBatch(("a", "b", "c"), POSSESSIVES))
    assert tuple(found.texts) == OF_POSSESSIVES[make().method.removeprefix("stem.")]


@pytest.mark.parametrize("make", OURS)
@pytest.mark.parametrize(("text", "expected"), [("men's", "men"), ("MEN’S", "men"), ("1980's", "1980")])
def test_a_possessive_alone_is_its_word(make, text, expected):
    assert make().reformulate(QueryBatch(("a",), (text,))).texts == [expected]


@pytest.mark.parametrize("make", OURS)
def test_a_word_with_another_apostrophe_in_it_stays_whole(make):
    found = make().reformulate(QueryBatch(("a", "b"), ("don’t o'brien's", "don't, rock'n'roll")))
    assert found.texts == ["don't o'brien"]
    assert found.rejected == {SAME: 1}


def test_an_apostrophe_at_an_end_is_no_part_of_a_word():
    assert stem.porter().reformulate(QueryBatch(("a",), ("'tis ''the'' nurses' 'cats'",))).texts == ["ti the nurs cat"]


@given(st.text(alphabet="abs'’ -é", max_size=30))
def test_no_letter_of_a_query_is_lost_before_stemming(text):
    letters = [char for char in text.lower() if char not in "'’ -"]
    assert [char for one in stem.words_of(text) for char in one if char != "'"] == letters


def test_krovetz_finds_words_of_its_dictionary():
    pytest.importorskip("krovetzstemmer")
    reformulator = stem.krovetz()
    check_reformulator(reformulator)
    found = reformulator.reformulate(QueryBatch(("q",), ("European utilities and policies",)))
    assert found.texts == ["europe utility and policy"]
    assert reformulator.reformulate(QueryBatch(("q",), ("women's shoes",))).texts == ["women shoe"]


def test_without_its_package_krovetz_says_what_to_install(monkeypatch):
    import sys

    from askew.core.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "krovetzstemmer", None)
    with pytest.raises(MissingExtra, match="stemmers"):
        stem.krovetz()
