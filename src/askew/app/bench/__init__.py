"""Mitigation methods side by side: the whole of ``askew bench``."""
