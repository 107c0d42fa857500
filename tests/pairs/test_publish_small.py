"""The card of a dataset with few pairs promises nothing that it does not have."""

import pytest
from toy_release import MEASURES, choose, facts, frame, row

from askew.pairs.dataset.checking import verify
from askew.pairs.dataset.release import publish


def held_out(subset, queries, **more):
    return {
        "subset": subset, "measure": "RR@10", "figures": "held-out", "held_out_queries": queries, "old_mean": 0.5,
        "new_mean": 0.6, "change": 20.0, "low": -97.5, "high": 3900.0, **more,
    }  # fmt: skip


def card_of(tmp_path, stated=(), queries=1):
    """The card of a dataset with one Effective pair and one negative pair for each query."""
    old, better, worse = (0.5, 0.5, 1.0), (1.0, 0.25, 1.0), (0.0, 0.5, 1.0)
    rows = [choose([row(f"q{i}", "v0", old, better), row(f"q{i}", "v1", old, worse)]) for i in range(queries)]
    publish(frame([one for some in rows for one in some]), facts(held_out=list(stated)), tmp_path / "out")
    return (tmp_path / "out" / "README.md").read_text()


def test_numbers_of_one_are_singular(tmp_path):
    card = card_of(tmp_path)
    assert "\n2 pairs of 1 query of `toy`:" in card
    assert "\nThe only pair " in card and "The first pairs" not in card


def test_a_subset_without_pairs_has_a_line_of_counts_and_no_means(tmp_path):
    card = card_of(tmp_path, [held_out("optimal", 9), held_out("effective", 9)])
    assert "| optimal | 0 | 0 |" in card
    assert "| optimal | `RR@10` |" not in card and "| effective | `RR@10` | held-out |" in card


def test_an_interval_of_fewer_than_five_queries_is_not_given_and_not_promised(tmp_path):
    card = card_of(tmp_path, [held_out("effective", 4), held_out("fair", 1)])
    assert "3900" not in card and "95% interval" not in card
    assert "no intervals: " in card and "fewer than 5" in card


def test_intervals_are_explained_where_some_are_missing(tmp_path):
    stated = [held_out("effective", 5), held_out("fair", 4), held_out("negative", 0, figures="in-sample")]
    card = card_of(tmp_path, stated, queries=5)
    assert "| +20.0% | -97.5 to +3900.0 |" in card and card.count("3900") == 2
    assert "The 95% interval " in card and "fewer than 5" in card and "no intervals: " not in card


NOT_BETTER = "subset fair: held-out data do not show that these measures improve (change, 95% interval): "
WORSE = "subset fair: on held-out data, these measures become worse (change, 95% interval): "
UNKNOWN = (
    "subset fair: these measures of effectiveness have no held-out value, because too few selected queries have "
    "several relevant documents; their in-sample gain is too optimistic: "
)


@pytest.mark.parametrize(
    ("measure", "figures", "said"),
    [
        ("ARaB(tf)@10", {"low": -40.0, "high": 12.5}, NOT_BETTER + "ARaB(tf)@10 -20.0%, -40.0 to +12.5"),
        ("ARaB(tf)@10", {"low": -40.0, "high": 0.0}, NOT_BETTER + "ARaB(tf)@10 -20.0%, -40.0 to +0.0"),
        ("ARaB(tf)@10", {"low": 1.0, "high": 40.0}, WORSE + "ARaB(tf)@10 -20.0%, +1.0 to +40.0"),
        ("ARaB(tf)@10", {"low": None, "high": None}, NOT_BETTER + "ARaB(tf)@10 -20.0%, no interval"),
        ("ARaB(tf)@10", {"held_out_queries": 4}, NOT_BETTER + "ARaB(tf)@10 -20.0%, no interval"),
        ("ARaB(tf)@10", {"figures": "in-sample"}, None),
        ("ARaB(tf)@10", {"low": -40.0, "high": -1.0}, None),
        ("LexiconShare@10", {"low": 1.0, "high": 40.0}, WORSE + "LexiconShare@10 -20.0%, +1.0 to +40.0"),
        ("LexiconShare@10", {"low": -1.0, "high": 40.0}, None),
        ("RR@10", {"low": -40.0, "high": -1.0}, WORSE + "RR@10 -20.0%, -40.0 to -1.0"),
        ("RR@10", {"low": -40.0, "high": 0.0}, None),
        ("RR@10", {"low": None, "high": None}, None),
        ("RR@10", {"low": 1.0, "high": 40.0}, None),
        ("RR@10", {"figures": "in-sample"}, UNKNOWN + "RR@10"),
    ],
)
def test_what_held_out_data_do_not_show_is_in_the_notes_and_in_the_card(tmp_path, measure, figures, said):
    stated = {**held_out("fair", 5), "change": -20.0, "measure": measure, **figures}
    old, better, worse = (0.5, 0.5, 1.0), (1.0, 0.25, 1.0), (0.0, 0.5, 1.0)
    rows = [choose([row(f"q{i}", "v0", old, better), row(f"q{i}", "v1", old, worse)]) for i in range(5)]
    done = publish(frame([one for some in rows for one in some]), facts(held_out=[stated]), tmp_path / "out")
    assert done.notes == ([] if said is None else [said])
    card = (tmp_path / "out" / "README.md").read_text()
    assert ("- **Subset fair**: " in card) == (said is not None)
    assert said is None or card.index("- **Subset fair**: ") < card.index("Held-out figures: ")


