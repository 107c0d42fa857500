"""Several classifiers asked as one."""

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError
from askew.rewrite.classifiers import LogitsClassifier, MeanClassifier, TogetherClassifier, TransformerClassifier
from askew.testing.contracts import check_classifier


def saying(*odds, labels=("a", "b")):
    """A classifier that says the same of every text: these odds."""
    return LogitsClassifier(lambda texts: np.log(np.tile(np.array(odds, float), (len(texts), 1))), labels)


def test_the_probability_is_the_mean_by_hand():
    found = MeanClassifier([saying(1, 3), saying(4, 1)]).classify(["x"])
    assert found.probabilities.tolist() == [pytest.approx([(0.25 + 0.8) / 2, (0.75 + 0.2) / 2])]
    assert found.names() == ["a"]


def test_labels_in_another_order_are_put_in_order():
    found = MeanClassifier([saying(1, 3), saying(4, 1, labels=("b", "a"))]).classify(["x"])
    assert found.probabilities.tolist() == [pytest.approx([(0.25 + 0.2) / 2, (0.75 + 0.8) / 2])]


def test_an_unsure_mean_is_withheld():
    assert MeanClassifier([saying(1, 3), saying(3, 1)], abstain_below=0.6).classify(["x"]).names() == [None]


def test_it_keeps_the_contract_of_a_classifier():
    check_classifier(MeanClassifier([saying(1, 3), saying(4, 1)]))


@given(st.lists(st.tuples(st.floats(0.01, 9), st.floats(0.01, 9)), min_size=2, max_size=5), st.randoms())
def test_the_order_of_the_classifiers_does_not_matter(odds, random):
    members = [saying(*one) for one in odds]
    mixed = random.sample(members, len(members))
    one, other = (MeanClassifier(given).classify(["x"]).probabilities for given in (members, mixed))
    np.testing.assert_allclose(one, other)


def test_one_classifier_or_other_labels_are_refused():
    with pytest.raises(ConfigError) as refused:
        MeanClassifier([saying(1, 2)])
    assert refused.value.code == "one-classifier"
    with pytest.raises(ConfigError) as refused:
        MeanClassifier([saying(1, 2), saying(1, 2, labels=("a", "c"))])
    assert refused.value.code == "other-labels"


@pytest.mark.filterwarnings("default")
def test_two_checkpoints_are_asked_together(tiny_classifier, tmp_path):
    other = tmp_path / "calibrated"
    shutil.copytree(tiny_classifier, other)
    (other / "calibration.json").write_text(json.dumps({"temperature": 4.0}))
    texts = ["is she a good nurse", "he and his brother"]
    together = TogetherClassifier(f"{tiny_classifier}, {other}")
    apart = [TransformerClassifier(str(folder)).classify(texts).probabilities for folder in (tiny_classifier, other)]
    np.testing.assert_allclose(together.classify(texts).probabilities, np.mean(apart, axis=0), atol=1e-6)
    assert [one["temperature"] for one in together.settings()["members"]] == [1.0, 4.0]
