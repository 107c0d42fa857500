"""Publish a dataset of query pairs as a folder (``publish``), and check such a folder (``verify``)."""
