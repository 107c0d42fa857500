"""A dataset of query pairs as a folder that others can load, read, cite and check: ``publish`` and ``verify``."""
