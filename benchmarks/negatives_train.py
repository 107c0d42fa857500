"""The part of negatives.py that trains: torch, transformers, accelerate and numpy are all that it needs.

Several processes train at a time; only the first writes. Each result is written as soon as it is there, so that a
stopped run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

TOP, NO_PLACE = 20, 255
ABOUT, PREPARED = "about.json", "prepared.npz"


@dataclass(frozen=True)
class Prepared:
    """What ``prepare`` wrote."""

    arrays: dict[str, Any]
    texts: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Prepared:
        """From the one file."""
        with np.load(folder / PREPARED) as file:
            arrays = {name: file[name] for name in file.files}
        return cls(arrays, json.loads(lzma.decompress(arrays.pop("texts").tobytes())))


class Worker:
    """Trains rows, one after the other, and ranks the candidates of the test queries with each.

    The batches that are scored are made once and kept on the device.
    """

    def __init__(self, folder: Path, weights: Path, device: str | None, changes: dict[str, Any], threads: int) -> None:
        import torch

        from askew.train.common import choose_device

        torch.set_float32_matmul_precision("high")
        if threads:
            torch.set_num_threads(threads)
        self.given, self.weights, self.changes = Prepared.read(folder), weights, changes
        self.device = choose_device(device)
        self._batches: dict[str, Any] = {}

    def train(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """The places of the top documents by collection, and how long it took."""
        from askew.train.common import Schedule
        from askew.train.crossencoder import Examples, RankerSettings, RankerTexts, fit

        began = time.monotonic()
        arrays, texts, row = self.given.arrays, self.given.texts, self.given.texts["rows"][name]
        left, right = (arrays[f"{row['examples']}_{side}"].astype(np.int64) for side in ("left", "right"))
        labels = np.zeros(right.shape)
        labels[:, 0] = 1.0
        settings = RankerSettings(**{**row["settings"], "model": str(self.weights)})
        pace = Schedule(**{**row["pace"], **self.changes})
        data = RankerTexts(texts["queries"], texts["docs"], arrays["lean"].astype(np.float64), arrays["group"])
        with tempfile.TemporaryDirectory() as work:
            encoder = fit(data, Examples(left, right, labels), settings, pace, Path(work), self.device)
        trained = time.monotonic()
        found = {name: top_places(self._scores(encoder, name)) for name in texts["tests"]}
        seconds = {"train_seconds": trained - began, "score_seconds": time.monotonic() - trained}
        return found, {"pace": asdict(pace), **{name: round(value, 1) for name, value in seconds.items()}}

    def _scores(self, encoder: Any, name: str) -> Any:
        """A score for each candidate, in rows of queries; minus infinity where there is none."""
        import torch

        candidates = self.given.arrays[f"candidates_{name}"]
        if name not in self._batches:
            self._batches[name] = list(self._made_batches(encoder, name))
        encoder.model.eval()
        with torch.inference_mode():
            parts = [encoder.model(**batch).logits.float().reshape(-1) for _, batch in self._batches[name]]
        values = torch.cat(parts).cpu().numpy()
        if not np.isfinite(values).all():
            raise SystemExit(f"{name}: expected finite scores, found others; the training failed")
        scores = np.full(candidates.shape, -np.inf, np.float32)
        order = np.concatenate([some for some, _ in self._batches[name]])
        scores[tuple(np.argwhere(candidates >= 0)[order].T)] = values
        return scores

    def _made_batches(self, encoder: Any, name: str) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The pairs of a collection, those of a like length together, the longest first."""
        texts, candidates = self.given.texts["tests"][name], self.given.arrays[f"candidates_{name}"]
        query, place = np.nonzero(candidates >= 0)
        left = [texts["queries"][row] for row in query.tolist()]
        right = [texts["docs"][row] for row in candidates[query, place].tolist()]
        order = np.argsort([-len(pair[0]) - len(pair[1]) for pair in zip(left, right, strict=True)], kind="stable")
        size = 1024 if self.device.startswith("cuda") else 64
        for start in range(0, len(order), size):
            some = order[start : start + size]
            made = encoder.batch([left[pair] for pair in some], [right[pair] for pair in some])
            yield some, {key: values.to(self.device) for key, values in made.items()}


