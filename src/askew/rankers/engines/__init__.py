"""Live search engines as rankers: queries are sent to them, and their answers are kept so that none is sent twice."""
