"""Analyze a query log and report how people add a group to their queries."""
