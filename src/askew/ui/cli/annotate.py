"""``askew annotate``: count the group terms of a collection once, and keep the counts for all runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, say, say_json

if TYPE_CHECKING:
    from askew.measures.counts import Needs


@o.options("""
DOCS: Documents: a file or a folder of files. A file is TSV, JSON Lines or Parquet, and may be gzipped.
--measures: Count the words that these measures need; see 'askew list measures'.
--preset: Use the lexicons and tokenizers of this preset, and its rule for malformed lines of the input.
--groups: The groups whose words are counted. 'age' counts all groups of the lexicon 'age'; 'age:old,young' counts two
    of its groups. Instead of the name of a lexicon, you can give the path of a lexicon file. Cannot be combined with
    --lexicon, --tokens or --overlap.
--lexicon: Count the words of this lexicon: a name or a file.
--tokens: Split texts into words with this tokenizer, such as 'unclipped' or 'word'.
--overlap: Count a term of several groups for all of these groups ('all') or only for the first of them ('first').
**given: measures preset groups lexicon tokens overlap fields
""")
def command(docs: Path, store: str = o.DEFAULT_STORE, as_json: bool = False, **given: str | None) -> None:
    """Count how often each document names each group, and keep the counts in the store.

    By default, the command counts the words that 'askew measure' needs for its default measures. With --measures or
    --preset, it counts the words that the given measures need. With --lexicon, --tokens or --overlap, it counts the
    words of one lexicon with one tokenizer and one overlap rule; their defaults are 'rekabsaz2020', 'unclipped' and
    'all'.
    Existing counts are reused. After an interruption, the same command resumes. With the same --store, 'askew measure'
    recognizes the documents by a hash of their content, and reads the stored counts instead of the texts.
    """
    from askew.core.store.store import Store
    from askew.measures.counts import annotate

    needs = _needs(**given)
    counts: list[dict[str, Any]] = []
    for number, stage in enumerate(needs.stages, start=1):
        label = f"counting words (pass {number} of {len(needs.stages)})" if len(needs.stages) > 1 else "counting words"
        with Waiting(label) as progress:
            outcome = annotate(docs, Store(store), stage, needs.fields, progress, needs.published)
        manifest = outcome.manifest
        folder = Store(store).where(manifest.step, manifest.key)
        settings = manifest.settings
        counts.append(
            {
                "lexicon": settings["lexicon"], "tokens": settings["tokens"], "overlap": settings["overlap"],
                "folder": str(folder), "ran": outcome.ran, "rows": manifest.rows_out, "key": manifest.key,
            }
        )  # fmt: skip
        if not as_json:
            verb = "counted" if outcome.ran else "already counted:"
            say(f"{verb} {manifest.rows_out:,} documents with {settings['lexicon']}, tokens {settings['tokens']}")
            say(f"kept in {folder}")
    if as_json:
        say_json({"counts": counts})


def _needs(
    measures: str | None, preset: str | None, groups: str | None, fields: str | None, **one: str | None
) -> Needs:
    """What is to be counted: by the measures, or by one lexicon, tokenizer and rule."""
    from askew.measures.counts import Annotate, Needs, needs_of

    given = {key: value for key, value in one.items() if value is not None}
    if not given:
        needs = needs_of(measures, preset, o.split_fields(fields), Groups.resolve(groups))
        if not needs.stages:
            raise ConfigError("--measures: none of these measures counts words, so there is nothing to count")
        return needs
    if measures is not None or preset is not None or groups is not None:
        raise ConfigError(
            f"--{next(iter(given))} cannot be combined with --measures, --preset or --groups, which also set how words "
            "are counted"
        )
    if (overlap := one["overlap"]) not in (None, "all", "first"):
        raise ConfigError(f"--overlap: expected 'all' or 'first', found {overlap!r}")
    return Needs((Annotate(**given),), o.split_fields(fields))
