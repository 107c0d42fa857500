"""askew inside PyTerrier. Where PyTerrier is not installed only the message about it is tested."""

import contextlib
import importlib.util
import io
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import askew
from askew.core.errors import ConfigError, DataError, UnknownName

needs_pyterrier = pytest.mark.skipif(
    importlib.util.find_spec("pyterrier") is None,
    reason="PyTerrier is not installed: pip install '.[pyterrier]'",
)
PAGE = Path(__file__).parent.parent / "docs" / "pyterrier.md"
DOCS = {"a": "he said old", "b": "his old dog", "c": "she was young", "d": "her young cat"}


@pytest.fixture
def pt():
    return pytest.importorskip("pyterrier")


@pytest.fixture
def made():
    from askew import pyterrier

    return pyterrier


@pytest.fixture
def pd():
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def demo():
    return askew.Collection.open("demo")


@pytest.fixture(scope="module")
def bm25(demo):
    return askew.Ranker("bm25").index(demo)


@pytest.fixture
def topics(demo):
    return demo.queries.select(["query_id", "text"]).to_pandas().rename(columns={"query_id": "qid", "text": "query"})


@pytest.fixture
def qrels(demo):
    names = {"query_id": "qid", "doc_id": "docno", "relevance": "label"}
    return demo.qrels_file().lines.to_pandas().rename(columns=names)


def results(pd, order="abcd", **more):
    rows = [{"qid": "q", "query": "who", "docno": d, "score": 9.0 - i, "rank": i} for i, d in enumerate(order)]
    return pd.DataFrame(rows).assign(**more)


def test_without_pyterrier_the_import_says_in_one_line_what_to_install():
    code = "import sys; sys.modules['pyterrier'] = None\nimport askew.pyterrier"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert "MissingExtra: askew.pyterrier " in last and "pip install '.[pyterrier]'" in last


