"""Settings of a training by name: each goes to the part that has it, a preset comes first, defaults stand once."""

import pytest
from typer.testing import CliRunner

from askew.core.errors import ConfigError, UnknownName
from askew.core.groups import Groups
from askew.search.rerank import RerankSettings
from askew.train.common import by_name, from_names
from askew.train.facade import Trainer, trainers
from askew.train.negatives import NegativesJob
from askew.ui.cli.main import app
from askew.ui.cli.settings_help import defaults_of

KINDS = ("classifier", "selector", "ranker", "adapter", "generator", "rewriter")


def test_six_kinds_are_trained_each_with_one_settings_object():
    assert tuple(trainers()) == KINDS
    for _, made, _ in trainers().values():
        assert from_names(made, {}, "here") == made()


@pytest.mark.parametrize("kind", KINDS)
def test_every_setting_that_has_a_name_can_be_given_by_it(kind):
    names = Trainer(kind).names
    assert "seed" in names and Trainer(kind, seed=11).names["seed"] == 11
    with pytest.raises(UnknownName, match="unknown setting 'sead' in askew train: did you mean 'seed'"):
        Trainer(kind, sead=11)


def test_a_name_goes_to_every_part_that_has_it_and_an_outer_one_hides_an_inner_one():
    job = Trainer("ranker", seed=3, lean="bool", groups={"old": ["elderly"], "young": ["teen"]}, epochs=2).settings
    assert (job.sampling.seed, job.pace.seed, job.counting.lean, job.pace.epochs) == (3, 3, "bool", 2)
    assert job.counting.groups.names == ("old", "young")
    tuned = Trainer("adapter", method="lora", model="x", epochs=0.5).settings
    assert (tuned.model, tuned.pace.epochs) == ("x", 0.5) and tuned.trained[0].model == "x"


def test_a_preset_comes_first_and_what_is_given_changes_it():
    job = from_names(NegativesJob, {"preset": "original", "count": 5, "depth": None}, "here")
    assert (job.sampling.share, job.sampling.count, job.sampling.depth) == (0.0, 5, 1000)
    assert Trainer("selector", preset="refairmulate2025-code").settings.passages == "literal"
    assert Trainer("rewriter", kind="seq2seq").settings.text.optimizer == "adafactor"
    with pytest.raises(UnknownName, match="unknown preset 'best'"):
        Trainer("generator", preset="best")


def test_settings_of_parts_that_are_not_used_are_refused():
    with pytest.raises(UnknownName, match="setting 'ridge'"):
        Trainer("adapter", method="full", ridge=1.0)


def test_texts_with_commas_are_several_and_wrong_types_are_refused():
    assert Trainer("classifier", classes="old, young", drop=["x"]).settings.classes == ("old", "young")
    for wrong in ({"epochs": "many"}, {"classes": 3}, {"folds": 1}):
        with pytest.raises(ConfigError, match=f"{next(iter(wrong))}"):
            Trainer("classifier", **wrong)


def test_the_pace_of_a_generator_is_that_of_its_kind_of_model():
    assert Trainer("generator", kind="seq2seq").settings.pace.schedule == "linear"
    assert Trainer("generator").settings.pace.schedule == "cosine"


def test_an_unknown_kind_is_told():
    with pytest.raises(UnknownName, match="unknown kind of model 'clasifier': did you mean 'classifier'"):
        Trainer("clasifier")


@pytest.mark.parametrize("command", ["negatives", "rerank", *(f"train {kind}" for kind in KINDS)])
def test_the_help_of_a_command_shows_the_defaults_of_its_settings(command):
    shown = " ".join(CliRunner().invoke(app, [*command.split(), "--help"]).output.split())
    defaults = defaults_of(command.split()[-1])
    for option, setting in (("--seed", "seed"), ("--depth", "depth"), ("--folds", "folds"), ("--margin", "margin")):
        if f" {option} " in shown:
            assert f"[default: {defaults[setting]}]" in shown.partition(f" {option} ")[2].partition(" --")[0]


def test_no_default_of_a_setting_is_repeated_in_a_command():
    import inspect

    from askew.ui.cli import train
    from askew.ui.cli import train as train_ranker
    from askew.ui.cli import train as train_text

    for module in (train, train_ranker, train_text):
        for name, command in inspect.getmembers(module, inspect.isfunction):
            if name.endswith("_command"):
                given = [one.default for one in inspect.signature(command).parameters.values()]
                assert {one for one in given if one is not inspect.Parameter.empty} <= {None, False}, name


def test_settings_are_named_once_whatever_their_part():
    assert by_name(RerankSettings("detconstsort"))["method"] == "detconstsort"
    assert isinstance(by_name(RerankSettings())["groups"], Groups)
