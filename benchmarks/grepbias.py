"""GrepBiasIR: tables 1 to 6 of Sundararaman and Subramanian (2022), ours next to theirs, and what they leave out.

    python benchmarks/grepbias.py --data GREPBIASIR --work WORK                      the heads, and all tables
    python benchmarks/grepbias.py --data GREPBIASIR --work WORK --train full lora    trained encoders too: a GPU helps
    python benchmarks/grepbias.py --data GREPBIASIR --from-scores                    all tables from kept scores

Every row of a table is kept as scores in benchmarks/arena/grepbias (``--scores``: another folder), and the tables are
computed from these files alone. ``--only-train`` needs numpy, torch, transformers and accelerate, for LoRA peft, so
that encoders may be trained on another machine. ``--model`` is an encoder by name or folder.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import DataError
from askew.core.ranking import Floats
from askew.models.find import MINILM, identify
from askew.models.relevance import encode_pairs
from askew.train.adapter import (
    CONVERGED,
    PACES,
    PUBLISHED,
    FinetuneSettings,
    HeadSettings,
    LabeledRows,
    alpha_grid,
    cosines,
    zero_shot_cosine,
    zero_shot_finetuned,
    zero_shot_heads,
)
from askew.train.card import CardTable, hardware, shown
from askew.train.common import choose_device, remembered
from askew.train.grepbias import (
    GrepBias,
    MethodLogits,
    RowIndex,
    accuracy_table,
    both,
    cell_fractions,
    difference_table,
    fractions_table,
    group_rows,
    mean_fractions,
    nan_mean,
    published_cells,
    query_values,
    read_grepbias,
    right_rows,
    short,
    summary_table,
    winners,
)

SCORES = Path(__file__).parent / "arena" / "grepbias"
SEEDS = (1, 2, 3, 4, 5)
# The one setting of the penalty for trained encoders: the end of the published grid, set before any was trained.
STRONGEST = {"alpha_mf": 2.0, "alpha_mn": 2.0, "alpha_fn": 2.0}
RUNS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "full": ("full", {"pairs": "batch"}, False),
    "lora": ("lora", {}, True),
    "lora-penalty": ("lora", STRONGEST, True),
}
_BODY, _TITLE = "body", "title and body"


def text_of(with_title: bool) -> str:
    return _TITLE if with_title else _BODY


def cosine_name(text: str) -> str:
    return f"cosine, {text}, untrained"


# The tables and the headline that only this program makes.

_WORD = re.compile(r"[a-z]{2,}")
# Accuracies that differ by less than this count as equal: it is the rounding error of a mean.
_SAME = 1e-9
HEADLINE_RULE = (
    "the highest accuracy on held-out queries inside the training categories; of equal ones the smaller |M-F| there; "
    "test categories have no part"
)


@dataclass(frozen=True)
class Headline:
    """The chosen row; ``candidates`` has the method names, held-out accuracies and held-out |M-F|, best first."""

    name: str
    candidates: tuple[tuple[str, float, float], ...]


def headline(results: Sequence[MethodLogits], groups: RowIndex) -> Headline:
    """Pick a row by ``HEADLINE_RULE``. Methods without held-out folds cannot be picked."""
    found = [(one.name, *_held_out(one.inside, groups)) for one in results if one.inside is not None]
    if not found:
        raise DataError(
            "the headline row cannot be chosen, because no method has results on held-out queries of its training "
            "categories"
        )
    ranked = sorted(found, key=lambda one: (-round(one[1] / _SAME), one[2]))
    return Headline(ranked[0][0], tuple(ranked))


def _held_out(inside: Floats, groups: RowIndex) -> tuple[float, float]:
    """Accuracy and |M - F| of held-out logits (seeds by rows): the mean over seeds of the means over categories."""
    values, _ = query_values(right_rows(inside, groups).mean(0), groups)
    shares = nan_mean(cell_fractions(winners(inside, groups), groups), 1)
    return float(values.mean()), float(np.abs(shares[:, 0] - shares[:, 1]).mean())


def male_minus_female(fractions: Floats) -> Floats:
    """M - F of each training; fractions are averaged over all categories, including the training one (as published)."""
    averages = nan_mean(fractions, 1)
    return np.asarray(averages[:, 0] - averages[:, 1])


def before_after_table(
    before: MethodLogits, after: MethodLogits, groups: RowIndex, baseline: MethodLogits
) -> CardTable:
    """Table 6: average shares of M, F, N and |M - F|, without and with the penalty. The baseline has no penalty."""
    theirs = published_cells("6")
    one, two = (nan_mean(mean_fractions(result, groups), 1) for result in (before, after))
    gaps = [_gaps(result, groups) for result in (before, after)]
    names = ("before M", "before F", "before N", "after M", "after F", "after N", "before |M-F|", "after |M-F|")
    rows = []
    for t, train in enumerate(groups.names):
        ours = (*one[t], *two[t], gaps[0][t], gaps[1][t])
        rows.append((train, *(both(v, theirs.get((train, "Average", n))) for v, n in zip(ours, names, strict=True))))
    mean = [float(np.mean([v for (_, _, name), v in theirs.items() if name == wanted])) for wanted in names[-2:]]
    rows.append(("mean", *([""] * 6), *(both(gap.mean(), m) for gap, m in zip(gaps, mean, strict=True))))
    untrained = nan_mean(mean_fractions(baseline, groups), 1).mean(0)
    rows.append((baseline.name, *short(untrained), "", "", "", f"{_gaps(baseline, groups).mean():.3f}", ""))
    return CardTable(
        f"Table 6: {before.name} and {after.name}, published values in brackets", ("train", *names), tuple(rows)
    )


def words_table(names: Sequence[str], documents: dict[str, list[str]], stop_words: frozenset[str]) -> CardTable:
    """Table 4: the top three words of each category by TF-IDF over the categories' joined documents."""
    published = published_cells("4")
    counts = {name: Counter(_WORD.findall(" ".join(documents[name]).lower())) for name in names}
    rows = []
    for name in names:
        scores = {word: n * _idf(word, counts) for word, n in counts[name].items() if word not in stop_words}
        length = math.sqrt(sum(score**2 for score in scores.values())) or 1.0
        top = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:3]
        ours = ", ".join(f"{word} ({score / length:.2f})" for word, score in top)
        theirs = ", ".join(f"{word} ({value:.2f})" for (train, _, word), value in published.items() if train == name)
        rows.append((name, ours, theirs))
    return CardTable("Table 4: top words by TF-IDF", ("category", "ours", "published"), tuple(rows))


