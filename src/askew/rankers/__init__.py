"""Rankers: queries in, a run out. BM25 is our own engine; the others stand behind their extras."""
