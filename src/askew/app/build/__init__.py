"""Build a dataset of query pairs: classify queries, then reformulate, filter, search, score and select."""
