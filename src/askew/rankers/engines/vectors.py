"""Encode queries for vector search, with the encoder of the document vectors."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from askew.core.errors import ConfigError
from askew.models import identify, load_model
from askew.rankers.engines.opened import sendable

# The number of queries that are encoded in one request.
BATCH = 32


class QueryEncoder:
    """An encoder of sentence-transformers, loaded at the first query. ``kind`` is dense or sparse."""

    def __init__(
        self, engine: str, model: str | None, revision: str | None = None, prompt: str = "", device: str | None = None,
        kind: str = "dense",
    ) -> None:  # fmt: skip
        if not model:
            raise ConfigError(f"{engine}: vector search needs model=, the encoder of the documents")
        self._engine, self._model, self._revision, self._prompt = engine, model, revision, prompt
        self._device, self._kind = device, kind
        self._lock = threading.Lock()

    def settings(self) -> Mapping[str, Any]:
        """The settings that identify this encoder."""
        return {"model": self._weights, "kind": self._kind, "prompt": self._prompt}

    @cached_property
    def _weights(self) -> str:
        return identify(self._model, self._revision)

    def dense(self, queries: Sequence[str]) -> list[list[float]]:
        """The vector of each query."""
        rows = np.asarray(self._encoded(queries, convert_to_numpy=True), np.float32)
        return [[float(value) for value in row] for row in rows]

    def sparse(self, queries: Sequence[str]) -> list[tuple[list[int], list[float]]]:
        """The terms of each query and their weights."""
        found = self._encoded(queries, save_to_cpu=True).coalesce()
        (rows, terms), weights = found.indices().numpy(), found.values().float().numpy()
        kept = [(rows == i) & (weights != 0) for i in range(len(queries))]
        return [(terms[there].tolist(), weights[there].tolist()) for there in kept]

    def check_width(self, width: int | None, where: str) -> None:
        """Raise an error if the model has another dimension than the document vectors, if that is known."""
        own = int(load_model(self._kind, self._model, self._revision, self._device).get_embedding_dimension())
        if width is not None and width != own:
            raise ConfigError(
                f"{where} has vectors of dimension {width}, but the model {self._model!r} has {own}; model= should be "
                "the encoder of the documents"
            )

    def _encoded(self, queries: Sequence[str], **options: Any) -> Any:
        texts, prompt = [sendable(query) for query in queries], {"prompt": self._prompt} if self._prompt else {}
        # Several threads use the encoder, but parallel calls are no faster.
        with self._lock:
            encoder = load_model(self._kind, self._model, self._revision, self._device)
            return encoder.encode_query(texts, batch_size=BATCH, show_progress_bar=False, **prompt, **options)
