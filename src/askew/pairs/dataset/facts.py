"""The facts of a run: the statements from which the card, the metadata and the checks of a release are made.

Facts are a mapping of JSON-like values. Required: ``title``, ``description``, ``collection``, ``ranker`` and
``measures`` (name of the measure -> ``signature``, ``direction`` up, down or zero, and optionally ``judged``, whether
it is computed from relevance judgements). Optional:

``subsets``     the Boolean columns that say for which subsets a pair is chosen; by default the subsets of Refairmulate
``scheme``      the layout of the columns, rules and files: ``refairmulate`` (the four subsets of the paper, with group,
                label and score), ``boxes`` (RePair; ``selection.boxes`` defines the boxes) or ``plain`` (subsets only)
``selection``   the name of the selector and all its settings; ``verify`` runs a shipped selector again on the pairs
``robust_rankers``, ``robust_measures``   the rankers (``ranker`` first) and the measures from which the column
                ``robust`` is computed
``held_out``    list of mappings with ``subset``, ``measure``, ``figures`` (held-out or in-sample), ``old_mean``,
                ``new_mean``, ``change``, ``low``, ``high`` and ``in_sample_change`` in
                percent: the gains of the pairs on data that were not used to choose them
``placebo``     list of mappings with ``subset``, ``placebo``, ``fewest``, ``most`` and ``untested``: how many pairs the
                same selection chooses on placebo lists (mean, least and most of all draws; mean without the condition
                that the original query leans beyond chance)
``held_out_gains``   the measures that have a column ``held_out_gain_...``
``query_text``  false if the release has no text of an original query, see ``askew.pairs.dataset.splits``; default true
``lexicons``    list of mappings with ``id``, ``groups`` (the names of the counted groups), ``license``, ``source``
``sources``     list of mappings with ``name``, ``license`` and ``note``: where the texts and judgements come from
``recipe``      the text of the recipe
``counts``, ``dropped``, ``versions``   mappings of names to values
``license``, ``contact``, ``homepage``, ``citation``, ``version``, ``language``   texts, for the metadata; without
                ``license``, the license of the queries applies

All other facts are kept in askew.json and shown in the card. A release contains no time, host or path that the facts
do not state.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from askew.core.errors import ConfigError
from askew.core.measure import Direction, Measure, check_columns
from askew.core.plugins import check
from askew.data.files import reason
from askew.pairs.boxes import Boxes
from askew.pairs.gains import Selector, find_measures
from askew.pairs.holding import ALL, CHANCE, DOCUMENTS, LEAST, REFUSED
from askew.pairs.refairmulate import Refairmulate, RefairmulatePaper, RefairmulateRepo

_SHOWN = 80


def wrong(where: str, expected: str, found: Any) -> ConfigError:
    """The error for a fact with a wrong value."""
    shown = repr(found)
    return ConfigError(
        f"facts, {where}: expected {expected}, found {shown[:_SHOWN]}{'...' if len(shown) > _SHOWN else ''}"
    )


GROUPS = (1, 2, 3, 4)
# Only shipped selectors are run again; a name in a release never loads other code.
SELECTORS: dict[str, type[Selector]] = {
    one.name: one for one in (Refairmulate, RefairmulatePaper, RefairmulateRepo, Boxes)
}


@dataclass(frozen=True)
class Selection:
    """How the pairs were chosen: the selector (None if it is not a shipped one), its measures, settings of the stage.

    ``per_method``: pairs were chosen separately for each method. ``across``: by the smallest gain with several rankers.
    ``barred``: candidates that were made from a document judged relevant were not chosen. ``holds``: the measures of
    effectiveness of pairs that must hold (``askew.pairs.holding``); None if they need not.
    """

    selector: Selector | None = None
    effectiveness: tuple[str, ...] = ()
    bias: tuple[str, ...] = ()
    per_method: bool = False
    across: bool = False
    barred: bool = True
    holds: tuple[str, ...] | None = None


def read_selection(stated: Any, directions: Mapping[str, Direction], recipe: Any) -> Selection:
    """Make the selector from its recorded settings; earlier releases record them only in the recipe."""
    how = dict(stated)
    if "selector" not in how:
        try:
            how = dict(tomllib.loads(recipe)["select"])
        except (KeyError, TypeError, ValueError):
            return Selection()
    name, per, across = how.pop("selector", None), how.pop("per", "query"), how.pop("across", [])
    barred = how.pop("judged_sources", "exclude") != "allow"
    holds = how.pop("holds", None)
    for other in ("held_out", "placebo"):
        how.pop(other, None)
    if name not in SELECTORS:
        return Selection()
    settings = {key: _as_setting(value) for key, value in how.items()}
    try:
        check("selector", name, settings, "selection")
        selector = SELECTORS[name](**settings)
        effectiveness, bias = selector.sides(directions)
    except ConfigError as error:
        raise ConfigError(f"facts, selection: {error}") from None
    named = None if not isinstance(holds, dict) else find_measures(holds["effectiveness"], directions, "selection")
    return Selection(selector, effectiveness, bias, per == "method", bool(across), barred, named)


def _as_setting(value: Any) -> Any:
    """The value of a setting as a recipe writes it: lists and mappings are texts."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_as_setting(inner)}" for key, inner in value.items())
    return value


REFAIRMULATE, BOXES, PLAIN = SCHEMES = ("refairmulate", "boxes", "plain")
SUBSETS = ("optimal", "effective", "fair", "negative")
# Column names that a subset may not have: the columns of pairs that belong to no scheme, subset or measure.
RESERVED = (
    "query_id", "variant_id", "original_text", "text", "method", "outcome", "doc_id", "context", "robust", "split",
    "source_judged", "kind", "p_same", "p_natural", CHANCE, ALL, LEAST, DOCUMENTS, REFUSED,
)  # fmt: skip

