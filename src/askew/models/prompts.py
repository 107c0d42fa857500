"""What the query model is shown. Training and use must agree to the letter, so the words stand here and only here."""

from __future__ import annotations

_MOST_PASSAGE_WORDS = 150
_MOST_QUERY_WORDS = 40


def from_passage(passage: str) -> str:
    """Asks for a query that the passage answers."""
    return f"Passage: {_clip(passage, _MOST_PASSAGE_WORDS)}\nQuestion:"


def from_query(query: str) -> str:
    """Asks for the same question in other words."""
    return f"Question: {_clip(query, _MOST_QUERY_WORDS)}\nThe same question in other words:"


def _clip(text: str, most: int) -> str:
    """At most so many words, all on one line: a line break inside would read as the end of the text."""
    return " ".join(text.split()[:most])
