"""Trainers, classifiers and selectors from Python: fit, predict, save and load, on tiny models."""

import json

import polars as pl
import pytest
from toy_encoder import make_encoder

from askew.core.errors import ConfigError, DataError, StoreError, UnknownName
from askew.train.common import Trained
from askew.train.facade import Classifier, Selector, Trainer

AGE = {"old": ["elderly", "retired"], "young": ["teen", "teens"]}
TEXTS = ["jobs for teens", "best tea", "homes for the elderly", "elderly teen"]


# Classifiers that count words


def test_a_lexical_classifier_labels_texts_by_the_groups_given():
    classifier = Classifier("lexical", groups=AGE)
    assert classifier.labels == ("neutral", "old", "young")
    assert classifier.predict(TEXTS) == ["young", "neutral", "old", "neutral"]
    found = classifier.predict_proba(TEXTS)
    assert found.columns == ["neutral", "old", "young"] and found.height == 4
    assert found.sum_horizontal().to_list() == pytest.approx([1.0] * 4)
    assert Classifier("lexical", groups=AGE, ties="abstain").predict(TEXTS)[3] is None


def test_a_classifier_of_words_learns_nothing_and_refuses_labels_that_it_does_not_have():
    classifier = Classifier("lexical", groups=AGE)
    assert classifier.fit(TEXTS[:2], ["young", "neutral"]) is classifier
    with pytest.raises(DataError, match="expected the labels neutral, old, young, found 'female'"):
        classifier.fit(["x"], ["female"])
    with pytest.raises(DataError, match="found 1 texts and 2 labels"):
        classifier.fit(["x"], ["old", "old"])
    with pytest.raises(DataError, match="strings, found 1"):
        classifier.fit(["x"], [1])


def test_a_lexical_classifier_is_saved_with_its_words_and_opens_again(tmp_path):
    Classifier("lexical", groups=AGE, ties="abstain").save(tmp_path / "kept")
    again = Classifier.load(tmp_path / "kept")
    assert again.predict(TEXTS) == ["young", "neutral", "old", None]
    with pytest.raises(StoreError, match="an empty folder"):
        again.save(tmp_path / "kept")


def test_a_folder_without_a_classifier_or_with_a_damaged_one_is_told(tmp_path):
    with pytest.raises(DataError, match="saved or trained"):
        Classifier.load(tmp_path)
    (tmp_path / "classifier.json").write_text("{}")
    with pytest.raises(DataError, match=r"Classifier.save"):
        Classifier.load(tmp_path)


def test_a_classifier_that_nobody_has_is_told_and_one_that_is_not_trained_too():
    with pytest.raises(UnknownName, match="lexical"):
        Classifier("lexicl").predict(TEXTS)
    with pytest.raises(ConfigError, match=r"fit\(texts, labels\)"):
        Classifier("transformer").predict(TEXTS)
    with pytest.raises(ConfigError, match="data, found 2"):
        Trainer("classifier").fit("a", "b", out="c")


# Trained ones


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("torch", reason="the extra 'train' is not installed")
    pytest.importorskip("accelerate", reason="the extra 'train' is not installed")
    return make_encoder(tmp_path_factory.mktemp("tiny"))


LABELED = [(f"{frame} {word}", label) for frame in ("who wrote", "the book", "is", "run fast", "w1", "w2")
            for word, label in (("he", "m"), ("she", "f"), ("sky", "o"))]  # fmt: skip


def test_a_transformer_is_fitted_saved_and_loaded(tiny, tmp_path):
    texts, labels = zip(*LABELED, strict=True)
    own = {"model": tiny, "folds": 2, "epochs": 20, "batch_size": 6, "learning_rate": 5e-3, "save_every": 0}
    classifier = Classifier("transformer", **own)
    assert classifier.fit(texts, labels, device="cpu") is classifier
    assert classifier.labels == ("f", "m", "o")
    assert classifier.trained.measured["cross_validation"]["n"] == len(texts)
    predicted = classifier.predict(texts)
    assert sum(got == want for got, want in zip(predicted, labels, strict=True)) > len(texts) // 2
    classifier.save(tmp_path / "kept")
    again = Classifier.load(tmp_path / "kept")
    assert again.predict(texts) == predicted
    assert again.predict_proba(texts).equals(classifier.predict_proba(texts))
    (tmp_path / "kept" / "classifier.json").unlink()  # as askew train classifier leaves a folder
    assert Classifier.load(tmp_path / "kept").predict(texts) == predicted


