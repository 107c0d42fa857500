"""Selectors on held-out BoolQ queries: which candidate is taken, without judgements, and what becomes of the results.

    askew run refairmulate --set collection.source=DATA/boolq --store STORE
    python benchmarks/selector.py prepare STORE --out PREPARED [--weights]   texts, labels, lists
    python benchmarks/selector.py train PREPARED --out SCORES                scores of each cross-encoder, similarities
    python benchmarks/selector.py evaluate STORE PREPARED SCORES             the table, with intervals and tests

The middle part needs torch, transformers and numpy only. Queries are split by their words: half to train on, a tenth
for the chance of losing nothing, a tenth for thresholds, three tenths to report.

Candidates are made from what BM25 finds for the query, and nothing that a selector reads comes from a judgement: lists
of results and their BM25 scores, cosines of the base encoder, scores of the cross-encoders, and for the lean-aware ones
the measured lean of each candidate's own results. Stated before the test part was looked at: the margin of the tests,
and two rules for the threshold: the lowest whose choices on dev lose no more than the margin, or nothing ("margin 0"),
by the lower end of the 95% interval. Features were chosen by looking at dev, which therefore flatters a little.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

# name: (what is learned, passages)
MODELS = {
    "refairmulate": ("refairmulate", "none"),
    "refairmulate-passages": ("refairmulate", "separator"),
    "effectiveness": ("effectiveness", "none"),
    "no-loss-passages": ("no-loss", "separator"),
}
HELD_OUT = ("fit", "dev", "test")
# Stated beforehand: the largest loss of mean RR@10 that would not matter.
DELTA = 0.01


def prepare(options: argparse.Namespace) -> None:
    """Everything that needs no training, as plain arrays and texts."""
    from negatives import write_weights

    from askew.app.build.built_pairs import labels_for, read_built
    from askew.trainers.selector import NEITHER, sample

    built = read_built(options.store)
    part = built.parts()
    of_row = part[built.query]
    texts = built.texts()
    keep = np.isin(of_row, HELD_OUT)
    arrays: dict[str, Any] = {"held_out": np.flatnonzero(keep)}
    for learns in sorted({learns for learns, _ in MODELS.values()}):
        labels = np.where(of_row == "train", labels_for(built, learns), NEITHER).astype(np.int8)
        keep[sample(built.query, labels, options.most_each)] = True
        arrays[f"label_{learns}"] = labels
    rows = np.flatnonzero(keep)
    assert built.found is not None
    arrays = {name: values[rows] if name.startswith("label_") else values for name, values in arrays.items()}
    arrays["rows"], arrays["query"], arrays["is_held_out"] = rows, built.query[rows], np.isin(of_row[rows], HELD_OUT)
    arrays["first"], arrays["candidate_first"] = texts.first, texts.candidate_first[rows]
    arrays["docs"], arrays["candidate_docs"] = built.found[0].docs, built.found[1].docs[np.isin(of_row, HELD_OUT)]
    options.out.mkdir(parents=True, exist_ok=True)
    small = {name: values.astype(np.int32) if values.dtype == np.int64 else values for name, values in arrays.items()}
    np.savez_compressed(options.out / "arrays.npz", **small)
    from askew.rankers.disk import StoredTexts, read_header

    kept = StoredTexts(built.index, read_header(built.index)["documents"])
    told = {
        "originals": list(built.originals), "candidates": [texts.candidates[row] for row in rows.tolist()],
        "passages": list(texts.passages), "docs": [kept[doc] for doc in range(len(kept))],
    }  # fmt: skip
    with gzip.open(options.out / "texts.json.gz", "wt", encoding="utf-8") as file:
        json.dump(told, file, ensure_ascii=False)
    if options.weights:
        write_weights(options.out / "weights")
    counts = {name: int((part == name).sum()) for name in np.unique(part)}
    print(f"{len(rows):,} of {len(of_row):,} candidates; queries by part: {counts}: {options.out}")


def read_prepared(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(folder / "arrays.npz") as file:
        arrays = {name: file[name] for name in file.files}
    arrays = {name: values.astype(np.int64) if values.dtype == np.int32 else values for name, values in arrays.items()}
    with gzip.open(folder / "texts.json.gz", "rt", encoding="utf-8") as file:
        return arrays, json.load(file)


def train(options: argparse.Namespace) -> None:
    """Train the cross-encoders on the training part and score all candidates of the others."""
    import torch

    torch.set_float32_matmul_precision("high")
    arrays, told = read_prepared(options.prepared)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = str(options.weights or options.prepared / "weights")
    began = time.monotonic()
    found, about = similarities(arrays, told, weights)
    log = [about]
    print(json.dumps(about), flush=True)
    for seed in options.seeds:
        for name in options.models:
            spent = (time.monotonic() - began) / 60
            if spent + max(one["seconds"] for one in log) / 60 > options.minutes:
                print(f"out of time after {spent:.1f} minutes: {name} with seed {seed} is left out", flush=True)
                continue
            scores, about = _train_one(name, arrays, told, weights, seed, options)
            found[f"{name}-seed{seed}"] = scores
            np.savez_compressed(options.out / "scores.npz", **found)
            log.append({"model": name, "seed": seed, **about})
            print(json.dumps(log[-1]), flush=True)
            (options.out / "log.json").write_text(json.dumps(log, indent=1))


def _train_one(
    name: str, arrays: Any, told: Any, weights: str, seed: int, options: argparse.Namespace
) -> tuple[Any, dict[str, Any]]:
    from askew.trainers.common import Schedule
    from askew.trainers.selector import PairTexts, SelectorSettings, sample, score_candidates, train_selector

    began = time.monotonic()
    learns, passages = MODELS[name]
    texts = PairTexts(
        told["originals"], told["candidates"], arrays["query"], told["passages"], arrays["first"],
        arrays["candidate_first"],
    )  # fmt: skip
    settings = SelectorSettings(learns, passages, weights, options.most_each)
    pace = Schedule(1.0, options.batch, options.rate, 1, 0.1, 0.01, "linear", 10**6, seed)
    labels = arrays[f"label_{learns}"]
    with tempfile.TemporaryDirectory() as work:
        encoder = train_selector(texts, labels, settings, pace, Path(work))
    trained = time.monotonic()
    scores = score_candidates(encoder, texts, settings, np.flatnonzero(arrays["is_held_out"]))
    done = time.monotonic()
    return scores.astype(np.float32), {
        "examples": len(sample(arrays["query"], labels, options.most_each, seed)), "seconds": round(done - began, 1),
        "train_seconds": round(trained - began, 1), "score_seconds": round(done - trained, 1), "device": encoder.device,
    }  # fmt: skip


def similarities(arrays: Any, told: Any, weights: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cosine of each query with its candidates and with the documents that both find, by the base encoder."""
    from askew.trainers.card import hardware
    from askew.trainers.common import choose_device

    began = time.monotonic()
    encode = _encoder(weights)
    docs, originals = encode(told["docs"], 256), encode(told["originals"], 64)
    held = np.flatnonzero(arrays["is_held_out"])
    candidates = encode([told["candidates"][row] for row in held.tolist()], 64)
    query = arrays["query"][held]
    found = {"similar": np.einsum("ij,ij->i", candidates, originals[query])}
    every = np.arange(len(originals))
    for name, lists, rows in (("docs", arrays["docs"], every), ("candidate_docs", arrays["candidate_docs"], query)):
        columns = [
            np.einsum("ij,ij->i", docs[np.maximum(lists[:, k], 0)], originals[rows]) for k in range(lists.shape[1])
        ]
        found[f"similar_{name}"] = np.where(lists >= 0, np.stack(columns, 1), -1.0)
    seconds = round(time.monotonic() - began, 1)
    about = {"model": "similarities", "seconds": seconds, "hardware": hardware(choose_device("auto"))}
    return {name: values.astype(np.float16) for name, values in found.items()}, about


