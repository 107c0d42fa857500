"""askew.audit from Python: functions, retrievers, rankers; groups; judgements; what is shown and what is written."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import askew
from askew.core.errors import ConfigError, DataError, StageError
from askew.study.audit.engine import NEITHER
from askew.study.audit.findings import _strict
from askew.study.audit.page import sensitivity_said, write_audit
from askew.study.audit.report import next_steps, read_audit
from search_server import ToyEngine

DOCS = {
    "d1": "what a nurse does : he helps him , his patients and the man",
    "d2": "a nurse works in a ward",
    "d3": "the nurse said she would do it",
    "d4": "a lawyer and his client , he is a man",
    "d5": "lawyer : he and his brother",
    "d6": "the old engineer and the elderly pensioner do engineering",
    "d7": "a young engineer , a teenager and a child",
    "d8": "engineer <b>he</b> & his father",
}
QUERIES = {"q1": "what does a nurse do", "q2": "lawyer", "q3": "engineer", "q4": "zebra"}
QRELS = {"q1": {"d1": 1, "d3": 1}, "q2": {"d5": 1}}
TOY = ToyEngine(DOCS)


@dataclass
class Document:
    """As langchain_core.documents.Document."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


class LangChainRetriever:
    """As langchain_core.retrievers.BaseRetriever."""

    def invoke(self, query, config=None, **kwargs):
        return [Document(text, {"source": doc}, doc) for doc, _, text in TOY.search(query, 4)]


@dataclass
class Node:
    """As llama_index.core.schema.TextNode."""

    node_id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_content(self):
        return self.text


@dataclass
class NodeWithScore:
    """As llama_index.core.schema.NodeWithScore."""

    node: Node
    score: float | None = None


class LlamaIndexRetriever:
    """As llama_index.core.retrievers.BaseRetriever."""

    def retrieve(self, query):
        return [NodeWithScore(Node(doc, text), score) for doc, score, text in TOY.search(query, 4)]


def light(**more):
    """Settings that load no language model. Every query counts as worst: so few documents do not lean beyond chance."""
    settings = {"equivalence": {"model": "light"}}
    return askew.AuditSettings(methods=("reduce",), method_settings=settings, **{"level": 1.0, **more})


def ranked(text):
    """What the engine finds, in its own order: it gives equal scores to several."""
    return {doc: -rank for rank, (doc, _, _) in enumerate(TOY.search(text, 10))}


def audited(engine=TOY.search, queries=QUERIES, *, settings=None, **options):
    return askew.audit(engine, queries, settings=settings or light(), **options)


@pytest.fixture(scope="module")
def report():
    return audited(qrels=QRELS)


def test_an_audit_measures_what_askew_measure_measures(report):
    run = {query: found for query, text in QUERIES.items() if (found := ranked(text))}
    for text in ("ARaB(tf)@10", "LexiconShare@10"):
        assert report[text] == askew.measure(run, DOCS, text)[text]
    assert "NFaiRR@10" not in report.measures, "it compares a run with another one"
    assert report["nDCG@10"].n == 2


def test_a_query_that_finds_nothing_is_counted(report):
    assert (report.queries, report.unanswered) == (4, 1)
    assert "1 of 4 queries find nothing" in report.next_steps[0]


@pytest.mark.parametrize("retriever", [LangChainRetriever(), LlamaIndexRetriever()], ids=lambda one: type(one).__name__)
def test_a_retriever_object_can_be_audited(retriever):
    found = audited(retriever)
    assert found.engine.endswith(type(retriever).__name__)
    assert found["ARaB(tf)@10"] == audited(lambda query, k: TOY.search(query, 4))["ARaB(tf)@10"]


def test_a_ranker_with_an_index_needs_the_documents(tmp_path):
    ranker = askew.Ranker("bm25").index(DOCS, tmp_path / "index")
    with pytest.raises(DataError) as error:
        audited(ranker)
    assert error.value.code == "no-text"
    assert audited(ranker, docs=DOCS)["ARaB(tf)@10"].n == 3


def test_the_texts_of_the_engine_count_and_docs_fill_the_gaps():
    found = audited(lambda query, k: [(d, s, None if d == "d1" else t) for d, s, t in TOY.search(query, k)], docs=DOCS)
    assert found["ARaB(tf)@10"] == audited()["ARaB(tf)@10"]


def test_results_without_texts_may_count_as_naming_no_group():
    find = lambda query, k: [(d, s, None if d == "d1" else t) for d, s, t in TOY.search(query, k)]  # noqa: E731
    with pytest.raises(DataError) as error:
        audited(find)
    assert (error.value.code, error.value.values) == ("no-text", {"missing": 1, "documents": 8})
    assert audited(find, settings=light(missing="zero")).scores["q1"]["ARaB(tf)@10"] < 0.5


