"""``askew check`` and ``askew.check``: what a collection has for some groups."""

import pytest

import askew

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


def test_words_in_names_after_numbers_and_at_full_stops_are_pointed_out_with_an_example():
    words = {one.word: one for one in askew.check(collection(), askew.Groups(AGE, tokens="word")).words}
    assert dict(words["old man"].hints) == {"in a name": 1}
    assert words["old man"].examples["in a name"] == "An old man told a story. The [Old Man] of Hoy is a rock."
    assert dict(words["old"].hints) == {"after a number": 1}
    assert dict(words["young"].hints) == {"at a full stop": 1}
    assert words["child"].doubtful == 0


def test_words_that_lost_their_first_letter_are_counted_in_all_documents_and_not_among_the_mentions():
    found = askew.check(collection(), AGE, sample=1)
    assert found.clipped == {"old": 0, "young": 1}
    assert ("words of young at a full stop, not counted", "1") in found.facts()
    assert not any(name.startswith("words of old") for name, _ in found.facts())
    assert askew.check(collection(), askew.Groups(AGE, tokens="word")).clipped == {"old": 0, "young": 0}


def test_every_document_that_names_a_group_may_be_sampled():
    many = {f"d{n}": f"young w{n}" for n in range(300)}
    seen = [askew.check(many, AGE, sample=10, seed=seed) for seed in range(3)]
    assert [(one.sampled, one.words[0].mentions) for one in seen] == [(10, 10)] * 3


def test_numbers_below_one_are_refused():
    with pytest.raises(askew.ConfigError, match="words= and sample= of 1 or more"):
        askew.check("demo", words=0)