def top_places(scores: Any) -> Any:
    """The places of the top documents among the candidates, which are in the order of BM25; equal scores keep it."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    there = np.isfinite(np.take_along_axis(scores, order, axis=1))
    return np.where(there, order, NO_PLACE).astype(np.uint8)


# The worker of this process.
_opened: list[Worker] = []


def _open_worker(*given: Any) -> None:
    _opened[:] = [Worker(*given)]


def _train_in_worker(name: str, deadline: float) -> Any:
    # Seconds since 1970, which all processes share.
    return None if time.time() > deadline else _opened[0].train(name)


def train_rows(names: Iterable[str], options: argparse.Namespace, changes: dict[str, Any]) -> None:
    """Train the rows that are not done yet, several at a time; ``changes`` are to the prepared pace."""
    from askew.train.card import hardware
    from askew.train.common import choose_device

    given = Prepared.read(options.prepared)
    kept = Kept.read([options.out, *options.done], list(given.texts["tests"]))
    todo = [name for name in names if name not in kept.about["rows"]]
    refuse_mixed(kept, given, {name: {**given.texts["rows"][name]["pace"], **changes} for name in todo})
    kept.about |= {"facts": given.texts["facts"], "hardware": hardware(choose_device(options.device))}
    threads = max(1, (os.cpu_count() or 1) // options.jobs) if options.jobs > 1 else 0
    weights = options.weights or options.prepared / "weights"
    opened = options.prepared, weights, options.device, changes, threads
    deadline = time.time() + 60 * options.minutes
    print(f"{len(todo)} trainings, {len(kept.about['rows'])} done before", flush=True)
    failed = 0
    for name, found in results(todo, opened, deadline, options.jobs):
        if isinstance(found, tuple):
            kept.add(name, *found)
            kept.write(options.out)
        failed += isinstance(found, Exception)
        print(f"{name}: {found[1] if isinstance(found, tuple) else found or 'out of time'}", flush=True)
    left = [name for name in todo if name not in kept.about["rows"]]
    print(f"{len(kept.about['rows'])} trainings are in {options.out}" + (f"; left: {' '.join(left)}" if left else ""))
    if failed:
        raise SystemExit(f"{failed} trainings failed; give the command again with --done {options.out}")


def refuse_mixed(kept: Kept, given: Prepared, paces: dict[str, dict[str, Any]]) -> None:
    """Trainings of one table have the same data and pace; only the seeds differ."""
    rows = {**{name: row["pace"] for name, row in kept.about["rows"].items()}, **paces}
    different = {json.dumps({**pace, "seed": 0}, sort_keys=True) for pace in rows.values()}
    if len(different) > 1:
        raise SystemExit(
            f"expected trainings of one pace, found {' and '.join(sorted(different))}; train into another folder"
        )
    if kept.about["rows"] and kept.about["facts"] != given.texts["facts"]:
        raise SystemExit(
            "expected trainings on the same prepared data, found others done before; train into another folder"
        )


def results(todo: list[str], opened: tuple[Any, ...], deadline: float, jobs: int) -> Iterator[tuple[str, Any]]:
    """What each training came to, in the order in which they end: the result, None (out of time) or the error."""
    if jobs == 1:
        _open_worker(*opened)
        for name in todo:
            yield name, _train_in_worker(name, deadline)
        return
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _open_worker, opened)
    with pool:
        waiting = {pool.submit(_train_in_worker, name, deadline): name for name in todo}
        for future in as_completed(waiting):
            yield waiting[future], future.exception() or future.result()


@dataclass
class Kept:
    """The raw results: for each collection and training the places of the top documents, a row for each query."""

    about: dict[str, Any]
    places: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, folders: Iterable[Path], collections: Iterable[str]) -> Kept:
        """What there is in some folders together."""
        kept = cls({"rows": {}}, {name: {} for name in collections})
        for folder in folders:
            if not (folder / ABOUT).is_file():
                continue
            about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
            kept.about = {**about, "rows": {**about["rows"], **kept.about["rows"]}}
            for name, mine in kept.places.items():
                with np.load(folder / f"{name}.npz") as file:
                    mine.update({key: file[key] for key in file.files})
        return kept

    def add(self, name: str, found: dict[str, Any], about: dict[str, Any]) -> None:
        """The results of one training."""
        for collection, places in found.items():
            self.places[collection][name] = places
        self.about["rows"][name] = about

    def write(self, folder: Path) -> None:
        """One file for each collection, and then the one that says what is in them."""
        from askew.core.files import write_whole, written_whole

        folder.mkdir(parents=True, exist_ok=True)
        for name, mine in self.places.items():
            with written_whole(folder / f"{name}.npz") as temporary, temporary.open("wb") as file:
                np.savez_compressed(file, **{key: mine[key] for key in sorted(mine)})
        write_whole(folder / ABOUT, json.dumps(self.about, indent=1) + "\n")
