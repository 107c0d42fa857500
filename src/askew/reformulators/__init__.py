"""Reformulators: other ways to ask a query, one file for each family."""
