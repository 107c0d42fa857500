"""GrepBiasIR: tables 1 to 6 of Sundararaman and Subramanian (2022), ours next to theirs, and what they leave out.

    python benchmarks/grepbias.py --data GREPBIASIR --work WORK                      the heads, and all tables
    python benchmarks/grepbias.py --data GREPBIASIR --work WORK --train full lora    trained encoders too: a GPU helps

What is trained lies in WORK as logits, so that it may be trained on one machine (``--only-train``: numpy, torch,
transformers and accelerate, for LoRA peft) and shown on another. ``--model`` is an encoder by name or folder.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from askew.corpora.grepbias import GrepBias, read_grepbias
from askew.models.find import MINILM, identify
from askew.models.relevance import encode_pairs
from askew.trainers.card import CardTable, hardware, shown
from askew.trainers.common import choose_device, remembered
from askew.trainers.grepbias.finetune import PACES, FinetuneSettings, FinetuneTexts
from askew.trainers.grepbias.heads import CONVERGED, PUBLISHED, HeadInputs, HeadSettings
from askew.trainers.grepbias.pairs import alpha_grid
from askew.trainers.grepbias.protocol import zero_shot_heads
from askew.trainers.grepbias.scores import RowIndex, group_rows
from askew.trainers.grepbias.tables import (
    MethodLogits,
    accuracy_table,
    before_after_table,
    fractions_table,
    summary_table,
    words_table,
)
from askew.trainers.grepbias.transfer import zero_shot_finetuned

SEEDS = (1, 2, 3, 4, 5)
# The one setting of the penalty for trained encoders: the end of the published grid, set before any was trained.
STRONGEST = {"alpha_mf": 2.0, "alpha_mn": 2.0, "alpha_fn": 2.0}
RUNS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "full": ("full", {"pairs": "batch"}, False),
    "lora": ("lora", {}, True),
    "lora-penalty": ("lora", STRONGEST, True),
}


def show(table: CardTable) -> None:
    rows = [table.columns, *([shown(cell) for cell in row] for row in table.rows)]
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(table.columns))]
    print(f"\n{table.title}")
    for row in rows:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def heads(data: GrepBias, options: Any) -> list[MethodLogits]:
    """A head without the penalty, then with it. The converged one is the same for every seed, but for random pairs."""
    made = []
    both = (None, alpha_grid())
    for layout, with_title, settings, seeds, grids in (
        ("joint", False, PUBLISHED, SEEDS, both),
        ("apart", False, CONVERGED, (7,), both),
        ("apart", True, CONVERGED, (7,), both),
        ("apart", True, replace(CONVERGED, pairs="batch"), (7,), both[1:]),
    ):
        for grid in grids:
            name = title(layout, with_title, settings, grid is not None)
            about = {"data": [one["sha256"] for one in data.files], "model": identify(options.model), "seeds": seeds,
                     **asdict(settings)}  # fmt: skip

            def make(
                layout: str = layout, with_title: bool = with_title, settings: HeadSettings = settings,
                seeds: tuple[int, ...] = seeds, grid: Any = grid,
            ) -> dict[str, Any]:  # fmt: skip
                began = time.monotonic()
                rows = encoded(data, layout, with_title, options)
                found = zero_shot_heads(rows, data.category, data.categories, settings, seeds, grid)
                return {
                    "logits": found.logits.tolist(), "inside": found.inside.tolist(), "chosen": found.chosen,
                    "seconds": time.monotonic() - began,
                }  # fmt: skip

            found = remembered(options.work / f"{name.replace(', ', '-').replace(' ', '_')}.json", about, make)
            print(f"{name}: {found['seconds']:.0f} s", flush=True)
            made.append(MethodLogits(name, np.array(found["logits"]), np.array(found["inside"]), found["chosen"]))
    return made


def title(layout: str, with_title: bool, settings: HeadSettings, penalty: bool) -> str:
    text = "title and body" if with_title else "body"
    how = "published settings" if settings.batch_size else "converged"
    pairs = {"batch": "pairs of a batch" if settings.batch_size else "random pairs", "query": "pairs of a query"}
    return f"head, {layout}, {text}, {how}" + (f", penalty on {pairs[settings.pairs]}" if penalty else "")


def encoded(data: GrepBias, layout: str, with_title: bool, options: Any) -> HeadInputs:
    vectors = encode_pairs(
        data.query, data.texts(with_title), options.model, layout, options.work / "vectors", options.device
    )
    return HeadInputs(vectors, data.relevant, data.gender, data.query_id)


def trained(data: GrepBias, options: Any) -> None:
    """Train what is asked for and write its logits."""
    for key in options.train:
        method, alphas, folds = RUNS[key]
        for with_title in (False, True) if method == "lora" else (False,):
            texts = FinetuneTexts(data.query, tuple(data.texts(with_title)), data.relevant, data.gender, data.query_id)
            settings = FinetuneSettings(method=method, model=options.model, **alphas)
            about = {"data": [one["sha256"] for one in data.files], "with_title": with_title}
            began = time.monotonic()
            text = "title" if with_title else "body"
            found = zero_shot_finetuned(
                texts, data.category, data.categories, settings, PACES[method], options.work / "parts" / text, about,
                options.seeds, folds and not options.no_folds, options.device, said,
            )  # fmt: skip
            name = f"{key}, {'title and body' if with_title else 'body'}"
            facts = {
                "name": name, "hardware": hardware(options.device), "seconds": time.monotonic() - began,
                "logits": found.logits.round(5).tolist(), "inside": found.inside.round(5).tolist(),
            }  # fmt: skip
            options.work.mkdir(parents=True, exist_ok=True)
            file = options.work / f"logits-{key}-{text}.json"
            file.write_text(json.dumps(facts), encoding="utf-8")
            print(f"{name}: {facts['seconds']:.0f} s on {facts['hardware']}", flush=True)


def said(done: int, total: int, label: str) -> None:
    if done % 10 == 0 or done == total:
        print(f"  {label} {done} of {total}", flush=True)


def read_trained(work: Path) -> list[MethodLogits]:
    found = []
    for file in sorted(work.glob("logits-*.json")):
        facts = json.loads(file.read_text(encoding="utf-8"))
        inside = np.array(facts["inside"])
        found.append(MethodLogits(facts["name"], np.array(facts["logits"]), inside if inside.size else None))
    return found


def stop_words() -> frozenset[str]:
    from askew.reformulators.lexical import question_rules

    return question_rules().stop_words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default=MINILM)
    parser.add_argument("--train", nargs="*", choices=RUNS, default=[])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--no-folds", action="store_true", help="leave out the held-out diagonal of trained encoders")
    parser.add_argument("--only-train", action="store_true")
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    options.device = choose_device(options.device)
    data = read_grepbias(options.data)
    print(f"{len(data)} rows of {len(data.categories)} categories; {data.notes}; encoder {identify(options.model)}")
    trained(data, options)
    if options.only_train:
        return
    groups = group_rows(data.categories, data.category, data.query_id, data.relevant, data.gender)
    results = [*heads(data, options), *read_trained(options.work)]
    for table in all_tables(results, groups, data):
        show(table)
    for result in results:
        if result.chosen:
            print(f"\nalphas MF, MN, FN of {result.name}, first seed: {result.chosen[0]}")


def all_tables(results: list[MethodLogits], groups: RowIndex, data: GrepBias) -> list[CardTable]:
    full = [accuracy_table("1", one, groups) for one in results if one.name.startswith("full")]
    pairs = [(a, b) for a, b in pairwise(results) if b.name.startswith(f"{a.name}, penalty")]
    made = list(full)
    for before, after in pairs:
        made += [accuracy_table("2", before, groups), fractions_table(before, groups)]
        made += [accuracy_table("5", after, groups), before_after_table(before, after, groups)]
    bodies = {name: [data.body[i] for i in np.flatnonzero(data.category == name)] for name in data.categories}
    return [*made, words_table(data.categories, bodies, stop_words()), summary_table(results, groups)]


if __name__ == "__main__":
    main()
