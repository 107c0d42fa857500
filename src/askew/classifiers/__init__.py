"""Classifiers of queries: which group a query asks about, or none."""
