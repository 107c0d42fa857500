"""Queries generated from passages by a model, as in docTTTTTquery and Refairmulate.

A checkpoint is given by hub id or folder: ``castorini/doc2query-t5-base-msmarco`` (used in the papers),
``doc2query/msmarco-t5-small-v1``, or a model that you trained. docTTTTTquery samples with top-k 10 and 64 tokens.
Refairmulate (``preset="refairmulate"``) samples with top-p 0.9 and draws top-k (at most 20), temperature and length for
every call. A causal model, with or without an adapter, is prompted with the passage and writes a question.
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
# The values of docTTTTTquery's README, and of Refairmulate's generate.py with its randomization switched on.
PRESETS = {
    "doctttttquery": (Sampling(64, 1, 10, 1.0, 1.0), False),
    "refairmulate": (Sampling(64, 1, 20, 0.9, 1.0), True),
}


class DocQueryReformulator:
    """Generates queries from the top-ranked passages with a T5-class or causal model, passage by passage.

    ``preset`` selects the sampling parameters (doctttttquery or refairmulate). ``prefix`` is put before each passage,
    which some checkpoints need. ``passages`` is the number of top-ranked passages that are read. With ``context`` the
    user and the time are put before the passage, as in the training of RePair's models ("USER: passage"). ``adapter``
    is the folder of an adapter for a causal model, made by ``askew train generator``. Without ``device``, the GPU is
    used if there is one.
    """

    method = "docquery"
    reads = frozenset({"passages"})

    def __init__(
        self, model: str = DEFAULT, revision: str | None = None, count: int = 10, passages: int = 10,
        preset: str = "doctttttquery", prefix: str = "", per_call: int = 5, attempts: int = 100, seed: int = 7,
        device: str | None = None, context: bool = False, adapter: str | None = None,
    ) -> None:  # fmt: skip
        if preset not in PRESETS:
            raise ConfigError(f"docquery: expected preset= to be {' or '.join(map(repr, PRESETS))}, found {preset!r}")
        if passages < 1:
            raise ConfigError(f"docquery: expected passages= to be 1 or more, found {passages}")
        self._sampling, randomize = PRESETS[preset]
        self._how = Drawing(count, per_call, attempts, seed, randomize)
        self._model, self._revision, self._device, self._adapter = model, revision, device, adapter
        self._passages, self._prefix, self._preset, self._context = passages, prefix, preset, context

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the model identified by its weights."""
        return {
            "model": self._model if self._model == SMOLLM else identify(self._model, self._revision),
            "adapter": None if self._adapter is None else identify(str(find_adapter(self._adapter))),
            "passages": self._passages, "prefix": self._prefix,
            "preset": self._preset, "count": self._how.count, "per_call": self._how.per_call,
            "attempts": self._how.attempts, "seed": self._how.seed, "context": self._context,
        }  # fmt: skip

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return distinct generated queries for each query, in the order of sampling."""
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
