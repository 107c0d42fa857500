"""The story of a dataset: queries, neutral ones, variants, kept ones, runs, scores. One short file for each stage."""
