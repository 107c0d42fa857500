"""Rewriters of queries trained on the gold box of the datasets of BoolQ and SQuAD, measured on held-out queries.

    python benchmarks/rewriter.py prepare boolq=BOXES squad=BOXES --data DATA --out PREPARED [--vectors VECTORS]
    python benchmarks/rewriter.py train PREPARED                 one file of texts for each model
    python benchmarks/rewriter.py evaluate --data DATA           the tables, with intervals and tests

``BOXES`` is what ``askew publish`` makes of the recipe ``NAME-boxes.toml`` that ``dataset.py --tables`` writes. The
models are the word networks of ``word_networks.py`` and those of ``askew train rewriter``, by the function that it
calls. What is learned from and what was written is kept in ``arena/rewriters``; ``evaluate`` computes everything else
again.

Two questions. How near is what is written to the query that was chosen (as RePair's Table 6 asks), of held-out queries
that have one; the original query, and what ``reduce`` leaves of it, need no training. And, of all held-out queries: do
they retrieve better when they are rewritten? Queries are split by their words; the epoch of a word network is chosen on
a small part of its own, by BLEU as published. ``VECTORS`` are word vectors that askew reads, such as GloVe; models with
them end in -vectors. ``seq2seq`` needs a model of transformers: ``--model FOLDER``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

# As in RePair, but for 5% of the training pairs that choose the epoch of a word network.
SHARES = {"train": 0.65, "dev": 0.05, "test": 0.3}
KEPT = Path(__file__).resolve().parent / "arena" / "rewriters"
MODELS = ("acg", "hred-qs", "acg-vectors", "hred-qs-vectors", "causal", "seq2seq")
COLLECTIONS = {"boolq": "boolq", "squad": "squad_part"}
EFFECTIVENESS = ("AP@100", "RR@10", "nDCG@10")
MEASURES = (*EFFECTIVENESS, "ARaB(tf,sign=abs)@10")
SHOWN = ("rouge1", "rougeL", "bleu_sentence", "rougeL_beta", "bleu_mean", "f1", "exact", "copies")
ORIGINAL, REDUCED = "original query", "reduce, content words"


def prepare(options: argparse.Namespace) -> None:
    """Pairs and held-out queries as one small file; of the vectors those of words that are there."""
    from dataset import CANDIDATES

    from askew.core.tables import part_of
    from askew.core.text import SALT, normal
    from askew.data.collection import open_collection
    from askew.train.rewriter import digest_of, read_pairs, split_pairs

    told: dict[str, Any] = {name: [[], [], []] for name in ("train", "dev", "test")} | {"asked": [[], []], "data": {}}
    for name, _, folder in (one.partition("=") for one in options.boxes):
        pairs, _ = read_pairs(Path(folder), options.box)
        told["data"][name] = digest_of(pairs)
        for part, some in split_pairs(pairs, SHARES).items():
            ids = [f"{name}:{query}" for query in some["query_id"]]
            for column, values in zip(told[part], (ids, some["original_text"], some["text"]), strict=True):
                column.extend(values)
        lines = gzip.decompress((CANDIDATES / f"{name}.tsv.gz").read_bytes()).decode("utf-8").splitlines()
        built = {line.partition("\t")[0] for line in lines[1:]}
        queries = open_collection(options.data / COLLECTIONS[name]).judged_queries()
        for query, text in zip(queries["query_id"].to_pylist(), queries["text"].to_pylist(), strict=True):
            if query in built and part_of(normal(text), SHARES, SALT) == "test":
                told["asked"][0].append(f"{name}:{query}")
                told["asked"][1].append(text)
    told["box"] = options.box
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "pairs.json.gz", told)
    if options.vectors:
        write_vectors(told, options.vectors, options.out / "vectors.npz")
    print({name: len(column[0]) for name, column in told.items() if name not in ("data", "box")})


def write_json(file: Path, found: Any) -> None:
    # Without the time in the header, the same content is the same file.
    file.write_bytes(gzip.compress(json.dumps(found, ensure_ascii=False).encode("utf-8"), mtime=0))


def read_json(file: Path) -> Any:
    return json.loads(gzip.decompress(file.read_bytes()))


def write_vectors(told: dict[str, Any], source: Path, out: Path) -> None:
    from askew.rewrite.embedding import read_vectors

    words, vectors = read_vectors(source)
    texts = (text for part in ("train", "dev", "test") for column in told[part][1:] for text in column)
    used = {word for text in texts for word in text.lower().split()}
    rows = [row for row, word in enumerate(words) if word in used]
    np.savez_compressed(out, words=np.array([words[row] for row in rows]), vectors=vectors[rows].astype(np.float16))
    print(f"{len(rows):,} of {len(used):,} words have a vector")


def train(options: argparse.Namespace) -> None:
    """Train each model with each seed, and rewrite the held-out queries."""
    import torch

    torch.set_float32_matmul_precision("high")
    told = read_json(options.prepared / "pairs.json.gz")
    options.out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.prepared / "pairs.json.gz", options.out / "pairs.json.gz")
    began = time.monotonic()
    # Seeds outside, so that the first round is a whole comparison if time runs out.
    for seed in options.seeds:
        for name in options.models:
            file = options.out / f"{name}.json.gz"
            made = read_json(file) if file.is_file() else {"seeds": {}, "log": {}}
            if str(seed) in made["seeds"]:
                continue
            if (time.monotonic() - began) / 60 > options.minutes:
                print(f"out of time: {name} with seed {seed} is left out", flush=True)
                continue
            made["seeds"][str(seed)], made["log"][str(seed)] = _train_one(name, seed, told, options)
            print(name, seed, json.dumps(made["log"][str(seed)]), flush=True)
            write_json(file, made)


def _train_one(
    name: str, seed: int, told: dict[str, Any], options: argparse.Namespace
) -> tuple[list[str], dict[str, Any]]:
    from word_networks import PACE, SIZES, fit_words

    from askew.train.card import hardware
    from askew.train.common import choose_device
    from askew.train.finetune import bleu_counts, bleu_mean
    from askew.train.rewriter import PAIR_COLUMNS, PRESETS, RewriterSettings, fit_rewriter

    began, kind = time.monotonic(), name.removesuffix("-vectors")
    train_part, dev = (pl.DataFrame(told[part], schema=PAIR_COLUMNS) for part in ("train", "dev"))
    vectors = None
    if name.endswith("-vectors"):
        with np.load(options.prepared / "vectors.npz") as file:
            vectors = file["words"].tolist(), file["vectors"].astype(np.float32)
    values: list[float] = []

    def score(wanted: Any, made: Any) -> float:
        values.append(float(bleu_mean(bleu_counts(wanted, made).sum(axis=0))))
        return values[-1]

    with tempfile.TemporaryDirectory() as work:
        if kind in SIZES:
            pace = replace(PACE, seed=seed, save_every=0, epochs=float(options.epochs), batch_size=options.batch)
            rewriter: Any = fit_words(kind, train_part, pace, Path(work), dev, score, vectors)
        else:
            settings = RewriterSettings(**PRESETS[kind])
            pace = replace(settings.pace, seed=seed, save_every=0)
            if options.model:
                settings = replace(settings, text=replace(settings.text, model=options.model))
            rewriter = fit_rewriter(train_part, replace(settings, pace=pace), Path(work)).rewriter
        trained = time.monotonic()
        texts = [lines[0] for lines in rewriter.write(told["asked"][1])]
    return texts, {
        "train_seconds": round(trained - began, 1), "write_seconds": round(time.monotonic() - trained, 1),
        "epochs": pace.epochs, "batch": pace.batch_size, "best_epoch": 1 + int(np.argmax(values)) if values else None,
        "hardware": hardware(choose_device(None)),
    }  # fmt: skip


def evaluate(options: argparse.Namespace) -> None:
    """Both tables."""
    from askew import Reformulator

    told = read_json(KEPT / "pairs.json.gz")
    ids, asked = told["asked"]
    made: dict[str, list[list[str]]] = {ORIGINAL: [asked]}
    found = Reformulator("reduce", filters=()).reformulate(dict(zip(ids, asked, strict=True)))
    # Of a query's candidates the last one has its content words alone.
    short = dict(zip(found["query_id"], found["text"], strict=True))
    made[REDUCED] = [[short.get(query, text) for query, text in zip(ids, asked, strict=True)]]
    print(
        f"box {told['box']}; pairs {told['data']}; train {len(told['train'][0]):,}, dev {len(told['dev'][0]):,} pairs"
    )
    for name in MODELS:
        if not (KEPT / f"{name}.json.gz").is_file():
            print(f"{name}: not trained")
            continue
        kept = read_json(KEPT / f"{name}.json.gz")
        made[name] = list(kept["seeds"].values())
        logs = list(kept["log"].values())
        epochs = ", ".join(str(one["best_epoch"] or one["epochs"]) for one in logs)
        print(
            f"{name}: seeds {', '.join(kept['seeds'])}; epochs {epochs} of {logs[0]['epochs']:g}, batches of "
            f"{logs[0]['batch']}; {', '.join(sorted({one['hardware'] for one in logs}))}"
        )
    _overlap(told, ids, made)
    _retrieval(options, ids, made)


def _overlap(told: dict[str, Any], ids: list[str], made: dict[str, list[list[str]]]) -> None:
    """Nearness to the chosen query: the mean over seeds of each, the interval that of the first seed."""
    from askew.train.common import read_published
    from askew.train.rewriter import PAIR_COLUMNS, score_rewrites

    test = pl.DataFrame(told["test"], schema=PAIR_COLUMNS)
    place = {query: row for row, query in enumerate(ids)}
    rows = [place[query] for query in test["query_id"]]
    print(f"\nheld-out pairs: n = {test.height:,}; mean over seeds, 95% interval of the first seed, sd over seeds")
    for name, seeds in made.items():
        found = [score_rewrites(test, [texts[row] for row in rows]) for texts in seeds]
        print(f"{name} ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})")
        for measure in SHOWN:
            first, means = found[0][measure], np.array([one[measure]["mean"] for one in found], float)
            spread = f" sd {np.std(means):.4f}" if len(seeds) > 1 else ""
            print(f"  {measure:14} {np.mean(means):.4f} [{first['low']:.4f}, {first['high']:.4f}]{spread}")
    print("\nRePair, Table 6 (other data; its rouge-1 is rougeL; bleu is bleu_sentence of t5, bleu_mean of the others)")
    for row in read_published("repair2023")[1]:
        print(f"  {row['data']:16} {row['model']:8} rougeL {row['rougeL']} bleu {row['bleu']} f1 {row['f1']}")


def _retrieval(options: argparse.Namespace, ids: list[str], made: dict[str, list[list[str]]]) -> None:
    """Effectiveness and lean of what all held-out queries find, as they were and rewritten."""
    from askew.core.measure import UNBOUNDED
    from askew.measures.statistics.significance import holm, paired

    first, values, directions = next(iter(made)), {name: [] for name in made}, {}
    for collection in dict.fromkeys(query.partition(":")[0] for query in ids):
        rows = [row for row, query in enumerate(ids) if query.startswith(f"{collection}:")]
        own = [ids[row].partition(":")[2] for row in rows]
        texts = {name: [[seed[row] for row in rows] for seed in seeds] for name, seeds in made.items()}
        for name, found in _measured(options.data / COLLECTIONS[collection], own, texts, directions).items():
            values[name].append(found)
    joined = {
        name: {m: np.concatenate([one[m] for one in parts]) for m in directions} for name, parts in values.items()
    }
    print(f"\nall held-out queries: n = {len(ids):,}; gain over the original query [95%], p by Holm over the measures")
    for name, found in joined.items():
        tests = {}
        for measure, direction in directions.items():
            there = ~np.isnan(joined[first][measure]) & ~np.isnan(found[measure])
            bounds = (0.0, 1.0) if measure.startswith(("RR", "nDCG", "AP")) else UNBOUNDED
            tests[measure] = paired(joined[first][measure][there], found[measure][there], direction, bounds)
        print(name)
        for (measure, test), p in zip(tests.items(), holm([one.p for one in tests.values()]), strict=True):
            line = f"  {measure:24} {float(np.nanmean(found[measure])):.4f}"
            if name != first:
                told = "<0.0001" if p < 0.0001 else f"{p:.4f}"
                line += f" gain {test.gain:+.4f} [{test.low:+.4f}, {test.high:+.4f}] p {told}"
                line += f"; improved {test.improved:,}, worsened {test.worsened:,}, n {test.n:,}"
            print(line)


def _measured(data: Path, ids: list[str], made: dict[str, list[list[str]]], directions: dict[str, Any]) -> Any:
    """The values of each way by measure and query, the mean over its seeds.

    What finds nothing is not effective (0), and cannot lean: it counts in no mean of lean, rather than as balanced.
    """
    import askew

    collection = askew.Collection.open(data)
    ranker = askew.Ranker("bm25-msmarco").index(collection)
    names = [name for name, seeds in made.items() for _ in seeds]
    runs = {
        str(number): ranker.search(dict(zip(ids, texts, strict=True)), 100)
        for number, texts in enumerate(texts for seeds in made.values() for texts in seeds)
    }
    report = askew.measure(runs, str(data / "docs.tsv"), qrels=collection.judgements, measures=list(MEASURES))
    directions |= {one.text: one.direction for one in report.asked}
    found: dict[str, dict[str, list[Any]]] = {name: {measure: [] for measure in directions} for name in made}
    for name, run in zip(names, report.runs, strict=True):
        place = {query: row for row, query in enumerate(run.query_ids)}
        rows = np.array([place.get(query, -1) for query in ids])
        for measure in directions:
            nothing = 0.0 if measure in EFFECTIVENESS else np.nan
            found[name][measure].append(np.where(rows >= 0, run.values[measure][rows], nothing))
    return {name: {m: np.mean(one, axis=0) for m, one in by.items()} for name, by in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("prepare")
    one.add_argument("boxes", nargs="+", metavar="NAME=FOLDER", help="the published boxes of boolq and squad")
    one.add_argument("--data", type=Path, required=True, help="a folder with the collections")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--box", default="gold")
    one.add_argument("--vectors", type=Path)
    one.set_defaults(do=prepare)
    one = parts.add_parser("train")
    one.add_argument("prepared", type=Path)
    one.add_argument("--out", type=Path, default=KEPT)
    one.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS[:4]))
    one.add_argument("--model", help="a model that seq2seq or causal begins from, instead of its default")
    one.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    one.add_argument("--minutes", type=float, default=60.0, help="no training is begun later")
    one.add_argument("--epochs", type=int, default=20, help="of the word networks")
    one.add_argument("--batch", type=int, default=32, help="of the word networks")
    one.set_defaults(do=train)
    one = parts.add_parser("evaluate")
    one.add_argument("--data", type=Path, required=True)
    one.set_defaults(do=evaluate)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
