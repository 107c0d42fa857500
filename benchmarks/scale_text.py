"""Passages and queries of any number with the length and vocabulary statistics of MS MARCO, made from a seed.

Lengths are lognormal with a mean of about 56 words. There are 2.7 million words; the 10, 100, 1,000 and 10,000 most
frequent ones have the shares of all tokens that they have in the 31,970 judged passages of TREC DL 2019 and 2020 (the
last a little less, for these passages are of 97 topics), the others share the rest. 1.2% of the words name a woman or a
man, as in MS MARCO's passages about people and others together. Words have English endings, so that stemming has work.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

GENDERED = ("he", "his", "she", "her", "him", "women", "men", "woman", "man", "mother", "father", "girls", "boys")
_BLOCK = 50_000
_LETTERS = "bcdfghklmnprstvz"
_SUFFIXES = ("", "s", "ed", "ing", "er", "ation", "ness", "al")
# Of the most frequent words: how many, and their share of all tokens.
_RANKS = (1, 10, 100, 1_000, 10_000, 100_000)
_SHARES = (0.06, 0.233, 0.42, 0.677, 0.90, 0.98)


@dataclass(frozen=True)
class Shape:
    """The statistics of the text."""

    words: int = 2_700_000
    mean_log: float = 3.95
    deviation: float = 0.38
    gendered: float = 0.012


SHAPE = Shape()


def word_of(rank: int) -> str:
    """The word of a rank: pairs of a consonant and a vowel, an x, and an ending. Stems of two words differ."""
    found, left = "", rank + len(_LETTERS)
    while left:
        left, at = divmod(left, len(_LETTERS))
        found += _LETTERS[at] + "ao"[at % 2]
    return f"{found}x{_SUFFIXES[rank % len(_SUFFIXES)]}"


def _ranks(random: np.random.Generator, count: int) -> Any:
    """Ranks of words: the shares of the most frequent ones, and between them in proportion to the log of the rank."""
    ranks, shares = np.array([*_RANKS, SHAPE.words]), np.array([*_SHARES, 1.0])
    found = np.exp(np.interp(random.random(count), np.concatenate([[0.0], shares]), np.log([1, *(ranks + 1)])))
    return np.minimum(found.astype(np.int32) - 1, SHAPE.words - 1)


def _texts(random: np.random.Generator, count: int, vocabulary: pa.Array) -> pa.Array:
    lengths = np.clip(random.lognormal(SHAPE.mean_log, SHAPE.deviation, count), 8, 250).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ranks = _ranks(random, int(offsets[-1])) + len(GENDERED)
    named = random.random(len(ranks)) < SHAPE.gendered
    ranks[named] = random.integers(0, len(GENDERED), int(named.sum()))
    return pc.binary_join(
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), vocabulary.take(pa.array(ranks))), " "
    )


def vocabulary() -> pa.Array:
    """All words; the gendered ones first."""
    return pa.array([*GENDERED, *(word_of(rank) for rank in range(SHAPE.words))])


def query_words(text: str, random: np.random.Generator) -> str:
    """A query of 3 to 7 words of a passage."""
    words = [word for word in text.split(" ") if word not in GENDERED]
    count = min(len(words), int(random.integers(3, 8)))
    return " ".join(words[at] for at in np.sort(random.choice(len(words), count, replace=False)))


def write_collection(folder: Path, documents: int, queries: int, seed: int = 0) -> None:
    """docs.tsv, queries.tsv and qrels.txt: each query is made of words of its relevant passage.

    A tenth of the queries has two more relevant passages.
    """
    folder.mkdir(parents=True)
    random, words = np.random.default_rng(seed), vocabulary()
    wanted = np.sort(random.integers(0, documents, queries))
    more = random.integers(0, documents, (queries, 2))
    done = 0
    with (
        (folder / "docs.tsv").open("w") as docs,
        (folder / "queries.tsv").open("w") as asked,
        (folder / "qrels.txt").open("w") as judged,
    ):
        for start in range(0, documents, _BLOCK):
            texts = _texts(random, min(_BLOCK, documents - start), words).to_pylist()
            docs.writelines(f"{start + row}\t{text}\n" for row, text in enumerate(texts))
            stop = int(np.searchsorted(wanted, start + len(texts)))
            for number in range(done, stop):
                doc = int(wanted[number])
                asked.write(f"{number}\t{query_words(texts[doc - start], random)}\n")
                relevant = {doc, *(more[number].tolist() if number % 10 == 0 else [])}
                judged.writelines(f"{number} 0 {one} 1\n" for one in sorted(relevant))
            done = stop
