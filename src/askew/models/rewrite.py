"""Trained rewriters, which write reformulations of a query: their vocabulary, and how they are saved and loaded.

``acg`` and ``hred-qs`` read and write words (``askew.models.rewrite_networks``); ``seq2seq`` and ``causal`` are
fine-tuned models of transformers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError
from askew.models.find import identify, need
from askew.models.generate import Generator, find_adapter, load_generator
from askew.models.prompts import from_query

ABOUT, WEIGHTS = "rewriter.json", "model.safetensors"
WORD_KINDS, TEXT_KINDS = ("acg", "hred-qs"), ("seq2seq", "causal")
PAD, UNKNOWN, START, END = range(4)
_MARKS = 4
_FORM = 1


def split_words(text: str) -> list[str]:
    """The words between blanks, lower-cased, as published."""
    return text.lower().split()


@dataclass(frozen=True)
class Sizes:
    """The sizes of a network. ``written`` is the size of the output vocabulary, ``read`` of the input vocabulary."""

    embedding: int = 300
    hidden: int = 512
    session: int = 1024
    dropout: float = 0.2
    written: int = 10_000
    read: int = 100_000
    most_words: int = 40

    def __post_init__(self) -> None:
        whole = (self.embedding, self.hidden, self.session, self.written, self.most_words)
        if min(whole) < 1 or self.read < self.written or not 0 <= self.dropout < 1:
            raise ConfigError(
                f"rewriter: expected sizes of 1 or more, read >= written and 0 <= dropout < 1; found {self}"
            )


@dataclass(frozen=True)
class Words:
    """The vocabulary of a network. Numbers below ``written`` can be written; the first four are special tokens."""

    words: tuple[str, ...]
    written: int

    @classmethod
    def of(cls, sources: Sequence[str], targets: Sequence[str], sizes: Sizes) -> Words:
        """The most frequent words of the targets, then of both sides; equally frequent words in alphabetical order."""
        wanted = Counter(word for text in targets for word in split_words(text))
        known = wanted + Counter(word for text in sources for word in split_words(text))
        first = _frequent(wanted)[: sizes.written]
        taken = set(first)
        rest = [word for word in _frequent(known) if word not in taken]
        return cls((*first, *rest[: sizes.read - len(first)]), len(first) + _MARKS)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: i for i, word in enumerate(self.words, start=_MARKS)}

    def __len__(self) -> int:
        return len(self.words) + _MARKS

    def read(self, words: Sequence[str]) -> list[int]:
        """The numbers of words in the input of a network."""
        return [self.numbers.get(word, UNKNOWN) for word in words]

    def extras(self, words: Sequence[str]) -> dict[str, int]:
        """Numbers beyond the output vocabulary for the words of one query that can only be copied."""
        others = dict.fromkeys(word for word in words if self.numbers.get(word, len(self)) >= self.written)
        return {word: self.written + i for i, word in enumerate(others)}

    def write(self, words: Sequence[str], extras: Mapping[str, int]) -> list[int]:
        """The numbers of words in the output of a network; a word that can be neither written nor copied is unknown."""
        found = (self.numbers.get(word, len(self)) for word in words)
        return [
            number if number < self.written else extras.get(word, UNKNOWN)
            for word, number in zip(words, found, strict=True)
        ]

    def text(self, numbers: Sequence[int], extras: Mapping[str, int]) -> str:
        """The text of written numbers."""
        copied = {number: word for word, number in extras.items()}
        return " ".join(copied[one] if one >= self.written else self.words[one - _MARKS] for one in numbers)


def _frequent(counted: Counter[str]) -> list[str]:
    return [word for word, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]


@dataclass(frozen=True)
class WordRewriter:
    """A word network with its vocabulary."""

    kind: str
    network: Any
    words: Words
    sizes: Sizes
    id: str = ""

    @classmethod
    def new(cls, kind: str, words: Words, sizes: Sizes) -> WordRewriter:
        """A new network; its weights depend on the current seed."""
        from askew.models.rewrite_networks import NETWORKS

        return cls(kind, NETWORKS[kind](sizes, len(words), words.written), words, sizes)

    @property
    def copying(self) -> bool:
        """Whether the network can copy words outside its output vocabulary."""
        return self.kind == "acg"

    def session(self, text: str, before: Sequence[str] = ()) -> list[list[str]]:
        """The queries that the network reads, as words: earlier queries (for hred-qs), then the one to rewrite."""
        asked = [*before, text] if self.kind == "hred-qs" else [text]
        cut = [split_words(one)[: self.sizes.most_words] for one in asked]
        return [query for query in cut[:-1] if query] + [cut[-1] or [""]]

    def write(
        self, texts: Sequence[str], before: Sequence[Sequence[str]] | None = None, beams: int = 1,
        batch_size: int = 256,
    ) -> list[list[str]]:  # fmt: skip
        """For each text, at most ``beams`` rewritten texts, the most likely one first."""
        import torch

        from askew.models.rewrite_networks import pad_batch, search

        count_model_calls(len(texts))
        self.network.eval()
        device = next(self.network.parameters()).device
        sessions = [self.session(text, before[i] if before else ()) for i, text in enumerate(texts)]
        made: list[list[str]] = []
        for start in range(0, len(sessions), batch_size):
            some = sessions[start : start + batch_size]
            batch, extras = pad_batch(self.words, some, self.copying)
            batch = {name: one.to(device) if torch.is_tensor(one) else one for name, one in batch.items()}
            with torch.inference_mode():
                known = torch.from_numpy(self.known_extras(extras)).to(device)
                found = search(self.network, batch, beams, known, self.sizes.most_words)
            for lines, extra in zip(found, extras, strict=True):
                made.append([self.words.text(line, extra) for line in lines])
        return made

    def known_extras(self, extras: Sequence[Mapping[str, int]]) -> npt.NDArray[np.int64]:
        """The input number of each extra word of each row; at least one column."""
        numbers = np.full((len(extras), max(1, *map(len, extras))), UNKNOWN, np.int64)
        for row, extra in enumerate(extras):
            numbers[row, : len(extra)] = self.words.read(list(extra))
        return numbers

    def save(self, folder: Path) -> None:
        """Write the weights, the vocabulary and the sizes to a folder."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        about = {"kind": self.kind, "sizes": asdict(self.sizes), "written": self.words.written}
        save_file({name: one.contiguous().cpu() for name, one in self.network.state_dict().items()}, folder / WEIGHTS)
        write_about(folder, {**about, "words": self.words.words})


