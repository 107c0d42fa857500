"""Build, select, report and publish pairs of a query and a reformulation."""
