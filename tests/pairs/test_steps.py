"""From a recipe to scores: every row accounted for, the same numbers as askew measure, whatever the shards."""

import json
import re
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest

import askew
from askew.core.errors import AskewError
from askew.core.measure import column_of
from askew.core.protocols import Candidates
from askew.core.store.store import Store
from askew.data.collection import demo_files
from askew.pairs.build import Pairs
from askew.pairs.plan import prepare
from askew.pairs.recipe import Recipe, read_recipe, shipped_recipes, with_settings
from askew.pairs.refairmulate import RESOLVED
from askew.pairs.resources import Resources, TableSource
from askew.pairs.stages import NO_ORIGINAL, Classify, ReformulateStage
from askew.rewrite.classifiers import make_classifier

DEMO = demo_files()


def scores(folder, shard_rows=65_536, changes=None):
    store = Store(folder)
    build = prepare(with_settings(read_recipe("demo"), changes or {}), store)
    outcomes = build.plan.run(store, shard_rows)
    return build, outcomes, pl.from_arrow(pa.concat_tables(store.read(outcomes["scores"].manifest)))


def read(store, outcomes, step):
    return pl.from_arrow(pa.concat_tables(store.read(outcomes[step].manifest)))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return scores(tmp_path_factory.mktemp("store"))


def test_every_row_is_out_or_counted(built):
    _, outcomes, table = built
    for name in ("neutral", "kept", "runs", "scores", "pairs"):
        manifest = outcomes[name].manifest
        assert manifest.rows_out + sum(manifest.dropped.values()) == manifest.rows_in
    assert table.filter(pl.col("method") == "original").height == outcomes["neutral"].manifest.rows_out


def test_originals_score_as_askew_measure_scores_their_run(built, tmp_path):
    build, _, table = built
    originals = table.filter(pl.col("method") == "original")
    names = [one.text for one in build.evaluate.asked]
    bm25 = next(run for run in DEMO.runs if run.stem == "bm25")
    report = askew.measure([bm25], DEMO.docs, qrels=DEMO.qrels, measures=[n for n in names if n != "NFaiRR@10"])
    (run,) = report.runs
    place = {query: i for i, query in enumerate(run.query_ids)}
    rows = [place[query] for query in originals["query_id"]]
    for name, values in run.values.items():
        assert originals[column_of(name)].to_list() == pytest.approx(values[rows].tolist(), abs=1e-12)


def test_the_size_of_a_shard_changes_nothing(built, tmp_path):
    _, _, table = scores(tmp_path, shard_rows=37)
    assert table.equals(built[2], null_equal=True)


def test_pairs_stand_on_the_scores_of_their_two_variants(built):
    build, outcomes, table = built
    manifest = outcomes["pairs"].manifest
    pairs = pl.from_arrow(pa.concat_tables(build.resources.store.read(manifest)))
    assert pairs.height == table.filter(pl.col("method") != "original").height - sum(
        count for why, count in manifest.dropped.items() if why != "original"
    )
    old = dict(table.filter(pl.col("method") == "original").select("query_id", "RR_10").iter_rows())
    new = dict(table.select("variant_id", "RR_10").iter_rows())
    for query, variant, before, after in pairs.select("query_id", "variant_id", "old_RR_10", "new_RR_10").iter_rows():
        assert (before, after) == (old[query], new[variant])


def test_the_demo_finds_variants_that_retrieve_as_well_and_lean_less(built):
    build, outcomes, _ = built
    effective = Pairs(build, build.resources.store, outcomes).in_sample.filter(subset="effective")
    (lean,) = effective.filter(measure="ARaB(tf,who=generic)@10").to_dicts()
    assert lean["pairs"] >= 5 and lean["high"] < 0
    (kept,) = effective.filter(measure="RR@10").to_dicts()
    assert kept["worsened_pairs"] == 0


def test_a_query_whose_original_found_nothing_is_counted(tmp_path):
    (tmp_path / "docs.tsv").write_text("d1\tshe sells shells\nd2\the sells bells\n")
    (tmp_path / "queries.tsv").write_text("a\tzzz qqq\nb\tshells\n")
    (tmp_path / "qrels.txt").write_text("a 0 d1 1\nb 0 d1 1\n")
    (tmp_path / "cands.tsv").write_text("query_id\ttext\na\tshells\nb\tbells\n")
    store = Store(tmp_path / "store")
    changes = {"collection": {"source": str(tmp_path)}, "retrieve": {"k": 5}}
    recipe = with_settings(read_recipe("demo"), changes)
    sections = {
        **recipe.sections,
        "filter": [],
        "reformulate": [{"method": "replay", "file": str(tmp_path / "cands.tsv")}],
    }
    outcomes = prepare(Recipe("r", sections), store).plan.run(store)
    assert outcomes["runs"].manifest.dropped == {"found nothing": 1}
    assert outcomes["pairs"].manifest.dropped == {"original": 1, NO_ORIGINAL: 1}
    assert outcomes["pairs"].manifest.rows_out == 1


