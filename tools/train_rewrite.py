"""Train the adapter of SmolLM2-135M-Instruct that rewrites queries.

    python tools/train_rewrite.py --rewrites FILE --labels FILE --queries FILE ... --equivalence ADAPTER --out FOLDER

1. Supervised: each query with its five rewrites gives texts in all directions, with the wanted kind in the prompt.
2. The model writes texts for queries without rewrites (``plain.txt``, web queries to train on, and ``--queries``: files
   of lines "id TAB text"). The equivalence model (``tools/train_equivalence.py``) and some rules reward them.
3. Preferences: pairs of texts with a high and a low reward; direct preference optimization.

The adapters go to ``FOLDER/supervised`` and ``FOLDER``, each with ``training.json``. ``--start`` takes the adapter of
an earlier supervised training. Without ``--equivalence`` the program ends after step 1. A GPU takes some minutes.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from training.data import (
    Reformulations,
    Row,
    choose_device,
    read_lines,
    read_reformulations,
    rows_by_collection,
    say,
    write_training,
)
from training.options import make_parser, settings_of
from training.preferences import Preference, Sample, limit, make_pairs
from training.rewriting import Base, train_preferences, train_supervised
from training.sampling import sample_texts

from askew.core.local import without_local_paths
from askew.models.find import MINILM
from askew.models.generate import SMOLLM, load_generator
from askew.trainers.low_rank import read_peft_tensors, save_peft_adapter

HUB_ID = f"HuggingFaceTB/{SMOLLM}"


@dataclass(frozen=True)
class Settings:
    """How the model is trained: the values of the adapter that askew ships."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.1
    most_tokens: int = 64
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    # Supervised
    epochs: int = 2
    learning_rate: float = 1e-3
    batch_size: int = 128
    warmup: float = 0.05
    more_directions: int = 5
    lower_case: float = 0.3
    # Sampled texts
    queries_per_file: int = 3000
    samples_per_kind: int = 6
    temperature: float = 1.0
    top_p: float = 0.95
    top_k: int = 50
    most_new_tokens: int = 28
    queries_at_once: int = 400
    # Pairs
    least_reward: float = 0.7
    least_margin: float = 0.35
    chosen_per_kind: int = 2
    most_pairs: int = 24_000
    # Preferences
    preference_epochs: int = 1
    preference_learning_rate: float = 1e-4
    preference_batch_size: int = 64
    preference_warmup: float = 0.1
    beta: float = 0.1
    chosen_weight: float = 0.2


def query_pool(data: Reformulations, plain: Sequence[str], files: Sequence[Path], most: int, seed: int) -> list[str]:
    """The queries to write texts for: web queries, plain ones, and some of each file that have no rewrites."""
    chance, lines = random.Random(seed), list(plain)
    known = {row["query"] for row in [*data.rewrites, *data.labels]}
    for file in files:
        texts = [line.partition("\t")[2].strip() for line in read_lines(file)]
        fresh = [text for text in texts if text and text not in known]
        lines += chance.sample(fresh, min(most, len(fresh)))
    found = data.training_queries(lines)
    chance.shuffle(found)
    return found


def reward(samples: Sequence[Sample], queries: Sequence[str], adapter: str, encoder: str, device: str) -> list[float]:
    """The reward of each sample: see ``training.preferences``."""
    from scipy.special import expit

    from askew.models.adapted import find_encoder_adapter
    from askew.models.pair_network import load_pair_network, pair_logits

    network, tokenizer = load_pair_network(encoder, find_encoder_adapter(adapter, "an equivalence adapter"), device)
    pairs = list(dict.fromkeys((queries[one.query], one.text) for one in samples))
    logits = pair_logits(network, tokenizer, [a for a, _ in pairs], [b for _, b in pairs], 1024)
    scores = dict(zip(pairs, expit(logits).min(axis=1).tolist(), strict=True))
    return [min(scores[queries[one.query], one.text], limit(queries[one.query], one.kind, one.text)) for one in samples]


