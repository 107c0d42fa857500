"""Mitigation methods that reorder the first results of a search by the groups that documents name."""
