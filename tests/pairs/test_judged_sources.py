"""Candidates made from documents that are judged relevant: known as such, chosen only where a recipe allows it."""

import polars as pl
import pyarrow as pa
import pytest

from askew.core.errors import ConfigError
from askew.core.measure import Direction
from askew.core.plugins import from_spec
from askew.core.protocols import Candidates, Passage, QueryBatch
from askew.core.store.store import Store
from askew.pairs.build import Pairs
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe
from askew.pairs.stages import ReformulateStage, Select
from askew.pairs.verify import verify

WAYS = {"RR@10": Direction.UP, "ARaB(tf)@10": Direction.ZERO, "ARaB(tc)@10": Direction.ZERO}
SELECTORS = [
    {"selector": "refairmulate", "bias": "ARaB(tf)@10 ARaB(tc)@10"},
    {"selector": "refairmulate-repo", "effectiveness": "RR@10", "bias": "ARaB(tf)@10", "valid_bias": "ARaB(tf)@10"},
    {"selector": "boxes", "measure": "RR@10", "bias": "ARaB(tf)@10"},
    {"selector": "boxes", "measure": "RR@10", "every": True},
]
# The second candidate is the best by far and was made from a judged document; the last one has its words.
ROWS = [
    ("original", "tea", False, 0.25, 2.0),
    ("x", "black tea", False, 0.5, 1.0),
    ("x", "green tea leaves", True, 1.0, 0.25),
    ("x", "tea pot", False, 0.125, 3.0),
    ("x", "no score", True, None, 1.0),
    ("y", "green tea leaves", False, 0.5, 1.5),
]


def scored(rows=ROWS):
    names = ["method", "text", "source_judged", "RR_10", "ARaB_tf_10"]
    table = pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.lit("q").alias("query_id"))
    ids = pl.Series("variant_id", [f"q:{i}" for i in range(table.height)])
    return table.with_columns(ids, pl.col("ARaB_tf_10").alias("ARaB_tc_10"))


def chosen_of(spec, judged_sources, rows=ROWS):
    selector = from_spec("selector", spec)
    table, dropped = Select(selector, WAYS, judged_sources=judged_sources).run(scored(rows).to_arrow())
    pairs = pl.DataFrame(pl.from_arrow(table))
    assert pairs.height + sum(dropped.values()) == len(rows)
    flags = [name for name in {*selector.subsets, "is_best"} - {"negative"} if name in pairs.columns]
    return pairs, pairs.filter(pl.any_horizontal(flags)), flags


@pytest.mark.parametrize("spec", SELECTORS, ids=lambda spec: spec["selector"])
def test_a_candidate_made_from_a_judged_document_is_a_pair_that_no_selector_chooses(spec):
    judged = [*ROWS[:3], ROWS[3]]
    pairs, chosen, _ = chosen_of(spec, "exclude", judged)
    assert pairs["variant_id"].to_list() == ["q:1", "q:2", "q:3"]
    assert not chosen["source_judged"].any()
    assert "q:1" in chosen["variant_id"]
    assert "q:2" in chosen_of(spec, "allow", judged)[1]["variant_id"]


@pytest.mark.parametrize("spec", SELECTORS, ids=lambda spec: spec["selector"])
def test_the_choice_is_the_one_among_the_other_candidates_alone(spec):
    _, _, flags = chosen_of(spec, "exclude")
    columns = ["text", "method", *flags]
    alone = chosen_of(spec, "allow", [row for row in ROWS if not row[2]])[0].select(columns)
    found = chosen_of(spec, "exclude")[0]
    assert found.filter(~pl.col("source_judged")).select(columns).equals(alone)


def test_of_a_text_made_twice_the_candidate_that_may_be_chosen_is_kept():
    pairs = chosen_of(SELECTORS[0], "exclude")[0]
    assert pairs.filter(text="green tea leaves")["method"].to_list() == ["y"]
    assert chosen_of(SELECTORS[0], "allow")[0].filter(text="green tea leaves")["method"].to_list() == ["x"]


def test_a_pair_that_may_not_be_chosen_has_no_score_of_a_chosen_one():
    pairs = chosen_of(SELECTORS[0], "exclude", [ROWS[0], ("x", "perfect tea", True, 1.0, 0.0)])[0]
    assert pairs.select("perfect", "optimal", "optimal_score").row(0) == (True, False, None)


