"""Training word rewriters: what they learn from a handful of pairs, going on after a stop, what is refused."""

import json

import numpy as np
import pytest

from askew.core.errors import ConfigError, DataError, StoreError
from askew.models.rewrite import Sizes, load_rewriter
from askew.trainers.common import Schedule, TrainingStopped
from askew.trainers.rewriter import PRESETS, RewriterSettings, fit_rewriter
from askew.trainers.rewriting.scores import corpus_bleu
from askew.trainers.rewriting.words import Rewrites, fit_words

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("accelerate", reason="the extra 'train' is not installed")

ORIGINALS = ["who wrote zanzibar", "is qwerty blue", "when did kalamazoo open", "fast red cars", "who is old"]
TARGETS = ["zanzibar book author", "qwerty colour blue", "kalamazoo station open", "red cars", "who old person"]
SIZES = Sizes(16, 32, 24, 0.0, written=20, read=100, most_words=10)
PACE = Schedule(60.0, 5, 1e-2, 1, 0.0, 0.0, "constant", 0, 1)


def pairs_of(originals=ORIGINALS, targets=TARGETS, before=None):
    return Rewrites([f"q{i}" for i in range(len(originals))], originals, targets, before)


def weights_of(taught):
    return {name: one.clone() for name, one in taught.rewriter.network.state_dict().items()}


@pytest.mark.parametrize("kind", ["acg", "hred-qs"])
def test_a_handful_of_pairs_is_learned_by_heart(kind, tmp_path):
    told = []
    taught = fit_rewriter(
        pairs_of(), RewriterSettings(kind, SIZES), PACE, tmp_path, device="cpu", progress=lambda *at: told.append(at)
    )
    assert [lines[0] for lines in taught.write(ORIGINALS)] == TARGETS
    assert [lines[0] for lines in taught.write(ORIGINALS, beams=3)] == TARGETS
    assert told[-1][:2] == (60, 60)
    taught.save(tmp_path / "model")
    assert load_rewriter(str(tmp_path / "model")).write(ORIGINALS) == [[target] for target in TARGETS]


def test_copying_is_learned_for_words_never_seen(tmp_path):
    names = [f"name{i}" for i in range(40)]
    pairs = pairs_of([f"who wrote {name} please" for name in names], [f"author {name}" for name in names])
    sizes = Sizes(16, 32, 24, 0.0, written=2, read=4, most_words=6)  # no name can be written, or read
    taught = fit_rewriter(pairs, RewriterSettings("acg", sizes), Schedule(20.0, 8, 1e-2, 1, 0, 0, "constant", 0, 1),
                          tmp_path, device="cpu")  # fmt: skip
    assert taught.write(["who wrote xyzzy please"]) == [["author xyzzy"]]


def test_a_session_tells_apart_what_the_query_does_not(tmp_path):
    pairs = pairs_of(["more of it"] * 2, ["red cars", "old books"], [["cars"], ["books"]])
    taught = fit_rewriter(pairs, RewriterSettings("hred-qs", SIZES), PACE, tmp_path, device="cpu")
    assert taught.write(["more of it"] * 2, [["cars"], ["books"]]) == [["red cars"], ["old books"]]


class Stopped(Exception):
    pass


def stop_at(step):
    def progress(done, *_):
        if done == step:
            raise Stopped

    return progress


def test_a_training_that_was_stopped_ends_with_the_same_weights(tmp_path):
    settings = RewriterSettings("acg", Sizes(8, 12, 10, 0.3, written=20, read=100, most_words=8))
    pace = Schedule(5.0, 2, 1e-2, 1, 0.0, 0.0, "constant", 4, 3)
    how = {"device": "cpu", "dev": pairs_of(), "score": corpus_bleu}
    whole = weights_of(fit_rewriter(pairs_of(), settings, pace, tmp_path / "whole", **how))
    with pytest.raises(Stopped):
        fit_rewriter(pairs_of(), settings, pace, tmp_path / "stopped", progress=stop_at(7), **how)
    again = weights_of(fit_rewriter(pairs_of(), settings, pace, tmp_path / "stopped", **how))
    assert all(torch.equal(whole[name], again[name]) for name in whole)


