"""Values of a log: how a query came to be asked, and a value by its shape alone."""

from __future__ import annotations

# How a query came to be asked. A row may also say nothing about it (0).
ENTRIES = ("", "edited", "recommended", "other")
_ENTRY_WORDS = {
    "edited": 1, "edit": 1, "typed": 1, "reformulated": 1, "recommended": 2, "recommendation": 2, "suggested": 2,
    "suggestion": 2, "related": 2, "": 0, "-": 0, "none": 0, "null": 0,
}  # fmt: skip

_SHOWN = 40


def entry_code(text: str) -> int:
    """The number of an entry point; a word that is not known is ``other``."""
    return _ENTRY_WORDS.get(text.strip().lower(), 3)


def shape(text: str) -> str:
    """A value by its shape alone: letters are a, digits 9, anything not ASCII ?; that tells what is wrong, not who."""
    cut = text[:_SHOWN]
    drawn = "".join(
        "9" if c.isdigit() else "a" if c.isascii() and c.isalpha() else c if " " <= c <= "~" else "?" for c in cut
    )
    return repr(drawn) + ("..." if len(text) > _SHOWN else "")
