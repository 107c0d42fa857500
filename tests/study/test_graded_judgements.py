"""Where judgements have more than one positive grade, a note says which grades count as relevant."""

import askew
from askew.pairs.build import plan

RUN = {"run": {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}}
GRADED = {"q": {"a": 1, "b": 3, "c": 0}}


def notes(measures, qrels=GRADED):
    return [note for note in askew.measure(RUN, measures=measures, qrels=qrels).notes if "relevant" in note]


def test_the_note_names_the_measures_the_grades_and_how_to_change_it():
    (note,) = notes(["nDCG@10", "RR@10", "AP@10"])
    assert (note.code, note.values) == ("graded", {"measures": ["RR@10", "AP@10"], "relevant": 1, "highest": 3})
    assert note.endswith(" RR(rel=3)@10")


def test_a_measure_that_names_its_grade_or_uses_all_grades_needs_no_note():
    assert notes(["RR(rel=3)@10", "RR(rel=1)@10", "nDCG@10"]) == []


def test_judgements_of_one_positive_grade_need_no_note():
    assert notes(["RR@10", "P@10"], {"q": {"a": 2, "b": 0, "c": -1}}) == []


def test_the_example_works_and_gives_the_other_value():
    (note,) = notes(["RR@10"])
    text = note.rpartition(" ")[2]
    report = askew.measure(RUN, measures=["RR@10", text], qrels=GRADED)
    assert (report["RR@10"].mean, report[text].mean) == (1.0, 0.5)


def test_a_comparison_has_the_note_once():
    found = askew.compare(RUN["run"], {"q": {"b": 3.0}}, measures=["RR@10"], qrels=GRADED)
    assert len([note for note in found.notes if "count as relevant" in note]) == 1


def test_a_build_has_the_note(tmp_path):
    ready, _ = plan("demo", store=tmp_path)
    (note,) = (note for note in ready.notes if "relevant" in note)
    assert (note.code, note.values) == ("graded", {"measures": ["RR@10", "AP@10"], "relevant": 1, "highest": 2})


def test_a_build_that_stops_before_the_scores_has_no_note(tmp_path):
    ready, _ = plan("demo", store=tmp_path, until="kept")
    assert not [note for note in ready.notes if "relevant" in note]
