"""``askew verify``: is a dataset, a store or an index as it was written?"""

from __future__ import annotations

from typing import Annotated

import typer

from askew.cli import options as o


def verify_command(
    path: Annotated[str, typer.Argument(help="A released dataset, a store or an index: its folder.")],
    repair: Annotated[bool, typer.Option("--repair", help="Compute what is damaged again.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Check a dataset, a store or an index: every byte, and what a dataset promises. Exit code 3 if anything is wrong.

    With --repair, damaged steps of a store are computed again from its recipe, and a damaged index is made again from
    its documents, where they are known; of all else the command is shown that makes it.
    """
    from askew.app.build.verify import verify
    from askew.cli.render import say, say_json

    found = verify(path, repair)
    if as_json:
        say_json({"ok": found.ok, "kind": found.kind, "wrong": found.wrong, "notes": found.notes,
                  "repaired": found.repaired, **found.counts, **found.facts})  # fmt: skip
    else:
        for line in found.lines():
            say(line)
    if not found.ok:
        raise typer.Exit(3)
