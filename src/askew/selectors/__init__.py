"""Selectors choose which variants to keep; they combine pure functions over columns."""
