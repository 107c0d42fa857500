"""From a finished build to a released dataset: the chosen pairs with the facts of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from askew import __version__
from askew.core.errors import ConfigError
from askew.engine.run import Outcome
from askew.engine.store import Store
from askew.publish.release import Published, publish
from askew.stages.build.pairs import Select
from askew.stages.recipe import Build

_NEEDED = ("group", "label", "score", "optimal", "effective", "fair", "negative")


def release(build: Build, store: Store, outcomes: Mapping[str, Outcome], out: Path) -> Published:
    """Publish the chosen pairs of a build, and the negative ones beside them."""
    stage = build.select
    if stage is None:
        raise ConfigError(f"publish: the recipe {build.recipe.name!r} chooses no pairs; it needs a section [select]")
    pairs = pl.DataFrame(pl.from_arrow(pa.concat_tables(store.read(outcomes["pairs"].manifest))))
    missing = [name for name in _NEEDED if name not in pairs.columns]
    if missing:
        raise ConfigError(
            f"publish: the selector {stage.selector.name!r} does not say which pairs are {missing[0]}; "
            "take refairmulate or refairmulate-repo"
        )
    chosen = pairs.filter(pl.col("fair") | pl.col("negative"))
    renamed = {name: _renamed(name) for name in chosen.columns if _renamed(name) != name}
    # How a candidate was made is in the recipe; repeated on every row it would be most of the file.
    table = chosen.drop("settings", strict=False).rename(renamed)
    return publish(table, facts_of(build, outcomes, stage), out)


def _renamed(name: str) -> str:
    side, underscore, measure = name.partition("_")
    return f"{side}:{measure}" if underscore and side in ("old", "new", "gain") else name


def facts_of(build: Build, outcomes: Mapping[str, Outcome], stage: Select) -> dict[str, Any]:
    """What the card and the checks say of the run."""
    recipe = build.recipe
    asked = build.evaluate.asked
    return {
        "title": str(recipe.sections.get("title", recipe.name)),
        "description": str(recipe.sections.get("about", "Pairs of queries and other ways to ask them.")),
        "collection": build.resources.collection.id,
        "ranker": str(recipe.table("retrieve").get("ranker", "bm25")),
        "measures": {one.text: {"signature": one.signature, "direction": one.direction.value} for one in asked},
        "selection": _selection(stage),
        "lexicons": _lexicons(build),
        "recipe": _recipe_text(recipe.sections),
        "counts": {name: outcome.manifest.rows_out for name, outcome in outcomes.items()},
        "dropped": _dropped(outcomes),
        "versions": {"askew": __version__},
    }  # fmt: skip


def _dropped(outcomes: Mapping[str, Outcome]) -> dict[str, int]:
    parts = {name: outcome.manifest.dropped for name, outcome in outcomes.items()}
    return {f"{name}: {why}": count for name, dropped in parts.items() for why, count in dropped.items()}


def _selection(stage: Select) -> dict[str, Any]:
    """What the paper's selection promises of its subsets, for those who check it."""
    given = dict(stage.selector.settings())
    if stage.selector.name != "refairmulate":
        return {}
    effectiveness, bias = given["effectiveness"], given["bias"]
    groups = {
        "effectiveness": dict.fromkeys(effectiveness, given["theta_eff"]),
        "bias": dict.fromkeys(bias, given["theta_bias"]),
    }
    accepted = dict.fromkeys(("optimal", "effective"), given["accept"])
    weights = {effectiveness[0]: given["weight_eff"], bias[0]: given["weight_bias"]}
    stated = {"tolerance": given["tolerance"], "accepted": accepted, "groups": groups, "weights": weights}
    if given["theta_eff"] == 1.0 and given["theta_bias"] == 0.0:
        # At the ends of the scale a threshold that is met is a value.
        stated["optimal"] = dict.fromkeys(effectiveness, 1.0) | dict.fromkeys(bias, 0.0)
    return stated


def _lexicons(build: Build) -> list[dict[str, str]]:
    found = build.evaluate.lexicons()
    return [{"id": one.id, "licence": one.licence or "not stated", "source": one.source or ""} for one in found]


def _recipe_text(sections: Mapping[str, Any]) -> str:
    """The recipe with every change of the command line in it, as TOML."""
    lines = [f"{key} = {_value(value)}" for key, value in sections.items() if isinstance(value, str)]
    for key, value in sections.items():
        for one in value if isinstance(value, list) else [value] if isinstance(value, Mapping) else []:
            head = f"[[{key}]]" if isinstance(value, list) else f"[{key}]"
            lines += ["", head, *(f"{name} = {_value(inner)}" for name, inner in one.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value as TOML writes it; JSON's texts, numbers and lists are TOML's as well."""
    return json.dumps(value, ensure_ascii=False)
