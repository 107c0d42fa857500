"""askew bench: levers that may make results lean less, on the same queries, in one table."""
