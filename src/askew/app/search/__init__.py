"""Build rankers and reformulators from settings, and apply them to queries."""
