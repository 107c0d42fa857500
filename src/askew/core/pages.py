"""Pages of the documentation, as messages name them: an installed package has no folder docs."""

from __future__ import annotations

TITLES = {
    "models": "Shipped models", "statistics": "Statistics", "warrant": "Which words a measure of lean counts",
}  # fmt: skip


def pages(*names: str) -> str:
    """One or more pages by their titles, for a sentence; the names are those of the files."""
    titles = " and ".join(f'"{TITLES[name]}"' for name in names)
    return f"{titles} in the documentation"
