"""Read published results with their source, so that tables can show them next to our own results."""

from __future__ import annotations

import csv

from askew.core.shipped import DATA

_FOLDER = DATA / "published"


def read_published(name: str) -> tuple[str, list[dict[str, str]]]:
    """The source of a file of published results, and its rows."""
    lines = (_FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return lines[0].lstrip("# "), list(csv.DictReader(lines[1:]))
