"""Write charts as separate SVG or PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from askew.core.errors import ConfigError, MissingExtra

FORMATS = ("svg", "png")
# Pixels per unit of a picture: sharp in print at the width of a column.
_SCALE = 3


def check_formats(formats: Sequence[str]) -> None:
    """Raise before any work if a format is unknown, or if PNG is requested and its extra is not installed."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise ConfigError(f"figures: expected some of {', '.join(FORMATS)}, found {unknown[0]!r}")
    if "png" in formats:
        _converter()


def picture_file(svg: str, kind: str) -> bytes:
    """A chart as the bytes of an SVG or a PNG file."""
    if kind == "svg":
        return ('<?xml version="1.0" encoding="UTF-8"?>\n' + svg + "\n").encode()
    return bytes(_converter().svg_to_png(svg, scale=_SCALE))


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("PNG", "figures") from None
    return vl_convert
