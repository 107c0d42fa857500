"""The answers of the explorer to a query: its results, their bias (lean), its reformulations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from askew.core.defaults import TOKENIZER
from askew.core.errors import Note
from askew.core.files import DATA
from askew.core.groups import LEARNED, WHO, WHO_SHORT, Groups
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.outcome import OUTCOMES, UNKNOWN, UNKNOWN_SIGN, Outcome, Verdict, joint_signs, outcome_codes
from askew.core.ranking import Floats
from askew.measures.headline import Headline
from askew.measures.mentions import Mark, Marker, can_mark
from askew.measures.relevance import OFFTOPIC, asks_about, open_estimator
from askew.measures.requested import PUBLISHED
from askew.measures.resolver import class_probabilities, default_resolver, open_resolver
from askew.rewrite.swap import Rewriter, load_swaps
from askew.rewrite.words import LanguageCheck
from askew.ui.explorer.leaning import LEAST_LEAN, LeanPicture

# Detect whether a text is likely English: the lexicons, rules and models of the explorer are for English.

ENGLISH = "en"
NOT_ENGLISH = (
    "The query does not look like English, so rules and methods that were written for English are not applied."
)


@cache
def _check() -> LanguageCheck:
    return LanguageCheck(ENGLISH)


def is_english(text: str) -> bool:
    """Whether function words, letters and script do not indicate another language."""
    return not _check().refuses(text)


def counts_english(lexicon: Lexicon) -> bool:
    """Whether a lexicon declares English as its language."""
    return lexicon.language == ENGLISH


def not_english_note(count: int, of: int, lexicon: str) -> Note:
    """Return a note on results in another language."""
    first = f"The texts of {count} of {of} results do" if of > 1 else "The text of the result does"
    why = f"The lexicon {lexicon} lists English words, so the counts may be wrong."
    return Note(f"{first} not look like English. {why}", code="not-english", count=count, of=of, lexicon=lexicon)


# The measures of effectiveness and lean that decide about a reformulation, and the verdict on their gains.


@dataclass(frozen=True)
class Sides:
    """The measures of effectiveness and of lean that a selection decides by, and its tolerance.

    The verdicts are the same as in the dataset: effectiveness or lean is worse if one of its measures is worse.
    """

    effectiveness: tuple[str, ...]
    lean: tuple[str, ...]
    tolerance: float = 0.0

    def outcomes(self, gains: Mapping[str, Floats], rows: int) -> list[str | None]:
        """Return the outcome of both sides for ``rows`` pairs; None if a gain is missing, for instance unjudged.

        ``gains`` has a column for each measure, with NaN for a missing gain.
        """
        if not self.effectiveness or not self.lean:
            return [None] * rows
        missing = np.full(rows, np.nan)
        first, second = ([gains.get(name, missing) for name in side] for side in (self.effectiveness, self.lean))
        codes = outcome_codes(first, second, self.tolerance).tolist()
        return [None if code == UNKNOWN else OUTCOMES[code] for code in codes]

    def lean_verdicts(self, gains: Mapping[str, Floats], rows: int) -> list[str | None]:
        """Return the changes of lean alone: less, same or more."""
        if not self.lean:
            return [None] * rows
        signs = joint_signs([gains.get(name, np.full(rows, np.nan)) for name in self.lean], self.tolerance)
        return [None if sign == UNKNOWN_SIGN else tuple(Verdict)[1 - sign].lean for sign in signs.tolist()]


# Check by rules whether there is a reason for a query to name a group.

_NAMES, _BIOLOGY = DATA / "names" / "en.toml", DATA / "warranted.toml"


@cache
def _marker(lexicon: Path) -> Marker:
    return Marker(load_lexicon(lexicon))


@cache
def _rewriter() -> Rewriter:
    return Rewriter(load_swaps("gender-en"))


@dataclass(frozen=True)
class Reason:
    """A rule that applies, and the words of the query that match it."""

    rule: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Warrant:
    """The words of a query that name groups, and the reasons for these words.

    ``rules`` are the rules that were tried; empty if there are none for the counted groups. ``english`` is false if the
    query does not look like English; then no words and no rules are applied.
    """

    words: tuple[str, ...]
    groups: tuple[str, ...]
    reasons: tuple[Reason, ...]
    rules: tuple[str, ...]
    english: bool = True

    @property
    def status(self) -> str:
        """``warranted`` if a rule applies, ``none`` if no group is named, else ``added``.

        If there are no rules for the groups, ``no rules`` replaces ``added``.
        """
        if self.reasons:
            return "warranted"
        return "none" if not self.words else "added" if self.rules else "no rules"


class WarrantRules:
    """The rules for these groups; without groups, the words of the broad lexicon ``gender`` are used."""

    def __init__(self, groups: Groups | None = None) -> None:
        self._counted = groups
        self._applies = groups is None or set(groups.names) >= PUBLISHED

    @cached_property
    def _groups(self) -> Marker:
        groups = self._counted
        if groups is None:
            return Marker(load_lexicon("gender"))
        tokenizer = groups.tokenizer if can_mark(groups.tokenizer) else TOKENIZER
        return Marker(groups.lexicon, tokenizer, groups.overlap, groups.names)

    def look(self, query: str) -> Warrant:
        """Apply the rules to a query."""
        if counts_english(self._groups.lexicon) and not is_english(query):
            return Warrant((), (), (), (), english=False)
        marks = self._groups.find(query)
        found: dict[str, list[Mark]] = {}
        if self._applies:
            # A first name that is also a word of the lexicon counts as a word, not as a name.
            taken = {(mark.start, mark.end) for mark in marks}
            named = [mark for mark in _marker(_NAMES).find(query) if (mark.start, mark.end) not in taken]
            # The list of swaps does not change these words of a group, because they are part of a name.
            free = [match.span() for match in _rewriter().find(query)]
            swaps = _rewriter().lexicon.swaps
            fixed = [
                mark for mark in marks
                if query[mark.start : mark.end].lower() in swaps
                and not any(start <= mark.start < end for start, end in free)
            ]  # fmt: skip
            found = {"named person": named, "fixed name": fixed, "biology": _marker(_BIOLOGY).find(query)}
        reasons = tuple(Reason(rule, _words(query, hits)) for rule, hits in found.items() if hits)
        groups = tuple(dict.fromkeys(group for mark in marks for group in mark.groups))
        return Warrant(_words(query, marks), groups, reasons, tuple(found))


def _words(query: str, marks: list[Mark]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(query[mark.start : mark.end] for mark in marks))


# Estimate whom each marked word points to, and why it is in a result.

OFF_TOPIC, ON_TOPIC, ASKED = "off topic", "on topic", "asked for"
WHY_SAYS = {
    OFF_TOPIC: "the document is probably not about the query",
    ON_TOPIC: "the document is about the query; askew does not estimate whether the word is warranted or a stereotype",
    ASKED: "the query itself names this group",
}


@dataclass(frozen=True)
class ShownMark:
    """A word ``text[start:end]`` that names these groups.

    ``who`` (whom it points to) and ``why`` (the reason for the mention) are estimates with the probabilities ``who_p``
    and ``why_p``; null without an estimate. ``counted`` says whether the deciding measure counts the word.
    """

    start: int
    end: int
    groups: tuple[str, ...]
    who: str | None = None
    who_p: float | None = None
    why: str | None = None
    why_p: float | None = None
    counted: bool = True

    @property
    def words(self) -> str:
        """The mark as text: group, who, why."""
        told = [" and ".join(self.groups)]
        if self.who is not None:
            told.append(f"refers to: {WHO_SHORT[self.who]} (probability {self.who_p:.0%})")
        if self.why is not None:
            told.append(f"{self.why} (probability {self.why_p:.0%}): {WHY_SAYS[self.why]}")
        if not self.counted:
            told.append("not counted by the measure that decides whether the results lean")
        return "; ".join(told)


@dataclass(frozen=True)
class CountedPart:
    """A part of a measure by the reason of the mentions: its share, and its net contribution to the value."""

    part: str
    share: float
    net: float


class Reasons:
    """Explains marks of some groups; ``who`` are the classes that the deciding measure counts, empty for all."""

    def __init__(self, groups: Sequence[str], who: Sequence[str] = ()) -> None:
        self.applies = set(groups) <= set(LEARNED) and default_resolver() is not None
        self._who = frozenset(who)

    def explain(
        self, query: str, named: Sequence[str], texts: Sequence[str], marks: Sequence[Sequence[Mark]],
        relevant: Sequence[bool],
    ) -> list[tuple[ShownMark, ...]]:  # fmt: skip
        """Explain the marks of each text; ``named`` has the groups in the query, ``relevant`` the judged texts."""
        if not self.applies:
            return [tuple(ShownMark(mark.start, mark.end, mark.groups) for mark in each) for each in marks]
        flat = [mark for each in marks for mark in each]
        text_of = np.repeat(np.arange(len(marks)), [len(each) for each in marks])
        starts, ends = (np.array([getattr(mark, end) for mark in flat], np.int64) for end in ("start", "end"))
        who = class_probabilities(open_resolver(), texts, text_of, starts, ends)
        why = np.zeros((0, 3))
        if flat:
            # A document that is judged relevant is on topic.
            estimator, naming, rows = open_estimator(), sorted(set(text_of.tolist())), text_of.tolist()
            chance = np.zeros(len(texts))
            chance[naming] = estimator.relevance([query] * len(naming), [texts[row] for row in naming])
            chance[np.array(relevant, np.bool_)] = 1.0
            queries, texts_of_marks = [query] * len(rows), [texts[row] for row in rows]
            why = estimator.why(queries, texts_of_marks, starts.tolist(), who, chance[rows])
        asked = np.array([bool(set(mark.groups) & set(named)) for mark in flat], np.bool_)
        why = asks_about(why, asked) if flat else why
        found: list[list[ShownMark]] = [[] for _ in texts]
        for row, mark in enumerate(flat):
            best, off = int(who[row].argmax()), float(why[row, OFFTOPIC])
            on = ASKED if asked[row] else ON_TOPIC
            part, p = (OFF_TOPIC, off) if off >= 0.5 else (on, 1.0 - off)
            counted = not self._who or WHO[best] in self._who
            found[int(text_of[row])].append(
                ShownMark(mark.start, mark.end, mark.groups, WHO[best], float(who[row, best]), part, p, counted)
            )
        return [tuple(each) for each in found]


EFFECTIVENESS, LEAN = "effectiveness", "lean"


@dataclass(frozen=True)
class ShownResult:
    """A retrieved document. ``text`` may be cut; ``marks`` are positions in it. ``mentions`` are of the whole text.

    ``relevance`` is the judgement of the document for the query, None without one. ``english`` is false if the text
    does not look like English; the word lists and models are for English.
    """

    rank: int
    doc_id: str
    score: float
    text: str
    cut: bool
    marks: tuple[ShownMark, ...]
    mentions: Mapping[str, int]
    relevance: int | None = None
    english: bool = True


@dataclass(frozen=True)
class Value:
    """The value of a measure for a list; None if the measure is not defined for it."""

    measure: str
    value: float | None
    better: str
    kind: str
    signature: str


@dataclass(frozen=True)
class Setting:
    """The collection, the ranker, and the groups with marked words, in the order of the drawing.

    ``sign`` explains how to read a value of the lean. If it is ``signed``, the first group is on the negative side.
    """

    collection: str
    documents: int
    ranker: str
    lexicon: str
    groups: tuple[str, ...]
    signed: bool
    sign: str


@dataclass(frozen=True)
class Answer:
    """The results of one query. ``mentions`` are summed over the results that are shown.

    ``lean`` is the drawing of the deciding measure, null without results. ``parts`` are the shares of the measure
    ``parts_of`` that a model estimates to be off topic, asked for and warranted; empty for groups that the model does
    not know. ``notes`` are about this query. ``headline`` is what is said first about the results.
    """

    query: str
    query_id: str | None
    judged: bool
    results: tuple[ShownResult, ...]
    found: int
    mentions: Mapping[str, int]
    values: tuple[Value, ...]
    warrant: Warrant
    setting: Setting
    lean: LeanPicture | None = None
    parts: tuple[CountedPart, ...] = ()
    parts_of: str | None = None
    notes: tuple[str, ...] = ()
    headline: Headline | None = None


@dataclass(frozen=True)
class Variant:
    """A reformulation, or the query itself.

    ``groups`` are the groups that its words name. ``outcome`` is null if the query has no judgements; ``lean_verdict``
    (less, same, more) needs none. ``same`` is the probability that it asks for the same thing as the query, and
    ``natural`` the probability that a person would type it. ``kept`` is the share of the original query's top 10
    documents that it also retrieves. ``stored`` is true if it is one of the pairs of the store. ``kind`` is the kind of
    reformulation, if its method has kinds.
    """

    variant_id: str
    text: str
    method: str
    doc_id: str | None
    values: Mapping[str, float | None]
    gains: Mapping[str, float | None]
    outcome: str | None
    lean_verdict: str | None
    groups: tuple[str, ...]
    same: float | None = None
    natural: float | None = None
    kept: float | None = None
    stored: bool = False
    kind: str | None = None


@dataclass(frozen=True)
class Alternatives:
    """Reformulations of a query with their measures. ``effectiveness`` is the measure that is compared with lean.

    For a query without judgements it is ``AGREEMENT``, which does not measure effectiveness; then ``proxy`` is true.
    ``dropped`` has the numbers of dropped candidates by reason. ``leans`` is false if the results of the query are at
    most ``threshold`` from the best value; then no reformulation is needed. ``methods`` made the candidates. The
    measures of ``deciding`` determine the outcome.
    """

    query: str
    query_id: str | None
    judged: bool
    effectiveness: str
    proxy: bool
    lean: str
    original: Variant
    candidates: tuple[Variant, ...]
    dropped: Mapping[str, int]
    signatures: Mapping[str, str]
    better: Mapping[str, str]
    setting: Setting
    leans: bool | None = None
    threshold: float = LEAST_LEAN
    methods: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    deciding: tuple[str, ...] = ()

    def ordered(self) -> list[Variant]:
        """Sort the candidates: those that lean less come first, without a loss of effectiveness, then by lean."""

        def key(variant: Variant) -> tuple[object, ...]:
            leans_less, loses = variant.lean_verdict == Verdict.BETTER.lean, variant.outcome == Outcome.WORSE_LESS.value
            # No value is last.
            values = [math.inf if value is None else -value for value in (variant.gains.get(self.lean), variant.same)]
            return not leans_less, loses, *values, variant.text

        return sorted(self.candidates, key=key)


@dataclass(frozen=True)
class Move:
    """The ranks of a document in two lists; None if it is not in the top ``depth``."""

    doc_id: str
    old: int | None
    new: int | None


@dataclass(frozen=True)
class Comparison:
    """A query and a reformulation: both result lists, the rank changes of their documents, and the gains.

    ``moves`` has the documents that are shown in at least one list, in the order of the old list, then of the new one.
    ``outcome`` is null if the query has no judgements; ``lean_verdict`` (less, same, more) needs none. ``same`` is the
    probability that both ask for the same thing, and ``natural`` the probability that a person would type the
    reformulation.
    """

    old: Answer
    new: Answer
    depth: int
    moves: tuple[Move, ...]
    gains: Mapping[str, float | None]
    agreement: float
    outcome: str | None
    lean_verdict: str | None
    effectiveness: str
    proxy: bool
    lean: str
    tolerance: float = 0.0
    same: float | None = None
    natural: float | None = None