def test_every_judged_measure_without_a_held_out_value_is_named(tmp_path):
    stated = {**held_out("fair", 5), "measure": "LexiconShare@10", "figures": "in-sample"}
    rows = choose([row("q0", "v0", (0.5, 0.5, 1.0), (1.0, 0.25, 1.0))])
    notes = {
        judged: publish(
            frame(rows),
            facts(
                held_out=[stated],
                measures={**MEASURES, "LexiconShare@10": {**MEASURES["LexiconShare@10"], "judged": judged}},
            ),
            tmp_path / str(judged),
        ).notes
        for judged in (True, False)
    }
    assert notes == {True: [UNKNOWN + "LexiconShare@10"], False: []}
    assert verify(tmp_path / "True").ok


def test_a_dataset_without_a_license_has_a_note(tmp_path):
    rows = choose([row("q0", "v0", (0.5, 0.5, 1.0), (1.0, 0.25, 1.0))])
    stated = {name: value for name, value in facts().items() if name != "license"}
    assert [note.code for note in publish(frame(rows), stated, tmp_path / "out").notes] == ["no-license"]


def test_a_split_without_rows_is_named_as_such_and_no_leak_is_a_plain_sentence(tmp_path):
    card = card_of(tmp_path)
    assert sum(f"| the split {split}, without rows |" in card for split in ("train", "dev", "test")) == 2
    assert "0 of 2 pairs" not in card
    assert "No reformulation has " in card


@pytest.mark.parametrize(
    ("source", "query_text", "is_noted"),
    [
        ("CC-BY-NC-4.0", True, True),
        ("CC-BY-NC-4.0", False, False),
        ("CC-BY-4.0", True, False),
        ("CC0-1.0", True, False),
        ("", True, False),
    ],
)
def test_a_source_with_another_license_has_a_note_if_the_texts_of_queries_are_published(
    tmp_path, source, query_text, is_noted
):
    rows = choose([row("q0", "v0", (0.5, 0.5, 1.0), (1.0, 0.25, 1.0))])
    stated = facts(sources=[{"name": "toy queries", "license": source}], query_text=query_text)
    notes = publish(frame(rows), stated, tmp_path / "out").notes
    assert [(note.code, note.values["others"]) for note in notes] == [("other-licenses", (source,))] * is_noted


def test_the_card_begins_with_the_size_of_each_subset_and_loads_one_of_them(tmp_path):
    card = card_of(tmp_path)
    sizes = "Number of pairs in each subset: `optimal` 0, `effective` 1, `fair` 1, `negative` 1."
    assert card.index(sizes) < card.index("## Numbers")
    assert 'row["fair"]' in card


@pytest.mark.parametrize(
    ("license", "is_known"),
    [("CC-BY-4.0", True), ("cc-by-nc-sa-3.0", True), ("Apache-2.0", True), ("other", True), ("CCBY4", False)],
)
def test_a_license_that_may_be_misspelled_has_a_note(tmp_path, license, is_known):
    rows = choose([row("q0", "v0", (0.5, 0.5, 1.0), (1.0, 0.25, 1.0))])
    notes = publish(frame(rows), facts(license=license), tmp_path / "out").notes
    assert [(note.code, note.values["license"]) for note in notes] == [("unknown-license", license)] * (not is_known)
