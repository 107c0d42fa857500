"""Live search engines as rankers. Answers are cached, so that no query is sent twice."""
