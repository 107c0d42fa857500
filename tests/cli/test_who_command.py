"""``who=`` from the command line: counted once into the store, read from there by every measure of the same words."""

import pytest

DOCS = {
    "d1": "Marie Curie was born in Warsaw. In 1903 she won a Nobel Prize. If a person is under 18, he or she may not.",
    "d2": "Men have a higher risk of heart disease than women. The Isle of Man is in the Irish Sea.",
    "d3": "The weather is fine.",
    "d4": "Once upon a time a dragon lived in a dark cave. He ate the princess, and she screamed. Then the wicked "
    "witch said that she would kill him. Abraham Lincoln said he was a man.",
}


@pytest.fixture(autouse=True)
def documents(files):
    files.docs("docs.tsv", DOCS)


def measure(who, name="ARaB(tf,who={})@10"):
    return f"measure old.run --docs docs.tsv --measures '{name.format(who)}' --json --per-query"


def test_measuring_with_the_store_gives_identical_numbers_and_tells_where_they_come_from(askew):
    before = askew(measure("generic"))
    assert (before.code, before.err) == (0, "")
    assert askew("annotate docs.tsv --measures 'ARaB(tf,who=generic)@10'").code == 0
    after = askew(measure("generic"))
    assert (after.code, after.out, len(after.err.splitlines())) == (0, before.out, 1)
    assert after.noted("4 documents", " .askew")


def test_one_annotation_serves_every_class_and_their_sums(askew):
    asked = ["generic", "real", "real+fictional", "name"]
    before = [askew(measure(who)).out for who in asked]
    (one,) = askew("annotate docs.tsv --measures 'ARaB(tf,who=generic)@10' --json").json["counts"]
    (again,) = askew("annotate docs.tsv --measures 'ARaB(tf,who=real)@10 RaB(tc,who=name)@5' --json").json["counts"]
    assert (one["ran"], again["ran"], again["key"]) == (True, False, one["key"])
    after = [askew(measure(who)) for who in asked]
    assert [found.out for found in after] == before
    assert all(found.noted("4 documents", " .askew") and len(found.notes) == 1 for found in after)
    # The classes differ, so that the numbers are not those of one and the same count.
    assert len({found.json["runs"][0]["measures"].popitem()[1]["mean"] for found in after}) == len(asked)


def test_counts_without_classes_do_not_serve_a_measure_of_a_class(askew):
    assert askew("annotate docs.tsv --measures 'ARaB(tf)@10'").code == 0
    assert ".askew" not in askew(measure("generic")).err
    assert askew(measure("any")).noted(" .askew")


def test_clipped_words_are_noted_where_they_would_count_and_not_for_a_class_that_never_has_them(askew, files):
    files.docs("docs.tsv", {**DOCS, "d3": "Many channels.he remains."})
    notes = [askew(measure("generic")).notes, askew(measure("any")).notes]
    askew("annotate docs.tsv --measures 'ARaB(tf,who=generic)@10 ARaB(tf)@10'")
    stored = [[text for text in askew(measure(who)).notes if ".askew" not in text] for who in ("generic", "any")]
    assert stored == notes
    assert notes[0] == [] and "were not counted" in notes[1][0]


def test_the_output_names_the_class_and_the_resolver(askew):
    from askew.core.groups import resolver_id
    from askew.measures.resolver import default_resolver

    out = askew("measure old.run --docs docs.tsv --measures 'ARaB(tf,who=real+generic)@10' --json").out
    assert f"resolver='{resolver_id(default_resolver())}'" in out
    assert "who='real+generic'" in out


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        ("ARaB(who=genric)@10", ("unknown class of mentions 'genric'", "did you mean 'generic'")),
        ("ARaB(who=real,resolver=big)@10", ("unknown resolver 'big'", "neural")),
        ("ARaB(who=real,tokens=seyedsalehi)@10", ("'seyedsalehi'", "set --tokens to 'unclipped', 'word' or 'blank'")),
    ],
)
@pytest.mark.parametrize("command", ["measure old.run --docs docs.tsv", "annotate docs.tsv"])
def test_what_cannot_be_counted_is_one_line_that_says_what_to_do(askew, command, measures, words):
    askew([*command.split(), "--measures", measures]).refused(2, *words)
