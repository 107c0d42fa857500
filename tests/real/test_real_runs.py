"""Ten real runs over TREC DL 2019, against loops written straight from the published formulas."""

import math
from collections import Counter

import pytest

import askew
from askew.core.lexicon import load_lexicon


@pytest.fixture(scope="module")
def published(data):
    """Counts of the published word lists in the published tokens, by plain loops."""
    texts = {}
    with (data / "msmarco_dl1920" / "docs.tsv").open(encoding="utf-8", newline="\n") as file:
        for line in file:
            doc, _, text = line.rstrip("\n").partition("\t")
            texts[doc] = Counter(text.lower().split(" "))
    lists = {}
    for name in ("rekabsaz2020", "rekabsaz2021"):
        groups = load_lexicon(name).groups
        lists[name] = {
            doc: tuple(sum(counts[term] for term in groups[g]) for g in ("female", "male"))
            for doc, counts in texts.items()
        }
    return lists


def read(path):
    run = {}
    for line in path.read_text().splitlines():
        query, _, doc, _, _, _ = line.split()
        run.setdefault(query, []).append(doc)
    return run


def known_queries(run, counts, depth):
    return [q for q, docs in run.items() if all(d in counts for d in docs[:depth])]


@pytest.mark.parametrize("name", ["BM25", "bert_L2", "advbert_L4", "tk"])
def test_arab_and_fairr_of_real_runs_are_those_of_the_published_formulas(data, published, name):
    path = data / "cpjku_dl19_runs" / f"{name}.run"
    run = read(path)
    queries = known_queries(run, published["rekabsaz2020"], 10)
    assert len(queries) >= 20
    texts = ["ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10", "FaiRR@10"]
    report = askew.measure(
        [path], data / "msmarco_dl1920" / "docs.tsv", preset="rekabsaz2020", measures=texts, queries=queries
    )
    got = report.to_dict(per_query=True)["runs"][0]["per_query"]
    magnitude = {"tc": float, "tf": lambda c: math.log(c + 1), "bool": lambda c: float(c > 0)}
    for query in queries:
        for kind, size in magnitude.items():
            leans = [size(m) - size(f) for f, m in (published["rekabsaz2020"][d] for d in run[query][:10])]
            running = [sum(leans[:t]) / t for t in range(1, 11)]
            assert got[query][f"ARaB({kind})@10"] == pytest.approx(sum(running) / 10, abs=1e-12)
        pairs = [published["rekabsaz2021"][d] for d in run[query][:10]]
        neutral = [1.0 if f + m <= 1 else round(1 - abs(f - m) / (f + m), 6) for f, m in pairs]
        expected = sum(n / math.log2(r + 1) for r, n in enumerate(neutral, start=1))
        assert got[query]["FaiRR@10"] == pytest.approx(expected, abs=1e-9)


def test_all_ten_runs_stand_in_one_table(data):
    runs = sorted((data / "cpjku_dl19_runs").glob("*.run"))
    report = askew.measure(
        runs,
        data / "msmarco_dl1920" / "docs.tsv",
        qrels=data / "msmarco_dl1920" / "qrels.dl19.txt",
        missing="zero",
        measures="RR@10 nDCG@10 ARaB(tf)@10 NFaiRR(background=self)@10 LexiconShare@10",
    )
    assert len(report.runs) == 10
    # The runs answer 30 of the 43 judged queries: the others count as zero, and have no lean.
    sizes = {asked.text: {report.mean(run, asked).n for run in report.runs} for asked in report.asked}
    assert [sizes.pop("RR@10"), sizes.pop("nDCG@10")] == [{43}, {43}]
    assert all(n == {30} for n in sizes.values())
    assert any("missing=zero" in note for note in report.notes)
