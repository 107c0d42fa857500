"""Porter's stemmer: published examples, and the stems of a whole vocabulary."""

import hashlib
from pathlib import Path

import pytest

import askew
from askew.core.text import stem, word
from askew.search.bm25.analyze import STOP_WORDS, Analyzer

DEMO = Path(askew.__file__).parent / "shipped" / "demo" / "docs.tsv"
EXAMPLES = """
caresses:caress ponies:poni ties:ti cats:cat feed:feed agreed:agre plastered:plaster bled:bled motoring:motor
sing:sing conflated:conflat troubled:troubl sized:size hopping:hop tanned:tan falling:fall hissing:hiss
fizzed:fizz failing:fail filing:file happy:happi sky:sky relational:relat conditional:condit rational:ration
digitizer:digit vietnamization:vietnam predication:predic operator:oper feudalism:feudal decisiveness:decis
hopefulness:hope callousness:callous triplicate:triplic formative:form formalize:formal electrical:electr
goodness:good revival:reviv allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop
adjustable:adjust defensible:defens irritant:irrit replacement:replac adjustment:adjust dependent:depend
adoption:adopt communism:commun activate:activ homologous:homolog effective:effect bowdlerize:bowdler
running:run runner:runner runs:run swimming:swim planned:plan putting:put shipping:ship selling:sell
probate:probat rate:rate cease:ceas controller:control roll:roll is:is vileli:vile radicalli:radic
controll:control as:as archaeology:archaeolog possibly:possibl naïvely:naïv
"""


@pytest.mark.parametrize("pair", EXAMPLES.split())
def test_stems_are_those_of_the_published_algorithm(pair):
    given, expected = pair.split(":")
    assert stem(given) == expected


def test_a_character_beyond_two_bytes_counts_as_two_as_in_java():
    assert stem("𝐚") == "𝐚"
    assert stem("𝐚s") == "𝐚"
    assert stem("as") == "as"


def test_the_stems_of_all_words_of_the_demo_are_those_that_an_implementation_letter_by_letter_found():
    words = sorted(set(word(DEMO.read_text(encoding="utf-8"))))
    assert len(words) == 5807
    digest = hashlib.sha256(" ".join(map(stem, words)).encode()).hexdigest()
    assert digest == "ac4279350f677129a9873c661fdef780f34240855f7fa8bf6228c44a27c9d508"


def test_the_analyzer_drops_stop_words_and_keeps_the_order():
    words = ["nurses", "the", "caring", "of", "nurse", "naïveté"]
    assert Analyzer().to_terms(words) == ["nurs", None, "care", None, "nurs", stem("naïveté")]
    assert Analyzer("plain").to_terms(words) == [None if word in STOP_WORDS else word for word in words]