def find_pairs(
    base: Base, tensors: Mapping[str, Any], queries: Sequence[str], settings: Settings, given: argparse.Namespace
) -> list[Preference]:
    """Pairs of texts that the model of the first training writes."""
    samples = sample_texts(base.merged(tensors, settings), base.tokenizer, queries, settings, given.seed + 1)
    say(f"{len(samples):,} texts for {len(queries):,} queries")
    rewards = reward(samples, queries, given.equivalence, given.encoder, base.device)
    good = sum(one >= settings.least_reward for one in rewards) / len(rewards)
    pairs = make_pairs(samples, rewards, queries, settings, random.Random(given.seed))
    say(f"mean reward {sum(rewards) / len(rewards):.3f}, {good:.3f} of {settings.least_reward} or more; pairs by kind:"
        f" {dict(Counter(one.kind for one in pairs))}")  # fmt: skip
    return pairs


def supervised(
    base: Base, data: Reformulations, dev: Sequence[Row], settings: Settings, given: argparse.Namespace
) -> dict[str, Any]:
    """Train on rewrites, and write the adapter."""
    rows = data.training_rewrites()
    say(f"queries with rewrites: {rows_by_collection(rows)}")
    tensors, measured = train_supervised(base, rows, dev, settings, given.seed, say)
    write(given.out / "supervised" if given.equivalence else given.out, tensors, settings, {
        **facts(settings, given), "data": rows_by_collection(rows), "losses": measured,
    }, base.device)  # fmt: skip
    return tensors


def facts(settings: Settings, given: argparse.Namespace) -> dict[str, Any]:
    """What is known before training."""
    base = HUB_ID if given.model == SMOLLM else without_local_paths(given.model)
    return {"program": "tools/train_rewrite.py", "base": base, "settings": asdict(settings), "seed": given.seed}


def write(folder: Path, tensors: Mapping[str, Any], settings: Settings, told: Mapping[str, Any], device: str) -> None:
    """The adapter and ``training.json``."""
    save_peft_adapter(folder, tensors, told["base"], settings.alpha, settings.dropout)
    write_training(folder, told, device)
    say(f"written: {folder}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, Settings)
    parser.add_argument("--rewrites", type=Path, help="further queries with rewrites, as in queries.jsonl")
    parser.add_argument(
        "--labels", type=Path, help="further labeled candidates; their dev and test queries are held out"
    )
    parser.add_argument("--queries", type=Path, nargs="*", default=[], help="files of lines: id TAB text")
    parser.add_argument("--equivalence", help="the adapter of the equivalence model, by name or folder")
    parser.add_argument("--start", type=Path, help="the folder of a supervised adapter; it is not trained again")
    parser.add_argument("--model", default=SMOLLM, help="the base model by name or folder")
    parser.add_argument("--encoder", default=MINILM, help="the base model of the equivalence model")
    given = parser.parse_args(arguments)
    settings = settings_of(given, Settings)
    data = read_reformulations(given.made, given.rewrites, given.labels)
    dev = [row for row in data.rewrites if row["split"] == "dev"]
    loaded = load_generator(given.model, "causal")
    base = Base(loaded.model, loaded.tokenizer, choose_device(given.device))
    tensors = read_peft_tensors(given.start) if given.start else supervised(base, data, dev, settings, given)
    if not given.equivalence:
        return
    plain = read_lines(given.made / "plain.txt")
    queries = query_pool(data, plain, given.queries, settings.queries_per_file, given.seed)
    pairs = find_pairs(base, tensors, queries, settings, given)
    preferred, measured = train_preferences(base, tensors, pairs, dev, settings, given.seed, say)
    write(given.out, preferred, settings, {
        **facts(settings, given), "data": rows_by_collection(data.training_rewrites()),
        "sampled queries": len(queries), "pairs": len(pairs), "losses": measured,
    }, base.device)  # fmt: skip


if __name__ == "__main__":
    main()
