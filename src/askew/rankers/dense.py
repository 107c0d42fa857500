"""Dense retrieval with any sentence-transformers model: exact by default, or with a FAISS index.

``all-MiniLM-L6-v2`` is the default. Other models are given by their hub id, for instance
``sentence-transformers/msmarco-distilbert-base-tas-b``,
``sentence-transformers/msmarco-roberta-base-ance-firstp`` (ANCE),
``castorini/tct_colbert-v2-hnp-msmarco`` (TCT-ColBERT; mean pooling is added) or ``BAAI/bge-base-en-v1.5``. By default
the prompts of the model are used; ``query_prompt`` and ``doc_prompt`` replace them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, MissingExtra
from askew.core.ranking import Hits
from askew.models import MINILM, halving, identify, load_model
from askew.plugins.limits import Count, OneOf
from askew.rankers.blocks import CheckedArray
from askew.rankers.common import check_k, check_weights, join_hits, one_word, query_texts
from askew.rankers.disk import flat, new_folder, open_header, read_strings, refuse_repeats, write_header, write_strings
from askew.rankers.topk import TopK

_VECTORS = "vectors.f32"
_BLOCK = 1 << 14
_QUERIES = 256
_SEARCHES = ("exact", "faiss")


def make_index(
    documents: Iterable[pa.Table], folder: Path, model: str = MINILM, revision: str | None = None,
    query_prompt: str = "", doc_prompt: str = "", faiss: str = "", batch_size: Count = 64, device: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Encode documents into a folder. ``faiss`` is a factory string, such as HNSW32, to also make a FAISS index."""
    new_folder(folder)
    encoder = load_model("dense", model, revision, device)
    ids: list[pa.Array] = []
    with (folder / _VECTORS).open("wb") as file:
        for batch in documents:
            ids.append(flat(batch["doc_id"]).cast(pa.string()))
            texts = flat(batch["text"]).fill_null("").to_pylist()
            _encode(encoder, "document", texts, doc_prompt, batch_size).tofile(file)
    doc_ids = pa.concat_arrays(ids) if ids else pa.array([], pa.string())
    refuse_repeats(doc_ids)
    write_strings(folder / "doc_ids.arrow", doc_ids)
    width = int(encoder.get_embedding_dimension())
    files = [_VECTORS, "doc_ids.arrow"]
    if faiss:
        _make_faiss(np.fromfile(folder / _VECTORS, np.float32).reshape(-1, width), faiss, folder / "faiss.index")
        files.append("faiss.index")
    facts = {
        "documents": len(doc_ids), "model": model, "revision": revision, "weights": identify(model, revision),
        "width": width, "similarity": _similarity(encoder), "query_prompt": query_prompt, "doc_prompt": doc_prompt,
        "faiss": faiss,
    }  # fmt: skip
    write_header(folder, "dense", files, facts)
    return facts


class DenseRanker:
    """Dense retrieval, exact (search = 'exact') or with FAISS (search = 'faiss')."""

    def __init__(
        self, index: Path | str, search: Annotated[str, OneOf(_SEARCHES)] = "exact", nprobe: Count = 32,
        batch_size: Count = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        self.folder = Path(index)
        self.header = open_header(self.folder, "dense", lazily=[_VECTORS])
        if search not in _SEARCHES:
            raise ConfigError(f"dense: expected search= to be 'exact' or 'faiss', found {search!r}")
        self.doc_ids = read_strings(self.folder / "doc_ids.arrow")
        known = self.header["files"].get(_VECTORS, {})
        self._vectors = CheckedArray(self.folder / _VECTORS, np.float32, known, self.header["width"])
        self._encoder = load_model("dense", self.header["model"], self.header["revision"], device)
        check_weights(self.header, self.folder)
        self._batch = batch_size
        self._faiss = _open_faiss(self.folder, self.header, nprobe) if search == "faiss" else None
        self.id = f"dense-{one_word(self.header['weights'])}" + ("-faiss" if search == "faiss" else "")

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k nearest documents of each text."""
        check_k(k)
        queries = query_texts(texts)
        if not queries or not len(self.doc_ids):
            return TopK(len(queries), k).hits()
        vectors = _encode(self._encoder, "query", queries, self.header["query_prompt"], self._batch)
        if self._faiss is not None:
            return _search_faiss(self._faiss, vectors, min(k, len(self.doc_ids)))
        return search_exactly(vectors, self._vectors, k)


def search_exactly(queries: Any, vectors: Any, k: int) -> Hits:
    """The k documents with the highest inner products, computed block by block."""
    parts = []
    for start in range(0, len(queries), _QUERIES):
        part = queries[start : start + _QUERIES]
        best = TopK(len(part), k)
        for first in range(0, len(vectors), _BLOCK):
            best.offer(part @ vectors[first : first + _BLOCK].T, first)
        parts.append(best.hits())
    return join_hits(parts)


def _encode(encoder: Any, side: str, texts: list[str], prompt: str, batch_size: int) -> Any:
    count_model_calls(len(texts))
    encode = encoder.encode_query if side == "query" else encoder.encode_document
    how = {"normalize_embeddings": _similarity(encoder) == "cosine", **({"prompt": prompt} if prompt else {})}
    vectors = halving(
        encoder, batch_size,
        lambda size: encode(texts, batch_size=size, show_progress_bar=False, convert_to_numpy=True, **how),
    )  # fmt: skip
    return np.ascontiguousarray(vectors, np.float32)


def _similarity(encoder: Any) -> str:
    name = str(getattr(encoder.similarity_fn_name, "value", encoder.similarity_fn_name))
    if name not in ("cosine", "dot"):
        raise ConfigError(f"dense: expected a model with cosine or dot similarity, found {name!r}")
    return name


def _faiss() -> Any:
    if find_spec("faiss") is None:
        raise MissingExtra("searching with FAISS", "faiss")
    import faiss

    return faiss


def _make_faiss(vectors: Any, factory: str, path: Path) -> None:
    faiss = _faiss()
    try:
        index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors)
    except RuntimeError as error:
        raise ConfigError(f"faiss: the index {factory!r} cannot be made ({str(error).splitlines()[-1]})") from None
    index.add(vectors)
    faiss.write_index(index, str(path))


def _open_faiss(folder: Path, header: dict[str, Any], nprobe: int) -> Any:
    if not header["faiss"]:
        raise ConfigError(
            f"index {folder}: it was built without FAISS; build it again with faiss='HNSW32', or search with "
            "search='exact'"
        )
    index = _faiss().read_index(str(folder / "faiss.index"))
    if hasattr(index, "nprobe"):
        index.nprobe = nprobe
    if hasattr(index, "hnsw"):
        index.hnsw.efSearch = max(nprobe, index.hnsw.efSearch)
    return index


def _search_faiss(index: Any, vectors: Any, k: int) -> Hits:
    scores, docs = index.search(vectors, k)
    found = docs >= 0
    # FAISS returns equal scores in any order. Here they follow the order of the collection.
    order = np.lexsort((docs, -scores), axis=1)
    scores, docs, found = (np.take_along_axis(a, order, axis=1) for a in (scores, docs, found))
    offsets = np.concatenate([[0], np.cumsum(found.sum(axis=1))]).astype(np.int64)
    return Hits(offsets, docs[found].astype(np.int32), scores[found].astype(np.float32))
