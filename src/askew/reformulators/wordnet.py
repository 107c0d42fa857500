"""Synonyms from WordNet.

The published code (ReQue) took synonyms in the arbitrary order of a set. Here they come in the order of the database:
the most frequent sense of the noun first, and within a sense as its words are listed.
"""

from __future__ import annotations

from typing import Any

from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.lexical import first_with_other_stems, question_rules, synonym_mode, use_synonyms
from askew.reformulators.wordnet_files import WordNetFiles, find_wordnet


class WordNetReformulator:
    """Adds up to topn WordNet synonyms of each content word, or replaces the word by them.

    ``replace``: replace the word by its synonyms. ``each``: one candidate for each synonym, which replaces its word.
    ``data``: the folder of WordNet's files, if it is not where NLTK or Debian install it.
    """

    method = "wordnet"
    reads: frozenset[str] = frozenset()

    def __init__(self, topn: int = 3, replace: bool = False, each: bool = False, data: str | None = None) -> None:
        self._mode = synonym_mode(self.method, topn, replace, each)
        self._topn, self._wordnet = topn, WordNetFiles(find_wordnet(data))
        self._stop_words = question_rules().stop_words

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with WordNet identified by its content."""
        stop_words = question_rules().hash
        return {"topn": self._topn, "mode": self._mode, "wordnet": self._wordnet.digest, "stop_words": stop_words}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """One candidate for each query with a synonym (with ``each``: one for each synonym)."""
        return use_synonyms(asked, self._synonyms, self._mode)

    def _synonyms(self, word: str) -> list[str]:
        if word in self._stop_words:
            return []
        return first_with_other_stems(word, self._wordnet.lemmas(word), self._topn)
