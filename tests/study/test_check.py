"""``askew check`` and ``askew.check``: what a collection has for some groups."""

import re

import pytest

import askew
from askew.core.groups import WHO, resolver_id

DOCS = {
    "d1": "An old man told a story. The Old Man of Hoy is a rock.",
    "d2": "An 8-year-old child met a young woman.",
    "d3": "Many channels.young people remain.",
    "d4": "The weather is fine.",
}
AGE = {"old": ["old", "old man"], "young": ["young", "child"]}


def collection(**more):
    return askew.Collection.open(DOCS, **more)


def test_documents_and_mentions_are_counted_by_group():
    found = askew.check(collection(), AGE)
    assert (found.documents, found.naming, found.mentions) == (4, {"old": 2, "young": 1}, {"old": 3, "young": 2})
    assert (found.queries, found.judged) == (None, None)


def test_queries_that_cannot_be_answered_are_counted():
    queries = {"q1": "old people", "q2": "weather", "q3": "nothing", "q4": "unjudged"}
    qrels = {"q1": {"d1": 1}, "q2": {"d4": 0}, "q3": {"gone": 2}, "other": {"d1": 1}}
    found = askew.check(collection(queries=queries, qrels=qrels), AGE)
    assert (found.queries, found.queries_naming) == (4, {"old": 1, "young": 0})
    assert (found.judged, found.without_relevant, found.unanswerable) == (3, 1, 1)


PEOPLE = {
    "d1": "The Nintendo Game Boy is a handheld game console. Men have a higher risk of heart disease than women.",
    "d2": "The male flowers of the plant shed pollen. The Isle of Man is in the Irish Sea.",
    "d3": "Marie Curie was born in Warsaw in 1867. In 1903 she won the Nobel Prize in Physics.",
    "d4": "The sky was red. Many channels.he remains.",
}


def test_words_are_listed_with_who_they_point_to_and_examples_of_those_that_name_nobody():
    found = askew.check(PEOPLE, "gender:male,female")
    words = {one.word: one for one in found.words}
    assert {word: dict(one.who) for word, one in words.items()} == {
        "boy": {"name": 1}, "man": {"name": 1}, "men": {"generic": 1}, "male": {"other": 1}, "she": {"real": 1},
        "women": {"generic": 1},
    }  # fmt: skip
    assert words["boy"].examples == {"name": "The Nintendo Game [Boy] is a handheld game console. Men have a ..."}
    assert [word for word, one in words.items() if one.doubtful] == ["boy", "male", "man"]
    assert all(sum(one.who.values()) == one.mentions for one in found.words)
    assert found.to_polars().select("word", "doubtful", *WHO).row(0) == ("boy", 1, 0, 0, 0, 1, 0)
    assert found.to_dict()["words"][0]["who"] == {"name": 1}
    assert found.to_dict()["resolver"] == found.resolver == resolver_id()


def test_a_clipped_word_that_is_counted_names_nobody():
    (one,) = (one for one in askew.check(PEOPLE, askew.Groups.load("gender", tokens="word")).words if one.word == "he")
    assert (dict(one.who), one.examples) == ({"other": 1}, {"other": "The sky was red. Many channels.[he] remains."})


def test_of_words_for_others_only_names_and_other_meanings_are_told():
    found = askew.check({"d1": "A child may not drive. The Child in Time is a novel. The old nurse told a tale."}, AGE)
    assert found.classes == ("name", "other")
    words = {one.word: one for one in found.words}
    assert words["child"].mentions == 2
    assert set(words["child"].who) <= {"name", "other"}
    assert "groups old, young" in found.legend
    assert "fictional" not in found.to_polars().columns
    legend = askew.check(PEOPLE, "gender:male").legend
    assert "trained on" not in legend and re.search("92% of 3,797 ", legend)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The state pays. Students can benefit from the fund in several ways.", 0),
        ("Students can benefit from the fund in several ways.", 0),
        ("The Guild of Students has a hall in Birmingham.", 1),
        ("Students Union Hall is a building in Leeds.", 1),
    ],
)
def test_a_capital_at_the_start_of_a_sentence_makes_no_name(text, names):
    words = {"student": ["students"], "teacher": ["teachers"]}
    found = askew.check([text], askew.Groups(askew.Lexicon("school", words)))
    assert [one.who["name"] for one in found.words] == [names]


