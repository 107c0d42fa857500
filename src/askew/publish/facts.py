"""The facts of a run: the statements from which the card, the metadata and the checks of a release are made.

Facts are a mapping of JSON-like values. Required: ``title``, ``description``, ``collection``, ``ranker`` and
``measures`` (name of the measure -> ``signature``, ``direction`` up, down or zero, and optionally ``key``, its name in
the papers' files, and ``judged``, whether it is computed from relevance judgements). Optional:

``subsets``     the Boolean columns that say for which subsets a pair is chosen; by default the subsets of Refairmulate
``scheme``      the layout of the columns, rules and files: ``refairmulate`` (the four subsets of the paper, with group,
                label and score), ``boxes`` (RePair; ``selection.boxes`` defines the boxes) or ``plain`` (subsets only)
``selection``   how pairs were chosen, see ``askew.publish.selection``; ``verify`` checks every statement in it
``robust_rankers``, ``robust_measures``   the rankers (``ranker`` first) and the measures from which the column
                ``robust`` is computed
``held_out``    list of mappings with ``subset``, ``measure``, ``figures`` (held-out or in-sample), ``old_mean``,
                ``new_mean``, ``change``, ``low`` and ``high`` in percent, ``words_change``, ``ranks_change``,
                ``in_sample_change``: the gains of the pairs on data that were not used to choose them
``held_out_gains``   the measures that have a column ``held_out_gain_...``
``query_text``  false if the release has no text of an original query, see ``askew.publish.withheld``; default true
``lexicons``    list of mappings with ``id``, ``groups`` (the names of the counted groups), ``license``, ``source``
``sources``     list of mappings with ``name``, ``license`` and ``note``: where the texts and judgements come from
``recipe``      the text of the recipe
``seeds``, ``counts``, ``dropped``, ``versions``   mappings of names to values
``license``, ``contact``, ``homepage``, ``citation``, ``version``, ``date``, ``language``, ``creators``   texts, for the
                metadata; without ``license``, the license of the queries applies

All other facts are kept in askew.json and shown in the card. A release contains no time, host or path that the facts
do not state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from askew.core.errors import ConfigError
from askew.core.figures import HELD_OUT, IN_SAMPLE
from askew.core.measure import Direction, Measure, check_columns
from askew.publish.selection import Selection, read_selection
from askew.publish.stated import is_number, mapping, rows, some_of, text, truth, wrong

REFAIRMULATE, BOXES, PLAIN = SCHEMES = ("refairmulate", "boxes", "plain")
SUBSETS = ("optimal", "effective", "fair", "negative")
# Column names that a subset may not have: the columns of pairs that belong to no scheme, subset or measure.
RESERVED = (
    "query_id", "variant_id", "original_text", "text", "method", "outcome", "doc_id", "context", "robust", "split",
    "source_judged", "kind", "p_same", "p_natural",
)  # fmt: skip

# The papers' names of measure families, and the order of their columns.
_FAMILIES = {"ARaB": "ARAB", "LexiconShare": "LIWC"}
PUBLISHED = ("RR10", "AP10", "LIWC10", "ARAB-tc10", "ARAB-tf10", "ARAB-bool10")
_TEXTS = ("license", "contact", "homepage", "citation", "version", "date", "language", "recipe")
# The changes that a table shows beside the main held-out change.
_BESIDE = ("words_change", "ranks_change", "in_sample_change")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SUBSET = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")


@dataclass(frozen=True)
class MeasureFacts:
    """One measure of the pairs: its text, full signature, direction, key in the papers' files, and if it is judged."""

    name: str
    signature: str
    direction: Direction
    key: str
    judged: bool = False


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
            f"facts: expected only values that JSON allows, found another value ({_first(error)})"
        ) from None
    return found


def read_facts(facts: Mapping[str, Any]) -> Facts:
    """Check the facts; a ConfigError names the wrong one."""
    stated = json.loads(canonical_json(mapping(facts, "facts")))
    title, about, collection, ranker = (text(stated, name) for name in ("title", "description", "collection", "ranker"))
    for name in _TEXTS:
        if not isinstance(stated.get(name, ""), str):
            raise wrong(name, "a text", stated[name])
    if "date" in stated and not _DATE.fullmatch(stated["date"]):
        raise wrong("date", "a date in the form 2026-01-31", stated["date"])
    for name in ("seeds", "counts", "dropped", "versions"):
        mapping(stated.get(name, {}), name)
    for name in ("lexicons", "sources", "held_out"):
        rows(stated.get(name, []), name)
    for row in stated.get("lexicons", []):
        named = row.get("groups", [])
        if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
            raise wrong("lexicons, groups", "a list of names", named)
    measures = _measures(stated.get("measures"))
    known, subsets = [one.name for one in measures], _subsets(stated)
    gains = _held_out(stated, known, subsets)
    selection = read_selection(mapping(stated.get("selection", {}), "selection"), known, subsets)
    scheme, (rankers, by) = _scheme(stated, subsets, selection), _robust(stated, known)
    has_texts = truth(stated.get("query_text", True), "query_text")
    return Facts(
        stated, title, about, collection, ranker, measures, selection, scheme, subsets, rankers, by, gains, has_texts
    )  # fmt: skip


