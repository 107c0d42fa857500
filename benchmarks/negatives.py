"""Cross-encoders trained to lean less, each with several strengths, on collections that they were not trained on.

Three parts, so that the middle one can run on another machine: it needs torch, transformers, accelerate and numpy only.

    python benchmarks/negatives.py prepare --data DATA --out PREPARED           texts, examples, candidates; weights
    python benchmarks/negatives.py train PREPARED --out KEPT --jobs 4           the top 20 of each ranker and query
    python benchmarks/negatives.py evaluate KEPT --data DATA [--runs RUNS]      the table; TREC runs for askew bench

``DATA`` has the folders squad_part (training), boolq, fairytaleqa and msmarco_dl1920 (tests). All rankers rerank the
top 100 of BM25. Of BoolQ and FairytaleQA 1,000 neutral queries are sampled, of DL 2019 and 2020 all judged queries are
taken. No test document is a training document: see negatives_data.py for the rule, and what ``prepare`` prints. KEPT is
benchmarks/arena/negatives in the project: places among the candidates, which ``evaluate`` retrieves again with BM25 and
compares by their digest. Equal scores of BM25 are in the order of the collection.

Each row is what ``askew train ranker`` trains, with the seeds 1, 2 and 3. The run has the top 100 of all queries:

    askew index squad_part --out index
    askew search squad_part/queries.tsv --index index -k 100 --out squad.parquet
    askew train ranker squad.parquet --docs squad_part/docs.tsv --queries squad_part/queries.tsv \\
        --qrels squad_part/qrels.txt --model PREPARED/weights --part "" --seed SEED --out FOLDER \\
        --set count=4 --set depth=100 --set most_tokens=160 --set most_left_tokens=48 --set epochs=0.5 \\
        --set batch_size=32 --set learning_rate=0.0001 --set save_every=0 OPTIONS

where OPTIONS are, for each row:

    original             --preset original
    negatives STRENGTH   --preset bigdeli2022 --set share=STRENGTH             the share of bias-aware negatives
    lean-list STRENGTH   --preset original --loss lean-list --set lean_weight=STRENGTH
    adversary STRENGTH   --preset original --adversary STRENGTH

PREPARED/weights are those of all-MiniLM-L6-v2 in 16 bits, which are half as large to send; training begins from them in
32 bits. On a GPU, steps are computed in 16 bits (bfloat16), as the command does; scores in 32, with matrix products in
TensorFloat-32. Equal scores keep the order of BM25.

Lean is counted with the lexicon rekabsaz2020 (32 words a side), so ARaB with that lexicon is input and outcome of the
training; NFaiRR, ARaB with rekabsaz2021 (163 words a side) and ARaB of generic mentions are counted with other words.
"""

from __future__ import annotations

import argparse
import json
import lzma
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from negatives_train import PREPARED, train_rows

STRENGTHS: dict[str, tuple[float, ...]] = {
    "original": (0.0,), "negatives": (0.25, 0.5, 1.0), "lean-list": (0.25, 0.5, 1.0, 2.0),
    "adversary": (0.3, 1.0, 3.0),
}  # fmt: skip
SEEDS = (1, 2, 3)
# The settings of askew train ranker that all rows share.
SHARED: dict[str, Any] = {
    "part": "", "count": 4, "depth": 100, "most_tokens": 160, "most_left_tokens": 48, "epochs": 0.5, "batch_size": 32,
    "learning_rate": 1e-4, "save_every": 0,
}  # fmt: skip


def own_settings(method: str, strength: float) -> dict[str, Any]:
    """The settings of askew train ranker that make a row what it is."""
    if method == "negatives":
        return {"preset": "bigdeli2022", "share": strength}
    more: dict[str, dict[str, Any]] = {
        "original": {}, "lean-list": {"loss": "lean-list", "lean_weight": strength},
        "adversary": {"adversary": strength},
    }  # fmt: skip
    return {"preset": "original", **more[method]}


def rows() -> Iterator[tuple[str, str, float, int]]:
    """Every training: name, method, strength, seed. Seeds are outside, so that what is done first can be compared."""
    for seed in SEEDS:
        for method, strengths in STRENGTHS.items():
            for strength in strengths:
                yield f"{method}-{strength:g}-seed{seed}", method, strength, seed


def prepare(options: argparse.Namespace) -> None:
    """Everything that needs no training, as one file; and the weights to begin from."""
    from negatives_data import TESTS, TRAIN, Seen, documents, facts_of, open_test_set, print_facts

    docs = documents(options.data, TRAIN)["text"].to_list()
    seen = Seen.of(docs)
    tests = [open_test_set(options.data, name, seen, options.most) for name in TESTS]
    arrays, texts = training_arrays(options.data / TRAIN, docs, options.most)
    negatives = {key: arrays[key][:, 1:] for key in arrays if key.endswith("_right")}
    facts = facts_of(tests, seen, negatives, docs, options.most)
    for test in tests:
        arrays[f"candidates_{test.name}"] = test.candidates.astype(np.int32)
        texts["tests"][test.name] = {"queries": test.queries, "docs": test.docs}
    options.out.mkdir(parents=True, exist_ok=True)
    packed = lzma.compress(json.dumps({**texts, "facts": facts}, ensure_ascii=False).encode())
    np.savez_compressed(options.out / PREPARED, texts=np.frombuffer(packed, np.uint8), **arrays)
    if options.model:
        write_weights(options.out / "weights", options.model)
    print_facts(facts)
    print(f"{len(texts['queries']):,} training queries: {options.out / PREPARED}")


