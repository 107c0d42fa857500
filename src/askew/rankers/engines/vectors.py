"""Queries as vectors, for engines that search vectors: by the encoder that made those of the documents."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from askew.core.errors import ConfigError
from askew.models import identify, load_model
from askew.rankers.engines.opened import sendable

# So many queries are encoded in one request.
BATCH = 32


class QueryEncoder:
    """An encoder of sentence-transformers, loaded by the first query. ``kind`` is dense or sparse."""

    def __init__(
        self, engine: str, model: str | None, revision: str | None = None, prompt: str = "", device: str | None = None,
        kind: str = "dense",
    ) -> None:  # fmt: skip
        if not model:
            raise ConfigError(f"{engine}: a search of vectors needs model=, the encoder of its documents")
        self._engine, self._model, self._revision, self._prompt = engine, model, revision, prompt
        self._device, self._kind = device, kind
        self._lock = threading.Lock()

    def settings(self) -> Mapping[str, Any]:
        """What tells this encoder from another."""
        return {"model": self._weights, "kind": self._kind, "prompt": self._prompt}

    @cached_property
    def _weights(self) -> str:
        return identify(self._model, self._revision)

    def dense(self, queries: Sequence[str]) -> list[list[float]]:
        """A vector of each query, as the model gives it."""
        rows = np.asarray(self._encoded(queries, convert_to_numpy=True), np.float32)
        return [[float(value) for value in row] for row in rows]

    def sparse(self, queries: Sequence[str]) -> list[tuple[list[int], list[float]]]:
        """The terms of each query and their weights."""
        found = self._encoded(queries, save_to_cpu=True).coalesce()
        (rows, terms), weights = found.indices().numpy(), found.values().float().numpy()
        kept = [(rows == i) & (weights != 0) for i in range(len(queries))]
        return [(terms[there].tolist(), weights[there].tolist()) for there in kept]

    def check_width(self, width: int | None, where: str) -> None:
        """Refuse a model whose vectors are not as wide as those of the documents, where these are known."""
        own = int(load_model(self._kind, self._model, self._revision, self._device).get_embedding_dimension())
        if width is not None and width != own:
            raise ConfigError(
                f"{where} has vectors of {width} numbers and the model {self._model!r} gives {own}; model= should be "
                "the encoder that made those of the documents"
            )

    def _encoded(self, queries: Sequence[str], **options: Any) -> Any:
        texts, prompt = [sendable(query) for query in queries], {"prompt": self._prompt} if self._prompt else {}
        # Several threads ask, and a model is no faster for two of them.
        with self._lock:
            encoder = load_model(self._kind, self._model, self._revision, self._device)
            return encoder.encode_query(texts, batch_size=BATCH, show_progress_bar=False, **prompt, **options)
