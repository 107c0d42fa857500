"""Where the data files of the package lie."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
