"""Neural rankers on models of sentence-transformers: dense, sparse, and cross-encoders.

A dense model is ``all-MiniLM-L6-v2`` by default. Other models are given by their hub id, for instance
``sentence-transformers/msmarco-distilbert-base-tas-b``,
``sentence-transformers/msmarco-roberta-base-ance-firstp`` (ANCE),
``castorini/tct_colbert-v2-hnp-msmarco`` (TCT-ColBERT; mean pooling is added) or ``BAAI/bge-base-en-v1.5``. By default
the prompts of the model are used; ``query_prompt`` and ``doc_prompt`` replace them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError, MissingExtra
from askew.core.plugins import Count, OneOf
from askew.core.protocols import RankerPlugin
from askew.core.ranking import Hits
from askew.models import MINILM, halving, identify, load_model
from askew.search.bm25.index import Weights, write_weights
from askew.search.bm25.search import MOST, BagSearcher, distinct_bags
from askew.search.common import TopK, check_k, join_hits, one_word, query_texts, ranked
from askew.search.disk import (
    CheckedArray,
    StoredTexts,
    batches_of,
    finish_index,
    new_folder,
    open_header,
    places_of,
    read_doc_ids,
    read_strings,
)


def _encode(encoder: Any, side: str, texts: list[str], batch_size: int, **options: Any) -> Any:
    """The vectors of texts, in batches that are halved as long as they do not fit the memory."""
    encode = partial(getattr(encoder, f"encode_{side}"), texts, show_progress_bar=False, **options)
    return halving(encoder, batch_size, lambda size: encode(batch_size=size))


class _Encoded:
    """An index that a model made. Its files named in ``lazily`` are checked as they are read."""

    def __init__(self, index: Path | str, ranker: str, kind: str, lazily: Collection[str], device: str | None) -> None:
        self.folder = Path(index)
        self.header = open_header(self.folder, ranker, lazily)
        self.doc_ids = read_strings(self.folder / "doc_ids.arrow")
        self._encoder = load_model(kind, self.header["model"], self.header["revision"], device)
        weights = identify(self.header["model"], self.header["revision"])
        if weights != self.header["weights"]:
            raise ConfigError(
                f"index {index}: the index was built with the model {self.header['weights']}, but the installed model "
                f"is {weights}; build the index again",
                code="other-weights",
                built=self.header["weights"],
            )
        self.id = f"{ranker}-{one_word(weights)}"

    def _array(self, name: str, width: int | None = None) -> CheckedArray:
        return CheckedArray(self.folder / name, self.header["files"].get(name, {}), width)


# A cross-encoder reads a query and a document together. It is too slow for a collection, so it reranks other results.

DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"


class CrossEncoderRanker:
    """Reranks the top-ranked documents of another ranker, as many as the setting depth, and leaves out all others.

    The texts are stored in an index, or given as a mapping from document id to text.
    """

    def __init__(
        self,
        first: RankerPlugin,
        index: Path | str | None = None,
        texts: Mapping[str, str] | None = None,
        model: str = DEFAULT,
        revision: str | None = None,
        depth: Count = 100,
        batch_size: Count = 32,
        device: str | None = None,
    ) -> None:
        if (index is None) == (texts is None):
            raise ConfigError("crossencoder: give either ⟨index⟩ (an index with stored texts) or ⟨texts⟩")
        self._first, self._depth, self._batch = first, depth, batch_size
        self.doc_ids = first.doc_ids
        if texts is not None:
            places_of(first.doc_ids, pa.array(list(texts), pa.string()), "crossencoder: the texts")
            listed = [texts[doc_id] for doc_id in first.doc_ids.to_pylist()]
            self._text_of: Callable[[int], str] = listed.__getitem__
        else:
            folder = Path(str(index))
            stored = StoredTexts(folder)
            places = places_of(first.doc_ids, read_doc_ids(folder), f"index {folder}")
            self._text_of = lambda doc: stored[int(places[doc])]
        self._model = load_model("cross", model, revision, device)
        self.id = f"crossencoder-{one_word(identify(model, revision))}-{first.id}"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best of the first ranker's documents for each text."""
        check_k(k)
        queries = query_texts(texts)
        hits = self._first.search(queries, self._depth)
        rows = hits.rows()
        pairs = [(queries[row], self._text_of(doc)) for row, doc in zip(rows.tolist(), hits.docs.tolist(), strict=True)]
        if not pairs:
            return hits
        return ranked(rows, hits.docs, score_pairs(self._model, pairs, self._batch), len(queries), k)


