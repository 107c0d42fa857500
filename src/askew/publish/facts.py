"""What a run says of itself: the facts that the card, the metadata and the checks are made of.

Facts are a mapping of JSON-like values. Needed: ``title``, ``description``, ``collection``, ``ranker`` and ``measures``
(name of the column -> ``signature``, ``direction`` up, down or zero, and optionally ``key``, its name in the papers'
files). Understood where given:

``selection``   how pairs were chosen, see ``Selection``; what it states, ``verify`` checks
``lexicons``    list of mappings with ``id``, ``licence`` and whatever else is known
``sources``     list of mappings with ``name``, ``licence`` and ``note``: where the texts and judgements come from
``recipe``      the text of the recipe
``seeds``, ``counts``, ``dropped``, ``versions``   mappings of names to values
``licence``, ``language``, ``version``, ``date``, ``url``, ``citation``, ``creators``   texts, for the metadata

Anything else is kept in askew.json and shown in the card. No time, host or path enters a release by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from askew.core.errors import ConfigError
from askew.core.measure import Direction, Measure

Label = int | str
SIGNS = ("better", "same", "worse")
SUBSETS = ("optimal", "effective", "fair", "negative")
GROUPS = (1, 2, 3, 4)

# The papers' names of measure families, and the order of their columns.
_FAMILIES = {"ARaB": "ARAB", "LexiconShare": "LIWC"}
PUBLISHED = ("RR10", "AP10", "LIWC10", "ARAB-tc10", "ARAB-tf10", "ARAB-bool10")
_TEXTS = ("licence", "language", "version", "date", "url", "citation", "recipe")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class MeasureFacts:
    """One measure of the pairs: its column name, full signature, direction and its key in the papers' files."""

    name: str
    signature: str
    direction: Direction
    key: str


@dataclass(frozen=True)
class Selection:
    """What the run states of its selection. All of it may be absent; ``verify`` says what it could not check.

    ``effectiveness``, ``bias``   the two measures of the outcome
    ``tolerance``                 gains of at most this size count as "same"
    ``outcomes``                  name of the outcome -> [sign of effectiveness, sign of bias], of better, same, worse
    ``labels``                    name of the outcome -> label, where the outcome alone decides the label
    ``accepted``                  subset -> group -> accepted labels
    ``optimal``                   measure -> the new value that every Optimal pair has
    ``groups``                    {"effectiveness": {measure: threshold}, "bias": {measure: threshold}}: a query reaches
                                  a threshold where its old value is as good or better; 1 reaches both sides, 2 the
                                  first only, 3 the second only, 4 neither wholly
    ``weights``                   measure -> weight: the score is the sum of weight times gain (Optimal pairs may have
                                  a fixed score, as in the published files, and are not checked)
    """

    effectiveness: str | None = None
    bias: str | None = None
    tolerance: float = 0.0
    outcomes: dict[str, tuple[str, str]] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    accepted: dict[str, dict[int, frozenset[Label]]] = field(default_factory=dict)
    optimal: dict[str, float] = field(default_factory=dict)
    groups: dict[str, dict[str, float]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """Checked facts; ``stated`` is all of them as they were given."""

    stated: dict[str, Any]
    title: str
    description: str
    collection: str
    ranker: str
    measures: tuple[MeasureFacts, ...]
    selection: Selection

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
    """The one text of a JSON value: keys sorted, two blanks deep, a line break at the end."""
    try:
        text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"facts: expected values that JSON has, found something else ({_first(error)})") from None
    return text


def read_facts(facts: Mapping[str, Any]) -> Facts:
    """Check the facts; ConfigError says which one is wrong."""
    stated = json.loads(canonical_json(_mapping(facts, "facts")))
    texts = {name: _text(stated, name) for name in ("title", "description", "collection", "ranker")}
    for name in _TEXTS:
        if not isinstance(stated.get(name, ""), str):
            raise _wrong(name, "a text", stated[name])
    if "date" in stated and not _DATE.fullmatch(stated["date"]):
        raise _wrong("date", "year-month-day such as 2026-01-31", stated["date"])
    for name in ("seeds", "counts", "dropped", "versions"):
        _mapping(stated.get(name, {}), name)
    for name in ("lexicons", "sources"):
        _rows(stated.get(name, []), name)
    measures = _measures(stated.get("measures"))
    selection = _selection(_mapping(stated.get("selection", {}), "selection"), {one.name for one in measures})
    return Facts(stated, **texts, measures=measures, selection=selection)


def key_of(name: str) -> str:
    """The papers' name of a measure: RR@10 is RR10, ARaB(tf)@10 is ARAB-tf10, LexiconShare@10 is LIWC10.

    Parameters beyond the kind follow as ``-name=value``; a name that is no measure text stays as it is.
    """
    try:
        measure = Measure.parse(name)
    except ConfigError:
        return name
    values = [str(value) for value in measure.positional]
    values += [str(value) if key == "kind" else f"{key}={value}" for key, value in measure.params]
    return "-".join([_FAMILIES.get(measure.name, measure.name), *values]) + str(measure.cutoff or "")


