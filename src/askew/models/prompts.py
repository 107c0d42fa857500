"""The prompts of the query models. They are defined only here, because training and use need identical prompts."""

from __future__ import annotations

# The kinds of reformulations that the rewriting model knows; ``original`` was one more in its training.
KINDS = ("question", "keywords", "synonyms", "specific", "paraphrase", "neutral")
_MOST_PASSAGE_WORDS = 150
_MOST_QUERY_WORDS = 40


def from_passage(passage: str) -> str:
    """The prompt for a query that the passage answers."""
    return f"Passage: {_clip(passage, _MOST_PASSAGE_WORDS)}\nQuestion:"


def from_query(query: str) -> str:
    """The prompt for a paraphrase of a query."""
    return f"Question: {_clip(query, _MOST_QUERY_WORDS)}\nThe same question in other words:"


def query_prefix(query: str) -> str:
    """The first part of the prompt of the rewriting model, which is the same for every kind."""
    return f"Query: {_clip(query, _MOST_QUERY_WORDS)}\n"


def kind_ending(kind: str) -> str:
    """The end of the prompt, which names the kind of reformulation; it follows ``query_prefix``."""
    return f"{kind}:"


def _clip(text: str, most: int) -> str:
    """At most ``most`` words on one line: the model would read a line break as the end of the text."""
    return " ".join(text.split()[:most])
