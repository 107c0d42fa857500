"""Audit a live search engine: how far its results lean, why, for which queries, and what reduces the lean."""
