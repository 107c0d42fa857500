"""Measures of a recipe for groups that no resolver was trained on: they count all mentions, without ``who=``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from askew.app.scoring.comparable import catalogue_of, is_doubtful
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.core.measure import Measure, split_measures
from askew.plugins.kinds import SelectorPlugin


def with_all_mentions(sections: Mapping[str, Any], groups: Groups | None) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the sections of a recipe without ``who=`` for groups that the model of classes was not trained on.

    Measures that name a ``resolver`` keep ``who=``. Also returned: the measures that were changed.
    """
    evaluate, select = (sections.get(name) for name in ("evaluate", "select"))
    # A wrong section is reported where it is used.
    if groups is None or not isinstance(evaluate, Mapping) or not isinstance(evaluate.get("measures"), list):
        return sections, ()
    measures = evaluate["measures"]
    found, given = {**sections, "evaluate": {**evaluate, "measures": _sure(measures, groups)}}, list(measures)
    if isinstance(select, Mapping) and isinstance(select.get("bias"), str):
        bias = split_measures(select["bias"])
        found["select"] = {**select, "bias": " ".join(_sure(bias, groups))}
        given += bias
    return found, tuple(text for text in dict.fromkeys(given) if _sure([text], groups) != [text])


def note_on_changed(changed: Sequence[str]) -> list[str]:
    """A note on measures that count all mentions although the recipe says ``who=``."""
    if not changed:
        return []
    first = Measure.parse(changed[0])
    named = replace(first, params=(*first.params, ("resolver", "light"))).text
    return [
        f"{', '.join(changed)}: the parameter who= is left out, because the model that estimates it was not "
        f"trained on words of these groups; to use this model, name it, as in {named}"
    ]


def sure_bias(selector: SelectorPlugin, groups: Groups | None) -> str | None:
    """Return the bias measures of a selector as above; None if they are those of the selector itself."""
    named = selector.settings().get("bias", ())
    texts = split_measures(named) if isinstance(named, str) else list(named)
    sure = texts if groups is None else _sure(texts, groups)
    return None if sure == texts else " ".join(sure)


def _sure(texts: Iterable[str], groups: Groups) -> list[str]:
    return list(dict.fromkeys(_plain(text, groups) if "who=" in str(text) else text for text in texts))


def _plain(text: str, groups: Groups) -> str:
    try:
        (one,) = catalogue_of(groups).complete([text])
    except ConfigError:  # the measure cannot compare the groups, which is reported where it is used
        return text
    measure = Measure.parse(text)
    if not is_doubtful(one) or measure.param("resolver", ""):
        return text
    return replace(measure, params=tuple(one for one in measure.params if one[0] != "who")).text
