"""Reformulators: reformulations of a query, one file for each family."""
