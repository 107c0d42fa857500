"""Find further phrases that name a group: phrases used in the same templates as group terms (GSQR paper, appendix A).

Every specializing reformulation is a template and a keyphrase: "hairstyles" -> "hairstyles for women over 50" is
"hairstyles for [KEYPHRASE]" with "women over 50". Prepositions at the ends of the added block stay in the template. The
score of a keyphrase is

    S_k = sum over templates t of p(k|t) p(t|seed)

with n the number of reformulations, p(k|t) = n(t,k) / n(t), and p(t|seed) the share of t among the reformulations with
a seed (a known group term) as keyphrase. A person
reviews the keyphrases with the highest scores. Accepted keyphrases become seeds of the next round.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from askew.core.errors import DataError, place
from askew.core.lexicon import Lexicon
from askew.logs.definition import canonical

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


def count_templates(parts: pl.LazyFrame) -> pl.LazyFrame:
    """The number of reformulations per template and keyphrase, summed over parts."""
    return parts.group_by("template", "keyphrase").agg(n=pl.col("n").sum())


def part_counts(templates: pl.DataFrame) -> pl.DataFrame:
    """The number of reformulations per template and keyphrase in one part of a log."""
    return templates.group_by("template", "keyphrase").agg(n=pl.len().cast(pl.Int64))


def phrase_users(templates: pl.DataFrame) -> pl.DataFrame:
    """How often and by how many users each keyphrase was added in one part of a log. No user is in two parts."""
    return templates.group_by("keyphrase").agg(
        n=pl.len().cast(pl.Int64), users=pl.col("user").n_unique().cast(pl.Int64)
    )


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
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"review {path}: expected UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise DataError(f"review {path}: the file cannot be read ({error.strerror or error})") from None
    rows = list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))
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
        kept = {name: values.get(name, "") for name in COLUMNS}
        decided.append(Decision(**(kept | {"keyphrase": canonical(kept["keyphrase"])})))
    return decided


def grown(lexicon: Lexicon, decisions: Sequence[Decision]) -> Lexicon:
    """The lexicon with the keyphrases that a reviewer assigned to a group. New groups are added."""
    groups = {group: list(terms) for group, terms in lexicon.groups.items()}
    for one in decisions:
        if one.decision and one.decision.casefold() not in _REFUSED and one.keyphrase:
            groups.setdefault(one.decision, []).append(one.keyphrase)
    if {group: len(terms) for group, terms in groups.items()} == {g: len(t) for g, t in lexicon.groups.items()}:
        return lexicon
    return Lexicon(
        f"{lexicon.name}+review", {group: tuple(terms) for group, terms in groups.items()}, lexicon.version,
        lexicon.language, lexicon.source, lexicon.license,
    )  # fmt: skip


def review_rows(candidates: pl.DataFrame, decisions: Sequence[Decision], most: int = 50) -> list[Decision]:
    """The rows of the next review file: all decided keyphrases, then the best undecided ones that are not seeds."""
    kept = [one for one in decisions if one.decision]
    known = {one.keyphrase for one in kept}
    fresh = candidates.filter(~pl.col("seed") & ~pl.col("keyphrase").is_in(sorted(known))).head(most)
    return kept + [
        Decision(row["keyphrase"], "", f"{row['score']:.6f}", str(row["n"]), str(row["users"]))
        for row in fresh.iter_rows(named=True)
    ]


def review_text(rows: Sequence[Decision]) -> str:
    """The review file as text. Keyphrases are canonical queries: without TAB, line feed or leading apostrophe."""
    lines = ["\t".join(COLUMNS)]
    for one in rows:
        phrase = f"'{one.keyphrase}" if one.keyphrase.startswith(tuple(FORMULA)) else one.keyphrase
        lines.append("\t".join([phrase, one.score, one.n, one.users, one.decision]))
    return "\n".join(lines) + "\n"
