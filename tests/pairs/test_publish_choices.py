"""Any selection can be released: where it breaks a promise, publish refuses it and verify finds it."""

import json
import re

import polars as pl
import pytest
from toy_choices import (
    boxed_facts,
    boxed_pairs,
    own_facts,
    own_pairs,
)
from toy_release import contents, facts, publish_unchecked, resign, row, toy_pairs

from askew.core.errors import ConfigError, DataError
from askew.core.measure import held_out_gain_column
from askew.pairs.dataset.checking import verify
from askew.pairs.dataset.facts import read_facts
from askew.pairs.dataset.release import publish


@pytest.mark.parametrize(
    ("pairs", "stated", "subsets"),
    [
        (own_pairs(), own_facts(), {"own": 3}),
        (boxed_pairs(), boxed_facts(), {"gold": 3, "diamond": 1, "far": 1}),
    ],
)
def test_the_subsets_of_any_selection_are_published_and_verify(tmp_path, pairs, stated, subsets):
    done = publish(pairs, stated, tmp_path / "out")
    report = verify(tmp_path / "out")
    assert report.ok, report.wrong
    assert done.subsets == report.facts["subsets"] == subsets
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"| {next(iter(subsets))} | `RR@10` |" in card
    assert "group" not in "".join(line for line in card.splitlines() if line.startswith("| subset"))
    assert not (tmp_path / "out" / "json").exists()


def test_no_pairs_of_such_a_selection_are_published_and_verify(tmp_path):
    for number, (pairs, stated) in enumerate([(own_pairs(), own_facts()), (boxed_pairs(), boxed_facts())]):
        publish(pairs.clear(), stated, tmp_path / str(number))
        assert verify(tmp_path / str(number)).ok


def test_a_subset_of_which_nothing_is_stated_is_told_as_not_checked(tmp_path):
    publish(own_pairs(), facts(subsets=["own"], selection={}), tmp_path / "out")
    report = verify(tmp_path / "out")
    assert report.ok
    assert any("names no selector" in note for note in report.notes)


def at(table, place, **values):
    """Change one pair; a gain follows its new value."""
    here = pl.int_range(table.height) == place
    changed = table.with_columns(
        pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )
    return changed.with_columns(
        (pl.col("new_RR_10") - pl.col("old_RR_10")).alias("gain_RR_10"),
        (pl.col("old_ARaB_tf_10").abs() - pl.col("new_ARaB_tf_10").abs()).alias("gain_ARaB_tf_10"),
    )


def less_lean_facts(share):
    """A selector that accepts only pairs whose lean falls by a share."""
    return facts(selection={**facts()["selection"], "selector": "refairmulate", "agreeing": 1, "least_effect": share})


# What is broken, the column whose values are wrong, and the number of pairs.
BROKEN = {
    "gold by its value": (lambda: (at(boxed_pairs(), 1, new_RR_10=0.25), boxed_facts()), "gold", "1 of 3"),
    "diamond": (lambda: (at(boxed_pairs(), 1, diamond=True), boxed_facts()), "diamond", "1 of 3"),
    "far": (lambda: (at(boxed_pairs(), 2, far=True), boxed_facts()), "far", "1 of 3"),
    "not far": (lambda: (at(boxed_pairs(), 0, far=False), boxed_facts()), "far", "1 of 3"),
    "two gold": (lambda: (at(boxed_pairs(), 1, query_id="q1", variant_id="v9"), boxed_facts()), "gold", "1 of 3"),
    "outcome": (lambda: (at(boxed_pairs(), 0, outcome="worse-more"), boxed_facts()), "outcome", "1 of 3"),
    "too small an effect": (lambda: (less_lean(0.25), less_lean_facts(0.75)), "effective", "1 of 1"),
}


def less_lean(new):
    one = row("q1", "v0", (0.5, 0.5, 1.0), (0.75, new, 1.0))
    return plain_groups([one | {"effective": True, "fair": True}])


def test_a_large_enough_effect_is_accepted(tmp_path):
    publish(less_lean(0.1), less_lean_facts(0.75), tmp_path / "out")
    assert verify(tmp_path / "out").ok


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_promise_is_refused_by_publish_and_found_by_verify(tmp_path, what):
    make, column, count = BROKEN[what]
    pairs, stated = make()
    with pytest.raises(DataError) as error:
        publish(pairs, stated, tmp_path / "out")
    assert f"column {column!r}" in str(error.value)
    publish_unchecked(pairs, stated, tmp_path / "out")
    (line,) = [line for line in verify(tmp_path / "out").wrong if f"column {column!r}" in line]
    assert f"by {count}" in line


