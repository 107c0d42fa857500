"""Count mentions in documents, and compute measures of runs."""
