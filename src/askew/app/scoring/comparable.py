"""Which measures can compare which groups, and how to interpret the values of a measure of lean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.measure import Direction, Value
from askew.core.who import ANY, LEARNED
from askew.measures.catalogue import Catalogue, MeasureRequest

BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}

# The groups of the published measures. For these, some methods and rules have their own word lists.
PUBLISHED = frozenset(["female", "male"])


def catalogue_of(groups: Groups | None, overrides: Mapping[str, Value] | None = None) -> Catalogue:
    """The catalogue that completes measures for these groups, with each run as its own background.

    ``overrides`` are options of ``measure``.
    """
    return Catalogue(None, {"background": "self", **(overrides or {})}, groups=groups)


def comparable(measures: Iterable[str], groups: Groups | None) -> list[str]:
    """The measures that can compare these groups: differences need two groups, neutrality two or more.

    Raises the first error if no measure that counts words can compare them.
    """
    found, refused, counts = [], list[ConfigError](), False
    for text in measures:
        try:
            (one,) = catalogue_of(groups).complete([text])
            one.check()
        except ConfigError as error:
            refused.append(error)
            continue
        if groups is None or set(one.groups) <= set(groups.names):
            found.append(text)
            counts = counts or bool(one.groups)
    if refused and not counts:
        raise refused[0]
    return found


def named_groups(lean: MeasureRequest, catalogue: Catalogue) -> Groups | None:
    """The groups of a measure with its own lexicon; None if they are the published groups female and male."""
    if set(lean.groups) == PUBLISHED:
        return None
    param = lean.measure.param
    lexicon = catalogue.lexicons[str(param("lexicon"))]
    return Groups(lexicon, lean.groups, tokens=str(param("tokens")), overlap=str(param("overlap")))


def sign_of(one: MeasureRequest) -> str:
    """A sentence that explains the values of a measure of lean, with the names of its groups."""
    if is_signed(one):
        return f"{one.text}: positive leans toward {one.groups[0]}, negative toward {one.groups[1]}; 0 is balanced."
    return f"{one.text} compares {listed(one.groups)}; {BETTER[one.direction]} is better."


def is_signed(one: MeasureRequest) -> bool:
    """Whether the sign of a value shows toward which of two groups it leans."""
    return one.direction is Direction.ZERO and len(one.groups) == 2


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence: "a, b and c"."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def is_doubtful(one: MeasureRequest, is_divided: bool = False) -> bool:
    """Whether a measure counts or is divided by classes of words that the resolvers were not trained on."""
    return (is_divided or one.measure.param("who", ANY) != ANY) and not set(one.groups) <= set(LEARNED)


def note_on_resolver(asked: Sequence[MeasureRequest], divided: Sequence[MeasureRequest] = ()) -> list[str]:
    """A note if a resolver estimates classes of words that it was not trained on, with unknown accuracy."""
    others = ", ".join(one.text for one in asked if is_doubtful(one, one in divided))
    return [f"{others}: classes are estimated by a model that was trained on other groups"] if others else []
