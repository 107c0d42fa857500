"""From a query log to a report on how people add a group to their queries."""
