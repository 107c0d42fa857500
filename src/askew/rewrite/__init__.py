"""Reformulators, language models, filters, judges and classifiers of queries."""
