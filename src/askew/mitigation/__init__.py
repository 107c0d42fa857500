"""Mitigation methods that reorder the results of a first search by the groups that documents name."""
