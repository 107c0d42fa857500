"""Code that all trainers share: the training schedule, devices, seeds, and runs that can be resumed.

``run`` takes any trainer of transformers or sentence-transformers. It resumes from the last complete checkpoint of the
same training and refuses a checkpoint of another training. It stops before a loss that is not finite changes the
weights, and suggests smaller settings if the memory is not sufficient.
"""

from __future__ import annotations

import csv
import json
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from askew.core.errors import ConfigError, StageError, StoreError, UnknownName, check_names
from askew.core.files import DATA, fingerprint, parse_json, write_whole
from askew.core.groups import Groups
from askew.core.text import normal
from askew.models.find import LOADING, cannot_load, locate, need, open_transformers
from askew.train.card import WORK, Card, CardTable, read_measured, write_card

# The file of the held-out queries of a model, next to the model. It is checked when the model is measured.
HELD_OUT = "held-out.jsonl"


def write_held_out(folder: Path, query_ids: Sequence[str], texts: Sequence[str]) -> None:
    """Write ids and texts as a JSON Lines file of queries; write no file if there are none."""
    rows = ({"query_id": name, "text": text} for name, text in zip(query_ids, texts, strict=True))
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    if lines:
        write_whole(folder / HELD_OUT, "".join(lines))


def seen_by(folder: Path, texts: Sequence[str]) -> int | None:
    """How many of the texts are not among the model's held-out queries; None if the model has no list of them."""
    if not (folder / HELD_OUT).is_file():
        return None
    from askew.data.queries import read_queries

    held = {normal(text) for text in read_queries(folder / HELD_OUT)["text"].to_pylist()}
    return sum(normal(text) not in held for text in texts)


# License, link and authors of known training data, for the model card.

GREPBIASIR: Mapping[str, str] = {
    "dataset": "GrepBiasIR",
    "authors": "Krieg, Parada-Cabaleiro, Medicus, Lesota, Schedl and Rekabsaz",
    "license": "CC0-1.0",
    "link": "https://github.com/KlaraKrieg/GrepBiasIR",
}


def known_source(collection_id: str) -> dict[str, str]:
    """Facts of a collection by its id; empty for other files, because their license is not known."""
    if collection_id == "demo":
        return {"license": "Apache-2.0", "authors": "The askew developers"}
    name, scheme, dataset = collection_id.partition("irds:")
    if scheme and not name:
        return {"link": f"https://ir-datasets.com/{dataset.partition('/')[0]}.html"}
    return {}


