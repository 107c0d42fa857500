"""``askew check``: the command prints what the library finds."""

import askew as library

AGE = "old,old\nyoung,young\nchild,young\n"


def test_the_command_prints_what_the_library_finds(askew, files):
    files.text("age.csv", AGE)
    result = askew("check demo --groups age.csv")
    assert result.code == 0
    assert "documents that name old" in result.out
    assert "female" not in result.out
    assert askew("check demo --groups age.csv --json").json["naming"] == library.check("demo", "age.csv").naming


def test_the_table_shows_who_frequent_words_point_to_and_says_what_the_estimates_are_worth(askew, files):
    files.docs("docs.tsv", {"d1": "The Nintendo Game Boy is a handheld game console.", "d2": "Men live longer."})
    table = askew("check docs.tsv --groups gender:male,female").table
    assert "male   mentions   real   fictional   generic   name   other" in table
    assert "boy    1          0%     0%          0%        100%   0%" in table
    assert "name 1 of 1   The Nintendo Game [Boy] is a handheld" in table
    assert "The resolver light@" in " ".join(table.split())
    assert "female   mentions" not in table
    assert "the resolver classified no mention" not in table


def test_of_other_words_only_those_that_name_nobody_are_shown(askew, files):
    files.text("age.csv", AGE)
    files.docs("docs.tsv", {"d1": "The Isle of Child is in the Irish Sea."})
    table = askew("check docs.tsv --groups age.csv").table
    assert "name 1 of 1   The Isle of [Child] is in the Irish Sea." in table
    assert "fictional" not in table
    assert "not trained on words of the groups " in " ".join(table.split())
    files.docs("docs.tsv", {"d1": "The weather is fine."})
    table = askew("check docs.tsv").table
    assert "the resolver classified no mention of the listed words as part of a name ('name')" in " ".join(
        table.split()
    )


def test_the_frequent_words_of_other_groups_are_listed_and_shared_terms_are_noted(askew, files):
    files.text("age.csv", AGE + "young,old\n")
    files.docs("docs.tsv", {"d1": "Young people and old people", "d2": "A young tree."})
    result = askew("check docs.tsv --groups age.csv")
    assert "young   mentions   name   other" in result.table
    assert "young   2" in result.table
    assert (
        "a term that belongs to several groups is counted for each of its groups: 'young' (old and young)"
        in " ".join(result.err.split())
    )
    files.text("age.csv", AGE)
    assert "several groups" not in askew("check docs.tsv --groups age.csv").err


def test_a_group_that_no_document_names_is_noted(askew, files):
    files.text("work.csv", "farmr,worker\nking,royal\n")
    files.docs("docs.tsv", {"d1": "The king and the farmer.", "d2": "A king."})
    assert (
        "no document names the group 'worker'; check the spelling of the terms"
        in askew("check docs.tsv --groups work.csv").err
    )
    files.text("work.csv", "farmer,worker\nking,royal\n")
    assert "no document names" not in askew("check docs.tsv --groups work.csv").err


def test_the_caveat_comes_before_the_estimates_and_terms_that_do_not_occur_are_named(askew, files):
    files.text("work.csv", "farmer,worker\nminer,worker\nking,royal\n")
    files.docs("docs.tsv", {"d1": "The king and the farmer.", "d2": "A king."})
    said = " ".join(askew("check docs.tsv --groups work.csv").table.split())
    assert said.index("not trained on words of the groups worker, royal") < said.index("worker mentions")
    assert "1 of the 2 terms of worker do not occur in these documents: miner." in said
    assert "terms of royal" not in said
    assert "Random mentions of the most frequent words" in said and "farmer The king and the [farmer]." in said
    assert "Random mentions" not in askew("check docs.tsv --groups gender:male,female").table


def test_groups_may_be_chosen_of_a_lexicon(askew, files):
    files.text("age.csv", AGE)
    assert askew("check demo --groups young --lexicon age.csv --json").json["groups"]["names"] == ["young"]
    assert "unknown group 'yong'" in askew("check demo --groups yong --lexicon age.csv").err
