"""``who=``: measures of lean that count some classes of mentions only."""

import re
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core import plugins as registry
from askew.core.errors import ConfigError, UnknownName
from askew.core.groups import WHO, resolver_id
from askew.measures import resolver as resolved
from askew.measures.catalogue import Catalogue

# The class of each mention is written behind it, and the stub below reads it from there: what is checked here is the
# arithmetic, not the model.
DOCS = {
    "d1": "he/generic met him/generic and a woman/generic and she/real",
    "d2": "she/generic knew the man/real and his/real father/name",
    "d3": "Mother/name of the boy/other",
    "d4": "a girl/fictional and a boy/generic",
}
RANKING = ("d1", "d2", "d3", "d4")
LEAN = [name for name in registry.names("measure") if "mentions" in registry.load("measure", name).reads]


class ReadsTheClass:
    id = "stub"

    def probabilities(self, texts, text_of, starts, ends):
        found = np.zeros((len(text_of), len(WHO)))
        for row, (text, end) in enumerate(zip(text_of, ends, strict=True)):
            found[row, WHO.index(re.match(r"/(\w+)", texts[text][end:])[1])] = 1.0
        return found


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(resolved, "open_resolver", lambda name: ReadsTheClass())


def score(text, docs=DOCS, **options):
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(RANKING)}}
    return askew.measure({"r": run}, docs, measures=[text], **options).runs[0].values[text][0]


def signature(text, **options):
    (asked,) = Catalogue(overrides=options).complete([text])
    return asked.signature


@pytest.mark.usefixtures("stub")
def test_only_the_mentions_of_the_class_are_counted():
    # Generic: 2 men and 1 woman in d1, no man and 1 woman in d2, nobody in d3, 1 man in d4.
    assert score("RaB(tc, who=generic)@1") == 2 - 1
    assert score("RaB(tc, who=generic)@2") == pytest.approx((1 - 1) / 2)
    first, second = log(3) - log(2), log(1) - log(2)
    of_two, of_four, logs = (score(f"ARaB({kind}, who=generic)@{k}") for kind, k in [("tc", 2), ("tc", 4), ("tf", 2)])
    assert of_two == pytest.approx((1 + (1 - 1) / 2) / 2)
    assert of_four == pytest.approx((1 + 0 + 0 + (1 - 1 + 0 + 1) / 4) / 4)
    assert logs == pytest.approx((first + (first + second) / 2) / 2)


@pytest.mark.usefixtures("stub")
def test_several_classes_are_counted_together():
    # Real or name: 1 woman in d1; 3 men in d2; 1 woman in d3.
    assert score("ARaB(tc, who=real+name)@3") == pytest.approx((-1 + (-1 + 3) / 2 + (-1 + 3 - 1) / 3) / 3)
    assert score("RaB(tc, who=other)@3") == pytest.approx(1 / 3)
    assert score("RaB(tc, who=fictional)@4") == pytest.approx(-1 / 4)


def test_the_families_of_lean_are_known():
    assert {"ARaB", "RaB", "FaiRR", "NFaiRR", "LexiconShare", "AWRF", "EXP", "NDKL", "Skew", "TExFAIR"} <= set(LEAN)


@pytest.mark.usefixtures("stub")
@pytest.mark.parametrize("who", ["generic", "real+name"])
@pytest.mark.parametrize("name", LEAN)
def test_every_measure_of_lean_gives_what_it_gives_without_the_other_mentions(name, who):
    kept = who.split("+")
    # A word of another class becomes one that names nobody: the texts are as long as before.
    without = {
        doc: re.sub(r"\w+/(\w+)", lambda found: found[0] if found[1] in kept else f"tree/{found[1]}", text)
        for doc, text in DOCS.items()
    }
    expected = score(f"{name}@3", without)
    assert score(f"{name}(who={who})@3") == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("name", LEAN)
def test_any_is_the_measure_without_who_in_its_signature_and_in_every_byte(name):
    assert signature(f"{name}(who=any)@3") == signature(f"{name}@3")
    assert signature(f"{name}(who={'+'.join(reversed(WHO))}, resolver=neural)@3") == signature(f"{name}@3")
    plain, any_of_them = score(f"{name}@3"), score(f"{name}(who=any)@3")
    assert np.float64(plain).tobytes() == np.float64(any_of_them).tobytes()


@given(st.lists(st.sampled_from(WHO), min_size=1, max_size=4, unique=True), st.randoms())
def test_the_order_of_the_classes_does_not_matter(who, random):
    other = random.sample(who, len(who))
    assert signature(f"ARaB(who={'+'.join(who)})@2") == signature(f"ARaB(who={'+'.join(other)})@2")


def test_the_signature_names_the_classes_and_the_resolver_with_its_content():
    full = signature("ARaB(tc, who=generic+real)@2")
    assert full == signature("ARaB(tc, who=generic+real, resolver=neural)@2") and "who='real+generic'" in full
    assert f"resolver='{resolver_id()}'" in full
    assert re.fullmatch(r"neural@[0-9a-f]{12}", resolver_id())
    # What a signature says can be requested again.
    assert signature(full) == full


def test_classes_may_be_given_for_all_measures_and_the_text_of_a_measure_wins():
    assert signature("ARaB@2", who="generic") == signature("ARaB(who=generic)@2")
    assert signature("ARaB(who=any)@2", who="generic") == signature("ARaB@2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ARaB(who=genric)@2",
            "unknown class of mentions 'genric' in measure ARaB(who=genric)@2: did you mean 'generic'?",
        ),
        ("ARaB(who='real+')@2", "unknown class of mentions ''"),
        ("ARaB(who=real, resolver=nural)@2", "unknown resolver 'nural': did you mean 'neural'?"),
        ("ARaB(who=real, resolver=neural@0123456789ab)@2", f"this version of askew has {resolver_id()}"),
        ("ARaB(who=real, resolver=light)@2", "leave out resolver=, and install the extra neural"),
        ("ARaB(who=real, resolver=light@1aef81c4fa3c)@2", "is no longer part of askew"),
    ],
)
def test_a_wrong_class_or_resolver_is_one_clear_line(text, message):
    with pytest.raises((UnknownName, ConfigError)) as caught:
        score(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_whose_words_have_no_place_says_what_to_give():
    with pytest.raises(ConfigError, match="'unclipped'") as caught:
        score("ARaB(who=generic, tokens=seyedsalehi)@2")
    assert (caught.value.code, "\n" in str(caught.value)) == ("no-positions", False)
