"""Cross-encoders on tiny models that are built here: what they read, what they learn, what they refuse."""

import json

import numpy as np
import pytest
from toy_encoder import make_encoder

from askew.core.errors import ConfigError, DataError, StoreError
from askew.train.common import Schedule, TrainingStopped
from askew.train.crossencoder import (
    CrossEncoder,
    Examples,
    RankerSettings,
    RankerTexts,
    fit,
    loss_of,
)
from askew.train.negatives import groups_of

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("accelerate", reason="the extra 'train' is not installed")
transformers = pytest.importorskip("transformers", reason="the extra 'train' is not installed")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("tiny"))


def settings_for(tiny, **more):
    return RankerSettings(tiny, most_tokens=24, most_left_tokens=8, **more)


PACE = Schedule(epochs=1.0, batch_size=4, learning_rate=5e-3, warmup=0.0, save_every=1000, seed=1)
QUERIES = ["who wrote the book", "is the sky blue"] * 6
DOCS = ["he wrote his book", "the sky is blue", "man cars run fast", "woman cars run", "w1 w2 w3", "her cars"]


def toy():
    """Two queries asked again and again: document 0 answers the first, 1 the second; the others are wrong."""
    relevant = np.arange(12), np.arange(12) % 2
    negatives = np.repeat(np.arange(12), 4), np.tile([2, 3, 4, 5], 12)
    lean = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    return RankerTexts(QUERIES, DOCS, lean, np.array([1, 0, 1, 2, 0, 2])), groups_of(relevant, negatives, 12, each=2)


def test_two_texts_are_put_together_as_the_tokenizer_does_it(tiny):
    encoder = CrossEncoder.load(settings_for(tiny), "cpu")
    queries, docs = ["who wrote", "sky"], ["the book is blue", "cars run fast he his man she her woman w1 w2 w3"]
    made = encoder.batch(queries, docs)
    known = encoder.tokenizer(queries, docs, padding=True, pad_to_multiple_of=8)
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        assert made[name].tolist() == known[name], name


def test_the_right_text_is_cut_where_both_are_too_long(tiny):
    encoder = CrossEncoder.load(RankerSettings(tiny, most_tokens=16, most_left_tokens=8), "cpu")
    queries, docs = ["who wrote the"], [" ".join(["book"] * 40)]
    made = encoder.batch(queries, docs)
    known = encoder.tokenizer(queries, docs, truncation="only_second", max_length=16)
    assert made["input_ids"].tolist() == known["input_ids"]


def test_a_long_left_text_is_cut_at_its_own_limit(tiny):
    encoder = CrossEncoder.load(settings_for(tiny), "cpu")
    made = encoder.batch(["who  Wrote, the book " * 9], ["cars"])
    known = encoder.tokenizer(["who wrote , the book who wrote ,"], ["cars"], padding=True, pad_to_multiple_of=8)
    assert made["input_ids"].tolist() == known["input_ids"]


def test_a_tokenizer_that_marks_no_second_text_is_refused(tiny, tmp_path):
    from tokenizers.processors import TemplateProcessing

    encoder = CrossEncoder.load(settings_for(tiny), "cpu")
    plain = TemplateProcessing(single="[CLS] $A", pair="[CLS] $A $B", special_tokens=[("[CLS]", 2)])
    encoder.tokenizer.backend_tokenizer.post_processor = plain
    encoder.save(tmp_path)
    with pytest.raises(ConfigError, match=r"^tokenizer: "):
        CrossEncoder.load(settings_for(str(tmp_path)), "cpu")


def loss(name, scores, labels=None, there=None, lean=None, **more):
    scores = torch.tensor(scores)
    zeros = torch.zeros_like(scores)
    labels = zeros if labels is None else torch.tensor(labels)
    there = torch.ones_like(scores) if there is None else torch.tensor(there)
    lean = zeros if lean is None else torch.tensor(lean)
    return float(loss_of(RankerSettings(loss=name, **more), scores, labels, there, lean))


