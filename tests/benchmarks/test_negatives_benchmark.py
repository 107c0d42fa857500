"""benchmarks/negatives.py on tiny collections and a tiny encoder: prepared, trained, evaluated; checks of leaks."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "benchmarks", ROOT / "tests" / "train"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

import negatives  # noqa: E402
import negatives_data as data_of  # noqa: E402

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("accelerate", reason="the extra 'train' is not installed")

from negatives_train import NO_PLACE, Kept, Prepared, Worker, top_places  # noqa: E402

LONG = "the sky is blue and the cars run fast today"
TRAINING = [f"he wrote his book w{i}" if i % 2 else f"the book is blue w{i}" for i in range(12)]
TESTING = [f"she runs her cars w{i}" if i % 2 else f"the sky is blue w{i}" for i in range(12)]


def write_collection(folder, docs, queries, split=""):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "docs.tsv").write_text("".join(f"d{at}\t{text}\n" for at, text in enumerate(docs)))
    (folder / f"queries{split}.tsv").write_text("".join(f"q{at}\t{text}\n" for at, text in enumerate(queries)))
    (folder / f"qrels{split}.txt").write_text("".join(f"q{at} 0 d{at} 1\n" for at in range(len(queries))))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Folders as the benchmark expects them; no test document is a training document."""
    place = tmp_path_factory.mktemp("data")
    write_collection(place / "squad_part", TRAINING, [f"book w{i}" for i in range(8)])
    write_collection(place / "boolq", TESTING, [f"sky w{i}" for i in range(6)])
    write_collection(place / "fairytaleqa", TESTING, [f"cars w{i}" for i in range(6)])
    for split in (".dl19", ".dl20"):
        write_collection(place / "msmarco_dl1920", TESTING, ["sky w0", "cars w1", "sky w2", "cars w3"], split)
    with pytest.MonkeyPatch.context() as patch:
        # The queries here are none of the real collection.
        patch.setattr(data_of, "UNSEEN", {})
        yield place


@pytest.fixture(scope="module")
def prepared(data, tmp_path_factory):
    from toy_encoder import make_encoder

    out = tmp_path_factory.mktemp("prepared")
    model = make_encoder(tmp_path_factory.mktemp("tiny"))
    negatives.prepare(argparse.Namespace(data=data, out=out, most=None, model=model))
    return out


def train(prepared, out, *words):
    negatives.main(["train", str(prepared), "--out", str(out), "--device", "cpu", *words])


@pytest.fixture(scope="module")
def kept(prepared, tmp_path_factory):
    """A row of each method, with two seeds."""
    out = tmp_path_factory.mktemp("kept")
    rows = ("original-0", "negatives-0.5", "lean-list-2", "adversary-3")
    train(prepared, out, "--only", *(f"{row}-seed{seed}" for row in rows for seed in (1, 2)))
    return out


def test_every_method_and_strength_is_trained_with_three_seeds():
    assert len(list(negatives.rows())) == 33
    assert [name for name, *_ in negatives.rows()][:3] == [
        "original-0-seed1",
        "negatives-0.25-seed1",
        "negatives-0.5-seed1",
    ]


def test_the_documented_options_are_the_settings_of_each_row():
    for method, strengths in negatives.STRENGTHS.items():
        line = next(line for line in negatives.__doc__.splitlines() if line.startswith(f"    {method} "))
        words = line.split("--", 1)[1].split("  ")[0].split()
        given = dict(zip(["preset", *(w.removeprefix("--") for w in words[2::2])], words[1::2], strict=True))
        if "set" in given:
            name, _, value = given.pop("set").partition("=")
            given[name] = value
        found = {key: strengths[-1] if value == "STRENGTH" else value for key, value in given.items()}
        assert found == negatives.own_settings(method, strengths[-1])
    for name, value in negatives.SHARED.items():
        assert (f"--set {name}={value}" if name != "part" else '--part ""') in negatives.__doc__


