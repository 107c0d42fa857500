"""Parts of a measure: they add up to it, a judgement decides, a mention is in the part that its class says."""

from math import log
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError, DataError
from askew.core.groups import WHO
from askew.measures import relevance as scoring_relevance

DOCS = {
    "on": "the pilot said that he would land his plane",
    "off": "she sang and her brother played",
    "none": "the train is late",
}
RUN = {"q": {"on": 3.0, "off": 2.0, "none": 1.0}}
QUERIES = [("q", "how do pilots land")]
QRELS = {"q": {"on": 2, "off": 0}}


class AllGeneric:
    """Stands in for a resolver: every mention is generic."""

    id = "stub"

    def probabilities(self, texts, text_of, starts, ends):
        return np.tile(np.eye(5)[WHO.index("generic")], (len(starts), 1))


class SureEstimator:
    """Stands in for an estimator: nothing is on topic unless it is judged relevant; then it is warranted."""

    def relevance(self, queries, texts):
        return np.zeros(len(texts))

    def why(self, queries, texts, starts, who, relevance):
        return np.where(relevance[:, None] == 1, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])


@pytest.fixture(autouse=True)
def sure(monkeypatch):
    monkeypatch.setattr("askew.measures.decompose.open_resolver", AllGeneric)
    monkeypatch.setattr(scoring_relevance, "open_estimator", SureEstimator)
    monkeypatch.setattr("askew.measures.decompose.open_estimator", SureEstimator)


@pytest.fixture
def queries(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES), encoding="utf-8")
    return path


def parts_of(measure="ARaB(tc)@2", **options):
    return askew.measure({"r": RUN}, DOCS, measure, decompose=True, **options).parts[0]


def named(found, kind):
    return {one.name: one for one in found.parts if one.kind == kind}


def test_parts_add_up_to_the_measure(queries):
    found = parts_of(qrels=QRELS, queries=queries)
    # Rank 1 has 2 male words, rank 2 has 1 male and 2 female: means 2 and (2 - 1) / 2, their mean 1.25.
    assert found.value == pytest.approx(1.25)
    for kind in ("why", "who"):
        assert sum(one.net for one in named(found, kind).values()) == pytest.approx(1.25)
        assert sum(one.share for one in named(found, kind).values()) == pytest.approx(1)


def test_a_document_that_is_judged_relevant_is_on_topic(queries):
    why = named(parts_of(qrels=QRELS, queries=queries), "why")
    # Rank 2 is in the second running mean only: weight 1/2 * 1/2. It is not judged relevant.
    assert why["offtopic"].net == pytest.approx((1 - 2) / 4)
    assert why["offtopic"].amounts == pytest.approx({"male": 1 / 4, "female": 2 / 4})
    assert why["warranted"].net == pytest.approx(2 * (1 + 1 / 2) / 2)
    assert set(why) == {"offtopic", "asked", "warranted"}


def test_the_logarithm_of_a_document_is_shared_among_its_mentions(queries):
    why = named(parts_of("ARaB(tf)@2", qrels=QRELS, queries=queries), "why")
    assert why["offtopic"].amounts == pytest.approx({"male": log(2) / 4, "female": log(3) / 4})


def test_a_mention_counts_for_each_part_with_its_probability(queries, monkeypatch):
    class Unsure(SureEstimator):
        def why(self, queries, texts, starts, who, relevance):
            return np.tile([0.6, 0.1, 0.3], (len(starts), 1))

    monkeypatch.setattr(scoring_relevance, "open_estimator", Unsure)
    monkeypatch.setattr("askew.measures.decompose.open_estimator", Unsure)
    why = named(parts_of(queries=queries), "why")
    assert {name: one.share for name, one in why.items()} == pytest.approx(
        {"offtopic": 0.6, "asked": 0.1, "warranted": 0.3}
    )


def test_rab_weighs_all_ranks_alike(queries):
    why = named(parts_of("RaB(tc)@2", qrels=QRELS, queries=queries), "why")
    assert why["offtopic"].net == pytest.approx(-1 / 2)


