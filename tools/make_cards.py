"""Write the cards of the adapters that askew ships: README.md beside their weights.

    python tools/make_cards.py

A card is made from the files in the adapter's folder: model.json (task, data, license, prose), measured.json and, if
the training program wrote it, training.json. A test checks that the cards are up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from askew.train.shipped import ABOUT, CARD, shipped_models


def cards() -> dict[Path, str]:
    """The cards of all adapters by their files. Models that are single files share the README.md of their folder."""
    return {one.folder / CARD: one.card() for one in shipped_models() if one.about.name == ABOUT}


def main() -> None:
    """Write the cards that changed."""
    for file, text in cards().items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {file.parent.name}/{file.name}\n")


if __name__ == "__main__":
    main()
