"""BM25 and related rankers, under their names in commands and recipes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from askew.core.ranking import Hits
from askew.plugins.limits import Between, Count, NotNegative, OneOf, Positive, Share
from askew.rankers.bm25.analyze import Analyzer, analyzer_names
from askew.rankers.bm25.bags import MOST
from askew.rankers.bm25.build import build_index
from askew.rankers.bm25.feedback import Rm3, Rocchio, search_with_feedback
from askew.rankers.bm25.ranker import Bm25Ranker
from askew.rankers.bm25.weights import LENGTHS, Bm25, Qld
from askew.rankers.common import query_texts

Chain = Annotated[str, OneOf(analyzer_names)]
Lengths = Annotated[str, OneOf(LENGTHS)]
Documents = Annotated[int, Between(1, MOST)]


def make_index(
    documents: Iterable[pa.Table],
    folder: Path,
    analyzer: Chain = "english",
    threads: Count | None = None,
) -> dict[str, Any]:
    """Make an index with the postings for BM25, query likelihood and feedback."""
    return build_index(documents, folder, Analyzer(analyzer), threads).header


def bm25(
    index: Path | str, k1: NotNegative = 0.9, b: Share = 0.4, lengths: Lengths = "lucene", threads: Count | None = None
) -> Bm25Ranker:
    """BM25 as Lucene computes it, with Anserini's k1 and b; exact and fast."""
    return Bm25Ranker(index, Bm25(k1, b, lengths), threads)


def bm25_msmarco(index: Path | str, lengths: Lengths = "lucene", threads: Count | None = None) -> Bm25Ranker:
    """BM25 with k1 and b tuned on MS MARCO passages (0.82, 0.68)."""
    return Bm25Ranker(index, Bm25(0.82, 0.68, lengths), threads)


def qld(
    index: Path | str, mu: Positive = 1000.0, lengths: Lengths = "lucene", threads: Count | None = None
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
        return search_with_feedback(self.base, query_texts(texts), k, self.method)


def rm3(
    index: Path | str, documents: Documents = 10, terms: Count = 10, original: Share = 0.5,
    k1: NotNegative = 0.9, b: Share = 0.4, threads: Count | None = None,
) -> FeedbackRanker:  # fmt: skip
    """BM25 with RM3 feedback and Anserini's default settings."""
    name = f"rm3-{documents}-{terms}-{original:g}"
    return FeedbackRanker(bm25(index, k1, b, threads=threads), Rm3(documents, terms, original), name)


def rocchio(
    index: Path | str, documents: Documents = 10, terms: Count = 10, alpha: NotNegative = 1.0,
    beta: NotNegative = 0.75, k1: NotNegative = 0.9, b: Share = 0.4, threads: Count | None = None,
) -> FeedbackRanker:  # fmt: skip
    """BM25 with Rocchio feedback and Anserini's default settings."""
    name = f"rocchio-{documents}-{terms}-{alpha:g}-{beta:g}"
    return FeedbackRanker(bm25(index, k1, b, threads=threads), Rocchio(documents, terms, alpha, beta), name)
