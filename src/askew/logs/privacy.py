"""Which texts of a log may be shown: none that few users typed, none about a person, none that guesses who they are.

What is withheld is counted, and counts in every figure; it is only never printed or written.
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
    """A text is shown when at least ``least_users`` users typed it and no name or phrase of the lists is in it.

    The phrases that speculate about a person are about some groups only (``speculation_groups``): ``guesses`` says
    whether they are looked for.
    """

    least_users: int
    guesses: bool = True

    def reasons(self, texts: pl.Series, users: pl.Series) -> pl.Series:
        """Why each text is withheld; null where it may be shown. A text that few typed is looked at no further."""
        # A name counts wherever it stands between other signs: mary's, mary-ann, @mary.
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
        """The rows all of whose texts may be shown, and the others counted by reason.

        ``users`` says how many typed a row. Where there is a column ``guessed``, it says that a row is known to
        speculate about a person; it is not kept.
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
        """How many texts are withheld for which reason."""
        found = pl.DataFrame({"reason": reasons}).drop_nulls().group_by("reason").agg(n=pl.len().cast(pl.Int64))
        return found.sort("reason").select(pl.lit(what).alias("what"), pl.col("reason").cast(pl.String), "n")

    @staticmethod
    def left_out(n: int, what: str, reason: str) -> pl.DataFrame:
        """The same for texts that were counted elsewhere."""
        table = pl.DataFrame({"what": [what], "reason": [reason], "n": [n]})
        return table.filter(pl.col("n") > 0)


def speculates(texts: pl.Series) -> pl.Series:
    """Whether a phrase about who a person is stands in each text."""
    padded = pl.DataFrame({"text": texts}).select(pl.format(" {} ", pl.col("text").fill_null("")).alias("text"))
    return padded["text"].str.contains_any([f" {phrase} " for phrase in speculation()])


@lru_cache(maxsize=1)
def first_names() -> tuple[str, ...]:
    """First names that make a query one about a person."""
    names = load_lexicon(LOG_DATA.parent / "names" / "en.toml")
    return tuple(sorted({canonical(name) for listed in names.groups.values() for name in listed}))


@lru_cache(maxsize=1)
def speculation() -> tuple[str, ...]:
    """Phrases that make a query one about who a person is."""
    return tuple(sorted({canonical(phrase) for phrase in _speculation()["phrases"]}))


def speculation_groups() -> frozenset[str]:
    """The groups that these phrases are about."""
    return frozenset(_speculation()["groups"])


@lru_cache(maxsize=1)
def _speculation() -> dict[str, Any]:
    return tomllib.loads((LOG_DATA / "speculation-en.toml").read_text(encoding="utf-8"))
