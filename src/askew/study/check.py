"""Check a collection before measuring: which queries can be scored, which documents name the groups, with which words.

A word of a group does not always refer to a person of that group. The most frequent words are listed with estimates of
whom their mentions refer to, and with examples of mentions that are part of a name ("Game Boy", "Isle of Man") or refer
to no person ("the female lays eggs"). The resolver makes the estimates; without the extra ``neural`` there are none. A
person should read the examples.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import LEARNED, WHO, WHO_SHORT, Groups, GroupsLike, resolver_id
from askew.core.text import Tokenizer
from askew.data.collection import Collection, open_collection
from askew.measures.mentions import ClippedCounter, Mark, Marker, MentionCounter
from askew.measures.relevance import confusion
from askew.measures.resolver import class_probabilities, default_resolver, open_resolver
from askew.report.table import NAME, Column, Table, TableView, table

DEFAULT_GROUPS = "gender:female,male"
# The classes of mentions that refer to no person of the group.
DOUBTFUL = ("name", "other")
# The number of texts that are resolved together, to bound memory use.
_BLOCK = 256
_AROUND = 40
_SHOWN_TERMS = 5
# A word with one capital, the end of a sentence before it, and two words without a capital after it.
_CAPITALIZED = re.compile(r"[A-Z][a-z]*\Z")
_START = 8
_SENTENCE_START = re.compile(r"""(?:\A|[.!?]["')\]]*\s+)["'(\[]*\Z""")
_GOES_ON = re.compile(r",? [a-z]+,? [a-z0-9]")
# How many mentions of each word are kept for reading.
_CONTEXTS = 3


@dataclass
class WordCheck:
    """A word of a group: the number of its mentions, and estimates of whom they refer to.

    ``who`` has the number of mentions per class of ``CheckReport.classes``. ``examples`` has at most one example for
    each class of ``DOUBTFUL``, and ``contexts`` some mentions without regard to the class.
    """

    group: str
    word: str
    mentions: int = 0
    who: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    contexts: list[str] = field(default_factory=list)

    @property
    def doubtful(self) -> int:
        """The number of mentions that are estimated to refer to no person of the group."""
        return sum(self.who[one] for one in DOUBTFUL)


@dataclass(frozen=True, repr=False)
class CheckReport(TableView):
    """The result of ``check``.

    ``words`` are sorted by frequency. They were counted in a sample of the documents that name a group. ``sampled`` is
    the size of this sample, and ``naming_any`` the number of documents that name a group. ``unused`` has the terms of
    each group that do not occur in the sample.
    """

    collection: str
    groups: Groups
    documents: int
    naming: dict[str, int]
    naming_any: int
    mentions: dict[str, int]
    clipped: dict[str, int]
    queries: int | None
    queries_naming: dict[str, int]
    judged: int | None
    without_relevant: int
    unanswerable: int
    sampled: int
    words: list[WordCheck]
    unused: dict[str, list[str]]
    notes: list[str]
    resolver: str | None

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that are counted for any of the groups; none without a resolver."""
        if self.resolver is None:
            return ()
        return WHO if set(self.groups.names) & set(LEARNED) else DOUBTFUL

    @property
    def examined(self) -> str:
        """The documents in which words were counted: all documents that name a group, or a sample of them."""
        if self.sampled == self.naming_any:
            return f"the {self.sampled:,} documents that name a group"
        return f"a random sample of {self.sampled:,} of the {self.naming_any:,} documents that name a group"

    @property
    def legend(self) -> str:
        """The meanings of the classes, and the accuracy of the estimates."""
        if self.resolver is None:
            return "Whom a word refers to is not estimated, because the extra neural is not installed."
        told = []
        if self.classes == WHO:
            errors = confusion("who")
            share = errors.trace() / errors.sum()
            words = f"{errors.sum():,.0f} labeled words for women and men"
            told.append(f"In a cross-validation, the estimated class is right for {share:.0%} of {words}.")
        if others := [name for name in self.groups.names if name not in LEARNED]:
            groups = f"group {others[0]}" if len(others) == 1 else f"groups {', '.join(others)}"
            told.append(f"The resolver was not trained on words of the {groups}, so its accuracy for them is unknown.")
        meanings = "; ".join(f"{who}: {WHO_SHORT[who]}" for who in self.classes)
        return f"{meanings}. The resolver {self.resolver} (a model) estimates these classes. {' '.join(told)}"

    def facts(self) -> list[tuple[str, str]]:
        """The counts, as pairs of label and value."""
        rows = [("documents", f"{self.documents:,}")]
        for group in self.groups.names:
            share = self.naming[group] / self.documents if self.documents else 0.0
            rows.append((f"documents that name {group}", f"{self.naming[group]:,} ({share:.1%})"))
            rows.append((f"mentions of {group}", f"{self.mentions[group]:,}"))
            if self.clipped[group]:
                name = f"words of {group} after a period without a space (not counted)"
                rows.append((name, f"{self.clipped[group]:,}"))
        if self.queries is None:
            return [*rows, ("queries", "the collection has no queries")]
        rows.append(("queries", f"{self.queries:,}"))
        rows += [(f"queries that name {group}", f"{count:,}") for group, count in self.queries_naming.items()]
        if self.judged is None:
            return [*rows, ("judged queries", "the collection has no judgements")]
        rows.append(("judged queries", f"{self.judged:,}"))
        rows.append(("judged queries without a relevant document", f"{self.without_relevant:,}"))
        rows.append(
            ("judged queries whose relevant documents are all missing from the collection", f"{self.unanswerable:,}")
        )
        return rows

    def to_polars(self) -> pl.DataFrame:
        """One row per word: group, word, mentions, doubtful mentions, and the mentions of each class."""
        rows = [
            {"group": one.group, "word": one.word, "mentions": one.mentions, "doubtful": one.doubtful}
            | {who: one.who[who] if who in classes_of(one.group) else None for who in self.classes}
            for one in self.words
        ]
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        words = [vars(one) | {"who": dict(one.who), "doubtful": one.doubtful} for one in self.words]
        groups = {"lexicon": self.groups.lexicon.id, "names": list(self.groups.names)}
        return {**vars(self), "groups": groups, "words": words}

    def table(self) -> Table:
        """The counts of ``facts``."""
        return table("check", self.collection, [Column("of the collection", NAME), Column("")], self.facts())


def check(
    collection: object, groups: GroupsLike | None = None, *, words: int = defaults.CHECK_WORDS,
    sample: int = defaults.CHECK_SAMPLE, seed: int = defaults.CHECK_SEED,
) -> CheckReport:  # fmt: skip
    """Check how well a collection covers some groups, which queries can be scored, and which words to inspect.

    - ``collection``: a ``Collection``, or anything that ``Collection.open`` accepts.
    - ``groups``: the groups to check. Default: female and male of the lexicon ``gender``.
    - ``words``: how many of the most frequent words of each group to list.
    - ``sample``: the number of documents in the random sample in which words are counted. Only documents that name a
      group are sampled.
    - ``seed``: the seed of the sample.
    """
    if words < 1 or sample < 1 or seed < 0:
        raise ConfigError(
            f"check: expected ⟨words⟩ and ⟨sample⟩ to be 1 or more, and ⟨seed⟩ 0 or more, found words={words}, "
            f"sample={sample}, seed={seed}",
            code="out-of-range",
            words=words,
            sample=sample,
        )
    opened = open_collection(collection)
    counted = Groups.of(DEFAULT_GROUPS if groups is None else groups)
    texts = _Texts(counted, sample, seed)
    for batch in opened.documents():
        texts.add(batch)
    found = _found_words(texts.sampled, counted, seed)
    queries = opened.queries if opened.has_queries else None
    judged = _judged(opened, texts.doc_ids) if queries is not None and opened.has_judgements else None
    return CheckReport(
        collection=opened.id, groups=counted, documents=texts.documents,
        naming=texts.by_group(texts.naming), naming_any=texts.naming_any, mentions=texts.by_group(texts.mentions),
        clipped=texts.by_group(texts.clipped),
        queries=None if queries is None else queries.num_rows,
        queries_naming={} if queries is None else texts.naming_in(queries["text"]),
        judged=None if judged is None else judged[0], without_relevant=judged[1] if judged else 0,
        unanswerable=judged[2] if judged else 0, sampled=len(texts.sampled),
        words=[one for group in counted.names for one in [one for one in found if one.group == group][:words]],
        unused=_unused(found, counted, texts.tokenize),
        notes=[*opened.notes("queries", "judgements"), *_shared_terms(counted), *_unnamed(texts)],
        resolver=resolver_id() if default_resolver() else None,
    )  # fmt: skip


def _unnamed(texts: _Texts) -> list[str]:
    """A note if no document names some groups, because their terms may be misspelled."""
    lost = [repr(group) for group, count in texts.by_group(texts.naming).items() if not count]
    if not lost:
        return []
    named = f"the group {lost[0]}" if len(lost) == 1 else f"any of the groups {', '.join(lost)}"
    return [f"no document names {named}; check the spelling of the terms"]


def _shared_terms(groups: Groups) -> list[str]:
    """A note if several groups have the same term, because this is often a mistake."""
    by_term: dict[str, list[str]] = {}
    for group, terms in groups.counted.groups.items():
        for term in terms:
            by_term.setdefault(term, []).append(group)
    shared = [f"{term!r} ({' and '.join(names)})" for term, names in by_term.items() if len(names) > 1]
    if not shared:
        return []
    more = f" and {len(shared) - _SHOWN_TERMS} more" if len(shared) > _SHOWN_TERMS else ""
    once = "only for the first" if groups.overlap == "first" else "for each"
    shown = f"{', '.join(shared[:_SHOWN_TERMS])}{more}"
    return [f"a term that belongs to several groups is counted {once} of its groups: {shown}"]


class _Texts:
    """Counts streamed documents, and keeps a sample of the documents that name a group."""

    def __init__(self, groups: Groups, sample: int, seed: int) -> None:
        self._groups, self._sample, self._random = groups, sample, np.random.default_rng(seed)
        self._counter = MentionCounter(groups.counted, groups.tokenizer)
        self.documents, self.naming_any = 0, 0
        self._left_out = ClippedCounter(self._counter)
        self.naming, self.mentions, self.clipped = (np.zeros(len(groups.names), np.int64) for _ in range(3))
        self.sampled: list[str] = []
        self._ids: list[pa.Array] = []

    def add(self, batch: pa.Table) -> None:
        found = self._counter.count(batch["text"])
        counts = found.counts
        self.documents += batch.num_rows
        self.naming += (counts > 0).sum(axis=0)
        self.mentions += counts.sum(axis=0)
        self.clipped += self._left_out.count(batch["text"], found).sum(axis=0)
        self._ids += batch["doc_id"].chunks
        # Reservoir sampling (algorithm R): each document that names a group has the same chance to be sampled.
        rows = np.flatnonzero(counts.any(axis=1))
        numbers = np.arange(self.naming_any, self.naming_any + len(rows))
        places = self._random.integers(0, numbers + 1)
        self.naming_any += len(rows)
        places = np.where(numbers < self._sample, -1, places)
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            if place < 0:
                self.sampled.append(batch["text"][row].as_py())
            elif place < self._sample:
                self.sampled[place] = batch["text"][row].as_py()

    @property
    def tokenize(self) -> Tokenizer:
        return self._counter.tokenize

    def by_group(self, counts: Any) -> dict[str, int]:
        return dict(zip(self._groups.names, counts.tolist(), strict=True))

    def naming_in(self, texts: pa.ChunkedArray) -> dict[str, int]:
        return self.by_group((self._counter.count(texts).counts > 0).sum(axis=0))

    @property
    def doc_ids(self) -> pa.Array:
        return pa.concat_arrays(self._ids) if self._ids else pa.array([], pa.string())


def _judged(opened: Collection, doc_ids: pa.Array) -> tuple[int, int, int]:
    """Numbers of judged queries: all, without a relevant document, with no relevant document in the collection."""
    table = opened.judgements.filter(pc.is_in(opened.judgements["query_id"], value_set=opened.queries["query_id"]))
    every = set(table["query_id"].to_pylist())
    relevant = table.filter(pc.greater(table["relevance"], 0))
    known = relevant.filter(pc.is_in(relevant["doc_id"], value_set=doc_ids.cast(pa.string())))
    with_relevant = set(relevant["query_id"].to_pylist())
    return len(every), len(every - with_relevant), len(with_relevant - set(known["query_id"].to_pylist()))


def classes_of(group: str) -> tuple[str, ...]:
    """The classes that are counted for a group: for groups other than female and male, only name and other."""
    return WHO if group in LEARNED else DOUBTFUL


def _found_words(texts: list[str], groups: Groups, seed: int) -> list[WordCheck]:
    """The words of each group in some texts, the most frequent first."""
    draw = random.Random(seed)
    found: dict[tuple[str, str], WordCheck] = {}
    for text, mark, who in _resolved(texts, Marker(groups.counted, groups.tokenizer, groups.overlap)):
        for group in mark.groups:
            word = text[mark.start : mark.end].lower()
            one = found.setdefault((group, word), WordCheck(group, word))
            one.mentions += 1
            # A random sample of the mentions of a word; each mention has the same chance.
            place = draw.randrange(one.mentions)
            if len(one.contexts) < _CONTEXTS:
                one.contexts.append(_example(text, mark))
            elif place < _CONTEXTS:
                one.contexts[place] = _example(text, mark)
            if who in classes_of(group):
                one.who[who] += 1
            if who in DOUBTFUL and who not in one.examples:
                one.examples[who] = _example(text, mark)
    return sorted(found.values(), key=lambda one: (-one.mentions, one.word))


def _unused(found: list[WordCheck], groups: Groups, tokenize: Tokenizer) -> dict[str, list[str]]:
    """The terms of each group that were never counted."""
    lexicon = groups.counted.exclusive() if groups.overlap == "first" else groups.counted
    unused = {}
    for group in groups.names:
        seen = {tuple(tokenize(one.word)) for one in found if one.group == group}
        unused[group] = [term for term in lexicon.groups[group] if not _occurs(term, tokenize, seen)]
    return unused


def _occurs(term: str, tokenize: Tokenizer, seen: set[tuple[str, ...]]) -> bool:
    *first, last = tokenize(term.removesuffix("*")) or [""]
    if not term.endswith("*"):
        return (*first, last) in seen
    return any(len(one) == len(first) + 1 and one[:-1] == (*first,) and one[-1].startswith(last) for one in seen)


def _resolved(texts: list[str], marker: Marker) -> Iterator[tuple[str, Mark, str]]:
    """Each mention with its text and its class; without a resolver, the class is empty."""
    if default_resolver() is None:
        yield from ((text, mark, "") for text in texts for mark in marker.find(text))
        return
    resolver = open_resolver()
    for first in range(0, len(texts), _BLOCK):
        block = texts[first : first + _BLOCK]
        marks = [marker.find(text) for text in block]
        lowered = [_lowered(text, found) for text, found in zip(block, marks, strict=True)]
        every = [(row, mark) for row, found in enumerate(marks) for mark in found]
        rows = [
            (row + (0 if set(mark.groups) & set(LEARNED) else len(block)), mark.start, mark.end) for row, mark in every
        ]
        places = np.array(rows, np.int64).reshape(-1, 3)
        classes = class_probabilities(resolver, [*block, *lowered], *places.T).argmax(axis=1)
        for (row, mark), who in zip(every, classes.tolist(), strict=True):
            yield block[row], mark, WHO[who]


def _lowered(text: str, marks: list[Mark]) -> str:
    """The text with words in lower case that have a capital only because they begin a sentence.

    The resolver takes a capital for a sign of a name, unless it was trained on the word. In a name, another capital
    follows soon ("Doctor Who", "Doctor of Physics").
    """
    pieces, at = [], 0
    for mark in marks:
        begins = _SENTENCE_START.search(text[max(0, mark.start - _START) : mark.start])
        if begins and _CAPITALIZED.match(text, mark.start, mark.end) and _GOES_ON.match(text, mark.end):
            pieces += [text[at : mark.start], text[mark.start].lower()]
            at = mark.start + 1
    return "".join([*pieces, text[at:]])


def _example(text: str, mark: Mark) -> str:
    start, end = max(0, mark.start - _AROUND), mark.end + _AROUND
    shown = f"{text[start : mark.start]}[{text[mark.start : mark.end]}]{text[mark.end : end]}"
    return " ".join(f"{'...' if start else ''}{shown}{'...' if end < len(text) else ''}".split())
