"""The association of a query's words with a group, and its correlation with the group that people add.

For female and male this is the *genderedness* of the GSQR paper (Raj et al., Patterns of Gender-Specializing Query
Reformulation, SIGIR 2023). The vector of a query is the mean of its word vectors.
Words without a vector are left out, and a query without any known word has no association. The association is the
cosine between the query vector and a direction: the first principal component of pairs of words, each centered at its
mean (Bolukbasi et al. 2016). A positive value is an association with the first group of the pairs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.core.errors import DataError, place
from askew.core.files import parse_toml
from askew.core.lexicon import Lexicon
from askew.data.files import read_text
from askew.logs.definition import LOG_DATA, canonical
from askew.logs.numbers import spearman

# Find further phrases that name a group: phrases used in the same templates as group terms (GSQR paper, appendix A).

COLUMNS = ("keyphrase", "score", "n", "users", "decision")
# A spreadsheet program reads a cell that begins with one of these as a formula. An apostrophe before it prevents that.
FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
_REFUSED = frozenset({"no", "n", "-"})
_DIGITS = 12


@dataclass(frozen=True)
class Decision:
    """A reviewer's decision about a keyphrase: a group, ``no``, or empty if not decided."""

    keyphrase: str
    decision: str
    score: str = ""
    n: str = ""
    users: str = ""


def score_keyphrases(counts: pl.LazyFrame, seed: Iterable[str]) -> pl.DataFrame:
    """S_k of every keyphrase that shares a template with a seed, best first; seeds are among them."""
    seeds = sorted(set(seed))
    totals = counts.group_by("template").agg(total=pl.col("n").sum())
    of_seed = counts.filter(pl.col("keyphrase").is_in(seeds)).group_by("template").agg(seeded=pl.col("n").sum())
    scored = (
        counts.join(of_seed, on="template")
        .join(totals, on="template")
        .with_columns(part=pl.col("n") / pl.col("total") * pl.col("seeded"))
        .group_by("keyphrase")
        .agg(score=pl.col("part").sum())
        .collect()
    )
    # The number of reformulations with a seed as keyphrase.
    everything = of_seed.select(pl.col("seeded").sum()).collect().item() or 1
    # Sums depend on the order of the rows. They agree to twelve digits.
    score = (pl.col("score") / everything).round_sig_figs(_DIGITS)
    scored = scored.with_columns(score=score, seed=pl.col("keyphrase").is_in(seeds))
    return scored.sort("score", "keyphrase", descending=[True, False])


def seeds_of(lexicon: Lexicon) -> list[str]:
    """The terms of a lexicon as keyphrases."""
    return sorted({canonical(term) for terms in lexicon.groups.values() for term in terms if not term.endswith("*")})


def read_review(path: Path) -> list[Decision]:
    """Read a reviewed file: TAB-separated, with a column ``keyphrase`` and a column ``decision``."""
    rows = list(csv.reader(io.StringIO(read_text(path, "review")), delimiter="\t", quoting=csv.QUOTE_NONE))
    head = rows[0] if rows else []
    if not {"keyphrase", "decision"} <= set(head):
        raise DataError(
            f"{place(path, 1)}: expected the columns {', '.join(COLUMNS)}, found other columns; do not change the "
            "first line of the file"
        )
    decided = []
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(head):
            raise DataError(f"{place(path, line)}: expected {len(head)} columns, found {len(row)}")
        values = dict(zip(head, (cell.strip() for cell in row), strict=True))
        cells = {name: values.get(name, "") for name in COLUMNS}
        decided.append(Decision(**(cells | {"keyphrase": canonical(cells["keyphrase"])})))
    return decided


def grown(lexicon: Lexicon, decisions: Sequence[Decision]) -> Lexicon:
    """The lexicon with the keyphrases that a reviewer assigned to a group. New groups are added."""
    groups = {group: list(terms) for group, terms in lexicon.groups.items()}
    for decision in decisions:
        if decision.decision and decision.decision.casefold() not in _REFUSED and decision.keyphrase:
            groups.setdefault(decision.decision, []).append(decision.keyphrase)
    if {group: len(terms) for group, terms in groups.items()} == {g: len(t) for g, t in lexicon.groups.items()}:
        return lexicon
    grouped = {group: tuple(terms) for group, terms in groups.items()}
    return replace(lexicon, name=f"{lexicon.name}+review", groups=grouped)


def review_rows(candidates: pl.DataFrame, decisions: Sequence[Decision], most: int = 50) -> list[Decision]:
    """The rows of the next review file: all decided keyphrases, then the best undecided ones that are not seeds."""
    decided = [decision for decision in decisions if decision.decision]
    phrases = {decision.keyphrase for decision in decided}
    fresh = candidates.filter(~pl.col("seed") & ~pl.col("keyphrase").is_in(sorted(phrases))).head(most)
    return decided + [
        Decision(row["keyphrase"], "", f"{row['score']:.6f}", str(row["n"]), str(row["users"]))
        for row in fresh.iter_rows(named=True)
    ]


