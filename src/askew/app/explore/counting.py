"""Choose the groups and measures of the explorer, and the measures that decide about a reformulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from askew.app.build.prepare import selector_of
from askew.app.build.recipe import Recipe, groups_of
from askew.app.explore.sides import Sides
from askew.app.scoring.comparable import catalogue_of, comparable, listed, named_groups
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.measure import Direction, split_measures
from askew.measures.catalogue import MeasureRequest
from askew.selectors.settings import find_measures

WITH_JUDGEMENTS = ("nDCG@10", "RR@10", "AP@10")
LEANING = ("ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10")


@dataclass(frozen=True)
class ExplorerCounts:
    """The groups and measures of the explorer.

    ``groups`` are the groups that the measures count; None if each measure counts its published groups. ``named`` are
    the groups that methods and rules count; None only for the published pair of groups. ``effectiveness`` is None if no
    measure reads judgements. ``sides`` has all measures that decide about a reformulation. ``notes`` say which measures
    were left out.
    """

    groups: Groups | None
    named: Groups | None
    measures: tuple[str, ...]
    effectiveness: str | None
    lean: str
    sides: Sides
    notes: tuple[str, ...] = ()


def counting_of(
    groups: Groups | None = None,
    measures: Sequence[str] | None = None,
    recorded: Recipe | None = None,
    counted: Groups | None = None,
) -> ExplorerCounts:
    """Return the given groups and measures, else those of the recipe of a store, else the default measures.

    ``counted`` are the groups that the store recorded; by default they are read from its recipe.
    """
    chosen, notes, sides = list(measures or ()), list[str](), None
    if groups is not None or recorded is None:
        counted = groups
    elif counted is None:
        counted = groups_of(recorded)
    if not chosen and recorded is not None:
        wanted = list(recorded.table("evaluate")["measures"])
        chosen = wanted if groups is None else comparable(wanted, groups)
        notes = [f"{text} does not compare {listed(counted.names)} and is left out."
                 for text in wanted if counted is not None and text not in chosen]  # fmt: skip
        sides = _decided(recorded)
    if not chosen:
        chosen = [*WITH_JUDGEMENTS, *comparable(LEANING, counted)]
    catalogue = catalogue_of(counted)
    asked = catalogue.complete(chosen)
    sides = _sides(asked, sides)
    effectiveness = next((one for one in sides.effectiveness), _first(asked, "judgements"))
    lean = next((one for one in sides.lean), _first(asked, "mentions"))
    if lean is None:
        raise ConfigError(
            f"explore: none of the measures {', '.join(chosen)} counts words of groups; use measures= to "
            "give a measure that counts words, such as ARaB(tf)@10"
        )
    named = counted or named_groups(next(one for one in asked if one.text == lean), catalogue)
    return ExplorerCounts(counted, named, tuple(chosen), effectiveness, lean, sides, tuple(notes))


def _decided(recipe: Recipe) -> Sides | None:
    """Return the measures that the selector of a recipe decides by; None without a selector."""
    if not recipe.sections.get("select"):
        return None
    given = selector_of(recipe).settings()
    effectiveness = _texts(given.get("effectiveness", given.get("measure")))
    return Sides(effectiveness, _texts(given.get("bias")), float(given.get("tolerance", 0.0)))


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(split_measures(given) if isinstance(given, str) else given or ())


def _sides(asked: Sequence[MeasureRequest], decided: Sides | None) -> Sides:
    """Return the measures of effectiveness and lean, as named in the scores; without a selector, the first of each."""
    if decided is None:
        return Sides(_only(_first(asked, "judgements")), _only(_first(asked, "mentions")))
    directions = {one.text: one.direction for one in asked}

    def known(side: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for text in side for name in _found(text, directions))

    return Sides(known(decided.effectiveness), known(decided.lean), decided.tolerance)


def _only(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text,)


def _found(text: str, directions: Mapping[str, Direction]) -> tuple[str, ...]:
    """Return the name of a measure in the scores; empty if it was left out for these groups."""
    try:
        return find_measures([text], directions, "explore")
    except ConfigError:
        return ()


def _first(asked: Sequence[MeasureRequest], reads: str) -> str | None:
    return next((one.text for one in asked if reads in one.family.reads), None)
