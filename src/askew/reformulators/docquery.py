"""Queries from passages by a model, as docTTTTTquery and Refairmulate make them.

Checkpoints by hub id or folder: ``castorini/doc2query-t5-base-msmarco`` (the papers'),
``doc2query/msmarco-t5-small-v1``, or one of your own training. The papers sample with top-k 10 (docTTTTTquery, 64
tokens) or with top-k 20, top-p 0.9 and other parameters for every call (Refairmulate: ``preset="refairmulate"``). A
causal model, with or without an adapter, is shown the passage and asked for a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from askew.core.errors import ConfigError
from askew.models.find import identify
from askew.models.generate import SMOLLM, Sampling, find_adapter, kind_of, load_generator
from askew.models.prompts import from_passage
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.drawing import Drawing, draw

DEFAULT = "castorini/doc2query-t5-base-msmarco"
# What the sources set: docTTTTTquery's README, and Refairmulate's generate.py with its randomisation switched on.
PRESETS = {
    "doctttttquery": (Sampling(64, 1, 10, 1.0, 1.0), False),
    "refairmulate": (Sampling(64, 1, 20, 0.9, 1.0), True),
}


class DocQueryReformulator:
    """Queries that a T5-class or causal model writes for the top-ranked passages, passage after passage.

    ``preset`` sets how texts are drawn (doctttttquery or refairmulate); ``prefix`` is put before each passage, as some
    checkpoints want it; ``passages`` says how many of the top-ranked passages are read. With ``context`` user and time
    are put before the passage, as RePair trains its models ("USER: passage"). ``adapter`` is the folder of an
    adapter that ``askew train generator`` made of a causal model. Without ``device``: on the GPU where there is one.
    """

    method = "docquery"
    reads = frozenset({"passages"})

    def __init__(
        self, model: str = DEFAULT, revision: str | None = None, count: int = 10, passages: int = 10,
        preset: str = "doctttttquery", prefix: str = "", per_call: int = 5, attempts: int = 100, seed: int = 7,
        device: str | None = None, context: bool = False, adapter: str | None = None,
    ) -> None:  # fmt: skip
        if preset not in PRESETS:
            raise ConfigError(f"docquery: expected the preset {' or '.join(PRESETS)}, found {preset!r}")
        if passages < 1:
            raise ConfigError(f"docquery: expected passages of 1 or more, found {passages}")
        self._sampling, randomize = PRESETS[preset]
        self._how = Drawing(count, per_call, attempts, seed, randomize)
        self._model, self._revision, self._device, self._adapter = model, revision, device, adapter
        self._passages, self._prefix, self._preset, self._context = passages, prefix, preset, context

    def settings(self) -> dict[str, Any]:
        """What the candidates depend on, the model by its weights."""
        return {
            "model": self._model if self._model == SMOLLM else identify(self._model, self._revision),
            "adapter": None if self._adapter is None else identify(str(find_adapter(self._adapter))),
            "passages": self._passages, "prefix": self._prefix,
            "preset": self._preset, "count": self._how.count, "per_call": self._how.per_call,
            "attempts": self._how.attempts, "seed": self._how.seed, "context": self._context,
        }  # fmt: skip

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Distinct queries for each, in the order they were drawn."""
        kind = "causal" if self._model == SMOLLM else kind_of(self._model, self._revision)
        writer = load_generator(self._model, kind, self._adapter, self._revision, self._device)
        shown = from_passage if kind == "causal" else str

        def prompts(row: int) -> Sequence[tuple[str, str | None]]:
            passages = (asked.passages or ((),) * len(asked))[row][: self._passages]
            before = self._prefix + (self._who(asked, row) if self._context else "")
            return [(shown(before + passage.text), passage.doc_id) for passage in passages if passage.text.strip()]

        return draw(asked, prompts, writer, self._sampling, self._how, self.method)

    @staticmethod
    def _who(asked: QueryBatch, row: int) -> str:
        context = (asked.contexts or (None,) * len(asked))[row]
        return f"{context}: " if context else ""