def test_the_best_epoch_is_kept(tmp_path):
    values = iter([0.1, 0.9, 0.5])
    seen = []

    def score(wanted, written):
        assert wanted == TARGETS
        seen.append(list(written))
        return next(values)

    pace = Schedule(3.0, 5, 5e-2, 1, 0.0, 0.0, "constant", 0, 1)
    taught = fit_rewriter(
        pairs_of(), RewriterSettings("acg", SIZES), pace, tmp_path, dev=pairs_of(), device="cpu", score=score
    )
    assert len({str(lines) for lines in seen}) > 1
    assert [lines[0] for lines in taught.write(ORIGINALS)] == seen[1]
    assert json.loads((tmp_path / "best.json").read_text())["epoch"] == 2.0


def test_the_checkpoint_of_another_training_is_refused(tmp_path):
    pace = Schedule(2.0, 5, 1e-2, 1, 0.0, 0.0, "constant", 1, 1)
    fit_rewriter(pairs_of(), RewriterSettings("acg", SIZES), pace, tmp_path, device="cpu")
    with pytest.raises(StoreError, match="expected a checkpoint with architecture"):
        fit_rewriter(pairs_of(), RewriterSettings("hred-qs", SIZES), pace, tmp_path, device="cpu")
    with pytest.raises(StoreError, match="expected a checkpoint with data"):
        fit_rewriter(pairs_of(targets=TARGETS[::-1]), RewriterSettings("acg", SIZES), pace, tmp_path, device="cpu")


def test_a_loss_that_is_no_number_stops_with_the_last_good_checkpoint(tmp_path):
    pace = Schedule(20.0, 5, 1e38, 1, 0.0, 0.0, "constant", 1, 1)
    with pytest.raises(TrainingStopped, match=r"expected a finite loss.*last good checkpoint is: "):
        fit_words("acg", pairs_of(), SIZES, pace, tmp_path, device="cpu")


def test_vectors_are_taken_and_kept_as_they_are(tmp_path):
    words = ["zanzibar", "blue", "unheard"]
    vectors = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [9.0, 9.0, 9.0]], np.float32)
    made = fit_words("acg", pairs_of(), SIZES, PACE, tmp_path, vectors=(words, vectors), device="cpu")
    assert made.sizes.embedding == 3
    table = made.network.embed.weight
    for word in ("zanzibar", "blue"):
        assert table[made.words.numbers[word]].tolist() == vectors[words.index(word)].tolist()
    with pytest.raises(DataError, match="no word of the training queries has a vector"):
        fit_words("acg", pairs_of(), SIZES, PACE, tmp_path / "no", vectors=(["ZANZIBAR"], vectors[:1]), device="cpu")


def test_presets_have_the_published_sizes():
    acg, hred = PRESETS["acg"], PRESETS["hred-qs"]
    assert (acg[0].sizes.hidden, acg[0].sizes.dropout, acg[0].sizes.written) == (512, 0.2, 10_000)
    assert (hred[0].sizes.session, hred[0].sizes.written) == (1024, 30_000)
    assert (acg[1].epochs, acg[1].batch_size, acg[1].learning_rate) == (100.0, 8, 1e-3)


def test_what_cannot_be_trained_is_refused(tmp_path):
    with pytest.raises(DataError, match="expected pairs of queries to train on, found none"):
        fit_rewriter(pairs_of([], []), RewriterSettings("acg", SIZES), PACE, tmp_path)
    with pytest.raises(ConfigError, match="kind: expected one of acg, hred-qs, seq2seq, causal, found 'gru'"):
        RewriterSettings("gru")
    with pytest.raises(ConfigError, match="only rewriters of the kinds acg and hred-qs use vectors="):
        fit_rewriter(pairs_of(), RewriterSettings("causal"), PACE, tmp_path, vectors=([], np.zeros((0, 3), np.float32)))
