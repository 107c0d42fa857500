"""What every candidate carries to the pairs and the dataset: its kind, and what the filter equivalence says of it."""

import polars as pl
import pyarrow as pa
import pytest

from askew.core.plugins import from_spec
from askew.core.protocols import Candidates
from askew.core.store.store import Store
from askew.pairs.build import Pairs
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.pairs.stages import Keep, ReformulateStage
from askew.pairs.verify import verify
from askew.rewrite.equivalence import EquivalenceFilter


class Kinds:
    """Two candidates for each query: one of a kind, one of none."""

    method, reads = "kinds", frozenset()

    def settings(self):
        return {}

    def reformulate(self, asked):
        found = Candidates()
        for row, text in enumerate(asked.texts):
            found.add(row, f"the {text}", kind="paraphrase")
            found.add(row, f"{text} car wheel price")
        return found


class NoKinds(Kinds):
    """A plugin that fills the columns itself, and knows nothing of kinds."""

    def reformulate(self, asked):
        return Candidates([0], ["tea leaves"], [None])


def variants(method):
    rows = pa.table({"query_id": ["q"], "text": ["history of tea"]})
    return ReformulateStage({"kinds": method}, lambda: None, "").run(rows)[0]


def test_the_kind_of_a_candidate_is_written_where_its_method_has_kinds():
    assert variants(Kinds())["kind"].to_pylist() == [None, "paraphrase", None]
    assert variants(NoKinds())["kind"].to_pylist() == [None, None]


def test_the_probabilities_of_the_filter_equivalence_are_kept_with_the_candidates():
    judge = EquivalenceFilter(model="light")
    table, dropped = Keep([from_spec("filter", {"filter": "rules"}), judge]).run(variants(Kinds()))
    assert dropped == {"other meaning": 1}
    (score,) = judge.score(["history of tea"], ["the history of tea"])
    assert table["p_same"].to_pylist() == [None, score["same"]]
    assert table["p_natural"].to_pylist() == [None, score["natural"]]


def test_without_that_filter_the_columns_are_empty():
    table, _ = Keep([from_spec("filter", {"filter": "rules"})]).run(variants(Kinds()))
    assert table.schema.field("p_same").type == pa.float64()
    assert table["p_same"].null_count == table["p_natural"].null_count == table.num_rows == 3


def test_a_filter_decides_the_same_with_and_without_its_probabilities_kept():
    judge, rows = EquivalenceFilter(model="light"), variants(Kinds())
    texts = rows["text"].to_pylist()
    reasons = judge.check([texts[0]] * 2, texts[1:], [0, 0])
    assert Keep([judge]).run(rows)[0]["text"].to_pylist()[1:] == [
        text for text, reason in zip(texts[1:], reasons, strict=True) if reason is None
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    sections = dict(read_recipe("demo").sections)
    sections["reformulate"] = [{"method": "reduce"}]
    sections["filter"] = [{"filter": "equivalence", "model": "light"}]
    store = Store(tmp_path_factory.mktemp("columns"))
    build = prepare(Recipe("r", sections), store)
    return build, store, build.plan.run(store)


def test_the_columns_come_to_the_pairs_and_to_the_dataset(built, tmp_path):
    _, store, outcomes = built
    pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest))))
    assert pairs["p_same"].is_between(0, 1).all() and pairs["p_natural"].is_between(0, 1).all()
    assert pairs["kind"].null_count() == pairs.height
    Pairs(*built).publish(tmp_path / "out")
    assert verify(str(tmp_path / "out")).wrong == []
    published = pl.concat(map(pl.read_parquet, sorted((tmp_path / "out" / "data").glob("*.parquet"))))
    assert {"kind": pl.String, "p_same": pl.Float64, "p_natural": pl.Float64}.items() <= published.schema.items()
    known = dict(pairs.select("variant_id", "p_same").iter_rows())
    assert all(known[variant] == p for variant, p in published.select("variant_id", "p_same").iter_rows())
    assert "| `p_same` | float64 | the probability" in (tmp_path / "out" / "README.md").read_text()
