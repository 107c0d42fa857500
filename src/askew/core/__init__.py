"""The words of askew: errors, measures, lexicons, texts, tables. Knows nobody else."""
