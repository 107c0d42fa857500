"""Default measures for groups that no resolver was trained on: they count all mentions, without ``who=``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from askew.app.scoring.comparable import catalogue_of, is_doubtful
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.measure import Measure, split_measures
from askew.plugins.kinds import SelectorPlugin


def names_classes(settings: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether settings of a recipe name a measure with ``who=``."""
    named = (settings.get(section, {}).get(key) for section, key in (("evaluate", "measures"), ("select", "bias")))
    return any("who=" in str(one) for one in named)


def with_all_mentions(sections: Mapping[str, Any], groups: Groups | None) -> Mapping[str, Any]:
    """Return the sections of a recipe; a measure whose classes would be doubtful for the groups counts all mentions."""
    if groups is None:
        return sections
    evaluate, select = dict(sections["evaluate"]), dict(sections.get("select", {}))
    evaluate["measures"] = _sure(evaluate["measures"], groups)
    if "bias" in select:
        select["bias"] = " ".join(_sure(split_measures(select["bias"]), groups))
    return {**sections, "evaluate": evaluate, **({"select": select} if select else {})}


def sure_bias(selector: SelectorPlugin, groups: Groups | None) -> str | None:
    """Return the bias measures of a selector as above; None if they are those of the selector itself."""
    named = selector.settings().get("bias", ())
    texts = split_measures(named) if isinstance(named, str) else list(named)
    sure = texts if groups is None else _sure(texts, groups)
    return None if sure == texts else " ".join(sure)


def _sure(texts: Iterable[str], groups: Groups) -> list[str]:
    return list(dict.fromkeys(_plain(text, groups) if "who=" in text else text for text in texts))


def _plain(text: str, groups: Groups) -> str:
    try:
        (one,) = catalogue_of(groups).complete([text])
    except ConfigError:  # the measure cannot compare the groups, which is reported where it is used
        return text
    if not is_doubtful(one):
        return text
    measure = Measure.parse(text)
    return replace(measure, params=tuple(one for one in measure.params if one[0] not in ("who", "resolver"))).text
