"""Reformulators: methods that produce reformulations of a query, one file for each family."""