def test_the_same_recipe_again_runs_nothing_and_a_changed_setting_only_what_lies_below(tmp_path):
    store = Store(tmp_path)
    first = prepare(read_recipe("demo"), store).plan.run(store)
    assert all(outcome.ran for outcome in first.values())
    again = prepare(read_recipe("demo"), store).plan.run(store)
    assert not any(outcome.ran for outcome in again.values())
    changed = prepare(with_settings(read_recipe("demo"), {"retrieve": {"k1": 1.2}}), store).plan.run(store)
    below = {"runs", "scores", "pairs", "held-out", "placebo"}
    assert {name for name, outcome in changed.items() if outcome.ran} == below


def test_a_method_used_twice_gives_each_variant_a_name_of_its_own(tmp_path):
    store = Store(tmp_path)
    sections = dict(read_recipe("demo").sections)
    sections["reformulate"] = [{"method": "extract", "count": 2}, {"method": "extract", "count": 2, "words": 4}]
    outcomes = prepare(Recipe("r", sections), store, "variants").plan.run(store)
    names = pa.concat_tables(store.read(outcomes["variants"].manifest))["variant_id"].to_pylist()
    assert len(names) == len(set(names))
    assert {name.rpartition(":")[2] for name in names if ":" in name} == {
        "extract.1", "extract.2", "extract-2.1", "extract-2.2"
    }  # fmt: skip


def test_a_method_may_have_a_name_of_its_own(tmp_path):
    store = Store(tmp_path)
    sections = dict(read_recipe("demo").sections)
    sections["reformulate"] = [{"method": "extract", "count": 2, "name": "sentences"}]
    outcomes = prepare(Recipe("r", sections), store, "variants").plan.run(store)
    assert set(read(store, outcomes, "variants")["method"]) == {"original", "sentences"}
    for wrong in ("original", "", "a/b", 3):
        sections["reformulate"][0]["name"] = wrong
        with pytest.raises(AskewError, match=r"reformulate\.0\.name"):
            prepare(Recipe("r", sections), store)


def test_methods_may_choose_apart_as_if_each_were_alone(tmp_path):
    store = Store(tmp_path)
    sections = dict(read_recipe("demo").sections)
    sections["reformulate"] = [{"method": "extract", "count": 4}, {"method": "reduce"}]
    sections["select"] = {**sections["select"], "judged_sources": "allow"}
    alone = dict(sections, reformulate=sections["reformulate"][:1])
    apart = dict(sections, select={**sections["select"], "per": "method"})
    together, one, each = (
        read(store, prepare(Recipe("r", given), store).plan.run(store), "pairs") for given in (sections, alone, apart)
    )
    chosen = ["query_id", "variant_id", "fair", "score"]
    extract = each.filter(pl.col("method") == "extract")
    assert extract.select(chosen).equals(one.select(chosen), null_equal=True)
    assert each.height == together.height
    assert each["fair"].sum() > together["fair"].sum()
    assert each["query_id"].rle().struct.field("value").is_unique().all()
    with pytest.raises(AskewError, match=r"select\.per: expected query or method, found 'x'"):
        prepare(Recipe("r", dict(sections, select={**sections["select"], "per": "x"})), store)


def test_who_asked_travels_to_the_reformulators(tmp_path):
    seen = []

    class Listening:
        method, reads = "listening", frozenset()

        def settings(self):
            return {}

        def reformulate(self, asked):
            seen.extend(zip(asked.query_ids, asked.contexts, strict=True))
            return Candidates()

    queries = pa.table({"query_id": ["1", "2"], "text": ["tea", "coffee"], "context": ["u7", None]})
    kept, _ = Classify(make_classifier({"classifier": "lexical"})).run(queries)
    variants, _ = ReformulateStage({"listening": Listening()}, lambda: None, "").run(kept)
    assert seen == [("1", "u7"), ("2", None)]
    assert variants["method"].to_pylist() == ["original", "original"]


