"""The requested measures: the counts that they need, and how the files are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from askew.core.errors import ConfigError, Note
from askew.core.groups import ANY, LEARNED, Groups, GroupsLike
from askew.core.measure import Direction, Measure, split_measures
from askew.core.protocols import MeasureFamily
from askew.measures.catalogue import Catalogue, MeasureRequest, Preset, family_of

# Which measures can compare which groups, and how to interpret the values of a measure of lean.

BETTER = {Direction.UP: "higher", Direction.DOWN: "lower", Direction.ZERO: "nearer zero"}

# The groups of the published measures. For these, some methods and rules have their own word lists.
PUBLISHED = frozenset(["female", "male"])
# The class of mentions of people in general.
GENERIC = "generic"


def comparable(measures: Iterable[str], groups: Groups | None) -> list[str]:
    """The measures that can compare these groups: differences need two groups, neutrality two or more.

    Raises the first error if no measure that counts words can compare them.
    """
    found, refused, counts = [], list[ConfigError](), False
    for text in measures:
        try:
            (one,) = Catalogue(groups=groups).complete([text])
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


def drawn_groups(one: MeasureRequest) -> tuple[str, ...]:
    """The groups in the order of their colors: the group that a signed measure subtracts is first, on the left."""
    return tuple(one.groups[::-1] if is_signed(one) else one.groups)


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence: "a, b and c"."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def is_doubtful(one: MeasureRequest, is_divided: bool = False) -> bool:
    """Whether a measure counts or is divided by classes of words that the resolver was not trained on."""
    return (is_divided or one.measure.param("who", ANY) != ANY) and not set(one.groups) <= set(LEARNED)


def note_on_resolver(asked: Sequence[MeasureRequest], divided: Sequence[MeasureRequest] = ()) -> list[str]:
    """A note if a resolver estimates classes of words that it was not trained on, with unknown accuracy."""
    others = ", ".join(one.text for one in asked if is_doubtful(one, one in divided))
    told = f"{others}: classes are estimated by a model that was trained on other groups"
    return [Note(told, code="other-groups-model")] if others else []


DEFAULT_MEASURES = ("ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10", "LexiconShare@10")
# NFaiRR compares a run with another one, its background; with itself, it is near 1 for any run.
DEFAULT_WITH_BACKGROUND = ("NFaiRR(background=run)@10",)
DEFAULT_WITH_QRELS = ("RR@10", "AP@10", "nDCG@10")


class CountKey(NamedTuple):
    """The key of a count: lexicon id, tokenizer, overlap rule, class of mentions, and the resolver of the classes."""

    lexicon: str
    tokens: str
    overlap: str = "all"
    who: str = ANY
    resolver: str = ""


# A text, a ``Measure``, an object with the measure protocol (``MeasureFamily``), or an object of ir_measures.
MeasureLike: TypeAlias = str | Measure | MeasureFamily | Any
MeasuresLike: TypeAlias = MeasureLike | Sequence[MeasureLike]


def measure_list(measures: MeasuresLike) -> list[str | Measure]:
    """The measures in a list, as texts or as ``Measure``."""
    if isinstance(measures, str):
        return list(split_measures(measures))
    if isinstance(measures, Sequence):
        return [one if isinstance(one, str) else as_measure(one) for one in measures]
    return [as_measure(measures)]


def as_measure(thing: MeasureLike) -> Measure:
    """One measure, from a text or an object."""
    if isinstance(thing, Measure):
        return thing
    if isinstance(thing, str):
        return Measure.parse(thing)
    if hasattr(thing, "NAME") and hasattr(thing, "SUPPORTED_PARAMS"):
        # A measure of ir_measures.
        params = dict(thing.params)  # type: ignore[union-attr]
        cutoff = params.pop("cutoff", None)
        return Measure(thing.NAME, tuple(sorted(params.items())), cutoff)
    return Measure.of(family_of(thing, getattr(thing, "name", type(thing).__name__)))


def measure_texts(measures: MeasuresLike | None) -> list[str] | None:
    """The measures as texts; None if none are given."""
    if measures is None:
        return None
    return [one if isinstance(one, str) else one.text for one in measure_list(measures)]


def default_measures(preset: Preset | None, qrels: bool, docs: bool, background: bool = False) -> list[str | Measure]:
    """The measures of the preset, or else the default measures for the given inputs."""
    if preset is not None:
        return list(preset.measures)
    lean = (*DEFAULT_MEASURES, *(DEFAULT_WITH_BACKGROUND if background else ())) if docs else ()
    return [*(DEFAULT_WITH_QRELS if qrels else ()), *lean]


def key_of(asked: MeasureRequest) -> CountKey | None:
    """The key of the count that a measure needs; None if it needs none."""
    return count_key(asked.measure) if "mentions" in asked.family.reads else None


def count_key(measure: Measure) -> CountKey:
    """The key of the count of a complete measure of lean."""
    param = measure.param
    key = CountKey(str(param("lexicon")), str(param("tokens")), str(param("overlap")))
    who = str(param("who", ANY))
    return key if who == ANY else key._replace(who=who, resolver=str(param("resolver")))


def keys_of(asked: Iterable[MeasureRequest]) -> list[CountKey]:
    """The distinct keys of the counts that these measures need."""
    return sorted({key for one in asked if (key := key_of(one)) is not None})


def reads_as_published(asked: Sequence[MeasureRequest], preset: Preset | None) -> bool:
    """Whether files are read as the published scripts read them. All measures must agree."""
    way = _the_one(asked, "reading")
    return bool(preset and preset.published_reading) if way is None else way == "published"


def fields_of(asked: Sequence[MeasureRequest], given: tuple[str, ...]) -> tuple[str, ...]:
    """The fields that are joined to a text: those of the measures, or else the given ones."""
    named = _the_one(asked, "fields")
    if named is None or named == "+".join(given):
        return given
    return tuple(named.split("+")) if named else ()


def _the_one(asked: Sequence[MeasureRequest], key: str) -> str | None:
    """The common value of a parameter in all measures that have it, because the files are read only once."""
    said = {str(one.measure.param(key)): one.text for one in asked if key in one.family.parameters}
    if len(said) > 1:
        (one, first), (other, second), *_ = said.items()
        raise ConfigError(
            f"{first} has {key}={one!r} and {second} has {key}={other!r}: files are read in one way for all measures; "
            "compute these two separately"
        )
    return next(iter(said), None)


def headline_measures(
    groups: GroupsLike | None, cutoff: int, resolver: str | None, **options: Any
) -> list[MeasureRequest]:
    """The measures of a headline: for each kind of mentions, the lean without its sign, then with it.

    Without a ``resolver``, all mentions are the only kind.
    """
    counted_groups = None if groups is None else Groups.of(groups)
    catalogue = Catalogue(overrides=options, groups=counted_groups)
    several = counted_groups is not None and len(counted_groups.names) > 2
    names = ["AWRF({})"] if several else ["ARaB(tf,sign=abs{})", "ARaB(tf{})"]
    parts = [f"who={GENERIC},resolver={resolver}", ""] if resolver else [""]
    texts = [
        f"{name.format(f',{part}' if part and not several else part)}@{cutoff}" for part in parts for name in names
    ]
    asked = catalogue.complete([text.replace("()", "") for text in texts])
    # The resolver does not know the words of other groups.
    return [one for one in asked if not is_doubtful(one)]
