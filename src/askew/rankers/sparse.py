"""Learned sparse retrieval: SPLADE and similar models of sentence-transformers' SparseEncoder, on askew's postings.

The model is any id that SparseEncoder loads, for instance ``naver/splade-v3``,
``naver/splade-cocondenser-ensembledistil`` or ``opensearch-project/opensearch-neural-sparse-encoding-doc-v3-distill``.
The search is exact: the weights of the model are the impacts of the postings, searched like
those of BM25.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.costs import count_model_calls
from askew.core.errors import DataError
from askew.core.ranking import Hits
from askew.models import halving, identify, load_model
from askew.plugins.limits import Count
from askew.rankers.blocks import CheckedArray
from askew.rankers.bm25.bags import MOST, BagSearcher, distinct_bags
from askew.rankers.bm25.bounds import read_weights, write_weights
from askew.rankers.common import check_weights, one_word, query_texts
from askew.rankers.disk import flat, new_folder, open_header, read_strings, refuse_repeats, write_header, write_strings

_WEIGHTS = "weights-model"
_ARRAYS = {"offsets.i64": np.int64, "docs.i32": np.int32}


def make_index(
    documents: Iterable[pa.Table], folder: Path, model: str, revision: str | None = None, batch_size: Count = 32,
    most_terms: Count | None = None, device: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Encode documents into postings. ``most_terms`` limits each document to its terms with the highest weights."""
    new_folder(folder)
    encoder = load_model("sparse", model, revision, device)
    ids: list[pa.Array] = []
    parts: list[tuple[Any, Any, Any]] = []
    first = 0
    for batch in documents:
        ids.append(flat(batch["doc_id"]).cast(pa.string()))
        texts = flat(batch["text"]).fill_null("").to_pylist()
        for rows, terms, weights in _encode(encoder, "document", texts, batch_size, most_terms):
            parts.append((rows + first, terms, weights))
        first += len(texts)
    doc_ids = pa.concat_arrays(ids) if ids else pa.array([], pa.string())
    refuse_repeats(doc_ids)
    docs, terms, impacts = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.lexsort((docs, terms))
    width = int(encoder.get_embedding_dimension())
    offsets = np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=width))]).astype(np.int64)
    docs, impacts = docs[order].astype(np.int32), impacts[order].astype(np.float32)
    offsets.tofile(folder / "offsets.i64")
    docs.tofile(folder / "docs.i32")
    write_strings(folder / "doc_ids.arrow", doc_ids)
    write_weights(folder / _WEIGHTS, "model", offsets, docs, impacts, len(doc_ids))
    facts = {
        "documents": len(doc_ids), "terms": width, "postings": len(docs), "model": model, "revision": revision,
        "weights": identify(model, revision), "most_terms": most_terms,
    }  # fmt: skip
    write_header(folder, "sparse", [*_ARRAYS, "doc_ids.arrow"], facts)
    return facts


class SparseRanker:
    """Learned sparse retrieval, such as SPLADE: exact search on postings."""

    most = MOST

    def __init__(
        self, index: Path | str, most_terms: Count | None = None, batch_size: Count = 32, threads: Count | None = None,
        device: str | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(index)
        self.header = open_header(self.folder, "sparse", lazily=_ARRAYS)
        self.doc_ids = read_strings(self.folder / "doc_ids.arrow")
        self._encoder = load_model("sparse", self.header["model"], self.header["revision"], device)
        check_weights(self.header, self.folder)
        offsets, docs = (
            CheckedArray(self.folder / name, dtype, self.header["files"].get(name, {}))
            for name, dtype in _ARRAYS.items()
        )
        weights = read_weights(self.folder / _WEIGHTS)
        self._searcher = BagSearcher(offsets, docs, weights, len(self.doc_ids), threads)
        self._batch, self._most = batch_size, most_terms
        self.id = f"sparse-{one_word(self.header['weights'])}"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text."""
        queries = query_texts(texts)
        parts = list(_encode(self._encoder, "query", queries, self._batch, self._most))
        rows, terms, weights = (np.concatenate([part[i] for part in parts]) for i in range(3))
        order = np.lexsort((terms, rows))
        sizes = np.bincount(rows, minlength=len(queries))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return self._searcher.search(distinct_bags(offsets, terms[order], weights[order].astype(np.float64)), k)


def _sparse(encode: Any, texts: list[str], most_terms: int | None, size: int) -> Any:
    return encode(texts, batch_size=size, show_progress_bar=False, save_to_cpu=True, max_active_dims=most_terms)


def _encode(
    encoder: Any, side: str, texts: list[str], batch_size: int, most_terms: int | None
) -> Iterator[tuple[Any, Any, Any]]:
    """Rows, terms and weights of texts, one batch at a time, because the dense form of many texts is large."""
    count_model_calls(len(texts))
    encode = encoder.encode_query if side == "query" else encoder.encode_document
    yield np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    for start in range(0, len(texts), batch_size):
        some = texts[start : start + batch_size]
        found = halving(encoder, batch_size, partial(_sparse, encode, some, most_terms)).coalesce()
        (rows, terms), weights = found.indices().numpy(), found.values().float().numpy()
        if len(weights) and not weights.min() >= 0:
            raise DataError(f"sparse: expected term weights of zero or more from the model, found {weights.min()}")
        kept = weights > 0
        yield rows[kept] + start, terms[kept], weights[kept]
