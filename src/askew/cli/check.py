"""``askew check``: what a collection has for some groups, before anything is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from askew.cli import options as o
from askew.cli.render import note, print_rows, say, say_json
from askew.core.groups import Groups


def command(
    collection: Annotated[str, typer.Argument(help="A collection: a folder, a file of documents, irds:ID, or demo.")],
    groups: o.GroupNames = None,
    lexicon: o.LexiconName = None,
    words: Annotated[int | None, typer.Option(help="How many words of each group to look at.")] = None,
    sample: Annotated[int | None, typer.Option(help="In how many documents words are looked at.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the sample.")] = None,
    as_json: o.AsJson = False,
) -> None:
    """Check a collection: judged and unanswerable queries, coverage of the groups, and words that may mislead.

    Example: askew check demo --groups age
    """
    from askew.app.measure.check import check

    given = {"words": words, "sample": sample, "seed": seed}
    settings = {name: value for name, value in given.items() if value is not None}
    found = check(collection, Groups.resolve(groups, lexicon), **settings)
    note(found.notes)
    if as_json:
        say_json(found.to_dict())
        return
    rows = found.facts()
    print_rows(found.collection, [name for name, _ in rows], [("", [value for _, value in rows])])
    doubtful = sorted((one for one in found.words if one.doubtful), key=lambda one: -one.doubtful)
    if not doubtful:
        say(f"No frequent word stands in a name or after a number, in {found.sampled:,} documents.")
        return
    say("")
    say(f"Frequent words that may mean something else, in {found.sampled:,} documents that name a group:")
    columns = [
        ("group", [one.group for one in doubtful]),
        ("mentions", [f"{one.mentions:,}" for one in doubtful]),
        ("doubtful", [f"{one.doubtful:,}" for one in doubtful]),
        ("example", [next(iter(one.examples.values())) for one in doubtful]),
    ]
    print_rows("word", [one.word for one in doubtful], columns)
    say("doubtful: in a name, after a number, or at a full stop without a blank;")
    say("found by rules, not by reading")
