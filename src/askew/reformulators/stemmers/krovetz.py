"""Krovetz's stemmer (Viewing morphology as an inference process, SIGIR 1993), through the package ``krovetzstemmer``.

It looks words up in a dictionary of some 30 000 head words that belongs to the algorithm; so it is not rewritten here.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, metadata

from askew.core.errors import MissingExtra


def load() -> Callable[[str], str]:
    """The stemmer, once its package is found."""
    try:
        package = import_module("krovetzstemmer")
    except ImportError:
        raise MissingExtra("the Krovetz stemmer (krovetzstemmer)", "stemmers") from None
    stem: Callable[[str], str] = package.Stemmer().stem
    return stem


def version() -> str:
    """Which release of the package is installed: its dictionary decides the stems."""
    try:
        return metadata.version("krovetzstemmer")
    except metadata.PackageNotFoundError:
        raise MissingExtra("the Krovetz stemmer (krovetzstemmer)", "stemmers") from None
