"""Statistics of results: confidence intervals, paired tests, corrections for several tests."""
