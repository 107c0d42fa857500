"""Show defaults in the help of commands whose options are settings. The defaults are read when the help is shown.

The modules of the settings import numerical libraries and models, which would slow down the start of every command.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

WITH_DEFAULTS = ("classifier", "adapter", "ranker", "selector", "generator", "rewriter", "negatives", "rerank")


def defaults_of(name: str) -> dict[str, Any]:
    """Return the settings of a command with their defaults, and the preset that has these values."""
    from askew.search.rerank import RerankSettings
    from askew.train.common import by_name
    from askew.train.facade import trainers
    from askew.train.negatives import NegativesJob

    kind: Any = {"rerank": RerankSettings, "negatives": NegativesJob}.get(name) or trainers()[name][1]
    same = [one for one, given in getattr(kind, "presets", {}).items() if kind(**given) == kind()]
    return {**by_name(kind()), **({"preset": same[0]} if same else {})}


class WithDefaults(TyperCommand):
    """A command that shows the defaults of its settings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Add the defaults, then write the options."""
        self.add_defaults()
        super().format_options(ctx, formatter)

    def add_defaults(self) -> None:
        """Add the default to the help of each option that is a setting and has no default of its own."""
        values = defaults_of(str(self.name))
        one: Any
        for one in self.params:
            value = values.get(str(one.name))
            if isinstance(value, str | int | float) and value != "" and one.default is None:
                shown = f"  [default: {str(value).lower() if isinstance(value, bool) else value}]"
                one.help = f"{one.help.removesuffix(shown)}{shown}"