def test_the_worst_queries_come_first_with_their_counted_words_marked(report):
    unlikely = [query for query in report.headline.deciding.beyond if report.scores[query]["ARaB(tf)@10"]]
    assert [one.query_id for one in report.worst] == unlikely
    lawyer = next(one for one in report.worst if one.text == "lawyer")
    marked = [(text, groups) for text, groups in lawyer.results[0].pieces if groups]
    assert {text for text, _ in marked} == {"his", "he", "man"} and {groups for _, groups in marked} == {("male",)}
    assert lawyer.mentions == {"male": 6, "female": 0}


def test_reformulations_are_tried_on_the_engine_and_compared_with_the_original(report):
    tried = [one for one in report.reformulations if one.query_id == "q1"]
    assert tried and {one.method for one in tried} == {"reduce"}
    for one in tried:
        after = askew.measure({"q": ranked(one.text)}, DOCS, "ARaB(tf)@10")["ARaB(tf)@10"].mean
        assert one.lean_after == pytest.approx(after)
        assert 0 <= one.kept <= 1 and 0 <= one.same <= 1
        less = abs(one.lean_after) < abs(one.lean_before)
        assert one.lean_verdict == ("less" if less else "same" if one.lean_after == one.lean_before else "more")
        assert one.outcome is not None and one.outcome.split("-")[1] == one.lean_verdict


@pytest.mark.parametrize("reduction", [0.0, 0.2, 0.9])
def test_a_suggestion_reduces_the_lean_by_a_share_of_it(reduction):
    found = audited(settings=light(reduction=reduction, agree=0.0))
    assert all(one.gain >= reduction * abs(one.lean_before) > 0 or not reduction for one in found.suggested)
    enough = {
        one.query_id for one in found.reformulations if one.gain > 0 and one.gain >= reduction * abs(one.lean_before)
    }
    assert {one.query_id for one in found.suggested} == enough


def test_the_words_of_an_average_query_are_those_of_its_results(report):
    tops = [TOY.search(text, 10) for text in QUERIES.values()]
    named = sum(text.split().count(word) for top in tops for _, _, text in top for word in ("he", "his", "him", "man"))
    assert report.words_per_query["male"] == pytest.approx((named + 3) / 3), "and brother, father and <b>he</b>"
    assert f"{report.words_per_query['male']:.1f} words for male" in report.reading


def test_a_page_shows_effectiveness_only_where_it_is_measured(tmp_path):
    audited(settings=light(out=tmp_path / "a"))
    audited(settings=light(out=tmp_path / "b"), qrels=QRELS)
    without, judged = ((tmp_path / name / "report.html").read_text() for name in "ab")
    assert "nDCG@10 before" in judged and "nDCG" not in without
    assert "Suggested: <bdi" in judged


def test_progress_names_each_query_that_is_reformulated():
    told = []
    found = audited(progress=lambda *one: told.append(one))
    steps = [(done, total) for done, total, label in told if label == "reformulating"]
    assert steps == [(done, len(found.worst)) for done in range(len(found.worst))]
    assert {"searching", "measuring", "comparing meanings", "checking sensitivity"} <= {label for *_, label in told}


def test_a_query_without_judgements_has_a_verdict_on_lean_only():
    tried = audited().reformulations
    assert tried and all(one.outcome is None and one.effectiveness_after is None for one in tried)
    assert all(one.lean_verdict for one in tried)


def test_parts_of_the_lean_add_up_to_it(report):
    (found,) = report.parts
    why = [one for one in found.parts if one.kind == "why"]
    assert sum(one.net for one in why) == pytest.approx(report["ARaB(tf)@10"].mean)


@pytest.mark.parametrize(("share", "says"), [(0.86, True), (0.4, False)])
def test_where_most_words_refer_to_real_people_the_advice_says_so(report, monkeypatch, share, says):
    (found,) = report.parts
    parts = [replace(one, share=share) if (one.kind, one.name) == ("who", "real") else one for one in found.parts]
    monkeypatch.setattr(found, "parts", parts)
    assert [one[:4] for one in next_steps(report) if one.startswith(f"{share:.0%}")] == [f"{share:.0%} "] * says


