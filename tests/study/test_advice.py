"""The advice of an audit is not given where the error of the estimates could reverse it."""

import pytest

from askew.measures.decompose import Decomposition, LeanPart
from askew.measures.relevance import share_error
from askew.study.audit.report import _of_parts


def parts(off, low, high):
    def one(name, share, low, high):
        return LeanPart("why", name, share, low, high, share, {"male": 0.1, "female": 0.1}, 0.0, 0.0, 0.0)

    made = [one("offtopic", off, low, high), one("warranted", 1 - off, 1 - high, 1 - low)]
    return Decomposition("run", "ARaB(tf)@10", "ARaB", "neural@0", 10, 100, 0.0, 0.1, made)


@pytest.mark.parametrize(("off", "wanted"), [(0.95, "off topic"), (0.05, "on topic"), (0.55, None), (0.45, None)])
def test_no_advice_is_given_within_the_error_of_the_off_topic_share(off, wanted):
    assert 0.05 < share_error() < 0.4
    said = _of_parts(parts(off, off - 0.01, off + 0.01))
    assert [wanted in one for one in said] == ([] if wanted is None else [True])


def test_no_advice_is_given_within_the_interval_either():
    assert _of_parts(parts(0.95, 0.45, 1.0)) == [] == _of_parts(parts(0.05, 0.0, 0.55))
