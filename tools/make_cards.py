"""Write the cards of the models that askew ships, beside their weights.

    python tools/make_cards.py

A card is made from the files in the model's folder: model.json (task, data, license, prose), measured.json and, if the
training program wrote it, training.json. No number is typed by hand. A card without prose in model.json was written by
the program that measured the model. A test checks that the cards are up to date.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from askew.train.shipped import NOT_MEASURED, ShippedModel, TrainingData, follow, megabytes, shipped_models

NOT_KEPT = "not kept"
_WIDTH = 120
_LICENSES = {
    "Apache-2.0": ("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    "CC-BY-SA-4.0": ("CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/"),
}


def render_card(model: ShippedModel) -> str:
    """The card as Markdown, with the front matter that model hubs read."""
    prose = model.facts["card"]
    front = [f"license: {model.license.lower()}", *([f"base_model: {model.base}"] if model.base else [])]
    hubs = [f"- {one.hub}" for one in model.data if one.hub]
    front += ["datasets:", *hubs] if hubs else []
    parts = ["\n".join(["---", *front, "---"]), f"# {model.name}", _wrapped(f"{model.task} {prose.get('about', '')}")]
    parts.append(_table_of(model))
    parts += ["## Training data", *_wrapped_all(prose.get("labels")), _data(model.data)]
    parts += [*_wrapped_all(prose.get("data")), "## Training", *_wrapped_all(_training(model))]
    parts += ["## Measures", *_measures(model), "## Limits", _wrapped(prose["limits"])]
    return "\n\n".join(parts) + "\n"


def _table_of(model: ShippedModel) -> str:
    name, link = _LICENSES.get(model.license, (model.license, ""))
    extra = f" (extra `{model.extra}`)" if model.extra else ""
    absent = "a program that is not part of this version of askew"
    measured = f"`{model.measured_by}`" if model.measured_by else absent
    rows = {
        "used by": ", ".join(f"`{one}`" for one in model.used_by) + extra,
        "base model": f"{model.base} ({model.base_license}), not part of askew" if model.base else "none",
        "license": f"[{name}]({link})" if link else name,
        "size": megabytes(model.size),
        "trained by": f"`{model.trained_by}`" if model.trained_by else absent,
        "measured by": measured if model.measured else "not measured yet",
    }
    return _table(["property", "value"], [list(row) for row in rows.items()])


def _data(data: Sequence[TrainingData]) -> str:
    rows = [[one.name, one.by or "-", one.license, NOT_KEPT if one.rows is None else f"{one.rows:,}"] for one in data]
    return _table(["data", "by", "license", "rows"], rows)


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
    parts = _wrapped_all(prose.get("measures"))
    for table in prose.get("tables", ()):
        columns = table["columns"]
        values = json.loads((model.folder / table["file"]).read_text(encoding="utf-8")) if "file" in table else found
        named = _rows(follow(values, table["at"]), table["rows"])
        rows = [[label, *(_cell(node, column) for column in columns)] for label, node in named]
        parts.append(_table([table["first"], *(column["name"] for column in columns)], rows))
    return parts


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


def cards() -> dict[Path, str]:
    """The cards of all models with prose, by their files."""
    return {one.card_file: render_card(one) for one in shipped_models() if "card" in one.facts}


def main() -> None:
    """Write the cards that changed."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for file, text in cards().items():
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {file.parent.name}/{file.name}\n")


if __name__ == "__main__":
    main()
