"""A training that is stopped goes on; one that goes wrong says so in one line and keeps the last good checkpoint."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("accelerate", reason="the extra 'train' is not installed")

from askew.core.errors import ConfigError, StoreError, UnknownName
from askew.core.files import write_whole
from askew.train.common import (
    MARK,
    Schedule,
    TrainingStopped,
    choose_device,
    last_checkpoint,
    remembered,
    run,
    seed_all,
    with_settings,
)

PACE = Schedule(epochs=3, batch_size=4, learning_rate=0.05, warmup=0.0, save_every=2, seed=3)
STEPS = 18


def make_trainer(work, pace=PACE, width=4, loss=None):
    """Rows of four numbers, a line through them, and dropout, so that the state of chance matters too."""
    import torch
    from transformers import Trainer, TrainingArguments

    seed_all(pace.seed)

    class Line(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.3)
            self.line = torch.nn.Linear(width, 1)

        def forward(self, x, y):
            error = ((self.line(self.drop(x))[:, 0] - y) ** 2).mean()
            return {"loss": error if loss is None else loss(error)}

    rng = np.random.default_rng(0)
    rows = [{"x": rng.normal(size=width).astype(np.float32), "y": np.float32(i % 3)} for i in range(24)]
    arguments = TrainingArguments(**pace.arguments(Path(work), "cpu"))
    return Trainer(model=Line(), args=arguments, train_dataset=rows)


def weights_of(trainer):
    return {name: value.detach().numpy().copy() for name, value in trainer.model.state_dict().items()}


def killed_training(work, step):
    """For another process: train, and die without a word after a step."""

    def progress(done, total, label):
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    run(make_trainer(work), PACE, {"data": "d"}, progress)


def test_a_training_killed_in_the_middle_goes_on_and_ends_with_the_same_weights(tmp_path):
    whole = make_trainer(tmp_path / "whole")
    run(whole, PACE, {"data": "d"})
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_common_running as t; "
    code += f"t.killed_training({str(tmp_path / 'killed')!r}, 9)"
    died = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    seen = []
    again = make_trainer(tmp_path / "killed")
    run(again, PACE, {"data": "d"}, lambda done, total, label: seen.append((done, total)))
    assert seen[0] == (9, STEPS), "step 8 was the last checkpoint"
    assert seen[-1] == (STEPS, STEPS)
    for name, value in weights_of(whole).items():
        np.testing.assert_array_equal(value, weights_of(again)[name])


def test_a_checkpoint_that_was_being_written_is_removed_and_the_one_before_it_taken(tmp_path):
    run(make_trainer(tmp_path), PACE, {"data": "d"})
    marks = sorted(tmp_path.glob(f"checkpoint-*/{MARK}"))
    assert [one.parent.name for one in marks] == ["checkpoint-16", "checkpoint-18"]
    about = json.loads(marks[-1].read_text())
    marks[-1].unlink()
    found = last_checkpoint(tmp_path, about)
    assert found == tmp_path / "checkpoint-16"
    assert not (tmp_path / "checkpoint-18").exists()


def test_a_checkpoint_of_another_architecture_is_refused_in_one_line(tmp_path):
    run(make_trainer(tmp_path), PACE, {"data": "d"})
    with pytest.raises(StoreError, match=r"architecture 'Line-\w{8}'") as refused:
        run(make_trainer(tmp_path, width=5), PACE, {"data": "d"})
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("identity", "pace", "said"),
    [
        ({"data": "other"}, PACE, "data 'other', found one with 'd'"),
        ({"data": "d"}, replace(PACE, learning_rate=0.01), "learning_rate 0.01, found one with 0.05"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path, identity, pace, said):
    run(make_trainer(tmp_path), PACE, {"data": "d"})
    with pytest.raises(StoreError, match=said):
        run(make_trainer(tmp_path, pace), pace, identity)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_stops_before_it_changes_a_weight_and_keeps_the_last_checkpoint(tmp_path, wrong):
    calls = []

    def loss(error):
        calls.append(1)
        return error * wrong if len(calls) == 6 else error

    trainer = make_trainer(tmp_path, loss=loss)
    with pytest.raises(TrainingStopped, match=r"step 5: .*checkpoint-4. .*learning_rate below 0.05"):
        run(trainer, PACE, {"data": "d"})
    assert all(np.isfinite(value).all() for value in weights_of(trainer).values())
    assert (tmp_path / "checkpoint-4" / MARK).is_file()


def test_weights_that_are_no_numbers_are_never_marked_as_a_good_checkpoint(tmp_path):
    import torch

    calls = []

    def loss(error):
        calls.append(1)
        if len(calls) == 2:  # the last step before the first checkpoint
            with torch.no_grad():
                trainer.model.line.bias.fill_(float("nan"))
        return error

    trainer = make_trainer(tmp_path, loss=loss)
    with pytest.raises(TrainingStopped, match="none yet"):
        run(trainer, PACE, {"data": "d"})


@pytest.mark.parametrize(
    ("batch_size", "accumulate", "said"),
    [
        (4, 3, "batch_size 4: try batch_size=2 and accumulate=6"),
        (3, 1, "batch_size 3: try batch_size=1 and accumulate=3"),
        (1, 1, "batch_size 1, which is one example"),
    ],
)
def test_out_of_memory_says_which_batch_size_to_try(tmp_path, batch_size, accumulate, said):
    def loss(error):
        raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

    pace = replace(PACE, batch_size=batch_size, accumulate=accumulate)
    with pytest.raises(TrainingStopped, match=said):
        run(make_trainer(tmp_path, pace, loss=loss), pace, {})


def test_another_error_is_not_mistaken_for_a_lack_of_memory(tmp_path):
    def loss(error):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        run(make_trainer(tmp_path, loss=loss), PACE, {})


def test_without_checkpoints_nothing_is_written(tmp_path):
    pace = replace(PACE, save_every=0, epochs=1)
    run(make_trainer(tmp_path / "w", pace), pace, {})
    assert not list(tmp_path.glob("w/checkpoint-*"))


def test_a_finished_part_is_read_again_and_made_anew_when_it_depends_on_something_else(tmp_path):
    made = []

    def make():
        made.append(1)
        return [0.5, len(made)]

    file = tmp_path / "part.json"
    assert remembered(file, {"seed": 1}, make) == [0.5, 1]
    assert remembered(file, {"seed": 1}, make) == [0.5, 1]
    assert remembered(file, {"seed": 2}, make) == [0.5, 2]
    file.write_text("{half", encoding="utf-8")
    assert remembered(file, {"seed": 2}, make) == [0.5, 3]


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "a" / "facts.json"
    write_whole(file, "first")

    def fails(_):
        raise OSError("no room left")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no room"):
        write_whole(file, "second")
    assert file.read_text(encoding="utf-8") == "first"


def test_settings_are_checked_by_name_and_by_type():
    assert with_settings({"epochs": 2}, Schedule(), "here").epochs == 2
    with pytest.raises(UnknownName, match=r"unknown setting 'epoch' in here: did you mean 'epochs'"):
        with_settings({"epoch": 2}, Schedule(), "here")
    with pytest.raises(ConfigError, match="expected batch_size to be a int, found 'many'"):
        with_settings({"batch_size": "many"}, Schedule(), "here")
    with pytest.raises(ConfigError, match="expected epochs"):
        with_settings({"batch_size": 0}, Schedule(), "here")


def test_a_device_that_is_not_here_is_told():
    assert choose_device("cpu") == "cpu"
    assert choose_device(None) in ("cpu", "cuda")
    with pytest.raises(ConfigError, match=r"'abacus'.* 'auto'.*'cpu'"):
        choose_device("abacus")
