"""Collections, runs, queries and judgements, and readers of every format."""
