"""BM25 as Lucene computes it, implemented in Numba: analysis, index and exact top-k search."""
