"""Code that all trainers share: the training schedule, devices, seeds, and runs that can be resumed.

``run`` takes any trainer of transformers or sentence-transformers. It resumes from the last complete checkpoint of the
same training and refuses a checkpoint of another training. It stops before a loss that is not finite changes the
weights, and suggests smaller settings if the memory is not sufficient.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, StageError, StoreError
from askew.core.fingerprint import fingerprint
from askew.core.whole_files import write_whole
from askew.models.find import need

# Called with done, total (0 if unknown) and optionally a label, as askew.cli.render.Waiting.advance.
Progress = Callable[..., None]
MARK = "askew-checkpoint.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_KEPT_CHECKPOINTS = 2  # the previous checkpoint is kept until the last one is complete


@dataclass(frozen=True)
class Schedule:
    """The training schedule. ``warmup`` is a share of the steps; ``save_every`` is a number of steps (0: no
    checkpoints).

    ``accumulate`` batches make one step. Half the batch size with twice the accumulation is the same training in less
    memory.
    """

    epochs: float = 3.0
    batch_size: int = 16
    learning_rate: float = 2e-5
    accumulate: int = 1
    warmup: float = 0.1
    weight_decay: float = 0.01
    schedule: str = "linear"
    save_every: int = 200
    seed: int = 7

    def __post_init__(self) -> None:
        fine = self.epochs > 0 and self.learning_rate > 0 and self.weight_decay >= 0 and 0 <= self.warmup < 1
        if not fine or min(self.batch_size, self.accumulate) < 1 or min(self.save_every, self.seed) < 0:
            raise ConfigError(
                "training: expected epochs, learning_rate, batch_size and accumulate to be above 0; weight_decay, "
                f"save_every and seed to be 0 or more; and 0 <= warmup < 1; found {self}"
            )

    def arguments(self, work: Path, device: str) -> dict[str, Any]:
        """The arguments that every TrainingArguments of transformers and sentence-transformers takes."""
        return {
            "output_dir": str(work), "seed": self.seed, "data_seed": self.seed, "num_train_epochs": self.epochs,
            "per_device_train_batch_size": self.batch_size, "gradient_accumulation_steps": self.accumulate,
            "learning_rate": self.learning_rate, "warmup_steps": self.warmup, "weight_decay": self.weight_decay,
            "lr_scheduler_type": self.schedule, "save_strategy": "steps" if self.save_every else "no",
            "save_steps": self.save_every or 1,
            "save_total_limit": _KEPT_CHECKPOINTS, "eval_strategy": "no", "logging_strategy": "no",
            "use_cpu": device == "cpu", "dataloader_pin_memory": device != "cpu", "report_to": [],
            "disable_tqdm": True,
        }  # fmt: skip


def seed_all(seed: int) -> None:
    """Set the seed of Python, NumPy and PyTorch."""
    import torch

    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def choose_device(wanted: str | None = None) -> str:
    """The wanted device, or by default ``cuda`` if available, else ``cpu``; a missing device is an error."""
    need("torch", "training", "train")
    import torch

    there = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    if wanted in (None, "", "auto"):
        return there[-1]
    if str(wanted).partition(":")[0] not in there:
        raise ConfigError(f"device {wanted!r}: expected 'auto' or an available device ({', '.join(map(repr, there))})")
    return str(wanted)


class TrainingStopped(StageError):
    """The training cannot continue. The last good checkpoint is kept."""


def run(trainer: Any, pace: Schedule, identity: Mapping[str, Any], progress: Progress | None = None) -> None:
    """Train to the end; a training that was stopped is resumed.

    ``identity`` identifies the training by JSON values: the hash of the data, the settings and the name of the model.
    It is stored with each checkpoint.
    """
    from transformers.trainer_callback import PrinterCallback

    work = Path(trainer.args.output_dir)
    about = json.loads(json.dumps({**identity, **asdict(pace), "architecture": architecture(trainer.model)}))
    found = last_checkpoint(work, about)
    trainer.remove_callback(PrinterCallback)  # progress is reported by ``progress`` only
    trainer.add_callback(_watcher(work, about, progress))
    _guard_loss(trainer, work, pace)
    try:
        trainer.train(resume_from_checkpoint=str(found) if found else None)
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        raise TrainingStopped(_smaller(pace)) from None


def architecture(model: Any) -> str:
    """A name for the class and weight shapes of a model; checkpoints of another architecture are refused by it."""
    shapes = [[name, list(weights.shape)] for name, weights in model.state_dict().items()]
    return f"{type(model).__name__}-{fingerprint(shapes, 8)}"


def last_checkpoint(work: Path, about: Mapping[str, Any]) -> Path | None:
    """The last complete checkpoint of a training. Incomplete checkpoints are removed."""
    whole: Path | None = None
    for folder in sorted(work.glob("checkpoint-*"), key=_step):
        if not _CHECKPOINT.fullmatch(folder.name):
            continue
        mark = folder / MARK
        if not mark.is_file():
            shutil.rmtree(folder)
            continue
        _refuse_another(folder, json.loads(mark.read_text(encoding="utf-8")), about)
        whole = folder
    return whole


def _step(folder: Path) -> int:
    found = _CHECKPOINT.fullmatch(folder.name)
    return int(found[1]) if found else -1


def _refuse_another(folder: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name in ("architecture", *sorted({*found, *wanted} - {"architecture"})):
        if found.get(name) != wanted.get(name):
            raise StoreError(
                f"{folder}: expected a checkpoint with {name} {wanted.get(name)!r}, found one with "
                f"{found.get(name)!r}; train into another folder, or delete this one to start from the beginning"
            )


def _watcher(work: Path, about: Mapping[str, Any], progress: Progress | None) -> Any:
    """A callback that reports each step, and marks a checkpoint if it is complete and all its weights are finite."""
    from transformers import TrainerCallback

    class Watcher(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if progress is not None:
                progress(state.global_step, state.max_steps, "training")

        def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            if model is None or _all_finite(model):
                write_whole(work / f"checkpoint-{state.global_step}" / MARK, json.dumps(about, indent=1))

    return Watcher()


def _all_finite(model: Any) -> bool:
    import torch

    return all(bool(torch.isfinite(weights).all()) for weights in model.parameters())


def _guard_loss(trainer: Any, work: Path, pace: Schedule) -> None:
    """Stop the training if a loss is not finite, before it changes the weights."""
    import torch

    plain = trainer.compute_loss

    def guarded(*given: Any, **named: Any) -> Any:
        answer = plain(*given, **named)
        loss = answer[0] if isinstance(answer, tuple) else answer
        if not bool(torch.isfinite(loss.detach()).all()):
            raise TrainingStopped(_bad_loss(float(loss.detach().sum()), trainer.state.global_step, work, pace))
        return answer

    trainer.compute_loss = guarded


def _bad_loss(loss: float, step: int, work: Path, pace: Schedule) -> str:
    whole = [folder for folder in work.glob("checkpoint-*") if (folder / MARK).is_file()]
    kept = str(max(whole, key=_step)) if whole else "none yet"
    return (
        f"training stopped after step {step}: expected a finite loss, found {loss}. The last good checkpoint is: "
        f"{kept}. Train again with a learning_rate below {pace.learning_rate:g} and another output folder"
    )


def _is_out_of_memory(error: BaseException) -> bool:
    import torch

    said = ("out of memory", "can't allocate memory", "not enough memory")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(one in str(error).lower() for one in said)


def _smaller(pace: Schedule) -> str:
    if pace.batch_size == 1:
        return "out of memory with batch_size 1, which is one example; use shorter texts or a smaller model"
    half = pace.batch_size // 2
    again = -(-pace.batch_size * pace.accumulate // half)
    return (
        f"out of memory with batch_size {pace.batch_size}: try batch_size={half} and accumulate={again}; training with "
        "these settings has the same effective batch size and needs less memory"
    )


def remembered(file: Path, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """Return the stored result of ``make`` if it has the same ``identity``; otherwise call ``make`` and store it.

    The result is a JSON value; ``identity`` has everything that it depends on.
    """
    about = json.loads(json.dumps(identity))
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["identity"] == about:
            return found["made"]
    made = make()
    write_whole(file, json.dumps({"identity": about, "made": made}, allow_nan=False))
    return json.loads(json.dumps(made))