def test_askew_and_its_measures_for_ir_measures_import_neither_pyterrier_nor_pandas():
    code = (
        "import sys, askew, askew.irm; askew.measure, askew.Ranker; print({'pyterrier', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@needs_pyterrier
def test_retrieve_gives_the_results_of_the_ranker_with_ranks_from_zero(made, bm25, topics):
    found = made.Retrieve(bm25, k=7)(topics)
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    run = bm25.search(dict(zip(topics["qid"], topics["query"], strict=True)), k=7).to_polars()
    assert list(zip(found["qid"], found["docno"], found["score"], strict=True)) == run.rows()
    for _, lines in found.groupby("qid"):
        assert lines["rank"].tolist() == list(range(len(lines)))


@needs_pyterrier
def test_retrieve_keeps_the_columns_of_queries_and_leaves_out_those_that_find_nothing(made, bm25, pd):
    queries = pd.DataFrame({"qid": [1, 2], "query": ["nurse", "zzzz"], "query_0": ["a nurse", "z"], "kind": ["x", "y"]})
    found = made.Retrieve(bm25, k=3)(queries)
    assert set(found["qid"]) == {"1"} and set(found["query_0"]) == {"a nurse"} and set(found["kind"]) == {"x"}


@needs_pyterrier
def test_a_rank_cutoff_is_passed_to_the_ranker(made, bm25, topics):
    retrieve = made.Retrieve(bm25, k=100)
    compiled = (retrieve % 5).compile()
    assert isinstance(compiled, made.Retrieve) and compiled.k == 5
    assert (retrieve % 500).compile().k == 100
    assert compiled(topics).equals((retrieve % 5)(topics).reset_index(drop=True))


@needs_pyterrier
def test_reformulate_takes_the_first_candidate_and_keeps_the_original(made, bm25, topics):
    found = made.Reformulate("extract", bm25, count=3)(topics)
    own = askew.Reformulator("extract", count=3).reformulate(
        dict(zip(topics["qid"], topics["query"], strict=True)), bm25
    )
    first = dict(own.unique("query_id", keep="first").select("query_id", "text").rows())
    assert found["query_0"].tolist() == topics["query"].tolist()
    assert found["query"].tolist() == [first.get(q, t) for q, t in zip(topics["qid"], topics["query"], strict=True)]
    assert (found["query"] != found["query_0"]).any()


@needs_pyterrier
def test_a_query_without_a_candidate_stays_as_it_is_and_queries_are_pushed_again_and_again(made, pd):
    queries = pd.DataFrame({"qid": ["q", "r"], "query": ["nurse", "how to become a nurse"], "query_0": ["x", "y"]})
    found = made.Reformulate("reduce")(queries)
    assert found["query"].tolist() == ["nurse", "become a nurse"]
    assert found["query_0"].tolist() == queries["query"].tolist()
    assert found["query_1"].tolist() == ["x", "y"]


@needs_pyterrier
def test_all_candidates_have_ids_of_their_own_and_the_id_of_their_query(made, pd):
    query = "how to become a nurse"
    queries = pd.DataFrame({"qid": ["q", "r"], "query": [query, "nurse"], "kind": ["x", "y"]})
    found = made.Reformulate("reduce", candidates="all")(queries)
    assert found["qid"].tolist() == ["q", "q:reduce.1", "q:reduce.2", "r"]
    assert found["qid_0"].tolist() == ["q", "q", "q", "r"] and found["kind"].tolist() == ["x", "x", "x", "y"]
    assert found["query"].tolist() == [query, "become a nurse", "become nurse", "nurse"]
    assert found["query_0"].tolist() == [query] * 3 + ["nurse"]
    with pytest.raises(ConfigError, match="before this step"):
        made.Reformulate("reduce", candidates="all")(found)


@needs_pyterrier
def test_reformulate_counts_the_groups_that_are_given_and_refuses_what_is_wrong(made, bm25, pd):
    queries = pd.DataFrame({"qid": ["q"], "query": ["jobs for old people"]})
    found = {}
    for groups in ("age:old,young", "gender"):
        own = askew.Reformulator("fairfeedback", groups=groups).reformulate({"q": "jobs for old people"}, bm25)
        found[groups] = made.Reformulate("fairfeedback", bm25, groups)(queries)["query"].tolist()
        assert found[groups] == own["text"].to_list()[:1]
    assert found["age:old,young"] != found["gender"]
    with pytest.raises(ConfigError, match=r"candidates=:.*of first, all"):
        made.Reformulate("reduce", candidates="best")
    with pytest.raises(ConfigError, match="give ranker="):
        made.Reformulate("extract")(queries)


@needs_pyterrier
def test_fusion_adds_reciprocal_ranks_under_the_original_query(made, pd):
    first = results(pd, "ab", qid_0="q", query_0="who is it")
    second = results(pd, "bc", qid="q:reduce.1", qid_0="q", query_0="who is it")
    found = made.Fuse()(pd.concat([first, second], ignore_index=True))
    assert found["docno"].tolist() == ["b", "a", "c"] and found["rank"].tolist() == [0, 1, 2]
    assert found["score"].tolist() == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])
    assert set(found["qid"]) == {"q"} and set(found["query"]) == {"who is it"}
    with pytest.raises(ConfigError, match=r"constant=:.*a number above 0"):
        made.Fuse(0)


@needs_pyterrier
def test_rerank_reads_texts_of_the_results_or_of_documents(made, pd):
    given = results(pd)
    with_text = given.assign(text=[DOCS[d] for d in given["docno"]])
    for reranked in (made.Rerank()(with_text), made.Rerank(docs=DOCS)(given)):
        assert reranked["docno"].tolist() == ["a", "c", "b", "d"]
        assert reranked["rank"].tolist() == [0, 1, 2, 3] and reranked["score"].tolist() == [4.0, 3.0, 2.0, 1.0]
        assert set(reranked["query"]) == {"who"}
    assert list(made.Rerank()(with_text).columns) == list(with_text.columns)
    assert made.Rerank(text="body")(with_text.rename(columns={"text": "body"}))["docno"].tolist() == list("acbd")


@needs_pyterrier
def test_rerank_follows_ranks_where_scores_are_equal(made, pd):
    tied = results(pd, "bacd").assign(score=1.0)
    assert made.Rerank(docs=DOCS)(tied)["docno"].tolist() == ["b", "c", "a", "d"]


@needs_pyterrier
def test_rerank_counts_the_groups_that_are_given_and_refuses_what_is_wrong(made, pt, pd):
    age = askew.Groups({"old": ["old"], "young": ["young"]}, ["old", "young"])
    found = made.Rerank(groups=age, docs=DOCS, targets="neutral:0,old:0,young:1")(results(pd))
    assert found["docno"].tolist()[:2] == ["c", "d"]
    with pytest.raises(UnknownName, match="detconstsort"):
        made.Rerank("detconsort")
    with pytest.raises(pt.validate.InputValidationError, match="text"):
        made.Rerank()(results(pd))
    with pytest.raises(DataError, match="have no text"):
        made.Rerank(docs={"a": "he"})(results(pd))


