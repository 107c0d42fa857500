"""train rewriter: train a model that rewrites queries from pairs. This is ``askew train rewriter`` as a function.

Pairs come from the store of a build, a published dataset, or files of RePair: an aggregated table (``Q.r.m.agg.*.tsv``:
qid, order, query, value), a box (``BOX.tsv``: qid, query, value, query_, value_), or two columns (query, better query).
Queries are split by their words, so that no query is used for both training and testing.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from askew.core.errors import ConfigError, DataError, one_of, place
from askew.core.expression import CRITERIA, Criterion
from askew.core.files import fingerprint
from askew.core.tables import part_of
from askew.core.text import SALT, normal
from askew.data.files import read_text
from askew.measures.statistics.intervals import bca_interval, mean_and_interval, mean_with_interval
from askew.models.rewrite import KINDS, TextRewriter, shown_to, write_about
from askew.pairs.boxes import ORIGINAL_ORDER as ORIGINAL
from askew.pairs.dataset.layouts import read_agg
from askew.pairs.dataset.splits import no_texts
from askew.pairs.resources import frames_of
from askew.train.card import WORK, Card, CardTable, claim
from askew.train.common import Progress, Schedule, Trained, finished, found_before, left_out_notes, read_published
from askew.train.finetune import (
    TextModel,
    TextSettings,
    bleu_counts,
    bleu_mean,
    bounds_of,
    fit_texts,
    pair_scores,
)
from askew.train.selector import SHARES, pairs_in_store, published_pairs

T5 = "google-t5/t5-base"


PAIR_COLUMNS = ("query_id", "original_text", "text")


def digest_of(pairs: pl.DataFrame) -> str:
    """A fingerprint of the texts of pairs."""
    return fingerprint([pairs["original_text"].to_list(), pairs["text"].to_list()])


# RePair fine-tunes its T5 like the T5 that generates candidates: batches of 128, Adafactor at a constant 0.001.
_TEXT_PACE = Schedule(100.0, 128, 1e-3, 1, 0.0, 0.0, "constant", 2000)
PRESETS: dict[str, dict[str, Any]] = {
    "seq2seq": {"kind": "seq2seq", "text": TextSettings(T5, "seq2seq", optimizer="adafactor"), "pace": _TEXT_PACE},
    "causal": {"text": TextSettings(kind="causal"), "pace": Schedule(3.0, 16, 4e-4, save_every=500)},
}


@dataclass(frozen=True)
class RewriterSettings:
    """How a rewriter is trained and measured; ``prefix`` is put before each query that a seq2seq model reads.

    ``box`` is the name of a subset of pairs, or a criterion if the file has values.

    ``every``: use all candidates of an aggregated table that meet the criterion, not only the best of each query.
    ``most_test``: the largest number of test queries (0: all).
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    preset_name: ClassVar[str] = "kind"
    kind: str = "causal"
    text: TextSettings = field(default_factory=TextSettings)
    prefix: str = ""
    pace: Schedule = PRESETS["causal"]["pace"]
    box: str = "platinum"
    every: bool = False
    beams: int = 1
    most_test: int = 0

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, "rewriter, kind")
        if self.beams < 1 or self.most_test < 0:
            raise ConfigError("rewriter: expected 'beams' to be 1 or more and 'most_test' to be 0 or more")

    def own(self) -> dict[str, Any]:
        """The settings of the model by name."""
        return {**asdict(self.text), "kind": self.kind, "prefix": self.prefix}


@dataclass(frozen=True)
class Taught:
    """A trained rewriter that is not saved yet."""

    rewriter: TextRewriter
    model: TextModel

    def save(self, folder: Path) -> None:
        """Write a folder that the reformulator ``rewrite`` can read."""
        self.model.save(folder)
        base = self.model.settings.model
        write_about(folder, {"kind": self.rewriter.kind, "prefix": self.rewriter.prefix, "model": base})


