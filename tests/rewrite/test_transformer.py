"""Trained classifiers: calibrated probabilities, abstention, and the file that carries the temperature."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.rewrite.classifiers import (
    LogitsClassifier,
    TransformerClassifier,
    fit_temperature,
    log_loss,
    read_temperature,
    softmax,
    write_calibration,
)
from askew.testing.contracts import check_classifier

LABELS = ("neutral", "female", "male")


def by_length(texts):
    """Logits from the length of a text: long texts are female."""
    return np.array([[0.0, len(text) / 10, -1.0] for text in texts]).reshape(-1, 3)


def test_any_source_of_logits_keeps_the_contract():
    found = check_classifier(LogitsClassifier(by_length, LABELS, temperature=2.0))
    assert found.names()[0] == "female"
    assert found.names()[2] == "neutral"


def test_a_probability_by_hand():
    found = LogitsClassifier(lambda texts: np.array([[0.0, np.log(3)]]), ("a", "b")).classify(["x"])
    assert found.probabilities.tolist() == [pytest.approx([0.25, 0.75])]
    hotter = LogitsClassifier(lambda texts: np.array([[0.0, np.log(9)]]), ("a", "b"), temperature=2.0).classify(["x"])
    assert hotter.probabilities.tolist() == [pytest.approx([0.25, 0.75])]


def test_unsure_answers_are_withheld():
    def logits(texts):
        return np.array([[0.0, np.log(3)], [0.0, 0.1]])

    assert LogitsClassifier(logits, ("a", "b"), abstain_below=0.7).classify(["x", "y"]).names() == ["b", None]
    assert LogitsClassifier(logits, ("a", "b"), abstain_below=0.76).classify(["x", "y"]).names() == [None, None]


@pytest.mark.parametrize(
    "labels",
    [("a",), ("a", "a")],
)
def test_fewer_than_two_labels_are_refused(labels):
    with pytest.raises(ConfigError, match="expected"):
        LogitsClassifier(by_length, labels)


@pytest.mark.parametrize("wrong", [np.zeros((2, 3)), np.zeros((1, 2)), np.full((1, 3), np.nan)])
def test_logits_of_another_shape_are_refused(wrong):
    with pytest.raises(ConfigError, match="expected 1 rows of 3 finite logits"):
        LogitsClassifier(lambda texts: wrong, LABELS).classify(["x"])


def overconfident(temperature, n=4000):
    """Labels drawn from probabilities, and the logits of a model that exaggerates them."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 2, (n, 3))
    labels = np.array([rng.choice(3, p=p) for p in softmax(logits)])
    return logits * temperature, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_that_was_put_in_is_found_again(temperature):
    logits, labels = overconfident(temperature)
    assert fit_temperature(logits, labels) == pytest.approx(temperature, rel=0.06)


def test_the_fitted_temperature_has_the_lowest_loss():
    logits, labels = overconfident(3.0, 500)
    best = fit_temperature(logits, labels)
    losses = [log_loss(logits, labels, best * factor) for factor in (0.8, 0.97, 1.0, 1.03, 1.25)]
    assert min(losses) == losses[2]


def test_the_loss_is_the_mean_of_the_negative_logarithms():
    logits = np.log(np.array([[0.25, 0.75], [0.5, 0.5]]))
    assert log_loss(logits, np.array([1, 0])) == pytest.approx(-(np.log(0.75) + np.log(0.5)) / 2)


@given(st.lists(st.tuples(*[st.floats(-500, 500)] * 3), min_size=1, max_size=5), st.floats(0.05, 20))
def test_probabilities_are_finite_and_sum_to_one_and_keep_the_order(rows, temperature):
    logits = np.array(rows)
    found = softmax(logits, temperature)
    assert np.allclose(found.sum(axis=1), 1)
    assert (np.take_along_axis(found, logits.argmax(axis=1)[:, None], axis=1)[:, 0] == found.max(axis=1)).all()


def test_labels_must_fit_the_logits():
    with pytest.raises(DataError) as refused:
        fit_temperature(np.zeros((2, 3)), np.array([0]))
    assert refused.value.code == "unequal-lengths"
    with pytest.raises(DataError, match="labels from 0 to 2"):
        fit_temperature(np.zeros((2, 3)), np.array([0, 3]))


def test_a_calibration_is_written_beside_the_model_and_read_back(tmp_path):
    assert read_temperature(tmp_path) == 1.0
    logits, labels = overconfident(3.0, 500)
    facts = write_calibration(tmp_path, logits, labels)
    assert read_temperature(tmp_path) == facts["temperature"] == fit_temperature(logits, labels)
    assert facts["log_loss_after"] < facts["log_loss_before"]
    assert [path.name for path in tmp_path.iterdir()] == ["calibration.json"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"temperature": 0}', '{"temperature": "2"}', '{"temperature": true}'])
def test_a_damaged_calibration_is_an_error(tmp_path, text):
    (tmp_path / "calibration.json").write_text(text)
    with pytest.raises(DataError, match=r"calibration.json: expected"):
        read_temperature(tmp_path)


@pytest.mark.filterwarnings("default")
class TestWithAModel:
    """A tiny checkpoint through the real loader."""

    def test_a_checkpoint_keeps_the_contract(self, tiny_classifier):
        classifier = TransformerClassifier(str(tiny_classifier))
        found = check_classifier(classifier)
        assert classifier.labels == LABELS
        assert len(set(found.probabilities.max(axis=1).round(6))) > 3

    def test_the_size_of_a_batch_does_not_matter(self, tiny_classifier):
        texts = ["is she a good nurse", "he", "who was his brother and his brother", ""]
        one = TransformerClassifier(str(tiny_classifier), batch_size=1).classify(texts)
        all_together = TransformerClassifier(str(tiny_classifier)).classify(texts)
        assert np.allclose(one.probabilities, all_together.probabilities, atol=1e-5)

    def test_the_temperature_beside_the_model_is_used_and_is_part_of_its_identity(self, tiny_classifier, tmp_path):
        folder = tmp_path / "calibrated"
        shutil.copytree(tiny_classifier, folder)
        (folder / "calibration.json").write_text(json.dumps({"temperature": 4.0}))
        plain, calibrated = TransformerClassifier(str(tiny_classifier)), TransformerClassifier(str(folder))
        texts = ["is she a good nurse", "he and his brother"]
        assert calibrated.settings()["temperature"] == 4.0
        assert calibrated.settings()["model"] != plain.settings()["model"]
        hot, cold = calibrated.classify(texts), plain.classify(texts)
        assert hot.chosen.tolist() == cold.chosen.tolist()
        assert (hot.probabilities.max(axis=1) < cold.probabilities.max(axis=1)).all()
        told = TransformerClassifier(str(folder), temperature=1.0).classify(texts)
        assert np.allclose(told.probabilities, cold.probabilities, atol=1e-6)

    def test_labels_can_be_renamed(self, tiny_classifier):
        assert TransformerClassifier(str(tiny_classifier), labels="n, f, m").labels == ("n", "f", "m")
        with pytest.raises(ConfigError, match="expected 3 label names"):
            TransformerClassifier(str(tiny_classifier), labels="n,f")

    def test_a_folder_without_a_model_is_refused(self, tiny_classifier, tmp_path):
        with pytest.raises(ConfigError, match="cannot be loaded"):
            TransformerClassifier(str(tmp_path))
