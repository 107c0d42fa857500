"""Stream query logs: find how people add a group to their queries."""