def shown_to(kind: str, text: str, prefix: str = "") -> str:
    """The prompt of a model of transformers for a query, the same in training and use."""
    return prefix + text if kind == "seq2seq" else from_query(text)


@dataclass(frozen=True)
class TextRewriter:
    """A sequence-to-sequence or causal model fine-tuned to rewrite; ``prefix`` is put before each query."""

    kind: str
    writer: Generator
    prefix: str = ""

    @property
    def id(self) -> str:
        """The identifier of the model, which depends on its weights."""
        return self.writer.id

    def write(
        self, texts: Sequence[str], before: Sequence[Sequence[str]] | None = None, beams: int = 1
    ) -> list[list[str]]:
        """For each text, ``beams`` rewritten texts, the most likely one first. ``before`` is not used."""
        import torch

        model, tokenizer = self.writer.model, self.writer.tokenizer
        options: dict[str, Any] = {"num_beams": beams, "num_return_sequences": beams, "do_sample": False}
        if tokenizer.pad_token_id is None:
            options["pad_token_id"] = tokenizer.eos_token_id
        count_model_calls(len(texts) * beams)
        made = []
        for text in texts:  # one by one: padding would change the last digits of scores, and so sometimes the text
            shown = shown_to(self.kind, text, self.prefix)
            encoded = tokenizer(
                shown, return_tensors="pt", truncation=True, max_length=self.writer.most_tokens,
                add_special_tokens=self.kind == "seq2seq",
            ).to(model.device)  # fmt: skip
            given = 0 if self.kind == "seq2seq" else encoded["input_ids"].shape[1]
            with torch.inference_mode():
                rows = model.generate(**encoded, **options, max_new_tokens=64)
            lines = tokenizer.batch_decode(rows[:, given:], skip_special_tokens=True)
            made.append([one.strip().partition("\n")[0] for one in lines])  # a query is one line
        return made


Rewriter = WordRewriter | TextRewriter


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write ``rewriter.json``, the description of the weights in a folder."""
    text = json.dumps({"form": _FORM, **about}, ensure_ascii=False)
    (folder / ABOUT).write_text(text, encoding="utf-8")


def read_about(folder: str) -> dict[str, Any]:
    """The content of ``rewriter.json`` in a folder."""
    file = Path(folder) / ABOUT
    try:
        about = json.loads(file.read_text(encoding="utf-8"))
        known = about["form"] == _FORM and about["kind"] in (*WORD_KINDS, *TEXT_KINDS)
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ConfigError(f"rewriter {folder!r}: expected a folder with {ABOUT}, written by 'askew train rewriter'")
    return dict(about)


@cache
def load_rewriter(folder: str, device: str | None = None) -> Rewriter:
    """A trained rewriter; each one is loaded once.

    By default a language model uses the GPU if there is one, and a word network uses the CPU.
    """
    about = read_about(folder)
    if about["kind"] == "seq2seq":
        return TextRewriter("seq2seq", load_generator(folder, "seq2seq", device=device), about["prefix"])
    if about["kind"] == "causal":
        adapter = str(find_adapter(folder))
        return TextRewriter("causal", load_generator(about["model"], "causal", adapter, device=device))
    need("torch", f"the rewriter {folder!r}")
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        words, sizes = Words(tuple(about["words"]), about["written"]), Sizes(**about["sizes"])
        made = WordRewriter.new(about["kind"], words, sizes)
        made.network.load_state_dict(load_file(Path(folder) / WEIGHTS))
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(f"rewriter {folder!r}: cannot be loaded ({reason})") from error
    made.network.to(device or "cpu").eval()
    return WordRewriter(about["kind"], made.network, words, sizes, identify(folder))
