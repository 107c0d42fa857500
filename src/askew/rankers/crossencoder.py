"""A cross-encoder reads a query and a document together. It is too slow for a collection, so it reranks other results.

The model is an id such as ``cross-encoder/ms-marco-MiniLM-L6-v2`` or ``BAAI/bge-reranker-base``, or the folder of a
model trained with ``askew train``. An encoder without a trained scoring layer is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError
from askew.core.ranking import Hits
from askew.models import halving, identify, load_model
from askew.plugins.kinds import RankerPlugin
from askew.rankers.common import check_k, one_word, query_texts, ranked
from askew.rankers.disk import StoredTexts, places_of, read_doc_ids, read_header

DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"


class CrossEncoderRanker:
    """Reranks the top-ranked documents of another ranker, as many as the setting depth, and leaves out all others.

    The texts are stored in an index, or given as a mapping from document id to text.
    """

    def __init__(
        self, first: RankerPlugin, index: Path | str | None = None, texts: Mapping[str, str] | None = None,
        model: str = DEFAULT, revision: str | None = None, depth: int = 100, batch_size: int = 32,
        device: str | None = None,
    ) -> None:  # fmt: skip
        if depth < 1:
            raise ConfigError(f"crossencoder: expected depth= to be 1 or more, found {depth}")
        if (index is None) == (texts is None):
            raise ConfigError(
                "crossencoder: expected either index= (an index with stored texts) or texts=, found both or neither"
            )
        self._first, self._depth, self._batch = first, depth, batch_size
        self.doc_ids = first.doc_ids
        if texts is not None:
            places_of(first.doc_ids, pa.array(list(texts), pa.string()), "crossencoder: the texts")
            listed = [texts[doc_id] for doc_id in first.doc_ids.to_pylist()]
            self._text_of: Callable[[int], str] = lambda doc: listed[doc]
        else:
            folder = Path(str(index))
            kept = StoredTexts(folder, read_header(folder)["documents"])
            places = places_of(first.doc_ids, read_doc_ids(folder), f"index {folder}")
            self._text_of = lambda doc: kept[int(places[doc])]
        self._model = load_model("cross", model, revision, device)
        self.id = f"crossencoder-{one_word(identify(model, revision))}-{first.id}"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best of the first ranker's documents for each text."""
        check_k(k)
        queries = query_texts(texts)
        found = self._first.search(queries, self._depth)
        rows = found.rows()
        pairs = [
            (queries[row], self._text_of(doc)) for row, doc in zip(rows.tolist(), found.docs.tolist(), strict=True)
        ]
        if not pairs:
            return found
        count_model_calls(len(pairs))
        predict = partial(self._model.predict, pairs, show_progress_bar=False)
        scores = np.asarray(halving(self._model, self._batch, lambda size: predict(batch_size=size)))
        if scores.ndim != 1:
            raise ConfigError(
                "crossencoder: expected a model that gives one score for each pair of query and document, found "
                f"{scores.shape[1]} scores for each pair"
            )
        return ranked(rows, found.docs, scores, len(queries), k)
