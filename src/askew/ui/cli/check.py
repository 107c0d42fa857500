"""``askew check``: check how a collection covers some groups, before anything is measured."""

from __future__ import annotations

from askew.core import defaults
from askew.core.groups import LEARNED, Groups
from askew.ui.cli import options as o
from askew.ui.cli.render import note, print_records, say, say_json, say_wrapped

# How many words of each group are shown with some of their mentions, and how many rows of other tables without --all.
_READ_WORDS = 5
_SHOWN_ROWS = 5
_SHOWN_TERMS = 20


@o.options("""
COLLECTION: A collection: a folder, a file of documents, 'irds:ID', or 'demo'.
--words: How many of the most frequent words of each group to examine.
--sample: The number of documents to sample; group words are examined in these documents.
--seed: Seed of the sample.
--all (everything): Show every examined word and every example, not only the most frequent ones.
""")
def command(
    collection: str,
    groups: str | None = None,
    lexicon: str | None = None,
    words: int = defaults.CHECK_WORDS,
    sample: int = defaults.CHECK_SAMPLE,
    seed: int = defaults.CHECK_SEED,
    everything: bool = False,
    as_json: bool = False,
) -> None:
    """Check a collection before you measure: its judgements, and how often it names the groups.

    The check also shows group words that often do not refer to a person of the group.

    Example: askew check demo --groups age
    """
    from askew.study.check import check, classes_of

    found = check(collection, Groups.resolve(groups, lexicon), words=words, sample=sample, seed=seed)
    note(found.notes)
    if as_json:
        say_json(found.to_dict())
        return
    most = None if everything else _SHOWN_ROWS
    print_records([{found.collection: name, "": value} for name, value in found.facts()])
    say("")
    if found.words:
        say_wrapped(
            f"The most frequent words of each group in {found.examined}. The columns after 'mentions' show whom a word "
            f"refers to, as estimated shares of its mentions. {found.legend}"
            if found.resolver
            else f"The most frequent words of each group in {found.examined}. {found.legend}"
        )
        for group in dict.fromkeys(one.group for one in found.words):
            print_records([
                {group: one.word, "mentions": one.mentions,
                 **{who: f"{one.who[who] / one.mentions:.0%}" for who in classes_of(group) if found.resolver}}
                for one in found.words if one.group == group
            ][:most])  # fmt: skip
    for group, terms in found.unused.items():
        every = len(found.groups.counted.groups[group])
        if terms and len(terms) < every:
            # Such terms may be misspelled. A large lexicon has many rare terms; a list would hide the rest.
            listed = f": {', '.join(terms)}" if len(terms) <= _SHOWN_TERMS else ""
            say_wrapped(f"{len(terms):,} of the {every:,} terms of {group} do not occur in these documents{listed}.")
    doubtful = sorted((one for one in found.words if one.doubtful), key=lambda one: -one.doubtful)
    if found.resolver:
        say("")
    if not doubtful and found.resolver:
        say_wrapped(
            f"In {found.examined}, the resolver classified no mention of the listed words as part of a name ('name') "
            "or as not referring to a person ('other')."
        )
    elif doubtful:
        say_wrapped("Some mentions of these words are estimated not to refer to a person of the group:")
        print_records([
            {"word": one.word, "group": one.group, "mentions": f"{who} {one.who[who]:,} of {one.mentions:,}",
             "example": one.examples[who]}
            for one in doubtful for who in one.examples
        ][: most and 2])  # fmt: skip
    unlearned = [group for group in found.groups.names if group not in LEARNED]
    frequent = [one for group in unlearned for one in [w for w in found.words if w.group == group][:_READ_WORDS]]
    if read := [{"word": one.word, "mention": text} for one in frequent for text in one.contexts]:
        say("")
        say_wrapped(
            "Random mentions of the most frequent words of groups that the resolver was not trained on. Read them: if "
            "many mentions of a word do not refer to a person of the group, remove the word from the lexicon."
        )
        print_records(read[:most])
    if most and len(found.words) > most:
        say(f"At most {most} rows of a table are shown; --all shows every row.")