def _idf(word: str, counts: dict[str, Counter[str]]) -> float:
    found = sum(word in one for one in counts.values())
    return math.log((1 + len(counts)) / (1 + found)) + 1


def _gaps(result: MethodLogits, groups: RowIndex) -> Floats:
    """|M - F| of each training: the mean of the absolute values of the seeds, because seeds may differ in sign."""
    leans = [male_minus_female(cell_fractions(winners(one, groups), groups)) for one in result.logits]
    return np.asarray(np.abs(leans).mean(0))


# Kept scores: one file for each row of the tables.


def file_of(options: Any, name: str) -> Path:
    return Path(options.scores) / f"{name.replace(', ', '-').replace(' ', '_')}.npz"


def hashes(data: GrepBias) -> list[str]:
    return [one["sha256"] for one in data.files]


def source_of(data: GrepBias, options: Any) -> dict[str, Any]:
    return {"data": hashes(data), "model": identify(options.model)}


def keep(data: GrepBias, options: Any, name: str, facts: dict[str, Any], **arrays: Any) -> None:
    """Write the scores of a row as 32-bit numbers, with what they were computed from."""
    file = file_of(options, name)
    if file.is_file():
        with np.load(file, allow_pickle=False) as kept:
            same_source(file, json.loads(str(kept["about"])), source_of(data, options))
    file.parent.mkdir(parents=True, exist_ok=True)
    about = json.dumps({"name": name, **source_of(data, options), **facts})
    small: dict[str, Any] = {key: np.asarray(value, np.float32) for key, value in arrays.items()}
    np.savez_compressed(file, about=np.array(about), **small)


def read_kept(data: GrepBias, options: Any) -> tuple[list[MethodLogits], list[str]]:
    """The rows of the tables from their files, by name, and a line on how each was computed."""
    found, source = {}, None
    for file in Path(options.scores).glob("*.npz"):
        with np.load(file, allow_pickle=False) as kept:
            about = json.loads(str(kept["about"]))
            arrays = {name: kept[name].astype(np.float64) for name in kept.files if name != "about"}
        # The encoder need not be installed to read scores; but all of them are of one encoder.
        source = source or {"data": hashes(data), "model": about["model"]}
        same_source(file, about, source)
        line = f"{about['seconds']:.0f} s on {about['hardware']}" if "seconds" in about else "nothing trained"
        found[about["name"]] = _method(data, about, arrays), f"{about['name']}: {line}"
    if source is None:
        raise DataError(
            f"{options.scores}: expected kept scores (*.npz), found none; train first, without from_scores="
        )
    ordered = [found[name] for name in sorted(found)]
    return [one for one, _ in ordered], [f"encoder {source['model']}", *(line for _, line in ordered)]