@pytest.mark.parametrize(("low", "says"), [(0.53, True), (0.43, False)])
def test_off_topic_mentions_are_the_first_advice_only_if_they_are_most_by_their_interval(
    report, monkeypatch, low, says
):
    (found,) = report.parts
    changed = {"share": 0.83, "low": low, "net": -0.0111}
    parts = [replace(one, **changed) if one.name == "offtopic" else one for one in found.parts]
    monkeypatch.setattr(found, "parts", parts)
    said = [one for one in next_steps(report) if one.startswith("83% of the counted mentions")]
    assert bool(said) == says
    value = f"of both groups together add -0.0111 to the mean of ARaB(tf)@10, which is {found.value:+.4f}."
    assert all(value in one for one in said)


def test_words_in_names_are_counted_for_the_worst_queries():
    docs = {"d1": "The Nintendo Game Boy is a handheld game console. He plays.", "d2": "The Isle of Man is an island."}
    found = askew.audit(lambda query, k: list(docs), {"q1": "game console"}, docs=docs, settings=light(tries=0))
    (worst,) = found.worst
    assert (worst.in_names, worst.mentions["male"]) == (2, 3)
    assert found.to_dict()["worst"][0]["in_names"] == 2
    others = askew.audit(
        lambda query, k: list(docs), {"q1": "console"}, docs=docs, groups={"a": ["island"], "b": ["game"]},
        settings=light(tries=0),
    )  # fmt: skip
    assert [one.in_names for one in others.worst] == [None]


@pytest.mark.parametrize(("given", "same"), [({}, 0.9), ({"same": 0.7}, 0.7), ({"model": "light"}, None)])
def test_an_audit_suggests_only_reformulations_that_surely_ask_for_the_same(monkeypatch, given, same):
    monkeypatch.setattr("askew.study.audit.findings.chosen_model", lambda model: {"auto": "neural"}.get(model, model))
    assert _strict(given).get("same") == same


def test_other_groups_are_counted_everywhere(tmp_path):
    found = audited(groups="age:old,young", settings=light(out=tmp_path / "a"))
    assert found.groups == ("young", "old"), "the group that the signed measure subtracts is drawn first"
    assert all("age" in one.signature for one in found.measures.values())
    assert {group for one in found.worst for group in one.mentions} == {"old", "young"}
    assert all("age" in one.label for one in found.sensitivity.combinations)
    assert found.verdict in ("old", "young", NEITHER)
    page = (tmp_path / "a" / "report.html").read_text()
    assert ">male<" not in page and ">female<" not in page


def test_a_measure_that_names_its_lexicon_decides_what_is_counted_everywhere():
    found = audited(measures="ARaB(tf,lexicon=age,groups=old-young)@10")
    assert found.groups == ("young", "old"), "the group that the signed measure subtracts is drawn first"
    assert all("age" in one.label for one in found.sensitivity.combinations)


def test_more_than_two_groups_are_audited_by_measures_without_a_difference():
    words = {"law": ["client"], "care": ["patients", "ward"], "work": ["engineering"]}
    found = audited(groups=words)
    assert found.deciding == "AWRF@10" and found.verdict is None and not found.parts
    assert found.worst[0].mentions.keys() == set(words)
    assert found.sensitivity.combinations and not found.sensitivity.of


def test_without_measures_all_requested_results_are_measured():
    assert all(one.endswith("@20") for one in audited(settings=light(k=20)).measures)


def test_a_signed_verdict_is_compared_with_other_choices(report):
    assert report.verdict in ("male", NEITHER)
    assert 0 <= report.sensitivity.holds <= report.sensitivity.of
    assert {"gender", "rekabsaz2020"} <= {one.label.split()[1] for one in report.sensitivity.combinations}


def test_what_another_order_would_change_is_compared_with_placebo_lists(report, tmp_path):
    assert list(report.effects) == ["greedy", "detconstsort"]
    greedy = report.effects["greedy"]
    assert greedy.change is not None and greedy.by_chance is not None and greedy.words.keys() == {"male", "female"}
    words = report.words_per_query
    assert {name: ends[0] for name, ends in greedy.words.items()} == pytest.approx(words)
    write_audit(report, tmp_path / "audit", keep_queries=False)
    assert read_audit(tmp_path / "audit").effects == report.effects
    assert 'id="effects"' in (tmp_path / "audit" / "report.html").read_text()


def test_numbers_and_tables_have_ids_and_no_query_text_unless_it_is_to_be_kept(tmp_path):
    audited(settings=light(out=tmp_path / "a"))
    audited(settings=light(out=tmp_path / "b", keep_queries=True))
    kept = json.loads((tmp_path / "b" / "audit.json").read_text())
    assert QUERIES["q1"] in {one["text"] for one in kept["worst"]}
    files = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"report.html", "audit.json", "queries.csv", "reformulations.csv"}
    for path in files:
        shows = path.name == "report.html"
        assert (QUERIES["q1"] in path.read_text()) == shows, path
        assert (DOCS["d2"].partition(" ")[2] in path.read_text()) == shows, path
    told = json.loads((tmp_path / "a" / "audit.json").read_text())
    assert told["per_query"].keys() == {"q1", "q2", "q3"}