def test_where_every_pair_is_tested_a_query_may_have_several_in_a_box(tmp_path):
    two = at(boxed_pairs(), 1, query_id="q1", variant_id="v9", original_text="what about topic q1")
    publish(two, boxed_facts(every=True), tmp_path / "out")
    assert verify(tmp_path / "out").ok


BOXED = {"selector": "boxes", "measure": "RR@10", "boxes": {"gold": "refined > original"}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"subsets": []}, "subsets: expected distinct names"),
        ({"subsets": ["a", "a"]}, "subsets: expected distinct names"),
        ({"subsets": ["a b"]}, "subsets: expected distinct names"),
        ({"subsets": ["../x"]}, "subsets: expected distinct names"),
        ({"subsets": ["robust"]}, "subsets: expected distinct names"),
        ({"subsets": ["text"]}, "subsets: expected distinct names"),
        ({"scheme": "mine"}, "scheme: expected one of refairmulate, boxes, plain"),
        ({"scheme": "refairmulate", "subsets": ["gold"]}, "for the scheme refairmulate"),
        ({"scheme": "boxes"}, "selection.selector: expected"),
        ({"selection": {**BOXED, "boxes": {"fair": "refined > "}}}, "criterion 'refined >'"),
        ({"selection": {**BOXED, "boxes": {"fair": "__import__('os')"}}}, "criterion"),
        ({"selection": {**BOXED, "boxes": {"fair": 1}}}, "criterion"),
        ({"selection": {**BOXED, "every": "yes"}}, "every"),
        ({"selection": {**BOXED, "measure": "AP@9"}}, "AP@9"),
        ({"selection": BOXED}, "subsets: expected"),
        ({"selection": {**BOXED, "single": "best"}}, "single"),
    ],
)
def test_facts_of_a_selection_that_do_not_fit_are_refused_with_their_place(change, said):
    with pytest.raises(ConfigError) as error:
        read_facts(facts(**{"selection": {}, **change}))
    assert said in str(error.value)


def several_bias(selector):
    selection = {"selector": selector, "effectiveness": ["RR@10"], "bias": ["ARaB(tf)@10", "LexiconShare@10"]}
    return facts(selection=selection | ({"valid_bias": ["ARaB(tf)@10"]} if selector.endswith("repo") else {}))


def test_the_outcome_of_several_measures_is_worse_where_one_is(tmp_path):
    # ARaB falls from 0.5 to 0.25 and the share rises from 1 to 2: no help, but the label is by the first measure.
    hurt = row("q1", "v0", (0.5, 0.5, 1.0), (1.0, 0.25, 2.0)) | {"outcome": "better-more"}
    right = hurt | {"effective": True, "fair": True}
    publish(plain_groups([right]), several_bias("refairmulate-paper"), tmp_path / "out")
    assert verify(tmp_path / "out").ok
    with pytest.raises(DataError, match=r"column 'label'.*by 1"):
        publish(plain_groups([right]), several_bias("refairmulate-repo"), tmp_path / "other")
    with pytest.raises(DataError, match=r"column 'outcome'.*by 1"):
        publish(plain_groups([right | {"outcome": "better-less"}]), several_bias("refairmulate-paper"), tmp_path / "b")


def plain_groups(rows):
    return pl.concat([toy_pairs().clear(), pl.DataFrame(rows, schema=toy_pairs().schema)])


@pytest.mark.parametrize(("share", "label", "right"), [(0.5, 0, True), (2.0, 7, True), (2.0, 0, False), (1.0, 7, True)])
def test_labels_by_several_measures_need_them_to_agree(tmp_path, share, label, right):
    outcome = "better-more" if share == 2.0 else "better-less"
    chosen = dict.fromkeys(("effective", "fair"), label == 0)
    values = row("q1", "v0", (0.5, 0.5, 1.0), (1.0, 0.25, share))
    one = values | {"outcome": outcome, "label": label, "score": 0.75 + (1.0 - share), **chosen}
    if right:
        publish(plain_groups([one]), several_bias("refairmulate-repo"), tmp_path / "out")
        assert verify(tmp_path / "out").ok
        return
    with pytest.raises(DataError, match=r"column 'label'.*by 1 of 1"):
        publish(plain_groups([one]), several_bias("refairmulate-repo"), tmp_path / "out")


