"""The light model of equivalence: what it reads of a pair, and what it says."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.filters.light_equivalence import FEATURES, WEIGHTS, light_equivalence, pair_features


def features(original, candidate):
    return dict(zip(FEATURES, pair_features([original], [candidate])[0].tolist(), strict=True))


def same(original, candidate):
    return float(light_equivalence([original], [candidate])["same"][0])


def test_the_shipped_weights_are_of_these_features():
    stored = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    assert tuple(stored["features"]) == FEATURES
    assert {name: len(weights) for name, weights in stored["weights"].items()} == dict.fromkeys(
        ("same", "natural"), len(FEATURES)
    )


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=4))
def test_every_pair_has_two_probabilities(pairs):
    found = light_equivalence([a for a, _ in pairs], [b for _, b in pairs])
    assert set(found) == {"same", "natural"}
    for values in found.values():
        assert values.shape == (len(pairs),)
        assert np.all((values >= 0) & (values <= 1))


@given(st.lists(st.sampled_from(["who is ann", "ann 3", "paris in may", "is it cold", ""]), min_size=2, max_size=6))
def test_a_pair_counts_alone_as_in_company(texts):
    together = light_equivalence(texts, texts[::-1])
    alone = [light_equivalence([a], [b]) for a, b in zip(texts, texts[::-1], strict=True)]
    for name, values in together.items():
        assert np.allclose(values, [one[name][0] for one in alone])


def test_features_say_what_is_left_out_added_and_lost():
    found = features("where was mark jackson born in 1965", "birthplace of jackson 1966")
    assert found["left out"] == pytest.approx(3 / 5)  # mark, born, 1965
    assert found["added"] == pytest.approx(2 / 5)
    assert found["names lost"] == found["numbers lost"] == found["numbers added"] == 1
    assert found["question word lost"] == found["ends with added word"] == 1
    assert found["follows the query"] == found["none added"] == found["repeats"] == 0


def test_case_does_not_matter():
    pair = ("where was mark jackson born", "birthplace of mark jackson")
    assert np.array_equal(pair_features([pair[0]], [pair[1]]), pair_features([pair[0].upper()], [pair[1].upper()]))


def test_a_lost_name_and_words_from_elsewhere_make_the_same_need_less_likely():
    query = "where was mark jackson born"
    kept = same(query, "birthplace of mark jackson")
    assert same(query, "birthplace of the coach") < kept
    assert same(query, f"{query} york 2013 lighting financial") < kept