def test_a_group_that_the_resolver_does_not_know_hides_nothing_of_the_others():
    found = askew.check(PEOPLE | {"d5": "An enby spoke."}, "gender")
    words = {one.word: one for one in found.words}
    assert words["men"].who == {"generic": 1} and set(words["enby"].who) <= {"name", "other"}
    assert "group nonbinary," in found.legend
    assert "is right for 92%" in found.legend
    rows = {row["word"]: row for row in found.to_polars().to_dicts()}
    assert (rows["men"]["generic"], rows["enby"]["generic"]) == (1, None)


def test_some_mentions_of_each_word_are_kept_at_random():
    many = {f"d{n}": f"young w{n}" for n in range(300)}
    contexts = [askew.check(many, AGE, seed=seed).words[0].contexts for seed in (0, 0, 1)]
    assert contexts[0] == contexts[1] != contexts[2]
    assert all(len(set(some)) == 3 and all("[young] w" in one for one in some) for some in contexts)
    assert any(int(one.rpartition("w")[2]) > 10 for some in contexts for one in some)


def test_texts_are_resolved_alike_in_blocks_of_any_size(monkeypatch):
    many = {f"d{n}": text for n, text in enumerate([*PEOPLE.values()] * 5)}
    whole = askew.check(many, "gender:male,female").to_dict()["words"]
    monkeypatch.setattr("askew.study.check._BLOCK", 3)
    assert askew.check(many, "gender:male,female").to_dict()["words"] == whole


def test_words_that_lost_their_first_letter_are_counted_in_all_documents_and_not_among_the_mentions():
    found = askew.check(collection(), AGE, sample=1)
    assert found.clipped == {"old": 0, "young": 1}
    assert [value for name, value in found.facts() if name.startswith("words of young")] == ["1"]
    assert not any(name.startswith("words of old") for name, _ in found.facts())
    assert askew.check(collection(), askew.Groups(AGE, tokens="word")).clipped == {"old": 0, "young": 0}


def test_every_document_that_names_a_group_may_be_sampled():
    many = {f"d{n}": f"young w{n}" for n in range(300)}
    seen = [askew.check(many, AGE, sample=10, seed=seed) for seed in range(3)]
    assert [(one.sampled, one.words[0].mentions) for one in seen] == [(10, 10)] * 3


def test_the_terms_that_no_document_has_are_listed():
    words = {"old": ["old", "old man", "pensioner", "grand*"], "young": ["young", "young people", "chil*", "teen*"]}
    found = askew.check(collection(), words)
    assert found.unused == {"old": ["grand*", "pensioner"], "young": ["teen*", "young people"]}
    assert found.to_dict()["unused"] == found.unused
    blank = askew.check(collection(), askew.Groups(words, tokens="word"))
    assert blank.unused["young"] == ["teen*"]


def test_a_shared_term_is_not_missing_from_the_group_that_it_does_not_count_for():
    shared = askew.Groups({"a": ["old"], "b": ["old", "young"]}, overlap="first")
    assert askew.check(collection(), shared).unused == {"a": [], "b": []}


def test_the_report_says_whether_words_were_counted_in_a_sample():
    found = askew.check(collection(), AGE)
    assert (found.sampled, found.naming_any) == (2, 2)
    sample = askew.check(collection(), AGE, sample=1)
    assert (sample.sampled, sample.naming_any) == (1, 2)
    assert [re.findall(r"\d+", one.examined) for one in (found, sample)] == [["2"], ["1", "2"]]


def test_numbers_below_one_are_refused():
    with pytest.raises(askew.ConfigError) as error:
        askew.check("demo", words=0)
    assert (error.value.code, error.value.values["words"]) == ("out-of-range", 0)