def test_another_value_of_judged_sources_is_refused():
    with pytest.raises(ConfigError, match=r"select\.judged_sources: expected exclude or allow, found 'no'"):
        Select(from_spec("selector", SELECTORS[0]), WAYS, judged_sources="no")


# --- which candidates were made from judged documents ----------------------------------------------------------------


class Making:
    """Candidates of the first passage, of a mixture of some, and of none."""

    method, reads = "making", frozenset({"passages"})

    def settings(self):
        return {}

    def reformulate(self, asked):
        found = Candidates()
        for row in range(len(asked)):
            found.add(row, "from one", asked.passages[row][0].doc_id)
            found.add(row, "mixed")
        return found


class First:
    """Three passages for each query."""

    def ask(self, ids, texts):
        passages = tuple(Passage(name, name, 1.0) for name in ("d1", "d2", "d3"))
        return QueryBatch(tuple(ids), tuple(texts), tuple(passages for _ in ids))


def made_by(method):
    stage = ReformulateStage({"making": method}, First, "")
    return stage.run(pa.table({"query_id": ["q"], "text": ["tea"]}))[0]["sources"].to_pylist()


def test_a_candidate_is_made_from_its_document_or_from_all_passages_that_its_method_mixes():
    assert made_by(Making()) == [None, ["d1"], ["d1", "d2", "d3"]]
    two = Making()
    two.mixes = 2
    assert made_by(two)[2] == ["d1", "d2"]
    reading_nothing = Making()
    reading_nothing.reads = frozenset({"statistics"})
    reading_nothing.reformulate = lambda asked: Candidates([0], ["alone"], [None])
    assert made_by(reading_nothing) == [None, []]


@pytest.mark.parametrize(
    ("spec", "mixes"),
    [
        ({"method": "rm3", "documents": 4}, 4),
        ({"method": "rocchio", "documents": 3}, 3),
        ({"method": "fairfeedback"}, 10),
        ({"method": "relevancefeedback"}, 10),
        ({"method": "onfields"}, 3),
    ],
)
def test_methods_that_mix_passages_say_how_many(spec, mixes):
    assert from_spec("reformulator", spec, "method").mixes == mixes


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    sections = dict(read_recipe("demo").sections)
    sections["reformulate"] = [
        {"method": "extract", "count": 5}, {"method": "rm3", "documents": 2, "terms": 2}, {"method": "reduce"}
    ]  # fmt: skip
    sections["filter"] = []
    store = Store(folder)
    build = prepare(Recipe("r", sections), store)
    return build, store, build.plan.run(store)


def table_of(built, step):
    return pl.DataFrame(pl.from_arrow(pa.concat_tables(built[1].read(built[2][step].manifest))))


def test_the_scores_say_of_every_candidate_whether_it_was_made_from_a_judged_document(built):
    scores, variants = table_of(built, "scores"), table_of(built, "variants")
    judged = pl.DataFrame(pl.from_arrow(built[0].resources.judgements.table)).filter(pl.col("relevance") > 0)
    relevant = set(judged.select("query_id", "doc_id").iter_rows())
    sources = dict(variants.select("variant_id", "sources").iter_rows())
    assert scores["source_judged"].null_count() == 0
    for query, variant, found in scores.select("query_id", "variant_id", "source_judged").iter_rows():
        assert found == any((query, doc) in relevant for doc in sources[variant] or [])
    counts = dict(scores.group_by("method").agg(pl.col("source_judged").sum()).iter_rows())
    assert counts["original"] == counts["reduce"] == 0
    assert min(counts["extract"], counts["rm3"]) > 0


def test_pairs_and_the_published_dataset_carry_it_and_count_it(built, tmp_path):
    pairs = table_of(built, "pairs")
    assert pairs["source_judged"].any()
    assert not pairs.filter("fair")["source_judged"].any()
    Pairs(*built).publish(tmp_path / "out")
    assert verify(str(tmp_path / "out")).wrong == []
    files = sorted((tmp_path / "out" / "data").glob("*.parquet"))
    assert pl.concat(map(pl.read_parquet, files)).schema["source_judged"] == pl.Boolean
    said = f"{pairs['source_judged'].sum():,} of {pairs.height:,} candidates were made from a document that is judged"
    assert said in (tmp_path / "out" / "askew.json").read_text()


def test_recipes_that_reproduce_published_definitions_allow_judged_sources():
    published = ("refairmulate-paper", "refairmulate-repo", "repair", "reque")
    assert {read_recipe(name).table("select")["judged_sources"] for name in published} == {"allow"}