def score_pairs(model: Any, pairs: Sequence[tuple[str, str]], batch_size: int) -> Any:
    """The scores of pairs of query and document by a cross-encoder."""
    count_model_calls(len(pairs))
    predict = partial(model.predict, pairs, show_progress_bar=False)
    scores = np.asarray(halving(model, batch_size, lambda size: predict(batch_size=size)))
    if scores.ndim != 1:
        raise ConfigError(
            "crossencoder: expected a model with one score for each pair of query and document, found "
            f"{scores.shape[1]} scores"
        )
    return scores


# Learned sparse retrieval: SPLADE and similar models of sentence-transformers' SparseEncoder, on askew's postings.

_WEIGHTS = "weights-model"
_ARRAYS = ("offsets.i64", "docs.i32")


def make_sparse_index(
    documents: Iterable[pa.Table],
    folder: Path,
    model: str,
    revision: str | None = None,
    batch_size: Count = 32,
    most_terms: Count | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Encode documents into postings. ``most_terms`` limits each document to its terms with the highest weights."""
    new_folder(folder)
    encoder = load_model("sparse", model, revision, device)
    ids: list[pa.Array] = []
    parts, count = [_encode_sparse(encoder, "document", [], batch_size, most_terms)], 0
    for texts in batches_of(documents, ids):
        rows, terms, weights = _encode_sparse(encoder, "document", texts, batch_size, most_terms)
        parts.append([rows + count, terms, weights])
        count += len(texts)
    docs, terms, impacts = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.lexsort((docs, terms))
    width = int(encoder.get_embedding_dimension())
    offsets = np.concatenate([[0], np.cumsum(np.bincount(terms, minlength=width))]).astype(np.int64)
    docs, impacts = docs[order].astype(np.int32), impacts[order].astype(np.float32)
    offsets.tofile(folder / "offsets.i64")
    docs.tofile(folder / "docs.i32")
    write_weights(folder / _WEIGHTS, "model", offsets, docs, impacts, count)
    facts = {"terms": width, "postings": len(docs), "model": model, "revision": revision}
    facts |= {"weights": identify(model, revision), "most_terms": most_terms}
    return finish_index(folder, "sparse", _ARRAYS, ids, facts)


class SparseRanker(_Encoded):
    """Learned sparse retrieval, such as SPLADE: exact search on postings."""

    most = MOST

    def __init__(
        self,
        index: Path | str,
        most_terms: Count | None = None,
        batch_size: Count = 32,
        threads: Count | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(index, "sparse", "sparse", _ARRAYS, device)
        offsets, docs = map(self._array, _ARRAYS)
        self._searcher = BagSearcher(offsets, docs, Weights(self.folder / _WEIGHTS), len(self.doc_ids), threads)
        self._batch, self._most = batch_size, most_terms

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text."""
        queries = query_texts(texts)
        rows, terms, weights = _encode_sparse(self._encoder, "query", queries, self._batch, self._most)
        order = np.lexsort((terms, rows))
        sizes = np.bincount(rows, minlength=len(queries))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return self._searcher.search(distinct_bags(offsets, terms[order], weights[order].astype(np.float64)), k)


def _encode_sparse(encoder: Any, side: str, texts: list[str], batch_size: int, most_terms: int | None) -> list[Any]:
    """Rows, terms and weights of texts, encoded one batch at a time, because the dense form of many texts is large."""
    count_model_calls(len(texts))
    parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))]
    for start in range(0, len(texts), batch_size):
        part = texts[start : start + batch_size]
        encoded = _encode(encoder, side, part, batch_size, save_to_cpu=True, max_active_dims=most_terms).coalesce()
        (rows, terms), weights = encoded.indices().numpy(), encoded.values().float().numpy()
        if len(weights) and not weights.min() >= 0:
            raise DataError(f"sparse: expected term weights of zero or more from the model, found {weights.min()}")
        positive = weights > 0
        parts.append((rows[positive] + start, terms[positive], weights[positive]))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


# Dense retrieval: one vector for each text.

_VECTORS, _FAISS = "vectors.f32", "faiss.index"
# The numbers of documents and of queries that are compared at a time.
_BLOCK, _QUERIES = 1 << 14, 256


