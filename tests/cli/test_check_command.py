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


def test_groups_may_be_chosen_of_a_lexicon(askew, files):
    files.text("age.csv", AGE)
    assert askew("check demo --groups young --lexicon age.csv --json").json["groups"]["names"] == ["young"]
    assert "unknown group 'yong'" in askew("check demo --groups yong --lexicon age.csv").err
