"""Rewriters of queries trained on the platinum box of a RePair build, measured on held-out queries.

Three parts, so that the middle one can run on another machine: it needs torch, transformers and numpy only.

    askew run repair --set collection.source=DATA/boolq --store STORES/boolq          the pairs; likewise squad_part
    python benchmarks/rewriter.py prepare STORES --data DATA --out PREPARED --vectors VECTORS
    python benchmarks/rewriter.py train PREPARED --out WRITTEN           one file of texts for each model
    python benchmarks/rewriter.py evaluate PREPARED WRITTEN --data DATA  the tables, with intervals and tests

Two questions. How near is what is written to the query that was chosen (as RePair's Table 6 asks), of held-out queries
that have one; the query as it was, and without its function words, are the yardsticks. And, of all held-out queries: do
they retrieve better when they are rewritten? Queries are split by their words; an epoch is chosen on a small part of
its own, by BLEU as published.
``VECTORS`` are word vectors that askew reads, such as GloVe; models with them end in -vectors.
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

MODELS = ("acg", "hred-qs", "acg-vectors", "hred-qs-vectors")
EFFECTIVENESS = ("AP@100", "RR@10")
MEASURES = (*EFFECTIVENESS, "ARaB(tf,sign=abs)@10", "NFaiRR@10")
SHOWN = ("rouge1", "rougeL", "bleu_sentence", "rougeL_beta", "bleu_mean", "f1", "exact", "copies")
DEPTH = 100
# A yardstick that needs no training: what is left of a question without these.
_LINES = """a an and are as at be been by can could did do does for from had has have how in into is it its of on or
shall should than that the their there these they this to was we were what when where which who whom whose why will
with would you your"""
FUNCTION_WORDS = frozenset(_LINES.split())


def prepare(options: argparse.Namespace) -> None:
    """Pairs and held-out queries as one small file; of the vectors those of words that are there."""
    from askew.app.train.rewriter import SHARES, read_pairs, split_pairs
    from askew.core.split import part_of
    from askew.corpora.collection import open_collection
    from askew.publish.splits import SALT, normal

    told: dict[str, Any] = {name: [[], [], []] for name in ("train", "dev", "test")} | {"asked": [[], []], "data": {}}
    for name in options.collections:
        pairs, _ = read_pairs(options.stores / name, options.box)
        told["data"][name] = pairs.data()
        for part, some in split_pairs(pairs, SHARES).items():
            ids = [f"{name}:{query}" for query in some.query_ids]
            for column, values in zip(told[part], (ids, some.originals, some.targets), strict=True):
                column.extend(values)
        queries = open_collection(options.data / name).judged_queries()
        for query, text in zip(queries["query_id"].to_pylist(), queries["text"].to_pylist(), strict=True):
            if part_of(normal(text), SHARES, SALT) == "test":
                told["asked"][0].append(f"{name}:{query}")
                told["asked"][1].append(text)
    options.out.mkdir(parents=True, exist_ok=True)
    with gzip.open(options.out / "pairs.json.gz", "wt", encoding="utf-8") as file:
        json.dump(told, file, ensure_ascii=False)
    if options.vectors:
        write_vectors(told, options.vectors, options.out / "vectors.npz")
    print({name: len(column[0]) for name, column in told.items() if name != "data"})


def write_vectors(told: dict[str, Any], source: Path, out: Path) -> None:
    from askew.reformulators.vectorfiles import read_vectors

    words, vectors = read_vectors(source)
    texts = (text for part in ("train", "dev", "test") for column in told[part][1:] for text in column)
    used = {word for text in texts for word in text.lower().split()}
    rows = [row for row, word in enumerate(words) if word in used]
    np.savez_compressed(out, words=np.array([words[row] for row in rows]), vectors=vectors[rows].astype(np.float16))
    print(f"{len(rows):,} of {len(used):,} words have a vector")


def read_prepared(folder: Path) -> dict[str, Any]:
    with gzip.open(folder / "pairs.json.gz", "rt", encoding="utf-8") as file:
        return dict(json.load(file))


def train(options: argparse.Namespace) -> None:
    """Train each model with each seed, and rewrite the held-out queries."""
    import torch

    torch.set_float32_matmul_precision("high")
    told = read_prepared(options.prepared)
    options.out.mkdir(parents=True, exist_ok=True)
    began, log = time.monotonic(), []
    made: dict[str, dict[str, list[list[str]]]] = {}
    # Seeds outside, so that the first round is a whole comparison if time runs out.
    for seed in options.seeds:
        for name in options.models:
            spent = (time.monotonic() - began) / 60
            if log and spent + max(one["seconds"] for one in log) / 60 > options.minutes:
                print(f"out of time after {spent:.1f} minutes: {name} with seed {seed} is left out", flush=True)
                continue
            written, about = _train_one(name, seed, told, options)
            log.append({"model": name, "seed": seed, **about})
            print(json.dumps(log[-1]), flush=True)
            for way, texts in written.items():
                made.setdefault(name, {}).setdefault(way, []).append(texts)
            text = json.dumps(made[name], ensure_ascii=False)
            (options.out / f"{name}.json").write_text(text, encoding="utf-8")
            (options.out / "log.json").write_text(json.dumps(log, indent=1), encoding="utf-8")


def _train_one(name: str, seed: int, told: dict[str, Any], options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    from askew.models.rewrite import Sizes
    from askew.trainers.card import hardware
    from askew.trainers.common import Schedule
    from askew.trainers.rewriter import PRESETS, RewriterSettings, fit_rewriter
    from askew.trainers.rewriting.scores import corpus_bleu
    from askew.trainers.rewriting.words import Rewrites

    began, kind = time.monotonic(), name.removesuffix("-vectors")
    train_part, dev = (Rewrites(*told[part]) for part in ("train", "dev"))
    written = PRESETS[kind][0].sizes.written
    settings = RewriterSettings(kind, Sizes(hidden=options.hidden, written=written))
    pace = Schedule(float(options.epochs), options.batch, options.rate, 1, 0.0, 0.0, "constant", 0, seed)
    vectors = None
    if name.endswith("-vectors"):
        with np.load(options.prepared / "vectors.npz") as file:
            vectors = file["words"].tolist(), file["vectors"].astype(np.float32)
    values: list[float] = []

    def score(wanted: Any, made: Any) -> float:
        values.append(corpus_bleu(wanted, made))
        return values[-1]

    with tempfile.TemporaryDirectory() as work:
        taught = fit_rewriter(train_part, settings, pace, Path(work), dev, vectors, score=score)
    trained = time.monotonic()
    found = {
        f"beams{beams}": [lines[0] for lines in taught.write(told["asked"][1], None, beams)] for beams in options.beams
    }
    done = time.monotonic()
    network = taught.rewriter.network
    return found, {
        "seconds": round(done - began, 1), "train_seconds": round(trained - began, 1),
        "write_seconds": round(done - trained, 1), "best_epoch": 1 + int(np.argmax(values)),
        "dev_bleu": [round(value, 4) for value in values], "words": len(taught.rewriter.words),
        "weights": sum(one.numel() for one in network.parameters()), "hardware": hardware(taught.device),
    }  # fmt: skip


def evaluate(options: argparse.Namespace) -> None:
    """Both tables."""
    told = read_prepared(options.prepared)
    ids, asked = told["asked"]
    short = [" ".join(word for word in text.split() if word.lower() not in FUNCTION_WORDS) or text for text in asked]
    made: dict[str, list[list[str]]] = {"the query as it was": [asked], "without function words": [short]}
    for name in MODELS:
        file = options.written / f"{name}.json"
        for way, seeds in json.loads(file.read_text(encoding="utf-8")).items() if file.is_file() else ():
            made[f"{name}, {way}"] = seeds
    log = json.loads((options.written / "log.json").read_text(encoding="utf-8"))
    seeds, machines = (sorted({str(one[name]) for one in log}) for name in ("seed", "hardware"))
    print(f"trained with seeds {', '.join(seeds)} on {', '.join(machines)}")
    print(f"pairs {told['data']}; train {len(told['train'][0]):,}, dev {len(told['dev'][0]):,} pairs")
    _overlap(told, ids, made)
    _retrieval(options, ids, made)


def _overlap(told: dict[str, Any], ids: list[str], made: dict[str, list[list[str]]]) -> None:
    """Nearness to the chosen query: the mean over seeds of each, the interval that of the first seed."""
    from askew.app.train.rewriter import score_rewrites
    from askew.trainers.rewriting.scores import TABLE_6
    from askew.trainers.rewriting.words import Rewrites

    test = Rewrites(*told["test"])
    place = {query: row for row, query in enumerate(ids)}
    rows = [place[query] for query in test.query_ids]
    print(f"\nheld-out pairs: n = {len(test):,}; mean over seeds, 95% interval of the first seed, spread of seeds")
    for name, seeds in made.items():
        found = [score_rewrites(test, [texts[row] for row in rows]) for texts in seeds]
        print(f"{name} ({len(seeds)} seed{'s' if len(seeds) > 1 else ''})")
        for measure in SHOWN:
            first, means = found[0][measure], [one[measure]["mean"] for one in found]
            print(
                f"  {measure:14} {np.mean(means):.4f} [{first['low']:.4f}, {first['high']:.4f}] sd {np.std(means):.4f}"
            )
    print("\nRePair, Table 6 (other data; its rouge-1 is rougeL; bleu is bleu_sentence of t5, bleu_mean of the others)")
    for data, model, rouge, bleu, f1 in TABLE_6:
        print(f"  {data:16} {model:8} rougeL {rouge:.4f} bleu {bleu:.4f} f1 {f1:.4f}")


def _retrieval(options: argparse.Namespace, ids: list[str], made: dict[str, list[list[str]]]) -> None:
    """Effectiveness and lean of what all held-out queries find, as they were and rewritten."""
    from askew.core.measure import UNBOUNDED
    from askew.statistics.significance import holm, paired

    first, values, directions = next(iter(made)), {name: [] for name in made}, {}
    for collection in dict.fromkeys(query.partition(":")[0] for query in ids):
        rows = [row for row, query in enumerate(ids) if query.startswith(f"{collection}:")]
        own = [ids[row].partition(":")[2] for row in rows]
        texts = {name: [[seed[row] for row in rows] for seed in seeds] for name, seeds in made.items()}
        for name, found in _measured(options.data / collection, own, texts, directions).items():
            values[name].append(found)
    joined = {
        name: {m: np.concatenate([one[m] for one in parts]) for m in directions} for name, parts in values.items()
    }
    print(f"\nall held-out queries: n = {len(ids):,}; gain over the query as it was [95%], p by Holm over the measures")
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
                line += f" gain {test.gain:+.4f} [{test.low:+.4f}, {test.high:+.4f}] p {p:.4f}"
                line += f"; improved {test.improved:,}, worsened {test.worsened:,}, n {test.n:,}"
            print(line)


def _measured(data: Path, ids: list[str], made: dict[str, list[list[str]]], directions: dict[str, Any]) -> Any:
    """The values of each way by measure and query, the mean over its seeds.

    What finds nothing is not effective (0), and cannot lean: it counts in no mean of lean, rather than as balanced.
    """
    import askew
    from askew.corpora.collection import open_collection

    collection = open_collection(data)
    names, runs = [], {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, run in _runs(collection, Path(scratch), ids, made):
            names.append(name)
            runs[str(len(runs))] = run
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


def _runs(collection: Any, scratch: Path, ids: list[str], made: dict[str, list[list[str]]]) -> Any:
    """The run of each way with each seed."""
    import polars as pl
    import pyarrow as pa

    from askew.app.search.retrieve import index_documents
    from askew.rankers.bm25.named import bm25_msmarco

    docs = pl.concat(
        [pl.DataFrame(pl.from_arrow(batch.select(["doc_id", "text"]))) for batch in collection.documents()]
    )
    index_documents(docs, scratch / "index")
    ranker = bm25_msmarco(scratch / "index")
    for name, seeds in made.items():
        for texts in seeds:
            hits = ranker.search(pa.array(texts), DEPTH)
            rows = np.repeat(np.arange(len(ids)), np.diff(hits.offsets))
            columns = {"query_id": pl.Series(ids).gather(rows), "doc_id": docs["doc_id"].gather(hits.docs)}
            yield name, pl.DataFrame({**columns, "score": hits.scores.astype(np.float64)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("prepare")
    one.add_argument("stores", type=Path, help="a folder with the store of each collection")
    one.add_argument("--data", type=Path, required=True, help="a folder with the collections")
    one.add_argument("--collections", nargs="+", default=["boolq", "squad_part"])
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--box", default="platinum")
    one.add_argument("--vectors", type=Path)
    one.set_defaults(do=prepare)
    one = parts.add_parser("train")
    one.add_argument("prepared", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    one.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    one.add_argument("--minutes", type=float, default=3.5, help="no new training is begun that would end later")
    one.add_argument("--epochs", type=int, default=20)
    one.add_argument("--batch", type=int, default=64)
    one.add_argument("--rate", type=float, default=1e-3)
    one.add_argument("--hidden", type=int, default=512)
    one.add_argument("--beams", nargs="+", type=int, default=[1, 4])
    one.set_defaults(do=train)
    one = parts.add_parser("evaluate")
    one.add_argument("prepared", type=Path)
    one.add_argument("written", type=Path)
    one.add_argument("--data", type=Path, required=True)
    one.set_defaults(do=evaluate)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
