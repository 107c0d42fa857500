"""``askew models``: the trained models that askew ships, and the model card of one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from askew.cli import options as o
from askew.cli.render import print_rows, say, say_json

if TYPE_CHECKING:
    from askew.app.shipped.models import ShippedModel


def models_command(
    name: Annotated[str | None, typer.Argument(help="Print the card of this model.")] = None,
    as_json: o.AsJson = False,
) -> None:
    """List the trained models that askew ships: task, base model, license, size, training data, measure."""
    from askew.app.shipped.models import shipped_model, shipped_models

    if name is not None:
        model = shipped_model(name)
        if as_json:
            say_json({**model.to_dict(), "card": model.card()})
            return
        for line in model.card().splitlines():
            say(line)
        return
    found = shipped_models()
    if as_json:
        say_json([one.to_dict() for one in found])
        return
    print_rows("name", [one.name for one in found], [("what it is", [_about(one) for one in found])])


def _about(model: ShippedModel) -> str:
    from askew.app.shipped.card import NOT_MEASURED, megabytes

    base = f"{model.base} ({model.base_license})" if model.base else "none"
    data = "; ".join(f"{d.name} ({d.license}{'' if d.rows is None else f', {d.rows:,} rows'})" for d in model.data)
    extra = f" (extra {model.extra})" if model.extra else ""
    facts = {
        "used by": ", ".join(model.used_by) + extra, "base model": base, "license": model.license,
        "size": megabytes(model.size), "trained on": data,
        "measured": NOT_MEASURED if model.headline is None else str(model.headline),
    }  # fmt: skip
    return "\n".join([model.task, *(f"{key}: {value}" for key, value in facts.items()), ""])