def test_the_class_of_a_mention_is_that_of_the_resolver(queries, monkeypatch):
    class Stub:
        id = "stub"

        def probabilities(self, texts, text_of, starts, ends):
            words = [texts[text][start:end] for text, start, end in zip(text_of, starts, ends, strict=True)]
            return np.array([np.eye(5)[WHO.index("real" if one == "brother" else "generic")] for one in words])

    monkeypatch.setattr("askew.measures.decompose.open_resolver", Stub)
    sure = {"who": np.eye(5) * 1e9, "why": np.eye(3) * 1e9}
    monkeypatch.setattr("askew.measures.decompose.confusion", sure.__getitem__)
    who = named(parts_of(qrels=QRELS, queries=queries), "who")
    assert who["real"].amounts == pytest.approx({"male": 1 / 4, "female": 0}, abs=1e-6)
    assert who["generic"].amounts == pytest.approx({"male": 1.5, "female": 2 / 4}, abs=1e-6)
    assert who["fictional"].share == pytest.approx(0, abs=1e-6)


def test_intervals_contain_what_was_found(queries):
    for one in parts_of(qrels=QRELS, queries=queries).parts:
        assert 0 <= one.low <= one.high <= 1
        assert one.net_low <= one.net_high


def test_texts_of_queries_are_needed_and_the_message_says_so():
    with pytest.raises(ConfigError, match="Give queries="):
        parts_of()


