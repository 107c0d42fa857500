"""The zero-shot protocol with fine-tuned encoders. The logits of each finished training are stored."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.fingerprint import fingerprint
from askew.core.ranking import Floats
from askew.models.find import identify
from askew.trainers.common import Progress, Schedule, remembered
from askew.trainers.grepbias.finetune import FinetuneSettings, FinetuneTexts, finetune, logits_of
from askew.trainers.grepbias.pairs import Names
from askew.trainers.grepbias.protocol import FOLDS, ZeroShot, query_folds


def zero_shot_finetuned(
    texts: FinetuneTexts, category: Names, names: Sequence[str], settings: FinetuneSettings, pace: Schedule, work: Path,
    identity: Mapping[str, Any], seeds: Sequence[int] = (7,), held_out: bool = True, device: str = "cpu",
    progress: Progress | None = None,
) -> ZeroShot:  # fmt: skip
    """Train on each category and score every row; with ``held_out`` also cross-validate within the category."""
    logits = np.zeros((len(seeds), len(names), len(texts)))
    inside = np.full((len(seeds), len(texts)), np.nan)
    parts = 1 + FOLDS * held_out
    total, done = len(seeds) * len(names) * parts, 0
    for s, seed in enumerate(seeds):
        own = replace(pace, seed=seed)
        for c, name in enumerate(names):
            there = np.flatnonzero(category == name)
            fold = query_folds(texts.query_id[there], FOLDS, seed)
            for part in range(parts):
                training = there if part == 0 else there[fold != part - 1]
                found = _one(texts, training, settings, own, work, {**identity, "train": name, "part": part}, device)
                if part == 0:
                    logits[s, c] = found
                else:
                    rows = there[fold == part - 1]
                    inside[s, rows] = found[rows]
                done += 1
                if progress is not None:
                    progress(done, total, f"{settings.method}: {name}")
    chosen = (tuple(settings.alphas for _ in names),) * len(seeds)
    return ZeroShot(logits, inside if held_out else np.zeros((0, len(texts))), chosen)


def _one(
    texts: FinetuneTexts, training: Any, settings: FinetuneSettings, pace: Schedule, work: Path,
    about: Mapping[str, Any], device: str,
) -> Floats:  # fmt: skip
    """The logits of all rows by one training."""
    whole = {**about, **asdict(settings), **asdict(pace), "model": identify(settings.model)}
    label = f"{settings.method}-{'-'.join(f'{a:g}' for a in settings.alphas)}-{pace.seed}"
    place = work / label / f"{fingerprint(about['train'], 8)}-{about['part']}"

    def make() -> list[float]:
        model, tokenizer = finetune(texts.take(training), settings, pace, place, whole, device)
        found = logits_of(model, tokenizer, settings.method, texts)
        shutil.rmtree(place, ignore_errors=True)
        return [float(one) for one in found]

    return np.array(remembered(place.with_suffix(".json"), whole, make))