# The papers' names of measure families, and the order of their columns.
_FAMILIES = {"ARaB": "ARAB", "LexiconShare": "LIWC"}
PUBLISHED = ("RR10", "AP10", "LIWC10", "ARAB-tc10", "ARAB-tf10", "ARAB-bool10")
_SUBSET = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")


@dataclass(frozen=True)
class MeasureFacts:
    """One measure of the pairs: its text, full signature, direction, and whether it is judged."""

    name: str
    signature: str
    direction: Direction
    judged: bool = False

    @property
    def key(self) -> str:
        """The name in the papers' files."""
        return key_of(self.name)


@dataclass(frozen=True)
class Facts:
    """Checked facts; ``stated`` has all facts as they were given."""

    stated: dict[str, Any]
    title: str
    description: str
    collection: str
    ranker: str
    measures: tuple[MeasureFacts, ...]
    selection: Selection
    scheme: str = REFAIRMULATE
    subsets: tuple[str, ...] = SUBSETS
    robust_rankers: tuple[str, ...] = ()
    robust_measures: tuple[str, ...] = ()
    held_out_gains: tuple[str, ...] = ()
    query_text: bool = True

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the measures count, as far as the lexicons name them."""
        named = [name for row in self.rows("lexicons") for name in row.get("groups", [])]
        return tuple(dict.fromkeys(map(str, named)))

    @property
    def measure(self) -> str:
        """The measure of RePair's boxes."""
        return self.selection.effectiveness[0]

    @property
    def main(self) -> str:
        """The subset that is used where one subset represents the chosen pairs."""
        return "fair" if self.scheme == REFAIRMULATE else self.subsets[0]

    def text(self, name: str, default: str = "") -> str:
        """An optional text."""
        return str(self.stated.get(name, default))

    def mapping(self, name: str) -> dict[str, Any]:
        """An optional mapping."""
        return dict(self.stated.get(name, {}))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """An optional list of mappings."""
        return [dict(row) for row in self.stated.get(name, [])]


def canonical_json(value: Any) -> str:
    """The canonical text of a JSON value: sorted keys, an indent of two blanks, a line break at the end."""
    try:
        found = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        found.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"facts: expected only values that JSON allows, found another value ({reason(error)})"
        ) from None
    return found


def read_facts(facts: Mapping[str, Any]) -> Facts:
    """Read the facts of a build or of a published dataset; a ConfigError says what is wrong."""
    stated = json.loads(canonical_json(dict(facts)))
    measures, subsets = _measures(stated["measures"]), tuple(stated.get("subsets", SUBSETS))
    # The names of subsets become names of columns and of files.
    unfit = [name for name in subsets if not _SUBSET.fullmatch(name) or name in RESERVED]
    if unfit or not subsets or len(set(subsets)) < len(subsets):
        expected = "distinct names of letters, digits and underscores that are no names of other columns"
        raise wrong("subsets", expected, list(subsets))
    selection = read_selection(
        stated.get("selection", {}), {one.name: one.direction for one in measures}, stated.get("recipe")
    )
    scheme = stated.get("scheme", REFAIRMULATE if subsets == SUBSETS else PLAIN)
    if scheme not in SCHEMES:
        raise wrong("scheme", f"one of {', '.join(SCHEMES)}", scheme)
    if scheme == REFAIRMULATE and subsets != SUBSETS:
        raise wrong("subsets", f"{', '.join(SUBSETS)} for the scheme {scheme}", list(subsets))
    selector = selection.selector
    if selector is not None and set(selector.subsets) != set(subsets):
        raise wrong("subsets", f"the subsets of the selector {selector.name}", list(subsets))
    if scheme == BOXES and not isinstance(selector, Boxes):
        raise wrong("selection.selector", f"the selector boxes for the scheme {scheme}", selector and selector.name)
    has_texts = stated.get("query_text", True)
    if not isinstance(has_texts, bool):
        raise wrong("query_text", "true or false", has_texts)
    title, about, collection, ranker = (str(stated[name]) for name in ("title", "description", "collection", "ranker"))
    rankers, by, gains = (
        tuple(map(str, stated.get(name, ()))) for name in ("robust_rankers", "robust_measures", "held_out_gains")
    )
    return Facts(
        stated, title, about, collection, ranker, measures, selection, scheme, subsets, rankers, by, gains, has_texts
    )


def key_of(name: str) -> str:
    """The papers' name of a measure: RR@10 is RR10, ARaB(tf)@10 is ARAB-tf10, LexiconShare@10 is LIWC10.

    Parameters other than the kind follow as ``-name=value``. A name that cannot be parsed as a measure stays as it is.
    """
    try:
        measure = Measure.parse(name)
    except ConfigError:
        return name
    values = [str(value) for value in measure.positional]
    values += [str(value) if key == "kind" else f"{key}={value}" for key, value in measure.params]
    return "-".join([_FAMILIES.get(measure.name, measure.name), *values]) + str(measure.cutoff or "")


def _measures(stated: Mapping[str, Mapping[str, Any]]) -> tuple[MeasureFacts, ...]:
    found = [
        MeasureFacts(name, str(one["signature"]), Direction(one["direction"]), one.get("judged", False) is True)
        for name, one in stated.items()
    ]
    check_columns(one.name for one in found)
    place = {key: i for i, key in enumerate(PUBLISHED)}
    return tuple(sorted(found, key=lambda one: (place.get(one.key, len(place)), one.name)))
