"""A published dataset of pairs: its files, facts, card, and the checks of ``verify``."""
