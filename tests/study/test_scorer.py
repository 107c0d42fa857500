"""One evaluator: measure, build, explore and bench give the same values for the same lists."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from askew.core import plugins as registry
from askew.core.errors import ConfigError
from askew.core.measure import column_of
from askew.core.protocols import DocMentions
from askew.core.ranking import Hits, Rankings
from askew.core.store.store import Store
from askew.measures.catalogue import Catalogue
from askew.measures.lists import JudgedQueries
from askew.measures.measure import measure
from askew.measures.scorer import Scorer
from askew.pairs.resources import Resources
from askew.pairs.stages import Evaluate
from askew.study.bench.runs import BenchScorer
from askew.ui.explorer.counting import ListScorer

WORDS = [
    "she",
    "he",
    "her",
    "his",
    "woman",
    "man",
    "nurse",
    "doctor",
    "work",
    "pay",
    "the",
    "a",
    "of",
    "queen",
    "king",
    "father",
    "mother",
]
# Byte order is not the order of the collection, nor that of capitals and accents in a language.
IDS = ["d10", "d9", "Z", "é", "z", "a_b", "\N{CJK UNIFIED IDEOGRAPH-4E00}", "d1", "0", "\U0001d49c"]
QUERIES = ["q1", "q2", "q3", "q4"]
# "gone" is judged and not in the collection.
QRELS = {"q1": {"d9": 1, "gone": 2}, "q2": {"é": 1, "z": 2, "Z": 0}, "q3": {"0": 3}, "q4": {"d10": 1, "d1": 1}}
KINDS = {"RaB": ("tc", "tf", "bool"), "ARaB": ("tc", "tf", "bool"), "NFaiRR": ("background=self",)}
LEAN = [
    f"{name}({kind})@5" if kind else f"{name}@5"
    for name in ("RaB", "ARaB", "FaiRR", "NFaiRR", "LexiconShare", "AWRF", "EXP", "TExFAIR", "Skew", "NDKL")
    for kind in KINDS.get(name, ("",))
]
MEASURES = [
    "RR@5",
    "AP@5",
    "nDCG@5",
    *LEAN,
    "ARaB(tf,order=file)@5",
    "RR(order=file)@3",
    "LexiconShare(overlap=first)@5",
]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(5)
    return [" ".join(rng.choice(WORDS, 12).tolist()) for _ in IDS]


@pytest.fixture(scope="module")
def resources(texts, tmp_path_factory):
    place = tmp_path_factory.mktemp("collection")
    lines = {
        "docs.tsv": [f"{doc}\t{text}" for doc, text in zip(IDS, texts, strict=True)],
        "queries.tsv": [f"{query}\tnurse {query}" for query in QUERIES],
        "qrels.txt": [f"{query} 0 {doc} {grade}" for query, judged in QRELS.items() for doc, grade in judged.items()],
    }
    for name, rows in lines.items():
        (place / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return Resources(place, Store(place / "store"))


def random_hits(seed: int) -> Hits:
    """One list for each query, of different lengths, with tied scores and in no order."""
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(len(IDS))[: rng.integers(1, len(IDS) + 1)] for _ in QUERIES]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    docs = np.concatenate(lists).astype(np.int32)
    return Hits(offsets, docs, rng.integers(0, 4, len(docs)).astype(np.float32))


def rows_of(hits: Hits) -> pa.Table:
    sides = (
        pa.ListArray.from_arrays(hits.offsets.astype(np.int32), pa.array(part)) for part in (hits.docs, hits.scores)
    )
    return pa.table(
        {"query_id": QUERIES, "variant_id": [f"{q}-v" for q in QUERIES], "method": ["original"] * len(QUERIES)}
        | dict(zip(("doc", "score"), sides, strict=True))
    )


def frame_of(hits: Hits) -> pl.DataFrame:
    queries = np.array(QUERIES)[hits.rows()]
    return pl.DataFrame({
        "query_id": queries, "doc_id": [IDS[doc] for doc in hits.docs.tolist()], "score": hits.scores.astype(float),
    })  # fmt: skip


def by_measure(hits, texts, **more):
    docs = dict(zip(IDS, texts, strict=True))
    report = measure({"run": frame_of(hits)}, docs, qrels=QRELS, measures=MEASURES, **more)
    assert report.runs[0].query_ids == QUERIES
    return report.runs[0].values


def by_explore(hits, texts):
    scorer, found = ListScorer(MEASURES), []
    for row, query in enumerate(QUERIES):
        start, end = hits.offsets[row : row + 2].tolist()
        one = Hits(np.array([0, end - start], np.int64), hits.docs[start:end], hits.scores[start:end])
        found.append(scorer.score(one, pa.array(IDS), lambda docs: [texts[doc] for doc in docs], [QRELS[query]]))
    return {name: np.concatenate([one[name] for one in found]) for name in MEASURES}


def test_every_shipped_measure_of_lean_is_among_those_compared():
    shipped = {
        name for name in registry.names("measure") if registry.load("measure", name).__module__.startswith("askew.")
    }
    assert shipped == {text.partition("(")[0].partition("@")[0] for text in LEAN}


@pytest.mark.parametrize("seed", range(6))
def test_measure_build_explore_and_bench_give_the_same_values_for_the_same_lists(seed, texts, resources):
    hits = random_hits(seed)
    table, _ = Evaluate(MEASURES, resources).run(rows_of(hits))
    found = {
        "measure": by_measure(hits, texts),
        "build": {name: table[column_of(name)].to_numpy() for name in MEASURES},
        "explore": by_explore(hits, texts),
        "bench": BenchScorer(MEASURES, resources, QUERIES).score(hits),
    }
    expected = found.pop("measure")
    for who, values in found.items():
        for name in MEASURES:
            assert values[name].tobytes() == expected[name].tobytes(), (who, name)


def test_measure_and_bench_agree_on_a_background_and_name_it_alike(texts, resources):
    base, other = random_hits(1), random_hits(2)
    text = "NFaiRR@5"
    scorer = BenchScorer([text, "RR@5"], resources, QUERIES)
    scorer.set_base(base)
    docs = dict(zip(IDS, texts, strict=True))
    report = measure({"run": frame_of(other)}, docs, measures=[text], background=frame_of(base))
    assert scorer.score(other)[text].tobytes() == report.runs[0].values[text].tobytes()
    assert scorer.asked[0].signature == report.asked[0].signature and "run@" in scorer.asked[0].signature


def test_several_lists_of_a_query_have_its_judgements_and_its_background(resources):
    base, other = random_hits(1), random_hits(2)
    scorer = BenchScorer(["NFaiRR@5", "AP@5"], resources, QUERIES)
    scorer.set_base(base)
    whole = scorer.score(other)
    twice = np.repeat(np.arange(4), 2)[::-1].copy()
    lengths = np.diff(other.offsets)[twice]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    at = np.concatenate([np.arange(other.offsets[i], other.offsets[i + 1]) for i in twice])
    found = scorer.score(Hits(offsets, other.docs[at], other.scores[at]), twice)
    for name, values in found.items():
        assert values.tobytes() == whole[name][twice].tobytes()
    assert list(scorer.score(other, only=["AP@5"])) == ["AP@5"]


def test_a_query_without_judgements_is_not_judged_and_reads_those_of_no_other():
    judged = JudgedQueries.of(pa.array(["b", "a", "b"]), np.array([4, 1, 2]), np.array([1, 2, 3]))
    found = judged.of_queries(pa.array(["x", "b", "y", "a", "b"]))
    assert found.offsets.tolist() == [0, 0, 2, 2, 3, 5]
    assert found.docs.tolist() == [2, 4, 1, 2, 4] and found.relevance.tolist() == [3, 1, 2, 3, 1]
    assert found.judged.tolist() == [False, True, False, True, True]


def test_a_document_is_counted_once_whatever_the_number_of_lists():
    calls = []

    def count(key):
        calls.append(key)
        return DocMentions(("female", "male"), np.eye(2, dtype=np.int32), np.ones(2, np.int32), np.ones(2, np.bool_))

    asked = Catalogue().complete(["ARaB(tf)@2", "FaiRR@2"])
    scorer = Scorer(asked, pa.array(["b", "a", "judged only"]), count)
    lists = Rankings(pa.array(["q"]), np.array([0, 2]), np.array([0, 1]), np.array([1.0, 1.0]))
    scorer.prepare()
    assert scorer.score(lists)["ARaB(tf)@2"].tobytes() == scorer.score(lists)["ARaB(tf)@2"].tobytes()
    assert len(calls) == len(set(calls))


def test_a_measure_of_lean_without_texts_says_what_to_give():
    asked = Catalogue().complete(["ARaB(tf)@2"])
    lists = Rankings(pa.array(["q"]), np.array([0, 1]), np.array([0]), np.array([1.0]))
    with pytest.raises(ConfigError, match="docs=") as error:
        Scorer(asked, pa.array(["a"])).score(lists)
    assert error.value.code == "no-texts"