def read_published(name: str) -> tuple[str, list[dict[str, str]]]:
    """The source of a file of published results, and its rows."""
    lines = (DATA / "published" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return lines[0].lstrip("# "), list(csv.DictReader(lines[1:]))


T = TypeVar("T")


def from_names(kind: type[T], given: Mapping[str, Any], where: str) -> T:
    """Settings of a kind: the preset or the defaults, with the given values replaced; None counts as not given."""
    rest = {name: value for name, value in given.items() if value is not None}
    presets, key = getattr(kind, "presets", {}), getattr(kind, "preset_name", "preset")
    chosen = rest.pop(key, None) if presets else None
    if chosen is not None:
        if chosen not in presets:
            raise UnknownName(key, str(chosen), presets, where)
        return with_settings(rest, kind(**presets[chosen]), where)
    begin = getattr(kind, "begin", None)
    return with_settings(rest, kind() if begin is None else begin(rest), where)


def with_settings(given: Mapping[str, Any], into: T, where: str) -> T:
    """Replace some settings, including settings of the parts; an unknown name or a wrong type is an error.

    A tuple of texts may be given as one text with commas, and groups as any value that ``Groups.of`` accepts.
    """
    check_names("setting", given, by_name(into), where)
    own = {name: value for name, value in given.items() if name in _own(into)}
    changed: dict[str, Any] = {
        name: _as(getattr(into, name), Groups.of(value) if name == "groups" else value, name, where)
        for name, value in own.items()
    }
    for name, part in _parts(into).items():
        inner = {one: value for one, value in given.items() if one not in own and one in by_name(part)}
        changed[name] = with_settings(inner, part, where)
    return replace(into, **changed)  # type: ignore[type-var]


def by_name(settings: Any) -> dict[str, Any]:
    """Every setting with its value, by name; an outer setting hides a setting of a part with the same name."""
    found: dict[str, Any] = {}
    for part in _parts(settings).values():
        found = {**by_name(part), **found}
    return {**found, **{name: getattr(settings, name) for name in _own(settings)}}


def _own(settings: Any) -> list[str]:
    return [one.name for one in fields(settings) if not is_dataclass(getattr(settings, one.name))]


def _parts(settings: Any) -> dict[str, Any]:
    used = getattr(settings, "parts", None)
    found = {one.name: getattr(settings, one.name) for one in fields(settings)}
    return {name: one for name, one in found.items() if is_dataclass(one) and (used is None or name in used)}


def _as(had: Any, value: Any, name: str, where: str) -> Any:
    """Convert a value to the type of the setting."""
    if isinstance(had, tuple) and isinstance(value, str):
        return tuple(one.strip() for one in value.split(",") if one.strip())
    if isinstance(had, tuple) and isinstance(value, list):
        return tuple(value)
    numbers = isinstance(had, float) and isinstance(value, int) and not isinstance(value, bool)
    if had is not None and type(value) is not type(had) and not numbers:
        raise ConfigError(f"{where}: expected {name} to be a {type(had).__name__}, found {value!r}")
    return float(value) if numbers else value


# Called with done, total (0 if unknown) and optionally a label, as askew.ui.cli.render.Waiting.advance.
Progress = Callable[..., None]
MARK = "askew-checkpoint.json"
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


def open_classifier(model: str, kind: str, **head: Any) -> tuple[Any, Any]:
    """A model with a classification head, and its tokenizer. ``kind`` names the model in errors."""
    need("transformers", f"the model {model!r}", "train")
    transformers = open_transformers()
    from transformers.utils import logging

    place = locate(model)
    packed = sorted(Path(place).glob("*.gguf"))
    options = {"trust_remote_code": False, **({"gguf_file": packed[0].name} if packed else {})}
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # no warning about a new head, which is intended
    try:
        network = transformers.AutoModelForSequenceClassification.from_pretrained(place, **head, **options)  # nosec B615
        # A user who names a model of the hub may pin its revision; "trust_remote_code" is off in any case.
        return network.float(), transformers.AutoTokenizer.from_pretrained(place, **options)  # nosec B615
    except LOADING as error:
        raise cannot_load(model, kind, error) from error
    finally:
        logging.set_verbosity(verbosity)


class TrainingStopped(StageError):
    """The training cannot continue. The last good checkpoint is kept."""


def run(trainer: Any, pace: Schedule, identity: Mapping[str, Any], progress: Progress | None = None) -> None:
    """Train to the end; a training that was stopped is resumed.

    ``identity`` identifies the training by JSON values: the hash of the data, the settings and the name of the model.
    It is stored with each checkpoint.
    """
    import torch
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback

    work = Path(trainer.args.output_dir)
    about = json.loads(json.dumps({**identity, **asdict(pace), "architecture": architecture(trainer.model)}))
    checkpoint = last_checkpoint(work, about)
    plain_loss = trainer.compute_loss

    class Watcher(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if progress is not None:
                progress(state.global_step, state.max_steps, "training")

        def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            # A checkpoint is marked if it is complete and all its weights are finite.
            if model is None or all(bool(torch.isfinite(weights).all()) for weights in model.parameters()):
                write_whole(work / f"checkpoint-{state.global_step}" / MARK, json.dumps(about, indent=1))

    def guarded_loss(*given: Any, **named: Any) -> Any:
        """Stop the training if a loss is not finite, before it changes the weights."""
        answer = plain_loss(*given, **named)
        loss = answer[0] if isinstance(answer, tuple) else answer
        if not bool(torch.isfinite(loss.detach()).all()):
            whole = [folder for folder in _checkpoints(work) if (folder / MARK).is_file()]
            raise TrainingStopped(
                f"training stopped after step {trainer.state.global_step}: expected a finite loss, found "
                f"{float(loss.detach().sum())}. The last good checkpoint is: {whole[-1] if whole else 'none yet'}. "
                f"Train again with a learning_rate below {pace.learning_rate:g} and another output folder"
            )
        return answer

    trainer.remove_callback(PrinterCallback)  # progress is reported by ``progress`` only
    trainer.add_callback(Watcher())
    trainer.compute_loss = guarded_loss
    try:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    except (RuntimeError, MemoryError) as error:
        memory = ("out of memory", "can't allocate memory", "not enough memory")
        if not isinstance(error, MemoryError) and not any(words in str(error).lower() for words in memory):
            raise
        if pace.batch_size == 1:
            raise TrainingStopped(
                "out of memory with batch_size 1, which is one example; use shorter texts or a smaller model"
            ) from None
        half = pace.batch_size // 2
        raise TrainingStopped(
            f"out of memory with batch_size {pace.batch_size}: try batch_size={half} and "
            f"accumulate={-(-pace.batch_size * pace.accumulate // half)}; training with these settings has the same "
            "effective batch size and needs less memory"
        ) from None


def architecture(model: Any) -> str:
    """A name for the class and weight shapes of a model; checkpoints of another architecture are refused by it."""
    shapes = [[name, list(weights.shape)] for name, weights in model.state_dict().items()]
    return f"{type(model).__name__}-{fingerprint(shapes, 8)}"


def last_checkpoint(work: Path, about: Mapping[str, Any]) -> Path | None:
    """The last complete checkpoint of a training. Incomplete checkpoints are removed."""
    whole: Path | None = None
    for folder in _checkpoints(work):
        mark = folder / MARK
        if not mark.is_file():
            shutil.rmtree(folder)
            continue
        found = parse_json(mark.read_bytes())
        for name in ("architecture", *sorted({*found, *about} - {"architecture"})):
            if found.get(name) != about.get(name):
                raise StoreError(
                    f"{folder}: expected a checkpoint with {name} {about.get(name)!r}, found one with "
                    f"{found.get(name)!r}; train into another folder, or delete this one to start from the beginning"
                )
        whole = folder
    return whole


def _checkpoints(work: Path) -> list[Path]:
    """The folders of checkpoints in the order of their steps."""
    named = [folder for folder in work.glob("checkpoint-*") if folder.name.removeprefix("checkpoint-").isdecimal()]
    return sorted(named, key=lambda folder: int(folder.name.removeprefix("checkpoint-")))


def remembered(file: Path, identity: Mapping[str, Any], make: Callable[[], Any]) -> Any:
    """Return the stored result of ``make`` if it has the same ``identity``; otherwise call ``make`` and store it.

    The result is a JSON value; ``identity`` has everything that it depends on.
    """
    about = json.loads(json.dumps(identity))
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = parse_json(file.read_bytes())
        if found["identity"] == about:
            return found["made"]
    made = make()
    write_whole(file, json.dumps({"identity": about, "made": made}, allow_nan=False))
    return json.loads(json.dumps(made))


@dataclass(frozen=True)
class Trained:
    """A trained model: its folder, its measures, and the tables of its card.

    ``new`` is False if the folder already had this model and nothing was trained. For models that write queries,
    ``use`` has the command-line options with which ``askew reformulate`` uses this model.
    """

    folder: Path
    measured: Mapping[str, Any]
    tables: tuple[CardTable, ...] = ()
    notes: tuple[str, ...] = ()
    new: bool = True
    use: str = ""


def finished(out: Path, card: Card, notes: Sequence[str] = ()) -> Trained:
    """Write the card of a finished model, and remove its checkpoints."""
    write_card(out, card)
    shutil.rmtree(out / WORK, ignore_errors=True)
    return found_before(out, read_measured(out) or {}, notes, new=True)


def found_before(out: Path, facts: Mapping[str, Any], notes: Sequence[str] = (), new: bool = False) -> Trained:
    """The result for a model, from the facts in its folder."""
    tables = tuple(
        CardTable(one["title"], tuple(one["columns"]), tuple(tuple(row) for row in one["rows"]))
        for one in facts["tables"]
    )
    return Trained(out, facts["measured"], tables, tuple(notes), new, facts["extra"].get("use", ""))


def left_out_notes(left_out: Mapping[str, int]) -> list[str]:
    """Notes on the number of left-out pairs by reason."""
    return [f"{count:,} pairs left out: {reason}" for reason, count in left_out.items()]
