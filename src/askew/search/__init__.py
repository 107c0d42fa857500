"""Rankers: BM25, neural models, live engines; and reranking."""
