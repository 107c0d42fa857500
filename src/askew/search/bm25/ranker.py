"""Search a BM25 index. Batches of queries are analyzed together, and equal bags of terms are searched once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa

from askew.core.errors import one_of
from askew.core.plugins import Between, Count, NotNegative, OneOf, Positive, Share
from askew.core.ranking import Hits
from askew.search.bm25.analyze import Analyzer, analyzer_names
from askew.search.bm25.build import build_index
from askew.search.bm25.index import LENGTHS, MODELS, Bm25, Index, Model, Qld
from askew.search.bm25.search import MOST, Bags, BagSearcher, distinct_bags
from askew.search.common import query_texts
from askew.search.feedback import Rm3, Rocchio, Weights, has_usable_length, is_common


class Bm25Ranker:
    """Searches an index under a model: BM25 with its parameters, or query likelihood."""

    most = MOST

    def __init__(self, index: Index | Path | str, model: Model | str = "bm25", threads: int | None = None) -> None:
        self.index = index if isinstance(index, Index) else Index(index)
        if isinstance(model, str):
            model = MODELS[one_of(model, MODELS, "model")]
        self.model, self.id, self.doc_ids = model, model.id, self.index.doc_ids
        self.weights = self.index.weights(model)
        self.analyzer = Analyzer(self.index.header["analyzer"])
        self._searcher = BagSearcher(self.index.offsets, self.index.docs, self.weights, len(self.index), threads)
        self.threads = self._searcher.threads

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each query."""
        array = texts if isinstance(texts, pa.Array) else pa.array(list(texts), pa.large_string())
        return self.search_bags(self.bags(array.cast(pa.large_string()).fill_null("")), k)

    def search_bags(self, bags: Bags, k: int) -> Hits:
        """Do the same as ``search`` for queries given as bags of terms."""
        return self._searcher.search(bags, k)

    def search_weighted(self, queries: Sequence[Mapping[str, float]], k: int = 10) -> Hits:
        """Do the same as ``search`` for queries given as analyzed terms with weights."""
        names = sorted({term for query in queries for term in query})
        numbers = dict(zip(names, self.index.term_numbers(names).tolist(), strict=True))
        rows = [[(numbers[t], w) for t, w in query.items() if numbers[t] >= 0 and w > 0] for query in queries]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        flat = [pair for row in rows for pair in row]
        terms = np.array([t for t, _ in flat], np.int64)
        weights = np.array([w for _, w in flat], np.float64)
        return self.search_bags(Bags(offsets, terms, weights, np.arange(len(rows))), k)

    def bags(self, texts: pa.Array) -> Bags:
        """Analyze queries. Terms that no document has are left out, and equal queries are merged."""
        words, ids, counts = self.analyzer.split(texts)
        of_words = self.analyzer.to_terms(words)
        numbers = self.index.term_numbers([term or "" for term in of_words])
        numbers[[term is None for term in of_words]] = -1
        terms = numbers[ids] if len(words) else np.zeros(0, np.int64)
        query = np.repeat(np.arange(len(counts)), counts)
        query, terms = query[terms >= 0], terms[terms >= 0]
        order = np.lexsort((terms, query))
        query, terms = query[order], terms[order]
        new = np.ones(len(terms), np.bool_)
        new[1:] = (terms[1:] != terms[:-1]) | (query[1:] != query[:-1])
        starts = np.flatnonzero(new)
        weights = np.diff(np.append(starts, len(terms))).astype(np.float64)
        sizes = np.bincount(query[starts], minlength=len(counts))
        return distinct_bags(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), terms[starts], weights)


# Pseudo-relevance feedback as Anserini does it: RM3 and Rocchio.


def expand(ranker: Bm25Ranker, texts: Sequence[str], method: Rm3 | Rocchio) -> list[Weights]:
    """Expand each query to weighted terms. A query without results keeps its own terms."""
    first = ranker.search(texts, method.documents)
    expanded = []
    for i, text in enumerate(texts):
        query: Weights = {term: float(count) for term, count in Counter(ranker.analyzer.terms(text)).items()}
        part = slice(int(first.offsets[i]), int(first.offsets[i + 1]))
        hits = zip(first.docs[part].tolist(), first.scores[part].tolist(), strict=True)
        documents = [(method.read(_usable_terms(ranker, doc)), score) for doc, score in hits]
        expanded.append(method.mix(query, documents) if documents else query)
    return expanded


