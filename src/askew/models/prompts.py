"""What the query model is shown. Training and use must agree to the letter, so the words stand here and only here."""

from __future__ import annotations

# The kinds of reformulations that the rewriting model knows; ``original`` was one more in its training.
KINDS = ("paraphrase", "vocabulary", "keywords", "explicit", "neutral")
_MOST_PASSAGE_WORDS = 150
_MOST_QUERY_WORDS = 40


def from_passage(passage: str) -> str:
    """Asks for a query that the passage answers."""
    return f"Passage: {_clip(passage, _MOST_PASSAGE_WORDS)}\nQuestion:"


def from_query(query: str) -> str:
    """Asks for the same question in other words."""
    return f"Question: {_clip(query, _MOST_QUERY_WORDS)}\nThe same question in other words:"


def query_prefix(query: str) -> str:
    """What the rewriting model is shown of a query, whatever kind is asked for."""
    return f"Query: {_clip(query, _MOST_QUERY_WORDS)}\n"


def kind_ending(kind: str) -> str:
    """Asks for one kind of reformulation; it follows ``query_prefix``."""
    return f"{kind}:"


def _clip(text: str, most: int) -> str:
    """At most so many words, all on one line: a line break inside would read as the end of the text."""
    return " ".join(text.split()[:most])
