"""Counts how often each document names each group: a plain reference, and a compiled scan with the same results."""
