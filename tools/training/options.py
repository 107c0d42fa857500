"""Command lines: the options that all programs have, and one option for each setting."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from training.data import MADE

S = TypeVar("S")


def make_parser(
    about: str | None, settings: type[Any], parents: Sequence[argparse.ArgumentParser] = ()
) -> argparse.ArgumentParser:
    """A parser with the common options and the settings, whose defaults are those of the dataclass."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter, parents=list(parents)
    )
    parser.add_argument("--made", type=Path, default=MADE, help="the folder benchmarks/reformulation")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write the adapter to")
    parser.add_argument("--device", help="cuda or cpu; if not given, cuda where there is one")
    parser.add_argument("--seed", type=int, default=0)
    group = parser.add_argument_group("settings")
    for one in fields(settings):
        group.add_argument(f"--{one.name.replace('_', '-')}", type=type(one.default), default=one.default)
    return parser


def settings_of(given: argparse.Namespace, settings: type[S]) -> S:
    """The settings that were given."""
    return settings(**{one.name: getattr(given, one.name) for one in fields(settings)})  # type: ignore[arg-type]