def _subsets(stated: dict[str, Any]) -> tuple[str, ...]:
    found = stated.get("subsets", list(SUBSETS))
    if not isinstance(found, list) or not found or len(set(map(str, found))) < len(found):
        raise wrong("subsets", "a list of one or more names without repeats", found)
    for name in found:
        if not isinstance(name, str) or not _SUBSET.fullmatch(name) or name in RESERVED:
            raise wrong(
                "subsets",
                "names that begin with a letter, consist only of letters, digits and underscores, and are not names of "
                "other columns",
                name,
            )
    return tuple(found)


def _held_out(stated: dict[str, Any], known: list[str], subsets: tuple[str, ...]) -> tuple[str, ...]:
    """Check the held-out facts and return the measures that have a column of held-out gains."""
    for row in stated.get("held_out", []):
        some_of(row.get("measure"), known, "held_out, measure", "measures")
        some_of(row.get("subset"), subsets, "held_out, subset", "subsets")
        some_of(row.get("figures"), (HELD_OUT, IN_SAMPLE), "held_out, figures", "kinds of figures")
        for name in ("old_mean", "new_mean", "change", "low", "high", *_BESIDE):
            if row.get(name) is not None and not is_number(row[name]):
                raise wrong(f"held_out, {name}", "a number or null", row[name])
    gains = stated.get("held_out_gains", [])
    return some_of(gains, known, "held_out_gains", "measures") if gains else ()


def _scheme(stated: dict[str, Any], subsets: tuple[str, ...], selection: Selection) -> str:
    usual = REFAIRMULATE if subsets == SUBSETS else PLAIN
    found = stated.get("scheme", usual)
    if found not in SCHEMES:
        raise wrong("scheme", f"one of {', '.join(SCHEMES)}", found)
    if found == REFAIRMULATE and subsets != SUBSETS:
        raise wrong("subsets", f"{', '.join(SUBSETS)} for the scheme {found}", list(subsets))
    if found == BOXES and set(selection.boxes) != set(subsets):
        raise wrong(
            "selection.boxes", f"a criterion for each of the subsets {', '.join(subsets)}", sorted(selection.boxes)
        )
    return str(found)


def _robust(stated: dict[str, Any], known: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rankers and the measures of the column ``robust``; both empty if there is no such column."""
    if "robust_rankers" not in stated:
        return (), ()
    rankers = stated["robust_rankers"]
    if not isinstance(rankers, list) or len(rankers) < 2 or not all(isinstance(one, str) and one for one in rankers):
        raise wrong("robust_rankers", "a list of two rankers or more", rankers)
    return tuple(rankers), some_of(stated.get("robust_measures"), known, "robust_measures", "measures")


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


def _measures(stated: Any) -> tuple[MeasureFacts, ...]:
    found = tuple(_measure(name, one) for name, one in mapping(stated, "measures").items())
    if not found:
        raise wrong("measures", "at least one measure", stated)
    check_columns(one.name for one in found)
    keys = [one.key for one in found]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ConfigError(
            f"facts: two measures have the same key {twice[0]!r}; set a different 'key' for one of them. The key "
            "of a measure is its name in the files with the layouts of the Refairmulate and RePair papers"
        )
    place = {key: i for i, key in enumerate(PUBLISHED)}
    return tuple(sorted(found, key=lambda one: (place.get(one.key, len(place)), one.name)))


def _measure(name: str, stated: Any) -> MeasureFacts:
    where = f"measures.{name}"
    one = mapping(stated, where)
    try:
        direction = Direction(one.get("direction"))
    except ValueError:
        raise wrong(f"{where}.direction", "'up', 'down' or 'zero'", one.get("direction")) from None
    key = one.get("key", key_of(name))
    if not isinstance(key, str) or not key or not key.isprintable():
        raise wrong(f"{where}.key", "a printable text", key)
    judged = truth(one.get("judged", False), f"{where}.judged")
    return MeasureFacts(name, text(one, "signature", f"{where}."), direction, key, judged)


def _first(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
