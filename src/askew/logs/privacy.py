"""Decide which texts of a log may be shown.

A text is withheld if few users typed it, if it contains a person's name, or if it speculates about a person's identity.
Withheld texts are part of every count and statistic. They are never printed or written.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import polars as pl

from askew.core.lexicon import load_lexicon
from askew.logs.definition import LOG_DATA, canonical

RARE, NAME, SPECULATION = "few users", "a person's name", "speculation about identity"


@dataclass(frozen=True)
class Privacy:
    """A text is shown if at least ``least_users`` users typed it and it contains no name or phrase of the lists.

    ``guesses`` says whether texts with phrases that speculate about a person are withheld. Only some groups have such
    phrases (``speculation_groups``).
    """

    least_users: int
    guesses: bool = True

    def reasons(self, texts: pl.Series, users: pl.Series) -> pl.Series:
        """Why each text is withheld; null if it may be shown. "Few users" comes before the other reasons."""
        # A name also matches next to punctuation: mary's, mary-ann, @mary.
        words = pl.col("text").str.extract_all(r"[\p{L}\p{M}]+")
        guessed = speculates(texts) if self.guesses else pl.repeat(False, len(texts), eager=True)
        frame = pl.DataFrame({"text": texts, "users": users, "spoken": guessed})
        named = words.list.eval(pl.element().is_in(list(first_names()))).list.any()
        spoken = pl.col("spoken")
        return frame.select(
            pl.when(pl.col("users") < self.least_users).then(pl.lit(RARE))
            .when(named).then(pl.lit(NAME))
            .when(spoken).then(pl.lit(SPECULATION))
            .otherwise(None).alias("reason")
        )["reason"]  # fmt: skip

    def shown(self, frame: pl.DataFrame, columns: Sequence[str], what: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows that may be shown, and the number of withheld rows by reason.

        A row is withheld if the text of any of ``columns`` is withheld. The column ``users`` is the number of users of
        a row. The optional column ``guessed`` marks rows that speculate about a person; it is dropped.
        """
        rare = pl.when(frame["users"] < self.least_users).then(pl.lit(RARE))
        reasons = [frame.select(rare.otherwise(None).alias("few"))["few"]]
        reasons += [self.reasons(frame[name], frame["users"]).alias(name) for name in columns]
        if "guessed" in frame.columns:
            reasons.append(
                frame.select(guessed=pl.when("guessed").then(pl.lit(SPECULATION)).otherwise(None))["guessed"]
            )
            frame = frame.drop("guessed")
        reason = pl.DataFrame(reasons).select(pl.coalesce(pl.all()).alias("reason"))["reason"]
        return frame.filter(reason.is_null()), self.counted(reason, what)

    @staticmethod
    def counted(reasons: pl.Series, what: str) -> pl.DataFrame:
        """The number of withheld texts by reason."""
        found = pl.DataFrame({"reason": reasons}).drop_nulls().group_by("reason").agg(n=pl.len().cast(pl.Int64))
        return found.sort("reason").select(pl.lit(what).alias("what"), pl.col("reason").cast(pl.String), "n")

    @staticmethod
    def left_out(n: int, what: str, reason: str) -> pl.DataFrame:
        """The table of ``counted`` for a given number of texts that were withheld for one reason."""
        table = pl.DataFrame({"what": [what], "reason": [reason], "n": [n]})
        return table.filter(pl.col("n") > 0)


def speculates(texts: pl.Series) -> pl.Series:
    """Whether each text contains a phrase that speculates about a person's identity."""
    padded = pl.DataFrame({"text": texts}).select(pl.format(" {} ", pl.col("text").fill_null("")).alias("text"))
    return padded["text"].str.contains_any([f" {phrase} " for phrase in speculation()])


@lru_cache(maxsize=1)
def first_names() -> tuple[str, ...]:
    """First names: a text that contains one is withheld."""
    names = load_lexicon(LOG_DATA.parent / "names" / "en.toml")
    return tuple(sorted({canonical(name) for listed in names.groups.values() for name in listed}))


@lru_cache(maxsize=1)
def speculation() -> tuple[str, ...]:
    """Phrases that speculate about a person's identity."""
    return tuple(sorted({canonical(phrase) for phrase in _speculation()["phrases"]}))


def speculation_groups() -> frozenset[str]:
    """The groups that the phrases of ``speculation`` are about."""
    return frozenset(_speculation()["groups"])


@lru_cache(maxsize=1)
def _speculation() -> dict[str, Any]:
    return tomllib.loads((LOG_DATA / "speculation-en.toml").read_text(encoding="utf-8"))
