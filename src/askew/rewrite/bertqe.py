"""Expansion by the chunks of the top-ranked passages that a sentence encoder finds nearest to the query, after BERT-QE.

BERT-QE (Zheng et al. 2020) cuts the top-ranked passages into overlapping chunks, scores them against the query and
ranks with the best chunks. Here each of the best chunks is appended to the query, so each chunk gives one candidate,
which names the document of the chunk. The score is the cosine of the encoder's vectors. ReQue cuts chunks of 5 words
that overlap by 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError
from askew.core.plugins import Count
from askew.core.protocols import Candidates, QueryBatch
from askew.models import MINILM, identify, load_model
from askew.rewrite.feedback import NOTHING, add_expanded
from askew.rewrite.lexical import one_line


class BertQe:
    """Appends the chunks of the top-ranked passages nearest to the query by a sentence encoder, one per candidate."""

    method = "bertqe"
    reads = frozenset({"passages"})

    def __init__(
        self, documents: Count = 3, chunks: Count = 3, chunk_words: Count = 10, overlap: int = 5, model: str = MINILM,
        revision: str | None = None, batch_size: Count = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        if not 0 <= overlap < chunk_words:
            raise ConfigError(
                f"bertqe: expected ⟨overlap⟩ to be at least 0 and below chunk_words={chunk_words}, found {overlap}"
            )
        self._documents, self._chunks = documents, chunks
        self._chunk_words, self._overlap = chunk_words, overlap
        self._model, self._revision, self._batch, self._device = model, revision, batch_size, device

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates."""
        return {
            "documents": self._documents, "chunks": self._chunks, "chunk_words": self._chunk_words,
            "overlap": self._overlap, "model": identify(self._model, self._revision),
        }  # fmt: skip

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return one candidate for each of the best chunks of a query: the query followed by the chunk."""
        if batch.passages is None:
            raise ConfigError("bertqe: expected passages that a search with the original queries retrieved, found none")
        candidates = Candidates()
        for row, (text, passages) in enumerate(zip(batch.texts, batch.passages, strict=True)):
            query = one_line(text)
            # The distinct chunks in order, each with the id of the first document that contains it.
            chunks: dict[str, str] = {}
            for passage in passages[: self._documents]:
                for chunk in cut(passage.text, self._chunk_words, self._overlap):
                    chunks.setdefault(chunk, passage.doc_id)
            if not query or not chunks:
                candidates.reject(NOTHING)
                continue
            for chunk in self._best(query, list(chunks)):
                add_expanded(candidates, row, query, [chunk], chunks[chunk])
        return candidates

    def _best(self, query: str, chunks: list[str]) -> list[str]:
        """Return the chunks nearest to the query; ties keep their order.

        One query is encoded at a time, because the last digits of a vector depend on the rest of its batch.
        """
        encoder = load_model("dense", self._model, self._revision, self._device)
        options = {"batch_size": self._batch, "show_progress_bar": False, "normalize_embeddings": True}
        count_model_calls(1 + len(chunks))
        query_vector = np.asarray(encoder.encode_query([query], **options), np.float64)[0]
        values = np.asarray(encoder.encode_document(chunks, **options), np.float64) @ query_vector
        return [chunks[i] for i in np.argsort(-values, kind="stable")[: self._chunks].tolist()]


def cut(text: str, size: int, overlap: int) -> list[str]:
    """Split a text into chunks of ``size`` words; neighbors share ``overlap`` words, and the last may be shorter."""
    words = one_line(text).split(" ")
    # A chunk that begins within the last ``overlap`` words would have no word that the previous chunk lacks.
    starts = range(0, max(1, len(words) - overlap), size - overlap)
    return [chunk for start in starts if (chunk := " ".join(words[start : start + size]))]
