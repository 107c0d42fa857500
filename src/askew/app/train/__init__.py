"""Train models, and read their training data."""