def _usable_terms(ranker: Bm25Ranker, doc: int) -> Weights:
    index = ranker.index
    numbers, counts = index.document_terms(doc)
    rare = ~is_common(index.offsets[numbers + 1] - index.offsets[numbers], index.with_text)
    names = index.terms.take(pa.array(numbers[rare])).to_pylist()
    frequencies = zip(names, counts[rare].tolist(), strict=True)
    return {name: float(count) for name, count in frequencies if has_usable_length(name)}


# BM25 and related rankers, under their names in commands and recipes.

Chain = Annotated[str, OneOf(analyzer_names)]
Lengths = Annotated[str, OneOf(LENGTHS)]
Documents = Annotated[int, Between(1, MOST)]


def make_index(
    documents: Iterable[pa.Table], folder: Path, analyzer: Chain = "english", threads: Count | None = None
) -> dict[str, Any]:
    """Make an index with the postings for BM25, query likelihood and feedback."""
    return build_index(documents, folder, Analyzer(analyzer), threads).header


def bm25(
    index: Path | str,
    k1: NotNegative = Bm25.k1,
    b: Share = Bm25.b,
    lengths: Lengths = Bm25.lengths,
    threads: Count | None = None,
) -> Bm25Ranker:
    """BM25 as Lucene computes it, with Anserini's k1 and b; exact and fast."""
    return Bm25Ranker(index, Bm25(k1, b, lengths), threads)


def bm25_msmarco(index: Path | str, lengths: Lengths = Bm25.lengths, threads: Count | None = None) -> Bm25Ranker:
    """BM25 with k1 and b tuned on MS MARCO passages (0.82, 0.68)."""
    return Bm25Ranker(index, replace(MODELS["bm25-msmarco"], lengths=lengths), threads)


def qld(
    index: Path | str, mu: Positive = Qld.mu, lengths: Lengths = Bm25.lengths, threads: Count | None = None
) -> Bm25Ranker:
    """Query likelihood with Dirichlet smoothing, on the postings of BM25."""
    return Bm25Ranker(index, Qld(mu, lengths), threads)


class FeedbackRanker:
    """BM25 with pseudo-relevance feedback: a second search adds terms of the top-ranked documents to the query."""

    most = MOST

    def __init__(self, base: Bm25Ranker, method: Rm3 | Rocchio, name: str) -> None:
        self.base, self.method, self.doc_ids = base, method, base.doc_ids
        self.id = f"{base.id}-{name}"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text after feedback."""
        return self.base.search_weighted(expand(self.base, query_texts(texts), self.method), k)


def rm3(
    index: Path | str, documents: Documents = Rm3.documents, terms: Count = Rm3.terms, original: Share = Rm3.original,
    k1: NotNegative = Bm25.k1, b: Share = Bm25.b, threads: Count | None = None,
) -> FeedbackRanker:  # fmt: skip
    """BM25 with RM3 feedback and Anserini's default settings."""
    name = f"rm3-{documents}-{terms}-{original:g}"
    return FeedbackRanker(bm25(index, k1, b, threads=threads), Rm3(documents, terms, original), name)


def rocchio(
    index: Path | str, documents: Documents = Rocchio.documents, terms: Count = Rocchio.terms,
    alpha: NotNegative = Rocchio.alpha, beta: NotNegative = Rocchio.beta, k1: NotNegative = Bm25.k1, b: Share = Bm25.b,
    threads: Count | None = None,
) -> FeedbackRanker:  # fmt: skip
    """BM25 with Rocchio feedback and Anserini's default settings."""
    name = f"rocchio-{documents}-{terms}-{alpha:g}-{beta:g}"
    return FeedbackRanker(bm25(index, k1, b, threads=threads), Rocchio(documents, terms, alpha, beta), name)
