"""The models that askew ships. Each has a description file next to its weights.

``data/adapters/NAME/model.json`` describes an adapter, ``STEM.model.json`` a model of one or a few files. The
description has no measured values, only paths of values in a file of measures (``measured.json``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from askew.core.errors import DataError, check_name
from askew.core.files import DATA

ABOUT, MEASURED, TRAINING = "model.json", "measured.json", "training.json"
ADAPTERS = "adapters"
NOT_MEASURED = "Not measured yet."


@dataclass(frozen=True)
class TrainingData:
    """A source of training data. ``rows`` is None if the number was not recorded."""

    name: str
    license: str
    rows: int | None
    by: str = ""
    hub: str | None = None


@dataclass(frozen=True)
class HeadlineMeasure:
    """The main measure of a model, with its 95% interval if there is one."""

    measure: str
    on: str
    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        interval = "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.measure} {self.value:.3f}{interval} on {self.on}"


@dataclass(frozen=True)
class ShippedModel:
    """A trained model that askew ships.

    If the trained model is an adapter, ``base`` is the name of its base model, and otherwise None.

    ``used_by`` names the plugins that load the model, such as ``filter equivalence``. ``extra`` is the optional
    dependency group (extra) of askew that these plugins need.
    ``trained_by`` and ``measured_by`` are the paths of the programs that train and measure the model, relative to the
    root of the repository of askew. A path is None if the repository does not contain the program. ``headline`` is the
    main measured value of the model, or None if the model is not measured yet. ``size`` is in bytes.
    """

    name: str
    task: str
    base: str | None
    base_license: str | None
    license: str
    size: int
    data: tuple[TrainingData, ...]
    used_by: tuple[str, ...]
    extra: str | None
    trained_by: str | None
    measured_by: str | None
    headline: HeadlineMeasure | None
    about: Path

    @property
    def folder(self) -> Path:
        """The folder of the weights."""
        return self.about.parent

    @property
    def facts(self) -> Mapping[str, Any]:
        """The content of ``model.json``, including the prose of the card."""
        return _read(self.about)

    @property
    def measured(self) -> Mapping[str, Any] | None:
        """The content of the file of measures; None if the model is not measured yet."""
        file = self.folder / self.facts["headline"].get("file", MEASURED)
        return _read(file) if file.is_file() else None

    @property
    def training(self) -> Mapping[str, Any]:
        """The training settings that the training program wrote; empty if it wrote none."""
        file = self.folder / TRAINING
        return _read(file) if file.is_file() else (self.measured or {}).get("training", {})

    @property
    def card_file(self) -> Path:
        """The file of the card, which a program of the repository wrote: README.md, or ``STEM.card.md``."""
        return self.folder / ("README.md" if self.about.name == ABOUT else self.about.name.replace(ABOUT, "card.md"))

    def card(self) -> str:
        """The card in Markdown: task, license, training data, measures, limits."""
        return self.card_file.read_text(encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        found = {key: value for key, value in asdict(self).items() if key != "about"}
        return found | {key: list(value) for key, value in found.items() if isinstance(value, tuple)}

    def __repr__(self) -> str:
        return f"ShippedModel({self.name!r}: {self.task})"


def shipped_models() -> tuple[ShippedModel, ...]:
    """The trained models that askew ships: first the adapters of base models, then all other models."""
    files = [*sorted((DATA / ADAPTERS).glob(f"*/{ABOUT}")), *sorted(DATA.rglob(f"*.{ABOUT}"))]
    return tuple(map(_model, files))


def shipped_model(name: str) -> ShippedModel:
    """The shipped model with this name."""
    known = {one.name: one for one in shipped_models()}
    check_name("model", name, known)
    return known[name]


def follow(found: Any, path: str) -> Any:
    """The value at a path such as ``test/by class/real``. Items of a list are numbered from 0."""
    for key in path.split("/") if path else ():
        found = found[int(key)] if isinstance(found, list) else found[key]
    return found


def _model(file: Path) -> ShippedModel:
    facts = _read(file)
    try:
        return ShippedModel(
            facts["name"], facts["task"], facts["base"], facts["base_license"], facts["license"],
            sum((file.parent / one).stat().st_size for one in facts["files"]),
            tuple(TrainingData(**one) for one in facts["data"]), tuple(facts["used_by"]), facts["extra"],
            facts["trained_by"], facts["measured_by"], _headline(file.parent, facts["headline"]), file,
        )  # fmt: skip
    except (KeyError, TypeError, IndexError, ValueError, OSError) as error:
        raise DataError(f"{file}: not the description of a shipped model ({error!r}); install askew again") from None


def _headline(folder: Path, reference: Mapping[str, str]) -> HeadlineMeasure | None:
    file = folder / reference.get("file", MEASURED)
    if "at" not in reference or not file.is_file():
        return None
    node = follow(_read(file), reference["at"])
    value = float(node[reference["measure"]])
    if not math.isfinite(value):
        raise ValueError(f"{reference['at']}: expected a finite number, found {value}")
    title = reference.get("title", reference["measure"])
    return HeadlineMeasure(title, reference["on"], value, node.get("low"), node.get("high"))


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))  # an undefined measure is NaN
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: expected JSON ({error}); install askew again") from None
    if not isinstance(found, dict):
        raise DataError(f"{file}: expected a JSON object, found {type(found).__name__}; install askew again")
    return found


def megabytes(size: int) -> str:
    """A size in bytes as text, in MB or kB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