@needs_pyterrier
def test_every_transformer_says_what_it_gives_for_an_empty_frame(made, pt, bm25, pd):
    retrieve, fuse = made.Retrieve(bm25), made.Fuse()
    every = made.Reformulate("reduce", candidates="all")
    outputs = pt.inspect.transformer_outputs
    base = ["qid", "query", "docno", "score", "rank"]
    assert outputs(retrieve, ["qid", "query"]) == base
    assert set(outputs(made.Reformulate("reduce"), ["qid", "query"])) == {"qid", "query", "query_0"}
    assert outputs(made.Reformulate("reduce") >> retrieve >> made.Rerank(docs=DOCS), ["qid", "query"])[-1] == "rank"
    assert outputs(every >> retrieve >> fuse, ["qid", "query"]) == base
    with pytest.raises(pt.validate.InputValidationError):
        retrieve(results(pd))


@needs_pyterrier
def test_an_experiment_reports_the_numbers_of_askew_also_in_batches(made, pt, demo, bm25, topics, qrels):
    retrieve = made.Retrieve(bm25, k=100)
    pipeline = made.Reformulate("extract", bm25) >> retrieve >> made.Rerank("detconstsort", docs=demo)
    texts = ["ARaB(tf)@10", "NFaiRR@10"]
    metrics = ["recip_rank", *made.measures(texts, docs=demo)]
    table = pt.Experiment([retrieve, pipeline], topics, qrels, metrics, names=["bm25", "both"])
    names = {"qid": "query_id", "docno": "doc_id"}
    for name, system in (("bm25", retrieve), ("both", pipeline)):
        run = system(topics).rename(columns=names)[["query_id", "doc_id", "score"]]
        report = askew.measure({name: run}, demo, ["RR", *texts])
        row = table[table["name"] == name].iloc[0]
        assert [row["recip_rank"], *row[texts]] == pytest.approx([report[name, t].mean for t in ("RR", *texts)])
    batches = pt.Experiment([retrieve, pipeline], topics, qrels, metrics, names=["bm25", "both"], batch_size=20)
    assert batches.iloc[:, 1:].to_numpy() == pytest.approx(table.iloc[:, 1:].to_numpy())


@needs_pyterrier
def test_an_experiment_compares_systems_by_measures_of_lean(made, pt, demo, bm25, topics, qrels):
    metrics = ["recip_rank", *made.measures({"gender": "ARaB(tf)@10"}, demo), *made.measures({"age": "ARaB(tf)@10"}, demo, "age:old,young")]  # fmt: skip # noqa: E501
    systems = {"bm25": made.Retrieve(bm25, 100), "qld": made.Retrieve(askew.Ranker("qld").index(demo), 100)}
    table = pt.Experiment(systems, topics, qrels, metrics, baseline="bm25")
    assert {"gender", "age", "gender p-value", "age p-value"} <= set(table.columns)
    assert (table["gender"] != table["age"]).all()


@needs_pyterrier
def test_a_judged_query_without_results_makes_a_mean_nan_until_it_has_a_number(made, pt, pd):
    bm25 = made.Retrieve(askew.Ranker("bm25").index(DOCS))
    queries = pd.DataFrame({"qid": ["q", "r", "unjudged"], "query": ["dog", "zzzz", "cat"]})
    judged = pd.DataFrame({"qid": ["q", "r"], "docno": ["b", "c"], "label": [1, 1]})
    with pytest.warns(UserWarning, match="1 of 2"):
        table = pt.Experiment([bm25], queries, judged, ["recip_rank", *made.measures("RaB(tc)@1", DOCS)])
    assert math.isnan(table["RaB(tc)@1"][0]) and table["recip_rank"][0] == 0.5
    table = pt.Experiment([bm25], queries, judged, ["recip_rank", *made.measures("RaB(tc)@1", DOCS, undefined=0.0)])
    assert table["RaB(tc)@1"][0] == 0.5


@needs_pyterrier
def test_the_page_shows_what_its_example_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    shown = re.findall(r"^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile("\n".join(blocks), str(PAGE), "exec"), {})
    assert out.getvalue() == "".join(shown)