@pytest.mark.parametrize(("queries", "rows"), [(78, (4, 128)), (10_000, (78, 1_562)), (10_000_000, (512, 16_384))])
def test_few_queries_have_small_shards_so_that_progress_is_visible(tmp_path, monkeypatch, queries, rows):
    monkeypatch.setattr(TableSource, "rows", queries)
    steps = {step.name: step.shard_rows for step in prepare(read_recipe("demo"), Store(tmp_path)).plan.steps}
    assert (steps["variants"], steps["kept"]) == rows


def test_the_measures_of_a_recipe_may_be_one_text():
    listed, text = (
        with_settings(read_recipe("demo"), {"evaluate": {"measures": measures}})
        for measures in (["RR@10", "ARaB(tf, sign=abs)@10"], "RR@10 ARaB(tf, sign=abs)@10")
    )
    assert text.sections == listed.sections


def test_a_misspelled_measure_of_the_selection_is_suggested(tmp_path):
    settings = {"select": {"bias": "ARab(tf,who=generic)@10", "agreeing": 1}}
    with pytest.raises(AskewError, match=rf"ARab\(.* \[evaluate\].* {re.escape(RESOLVED.split()[0])}"):
        prepare(with_settings(read_recipe("demo"), settings), Store(tmp_path))


@pytest.mark.parametrize(("ties", "told"), [("neutral", True), ("abstain", False)])
def test_a_build_notes_kept_queries_that_name_several_groups_equally_often(tmp_path, ties, told):
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "docs.tsv").write_text("d1\tshe sings and he sings\nd2\tthey dance\n")
    (tmp_path / "c" / "queries.tsv").write_text("q1\tdo he and she sing\nq2\twho can dance\nq3\twhy does she sing\n")
    (tmp_path / "c" / "qrels.txt").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    settings = {"collection": {"source": str(tmp_path / "c")}, "classify": {"ties": ties}}
    pairs = askew.build("demo", settings=settings, store=tmp_path / "store")
    said = "1 kept query names two or more groups equally often; to drop such queries, set classify.ties to 'abstain'"
    assert (said in pairs.notes) == told


def test_a_recipe_that_keeps_no_query_ends_without_a_summary(tmp_path):
    store = Store(tmp_path / "store")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "docs.tsv").write_text("d1\tshe sings\n")
    (tmp_path / "c" / "queries.tsv").write_text("q1\twhy does she sing\n")
    (tmp_path / "c" / "qrels.txt").write_text("q1 0 d1 1\n")
    build = prepare(with_settings(read_recipe("demo"), {"collection": {"source": str(tmp_path / "c")}}), store)
    outcomes = build.plan.run(store)
    assert outcomes["neutral"].manifest.dropped == {"label female": 1}
    assert Pairs(build, store, outcomes).in_sample is None
    with pytest.raises(AskewError, match=r"report: .*askew run --json"):
        Pairs(build, store, outcomes).report(tmp_path / "report")


def test_shipped_recipes_can_be_planned(tmp_path):
    for name in shipped_recipes():
        assert prepare(read_recipe(name), Store(tmp_path)).plan.keys()


