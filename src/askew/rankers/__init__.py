"""Rankers search a collection for queries. BM25 is implemented here; most other rankers need an extra."""
