"""GrepBiasIR from its files to a model in a folder, on tiny encoders built here."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("accelerate", reason="the extra 'train' is not installed")

from askew.core.errors import ConfigError, DataError, StoreError
from askew.models.relevance import combine, encode_pairs, read_head
from askew.train import adapter as transfer
from askew.train.adapter import (
    CONVERGED,
    AdapterJob,
    FinetuneSettings,
    LabeledRows,
    finetune,
    groups_for,
    logits_of,
    train_adapter,
)
from askew.train.common import Schedule
from askew.train.grepbias import CATEGORIES, read_grepbias
from askew.ui.cli.train import train_app

COLUMNS = ["q_id", "d_id", "relevant", "query", "doc_title", "document", "content_gender", "exp_stereotype"]
TOPICS = ["job", "baby", "hair", "home", "fat", "love"]
WORDS = [*TOPICS, "he", "she", "they", "likes", "the", "tax", "rain", "a", "about"]
QUICK = Schedule(epochs=2, batch_size=4, learning_rate=1e-3, warmup=0.0, save_every=0, seed=3)


def rows_of(first_query, count=5):
    """Six rows for each query: relevant and not, in three versions."""
    found = []
    for q in range(first_query, first_query + count):
        topic = TOPICS[q % len(TOPICS)]
        for relevant, about in ((1, topic), (0, "tax")):
            for gender, word in (("M", "he"), ("F", "she"), ("N", "they")):
                found.append([q, len(found) + 6 * first_query, relevant, f"about {topic}", f"the {about} {word}",
                              f"{word} likes\nthe {about}", gender, "No Annotation Agreement"])  # fmt: skip
    return found


def write(folder, category, rows, columns=COLUMNS):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    (folder / f"queries-documents_{category}.csv").write_text(text.getvalue(), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "grepbias"
    place.mkdir()
    write(place, "Career", rows_of(0))
    write(place, "Child Care", rows_of(5))
    return place


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, bert_tokenizer):
    import torch
    from transformers import BertConfig, BertModel

    fast = bert_tokenizer(WORDS)
    config = BertConfig(
        vocab_size=len(fast), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.3,
    )  # fmt: skip
    torch.manual_seed(7)
    place = tmp_path_factory.mktemp("tiny")
    BertModel(config).save_pretrained(place)
    fast.save_pretrained(place)
    return str(place)


def texts_of(data):
    return LabeledRows(np.array([data.query, data.texts(True)], object).T, data.relevant, data.gender, data.query_id)


def test_rows_are_read_with_their_line_breaks_as_blanks(folder):
    data = read_grepbias(folder)
    assert len(data) == 60 and data.categories == ("Career", "Child Care")
    assert data.body[0] == "he likes the job" and data.texts(True)[0] == "the job he he likes the job"
    assert data.relevant.sum() == 30 and data.notes == {}
    assert [one["file"] for one in data.files] == ["queries-documents_Career.csv", "queries-documents_Child Care.csv"]


def test_other_labels_of_gender_are_kept_as_both_and_counted(folder):
    rows = rows_of(20)
    rows[3][6], rows[4][6] = "both", "botrh"
    write(folder, "Appearance", rows)
    data = read_grepbias(folder)
    assert data.notes == {"gender written 'both', read as 'both'": 1, "gender written 'botrh', read as 'both'": 1}
    assert (data.gender == "both").sum() == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[1].__setitem__(6, "X"), "expected content_gender M, F, N or both, found 'X'"),
        (lambda rows: rows[1].__setitem__(2, "yes"), "expected relevant to be 0 or 1, found 'yes'"),
        (lambda rows: rows[1].__setitem__(1, 0), "expected each d_id once"),
        (lambda rows: rows[1].__setitem__(3, "other"), "expected one query for q_id 0"),
        (lambda rows: rows[1].__setitem__(5, " "), "expected a query and a document"),
        (lambda rows: rows[1].pop(), "expected 8 fields, found 7"),
    ],
)
def test_a_row_that_is_wrong_is_told_with_its_place(tmp_path, change, said):
    rows = rows_of(0)
    change(rows)
    write(tmp_path, "Career", rows)
    with pytest.raises(DataError, match=said):
        read_grepbias(tmp_path)


def test_a_folder_without_the_files_and_a_file_with_other_columns_are_told(tmp_path):
    with pytest.raises(DataError, match=r"CATEGORY.csv files"):
        read_grepbias(tmp_path)
    write(tmp_path, "Career", [], ["a", "b"])
    with pytest.raises(DataError, match=r"Career.csv:1: expected the columns q_id,.*found a,b"):
        read_grepbias(tmp_path)


def test_the_real_data_has_702_rows_and_five_odd_labels():
    place = Path(__file__).resolve().parents[3] / "shared" / "data" / "gender_queries" / "grepbiasir"
    if not place.is_dir():
        pytest.skip("GrepBiasIR is not there: expected ../shared/data/gender_queries/grepbiasir beside the checkout")
    data = read_grepbias(place)
    assert len(data) == 702 and data.categories == CATEGORIES
    counts = [int((data.category == name).sum()) for name in CATEGORIES]
    assert counts == [138, 120, 84, 84, 72, 90, 114]
    assert sorted(data.notes.values()) == [1, 4]
    # Relevant documents whose male and female bodies differ: the counts of table 3's diagonal, so titles had no part.
    differ = [0] * len(CATEGORIES)
    for query in np.unique(data.query_id):
        rows = np.flatnonzero((data.query_id == query) & data.relevant)
        bodies = {str(data.gender[row]): data.body[row] for row in rows}
        differ[CATEGORIES.index(str(data.category[rows[0]]))] += bodies["M"] != bodies["F"]
    assert differ == [16, 16, 12, 12, 8, 7, 13]


def test_features_of_two_vectors_by_hand():
    left, right = np.array([[0.6, 0.8]], np.float32), np.array([[0.8, 0.6]], np.float32)
    np.testing.assert_allclose(combine(left, right)[0], np.array([0.48, 0.48, 0.24]) * np.sqrt(2), rtol=1e-6)


def test_encodings_are_kept_and_do_not_depend_on_company(tiny, tmp_path):
    queries, documents = ["about job", "about baby", "about hair"], ["he likes the job", "the rain", "she likes"]
    for layout, width in (("joint", 16), ("apart", 17)):
        whole = encode_pairs(queries, documents, tiny, layout, tmp_path)
        alone = encode_pairs(queries[1:2], documents[1:2], tiny, layout)
        assert whole.shape == (3, width)
        np.testing.assert_allclose(whole[1], alone[0], atol=1e-5)
        assert len(list(tmp_path.glob(f"{layout}-*.npy"))) == 1
        np.testing.assert_array_equal(encode_pairs(queries, documents, tiny, layout, tmp_path), whole)
    with pytest.raises(ConfigError, match="joint, apart, found 'beside'"):
        encode_pairs(queries, documents, tiny, "beside")


def test_a_head_is_trained_written_with_its_card_and_opened_again(folder, tiny, tmp_path):
    job = AdapterJob(model=tiny, head=replace(CONVERGED, epochs=30))
    out = tmp_path / "out"
    made = train_adapter(folder, out, job, "cpu", "askew train adapter")
    head = read_head(out)
    data = read_grepbias(folder)
    logits = head.logits(data.query, data.texts(True))
    assert ((logits > 0) == data.relevant).mean() > 0.8
    assert made.measured["summary"]["zero_shot"]["value"] > 0.5
    assert set(made.measured["alphas"]) == {"MF", "MN", "FN"}
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "## Limits" in card
    assert card.count("| cosine, title and body, untrained |") == 3 and "trained - untrained cosine" in card
    summary, cosine, gain = (
        made.measured[name] for name in ("summary", "untrained cosine", "trained - untrained cosine")
    )
    wanted = summary["zero_shot"]["value"] - cosine["zero_shot"]["value"]
    assert gain["accuracy"]["value"] == pytest.approx(wanted)
    assert train_adapter(folder, out, job, "cpu") == replace(made, new=False)
    with pytest.raises(StoreError, match="another training"):
        train_adapter(folder, out, replace(job, most_loss=0.1), "cpu")


def test_a_head_that_is_damaged_or_of_another_encoder_is_told(folder, tiny, tmp_path):
    (tmp_path / "head.json").write_text('{"model": "x"}', encoding="utf-8")
    with pytest.raises(DataError, match=r"head.json: .*KeyError"):
        read_head(tmp_path)
    facts = {"model": tiny, "layout": "joint", "with_title": True, "weights": [0.1] * 9, "bias": 0.0}
    (tmp_path / "head.json").write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(ConfigError, match="9 features, found 16"):
        read_head(tmp_path).logits(["about job"], ["he"])


def test_batches_hold_all_versions_of_a_document_or_single_rows(folder):
    texts = texts_of(read_grepbias(folder))
    together = groups_for(texts, "query")
    assert [len(rows) for rows in together] == [3] * 20
    assert len(groups_for(texts, "batch")) == 60


@pytest.mark.parametrize("method", ["full", "lora"])
def test_an_encoder_learns_relevance_with_a_penalty_and_is_saved_where_a_ranker_can_open_it(
    folder, tiny, tmp_path, method, monkeypatch
):
    monkeypatch.setattr(transfer, "FOLDS", 2)  # each fold is a training of its own
    if method == "lora":
        pytest.importorskip("peft", reason="the extra 'train' is not installed")
    own = FinetuneSettings(alpha_mf=1.0, alpha_mn=1.0, alpha_fn=1.0)
    job = AdapterJob(method=method, model=tiny, finetune=own, pace=replace(QUICK, epochs=1))
    out = tmp_path / "out"
    made = train_adapter(folder, out, job, "cpu")
    assert made.measured["alphas"] == {"MF": 1.0, "MN": 1.0, "FN": 1.0}
    assert made.measured["summary"]["inside"] is not None
    assert made.tables[0].rows[0][0] == "cosine, title and body, untrained"
    assert not (out / "checkpoints").exists()
    from askew.models import load_model

    if method == "lora":
        encoder = load_model("dense", str(out), None, "cpu")
        vectors = encoder.encode(["about job", "the rain"])
        assert vectors.shape == (2, 16)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
        assert set(json.loads((out / "relevance.json").read_text())) == {"scale", "threshold"}
    else:
        assert load_model("cross", str(out), None, "cpu").predict([("about job", "he likes the job")]).shape == (1,)


def test_the_penalty_brings_the_versions_of_a_document_together(folder, tiny, tmp_path):
    texts = texts_of(read_grepbias(folder))
    gaps = {}
    for alpha in (0.0, 5.0):
        own = FinetuneSettings(method="full", model=tiny, alpha_mf=alpha, alpha_mn=alpha, alpha_fn=alpha)
        pace = replace(QUICK, epochs=6, learning_rate=3e-3)
        model, tokenizer = finetune(texts, own, pace, tmp_path / str(alpha), {})
        z = logits_of(model, tokenizer, "full", texts).reshape(-1, 3)
        gaps[alpha] = float(np.abs(z[:, 0] - z[:, 1]).mean())
    assert gaps[5.0] < gaps[0.0]


def test_settings_that_make_no_sense_are_told(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"method=.*head, lora, full"):
        AdapterJob(method="tail")
    with pytest.raises(ConfigError, match=r"rank=.* found 0"):
        FinetuneSettings(rank=0)
    with pytest.raises(ConfigError, match=r"pairs=.* found 'all'"):
        FinetuneSettings(pairs="all")
    from typer.testing import CliRunner

    runner = CliRunner()
    given = ["adapter", str(folder), "--out", str(tmp_path / "o")]
    assert "unknown setting 'alpha'" in str(runner.invoke(train_app, [*given, "--set", "alpha=1"]).exception)
    assert "seeds=" in str(runner.invoke(train_app, [*given, "--seeds", "0"]).exception)


def test_the_command_trains_and_prints_its_tables(folder, tiny, tmp_path):
    from typer.testing import CliRunner

    given = ["adapter", str(folder), "--out", str(tmp_path / "o"), "--seeds", "2", "--device", "cpu"]
    for one in (f"model={tiny}", "epochs=5", "penalty=false", "layout=joint"):
        given += ["--set", one]
    done = CliRunner().invoke(train_app, given, catch_exceptions=False)
    assert "zero-shot accuracy" in " ".join(done.stdout.split()) and "Career" in done.stdout
    assert "cosine" in done.stdout and "untrained" in done.stdout
    facts = json.loads((tmp_path / "o" / "measured.json").read_text(encoding="utf-8"))
    assert facts["measured"]["alphas"] == {"MF": 0.0, "MN": 0.0, "FN": 0.0}
    assert len(facts["measured"]["chosen"]) == 2 and facts["settings"]["layout"] == "joint"
