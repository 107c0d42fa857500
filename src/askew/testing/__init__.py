"""For plugin authors: the tests that askew's own plugins pass."""
