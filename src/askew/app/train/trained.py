"""The common interface of all training functions, and their result."""

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


class ModelTrainer(Protocol[D_contra, S_contra]):
    """A training function: it trains on data with settings, and writes a folder with a model.

    After an interruption, the same call continues from the last checkpoint. A finished model is read and not trained
    again.
    """

    def __call__(
        self, data: D_contra, out: Path, settings: S_contra | None = None, device: str | None = None, command: str = "",
        progress: Progress | None = None, /,
    ) -> Trained:  # fmt: skip
        """Train on ``data`` and write the folder ``out``. The model card shows ``command`` as the training command."""
        ...


def finished(out: Path, card: Card, notes: Sequence[str] = ()) -> Trained:
    """Write the card of a finished model, and remove its checkpoints."""
    write_card(out, card)
    shutil.rmtree(out / WORK, ignore_errors=True)
    facts = read_measured(out)
    if facts is None:
        raise StoreError(f"{out}: expected the facts that were just written, found none")
    return found_before(out, facts, notes, new=True)


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
