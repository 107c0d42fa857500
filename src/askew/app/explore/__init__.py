"""Look at one query, one pair, one run: what the pages and the REST service of the explorer share."""
