"""A selector that is run again on the pairs of a release gives the same columns, also where candidates tie."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selection_toys import MEASURES, SIGNED, tables

from askew.pairs.boxes import Boxes
from askew.pairs.dataset.facts import read_facts
from askew.pairs.dataset.rules import Problems
from askew.pairs.refairmulate import Refairmulate, RefairmulatePaper, RefairmulateRepo
from askew.pairs.stages import Select

BIAS = "ARaB(tf)@10 ARaB(tc)@10"
SELECTORS = {
    "refairmulate": Refairmulate("RR@10", BIAS),
    "refairmulate, all labels": Refairmulate("RR@10", BIAS, accept="1: 0 1 2 3 4; 4: 0 1 2 3 4"),
    "paper": RefairmulatePaper("RR@10", BIAS, tolerance=0.2),
    "repo": RefairmulateRepo("RR@10", BIAS, "ARaB(tf)@10"),
    "boxes": Boxes(bias=BIAS),
    "every box": Boxes(boxes="low: refined < 1; gold", every=True, keep_same=True),
}
VALUES = [(0.0, 0.5, 1.0)] * 2 + [(0.0, 0.25, -0.5)] * 4


def facts(stage):
    measures = {name: {"signature": name, "direction": one.value} for name, one in SIGNED.items()}
    told = {"title": "t", "description": "d", "collection": "c", "ranker": "r", "measures": measures}
    subsets = list(stage.selector.subsets)
    return read_facts({**told, "subsets": subsets, "selection": stage.chosen_by()})


@pytest.mark.parametrize("per", ["query", "method"])
@pytest.mark.parametrize("name", SELECTORS)
@settings(max_examples=25)
@given(scored=tables(VALUES, MEASURES), judged=st.booleans())
def test_the_pairs_of_a_release_keep_their_rules(name, per, scored, judged):
    stage = Select(SELECTORS[name], SIGNED, per=per)
    other = (pl.col("method") != "original") & (pl.int_range(pl.len()) % 2 == 1)
    scored = scored.with_columns(method=pl.when(other).then(pl.lit("other")).otherwise("method"))
    if judged:
        made = pl.col("method") != "original"
        scored = scored.with_columns(source_judged=made & (pl.int_range(pl.len()) % 3 == 1))
    pairs = pl.DataFrame(pl.from_arrow(stage.run(scored.to_arrow())[0]))
    # Ids that are not in the order of the candidates.
    released = pairs.filter(pl.any_horizontal(stage.selector.subsets)).with_columns(
        pl.col("variant_id").str.reverse()
    ).sort("query_id", "variant_id")  # fmt: skip
    problems = Problems(facts(stage))
    problems.look(released)
    assert problems.lines() == []