def fit_rewriter(
    pairs: pl.DataFrame, settings: RewriterSettings, work: Path, device: str | None = None,
    identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> Taught:  # fmt: skip
    """Train on pairs of queries (``PAIR_COLUMNS``). If the training was stopped, the same call resumes it."""
    if not pairs.height:
        raise DataError("rewriter: expected pairs of queries to train on, found none")
    about = {"data": digest_of(pairs), "kind": settings.kind, "prefix": settings.prefix, **(identity or {})}
    prompts = [shown_to(settings.kind, text, settings.prefix) for text in pairs["original_text"]]
    chosen = replace(settings.text, kind=settings.kind)
    model = fit_texts(prompts, pairs["text"].to_list(), chosen, settings.pace, work, device, about, progress)
    return Taught(TextRewriter(settings.kind, model.generator(), settings.prefix), model)


WRITTEN = "test.tsv"
_EMPTY = "an empty text"
_AGG_HEAD = "qid\torder\tquery\t"
KEEP = "the original query"


def train_rewriter(
    data: str | Path, out: Path, settings: RewriterSettings | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train a rewriter, measure it on held-out queries, and write the model with its card."""
    given, source = settings or RewriterSettings(), Path(data)
    pairs, left_out = read_pairs(source, given.box, given.every)
    parts = split_pairs(pairs, SHARES)
    identity = {
        "pairs": digest_of(pairs), "box": given.box, "every": given.every, "beams": given.beams,
        "most_test": given.most_test, "settings": given.own(), "pace": asdict(given.pace),
    }  # fmt: skip
    found = claim(out, identity)
    if found is not None:
        return found_before(out, found, left_out_notes(left_out))
    taught = fit_rewriter(parts["train"], given, out / WORK, device, identity, progress)
    test = first_of_each(parts["test"], given.most_test)
    written = [lines[0] for lines in taught.rewriter.write(test["original_text"].to_list(), given.beams)]
    measured: dict[str, Any] = {
        "pairs": {name: part.height for name, part in parts.items()},
        "left_out": dict(left_out),
    }
    measured["test"] = {
        "this model": score_rewrites(test, written),
        KEEP: score_rewrites(test, test["original_text"].to_list()),
    }
    taught.save(out)
    with (out / WRITTEN).open("w", encoding="utf-8", newline="") as opened:
        lines = csv.writer(opened, delimiter="\t", lineterminator="\n")
        lines.writerow(("query_id", "original", "wanted", "written"))
        lines.writerows(test.select(PAIR_COLUMNS).with_columns(written=pl.Series(written, dtype=pl.String)).iter_rows())
    facts = {"pairs": source.name, "hash": identity["pairs"], "box": given.box, **measured["pairs"]}
    _, rows = read_published("repair2023")
    published = CardTable(
        "For comparison: values from Table 6 of the RePair paper (the models of the paper were tested on other data)",
        ("data", "model", "rouge-1 (rougeL)", "bleu", "f1"),
        tuple((row["data"], row["model"], *(float(row[name]) for name in ("rougeL", "bleu", "f1"))) for row in rows),
    )
    cells = tuple((what, *map(mean_and_interval, one.values())) for what, one in measured["test"].items())
    ours = CardTable(f"Held-out queries: n = {test.height}", ("output", *measured["test"][KEEP]), cells)
    card = Card(
        title=f"A query rewriter ({given.kind})",
        about="Reads a query and writes a reformulation. The model learned from pairs of an original query and a "
        "reformulation that retrieved better results.",
        command=command, base=given.text.model, data=(facts,), seed=given.pace.seed, device=taught.model.device,
        settings={**given.own(), **asdict(given.pace), "beams": given.beams, "shares": SHARES},
        measured=measured, tables=(ours, published),
        limits=(
            "The measures show how similar the rewritten queries are to the target queries. They do not show how "
            "effective the rewritten queries are. To measure effectiveness, search with the rewritten queries and "
            "measure the run.",
            "The values that RePair publishes as 'rouge-1' are in fact ROUGE-L. They are for pairs that RePair calls "
            "'platinum': the reformulation retrieves better results than the original query. RePair computes 'bleu' "
            "like our measure 'bleu_sentence' for T5, and like our measure 'bleu_mean' for other models.",
            "Words are stemmed as in Lucene. The published evaluation scripts use the stemmer of NLTK, which gives "
            "other stems for a few words.",
        ),
        extra={"identity": dict(identity)},
    )  # fmt: skip
    return finished(out, card, left_out_notes(left_out))


def read_pairs(source: Path, box: str = RewriterSettings.box, every: bool = False) -> tuple[pl.DataFrame, Counter[str]]:
    """The pairs of a box (a subset of pairs), and the number of left-out pairs by reason."""
    if source.is_dir():
        table = _from_folder(source, box)
    else:
        text = read_text(source, "pairs")
        table = _from_agg(text, source, every) if text.startswith(_AGG_HEAD) else _from_lines(text, source)
        if "value" in table.columns:
            met = Criterion.parse(CRITERIA.get(box, box)).met(table["value"].to_numpy(), table["original"].to_numpy())
            table = table.filter(pl.Series(met, dtype=pl.Boolean))
    if table.height and (table["original_text"].fill_null("").str.strip_chars() == "").all():
        raise no_texts(source)
    blank = pl.any_horizontal(pl.col("original_text", "text").str.strip_chars() == "")
    kept = table.filter(~blank)
    left_out: Counter[str] = Counter()
    if table.height > kept.height:
        left_out[_EMPTY] = table.height - kept.height
    if not kept.height:
        raise DataError(f"{source}: expected pairs of the box {box!r}, found none; make pairs with askew run repair")
    return kept.select(PAIR_COLUMNS), left_out


def _from_folder(source: Path, box: str) -> pl.DataFrame:
    """The pairs of a published dataset or of a store."""
    if (source / "askew.json").is_file():
        table = published_pairs(source)
    else:
        table = pl.concat(frames_of(*pairs_in_store(source)))
    missing = [name for name in (*PAIR_COLUMNS, box) if name not in table.columns]
    if missing or table.schema[box] != pl.Boolean:
        boxes = ", ".join(name for name, kind in table.schema.items() if kind == pl.Boolean)
        raise DataError(
            f"{source}: expected pairs with the box {box!r}; found {boxes or 'no box'}: choose another box with ⟨box⟩"
        )
    # The order of rows must not depend on how the dataset is split into files.
    return table.filter(box).select(PAIR_COLUMNS).sort("query_id", maintain_order=True)


def _from_agg(text: str, source: Path, every: bool) -> pl.DataFrame:
    """Pairs of an aggregated table of RePair: each original query is followed by its candidates, best first."""
    value = text.split("\n", 1)[0].split("\t")[3]
    table = read_agg(text, str(source), value)
    is_original = pl.col("order") == ORIGINAL
    named = table.with_columns(
        original_text=pl.when(is_original).then("query").forward_fill(),
        original=pl.when(is_original).then("value").forward_fill(),
    ).filter(~is_original)
    if not every:
        named = named.group_by("qid", maintain_order=True).first()
    return named.select("original_text", "value", "original", query_id="qid", text="query")


def _from_lines(text: str, source: Path) -> pl.DataFrame:
    """Pairs of a RePair box (five columns), or of lines with a query and a better query (two columns)."""
    if text.partition("\n")[0].count("\t") == 1:
        lines = [(number, line.split("\t")) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        rows = [(str(number), *_fields(row, 2, place(source, number))) for number, row in lines]
        return pl.DataFrame(rows, schema=dict.fromkeys(PAIR_COLUMNS, pl.String), orient="row")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
    found = []
    try:
        for row in reader:
            if row:
                query_id, query, original, text, value = _fields(row, 5, place(source, reader.line_num))
                found.append((query_id, query, text, float(value), float(original)))
    except (csv.Error, ValueError) as error:
        where = place(source, reader.line_num)
        raise DataError(
            f"{where}: expected qid, query, value, query_, value_ with numbers as values ({error})"
        ) from None
    schema = dict.fromkeys(PAIR_COLUMNS, pl.String) | {"value": pl.Float64, "original": pl.Float64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _fields(row: list[str], wanted: int, where: str) -> list[str]:
    if len(row) != wanted:
        raise DataError(
            f"{where}: expected 5 columns (qid, query, value, query_, value_) in all lines, or 2 columns (query, "
            f"better query) in all lines; found {len(row)}"
        )
    return row


def split_pairs(pairs: pl.DataFrame, shares: Mapping[str, float]) -> dict[str, pl.DataFrame]:
    """Split pairs into train and test by the words of the query: the same query is never in two parts."""
    parts = pl.Series([part_of(normal(text), shares, SALT) for text in pairs["original_text"]], dtype=pl.String)
    for name in shares:
        if name not in parts:
            raise DataError(
                f"rewriter: none of the {pairs.height} pairs of queries is in the split {name!r}; build the pairs from "
                "more queries"
            )
    return {name: pairs.filter(parts == name) for name in shares}


def first_of_each(pairs: pl.DataFrame, most: int = 0) -> pl.DataFrame:
    """The first pair of each query, which is its best one, for at most ``most`` queries (0: all)."""
    return pairs.unique("query_id", keep="first", maintain_order=True).head(most or pairs.height)


def score_rewrites(test: pl.DataFrame, written: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """The mean over queries of every measure, with its interval and n."""
    targets = test["text"].to_list()
    values = pair_scores(targets, written, test["original_text"].to_list())
    found: dict[str, dict[str, float | None]] = {
        name: asdict(mean_with_interval(one, bounds_of(name))) for name, one in values.items()
    }
    counts = bleu_counts(targets, written)
    # Sort the counts, so that the bootstrap does not depend on the order of the lines.
    counts = counts[np.lexsort(counts.T)]
    mean, low, high = bca_interval(lambda weights: bleu_mean(weights @ counts), len(counts), 0)
    found["bleu_mean"] = {"mean": mean, "low": low, "high": high, "n": len(counts)}
    return found