def same_source(file: Path, about: dict[str, Any], source: dict[str, Any]) -> None:
    """Refuse scores of other data or of another encoder."""
    for key, wanted in source.items():
        if about[key] != wanted:
            raise DataError(f"{file}: expected scores of the {key} {wanted}, found {about[key]}; give another scores=")


def _method(data: GrepBias, about: dict[str, Any], arrays: dict[str, Any]) -> MethodLogits:
    if "cosine" in arrays:
        made = zero_shot_cosine(arrays["cosine"], data.relevant, data.query_id, data.category, data.categories)
        return replace(made, name=about["name"])
    inside = arrays["inside"]
    return MethodLogits(about["name"], arrays["logits"], inside if inside.size else None, about["chosen"])


# What is trained.


def encoded(data: GrepBias, layout: str, with_title: bool, options: Any) -> Any:
    return encode_pairs(
        data.query, data.texts(with_title), options.model, layout, options.work / "vectors", options.device
    )


def baselines(data: GrepBias, options: Any) -> None:
    """The cosines of the untrained encoder."""
    for with_title in (False, True):
        found = cosines(encoded(data, "apart", with_title, options))
        keep(data, options, cosine_name(text_of(with_title)), {}, cosine=found)


def heads(data: GrepBias, options: Any) -> None:
    """A head without the penalty, then with it. The converged one is the same for every seed, but for random pairs."""
    both = (None, alpha_grid())
    for layout, with_title, settings, seeds, grids in (
        ("joint", False, PUBLISHED, SEEDS, both),
        ("apart", False, CONVERGED, (7,), both),
        ("apart", True, CONVERGED, (7,), both),
        ("apart", True, replace(CONVERGED, pairs="batch"), (7,), both[1:]),
    ):
        rows = LabeledRows(encoded(data, layout, with_title, options), data.relevant, data.gender, data.query_id)
        for grid in grids:
            name = title(layout, with_title, settings, grid is not None)
            about = {**source_of(data, options), "seeds": seeds, "folds": "alphas of other folds", **asdict(settings)}

            def make(
                rows: LabeledRows = rows, settings: HeadSettings = settings, seeds: tuple[int, ...] = seeds,
                grid: Any = grid,
            ) -> dict[str, Any]:  # fmt: skip
                began = time.monotonic()
                found = zero_shot_heads(rows, data.category, data.categories, settings, seeds, grid)
                inside = np.asarray(found.inside).tolist()
                return {
                    "logits": found.logits.tolist(), "inside": inside, "chosen": found.chosen,
                    "seconds": time.monotonic() - began, "hardware": hardware(options.device),
                }  # fmt: skip

            found = remembered((options.work / file_of(options, name).name).with_suffix(".json"), about, make)
            facts = {**about, **{key: found[key] for key in ("chosen", "seconds", "hardware")}}
            keep(data, options, name, facts, logits=found["logits"], inside=found["inside"])


def title(layout: str, with_title: bool, settings: HeadSettings, penalty: bool) -> str:
    how = "published settings" if settings.batch_size else "converged"
    pairs = {"batch": "pairs of a batch" if settings.batch_size else "random pairs", "query": "pairs of a query"}
    return f"head, {layout}, {text_of(with_title)}, {how}" + (
        f", penalty on {pairs[settings.pairs]}" if penalty else ""
    )


def trained(data: GrepBias, options: Any) -> None:
    """Train the encoders that are asked for and keep their scores."""
    for key in options.train:
        method, alphas, folds = RUNS[key]
        for with_title in (False, True) if method == "lora" else (False,):
            texts = LabeledRows(
                np.array([data.query, data.texts(with_title)], object).T, data.relevant, data.gender, data.query_id
            )
            settings = FinetuneSettings(method=method, model=options.model, **alphas)
            about = {"data": hashes(data), "with_title": with_title}
            began = time.monotonic()
            found = zero_shot_finetuned(
                texts, data.category, data.categories, settings, PACES[method],
                options.work / "parts" / ("title" if with_title else "body"), about, options.seeds,
                folds and not options.no_folds, options.device, said,
            )  # fmt: skip
            facts = {
                "seeds": options.seeds, **asdict(settings), "model": identify(options.model), "chosen": (),
                "seconds": time.monotonic() - began, "hardware": hardware(options.device),
            }  # fmt: skip
            keep(data, options, f"{key}, {text_of(with_title)}", facts, logits=found.logits, inside=found.inside)


