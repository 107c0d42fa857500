"""Every measure that is plugged in keeps the contract offered to plugin authors."""

import numpy as np
import pytest

from askew.core import plugins as registry
from askew.core.measure import Measure
from askew.core.protocols import Parameter
from askew.measures.catalogue import Catalogue, MeasureRequest, family_names
from askew.testing.contracts import check_measure_family


@pytest.mark.parametrize("name", registry.names("measure"))
def test_the_family_keeps_the_contract(name):
    check_measure_family(registry.load("measure", name))


@pytest.mark.parametrize(("value", "kept"), [(np.nan, True), (np.inf, False), (-np.inf, False)])
def test_a_query_may_be_undefined_but_no_value_is_infinite(monkeypatch, value, kept):
    def score(measure, inputs):
        return np.array([value if query == "q2" else 0.5 for query in inputs.ranked("score").query_ids.to_pylist()])

    family = registry.load("measure", "RaB")
    monkeypatch.setattr(family, "score", score)
    if kept:
        check_measure_family(family)
    else:
        with pytest.raises(AssertionError, match="finite"):
            check_measure_family(family)


@pytest.mark.parametrize("name", family_names(available=True))
def test_a_measure_asked_by_its_name_alone_leaves_nothing_unsaid(name):
    (asked,) = Catalogue().complete([name])
    assert asked.unsaid == {}


def test_what_an_option_changes_is_unsaid_and_what_the_text_names_is_not():
    options = {"tokens": "blank", "missing": "drop", "order": "score"}
    named, short = Catalogue(overrides=options).complete(["RaB(tc, tokens=seyedsalehi)@5", "RaB@5"])
    assert named.unsaid == {"missing": "drop"}
    assert short.unsaid == {"tokens": "blank", "missing": "drop"}


def test_a_measure_that_must_be_told_something_is_held_against_its_bare_defaults():
    class Family:
        name = "Mine"
        positional = ()
        parameters = {"lexicon": Parameter("", "a lexicon of one's own"), "depth": Parameter(3, "how deep")}

    mine = Measure("Mine", (("depth", 3), ("lexicon", "age@0123456789ab")), 5)
    assert MeasureRequest("Mine@5", mine, Family()).unsaid == {"lexicon": "age@0123456789ab"}
