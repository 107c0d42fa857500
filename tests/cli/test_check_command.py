"""``askew check``: the command prints what the library finds."""

import askew as library

AGE = "old,old\nyoung,young\nchild,young\n"


def test_the_command_prints_what_the_library_finds(askew, files):
    files.text("age.csv", AGE)
    result = askew("check demo --groups age.csv")
    assert result.code == 0
    assert "documents that name old" in result.out
    assert "female" not in result.out
    found = askew("check demo --groups age.csv --json").json
    assert found["naming"] == library.check("demo", "age.csv").naming


def test_the_table_shows_who_frequent_words_point_to_and_says_what_the_estimates_are_worth(askew, files):
    files.docs("docs.tsv", {"d1": "The Nintendo Game Boy is a handheld game console.", "d2": "Men live longer."})
    table = askew("check docs.tsv --groups gender:male,female").table
    rows = [line.split() for line in table.splitlines()]
    assert ["male", "mentions", "real", "fictional", "generic", "name", "other"] in rows
    assert ["boy", "1", "0%", "0%", "0%", "100%", "0%"] in rows
    assert "name 1 of 1 " in table and " Game [Boy] is " in table
    assert " neural@" in " ".join(table.split())
    assert "female   mentions" not in table


def test_of_other_words_only_those_that_name_nobody_are_shown(askew, files):
    files.text("age.csv", AGE)
    files.docs("docs.tsv", {"d1": "The Isle of Child is in the Irish Sea."})
    table = askew("check docs.tsv --groups age.csv").table
    assert "name 1 of 1 " in table and " of [Child] is " in table
    assert "fictional" not in table
    assert "not trained on" in " ".join(table.split())
    files.docs("docs.tsv", {"d1": "The weather is fine."})
    table = askew("check docs.tsv").table
    assert " 1 of 1 " not in table and "'name'" in table


def test_the_frequent_words_of_other_groups_are_listed_and_shared_terms_are_noted(askew, files):
    files.text("age.csv", AGE + "young,old\n")
    files.docs("docs.tsv", {"d1": "Young people and old people", "d2": "A young tree."})
    result = askew("check docs.tsv --groups age.csv")
    assert "young   mentions   name   other" in result.table
    assert "young   2" in result.table
    assert result.noted("several groups", "'young' (old and young)")
    files.text("age.csv", AGE)
    assert "several groups" not in askew("check docs.tsv --groups age.csv").err


def test_a_group_that_no_document_names_is_noted(askew, files):
    files.text("work.csv", "farmr,worker\nking,royal\n")
    files.docs("docs.tsv", {"d1": "The king and the farmer.", "d2": "A king."})
    assert askew("check docs.tsv --groups work.csv").noted("no document", "'worker'")
    files.text("work.csv", "farmer,worker\nking,royal\n")
    assert not askew("check docs.tsv --groups work.csv").noted("no document")


def test_the_caveat_comes_before_the_estimates_and_terms_that_do_not_occur_are_named(askew, files):
    files.text("work.csv", "farmer,worker\nminer,worker\nking,royal\n")
    files.docs("docs.tsv", {"d1": "The king and the farmer.", "d2": "A king."})
    said = " ".join(askew("check docs.tsv --groups work.csv").table.split())
    assert said.index(" worker, royal") < said.index("worker mentions")
    assert "1 of the 2 " in said and " miner." in said
    assert "terms of royal" not in said
    assert "Random mentions" in said and " the [farmer]." in said
    assert "Random mentions" not in askew("check docs.tsv --groups gender:male,female").table


def test_groups_may_be_chosen_of_a_lexicon(askew, files):
    files.text("age.csv", AGE)
    assert askew("check demo --groups young --lexicon age.csv --json").json["groups"]["names"] == ["young"]
    askew("check demo --groups yong --lexicon age.csv").refused(2, "'yong'", "'young'")


def test_a_check_is_shorter_than_60_lines_and_all_shows_every_row(askew):
    assert len(askew("check demo").out.splitlines()) < 60 < len(askew("check demo --all").out.splitlines())