def _measures(stated: Any) -> tuple[MeasureFacts, ...]:
    found = tuple(_measure(name, one) for name, one in _mapping(stated, "measures").items())
    if not found:
        raise _wrong("measures", "at least one measure", stated)
    keys = [one.key for one in found]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ConfigError(f"facts: two measures have the key {twice[0]!r} in the papers' files; give one another 'key'")
    place = {key: i for i, key in enumerate(PUBLISHED)}
    return tuple(sorted(found, key=lambda one: (place.get(one.key, len(place)), one.name)))


def _measure(name: str, stated: Any) -> MeasureFacts:
    where = f"measures.{name}"
    one = _mapping(stated, where)
    try:
        direction = Direction(one.get("direction"))
    except ValueError:
        raise _wrong(f"{where}.direction", "up, down or zero", one.get("direction")) from None
    key = one.get("key", key_of(name))
    if not isinstance(key, str) or not key or not key.isprintable():
        raise _wrong(f"{where}.key", "a printable text", key)
    return MeasureFacts(name, _text(one, "signature", f"{where}."), direction, key)


def _selection(stated: dict[str, Any], known: set[str]) -> Selection:
    outcomes = {name: _signs(name, signs) for name, signs in _part(stated, "outcomes").items()}
    labels = _part(stated, "labels")
    for name, label in labels.items():
        if name not in outcomes or not _is_label(label):
            raise _wrong(f"selection.labels.{name}", "a label (number or text) of one of the outcomes", label)
    groups = {side: _numbers(one, f"selection.groups.{side}", known) for side, one in _part(stated, "groups").items()}
    if groups and set(groups) != {"effectiveness", "bias"}:
        raise _wrong("selection.groups", "the sides effectiveness and bias", sorted(groups))
    tolerance = stated.get("tolerance", 0.0)
    if not _is_number(tolerance) or tolerance < 0:
        raise _wrong("selection.tolerance", "a number of zero or more", tolerance)
    return Selection(
        _chosen(stated, "effectiveness", known), _chosen(stated, "bias", known), float(tolerance), outcomes, labels,
        _accepted(_part(stated, "accepted")), _numbers(stated.get("optimal", {}), "selection.optimal", known), groups,
        _numbers(stated.get("weights", {}), "selection.weights", known),
    )  # fmt: skip


def _part(stated: dict[str, Any], name: str) -> dict[str, Any]:
    return _mapping(stated.get(name, {}), f"selection.{name}")


def _signs(name: str, signs: Any) -> tuple[str, str]:
    if not isinstance(signs, list) or len(signs) != 2 or any(sign not in SIGNS for sign in signs):
        raise _wrong(f"selection.outcomes.{name}", "two of better, same, worse", signs)
    return (signs[0], signs[1])


def _chosen(stated: dict[str, Any], side: str, known: set[str]) -> str | None:
    name = stated.get(side)
    if name is not None and (not isinstance(name, str) or name not in known):
        raise _wrong(f"selection.{side}", f"one of the measures {', '.join(sorted(known))}", name)
    return name


def _accepted(stated: dict[str, Any]) -> dict[str, dict[int, frozenset[Label]]]:
    found: dict[str, dict[int, frozenset[Label]]] = {}
    for subset, groups in stated.items():
        where = f"selection.accepted.{subset}"
        if subset not in SUBSETS:
            raise _wrong(where, f"one of the subsets {', '.join(SUBSETS)}", subset)
        found[subset] = {}
        for group, labels in _mapping(groups, where).items():
            if group not in map(str, GROUPS) or not isinstance(labels, list) or not all(map(_is_label, labels)):
                raise _wrong(f"{where}.{group}", "a list of labels for a group from 1 to 4", labels)
            found[subset][int(group)] = frozenset(labels)
    return found


def _numbers(stated: Any, where: str, known: set[str]) -> dict[str, float]:
    found = _mapping(stated, where)
    for name, value in found.items():
        if name not in known or not _is_number(value):
            raise _wrong(f"{where}.{name}", f"a number for one of {', '.join(sorted(known))}", value)
    return {name: float(value) for name, value in found.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_label(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _wrong(where, "a mapping with texts as keys", value)
    return dict(value)


def _rows(value: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise _wrong(where, "a list of mappings", value)
    return [_mapping(row, where) for row in value]


def _text(stated: dict[str, Any], name: str, prefix: str = "") -> str:
    value = stated.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(f"{prefix}{name}", "a text", value)
    return value


def _wrong(where: str, expected: str, found: Any) -> ConfigError:
    shown = repr(found)
    return ConfigError(f"facts, {where}: expected {expected}, found {shown[:80]}{'...' if len(shown) > 80 else ''}")


def _first(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
