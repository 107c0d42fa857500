"""Analyze query logs: how people add a group to their queries."""
