"""Render the card of a shipped model from its description and its file of measures. No number is typed by hand.

``model.json`` describes the tables: ``at`` is the path of the rows in the file of measures, ``rows`` selects rows and
``columns`` selects values. A column is a ``number``, a ``count``, a ``share`` or an ``interval``.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from askew.app.shipped.models import follow

if TYPE_CHECKING:
    from askew.app.shipped.models import ShippedModel, TrainingData

NOT_MEASURED = "Not measured yet."
NOT_KEPT = "not kept"
_WIDTH = 120
_LICENSES = {
    "Apache-2.0": ("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    "CC-BY-SA-4.0": ("CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/"),
}


def render_card(model: ShippedModel) -> str:
    """The card as Markdown, with the front matter that model hubs read."""
    prose = model.facts["card"]
    parts = [_front(model), f"# {model.name}", _wrapped(f"{model.task} {prose.get('about', '')}"), _table_of(model)]
    parts += ["## Training data", *_wrapped_all(prose.get("labels")), _data(model.data)]
    parts += [*_wrapped_all(prose.get("data")), "## Training", *_wrapped_all(_training(model))]
    parts += ["## Measures", *_measures(model), "## Limits", _wrapped(prose["limits"])]
    return "\n\n".join(parts) + "\n"


def megabytes(size: int) -> str:
    """A size in bytes as text, in MB or kB."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _front(model: ShippedModel) -> str:
    lines = [f"license: {model.license.lower()}"]
    lines += [f"base_model: {model.base}"] if model.base else []
    hubs = [one.hub for one in model.data if one.hub]
    lines += ["datasets:", *(f"- {hub}" for hub in hubs)] if hubs else []
    return "\n".join(["---", *lines, "---"])


def _table_of(model: ShippedModel) -> str:
    name, link = _LICENSES.get(model.license, (model.license, ""))
    extra = f" (extra `{model.extra}`)" if model.extra else ""
    rows = {
        "used by": ", ".join(f"`{one}`" for one in model.used_by) + extra,
        "base model": f"{model.base} ({model.base_license}), not part of askew" if model.base else "none",
        "license": f"[{name}]({link})" if link else name,
        "size": megabytes(model.size),
        "trained by": _program(model.trained_by),
        "measured by": _program(model.measured_by) if model.measured else "not measured yet",
    }
    return _table(["property", "value"], [list(row) for row in rows.items()])


def _program(path: str | None) -> str:
    return f"`{path}`" if path else "a program that is not part of this version of askew"


def _data(data: Sequence[TrainingData]) -> str:
    def row(one: TrainingData) -> list[str]:
        return [one.name, one.by or "-", one.license, NOT_KEPT if one.rows is None else f"{one.rows:,}"]

    return _table(["data", "by", "license", "rows"], [row(one) for one in data])


def _training(model: ShippedModel) -> str:
    found, prose = model.training, model.facts["card"].get("training", "")
    if not found:
        return str(prose)
    settings = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found["settings"].items())
    return f"Settings: {settings}; seed {found['seed']}; {found['hardware']}. {prose}"


def _measures(model: ShippedModel) -> list[str]:
    found, prose = model.measured, model.facts["card"]
    if found is None:
        return [NOT_MEASURED]
    tables = [_measured_table(found, one) for one in prose.get("tables", ())]
    return [*_wrapped_all(prose.get("measures")), *tables]


def _measured_table(found: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    columns = table["columns"]
    rows = [
        [label, *(_cell(node, column) for column in columns)]
        for label, node in _rows(follow(found, table["at"]), table["rows"])
    ]
    return _table([table["first"], *(column["name"] for column in columns)], rows)


def _rows(node: Any, rows: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """A row is a path, a path (``at``) with a label, or ``each`` child of a node."""
    for one in rows:
        if isinstance(one, str):
            yield one, follow(node, one)
        elif "at" in one:
            yield one["label"], follow(node, one["at"])
        else:
            children = follow(node, one["each"])
            yield from ((f"{one['label']} {name}".strip(), child) for name, child in children.items())


def _cell(node: Any, column: Mapping[str, str]) -> str:
    value, form = follow(node, column.get("at", "")), column["as"]
    if form == "interval":
        return f"{value['low']:.3f} to {value['high']:.3f}" if math.isfinite(value["low"]) else "-"
    if not math.isfinite(value):
        return "-"
    return {"number": f"{value:.3f}", "share": f"{value:.1%}", "count": f"{value:,.0f}"}[form]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _wrapped_all(text: str | None) -> list[str]:
    return [_wrapped(text)] if text and text.strip() else []
