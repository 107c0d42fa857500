"""Measures of lean (bias) and effectiveness: mentions, their resolver, the scorer, statistics."""
