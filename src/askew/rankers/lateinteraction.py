"""Late interaction as in ColBERT: tokens have vectors, and each query token is matched with the best document token.

Models trained for it are loaded through sentence-transformers' MultiVectorEncoder: ``colbert-ir/colbertv2.0``,
``lightonai/GTE-ModernColBERT-v1`` or ``answerdotai/answerai-colbert-small-v1``. A plain sentence encoder also works
with its token vectors, but was not trained for late interaction.

The search is exact over all documents. With another ranker as ``first``, only its top ``depth`` documents are scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.models import MINILM, halving, identify, load_model
from askew.plugins.kinds import RankerPlugin
from askew.plugins.limits import Count, OneOf
from askew.rankers.blocks import CheckedArray
from askew.rankers.common import check_k, check_weights, one_word, query_texts, ranked
from askew.rankers.disk import (
    flat,
    new_folder,
    open_header,
    places_of,
    read_strings,
    refuse_repeats,
    write_header,
    write_strings,
)
from askew.rankers.topk import TopK

_TOKENS = "tokens.bin"
_BLOCK = 2048
_PRECISIONS = ("float16", "float32")


def make_index(
    documents: Iterable[pa.Table], folder: Path, model: str = MINILM, revision: str | None = None,
    precision: Annotated[str, OneOf(_PRECISIONS)] = "float16", batch_size: Count = 32, device: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Encode the tokens of documents. ``precision="float16"`` halves the disk space. Scores are computed in 32 bits."""
    if precision not in _PRECISIONS:
        raise ConfigError(f"lateinteraction: expected precision= to be 'float16' or 'float32', found {precision!r}")
    new_folder(folder)
    encoder = load_model("multivector", model, revision, device)
    ids, sizes, width = [], [np.zeros(1, np.int64)], 0
    with (folder / _TOKENS).open("wb") as file:
        for batch in documents:
            ids.append(flat(batch["doc_id"]).cast(pa.string()))
            for vectors in _encode(encoder, "document", flat(batch["text"]).fill_null("").to_pylist(), batch_size):
                sizes.append(np.array([len(vectors)]))
                width = vectors.shape[1]
                vectors.astype(precision).tofile(file)
    doc_ids = pa.concat_arrays(ids) if ids else pa.array([], pa.string())
    refuse_repeats(doc_ids)
    np.cumsum(np.concatenate(sizes)).astype(np.int64).tofile(folder / "token_offsets.i64")
    write_strings(folder / "doc_ids.arrow", doc_ids)
    facts = {
        "documents": len(doc_ids), "tokens": int(sum(int(s[0]) for s in sizes)), "width": width, "precision": precision,
        "model": model, "revision": revision, "weights": identify(model, revision),
    }  # fmt: skip
    write_header(folder, "lateinteraction", [_TOKENS, "token_offsets.i64", "doc_ids.arrow"], facts)
    return facts


class LateInteractionRanker:
    """Late interaction (MaxSim): exact search, or a reranker of another ranker's top-ranked documents."""

    def __init__(
        self, index: Path | str, first: RankerPlugin | None = None, depth: Count = 1000, batch_size: Count = 32,
        device: str | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(index)
        self.header = open_header(self.folder, "lateinteraction", lazily=[_TOKENS])
        self.doc_ids = read_strings(self.folder / "doc_ids.arrow")
        self._encoder = load_model("multivector", self.header["model"], self.header["revision"], device)
        check_weights(self.header, self.folder)
        self._offsets = np.fromfile(self.folder / "token_offsets.i64", np.int64)
        kind, width = np.dtype(self.header["precision"]), max(self.header["width"], 1)
        self._tokens = CheckedArray(self.folder / _TOKENS, kind, self.header["files"].get(_TOKENS, {}), width)
        self._mean = str(self._encoder.similarity_fn_name) == "meanmaxsim"
        self._first, self._depth, self._batch = first, depth, batch_size
        self._places = None if first is None else places_of(first.doc_ids, self.doc_ids, f"index {index}")
        self.id = f"lateinteraction-{one_word(self.header['weights'])}" + (f"-{first.id}" if first else "")

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text."""
        check_k(k)
        queries = query_texts(texts)
        vectors = _encode(self._encoder, "query", queries, self._batch)
        if self._first is None or self._places is None:
            return self._search_all(vectors, k)
        found = self._first.search(queries, max(k, self._depth))
        places, rows = self._places[found.docs], found.rows()
        scores = np.zeros(len(places), np.float32)
        for i, query in enumerate(vectors):
            part = slice(int(found.offsets[i]), int(found.offsets[i + 1]))
            scores[part] = [self._score(query, int(doc), int(doc) + 1)[0] for doc in places[part]]
        return ranked(rows, places, scores, len(queries), k)

    def _search_all(self, vectors: list[Any], k: int) -> Hits:
        best = TopK(len(vectors), k)
        documents = len(self.doc_ids)
        for first in range(0, documents if vectors else 0, _BLOCK):
            last = min(first + _BLOCK, documents)
            best.offer(np.stack([self._score(query, first, last) for query in vectors]), first)
        return best.hits()

    def _score(self, query: Any, first: int, last: int) -> Any:
        """MaxSim of a query with the documents from ``first`` up to ``last``. A document without tokens scores zero."""
        offsets = self._offsets[first : last + 1] - self._offsets[first]
        scores = np.zeros(last - first, np.float32)
        filled = np.diff(offsets) > 0
        if not filled.any() or not len(query):
            return scores
        tokens = self._tokens[self._offsets[first] : self._offsets[last]].astype(np.float32)
        best = np.maximum.reduceat(query @ tokens.T, offsets[:-1][filled], axis=1)
        scores[filled] = best.sum(axis=0, dtype=np.float32) / (len(query) if self._mean else 1)
        return scores


def _encode(encoder: Any, side: str, texts: list[str], batch_size: int) -> list[Any]:
    if not texts:
        return []
    count_model_calls(len(texts))
    encode = encoder.encode_query if side == "query" else encoder.encode_document
    made = halving(
        encoder, batch_size,
        lambda size: encode(texts, batch_size=size, show_progress_bar=False, convert_to_numpy=True),
    )  # fmt: skip
    return [np.ascontiguousarray(vectors, np.float32) for vectors in made]
