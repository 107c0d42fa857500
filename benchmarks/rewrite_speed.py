"""Speed of sampling short texts with SmolLM2-135M: texts a second of three ways to do it, as ratios to the first.

- ``generate``: ``model.generate`` of transformers with ``num_return_sequences``, prompt after prompt.
- ``sample``: ``Generator.sample``, prompt after prompt.
- ``kinds``: ``Generator.sample_kinds``, the prompts of a query in one batch that share the query's part.

``--queries`` is a table with the query in the second column; each query gets 5 prompts with ``--count`` texts. The ways
take turns query by query, so that other work on the machine slows all of them alike; the ratios, taken over the
queries that all ways had (``--slow``), are what to compare.
Also printed: how long loading took, and how far the probabilities of the sampled tokens are from those of 32 bits: the
mean absolute difference of log-probabilities (expected for a token drawn from all), and the mean Kullback-Leibler
divergence of a token.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from askew.models.decode import Llama
from askew.models.generate import SMOLLM, Generator, Sampling, load_generator
from askew.models.prompts import KINDS, kind_ending, query_prefix
from askew.rewrite.rewrite import ADAPTER

ENDINGS = [kind_ending(kind) for kind in KINDS]
HOW = Sampling(max_new_tokens=24, top_k=50, top_p=0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--adapter", default=ADAPTER, help="an adapter that ships, a folder, or none")
    parser.add_argument("--device", default=None)
    parser.add_argument("--number", type=int, default=30, help="queries")
    parser.add_argument("--slow", type=int, default=10, help="queries for generate and sample")
    parser.add_argument("--count", type=int, default=4, help="texts for each prompt")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    started = time.perf_counter()
    adapter = None if options.adapter == "none" else options.adapter
    writer = load_generator(SMOLLM, "causal", adapter, None, options.device)
    network = writer._network
    assert network is not None
    print(f"{writer.id}, {options.threads} threads, {network.dtype}; loaded in {time.perf_counter() - started:.1f} s")
    lines = options.queries.read_text(encoding="utf-8").splitlines()[: options.number]
    prefixes = [query_prefix(line.split("\t")[1]) for line in lines]
    _speed(writer, prefixes, options.slow, options.count)
    _fidelity(writer, prefixes[:6], options.count)


def _speed(writer: Generator, prefixes: list[str], slow: int, count: int) -> None:
    def generate(prefix: str, seed: int) -> None:
        torch.manual_seed(seed)
        for ending in ENDINGS:
            given = writer.tokenizer(prefix + ending, return_tensors="pt").to(writer.model.device)
            writer.model.generate(
                **given, do_sample=True, num_return_sequences=count, max_new_tokens=HOW.max_new_tokens, pad_token_id=2,
                top_k=HOW.top_k, top_p=HOW.top_p, eos_token_id=sorted(writer._ends | writer._breaks | {0}),
            )  # fmt: skip

    def sample(prefix: str, seed: int) -> None:
        for i, ending in enumerate(ENDINGS):
            writer.sample(prefix + ending, count, seed + i, HOW)

    def kinds(prefix: str, seed: int) -> None:
        writer.sample_kinds(prefix, ENDINGS, count, seed, HOW)

    ways: dict[str, Callable[[str, int], None]] = {"generate": generate, "sample": sample, "kinds": kinds}
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for i, prefix in enumerate(prefixes):
        for name, way in ways.items():
            if i >= slow and name != "kinds":
                continue
            with torch.inference_mode():
                if not i:
                    way(prefix, i)
                started = time.perf_counter()
                way(prefix, i)
            spent[name].append(time.perf_counter() - started)
    texts = len(ENDINGS) * count
    print(f"\n{texts} texts for a query\n{'way':26}{'queries':>8}{'texts a second':>16}{'ratio':>8}")
    for name, seconds in spent.items():
        ratio = sum(spent["generate"]) / sum(seconds[:slow])
        print(f"{name:26}{len(seconds):8}{texts * len(seconds) / sum(seconds):16.1f}{ratio:8.1f}")
    if writer.model.device.type == "cuda":
        started = time.perf_counter()
        writer.sample_kinds_many(prefixes, ENDINGS, count, range(len(prefixes)), HOW)
        rate = texts * len(prefixes) / (time.perf_counter() - started)
        print(f"{'kinds, queries together':26}{len(prefixes):8}{rate:16.1f}")


class _Both:
    """A network that samples with 32 bits and keeps how far the fast one is from it, step by step."""

    def __init__(self, exact: Llama, fast: Llama) -> None:
        self.exact, self.fast, self.device = exact, fast, exact.device
        self.divergences: list[float] = []
        self.differences: list[float] = []

    def memory(self, texts: int, columns: int) -> Any:
        return self.exact.memory(texts, columns), self.fast.memory(texts, columns)

    def read(self, tokens: Any, positions: Any, mask: Any, memory: Any, keep: Any | None = None) -> Any:
        found = [
            one.read(tokens, positions, mask, own, keep)
            for one, own in zip((self.exact, self.fast), memory, strict=True)
        ]
        exact, fast = (one.log_softmax(-1) for one in found)
        shares = exact.exp()
        self.divergences += (shares * (exact - fast)).sum(-1).flatten().tolist()
        self.differences += (shares * (exact - fast).abs()).sum(-1).flatten().tolist()
        return found[0]


def _fidelity(writer: Generator, prefixes: list[str], count: int) -> None:
    both = _Both(Llama(writer.model, torch.float32), writer._network)
    other = Generator(writer.id, writer.model, writer.tokenizer, False, writer.most_tokens)
    other.__dict__["_network"] = both
    for i, prefix in enumerate(prefixes):
        other.sample_kinds(prefix, ENDINGS, count, i, HOW)
    steps = len(both.divergences)
    divergence, difference = (sum(one) / steps for one in (both.divergences, both.differences))
    print(f"\n{steps} steps against 32 bits: KL {divergence:.5f}, |log p - log q| {difference:.4f} a token")


if __name__ == "__main__":
    main()
