"""Measures of lean (bias) and of effectiveness. Each family is a plugin; ``catalogue`` finds and completes them."""
