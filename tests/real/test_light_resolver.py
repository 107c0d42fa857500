"""Who mentions in real results point to: the light resolver against labels read by a language model."""

from collections import Counter

import numpy as np
import pytest

from askew.core.groups import WHO
from askew.measures.relevance import confusion
from askew.measures.resolver import class_probabilities, open_resolver


@pytest.fixture(scope="module")
def held_out(data, program):
    labels = program.read_labels([data / "mentions" / "mentions.jsonl"], data)
    return [one for one in labels if one.split == "test"]


@pytest.fixture(scope="module")
def wanted(held_out):
    return np.array([WHO.index(one.who) for one in held_out])


def test_the_light_resolver_agrees_with_four_labels_of_five_in_the_held_out(program, held_out, wanted):
    assert len(held_out) == 270
    found = class_probabilities(open_resolver("light"), *program.positions(held_out)).argmax(axis=1)
    assert (found == wanted).mean() >= 0.80
    # More than by always taking the most frequent class.
    assert (found == wanted).mean() > np.bincount(wanted).max() / len(wanted) + 0.2
    clipped = np.array([one.clipped for one in held_out])
    assert clipped.any()
    assert (found[clipped] == WHO.index("other")).all()


@pytest.mark.parametrize("name", ["light", "neural"])
def test_the_known_errors_that_are_shipped_are_counted_on_every_label_of_the_first_round(name, program, data):
    labels = program.read_labels([data / "mentions" / "mentions.jsonl", program.LABELS], data)
    read = Counter(one.who for one in program.training_rows(labels) if one.round == 1)
    assert confusion(name, "who").sum(axis=1).tolist() == [read[who] for who in WHO]