def test_a_page_shows_texts_and_never_obeys_them(tmp_path):
    docs = {"x": "engineer <script>he()</script> <img src=x onerror=he> he"}
    queries = {"<i>": "engineer </h3><script>alert(1)</script>"}
    audited(ToyEngine(docs).search, queries, settings=light(out=tmp_path / "a"))
    page = (tmp_path / "a" / "report.html").read_text()
    assert "<script" not in page and "<img" not in page and "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "http://" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "") and "https://" not in page


def test_a_report_has_an_element_for_each_marked_word(tmp_path):
    audited(settings=light(out=tmp_path / "a"))
    page = (tmp_path / "a" / "report.html").read_text()
    assert '<mark class="g2" title="male">he</mark>' in page
    assert '<mark class="g1" title="female">she</mark>' in page


def test_a_function_that_fails_is_one_clear_error():
    def broken(query, k):
        raise ValueError(query)

    with pytest.raises(StageError, match=r"ValueError; 0 of 4\b") as error:
        audited(broken)
    assert "nurse" not in str(error.value)


def test_what_cannot_work_is_refused_before_any_query_is_sent(tmp_path):
    sent = []

    def find(query, k):
        sent.append(query)
        return TOY.search(query, k)

    for options, said in (
        ({"fail_if": "ARaB(tf)@10 >> 1"}, "expected 'MEASURE > 0.2'"),
        ({"fail_if": "RR@10 > 0.1"}, "'RR@10' is not measured"),
        ({"fail_if": "ARaB(tf)@10 worse"}, "give baseline="),
        ({"measures": "nDCG@10 ARaB(tf)@10"}, "needs judgements"),
        ({"measures": "ARaB(tf)@20"}, "more than 10 results"),
        ({"measures": "RR@10", "qrels": QRELS}, "counts words of groups"),
        ({"settings": askew.AuditSettings(methods=("rm3",))}, "needs an index"),
        ({"settings": light(out=__file__)}, "expected a folder"),
        ({"engine_settings": {"k1": 1}}, "given by name"),
    ):
        with pytest.raises(ConfigError, match=said):
            audited(find, **options)
    with pytest.raises(DataError, match=r"none\.json"):
        audited(find, baseline=tmp_path / "none.json")
    assert sent == []


@pytest.mark.parametrize(
    ("name", "value"), [("k", 0), ("worst", -1), ("tries", -1), ("agree", 2.0), ("reduction", -0.1)]
)
def test_a_setting_out_of_range_is_refused(name, value):
    with pytest.raises(ConfigError, match=f"{name}=: expected"):
        askew.AuditSettings(**{name: value})


def test_an_audit_without_reformulations_searches_the_queries_only():
    sent = []

    def find(query, k):
        sent.append(query)
        return TOY.search(query, k)

    assert audited(find, settings=light(tries=0)).reformulations == []
    assert sorted(sent) == sorted(QUERIES.values())


def test_one_query_alone_has_no_interval_and_no_verdict(tmp_path):
    found = audited(queries=["lawyer"], settings=light(out=tmp_path / "a"))
    assert found.verdict is None and found["ARaB(tf)@10"].low is None
    assert re.match("1 query .* 30 queries", found.next_steps[-1])
    assert found.sensitivity.of == 0
    (words,) = sensitivity_said(found)
    assert words in (tmp_path / "a" / "report.html").read_text()


def test_a_report_is_a_table_in_python(report):
    assert repr(report).splitlines()[0].split() == ["measure", "mean", "[95%]", "better", "n"]
    assert "<table>" in report._repr_html_()
    assert report.to_polars()["measure"].to_list()[0] == "nDCG@10"
    assert report.per_query().height == 3


def test_an_audit_whose_queries_all_ask_about_a_group_is_written_and_can_be_a_baseline(tmp_path):
    queries = {"q1": "women who work as a nurse"}
    found = audited(queries=queries, settings=light(out=tmp_path / "a"))
    assert (found.headline.deciding.lists, found.verdict, found.worst) == (0, None, [])
    again = audited(queries=queries, baseline=tmp_path / "a" / "audit.json")
    assert all(row.gain == 0 for row in again.against_baseline.values())