def test_losses_are_those_of_the_formulas():
    # BCE of a score of 0 is ln 2 whatever the label.
    assert loss("bce", [[0.0, 0.0]], [[1.0, 0.0]]) == pytest.approx(np.log(2))
    # Hinge: max(0, 1 - 2 + 0.5) = 0 and max(0, 1 - 2 + 3) = 2; their mean is 1.
    assert loss("hinge", [[2.0, 0.5, 3.0]]) == pytest.approx(1.0)
    # Bias-aware: the first negative leans by 1: max(0, 1 - 2 + 0.5 + 1) = 0.5; mean (0.5 + 2) / 2.
    assert loss("bias-aware", [[2.0, 0.5, 3.0]], lean=[[9.0, 1.0, 0.0]]) == pytest.approx(1.25)
    assert loss("bias-aware", [[2.0, 0.5, 3.0]], lean=[[9.0, 1.0, 0.0]], lean_weight=0.0) == pytest.approx(1.0)
    # Equal scores show each with 1/2: the mean lean is (1 + 0) / 2, weighed by 2.
    both = loss("lean-list", [[0.0, 0.0]], [[1.0, 0.0]], lean=[[1.0, 0.0]], lean_weight=2.0)
    assert both == pytest.approx(np.log(2) + 1.0)


def test_what_is_not_there_does_not_count():
    assert loss("bce", [[0.0, 99.0]], [[1.0, 0.0]], [[1.0, 0.0]]) == pytest.approx(np.log(2))
    assert loss("hinge", [[2.0, 0.5, 3.0]], there=[[1.0, 1.0, 0.0]]) == pytest.approx(0.0)
    alone = loss("lean-list", [[0.0, 99.0]], [[1.0, 0.0]], [[1.0, 0.0]], [[0.5, 9.0]], lean_weight=1.0)
    assert alone == pytest.approx(np.log(2) + 0.5)


@pytest.mark.parametrize("more", [{"loss": "bce"}, {"loss": "bias-aware"}])
def test_a_trained_ranker_puts_the_answer_first_and_opens_elsewhere(tiny, tmp_path, more):
    texts, examples = toy()
    pace = Schedule(epochs=12.0, batch_size=4, learning_rate=5e-3, warmup=0.0, save_every=1000, seed=1)
    encoder = fit(texts, examples, settings_for(tiny, **more), pace, tmp_path / "work", "cpu")
    right = encoder.score(QUERIES[:2], DOCS[:2])
    wrong = encoder.score([QUERIES[0]] * 4, DOCS[2:])
    assert right.min() > wrong.max() + 1
    encoder.save(tmp_path / "model")
    from sentence_transformers import CrossEncoder as Other

    opened = Other(str(tmp_path / "model"), device="cpu")
    again = opened.predict(list(zip(QUERIES[:2], DOCS[:2], strict=True)))
    assert again == pytest.approx(right, abs=1e-4)


def test_the_same_seed_trains_the_same_ranker(tiny, tmp_path):
    texts, examples = toy()
    made = [fit(texts, examples, settings_for(tiny), PACE, tmp_path / name, "cpu") for name in "ab"]
    first, second = (one.score(QUERIES[:6], DOCS) for one in made)
    assert first.tolist() == second.tolist()


def test_a_training_that_was_stopped_goes_on_to_the_same_end(tiny, tmp_path):
    texts, examples = toy()
    pace = Schedule(epochs=2.0, batch_size=4, learning_rate=5e-3, warmup=0.0, save_every=3, seed=1)
    whole = fit(texts, examples, settings_for(tiny), pace, tmp_path / "whole", "cpu").score(QUERIES[:6], DOCS)

    def stop(done, *_):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(texts, examples, settings_for(tiny), pace, tmp_path / "cut", "cpu", progress=stop)
    rest = fit(texts, examples, settings_for(tiny), pace, tmp_path / "cut", "cpu")
    assert rest.score(QUERIES[:6], DOCS) == pytest.approx(whole, abs=1e-6)


def test_a_checkpoint_of_another_architecture_is_refused(tiny, tmp_path):
    texts, examples = toy()
    fit(texts, examples, settings_for(tiny), PACE, tmp_path / "work", "cpu")
    wider = make_encoder(tmp_path / "wider", width=24)
    with pytest.raises(StoreError, match="architecture"):
        fit(texts, examples, settings_for(wider), PACE, tmp_path / "work", "cpu")


