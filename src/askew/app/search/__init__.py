"""Rankers and reformulators, made from settings and applied to queries."""
