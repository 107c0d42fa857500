"""Helpers that several rankers share: query texts, joined and sorted results, and names for runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.models import identify


def query_texts(texts: Sequence[str] | pa.Array) -> list[str]:
    """Convert queries to a list of texts. A null becomes an empty text."""
    return [text or "" for text in (texts.to_pylist() if isinstance(texts, pa.Array | pa.ChunkedArray) else texts)]


def check_k(k: int) -> None:
    """Raise an error if k is less than 1."""
    if k < 1:
        raise ConfigError(f"k must be 1 or more, found {k}")


def join_hits(parts: Sequence[Hits]) -> Hits:
    """Concatenate the results of several batches."""
    sizes = np.concatenate([np.diff(part.offsets) for part in parts]) if parts else np.zeros(0, np.int64)
    return Hits(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.docs for part in parts]) if parts else np.zeros(0, np.int32),
        np.concatenate([part.scores for part in parts]) if parts else np.zeros(0, np.float32),
    )


def check_weights(header: dict[str, Any], folder: Path) -> None:
    """Raise an error if the model has other weights than the one that made the index, even under the same name."""
    now = identify(header["model"], header["revision"])
    if now != header["weights"]:
        raise ConfigError(
            f"index {folder}: the index was built with the model {header['weights']}, but the installed model is "
            f"{now}; build the index again"
        )


def one_word(text: str) -> str:
    """Convert a name to one word, for the last column of a run."""
    return re.sub(r"[^A-Za-z0-9.@_-]+", "_", text)


def ranked(rows: Any, docs: Any, scores: Any, queries: int, k: int) -> Hits:
    """Sort scored documents by query and score, and keep k per query. Ties follow the order of the collection."""
    scores = np.asarray(scores, np.float32)
    order = np.lexsort((docs, -scores, rows))
    rows, docs, scores = np.asarray(rows)[order], np.asarray(docs)[order], scores[order]
    sizes = np.bincount(rows, minlength=queries).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    kept = np.arange(len(rows)) - np.repeat(starts, sizes) < k
    offsets = np.concatenate([[0], np.cumsum(np.minimum(sizes, k))]).astype(np.int64)
    return Hits(offsets, docs[kept].astype(np.int32), scores[kept])