def training_arrays(folder: Path, docs: list[str], most: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The examples of every row, by places in the lists of queries and documents, and the settings of every row."""
    from askew.search.bm25.ranker import bm25
    from askew.search.retrieve import index as index_documents
    from askew.search.retrieve import queries_of, search_queries
    from askew.train.negatives import RankerData
    from askew.train.ranker import training_set

    texts: dict[str, Any] = {"docs": docs, "rows": {}, "tests": {}}
    arrays: dict[str, Any] = {"lean": np.zeros(len(docs), np.float32), "group": np.zeros(len(docs), np.int64)}
    place = {text: at for at, text in enumerate(docs)}
    with tempfile.TemporaryDirectory() as scratch:
        run, index = Path(scratch) / "squad.parquet", Path(scratch) / "index"
        index_documents(folder / "docs.tsv", index)
        queries = queries_of(folder / "queries.tsv")
        search_queries(queries.slice(0, most), bm25(index), run, SHARED["depth"])
        source = RankerData(run, folder / "docs.tsv", folder / "queries.tsv", folder / "qrels.txt")
        for name, method, strength, seed in rows():
            job = job_of(method, strength, seed)
            key = f"examples_{job.sampling.share:g}_{seed}"
            texts["rows"][name] = {"examples": key, "settings": asdict(job.settings), "pace": asdict(job.pace)}
            if f"{key}_left" not in arrays:
                found = training_set(source, job)
                texts["queries"] = list(found.texts.left)  # those of the run, for all rows alike
                arrays |= example_arrays(key, found, place, arrays)
    return arrays, texts


def job_of(method: str, strength: float, seed: int) -> Any:
    """The settings of a row as askew train ranker reads them."""
    from askew.train.common import from_names
    from askew.train.ranker import RankerJob

    return from_names(RankerJob, {**SHARED, **own_settings(method, strength), "seed": seed}, "negatives.py")


def example_arrays(key: str, found: Any, place: dict[str, int], arrays: dict[str, Any]) -> dict[str, Any]:
    """Examples by places in the list of all training documents, with the lean and the group of the documents."""
    at = np.array([place[text] for text in found.texts.right], np.int64)
    lean, group = arrays["lean"].copy(), arrays["group"].copy()
    lean[at], group[at] = found.texts.lean, found.texts.group
    right = np.where(found.examples.right < 0, -1, at[found.examples.right])
    made = {f"{key}_left": found.examples.left.astype(np.int32), f"{key}_right": right.astype(np.int32)}
    return {**made, "lean": lean, "group": group}


def write_weights(folder: Path, model: str = "all-MiniLM-L6-v2") -> None:
    """A model with its weights in 16 bits: half the size, and training starts from them in 32 bits."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    from askew.models.find import locate

    place = Path(locate(model))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        if (place / name).is_file():
            shutil.copy(place / name, folder / name)
    weights = {
        name: values.to(torch.float16) if values.is_floating_point() else values
        for name, values in load_file(place / "model.safetensors").items()
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def train(options: argparse.Namespace) -> None:
    """Train the rows that are selected and not done yet."""
    changes = {name: getattr(options, name) for name in ("epochs", "batch_size") if getattr(options, name)}
    names = [name for name, *_ in rows() if chosen(name, options.only)]
    train_rows(names, options, changes)


def chosen(name: str, only: Iterable[str]) -> bool:
    """Whether a training is selected: by its name, or by the beginning of it."""
    wanted = list(only)
    return not wanted or any(name == one or name.startswith(f"{one}-") for one in wanted)


def evaluate(options: argparse.Namespace) -> None:
    """The table, and the runs."""
    from negatives_table import evaluate as print_table

    print_table(options.kept, options.data, options.runs)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("prepare")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--most", type=int, help="queries of each collection at most, for a trial")
    one.add_argument("--model", default="all-MiniLM-L6-v2", help="the encoder to begin from; '' writes no weights")
    one.set_defaults(do=prepare)
    one = parts.add_parser("train")
    one.add_argument("prepared", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--weights", type=Path, help="the encoder to begin from, if it is not PREPARED/weights")
    one.add_argument("--done", type=Path, nargs="+", default=[], help="folders with trainings that are done already")
    one.add_argument("--only", nargs="+", default=[], help="names or beginnings of them: negatives-0.5, adversary")
    one.add_argument("--jobs", type=int, default=1, help="so many trainings at a time")
    one.add_argument("--minutes", type=float, default=600.0, help="no training is begun later")
    one.add_argument("--epochs", type=float, help="instead of what was prepared")
    one.add_argument("--batch-size", type=int, help="instead of what was prepared: groups of five pairs")
    one.add_argument("--device")
    one.set_defaults(do=train)
    one = parts.add_parser("evaluate")
    one.add_argument("kept", type=Path)
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--runs", type=Path, help="a folder for TREC runs")
    one.set_defaults(do=evaluate)
    options = parser.parse_args(words)
    options.do(options)


if __name__ == "__main__":
    main()
