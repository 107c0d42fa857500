"""What all trainings share: the shape of a function that trains, and what it gives back."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from askew.core.errors import StoreError
from askew.trainers.card import WORK, Card, CardTable, read_measured, write_card
from askew.trainers.common import Progress

D_contra = TypeVar("D_contra", contravariant=True)
S_contra = TypeVar("S_contra", contravariant=True)


@dataclass(frozen=True)
class Trained:
    """A trained model: its folder, what was measured of it, and the tables of its card.

    ``new`` is False where the folder already held this very model, and nothing was trained. ``use`` are the options of
    ``askew reformulate`` that write queries with it, for models that do.
    """

    folder: Path
    measured: Mapping[str, Any]
    tables: tuple[CardTable, ...] = ()
    notes: tuple[str, ...] = ()
    new: bool = True
    use: str = ""


class ModelTrainer(Protocol[D_contra, S_contra]):
    """What ``askew train`` calls: data and settings in, a folder with a model out.

    Stopped, the same call goes on from its last checkpoint; a model that is finished is read, not trained again.
    """

    def __call__(
        self, data: D_contra, out: Path, settings: S_contra | None = None, device: str | None = None, command: str = "",
        progress: Progress | None = None, /,
    ) -> Trained:  # fmt: skip
        """Train on ``data`` and write to the folder ``out``. ``command`` is what the card says made the model."""
        ...


def finished(out: Path, card: Card, notes: Sequence[str] = ()) -> Trained:
    """Write the card of a model that is whole, and remove its checkpoints."""
    write_card(out, card)
    shutil.rmtree(out / WORK, ignore_errors=True)
    facts = read_measured(out)
    if facts is None:
        raise StoreError(f"{out}: expected the facts that were just written, found none")
    return found_before(out, facts, notes, new=True)


def found_before(out: Path, facts: Mapping[str, Any], notes: Sequence[str] = (), new: bool = False) -> Trained:
    """A model by the facts in its folder."""
    tables = tuple(
        CardTable(one["title"], tuple(one["columns"]), tuple(tuple(row) for row in one["rows"]))
        for one in facts["tables"]
    )
    return Trained(out, facts["measured"], tables, tuple(notes), new, facts["extra"].get("use", ""))


def left_out_notes(left_out: Mapping[str, int]) -> list[str]:
    """How many pairs were left out, by reason."""
    return [f"{count:,} pairs left out: {reason}" for reason, count in left_out.items()]