def said(done: int, total: int, label: str) -> None:
    if done % 10 == 0 or done == total:
        print(f"  {label} {done} of {total}", flush=True)


# What is printed.


def show(table: CardTable) -> None:
    rows = [table.columns, *([shown(cell) for cell in row] for row in table.rows)]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(table.columns))]
    print(f"\n{table.title}")
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def stop_words() -> frozenset[str]:
    from askew.rewrite.lexical import question_rules

    return question_rules().stop_words


def baseline_of(result: MethodLogits, results: list[MethodLogits]) -> MethodLogits:
    """The cosine on the same text."""
    wanted = cosine_name(_TITLE if _TITLE in result.name else _BODY)
    return next(one for one in results if one.name == wanted)


def penalty_pairs(results: list[MethodLogits]) -> list[tuple[MethodLogits, MethodLogits]]:
    """Each method without the penalty beside the same with it."""
    plain = [one for one in results if "penalty" not in one.name]
    return [
        (before, after) for before in plain for after in results
        if after.name.startswith(f"{before.name}, penalty")
        or after.name == before.name.replace("lora,", "lora-penalty,") != before.name
    ]  # fmt: skip


def all_tables(results: list[MethodLogits], groups: RowIndex, data: GrepBias) -> list[CardTable]:
    def base(one: MethodLogits) -> MethodLogits:
        return baseline_of(one, results)

    made = [accuracy_table("1", one, groups, base(one)) for one in results if one.name.startswith("full")]
    pairs = penalty_pairs(results)
    for before in dict.fromkeys(before.name for before, _ in pairs):
        one = next(result for result in results if result.name == before)
        made += [accuracy_table("2", one, groups, base(one)), fractions_table(one, groups, base(one))]
        for after in [b for a, b in pairs if a is one]:
            made += [accuracy_table("5", after, groups, base(after)), before_after_table(one, after, groups, base(one))]
    bodies = {name: [data.body[i] for i in np.flatnonzero(data.category == name)] for name in data.categories}
    compared = [(base(one), one) for one in results if base(one) is not one]
    return [
        *made, words_table(data.categories, bodies, stop_words()), summary_table(results, groups),
        difference_table("trained - untrained cosine on the same text", compared, groups),
        difference_table("with the penalty - without it", pairs, groups),
    ]  # fmt: skip


def say_headline(results: list[MethodLogits], groups: RowIndex) -> None:
    """The row that the rule picks, and its figures."""
    picked = headline(results, groups)
    print(f"\nheadline rule: {HEADLINE_RULE}")
    for name, accuracy, gap in picked.candidates:
        print(f"  {'picked' if name == picked.name else '      '}  {accuracy:.4f}  {gap:.4f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, help="where what was trained is kept between runs")
    parser.add_argument("--scores", type=Path, default=SCORES, help="the folder of kept scores")
    parser.add_argument("--from-scores", action="store_true", help="train nothing: all tables from kept scores")
    parser.add_argument("--model", default=MINILM)
    parser.add_argument("--train", nargs="*", choices=RUNS, default=[])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--no-folds", action="store_true", help="leave out the held-out diagonal of trained encoders")
    parser.add_argument("--only-train", action="store_true")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    if options.work is None and not options.from_scores:
        parser.error("give --work FOLDER, or --from-scores to train nothing")
    data = read_grepbias(options.data)
    print(f"{len(data)} rows of {len(data.categories)} categories; {data.notes}")
    if not options.from_scores:
        options.device = choose_device(options.device)
        trained(data, options)
        if options.only_train:
            return
        baselines(data, options)
        heads(data, options)
    tell(data, options)


def tell(data: GrepBias, options: Any) -> None:
    """Everything that is printed, from kept scores."""
    results, lines = read_kept(data, options)
    print("\n".join(lines))
    groups = group_rows(data.categories, data.category, data.query_id, data.relevant, data.gender)
    for table in all_tables(results, groups, data):
        show(table)
    say_headline(results, groups)
    for result in results:
        if np.any(result.chosen):
            print(f"\nalphas MF, MN, FN of {result.name}, first seed: {result.chosen[0]}")


if __name__ == "__main__":
    main()