def test_the_training_is_that_of_the_command(prepared, data, tmp_path):
    """The same weights as askew train ranker, so the same scores."""
    from askew.search.bm25.ranker import bm25
    from askew.search.retrieve import index as index_documents
    from askew.search.retrieve import queries_of, search_queries
    from askew.train.crossencoder import CrossEncoder, RankerSettings
    from askew.train.facade import Trainer

    folder = data / "squad_part"
    index_documents(folder, tmp_path / "index")
    search_queries(queries_of(folder / "queries.tsv"), bm25(tmp_path / "index"), tmp_path / "squad.parquet", 100)
    weights = str(prepared / "weights")
    trainer = Trainer(
        "ranker", **{**negatives.SHARED, **negatives.own_settings("negatives", 0.5)}, seed=2, model=weights
    )  # fmt: skip
    files = [folder / name for name in ("docs.tsv", "queries.tsv", "qrels.txt")]
    trainer.fit(tmp_path / "squad.parquet", *files, out=tmp_path / "model", device="cpu")
    encoder = CrossEncoder.load(RankerSettings(str(tmp_path / "model"), most_tokens=160, most_left_tokens=48), "cpu")

    worker = Worker(prepared, prepared / "weights", "cpu", {}, 0)
    found, _ = worker.train("negatives-0.5-seed2")
    texts, candidates = worker.given.texts["tests"]["boolq"], worker.given.arrays["candidates_boolq"]
    rows = np.nonzero(candidates >= 0)
    left, right = [texts["queries"][row] for row in rows[0]], [texts["docs"][doc] for doc in candidates[rows]]
    scores = np.full(candidates.shape, -np.inf, np.float32)
    scores[rows] = encoder.score(left, right)
    assert np.array_equal(found["boolq"], top_places(scores))


