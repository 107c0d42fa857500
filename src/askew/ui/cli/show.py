"""``askew list`` and ``askew show``: list measures, lexicons, plugins and recipes, and show one of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from askew.core.address import HIDDEN, Address, is_secret_name, without_secret_values
from askew.core.errors import StoreError, check_name
from askew.core.lexicon import load_lexicon, shipped_lexicons
from askew.core.measure import Measure
from askew.ui.cli import options as o
from askew.ui.cli.render import print_records, say, say_json

# ``askew models``: the trained models that askew ships, and the model card of one of them.


@o.options("""
NAME: Print the card of this model.
""")
def models_command(name: str | None = None, as_json: bool = False) -> None:
    """List the trained models that askew ships: task, base model, license, size, training data, measure."""
    from askew.train.shipped import NOT_MEASURED, megabytes, shipped_model, shipped_models

    if name is not None:
        model = shipped_model(name)
        if as_json:
            say_json({**model.to_dict(), "card": model.card()})
            return
        for line in model.card().splitlines():
            say(line)
        return
    models = shipped_models()
    if as_json:
        say_json([model.to_dict() for model in models])
        return
    rows = []
    for model in models:
        base = f"{model.base} ({model.base_license})" if model.base else "none"
        data = "; ".join(f"{d.name} ({d.license}{'' if d.rows is None else f', {d.rows:,} rows'})" for d in model.data)
        extra = f" (extra {model.extra})" if model.extra else ""
        facts = {
            "used by": ", ".join(model.used_by) + extra, "base model": base, "license": model.license,
            "size": megabytes(model.size), "trained on": data,
            "measured": NOT_MEASURED if model.headline is None else str(model.headline),
        }  # fmt: skip
        about = "\n".join([model.task, *(f"{key}: {value}" for key, value in facts.items()), ""])
        rows.append({"name": model.name, "what it is": about})
    print_records(rows)


_SECRET_LINE = re.compile(r"""((?:^|[{,])\s*["']?([\w.-]+)["']?\s*=\s*)(?:"[^"]*"|'[^']*')""")


def _lexicons() -> list[dict[str, Any]]:
    rows = []
    for name in shipped_lexicons():
        one = load_lexicon(name)
        sizes = ", ".join(f"{group} {len(terms)}" for group, terms in one.groups.items())
        rows.append({"name": name, "groups": sizes, "language": one.language, "hash": one.hash, "title": one.title})
    return rows


def _measures() -> list[dict[str, Any]]:
    from askew.measures.catalogue import family_names, find_family

    rows: dict[Any, dict[str, Any]] = {}
    others: dict[Any, list[str]] = {}
    for name in family_names(available=True):
        family = find_family(name)
        # Another name with other defaults, such as SetRelP for SetP, is not the same measure.
        what = (family.name, *((key, parameter.default) for key, parameter in family.parameters.items()))
        reads = ", ".join(sorted(family.reads))
        row = rows.setdefault(what, {"name": name, "also": "-", "reads": reads, "about": family.about})
        others.setdefault(what, []).append(name)
        if name == family.name:
            row["name"] = name
    for what, row in rows.items():
        row["also"] = ", ".join(name for name in others[what] if name != row["name"]) or "-"
    return sorted(rows.values(), key=lambda row: "judgements" in row["reads"])


def _presets() -> list[dict[str, Any]]:
    from askew.measures.catalogue import presets

    return [{"name": p.name, "title": p.title, "measures": " ".join(p.measures)} for p in presets().values()]


def _resolvers() -> list[dict[str, Any]]:
    from askew.core.groups import RESOLVERS, resolver_id

    return [{"name": name, "id": resolver_id(name), "about": RESOLVERS[name]} for name in RESOLVERS]


def _rankers() -> list[dict[str, Any]]:
    from askew.core.plugins import about, names, settings_of

    indexed = names("index")
    rows = []
    for name in names("ranker"):
        own = name if name in indexed else "bm25" if "index" in settings_of("ranker", name) else "-"
        rows.append({"name": name, "index": "-" if name == "crossencoder" else own, "about": about("ranker", name)})
    return rows


def _plugins_of(kind: str) -> list[dict[str, Any]]:
    from askew.core.plugins import about, names

    return [{"name": name, "about": about(kind, name)} for name in names(kind)]


def _recipes() -> list[dict[str, Any]]:
    from askew.pairs.recipe import read_recipe, shipped_recipes

    return [{"name": name, "about": read_recipe(name).sections.get("about", "-")} for name in shipped_recipes()]


def _plugins() -> list[dict[str, Any]]:
    from askew.core.plugins import names, origin
    from askew.core.protocols import KINDS

    return [{"name": name, "kind": kind, "from": origin(kind, name)} for kind in KINDS for name in names(kind)]


_LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "lexicons": _lexicons, "measures": _measures, "presets": _presets, "tokenizers": partial(_plugins_of, "tokenizer"),
    "resolvers": _resolvers, "rankers": _rankers, "reformulators": partial(_plugins_of, "reformulator"),
    "filters": partial(_plugins_of, "filter"), "classifiers": partial(_plugins_of, "classifier"),
    "mitigation": partial(_plugins_of, "mitigation"), "log_formats": partial(_plugins_of, "log_format"),
    "recipes": _recipes, "plugins": _plugins,
}  # fmt: skip


@o.options()
def list_command(
    what: Annotated[str, typer.Argument(help=f"One of: {', '.join(_LISTS)}.")], as_json: bool = False
) -> None:
    """List all items of one kind, one per line."""
    check_name("list", what, _LISTS)
    rows = _LISTS[what]()
    if as_json:
        say_json(rows)
        return
    if what == "lexicons":
        # Five columns would be too narrow for whole words.
        for row in rows:
            row["title"] = f"{row['title']} ({row.pop('language')}, {row.pop('hash')})"
    print_records(rows)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else "none"
    return str(value)


def _show_lexicon(name: str) -> dict[str, Any]:
    found = load_lexicon(name)
    facts: dict[str, Any] = {
        "lexicon": found.id, "title": found.title, "version": found.version, "language": found.language,
        "source": found.source, "license": found.license, "note": found.note,
    }  # fmt: skip
    facts["groups"] = {group: list(terms) for group, terms in found.groups.items()}
    if shared := found.shared_terms():
        facts["in several groups"] = {term: ", ".join(groups) for term, groups in shared.items()}
    return {key: value for key, value in facts.items() if value}


def _show_measure(name: str) -> dict[str, Any]:
    from askew.measures.catalogue import Catalogue, find_family

    family = find_family(Measure.parse(name).name)
    (asked,) = Catalogue().complete([name])
    described = {}
    for key, parameter in family.parameters.items():
        choices = f" [{', '.join(map(str, parameter.choices))}]" if parameter.choices else ""
        described[key] = (
            f"{'none' if parameter.default in (None, '') else parameter.default}{choices}: {parameter.about}"
        )
    return {
        "measure": name, "about": family.about, "reads": sorted(family.reads), "better": asked.direction.value,
        "bounds": " to ".join("none" if math.isinf(bound) else f"{bound:.4g}" for bound in asked.bounds),
        "signature": asked.signature, "parameters": described,
    }  # fmt: skip


def _show_preset(name: str) -> dict[str, Any]:
    from askew.measures.catalogue import Catalogue, find_preset

    preset = find_preset(name)
    asked = Catalogue(preset).complete(preset.measures)
    return {
        "preset": name, "title": preset.title, "source": preset.source,
        "measures": {a.text: a.signature for a in asked},
    }  # fmt: skip


def _show_ranker(name: str) -> dict[str, Any]:
    from askew.core.plugins import names, settings_of

    facts = _show_plugin("ranker", name)
    facts["settings when searching"] = facts.pop("settings")
    if name in names("index"):
        made = settings_of("index", name)
        facts["settings when indexing"] = {key: made[key] for key in made if key not in ("documents", "folder")}
    return facts


def _show_plugin(kind: str, name: str) -> dict[str, Any]:
    from askew.core.plugins import about, names, origin, settings_of

    check_name(kind, name, names(kind))
    facts = {kind: name, "about": about(kind, name), "from": origin(kind, name)}
    return {**facts, "settings": settings_of(kind, name)}


def _show_recipe(name: str) -> dict[str, Any]:
    from askew.pairs.recipe import read_recipe

    return {"recipe": name, "sections": without_secret_values(read_recipe(name).sections)}


def _show_store(name: str) -> dict[str, Any]:
    from askew.core.store.store import Store

    if "://" not in name and not Path(name).is_dir():
        raise StoreError(f"store {name}: no such folder")
    store = Store(name)
    finished = {}
    for one in store.steps():
        # A store of an earlier version may contain secrets.
        facts = {"dropped": one.dropped, "settings": without_secret_values(one.settings)}
        finished[f"{one.step}-{one.key}"] = {"rows in": one.rows_in, "rows out": one.rows_out, **facts}
    return {"store": str(Address(name)), "finished steps": finished, "unfinished steps": store.unfinished()}


_THINGS: dict[str, Callable[[str], dict[str, Any]]] = {
    "lexicon": _show_lexicon, "measure": _show_measure, "preset": _show_preset, "ranker": _show_ranker,
    "reformulator": partial(_show_plugin, "reformulator"), "filter": partial(_show_plugin, "filter"),
    "classifier": partial(_show_plugin, "classifier"), "recipe": _show_recipe, "store": _show_store,
}  # fmt: skip


@o.options("""
NAME: The name, file or folder of the item.
""")
def show_command(
    what: Annotated[str, typer.Argument(help=f"The kind of the item, one of: {', '.join(_THINGS)}.")],
    name: str,
    as_json: bool = False,
) -> None:
    """Show a lexicon with its terms, a measure, preset or plugin with its settings, a recipe, or a store."""
    check_name("thing to show", what, _THINGS)
    facts = _THINGS[what](name)
    if as_json:
        say_json(facts)
        return
    if what == "recipe":
        from askew.pairs.recipe import recipe_text

        # Print the file as it is, without secrets, so that users can start their own recipe from it.
        for line in recipe_text(name)[1].splitlines():
            say(_SECRET_LINE.sub(lambda found: f'{found[1]}"{HIDDEN}"' if is_secret_name(found[2]) else found[0], line))
        return
    for key, value in facts.items():
        if isinstance(value, dict) and value:
            say(f"{key}:")
            for field, inner in value.items():
                say(f"  {field}{f' ({len(inner)})' if isinstance(inner, list) else ''}: {_as_text(inner)}")
        else:
            say(f"{key}: {_as_text(value)}")
