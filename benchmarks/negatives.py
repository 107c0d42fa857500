"""Rankers trained on usual negatives against bias-aware ones, on BoolQ and SQuAD passages as one collection.

Three parts, so that the middle one can run on another machine: it needs torch, transformers and numpy only.

    python benchmarks/negatives.py prepare --data DATA --out PREPARED     texts, negatives, candidates; base weights
    python benchmarks/negatives.py train PREPARED --out SCORES            one file of scores for each way of training
    python benchmarks/negatives.py evaluate PREPARED SCORES --data DATA   the table, with intervals and tests

``DATA`` has the folders boolq and squad_part. Queries are split by the passage that answers them, so that no test
passage was ever trained on as relevant. All rankers rerank the same candidates of BM25. Training counts ln(1 + count)
of the lexicon rekabsaz2020 (32 words a side): ARaB with that lexicon is input and outcome; NFaiRR and ARaB with
rekabsaz2021 (163 words a side, the published one), and LexiconShare, are counted with other words.

A way is compared with the original of the same seeds, query by query: intervals and tests are over queries, for the
seeds that were trained; the gain of each seed stands beside them. A signed ARaB is turned so that the side to which the
original leans on average is positive: the change is that of the published number, which is a mean of signed values.
Documents with equal scores stay in the order of BM25, in all ways alike.
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

PARTS = ("boolq", "squad_part")
SHARES = {"train": 0.85, "dev": 0.05, "test": 0.1}
DEPTH, CANDIDATES, COUNT = 1000, 100, 20
LEFT = 48  # tokens of a query at most
# name: (negatives, loss, weight of the lean, strength of the adversary)
WAYS: dict[str, tuple[str, str, float, float]] = {
    "original": ("original", "bce", 0.0, 0.0),
    "bias-aware": ("bias-aware", "bce", 0.0, 0.0),
    "hinge": ("original", "hinge", 0.0, 0.0),
    "bias-aware-loss": ("original", "bias-aware", 1.0, 0.0),
    "lean-list": ("original", "lean-list", 0.5, 0.0),
    "adversarial": ("original", "bce", 0.0, 1.0),
}
MEASURES = (
    "RR@10", "NFaiRR@10", "ARaB(tf,lexicon=rekabsaz2021)@10", "ARaB(bool,lexicon=rekabsaz2021)@10", "ARaB(tf)@10",
    "ARaB(tc,sign=abs)@10", "ARaB(tf,sign=abs)@10", "ARaB(bool,sign=abs)@10",
    "ARaB(tf,lexicon=rekabsaz2021,sign=abs)@10", "LexiconShare@10",
)  # fmt: skip
# Bigdeli et al. (ECIR 2022), table 3 of the published code: BERT base on 1,765 neutral queries of MS MARCO.
PUBLISHED = {
    "RR@10": (0.3494, 0.3266), "NFaiRR@10": (0.7764, 0.8673), "ARaB(tf,lexicon=rekabsaz2021)@10": (0.1281, 0.0967),
    "ARaB(bool,lexicon=rekabsaz2021)@10": (0.0956, 0.0864),
}  # fmt: skip
# Stated beforehand: the largest loss of mean RR@10 that would not matter.
DELTA = 0.01


def collection(data: Path) -> tuple[Any, Any, Any]:
    """Both collections as one: documents, queries, judgements; ids say where a row is from."""
    import polars as pl

    from askew.corpora.collection import open_collection

    tables = []
    for part in PARTS:
        one = open_collection(data / part)
        batches = [pl.DataFrame(pl.from_arrow(batch.select(["doc_id", "text"]))) for batch in one.documents()]
        queries = pl.DataFrame(pl.from_arrow(one.queries.select(["query_id", "text"])))
        judged = pl.DataFrame(pl.from_arrow(one.judgements.select(["query_id", "doc_id", "relevance"])))
        named = [pl.concat(batches), queries, judged]
        tables.append([table.with_columns((f"{part}:" + pl.col("^(doc|query)_id$")).name.keep()) for table in named])
    docs, queries, judged = (pl.concat(list(column)) for column in zip(*tables, strict=True))
    return docs, queries, judged


def prepare(options: argparse.Namespace) -> None:
    """Everything that needs no training."""
    import pyarrow as pa

    from askew.app.scoring.ranked import document_lean, leaning_groups
    from askew.app.search.retrieve import index_documents
    from askew.core.split import part_of
    from askew.rankers.bm25.ranker import Bm25Ranker
    from askew.trainers.negatives import JudgedPairs, Lists, NegativeSampling, sample_negatives

    docs, queries, judged = collection(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        index_documents(docs, Path(scratch) / "index")
        hits = Bm25Ranker(Path(scratch) / "index").search(queries["text"].to_arrow().cast(pa.string()), DEPTH)
    mentions = mentions_of(docs)
    lean, group = document_lean(mentions, "tf"), leaning_groups(mentions)
    place = {doc: number for number, doc in enumerate(docs["doc_id"].to_list())}
    row_of = {query: number for number, query in enumerate(queries["query_id"].to_list())}
    relevant = judged.filter(judged["relevance"] > 0)
    rows = np.array([row_of[query] for query in relevant["query_id"].to_list()])
    answers = np.array([place[doc] for doc in relevant["doc_id"].to_list()])
    part = np.array([part_of(doc, SHARES) for doc in relevant["doc_id"].to_list()])
    rng = np.random.default_rng(7)
    train = np.sort(rng.permutation(rows[part == "train"])[: options.queries])
    test = np.sort(rng.permutation(rows[part == "test"])[: options.test])
    lists = Lists(queries["query_id"].to_list(), hits.offsets, hits.docs.astype(np.int64))
    known = JudgedPairs(rows, answers, np.ones(len(rows), bool))
    made = {
        name: sample_negatives(lists, lean, known, NegativeSampling(COUNT, share, DEPTH))
        for name, share in (("original", 0.0), ("bias-aware", 0.6))
    }
    arrays = {"train": train, "test": test, "lean_tf": lean, "group": group}
    arrays["lean_bool"] = document_lean(mentions, "bool")
    for name, found in made.items():
        kept = np.isin(found.row, train)
        arrays[f"{name}_row"], arrays[f"{name}_doc"] = found.row[kept], found.doc[kept]
        print(f"{name}: {kept.sum():,} negatives, mean lean {lean[found.doc[kept]].mean():.3f}; {dict(found.short)}")
    arrays["relevant_row"], arrays["relevant_doc"] = rows, answers
    arrays |= _candidates(hits, test)
    small = {name: values.astype(np.int32) if values.dtype.kind == "i" else values for name, values in arrays.items()}
    np.savez_compressed(options.out / "arrays.npz", **small)
    used = np.union1d(train, test)
    texts = {"queries": queries["text"].gather(used).to_list(), "used": used.tolist(), "docs": docs["text"].to_list()}
    with gzip.open(options.out / "texts.json.gz", "wt", encoding="utf-8") as file:
        json.dump(texts, file, ensure_ascii=False)
    write_weights(options.out / "weights")
    print(f"{len(train):,} training queries, {len(test):,} test queries, {len(docs):,} documents: {options.out}")


def mentions_of(docs: Any) -> Any:
    """How often each document names the groups."""
    import pyarrow as pa

    from askew.core.lexicon import load_lexicon
    from askew.mentions.count import counter_for
    from askew.plugins.kinds import DocMentions

    found = counter_for(load_lexicon("rekabsaz2020"), "word", "all").count(docs["text"].to_arrow().cast(pa.string()))
    return DocMentions(found.groups, found.counts, found.tokens, np.ones(len(docs), bool))


def _candidates(hits: Any, test: Any) -> dict[str, Any]:
    """The first candidates of each test query, end to end."""
    lengths = np.minimum(np.diff(hits.offsets)[test], CANDIDATES)
    rows = np.repeat(np.arange(len(test)), lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = hits.offsets[test][rows] + within
    return {"test_row": rows, "test_doc": hits.docs[places], "test_bm25": hits.scores[places]}


def write_weights(folder: Path) -> None:
    """The base model with its weights in 16 bits: half the size, and training starts from them in 32 bits."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    from askew.models.find import MINILM, locate

    place = Path(locate(MINILM))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(place / name, folder / name)
    weights = {
        name: values.to(torch.float16) if values.is_floating_point() else values
        for name, values in load_file(place / "model.safetensors").items()
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def train(options: argparse.Namespace) -> None:
    """Train each way with each seed and score the candidates of the test queries."""
    import torch

    from askew.trainers.card import hardware
    from askew.trainers.common import Schedule, choose_device
    from askew.trainers.ranker import RankerSettings

    torch.set_float32_matmul_precision("high")
    arrays, texts = read_prepared(options.prepared)
    options.out.mkdir(parents=True, exist_ok=True)
    began, log = time.monotonic(), []
    how = {name: value for name, value in vars(options).items() if isinstance(value, int | float | str | list)}
    how["hardware"] = hardware(choose_device("auto"))
    scores: dict[str, dict[str, Any]] = {}
    tokens = tokenise(options, texts)
    # Seeds outside, so that the first round is a whole comparison if time runs out.
    for seed in options.seeds:
        for way in options.ways:
            spent = (time.monotonic() - began) / 60
            if log and spent + max(one["minutes"] for one in log) > options.minutes:
                print(f"out of time after {spent:.1f} minutes: {way} with seed {seed} is left out", flush=True)
                continue
            _, loss, weight, adversary = WAYS[way]
            settings = RankerSettings(
                str(options.prepared / "weights"), loss, 1.0, weight, adversary, options.tokens, LEFT
            )
            pace = Schedule(1.0, options.batch, options.rate, 1, 0.1, 0.01, "linear", 10**6, seed)
            found, about = _train_one(arrays, texts, tokens, way, settings, pace)
            scores.setdefault(way, {})[f"seed{seed}"] = found
            log.append({"way": way, "seed": seed, **about})
            print(json.dumps(log[-1]), flush=True)
            np.savez_compressed(options.out / f"{way}.npz", **scores[way])
            (options.out / "log.json").write_text(json.dumps({"options": how, "runs": log}, indent=1))


def tokenise(options: argparse.Namespace, texts: Any) -> tuple[Any, Any]:
    """Both sides once for all trainings."""
    from transformers import AutoTokenizer

    from askew.trainers.ranker import TokenTexts

    tokenizer = AutoTokenizer.from_pretrained(str(options.prepared / "weights"))
    return TokenTexts.of(tokenizer, texts["queries"], LEFT), TokenTexts.of(tokenizer, texts["docs"], options.tokens)


def read_prepared(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What ``prepare`` wrote; numbers of queries are places in the list of used texts."""
    with np.load(folder / "arrays.npz") as file:
        arrays = {name: file[name] for name in file.files}
    with gzip.open(folder / "texts.json.gz", "rt", encoding="utf-8") as file:
        texts = json.load(file)
    place = np.full(max(texts["used"]) + 1, -1)
    place[texts["used"]] = np.arange(len(texts["used"]))
    arrays["place"] = place
    return arrays, texts


def _train_one(arrays: Any, texts: Any, tokens: Any, way: str, settings: Any, pace: Any) -> tuple[Any, dict[str, Any]]:
    from askew.trainers.negatives import groups_of
    from askew.trainers.ranker import RankerTexts, fit

    began = time.monotonic()
    place, which = arrays["place"], WAYS[way][0]
    wanted = np.isin(arrays["relevant_row"], arrays["train"])
    relevant = place[arrays["relevant_row"][wanted]], arrays["relevant_doc"][wanted].astype(np.int64)
    negatives = place[arrays[f"{which}_row"]], arrays[f"{which}_doc"].astype(np.int64)
    examples = groups_of(relevant, negatives, len(texts["queries"]), each=4)
    lean = arrays["lean_bool"] if settings.loss == "bias-aware" else arrays["lean_tf"]
    data = RankerTexts(texts["queries"], texts["docs"], lean, arrays["group"].astype(np.int64))
    with tempfile.TemporaryDirectory() as work:
        encoder = fit(data, examples, settings, pace, Path(work), tokens=lambda _: tokens)
    trained = time.monotonic()
    rows = place[arrays["test"][arrays["test_row"]]], arrays["test_doc"].astype(np.int64)
    found = encoder.score(*tokens, rows, batch_size=1024 if encoder.device.startswith("cuda") else 64)
    done = time.monotonic()
    return found, {
        "pairs": int((examples.right >= 0).sum()), "train_seconds": round(trained - began, 1),
        "score_seconds": round(done - trained, 1), "minutes": (done - began) / 60, "device": encoder.device,
    }  # fmt: skip


def evaluate(options: argparse.Namespace) -> None:
    """The table: means over seeds and queries, and the tests of each way against the first."""
    from askew.app.search.classify import make_classifier
    from askew.core.fingerprint import digest_file

    docs, queries, judged = collection(options.data)
    arrays, _ = read_prepared(options.prepared)
    ids = queries["query_id"].gather(arrays["test"])
    values, directions = values_of(runs_of(options, arrays, ids, docs), docs, judged, ids)
    labels = make_classifier({"classifier": "lexical"}).classify(queries["text"].gather(arrays["test"]).to_list())
    neutral = np.array([label == "neutral" for label in labels.names()])
    print(f"data {digest_file(options.prepared / 'arrays.npz')[:16]}, training: {told_by(options.scores)}")
    print("published trade-off (Bigdeli et al. 2022, BERT base, 1,765 neutral queries of MS MARCO)")
    for measure, (old, new) in PUBLISHED.items():
        print(f"  {measure:41} {old:.4f} -> {new:.4f} {new / old - 1:+.1%}")
    for name, wanted in (("neutral queries", neutral), ("all queries", np.ones(len(ids), bool))):
        _print(name, values, directions, wanted)


def told_by(folders: list[Path]) -> str:
    """How the scores came about, by the logs beside them."""
    options = [json.loads((folder / "log.json").read_text())["options"] for folder in folders]
    told = {", ".join(f"{name} {one[name]}" for name in ("tokens", "batch", "rate", "hardware")) for one in options}
    return "; ".join(sorted(told))


def runs_of(options: argparse.Namespace, arrays: Any, ids: Any, docs: Any) -> dict[str, dict[str, Any]]:
    """The runs of BM25, of each way with each seed, and of the original reordered by DetConstSort."""
    import polars as pl

    from askew.rankers.fairorder import even_targets, fair_order

    lines = {"query_id": ids.gather(arrays["test_row"]), "doc_id": docs["doc_id"].gather(arrays["test_doc"])}
    row, group = arrays["test_row"], arrays["group"][arrays["test_doc"]].astype(np.int64)
    runs: dict[str, dict[str, Any]] = {"original": {}}
    files = [file for folder in options.scores for file in folder.glob("*.npz")]
    for file in sorted(files, key=lambda file: list(WAYS).index(file.stem)):
        with np.load(file) as found:
            made = {seed: pl.DataFrame({**lines, "score": _places(row, found[seed])}) for seed in found.files}
            distinct = ", ".join(f"{len(np.unique(found[seed])):,}" for seed in found.files)
        print(f"{file.stem}: {', '.join(made)}: {distinct} distinct scores of {len(row):,}")
        runs.setdefault(file.stem, {}).update(made)
    offsets = np.searchsorted(row, np.arange(len(ids) + 1))
    targets, reordered = even_targets(offsets, group, 3), {}
    for seed, run in runs["original"].items():
        order = fair_order(offsets, run["score"].to_numpy(), group, targets)
        places = np.empty(len(order))
        places[order] = -np.arange(len(order), dtype=float)
        reordered[seed] = run.with_columns(score=pl.Series(places))
    bm25 = {seed: pl.DataFrame({**lines, "score": arrays["test_bm25"]}) for seed in list(runs["original"])[:1]}
    return {"BM25": bm25, **runs, "original + DetConstSort": reordered}


def _places(row: Any, scores: Any) -> Any:
    """A number for each line that falls with its rank; lines are in the order of BM25, which equal scores keep."""
    places = np.empty(len(row))
    places[np.lexsort((-scores, row))] = -np.arange(len(row), dtype=float)
    return places


def values_of(runs: dict[str, dict[str, Any]], docs: Any, judged: Any, ids: Any) -> tuple[dict[str, Any], Any]:
    """The values of each way by measure and seed, in the order of the queries; and the directions."""
    import askew

    values: dict[str, Any] = {}
    place = {query: number for number, query in enumerate(ids.to_list())}
    for way, seeds in runs.items():
        report = askew.measure(seeds, docs, qrels=judged, measures=list(MEASURES))
        order = np.argsort([place[query] for query in report.runs[0].query_ids])
        values[way] = {a.text: {run.name: run.values[a.text][order] for run in report.runs} for a in report.asked}
        directions = {a.text: a.direction for a in report.asked}
    return values, directions


def _print(title: str, values: dict[str, Any], directions: dict[str, Any], keep: Any) -> None:
    from askew.statistics.significance import holm

    print(f"\n{title}: n = {keep.sum():,}; against 'original', p by Holm over the measures, gain is better if positive")
    for way, found in values.items():
        seeds = list(found["RR@10"])
        told = "no seed" if way == "BM25" else f"seed{'s' if len(seeds) > 1 else ''} {', '.join(s[4:] for s in seeds)}"
        print(f"{way} ({told})")
        tests = {
            measure: against(values["original"][measure], found[measure], direction, keep, measure)
            for measure, direction in directions.items()
        }
        corrected = dict(zip(tests, holm([one.p for one, *_ in tests.values()]), strict=True))
        for measure, (one, gains, mean) in tests.items():
            print(_line(way, measure, one, gains, corrected[measure], mean))


def _line(way: str, measure: str, one: Any, gains: list[float], p: float, mean: Any) -> str:
    line = f"  {measure:41} {one.new:.4f}"
    if way == "original":
        return f"{line} [{mean.low:.4f}, {mean.high:.4f}]"
    change = "" if one.relative is None else f" {one.relative:+.1%}"
    line += f" from {one.old:.4f}{change}; gain {one.gain:+.4f} [{one.low:+.4f}, {one.high:+.4f}] {_p(p)}"
    line += f", by seed {' '.join(f'{gain:+.4f}' for gain in gains)}" if len(gains) > 1 else ""
    return line + ("" if one.p_no_loss is None else f"; no loss of {DELTA} or more: {_p(one.p_no_loss)}")


def _p(value: float) -> str:
    return "p<0.0001" if value < 0.0001 else f"p={value:.4f}"


def against(old: Any, new: Any, direction: Any, keep: Any, measure: str) -> tuple[Any, list[float], Any]:
    """The test of a way against the original of the same seeds, the gain of each seed, and the way's own mean."""
    from askew.core.measure import UNBOUNDED, Direction
    from askew.statistics.intervals import mean_with_interval
    from askew.statistics.significance import paired

    before, after = (np.stack([side[seed][keep] for seed in new]) for side in (old, new))
    if direction is Direction.ZERO:
        turn = np.sign(before.mean())
        before, after, direction = before * turn, after * turn, Direction.DOWN
    there = ~np.isnan(before).any(axis=0) & ~np.isnan(after).any(axis=0)
    gains = [float(direction.gain(b[there], a[there]).mean()) for b, a in zip(before, after, strict=True)]
    means = before[:, there].mean(axis=0), after[:, there].mean(axis=0)
    bounds = (0.0, 1.0) if measure.startswith(("RR", "nDCG", "AP")) else UNBOUNDED
    test = paired(*means, direction, bounds, margin=DELTA if measure == "RR@10" else None)
    return test, gains, mean_with_interval(means[1], bounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("prepare")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--queries", type=int, default=12_000, help="training queries")
    one.add_argument("--test", type=int, default=10**9, help="test queries at most")
    one.set_defaults(do=prepare)
    one = parts.add_parser("train")
    one.add_argument("prepared", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--ways", nargs="+", choices=sorted(WAYS), default=["original", "bias-aware"])
    one.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    one.add_argument("--minutes", type=float, default=9.0, help="no new training is begun that would end later")
    one.add_argument("--tokens", type=int, default=160)
    one.add_argument("--batch", type=int, default=32, help="groups of five pairs in a batch")
    one.add_argument("--rate", type=float, default=1e-4)
    one.set_defaults(do=train)
    one = parts.add_parser("evaluate")
    one.add_argument("prepared", type=Path)
    one.add_argument("scores", type=Path, nargs="+", help="one folder or more, of other seeds or ways")
    one.add_argument("--data", type=Path, required=True)
    one.set_defaults(do=evaluate)
    options = parser.parse_args()
    options.do(options)


if __name__ == "__main__":
    main()
