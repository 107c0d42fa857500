"""What the explorer counts: which groups, by which measures, and which two of them place a reformulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from askew.app.build.recipe import Recipe, groups_of
from askew.app.scoring.comparable import catalogue_of, comparable, listed, named_groups
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.measure import split_measures

WITH_JUDGEMENTS = ("nDCG@10", "RR@10", "AP@10")
LEANING = ("ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10")
# The settings of a selector that name its measures.
_DECIDING = ("effectiveness", "measure", "bias")


@dataclass(frozen=True)
class ExplorerCounts:
    """``groups`` are those that the measures count, None: each measure has its published ones.

    ``named`` are those that methods and rules count: None only where the measures count the published pair.
    ``effectiveness`` is None where no measure reads judgements. ``notes`` say which measures were left out.
    """

    groups: Groups | None
    named: Groups | None
    measures: tuple[str, ...]
    effectiveness: str | None
    lean: str
    notes: tuple[str, ...] = ()


def counting_of(
    groups: Groups | None = None, measures: Sequence[str] | None = None, recorded: Recipe | None = None
) -> ExplorerCounts:
    """What is given wins over what the recipe of a store has; without either, the usual measures of these groups."""
    chosen, notes, deciding = list(measures or ()), list[str](), list[str]()
    counted = groups_of(recorded) if groups is None and recorded is not None else groups
    if not chosen and recorded is not None:
        wanted = list(recorded.table("evaluate")["measures"])
        chosen = wanted if groups is None else comparable(wanted, groups)
        notes = [f"{text} does not compare {listed(counted.names)} and is left out."
                 for text in wanted if counted is not None and text not in chosen]  # fmt: skip
        deciding = _deciding(recorded)
    if not chosen:
        chosen = [*WITH_JUDGEMENTS, *comparable(LEANING, counted)]
    catalogue = catalogue_of(counted)
    asked = {one.text: one for one in catalogue.complete(chosen)}
    ordered = [asked[text] for text in [*deciding, *chosen] if text in asked]
    effectiveness = next((one.text for one in ordered if "judgements" in one.family.reads), None)
    lean = next((one for one in ordered if "mentions" in one.family.reads), None)
    if lean is None:
        raise ConfigError(
            f"explore: none of the measures {', '.join(chosen)} counts words of groups: give one with measures=, "
            "for instance ARaB(tf)@10"
        )
    named = counted or named_groups(lean, catalogue)
    return ExplorerCounts(counted, named, tuple(chosen), effectiveness, lean.text, tuple(notes))


def _deciding(recipe: Recipe) -> list[str]:
    """The measures that the selection of a recipe names."""
    given = [recipe.table("select").get(key, ()) for key in _DECIDING]
    return [text for one in given for text in (split_measures(one) if isinstance(one, str) else one)]
