"""``askew check``: check how a collection covers some groups, before anything is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from askew.core import defaults
from askew.core.groups import LEARNED, Groups
from askew.ui.cli import options as o
from askew.ui.cli.render import note, print_rows, say, say_json, say_wrapped

if TYPE_CHECKING:
    from askew.study.check import CheckReport


# How many words of each group are shown with some of their mentions.
_READ_WORDS = 5
_SHOWN_TERMS = 20


@o.options("""
COLLECTION: A collection: a folder, a file of documents, 'irds:ID', or 'demo'.
--words: How many of the most frequent words of each group to examine.
--sample: The number of documents to sample; group words are examined in these documents.
--seed: Seed of the sample.
""")
def command(
    collection: str,
    groups: str | None = None,
    lexicon: str | None = None,
    words: int = defaults.CHECK_WORDS,
    sample: int = defaults.CHECK_SAMPLE,
    seed: int = defaults.CHECK_SEED,
    as_json: bool = False,
) -> None:
    """Check a collection before you measure: its judgements, and how often it names the groups.

    The check also shows group words that often do not refer to a person of the group.

    Example: askew check demo --groups age
    """
    from askew.study.check import check

    found = check(collection, Groups.resolve(groups, lexicon), words=words, sample=sample, seed=seed)
    note(found.notes)
    if as_json:
        say_json(found.to_dict())
        return
    rows = found.facts()
    print_rows(found.collection, [name for name, _ in rows], [("", [value for _, value in rows])])
    _say_words(found)


def _say_words(found: CheckReport) -> None:
    from askew.study.check import classes_of

    say("")
    if found.words:
        say_wrapped(
            f"The most frequent words of each group in {found.examined}. The columns after 'mentions' show whom a word "
            f"refers to, as estimated shares of its mentions. {found.legend}"
        )
        for group in dict.fromkeys(one.group for one in found.words):
            words = [one for one in found.words if one.group == group]
            shares = [(who, [f"{one.who[who] / one.mentions:.0%}" for one in words]) for who in classes_of(group)]
            mentions = [f"{one.mentions:,}" for one in words]
            print_rows(group, [one.word for one in words], [("mentions", mentions), *shares])
    for group, terms in found.unused.items():
        every = len(found.groups.counted.groups[group])
        if terms and len(terms) < every:
            # Such terms may be misspelled. A large lexicon has many rare terms; a list would hide the rest.
            listed = f": {', '.join(terms)}" if len(terms) <= _SHOWN_TERMS else ""
            say_wrapped(f"{len(terms):,} of the {every:,} terms of {group} do not occur in these documents{listed}.")
    doubtful = sorted((one for one in found.words if one.doubtful), key=lambda one: -one.doubtful)
    say("")
    if not doubtful:
        say_wrapped(
            f"In {found.examined}, the resolver classified no mention of the listed words as part of a name ('name') "
            "or as not referring to a person ('other')."
        )
    else:
        say_wrapped("Some mentions of these words are estimated not to refer to a person of the group:")
        rows = [(one, who) for one in doubtful for who in one.examples]
        columns = [
            ("group", [one.group for one, _ in rows]),
            ("mentions", [f"{who} {one.who[who]:,} of {one.mentions:,}" for one, who in rows]),
            ("example", [one.examples[who] for one, who in rows]),
        ]
        print_rows("word", [one.word for one, _ in rows], columns)
    unlearned = [group for group in found.groups.names if group not in LEARNED]
    words = [one for group in unlearned for one in [w for w in found.words if w.group == group][:_READ_WORDS]]
    if read := [(one.word, text) for one in words for text in one.contexts]:
        say("")
        say_wrapped(
            "Random mentions of the most frequent words of groups that the resolver was not trained on. Read them: if "
            "many mentions of a word do not refer to a person of the group, remove the word from the lexicon."
        )
        print_rows("word", [word for word, _ in read], [("mention", [text for _, text in read])])