def test_a_loss_that_is_no_number_stops_the_training(tiny, tmp_path):
    texts, examples = toy()
    spoiled = RankerTexts(texts.left, texts.right, np.full(len(DOCS), np.nan), texts.group)
    with pytest.raises(TrainingStopped, match="loss, found nan"):
        fit(spoiled, examples, settings_for(tiny, loss="bias-aware"), PACE, tmp_path / "work", "cpu")


def test_scores_are_read_in_32_bits_whatever_the_steps_were_computed_in(tiny, tmp_path, monkeypatch):
    real = transformers.TrainingArguments
    monkeypatch.setattr(transformers, "TrainingArguments", lambda **given: real(**{**given, "bf16": True}))
    texts, examples = toy()
    encoder = fit(texts, examples, settings_for(tiny), PACE, tmp_path / "work", "cpu")
    scores = encoder.score(QUERIES[:6], DOCS)
    rounded = torch.from_numpy(scores).bfloat16().float().numpy()
    assert (scores != rounded).any()


def test_out_of_memory_says_which_batch_size_to_try(tiny, tmp_path, monkeypatch):
    def too_much(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr("askew.train.crossencoder.loss_of", too_much)
    texts, examples = toy()
    with pytest.raises(TrainingStopped, match=r"batch_size 4: .*batch_size=2 .*accumulate=2") as told:
        fit(texts, examples, settings_for(tiny), PACE, tmp_path / "work", "cpu")
    assert "\n" not in str(told.value)


def test_a_loss_that_is_no_number_names_the_last_good_checkpoint(tiny, tmp_path, monkeypatch):
    texts, examples = toy()
    pace = Schedule(epochs=2.0, batch_size=4, learning_rate=5e-3, warmup=0.0, save_every=2, seed=1)
    plain, seen = loss_of, []

    def spoiled(*given):
        seen.append(1)
        return plain(*given) * (float("nan") if len(seen) == 5 else 1.0)

    monkeypatch.setattr("askew.train.crossencoder.loss_of", spoiled)
    with pytest.raises(TrainingStopped, match=r"stopped after step 4.*checkpoint-4"):
        fit(texts, examples, settings_for(tiny), pace, tmp_path / "work", "cpu")


def test_examples_of_one_kind_or_none_are_refused(tiny, tmp_path):
    texts = RankerTexts(["sky"], ["blue"])
    nobody = Examples(np.zeros(0, int), np.zeros((0, 2), int), np.zeros((0, 2)), {"no negatives": 3})
    with pytest.raises(DataError, match="found none \\(3 queries with no negatives\\)"):
        fit(texts, nobody, settings_for(tiny), PACE, tmp_path, "cpu")
    only = Examples(np.array([0]), np.array([[0]]), np.array([[1.0]]))
    with pytest.raises(DataError, match="found only positive examples"):
        fit(texts, only, settings_for(tiny), PACE, tmp_path, "cpu")


@pytest.mark.parametrize(
    ("more", "told"),
    [({"loss": "bias-aware"}, "the lean"), ({"adversary": 1.0}, "the group")],
)
def test_a_loss_that_reads_what_is_not_there_is_refused(tiny, tmp_path, more, told):
    _, examples = toy()
    with pytest.raises(ConfigError, match=told):
        fit(RankerTexts(QUERIES, DOCS), examples, settings_for(tiny, **more), PACE, tmp_path, "cpu")


@pytest.mark.parametrize("wrong", [{"loss": "best"}, {"margin": -1.0}, {"most_left_tokens": 999}])
def test_wrong_settings_are_told(wrong):
    with pytest.raises(ConfigError):
        RankerSettings(**wrong)


def test_a_model_that_cannot_be_loaded_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "nothing"}))
    with pytest.raises(ConfigError, match="a cross model") as told:
        CrossEncoder.load(RankerSettings(str(tmp_path)), "cpu")
    assert "\n" not in str(told.value)
