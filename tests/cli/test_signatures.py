"""A signature names all that changes the number, and can be measured again with the same files."""

import json
from pathlib import Path

import pytest

PRESETS = ("rekabsaz2020", "bigdeli2022", "refairmulate2025")


def measured(askew, command: str, *words: str) -> dict:
    report = askew([*command.split(), *words, "--json"]).json
    return report["runs"][0]["measures"]


def again(askew, command: str, found: dict) -> None:
    """Every signature, asked for as it is, gives the same numbers under the same signature."""
    texts = [entry["signature"] for entry in found.values()]
    repeated = measured(askew, command, "--measures", " ".join(texts))
    for text, entry in zip(texts, found.values(), strict=True):
        assert repeated[text]["signature"] == text
        assert repeated[text]["mean"] == pytest.approx(entry["mean"], abs=1e-5)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_can_be_measured_again_by_its_signatures_alone(askew, files, preset):
    # The published scripts leave a line of five columns out; Refairmulate's is read with care.
    short = "7 Q0 d4 3 5\n" if preset != "refairmulate2025" else ""
    files.text("old.run", f"7 Q0 d1 1 1 t\n7 Q0 d2 2 5 t\n{short}")
    files.text("new.run", "7 Q0 d3 1 1 t\n7 Q0 d1 2 4 t\n")
    files.text("qrels.txt", "7 0 d2 1\n")
    command = "measure old.run --docs docs.tsv --qrels qrels.txt --background new.run"
    found = measured(askew, command, "--preset", preset)
    published = preset != "refairmulate2025"
    assert all(("reading='published'" in entry["signature"]) == published for entry in found.values())
    again(askew, command, found)


def test_a_background_run_is_named_by_its_content(askew, files):
    command = "measure old.run --docs docs.tsv --measures NFaiRR@2 --background"
    one = measured(askew, f"{command} new.run")["NFaiRR@2"]["signature"]
    files.text("copy.run", "".join(f"{line} \n" for line in Path("new.run").read_text().splitlines()))
    assert measured(askew, f"{command} copy.run")["NFaiRR@2"]["signature"] == one
    assert measured(askew, f"{command} old.run")["NFaiRR@2"]["signature"] != one
    assert "background='run@" in one
    again(askew, "measure old.run --docs docs.tsv --background new.run", measured(askew, f"{command} new.run"))


def test_another_background_than_the_one_in_the_signature_is_told(askew):
    found = measured(askew, "measure old.run --docs docs.tsv --measures NFaiRR@2 --background new.run")
    signature = found["NFaiRR@2"]["signature"]
    command = "measure old.run --docs docs.tsv --background old.run --json --measures"
    result = askew([*command.split(), signature])
    assert result.code == 0
    assert result.noted(" another background", " run@")


def test_a_background_is_ranked_as_the_measure_says(askew, files):
    files.run("old.run", {"q1": ["d5"]})
    files.text("background.run", "q1 Q0 d3 1 1.0 t\nq1 Q0 d1 2 5.0 t\n")
    command = "measure old.run --docs docs.tsv --background background.run"
    by_line = measured(askew, command, "--measures", "NFaiRR(depth=1,order=file)@1")
    assert next(iter(by_line.values()))["mean"] == pytest.approx(2 / 3)
    result = askew([*command.split(), "--measures", "NFaiRR(depth=1,order=score,zero_ideal=error)@1"])
    result.refused(3, "only documents of neutrality 0")


def test_the_fields_of_a_text_are_part_of_the_signature(askew, files):
    rows = [{"id": doc, "title": "She", "text": "he he"} for doc in ("d1", "d2", "d3", "d4")]
    files.text("docs.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = measured(askew, "measure old.run --docs docs.jsonl --measures RaB(tc)@1 --fields title,text")
    assert "fields='title+text'" in found["RaB(tc)@1"]["signature"]
    again(askew, "measure old.run --docs docs.jsonl", found)


def test_a_lexicon_of_ones_own_is_found_by_its_name_and_content_in_the_option(askew, files):
    files.text("years.toml", "[groups]\nyoung = ['he']\nold = ['she']\n")
    command = "measure old.run --docs docs.tsv --lexicon years.toml"
    found = measured(askew, command, "--measures", "RaB(tc)@2 FaiRR@2")
    again(askew, command, found)
    signature = found["FaiRR@2"]["signature"]
    lost = askew(["measure", "old.run", "--docs", "docs.tsv", "--measures", signature])
    lost.refused(3, "years@", "--lexicon")
    files.text("years.toml", "[groups]\nold = ['she']\nyoung = ['he']\n")
    askew([*command.split(), "--measures", signature]).refused(3, "years@")


def test_measures_that_would_read_the_files_in_two_ways_are_refused(askew):
    askew("measure old.run --docs docs.tsv --measures 'RaB(reading=published)@2 FaiRR@2'").refused(
        2, "reading", "compute these two separately"
    )


def test_documents_without_text_are_counted_where_they_are_read(askew, files):
    files.run("old.run", {"q1": ["d3", "lost1", "lost2"], "q2": ["d3"]})
    files.run("back.run", {"q1": ["d3", "lost3", "lost4"], "q2": ["d3"]})
    command = "measure old.run --docs docs.tsv --background back.run --json --measures"
    notes = askew(f"{command} 'RaB(missing=zero)@1'").err
    assert "have no text" not in notes
    assert askew(f"{command} 'RaB(missing=drop)@1'").noted(" 2 ranked documents", "(missing=drop)")
    both = askew(f"{command} 'RaB(missing=drop)@1 NFaiRR(missing=skip,depth=2)@3'")
    assert both.noted("old.run: ", " 3 ranked documents", "(missing=drop, skip)")
    own = askew(f"{command} 'NFaiRR(missing=zero,background=self)@1'")
    assert own.noted(" 2 ranked documents", "(missing=zero)")