def make_dense_index(
    documents: Iterable[pa.Table],
    folder: Path,
    model: str = MINILM,
    revision: str | None = None,
    query_prompt: str = "",
    doc_prompt: str = "",
    faiss: str = "",
    batch_size: Count = 64,
    device: str | None = None,
) -> dict[str, Any]:
    """Encode documents into a folder. ``faiss`` is a factory string, such as HNSW32, to also make a FAISS index."""
    new_folder(folder)
    encoder = load_model("dense", model, revision, device)
    ids: list[pa.Array] = []
    with (folder / _VECTORS).open("wb") as file:
        for texts in batches_of(documents, ids):
            _encode_dense(encoder, "document", texts, doc_prompt, batch_size).tofile(file)
    width = int(encoder.get_embedding_dimension())
    if faiss:
        library = _faiss_library()
        vectors = np.fromfile(folder / _VECTORS, np.float32).reshape(-1, width)
        try:
            index = library.index_factory(width, faiss, library.METRIC_INNER_PRODUCT)
            index.train(vectors)
        except RuntimeError as error:
            raise ConfigError(f"faiss: the index {faiss!r} cannot be made ({str(error).splitlines()[-1]})") from None
        index.add(vectors)
        library.write_index(index, str(folder / _FAISS))
    facts = {"model": model, "revision": revision, "weights": identify(model, revision), "width": width}
    facts |= {"similarity": _similarity(encoder), "query_prompt": query_prompt, "doc_prompt": doc_prompt}
    files = [_VECTORS, _FAISS] if faiss else [_VECTORS]
    return finish_index(folder, "dense", files, ids, facts | {"faiss": faiss})


class DenseRanker(_Encoded):
    """Dense retrieval, exact (search = 'exact') or with FAISS (search = 'faiss')."""

    def __init__(
        self,
        index: Path | str,
        search: Annotated[str, OneOf(("exact", "faiss"))] = "exact",
        nprobe: Count = 32,
        batch_size: Count = 64,
        device: str | None = None,
    ) -> None:
        super().__init__(index, "dense", "dense", [_VECTORS], device)
        self._vectors = self._array(_VECTORS, self.header["width"])
        self._batch = batch_size
        self._faiss: Any = None
        if search == "faiss":
            if not self.header["faiss"]:
                do = "build it again with ⟨faiss=HNSW32⟩, or search exactly"
                raise ConfigError(f"index {self.folder}: built without FAISS; {do}")
            self._faiss = _faiss_library().read_index(str(self.folder / _FAISS))
            if hasattr(self._faiss, "nprobe"):
                self._faiss.nprobe = nprobe
            if hasattr(self._faiss, "hnsw"):
                self._faiss.hnsw.efSearch = max(nprobe, self._faiss.hnsw.efSearch)
            self.id += "-faiss"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k nearest documents of each text."""
        check_k(k)
        queries = query_texts(texts)
        if not queries or not len(self.doc_ids):
            return TopK(len(queries), k).hits()
        vectors = _encode_dense(self._encoder, "query", queries, self.header["query_prompt"], self._batch)
        if self._faiss is not None:
            scores, docs = self._faiss.search(vectors, min(k, len(self.doc_ids)))
            # FAISS returns equal scores in any order. Here they follow the order of the collection.
            order = np.lexsort((docs, -scores), axis=1)
            scores, docs = (np.take_along_axis(array, order, axis=1) for array in (scores, docs))
            is_hit = docs >= 0
            offsets = np.concatenate([[0], np.cumsum(is_hit.sum(axis=1))]).astype(np.int64)
            return Hits(offsets, docs[is_hit].astype(np.int32), scores[is_hit].astype(np.float32))
        parts = []
        for start in range(0, len(vectors), _QUERIES):
            part = vectors[start : start + _QUERIES]
            best = TopK(len(part), k)
            for first in range(0, len(self._vectors), _BLOCK):
                best.offer(part @ self._vectors[first : first + _BLOCK].T, first)
            parts.append(best.hits())
        return join_hits(parts)


def _encode_dense(encoder: Any, side: str, texts: list[str], prompt: str, batch_size: int) -> Any:
    count_model_calls(len(texts))
    how = {"normalize_embeddings": _similarity(encoder) == "cosine", **({"prompt": prompt} if prompt else {})}
    return np.ascontiguousarray(_encode(encoder, side, texts, batch_size, convert_to_numpy=True, **how), np.float32)


def _similarity(encoder: Any) -> str:
    name = str(getattr(encoder.similarity_fn_name, "value", encoder.similarity_fn_name))
    if name not in ("cosine", "dot"):
        raise ConfigError(f"dense: expected a model with cosine or dot similarity, found {name!r}")
    return name


def _faiss_library() -> Any:
    if find_spec("faiss") is None:
        raise MissingExtra("searching with FAISS", "faiss")
    import faiss

    return faiss