def test_a_pair_whose_lean_is_not_known_has_no_outcome(tmp_path):
    unknown = {"new_ARaB_tf_10": None, "gain_ARaB_tf_10": None}
    pairs = own_pairs().head(1).with_columns(pl.lit(v, pl.Float64).alias(k) for k, v in unknown.items())
    pairs = pairs.rename({"own": "gold"})
    boxes = {"selector": "boxes", "measure": "RR@10", "boxes": {"gold": "refined > original"}, "bias": ["ARaB(tf)@10"]}
    stated = facts(subsets=["gold"], selection=boxes)
    with pytest.raises(DataError, match="column 'outcome'"):
        publish(pairs, stated, tmp_path / "out")
    publish(pairs.with_columns(outcome=pl.lit(None, pl.String)), stated, tmp_path / "out")
    assert verify(tmp_path / "out").ok
    assert "`not known`" in (tmp_path / "out" / "README.md").read_text()


ROBUST = {"robust_rankers": ["bm25", "qld"], "robust_measures": ["RR@10", "ARaB(tf)@10"]}


def robust_release(tmp_path, flags, **more):
    pairs = own_pairs().with_columns(robust=pl.Series(flags, dtype=pl.Boolean))
    publish(pairs, {**own_facts(), **ROBUST, **more}, tmp_path / "out")
    return tmp_path / "out"


def test_robust_pairs_are_counted_with_n_share_and_interval(tmp_path):
    out = robust_release(tmp_path, [True, False, None])
    # Wilson of 1 in 2: (0.5 + z2/4 -+ z * sqrt(0.125 + z2/16)) / (1 + z2/2) with z2 = 3.8415, by hand 9.5% and 90.5%.
    assert "| own | 3 | 2 | 1 | 50.0% | 9.5% | 90.5% |" in (out / "README.md").read_text()
    assert verify(out).ok
    assert pl.read_parquet(out / "data" / "*.parquet").sort("query_id", "variant_id")["robust"].to_list() == [
        True, False, None,
    ]  # fmt: skip


def test_a_robust_pair_that_is_worse_under_the_ranker_of_the_release_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"\(ranker \S+\): broken by 1 of 3"):
        robust_release(tmp_path, [True, False, True])


def test_robust_needs_its_column_and_its_table_in_the_card_is_checked(tmp_path):
    with pytest.raises(DataError, match="expected the column 'robust'"):
        publish(own_pairs(), {**own_facts(), **ROBUST}, tmp_path / "other")
    out = robust_release(tmp_path, [True, False, None])
    text = (out / "README.md").read_text()
    (out / "README.md").write_text(text.replace("| 50.0% | 9.5%", "| 90.0% | 9.5%"))
    resign(out)
    (wrong,) = verify(out).wrong
    assert wrong.startswith("README.md: ") and " robust pairs " in wrong


def test_who_asked_and_when_travels_along_and_is_told_as_personal(tmp_path):
    said = pl.Series("context", ["u1 2006-03-01", "u1 2006-03-01", None])
    publish(own_pairs().with_columns(said), own_facts(), tmp_path / "out")
    assert verify(tmp_path / "out").ok
    told = json.loads(contents(tmp_path / "out")["croissant.json"])["rai:personalSensitiveInformation"]
    (said,) = [line for line in told if "'context'" in line]
    assert re.findall(r"\d+", said) == ["2", "1"]
    assert "| `context` | string | who sent" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(DataError, match="same context: broken by 1"):
        other = own_pairs().with_columns(pl.Series("context", ["u1", "u2", None]))
        publish(other, own_facts(), tmp_path / "other")


def gains_release(tmp_path, values, **more):
    pairs = own_pairs().with_columns(held_out_gain_RR_10=pl.Series(values, dtype=pl.Float64))
    publish(pairs, {**own_facts(), "held_out_gains": ["RR@10"], **more}, tmp_path / "out")
    return tmp_path / "out"


def test_held_out_gains_are_published_null_where_no_part_chose_the_pair_and_explained(tmp_path):
    out = gains_release(tmp_path, [0.5, None, -0.25])
    rows = pl.read_parquet(out / "data" / "*.parquet").sort("query_id", "variant_id")
    assert rows[held_out_gain_column("RR@10")].to_list() == [0.5, None, -0.25]
    lines = (out / "README.md").read_text().splitlines()
    (explained,) = [one for one in lines if one.startswith("| `held_out_gain_RR_10` | float64 |")]
    assert "held-out documents" in explained
    assert verify(out).ok


def test_held_out_gains_and_the_facts_go_together(tmp_path):
    with pytest.raises(ConfigError, match="'measures' lacks"):
        gains_release(tmp_path, [0.5, None, 1.0], held_out_gains=[])
    with pytest.raises(DataError, match="expected the column 'held_out_gain_ARaB_tf_10'"):
        gains_release(tmp_path, [0.5, None, 1.0], held_out_gains=["RR@10", "ARaB(tf)@10"])
    with pytest.raises(DataError, match="expected finite numbers"):
        gains_release(tmp_path, [0.5, None, float("inf")])
