"""Readers for runs, judgements, queries and documents in the formats in common use."""
