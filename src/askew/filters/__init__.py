"""Filters: which candidates are kept, and why the others go."""
