"""The requested measures: the counts that they need, and how the files are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from askew.core.errors import ConfigError
from askew.core.measure import split_measures
from askew.core.who import ANY
from askew.measures.catalogue import MeasureRequest, Preset

DEFAULT_MEASURES = ("ARaB(tc)@10", "ARaB(tf)@10", "ARaB(bool)@10", "NFaiRR@10", "LexiconShare@10")
DEFAULT_WITH_QRELS = ("RR@10", "AP@10", "nDCG@10")


class CountKey(NamedTuple):
    """The key of a count: lexicon id, tokenizer, overlap rule, class of mentions, and the resolver of the classes."""

    lexicon: str
    tokens: str
    overlap: str = "all"
    who: str = ANY
    resolver: str = ""


def texts_of(measures: str | Sequence[str] | None, preset: Preset | None, qrels: bool, docs: bool) -> list[str]:
    """The requested measures, or those of the preset, or else the default measures for the given inputs."""
    if measures is not None:
        return split_measures(measures) if isinstance(measures, str) else list(measures)
    if preset is not None:
        return list(preset.measures)
    return [*(DEFAULT_WITH_QRELS if qrels else ()), *(DEFAULT_MEASURES if docs else ())]


def key_of(asked: MeasureRequest) -> CountKey | None:
    """The key of the count that a measure needs; None if it needs none."""
    if "mentions" not in asked.family.reads:
        return None
    param = asked.measure.param
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
