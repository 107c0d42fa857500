"""Reformulations and encoded passages a second on one device, to be compared between a CPU and a GPU.

``--weights shipped`` takes SmolLM2-135M with the adapter of the method ``rewrite``, and all-MiniLM-L6-v2 (their
packages must be installed). ``--weights random`` takes models of the same shapes with random weights, for a machine
that has none: the work for a token is the same; every text then has ``--tokens`` tokens, for no model ends it. Random
passages have 80 tokens each, about the mean of MS MARCO.

    python benchmarks/gpu.py --device cpu --threads 2
    python benchmarks/gpu.py --device cuda --weights random

Needs torch, transformers and numpy; with shipped weights also gguf, sentence-transformers and the weights.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

# Also where askew is a source tree that nobody has installed.
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

from askew.models.find import halving
from askew.models.generate import SMOLLM, Generator, Sampling, load_generator
from askew.models.prompts import KINDS, kind_ending, query_prefix

ENDINGS = [kind_ending(kind) for kind in KINDS]
WORDS = "how long does it take for a nurse to become head of a ward in a public hospital".split()  # noqa: SIM905
_PASSAGE = 80
# The adapter of the method rewrite, by name: its module would load more of askew.
ADAPTER = "smollm2-rewrite"


class WordTokenizer:
    """Stands in for a tokenizer: each word is a token."""

    chat_template, all_special_ids, unk_token_id = None, (0,), 1

    def __init__(self, size: int) -> None:
        self._size = size

    def __call__(self, text: str, max_length: int, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [2 + hash(word) % (self._size - 2) for word in text.split()][:max_length]}

    def get_vocab(self) -> dict[str, int]:
        return {}

    def decode(self, tokens: Sequence[int]) -> str:
        return " ".join(map(str, tokens))

    def batch_decode(self, rows: Sequence[Sequence[int]], **_: Any) -> list[str]:
        return [self.decode(row) for row in rows]


def random_writer(device: str) -> Generator:
    """A network of the shape of SmolLM2-135M."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=2048, tie_word_embeddings=True,
    )  # fmt: skip
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval().to(device)
    return Generator("SmolLM2-135M, random weights", model, WordTokenizer(config.vocab_size), False, 2048)


def queries(count: int) -> list[str]:
    """Queries of 3 to 9 words."""
    return [" ".join(WORDS[(7 * row + at) % len(WORDS)] for at in range(3 + row % 7)) for row in range(count)]


def write(writer: Generator, options: argparse.Namespace) -> None:
    """Texts a second, for each query all kinds with their samples."""
    how = Sampling(options.tokens, 1, 50, 0.95, 1.0)
    prefixes = [query_prefix(text) for text in queries(options.queries)]
    # The first calls load kernels; they are not counted.
    writer.sample_kinds_many(prefixes[:1], ENDINGS, options.samples, [0], how)
    ready(options.device)
    began = time.perf_counter()
    made = writer.sample_kinds_many(prefixes, ENDINGS, options.samples, list(range(len(prefixes))), how)
    ready(options.device)
    seconds = time.perf_counter() - began
    texts = [text for kinds in made for kind in kinds for text in kind]
    words = sum(len(text.split()) for text in texts) / len(texts)
    print(
        f"rewrite: {writer.id}: {len(texts):,} texts of {len(prefixes):,} queries in {seconds:.1f} s: "
        f"{len(texts) / seconds:,.1f} texts a second ({words:.1f} words each)"
    )


def encode(options: argparse.Namespace) -> None:
    """Passages a second."""
    name, work = (shipped_encoder if options.weights == "shipped" else random_encoder)(options)
    work(min(options.passages, 2 * options.batch))
    ready(options.device)
    began = time.perf_counter()
    work(options.passages)
    ready(options.device)
    seconds = time.perf_counter() - began
    print(
        f"encode: {name}: {options.passages:,} passages in {seconds:.1f} s: "
        f"{options.passages / seconds:,.1f} passages a second, batches of {options.batch}"
    )


def shipped_encoder(options: argparse.Namespace) -> tuple[str, Any]:
    """all-MiniLM-L6-v2 through sentence-transformers, as the ranker dense uses it."""
    from askew.models import MINILM, load_model

    model = load_model("dense", MINILM, None, options.device)
    text = " ".join(WORDS[at % len(WORDS)] for at in range(60))

    def work(count: int) -> None:
        texts = [f"{text} {row}" for row in range(count)]
        halving(model, options.batch, lambda size: model.encode(texts, batch_size=size, show_progress_bar=False))

    return MINILM, work


def random_encoder(options: argparse.Namespace) -> tuple[str, Any]:
    """A network of the same shape."""
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
    torch.manual_seed(0)
    model = BertModel(config).eval().to(options.device)

    def encoded(count: int, size: int) -> None:
        with torch.inference_mode():
            for start in range(0, count, size):
                tokens = torch.randint(1000, config.vocab_size, (min(size, count - start), _PASSAGE))
                model(tokens.to(options.device)).last_hidden_state.mean(1).cpu()

    return "the shape of all-MiniLM-L6-v2, random weights", lambda count: halving(
        model, options.batch, lambda size: encoded(count, size)
    )


def ready(device: str) -> None:
    """Wait until a GPU has done what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--weights", choices=["shipped", "random"], default="shipped")
    parser.add_argument("--queries", type=int, default=64)
    parser.add_argument("--samples", type=int, default=4, help="texts of each kind")
    parser.add_argument("--tokens", type=int, default=32, help="most tokens of a text")
    parser.add_argument("--passages", type=int, default=2048)
    parser.add_argument("--batch", type=int, default=64, help="passages at a time")
    parser.add_argument("--threads", type=int, default=2, help="threads on the CPU")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    named = torch.cuda.get_device_name() if options.device.startswith("cuda") else f"{options.threads} CPU threads"
    print(f"{named}, torch {torch.__version__}")
    if options.weights == "shipped":
        write(load_generator(SMOLLM, "causal", ADAPTER, None, options.device), options)
    else:
        write(random_writer(options.device), options)
    encode(options)


if __name__ == "__main__":
    main()