GOOD = """[collection]
source = "demo"
[[reformulate]]
method = "reduce"
[retrieve]
ranker = "bm25"
[evaluate]
measures = ["RR@10"]
"""
SELECT = '[select]\nselector = "refairmulate-paper"\neffectiveness = "RR@10"\nbias = "RR@10"\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[retrieve]", "[retreive]", "there is no section 'retreive'; did you mean [retrieve]?"),
        ("[retrieve]", "[publishing]\n[retrieve]", "there is no section 'publishing'; did you mean [publish]?"),
        ("[retrieve]", '[publish]\nlicence = "CC0"\n[retrieve]', "no setting 'licence'; did you mean 'license'?"),
        ("[retrieve]", "[publish]\ntitle = 3\n[retrieve]", "publish.title should be a text, found 3"),
        ("[retrieve]", '[publish]\ncontact = " "\n[retrieve]', "publish.contact should be a text, found ' '"),
        ('["RR@10"]', '["RR@10", "AP@10", "RR@10"]', "measures: RR@10 is requested twice"),
        (
            '["RR@10"]',
            """["ARaB(tf)@10", "ARaB('tf')@10"]""",
            "ARaB(tf)@10 and ARaB('tf')@10 have the same column name ARaB_tf_10; leave one out",
        ),
        ('[evaluate]\nmeasures = ["RR@10"]', "", "the section 'evaluate' is missing"),
        ('"reduce"', '"reduced"', "unknown reformulator 'reduced': did you mean 'reduce'?"),
        ('method = "reduce"', 'method = "reduce"\nkeeps = 1', "no setting 'keeps'; did you mean 'keep'?"),
        ('method = "reduce"', 'method = "reduce"\nshortest = "a"', "'shortest' should be a whole number, found 'a'"),
        ('ranker = "bm25"', 'ranker = "bm52"', "unknown ranker 'bm52'"),
        ('ranker = "bm25"', 'ranker = "bm25"\nk1 = "x"', "'k1' should be a number, found 'x'"),
        ('ranker = "bm25"', 'ranker = "bm25"\nk = "ten"', "retrieve.k should be a whole number"),
        ('ranker = "bm25"', 'ranker = "replay"', "does not search an index of its own"),
        ('ranker = "bm25"', 'ranker = "crossencoder"', "does not search an index of its own"),
        ("[evaluate]", '[first_pass]\ndepth = "ten"\n[evaluate]', "first_pass.depth should be a whole number"),
        ('"RR@10"', '"RRR@10"', "unknown measure 'RRR'"),
        ('["RR@10"]', "3", "evaluate.measures should be a list of names"),
        ('source = "demo"', 'source = "nowhere"', "no such file or folder"),
        ("[evaluate]", '[select]\nselector = "best"\n[evaluate]', "unknown selector 'best'"),
        ("[evaluate]", '[select]\nselector = "refairmulate"\n[evaluate]', "is not in [evaluate]; add it there"),
        ('source = "demo"', 'sources = "demo"', "[collection] has no setting 'sources'; did you mean 'source'?"),
        ('ranker = "bm25"', 'ranker = "bm25"\nk = 2000', "retrieve.k should be 1000 or less for the ranker 'bm25'"),
        ('ranker = "bm25"', 'ranker = "sparse"\nk = 1001', "retrieve.k should be 1000 or less for the ranker 'sparse'"),
        ("[evaluate]", "[first_pass]\ndepth = 1001\n[evaluate]", "first_pass.depth should be 1000 or less"),
        ("[evaluate]", f"{SELECT}[[cross]]\nk = 4000\n[evaluate]", "cross.0.k should be 1000 or less"),
        (
            'ranker = "bm25"',
            'ranker = "bm25"\nk1 = -0.1',
            "retrieve: the ranker 'bm25': the setting 'k1' should",
        ),
        ('ranker = "bm25"', 'ranker = "bm25"\nk1 = inf', "inf is no finite number"),
        ('ranker = "bm25"', 'ranker = "bm25"\nb = 1.5', "'b' should be from 0 to 1, found 1.5"),
        ('ranker = "bm25"', 'ranker = "bm25"\nlengths = "long"', "'lengths' should be one of lucene, exact"),
        ('ranker = "bm25"', 'ranker = "bm25"\nthreads = 0', "'threads' should be 1 or more, found 0"),
        ('ranker = "bm25"', 'ranker = "qld"\nmu = 0', "'mu' should be above 0, found 0"),
        ('ranker = "bm25"', 'ranker = "rm3"\ndocuments = 2000', "'documents' should be from 1 to 1000"),
        ('ranker = "bm25"', 'ranker = "rm3"\noriginal = nan', "nan is no finite number"),
        ('ranker = "bm25"', 'ranker = "rocchio"\nbeta = -1', "'beta' should be 0 or more"),
        ('ranker = "bm25"', 'ranker = "dense"\nnprobe = 0', "'nprobe' should be 1 or more"),
        ('ranker = "bm25"', 'ranker = "dense"\nsearch = "fast"', "'search' should be one of exact, faiss"),
        ('ranker = "bm25"', 'ranker = "bm25"\nindex = {analyzer = "x"}', "'analyzer' should be one of english, plain"),
        ('ranker = "bm25"', 'ranker = "sparse"', "retrieve.index: the ranker 'sparse' needs the setting 'model'"),
        ("[evaluate]", '[first_pass]\nranker = "bm52"\n[evaluate]', "unknown ranker 'bm52'"),
        ('source = "demo"', 'source = "demo"\nfields = 3', "collection.fields should be a list of names"),
        ('source = "demo"', 'source = "demo"\nsplit = 3', "collection.split should be a name"),
        ("[evaluate]", f"{SELECT}per = 7\n[evaluate]", "select.per: expected query or method, found 7"),
        ("[evaluate]", f"{SELECT}theta_bias = -1\n[evaluate]", "theta_bias"),
        ('"RR@10"', '"RR@0"', "RR@0"),
        ('"RR@10"', '"RR@10", "ARaB(tx)@10"', "tx"),
        ("[retrieve]", '[[filter]]\nfilter = "rules"\nmin_words = -1\n[retrieve]', "min_words"),
        ("[retrieve]", '[[filter]]\nfilter = "semantic"\nthreshold = 1.5\n[retrieve]', "threshold"),
        (
            "[retrieve]",
            '[classify]\nclassifier = "lexical"\nkeep = ["none"]\n[retrieve]',
            "classify: 'keep'",
        ),
        ("[retrieve]", '[classify]\nclassifier = "lexical"\nabstain_below = 2\n[retrieve]', "abstain_below"),
        ('method = "reduce"', 'method = "rewrite"\nsamples = 0', "'samples' should be 1 or more"),
        ('method = "reduce"', 'method = "rewrite"\ntemperature = inf', "inf is no finite number"),
        ("[[reformulate]]", "[reformulate]", "expected [[reformulate]]"),
        ("[collection]", "[collection", "not a valid TOML file"),
    ],
)
def test_a_wrong_recipe_fails_before_any_work_starts(askew_cli, tmp_path, old, new, message):
    (tmp_path / "r.toml").write_text(GOOD.replace(old, new))
    for command in ("plan", "run"):
        done = askew_cli([command, "r.toml"])
        assert done.code in (2, 3)
        assert message in done.err
        assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.glob(".askew/*-*/*"))