def test_training_imports_no_library_of_tables():
    """The machine that trains has torch, transformers and numpy, but neither pyarrow nor polars."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pyarrow', 'polars']))\n"
        "import negatives, negatives_train, askew.train.crossencoder, askew.train.card, askew.train.crossencoder"
    )
    paths = os.pathsep.join([str(ROOT / "benchmarks"), *sys.path])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": paths})


def test_a_stopped_run_goes_on_where_it_was(prepared, tmp_path, capsys):
    train(prepared, tmp_path / "out", "--only", "original-0-seed1", "adversary-1-seed1", "--minutes", "0")
    assert "left: original-0-seed1 adversary-1-seed1" in capsys.readouterr().out
    train(prepared, tmp_path / "out", "--only", "original-0-seed1")
    train(
        prepared, tmp_path / "more", "--only", "original-0-seed1", "adversary-1-seed1", "--done", str(tmp_path / "out")
    )
    assert "1 trainings, 1 done before" in capsys.readouterr().out
    found = Kept.read([tmp_path / "more"], data_of.TESTS)
    assert set(found.about["rows"]) == set(found.places["dl20"]) == {"original-0-seed1", "adversary-1-seed1"}


def test_trainings_of_another_pace_are_not_mixed(prepared, tmp_path):
    train(prepared, tmp_path, "--only", "original-0-seed1")
    with pytest.raises(SystemExit, match="one pace"):
        train(prepared, tmp_path, "--only", "original-0-seed2", "--epochs", "1")


def test_the_table_has_every_row_that_was_trained_and_the_runs_are_those_of_the_kept_places(
    kept, data, tmp_path, capsys
):
    negatives.main(["evaluate", str(kept), "--data", str(data), "--runs", str(tmp_path)])
    printed = capsys.readouterr().out
    for title in ("BoolQ: 6 queries", "FairytaleQA: 6 queries", "DL 2019 and 2020: 8 queries"):
        assert title in printed
    assert printed.count("\nnegatives-0.5\n") == printed.count("\nadversary-3\n") == 3
    test = data_of.open_test_set(data, "boolq", data_of.Seen.of(TRAINING))
    places = Kept.read([kept], data_of.TESTS).places["boolq"]["negatives-0.5-seed2"]
    lines = [line.split() for line in (tmp_path / "boolq" / "negatives-0.5-seed2.run").read_text().splitlines()]
    first = [line[2] for line in lines if line[0] == test.query_ids[0]]
    wanted = places[0][places[0] != NO_PLACE]
    assert first == [test.doc_ids[doc] for doc in test.candidates[0][wanted]]


def test_other_candidates_than_those_of_the_kept_results_are_refused(kept, data, tmp_path):
    about = json.loads((kept / "about.json").read_text())
    about["facts"]["tests"]["boolq"]["digest"] = "0" * 16
    for file in kept.glob("*.npz"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "about.json").write_text(json.dumps(about))
    with pytest.raises(SystemExit, match=r"boolq: .* 0000"):
        negatives.main(["evaluate", str(tmp_path), "--data", str(data)])


def test_a_copy_of_a_training_document_was_seen_whatever_its_case_and_punctuation():
    seen = data_of.Seen.of(["The sky, is blue."])
    assert seen.has("the SKY is blue")
    assert not seen.has("the sky is blue today")


def test_a_document_that_shares_a_tenth_of_its_word_sequences_was_seen():
    seen = data_of.Seen.of([LONG])
    assert seen.has(f"{LONG} w1 w2 w3 w4")
    assert not seen.has("the cars run fast today and the sky is blue")


def test_queries_that_reach_a_seen_document_are_left_out_and_counted():
    candidates = np.array([[0, 1], [1, 2], [2, data_of.NO_DOCUMENT]])
    relevant = [np.array([1]), np.array([1]), np.array([3])]
    is_seen = np.array([True, False, False, True, False])
    kept, left_out = data_of.unseen_queries(candidates, relevant, is_seen)
    assert kept.tolist() == [1]
    assert left_out == {data_of.SEEN_FOUND: 1, data_of.SEEN_RELEVANT: 1}


def test_a_test_set_without_seen_documents_has_no_seen_lean(data):
    seen = data_of.Seen.of(TRAINING)
    test = data_of.open_test_set(data, "boolq", seen)
    assert data_of.seen_lean(test, seen) == 0.0
    assert data_of.seen_lean(test, data_of.Seen.of(TESTING)) == 1.0


def test_copies_of_training_documents_leave_no_query_that_finds_them(data):
    copied = data_of.Seen.of([*TRAINING, TESTING[0]])
    everything = data_of.open_test_set(data, "dl19", data_of.Seen.of(TRAINING))
    test = data_of.open_test_set(data, "dl19", copied)
    assert TESTING[0] in everything.docs
    assert TESTING[0] not in [*test.docs, *test.relevant]
    assert 0 < len(test.query_ids) < len(everything.query_ids)
    assert len(test.query_ids) + sum(test.left_out.values()) == len(everything.query_ids)


def test_the_share_of_the_most_used_documents_is_counted_over_all_training_documents():
    assert data_of.share_of_top(np.array([0, 0, 0, 1]), 100) == 0.75
    assert data_of.share_of_top(np.array([0, 0, 0, 1]), 200) == 1.0


def test_negatives_that_are_relevant_to_a_test_query_are_counted(data):
    tests = [data_of.open_test_set(data, "boolq", data_of.Seen.of(TRAINING))]
    assert data_of.share_relevant(np.array([0, 1]), TRAINING, tests) == 0.0
    assert data_of.share_relevant(np.array([0, 1]), [TRAINING[0], tests[0].relevant[0]], tests) == 0.5


def test_the_candidates_are_named_by_their_ids_and_order(data):
    test = data_of.open_test_set(data, "boolq", data_of.Seen.of(TRAINING))
    turned = data_of.TestSet(
        test.name, test.query_ids, test.queries, test.doc_ids, test.docs, test.candidates[:, ::-1], test.relevant
    )
    assert test.digest == data_of.open_test_set(data, "boolq", data_of.Seen.of(TRAINING)).digest != turned.digest


def test_equal_scores_keep_the_order_of_the_candidates():
    found = top_places(np.array([[1.0, 2.0, 2.0, -np.inf]]))
    assert found.tolist() == [[1, 2, 0, NO_PLACE]]


def test_the_prepared_file_has_all_that_training_reads(prepared):
    found = Prepared.read(prepared)
    assert set(found.texts["rows"]) == {name for name, *_ in negatives.rows()}
    assert {one["settings"]["adversary"] for one in found.texts["rows"].values()} == {0.0, 0.3, 1.0, 3.0}
