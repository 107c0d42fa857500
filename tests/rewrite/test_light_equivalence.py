"""What the light model of equivalence reads of a pair."""

import numpy as np
import pytest

from askew.rewrite.equivalence import FEATURES, pair_features


def features(original, candidate):
    return dict(zip(FEATURES, pair_features([original], [candidate])[0].tolist(), strict=True))


def test_features_say_what_is_left_out_added_and_lost():
    found = features("where was mark jackson born in 1965", "birthplace of jackson 1966")
    assert found["left out"] == pytest.approx(3 / 5)  # mark, born, 1965
    assert found["added"] == pytest.approx(2 / 5)
    assert found["names lost"] == found["numbers lost"] == found["numbers added"] == 1
    assert found["question word lost"] == found[FEATURES[-2]] == 1  # the last word is an added one
    assert found["follows the query"] == found["none added"] == found["repeats"] == 0


def test_case_does_not_matter():
    pair = ("where was mark jackson born", "birthplace of mark jackson")
    assert np.array_equal(pair_features([pair[0]], [pair[1]]), pair_features([pair[0].upper()], [pair[1].upper()]))