def review_text(rows: Sequence[Decision]) -> str:
    """The review file as text. Keyphrases are canonical queries: without TAB, line feed or leading apostrophe."""
    lines = ["\t".join(COLUMNS)]
    for row in rows:
        phrase = f"'{row.keyphrase}" if row.keyphrase.startswith(tuple(FORMULA)) else row.keyphrase
        lines.append("\t".join([phrase, row.score, row.n, row.users, row.decision]))
    return "\n".join(lines) + "\n"


_AT_A_TIME = 50_000

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class WordPairs:
    """Pairs of words that differ by group; the first words belong to the first group."""

    groups: tuple[str, str]
    pairs: tuple[tuple[str, str], ...]


def load_pairs(path: Path | None = None) -> WordPairs:
    """The published pairs for female and male, or those of a TOML file with ``groups`` and ``pairs``."""
    where = path or LOG_DATA / "gender-pairs.toml"
    try:
        data = parse_toml(read_text(where, "pairs"))
        groups = tuple(map(str, data["groups"]))
        pairs = tuple((str(a), str(b)) for a, b in data["pairs"])
    except (KeyError, TypeError, ValueError):
        raise DataError(f"pairs {where}: expected groups = ['a', 'b'] and pairs = [['x', 'y'], ...] in TOML") from None
    if len(groups) != 2 or not pairs:
        raise DataError(
            f"pairs {where}: expected two groups and at least one word pair, "
            f"found {len(groups)} groups and {len(pairs)} word pairs"
        )
    return WordPairs((groups[0], groups[1]), pairs)


class Association:
    """The association of queries with two groups, along a direction in a space of word vectors."""

    def __init__(self, words: Sequence[str], vectors: Matrix, pairs: WordPairs) -> None:
        self.groups = pairs.groups
        self._vectors = vectors
        self._places = pl.DataFrame({"word": list(words), "place": np.arange(len(words))})
        place = dict(zip(words, range(len(words)), strict=True))
        places = [(place[a], place[b]) for a, b in pairs.pairs if a in place and b in place]
        self.pairs_known = len(places)
        if not places:
            raise DataError(
                f"vectors: none of the {len(pairs.pairs)} word pairs for {' and '.join(pairs.groups)} has vectors for "
                "both words"
            )
        self.direction = _direction(vectors, places)

    def of(self, queries: pl.Series) -> pl.Series:
        """The association of each canonical query; null if none of its words has a vector."""
        parts = []
        for at in range(0, len(queries), _AT_A_TIME):
            some = queries.slice(at, _AT_A_TIME)
            rows = pl.DataFrame({"row": np.arange(len(some)), "word": some}).with_columns(pl.col("word").str.split(" "))
            tokens = rows.explode("word").join(self._places, on="word")
            sums = np.zeros((len(some), self._vectors.shape[1]), np.float64)
            np.add.at(sums, tokens["row"].to_numpy(), self._vectors[tokens["place"].to_numpy()])
            lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
            # The mean of the word vectors has the direction of their sum.
            values = np.where(lengths > 0, sums @ self.direction / np.where(lengths > 0, lengths, 1.0), np.nan)
            parts.append(pl.Series("association", values).fill_nan(None))
        return pl.concat(parts) if parts else pl.Series("association", [], pl.Float64)


def _direction(vectors: Matrix, places: list[tuple[int, int]]) -> Any:
    firsts, seconds = (vectors[list(places)].astype(np.float64) for places in zip(*places, strict=True))
    centers = (firsts + seconds) / 2
    _, sizes, lines = np.linalg.svd(np.concatenate([firsts - centers, seconds - centers]), full_matrices=False)
    # Without any difference between the words of a pair, the component would be arbitrary and of length one.
    line = lines[0] if sizes[0] > 0 else np.zeros_like(lines[0])
    # The sign of a principal component is arbitrary. Let it point to the first group.
    line = line if (firsts - seconds).mean(axis=0) @ line >= 0 else -line
    length = np.linalg.norm(line)
    if not length > 0:
        raise DataError(
            "vectors: the vectors do not separate the two groups, because the two words of each word pair have the "
            "same vector; use other vectors or word pairs",
            code="no-direction",
        )
    return line / length


def query_table(events: pl.DataFrame, groups: tuple[str, str]) -> pl.DataFrame:
    """Per original query: events for the two groups, and the share of the first group."""
    of_two = events.filter(pl.col("group").is_in(list(groups)))
    table = of_two.group_by("original").agg(n=pl.len().cast(pl.Int64), share=(pl.col("group") == groups[0]).mean())
    return table.sort("n", "original", descending=[True, False])


def correlation_table(queries: pl.DataFrame) -> pl.DataFrame:
    """Spearman's correlation over queries of the share of the first group and the association."""
    rows = queries.drop_nulls("association")
    return pl.DataFrame([asdict(spearman(rows["share"].to_numpy(), rows["association"].to_numpy()))]).fill_nan(None)
