"""Compare mitigation methods: the implementation of ``askew bench``."""
