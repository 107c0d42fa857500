"""Steps that are done once, finished whole, and never lost: the store and what runs on it."""
