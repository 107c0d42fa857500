"""Values of a log: the entry point of a query, and the masked form of a value for error messages."""

from __future__ import annotations

# The entry points of a query: how it was entered. 0 is unknown.
ENTRIES = ("", "edited", "recommended", "other")
_ENTRY_WORDS = {
    "edited": 1, "edit": 1, "typed": 1, "reformulated": 1, "recommended": 2, "recommendation": 2, "suggested": 2,
    "suggestion": 2, "related": 2, "": 0, "-": 0, "none": 0, "null": 0,
}  # fmt: skip

_SHOWN = 40


def entry_code(text: str) -> int:
    """The code of an entry point; an unknown word is ``other``."""
    return _ENTRY_WORDS.get(text.strip().lower(), 3)


def shape(text: str) -> str:
    """Mask a value for error messages: letters become a, digits 9, non-ASCII ?. It shows the form, not the content."""
    cut = text[:_SHOWN]
    drawn = "".join(
        "9" if c.isdigit() else "a" if c.isascii() and c.isalpha() else c if " " <= c <= "~" else "?" for c in cut
    )
    return repr(drawn) + ("..." if len(text) > _SHOWN else "")
