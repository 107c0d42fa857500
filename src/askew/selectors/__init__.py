"""Which variants are worth keeping: pure functions over columns, and the selectors that put them together."""