def test_a_query_that_the_collection_does_not_have_is_named(tmp_path):
    (tmp_path / "docs.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in DOCS.items()), encoding="utf-8")
    (tmp_path / "queries.tsv").write_text("other\tsomething else\n", encoding="utf-8")
    with pytest.raises(DataError) as error:
        askew.measure({"r": RUN}, tmp_path, "ARaB(tf)@2", decompose=True)
    assert (error.value.code, error.value.values) == ("no-query-text", {"query": "q"})


@pytest.mark.parametrize(
    "measure", ["NFaiRR@2", "ARaB(tf,sign=abs)@2", "ARaB(tf,who=generic)@2", "ARaB(tf,on=judged)@2"]
)
def test_only_sums_over_mentions_have_parts(measure, queries):
    with pytest.raises(ConfigError) as error:
        parts_of(measure, qrels=QRELS, queries=queries)
    assert error.value.code == "no-parts"


def test_of_measures_that_nobody_named_one_is_decomposed(queries):
    report = askew.measure({"r": RUN}, DOCS, decompose=True, qrels=QRELS, queries=queries)
    assert [one.measure for one in report.parts] == ["ARaB(tf)@10"]
    assert report.to_dict()["parts"][0]["resolver"].startswith("neural@")


def test_what_is_asked_for_is_told_from_what_is_on_topic(queries):
    why = named(parts_of(qrels=QRELS, queries=queries), "why")
    assert {name: one.found for name, one in why.items()} == pytest.approx(
        {"offtopic": 0.75 / 2.25, "asked": 0, "warranted": 1.5 / 2.25}
    )


def test_a_query_that_names_a_group_asks_about_it(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("q\twomen and men who land planes\n", encoding="utf-8")
    why = named(parts_of(qrels={"q": {"on": 1, "off": 1}}, queries=path), "why")
    assert why["asked"].found == pytest.approx(1)


def test_a_query_that_names_one_group_does_not_ask_about_the_other(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("q\twomen who land planes\n", encoding="utf-8")
    why = named(parts_of(qrels={"q": {"on": 1, "off": 1}}, queries=path), "why")
    assert why["asked"].amounts == pytest.approx({"male": 0, "female": 2 / 4})
    assert why["warranted"].amounts == pytest.approx({"male": 1.75, "female": 0})


def test_a_measure_without_parts_is_refused_before_anything_is_read():
    with pytest.raises(ConfigError) as error:
        askew.measure({"r": RUN}, DOCS, "NFaiRR@2", decompose=True, qrels={"no query": {"no document": 1}})
    assert error.value.code == "no-parts"


def test_a_note_says_where_classes_are_estimated_by_a_model_of_other_groups():
    colors = askew.Groups({"red": ["red"], "blue": ["blue"]})
    docs = {"d": "a red house and a blue one"}
    report = askew.measure({"r": {"q": {"d": 1.0}}}, docs, "ARaB(tc,who=generic+real+fictional+name)@1", groups=colors)
    others = askew.measure({"r": RUN}, DOCS, "ARaB(who=real)@1")
    found = ["other-groups-model" in [getattr(note, "code", "") for note in one.notes] for one in (report, others)]
    assert found == [True, False]


def test_other_groups_have_no_parts_by_who_because_the_resolver_was_not_trained_on_them(queries):
    words = {"young": ["boy", "girl", "he"], "old": ["man", "woman", "she"]}
    found = parts_of(qrels=QRELS, queries=queries, groups=askew.Groups(words))
    assert named(found, "why") and not named(found, "who")
    assert sum(one.net for one in found.parts) == pytest.approx(found.value)


def test_on_judged_counts_documents_that_are_judged_relevant(queries):
    def value(text, **options):
        return askew.measure({"r": RUN}, DOCS, text, **options)[text].mean

    # Only rank 1 counts, with its 2 male words; rank 2 keeps its place and counts as naming no group.
    assert value("ARaB(tc,on=judged)@2", qrels=QRELS) == pytest.approx((2 + 2 / 2) / 2)
    assert value("ARaB(tc,on=judged,rel=3)@2", qrels=QRELS) == 0
    assert value("RaB(tc,on=judged)@3", qrels={"q": {"off": 1}}) == pytest.approx(-1 / 3)
    assert value("LexiconShare(on=judged,sign=signed)@2", qrels=QRELS) == pytest.approx(100 * (2 / 9) / 2)


def test_on_relevant_estimates_where_nothing_is_judged(queries, monkeypatch):
    class Stub:
        def relevance(self, queries, texts):
            assert set(queries) == {"how do pilots land"}
            return np.array([0.9 if "she" in text.split() else 0.1 for text in texts])

    monkeypatch.setattr(scoring_relevance, "open_estimator", Stub)
    text = "RaB(tc,on=relevant)@3"
    # Estimated: only the second document is relevant. Judged: the first is as well.
    assert askew.measure({"r": RUN}, DOCS, text, queries=queries)[text].mean == pytest.approx(-1 / 3)
    found = askew.measure({"r": RUN}, DOCS, text, queries=queries, qrels={"q": {"on": 1}})
    assert found[text].mean == pytest.approx((2 - 1) / 3)


def test_a_signature_names_the_resolver_where_relevance_is_estimated_and_only_there():
    from askew.measures.catalogue import Catalogue

    estimated, judged, plain = Catalogue().complete(["ARaB(on=relevant)@10", "ARaB(on=judged)@10", "ARaB@10"])
    assert "resolver='neural@" in estimated.signature and "on='relevant'" in estimated.signature
    assert "resolver" not in judged.signature and "on='judged'" in judged.signature
    assert ",on=" not in plain.signature and "rel=" not in plain.signature


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from(["he", "she", "her man", "the", "women and men", "his sister"]), min_size=1, max_size=6)
)
def test_whatever_the_documents_the_parts_add_up(words):
    docs = {f"d{place}": text for place, text in enumerate(words)}
    run = {"q": {doc: -float(place) for place, doc in enumerate(docs)}}
    judged = {"q": {doc: place % 2 for place, doc in enumerate(docs)}}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "queries.tsv"
        path.write_text("q\ta question\n", encoding="utf-8")
        report = askew.measure({"r": run}, docs, "ARaB(tf)@4", qrels=judged, queries=path, decompose=True)
    found = report.parts[0]
    assert found.value == pytest.approx(report["ARaB(tf)@4"].mean)
    for kind in ("why", "who") if found.mentions else ():
        assert sum(one.net for one in named(found, kind).values()) == pytest.approx(found.value, abs=1e-9)