def _encoder(weights: str) -> Any:
    """Mean-pooled and normalised vectors of the base model, the shortest texts first."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = AutoModel.from_pretrained(weights, dtype="float32").to(device).eval()

    def encode(texts: list[str], most: int, size: int = 512) -> Any:
        order = np.argsort([len(text) for text in texts], kind="stable")
        vectors = np.zeros((len(texts), model.config.hidden_size), np.float32)
        with torch.inference_mode():
            for start in range(0, len(order), size):
                some = order[start : start + size]
                batch = tokenizer(
                    [texts[i] for i in some.tolist()],
                    padding=True,
                    truncation=True,
                    max_length=most,
                    return_tensors="pt",
                ).to(device)
                hidden, mask = model(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
                mean = (hidden * mask).sum(1) / mask.sum(1)
                vectors[some] = torch.nn.functional.normalize(mean, dim=1).cpu().numpy()
        return vectors

    return encode


SHOWN = ("RR@10", "ARaB(tf)@10", "ARaB(tc)@10", "ARaB(bool)@10", "LexiconShare@10", "NFaiRR@10")


def evaluate(options: argparse.Namespace) -> None:
    """What each way to choose does to the held-out queries."""
    from askew.app.build.built_pairs import LEAN, QuerySubset, effects, read_built
    from askew.app.train.selector import ORIGINAL
    from askew.core.fingerprint import digest_file

    built = read_built(options.store)
    parts = built.parts()
    test = QuerySubset.of(built, parts, "test")
    chosen, told = choices(built, parts, test, options)
    print(f"data {digest_file(options.prepared / 'arrays.npz')[:16]}; queries by part: {_counts(parts)}")
    print(f"cross-encoders: seed 1, {json.loads((options.scores / 'log.json').read_text())[0]['hardware']}")
    print(f"test part: {len(test.queries):,} queries, {len(test.rows):,} candidates; a lean is taken without its sign")
    print(
        f"{LEAN} is input and outcome of the least leaning and the lean-aware ones; ARaB(tc) and ARaB(bool) count the"
    )
    print("same words otherwise; LexiconShare and NFaiRR are no input and count other words")
    print("lean-aware: the lowest chance whose choices on dev lose no more than the margin by the interval's lower end")
    print("gain: better if positive, with 95% interval over queries; p of the paired test, without correction")
    for name, rows in chosen.items():
        found = effects(built, test, rows, DELTA)
        changed = int((rows != ORIGINAL).sum())
        print(f"\n{name}: another candidate for {changed:,} of {len(rows):,} queries {told.get(name, '')}".rstrip())
        for measure in SHOWN:
            print(_line(measure, found[measure]))
        if changed:
            print(_verdict(found["RR@10"], cut_of(built, test, rows)))


def cut_of(built: Any, test: Any, rows: Any) -> tuple[float, float, float]:
    """By which share the mean of the lean falls, with a 95% interval over queries."""
    from askew.app.build.built_pairs import LEAN
    from askew.app.train.selector import ORIGINAL
    from askew.statistics.intervals import change_interval

    old = np.abs(built.old(LEAN))[test.queries]
    new = np.where(rows == ORIGINAL, old, np.abs(built.new(LEAN))[rows])
    there = ~np.isnan(old) & ~np.isnan(new)
    old, new = old[there], new[there]
    low, high = change_interval(np.arange(len(old)), old, new)
    return 1.0 - float(new.mean() / old.mean()), -float(high) / 100, -float(low) / 100


def _counts(parts: Any) -> str:
    return ", ".join(f"{name} {int((parts == name).sum()):,}" for name in ("train", *HELD_OUT))


def _line(measure: str, one: Any) -> str:
    change = f"{one.old:.4f} -> {one.new:.4f}" + ("" if one.relative is None else f" {one.relative:+.1%}")
    gain = f"gain {one.gain:+.4f} [{one.low:+.4f}, {one.high:+.4f}] {_p(one.p)}"
    shares = f"improved {one.improved / one.n:.1%}, worsened {one.worsened / one.n:.1%} of n = {one.n:,}"
    return f"  {measure:16} {change}; {gain}; {shares}"


def _p(value: float) -> str:
    return "p<0.0001" if value < 0.0001 else f"p={value:.4f}"


def _verdict(effect: Any, cut: tuple[float, float, float]) -> str:
    """What the tests say of the loss of effectiveness, beside the cut of lean."""
    told = "a loss" if effect.gain < 0 else "a gain"
    plain = f"the paired test finds {told if effect.p < 0.05 else 'no difference'}"
    no_loss = f"a loss of {DELTA} or more is {'' if effect.p_no_loss < 0.05 else 'not '}ruled out"
    same = f"equivalence within {DELTA} {'holds' if effect.p_equivalent < 0.05 else 'does not hold'}"
    aim = "yes" if cut[0] >= 0.4 and effect.p_no_loss < 0.05 else "no"
    return (
        f"  RR@10: {plain} ({_p(effect.p)}); {no_loss} ({_p(effect.p_no_loss)}); {same} ({_p(effect.p_equivalent)})\n"
        f"  mean lean cut by {cut[0]:.1%} [{cut[1]:.1%}, {cut[2]:.1%}]; 40% or more without a loss of {DELTA}: {aim}"
    )


def choices(built: Any, parts: Any, test: Any, options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """The row that each way takes for each test query, and what is to be said of it."""
    from askew.app.build.built_pairs import LEAN, QuerySubset
    from askew.app.train.selector import Close, choose_lean_aware, learn_chance, usual_choices
    from askew.trainers.selector import choose_threshold

    arrays, scores = scores_of(options)
    rows = arrays["held_out"]
    close = Close(*(scores.pop(name) for name in ("similar", "similar_docs", "similar_candidate_docs")))
    at = np.searchsorted(rows, test.rows)
    usual = usual_choices(built, test)
    chosen = {"keep the original": usual["original"], "a random candidate": usual["random"]}
    chosen["the most similar candidate"] = test.best(close.candidate[at])
    gain, told, dev = built.gain("RR@10"), {}, QuerySubset.of(built, parts, "dev")
    for name, values in scores.items():
        chosen[f"{name}, the best"] = test.best(values[at])
        mine = values[np.searchsorted(rows, dev.rows)]
        grid = np.append(np.quantile(mine, np.linspace(0, 1, 101)), mine.max() + 1.0)
        threshold = choose_threshold(
            lambda limit, mine=mine: dev.best(mine, mine >= limit), len(dev.queries), gain, DELTA, grid
        )
        kept = f"{name}, the best or the original"
        chosen[kept], told[kept] = test.best(values[at], values[at] >= threshold), f"(score {threshold:.3f} or more)"
    lean = np.abs(built.new(LEAN))[test.rows]
    chosen["the least leaning candidate"] = test.best(-lean, lean < np.abs(built.old(LEAN))[built.query[test.rows]])
    for name, given, margin in (
        ("lean-aware, lists only", ({}, None), DELTA), ("lean-aware, lists and encoder", ({}, close), DELTA),
        ("lean-aware", (scores, close), DELTA), ("lean-aware, margin 0", (scores, close), 0.0),
    ):  # fmt: skip
        chances, rule = learn_chance(built, parts, rows, *given, margin)
        chosen[name] = choose_lean_aware(built, test, chances, rule["threshold"])
        told[name] = f"(chance {rule['threshold']:.3f} or more)"
    worth = np.where(gain[test.rows] >= 0, -lean, -np.inf)
    chosen["oracle, sum of gains"] = usual["oracle"]
    chosen["oracle, least lean without loss"] = test.best(worth, np.isfinite(worth) & (built.gain(LEAN)[test.rows] > 0))
    return chosen, told


def scores_of(options: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was prepared, and the scores of the held-out candidates by model; of several seeds the first."""
    with np.load(options.prepared / "arrays.npz") as file:
        arrays = {"held_out": file["held_out"].astype(np.int64)}
    with np.load(options.scores / "scores.npz") as file:
        names = [name for name in file.files if "-seed" not in name or name.endswith("-seed1")]
        return arrays, {name.removesuffix("-seed1"): file[name].astype(np.float64) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("prepare")
    one.add_argument("store", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--weights", action="store_true", help="also write the base weights")
    one.add_argument("--most-each", type=int, default=4)
    one.set_defaults(do=prepare)
    one = parts.add_parser("train")
    one.add_argument("prepared", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--weights", type=Path, help="a folder of base weights, if not beside the prepared data")
    one.add_argument("--models", nargs="+", choices=sorted(MODELS), default=list(MODELS))
    one.add_argument("--seeds", nargs="+", type=int, default=[1])
    one.add_argument("--minutes", type=float, default=5.0)
    one.add_argument("--most-each", type=int, default=4)
    one.add_argument("--batch", type=int, default=16)
    one.add_argument("--rate", type=float, default=2e-5)
    one.set_defaults(do=train)
    one = parts.add_parser("evaluate")
    for name in ("store", "prepared", "scores"):
        one.add_argument(name, type=Path)
    one.set_defaults(do=evaluate)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
