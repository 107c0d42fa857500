"""The tokens of a lexicon's terms under a tokenizer: single tokens, phrases of several tokens, prefixes.

Every implementation uses the same matching rule. At each token the longest matching phrase is taken, and matching
continues after its last token. If no phrase matches, the shortest matching prefix is taken, and otherwise the token
itself. A term counts once for each group it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from askew.core.errors import DataError
from askew.core.lexicon import Lexicon
from askew.core.text import Tokenizer, unclipped, word

MAX_GROUPS = 32
_SHOWN = 10


@dataclass(frozen=True)
class GroupVocabulary:
    """Words, phrases and prefixes, each with a mask of its groups: one bit per group, in the order of ``groups``."""

    groups: tuple[str, ...]
    words: dict[str, int] = field(default_factory=dict)
    phrases: dict[str, list[tuple[tuple[str, ...], int]]] = field(default_factory=dict)
    prefixes: dict[str, int] = field(default_factory=dict)

    def match(self, tokens: Sequence[str], at: int) -> tuple[int, int]:
        """The mask of the term at this token (0 if none) and how many tokens it uses up."""
        token = tokens[at]
        for phrase, mask in self.phrases.get(token, ()):
            if tuple(tokens[at : at + len(phrase)]) == phrase:
                return mask, len(phrase)
        if self.prefixes:
            for end in range(1, len(token) + 1):
                if token[:end] in self.prefixes:
                    return self.prefixes[token[:end]], 1
        return self.words.get(token, 0), 1

    def count(self, tokens: Sequence[str]) -> list[int]:
        """How often the tokens name each group. Every faster implementation must give the same counts."""
        counts = [0] * len(self.groups)
        at = 0
        while at < len(tokens):
            mask, used = self.match(tokens, at)
            if mask:
                for group in range(len(counts)):
                    counts[group] += mask >> group & 1
            at += used
        return counts


def build_vocabulary(lexicon: Lexicon, tokenize: Tokenizer, tokenizer_name: str) -> GroupVocabulary:
    """Tokenize the terms of a lexicon as texts are tokenized."""
    # Terms of a lexicon are never clipped: "m.d." must not lose its "d".
    tokenize = word if tokenize is unclipped else tokenize
    if len(lexicon.groups) > MAX_GROUPS:
        raise DataError(f"lexicon {lexicon.name!r}: expected at most {MAX_GROUPS} groups, found {len(lexicon.groups)}")
    vocabulary = GroupVocabulary(lexicon.group_names)
    _refuse_long_prefixes(lexicon, tokenize, tokenizer_name)
    for bit, terms in enumerate(lexicon.groups.values()):
        for term in terms:
            _add(vocabulary, term, 1 << bit, [t for t in tokenize(term.rstrip("*")) if t], lexicon, tokenizer_name)
    for start, phrases in vocabulary.phrases.items():
        vocabulary.phrases[start] = sorted(_merge(phrases).items(), key=lambda item: (-len(item[0]), item[0]))
    return vocabulary


def _refuse_long_prefixes(lexicon: Lexicon, tokenize: Tokenizer, tokenizer_name: str) -> None:
    """Name all terms of several tokens that end in ``*``, so that a user can correct them at once."""
    terms = {term: tokenize(term.rstrip("*")) for terms in lexicon.groups.values() for term in terms if term[-1] == "*"}
    wrong = [repr(term) for term, tokens in terms.items() if len([one for one in tokens if one]) > 1]
    if wrong:
        shown = ", ".join(wrong[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
        raise DataError(
            f"lexicon {lexicon.name!r}: a term that ends in '*' must be a single token, but the tokenizer "
            f"{tokenizer_name!r} splits these terms into several tokens: {shown}. List their forms instead, such as "
            "'police officer' and 'police officers'"
        )


def _add(
    vocabulary: GroupVocabulary, term: str, bit: int, tokens: list[str], lexicon: Lexicon, tokenizer_name: str
) -> None:
    if not tokens:
        raise DataError(
            f"lexicon {lexicon.name!r}: the term {term!r} has no token under the tokenizer {tokenizer_name!r}, "
            "so it can never match a text"
        )
    if term.endswith("*"):
        vocabulary.prefixes[tokens[0]] = vocabulary.prefixes.get(tokens[0], 0) | bit
    elif len(tokens) > 1:
        vocabulary.phrases.setdefault(tokens[0], []).append((tuple(tokens), bit))
    else:
        vocabulary.words[tokens[0]] = vocabulary.words.get(tokens[0], 0) | bit


def _merge(phrases: list[tuple[tuple[str, ...], int]]) -> dict[tuple[str, ...], int]:
    merged: dict[tuple[str, ...], int] = {}
    for phrase, mask in phrases:
        merged[phrase] = merged.get(phrase, 0) | mask
    return merged
