"""Query logs, streamed: how people add a group to what they ask."""