def test_a_good_recipe_runs_and_is_found_again(askew_cli, tmp_path):
    (tmp_path / "r.toml").write_text(GOOD)
    assert askew_cli(["run", "r.toml"]).code == 0
    again = askew_cli(["run", "r.toml", "--json"])
    assert [step["ran"] for step in json.loads(again.out)["steps"]] == [False] * 4
    planned = json.loads(askew_cli(["plan", "r.toml", "--json"]).out)
    assert all(row["done"].endswith("rows") for row in planned)


def test_a_step_to_stop_after_must_be_one(askew_cli, tmp_path):
    (tmp_path / "r.toml").write_text(GOOD)
    assert "did you mean 'kept'" in askew_cli(["run", "r.toml", "--until", "keep"]).err
    assert askew_cli(["run", "r.toml", "--until", "variants"]).code == 0
    assert "unknown step 'neutral'" in askew_cli(["run", "r.toml", "--until", "neutral"]).err


@pytest.mark.parametrize("owner", ["nothing", "reformulate", "reformulate.7", "retrieve.0"])
def test_a_setting_of_nothing_is_refused(owner):
    with pytest.raises(AskewError):
        with_settings(read_recipe("demo"), {owner: {"k": 1}})


def test_documents_with_their_titles_are_others_than_the_same_file_without(tmp_path):
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "title": "He", "text": "x"}\n')
    store = Store(tmp_path / "store")
    folder, file = Resources(tmp_path, store), Resources(tmp_path / "corpus.jsonl", store)
    assert folder.documents.key != file.documents.key
    of_text = [Resources(source, store, ["text"]).documents.key for source in (tmp_path, tmp_path / "corpus.jsonl")]
    assert of_text[0] == of_text[1]


class Failing:
    """A reformulator that fails at a query, as a model does that runs out of memory."""

    method, reads = "reduce", frozenset()

    def __init__(self, at=None):
        self.at = at

    def settings(self):
        return {}

    def reformulate(self, asked):
        if self.at in asked.query_ids:
            raise RuntimeError("no memory")
        return Candidates()


def test_a_build_that_stops_while_it_reformulates_keeps_the_queries_that_are_done(tmp_path):
    store = Store(tmp_path)
    build = prepare(read_recipe("demo"), store)
    place = [step.name for step in build.plan.steps].index("variants")
    step = build.plan.steps[place]
    neutral = build.plan.run(store)["neutral"].manifest
    last = pl.from_arrow(pa.concat_tables(store.read(neutral)))["query_id"].to_list()[-1]

    def run(method):
        stage = ReformulateStage({"reduce": method}, lambda: None, "")
        build.plan.steps[place] = replace(step, stage=stage, maker=None)
        return build.plan.run(store)["variants"]

    with pytest.raises(RuntimeError, match="no memory"):
        run(Failing(last))
    resumed = run(Failing())
    assert resumed.parts_found == (neutral.rows_out - 1) // 4 and resumed.parts_written == 1


def test_progress_names_the_step_its_rows_and_their_total(tmp_path):
    told = []
    pairs = askew.build("demo", store=tmp_path, progress=lambda *one: told.append(one))
    made = {step: (done, total) for step, done, total in told}
    manifests = {name: outcome.manifest for name, outcome in pairs.outcomes.items()}
    assert set(made) == set(manifests)
    assert all(made[name] == (manifest.rows_in, manifest.rows_in) for name, manifest in manifests.items())
    assert len({done for step, done, _ in told if step == "variants"}) > 4
