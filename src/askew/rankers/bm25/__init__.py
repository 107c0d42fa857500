"""BM25 as Lucene computes it, in Numba: analysis, index and exact top-k search, each file readable alone."""
