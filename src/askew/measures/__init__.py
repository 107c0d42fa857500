"""Measures of lean and of effectiveness. Each family is a plugin; ``catalogue`` finds and completes them."""
