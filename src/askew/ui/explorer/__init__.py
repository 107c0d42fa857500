"""Explore single queries, pairs and runs: the functions that the pages and the REST service of the explorer share."""
