"""A small language model on this machine: SmolLM2-135M with askew's own adapter, or any causal model with examples.

``local`` reads a passage and writes the query it answers, or reads the query and writes it in other words. Weights and
adapter come with packages (extra ``lm``): no network, no key. The adapter's model card says how well it does.
``fewshot`` shows any causal model a few examples instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from askew.core.errors import ConfigError
from askew.models.find import identify
from askew.models.generate import QUERY_ADAPTER, SMOLLM, Sampling, find_adapter, load_generator
from askew.models.prompts import from_passage, from_query
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.drawing import Drawing, draw

MODES = ("passage", "query", "both")


class LocalReformulator:
    """Queries that SmolLM2-135M with askew's adapter writes for the first passages, or for the query itself.

    ``mode``: passage, query or both. ``adapter``: the name of one that askew ships, or a folder; "none" for none.
    """

    method = "local"

    def __init__(
        self, mode: str = "both", count: int = 10, passages: int = 5, adapter: str = QUERY_ADAPTER, model: str = SMOLLM,
        top_k: int = 10, top_p: float = 1.0, temperature: float = 1.0, max_new_tokens: int = 32, per_call: int = 5,
        attempts: int = 60, seed: int = 7, device: str | None = None,
    ) -> None:  # fmt: skip
        if mode not in MODES:
            raise ConfigError(f"local: expected the mode {', '.join(MODES)}, found {mode!r}")
        if passages < 1:
            raise ConfigError(f"local: expected 1 passage or more, found {passages}")
        self.reads = frozenset() if mode == "query" else frozenset({"passages"})
        self._mode, self._passages, self._model, self._device = mode, passages, model, device
        self._adapter = None if adapter == "none" else adapter
        self._sampling = Sampling(max_new_tokens, 1, top_k, top_p, temperature)
        self._how = Drawing(count, per_call, attempts, seed)

    def settings(self) -> dict[str, Any]:
        """What the candidates depend on, the model and the adapter by their weights."""
        adapter = None if self._adapter is None else identify(str(find_adapter(self._adapter)))
        model = self._model if self._model == SMOLLM else identify(self._model)
        return {"mode": self._mode, "passages": self._passages, "model": model, "adapter": adapter,
                **vars(self._sampling), **vars(self._how)}  # fmt: skip

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Distinct queries for each, passages and the query itself in turn."""
        writer = load_generator(self._model, "causal", self._adapter, None, self._device)

        def prompts(row: int) -> Sequence[tuple[str, str | None]]:
            shown: list[tuple[str, str | None]] = []
            if self._mode != "passage" and asked.texts[row].strip():
                shown.append((from_query(asked.texts[row]), None))
            if self._mode != "query" and asked.passages is not None:
                passages = asked.passages[row][: self._passages]
                shown += [(from_passage(passage.text), passage.doc_id) for passage in passages if passage.text.strip()]
            return shown

        return draw(asked, prompts, writer, self._sampling, self._how, self.method)
