"""Stemmers: each is a function from a lower-cased word to its stem, one file for each algorithm."""