def test_a_trainer_fits_a_data_frame_and_says_when_the_model_was_there_already(tiny, tmp_path):
    texts, labels = zip(*LABELED, strict=True)
    other = [label.replace("o", "x") for label in labels]
    frame = pl.DataFrame({"query_id": [str(at) for at in range(len(texts))], "text": texts, "label": other})
    trainer = Trainer("classifier", model=tiny, folds=2, epochs=1, save_every=0)
    done = trainer.fit(frame, out=tmp_path / "model", device="cpu")
    assert isinstance(done, Trained) and done.new and done.folder == tmp_path / "model"
    assert done.tables[0].columns == ("model", "accuracy", "F1 f", "F1 m", "F1 x", "ECE")
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "askew.Trainer('classifier'" in card and str(tmp_path) not in card and tiny not in card
    again = trainer.fit(frame, out=tmp_path / "model", device="cpu")
    assert not again.new and again.measured == done.measured


def test_a_ranker_of_other_groups_is_trained_on_what_is_in_memory(tiny, tmp_path):
    docs = {"d1": "the elderly run", "d2": "teens run fast", "d3": "the sky is blue", "d4": "teen cars"}
    run = {"q1": {"d1": 4.0, "d2": 3.0, "d3": 2.0, "d4": 1.0}}
    own = {"model": tiny, "groups": AGE, "adversary": 0.5, "part": "", "most_tokens": 32, "most_left_tokens": 8}
    trainer = Trainer("ranker", **own, count=3, epochs=1, save_every=0)
    given = {"docs": docs, "queries": {"q1": "is the sky blue"}, "qrels": {"q1": {"d3": 1}}}
    done = trainer.fit(run, **given, out=tmp_path / "model", device="cpu")
    assert (done.measured["queries"], done.measured["pairs"], done.measured["held_out"]) == (1, 4, 0)
    written = "".join((tmp_path / "model" / name).read_text() for name in ("README.md", "measured.json"))
    assert "old-young" in written and "male" not in written and "rekabsaz" not in written


QUERIES = [f"who wrote w{i}" for i in range(20)]
PAIRS = pl.DataFrame(
    [
        (f"q{i}", text, f"the {word}", word == "book", word == "cars")
        for i, text in enumerate(QUERIES)
        for word in ("book", "cars")
    ],
    schema=["query_id", "original_text", "text", "fair", "negative"],
    orient="row",
)


def test_a_selector_is_fitted_on_pairs_and_takes_what_they_teach(tiny, tmp_path):
    own = {"model": tiny, "text_tokens": 12, "epochs": 15, "batch_size": 8, "learning_rate": 5e-3, "save_every": 0}
    selector = Selector(**own)
    assert selector.fit(PAIRS, device="cpu") is selector
    assert selector.trained.measured["told apart"]["value"] == pytest.approx(1.0)
    asked = {"who wrote w3": ["the cars", "the book"], "is the sky blue": [], "run fast": ["fast cars", "fast book"]}
    found = selector.predict(asked, device="cpu")
    assert found.columns == ["query_id", "original_text", "text", "is_reformulated"]
    assert found["text"].to_list() == ["the book", "is the sky blue", "fast book"]
    assert found["is_reformulated"].to_list() == [True, False, True]
    assert selector.predict({"w1": []})["text"].to_list() == ["w1"]
    selector.save(tmp_path / "kept")
    again = Selector.load(tmp_path / "kept")
    assert again.predict(asked, device="cpu").equals(found)
    assert set(again.predict(PAIRS, device="cpu")["text"].to_list()) == {"the book"}


def test_a_selector_that_is_not_trained_or_not_there_is_told(tmp_path):
    with pytest.raises(ConfigError, match=r"fit\(store\)"):
        Selector().predict({})
    with pytest.raises(DataError, match=r"with selector.json"):
        Selector.load(tmp_path)
    (tmp_path / "selector.json").write_text(json.dumps([]))
    with pytest.raises(DataError, match=r"selector.json: the file"):
        Selector.load(tmp_path)


def test_the_examples_of_the_classes_say_what_they_show():
    import doctest

    from askew.train import facade

    found = doctest.testmod(facade)
    assert found.attempted >= 4 and not found.failed
