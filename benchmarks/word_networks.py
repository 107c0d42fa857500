"""The recurrent rewriters of RePair's Table 6, which benchmarks/rewriter.py trains. They lose to the original query.

``acg``      one LSTM encodes the query and another one decodes. Each step attends to the encoded words (Luong's general
             attention) and mixes two distributions: over the words of the vocabulary, and over the words of the query
             to copy. After Dehghani et al. (2017), Learning to Attend, Copy, and Generate.
``hred-qs``  one LSTM encodes each query of a session, a second one encodes the sequence of their vectors, and a third
             one decodes; no attention and no copying. After Sordoni et al. (2015), A Hierarchical Recurrent
             Encoder-Decoder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import Trainer, TrainerCallback, TrainingArguments

from askew.core.errors import DataError
from askew.train.common import Schedule, choose_device, run, seed_all
from askew.train.rewriter import digest_of

PAD, UNKNOWN, START, END = range(4)
_MARKS = 4
_NEVER = (PAD, UNKNOWN, START)
_LEAST = 1e-20  # keeps the logarithm of an impossible word finite
Vectors = tuple[Sequence[str], npt.NDArray[np.float32]]
# A function of target texts and written texts; a higher number is better.
Score = Callable[[Sequence[str], Sequence[str]], float]


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


# Section 4 of RePair and the code it runs: LSTMs of 512, one layer, dropout 0.2, embeddings of 300 (fastText, kept as
# they are), a vocabulary of 10,000 for acg and 30,000 for hred-qs, batches of 8, Adam at 0.001, 100 epochs.
SIZES = {"acg": Sizes(), "hred-qs": Sizes(written=30_000)}
PACE = Schedule(100.0, 8, 1e-3, 1, 0.0, 0.0, "constant", 2000)


def pad_batch(
    words: Words, sessions: Sequence[Sequence[Sequence[str]]], copying: bool
) -> tuple[dict[str, Any], list[dict[str, int]]]:
    """Sessions (queries as words, the last is the one to rewrite) as tensors; and the extra words of each session.

    ``source`` (rows, queries, words) has the input numbers, ``lengths`` the number of words of each query (0: no
    query), ``copies`` the output numbers of the words of the last query, and ``extra`` the largest number of extra
    words in a session (0 for a network that does not copy).
    """
    deep = max(len(session) for session in sessions)
    wide = max(len(query) for session in sessions for query in session)
    source, lengths = np.zeros((len(sessions), deep, wide), np.int64), np.zeros((len(sessions), deep), np.int64)
    copies = np.zeros((len(sessions), wide), np.int64)
    extras = [words.extras(session[-1]) if copying else {} for session in sessions]
    for row, session in enumerate(sessions):
        for at, query in enumerate(session, start=deep - len(session)):
            source[row, at, : len(query)] = words.read(query)
            lengths[row, at] = len(query)
        copies[row, : len(session[-1])] = words.write(session[-1], extras[row])
    batch = {"source": source, "lengths": lengths, "copies": copies}
    tensors: dict[str, Any] = {name: torch.from_numpy(values) for name, values in batch.items()}
    return {**tensors, "extra": max(len(one) for one in extras)}, extras


def last_states(lstm: Any, vectors: Any, lengths: Any) -> tuple[Any, tuple[Any, Any]]:
    """All states of an LSTM over rows of different lengths (1 or more), and the last state of each row."""
    packed = pack_padded_sequence(vectors, lengths.cpu(), batch_first=True, enforce_sorted=False)
    states, last = lstm(packed)
    return pad_packed_sequence(states, batch_first=True, total_length=vectors.shape[1])[0], last


def attend(matrix: Any, states: Any, read: Any, there: Any) -> Any:
    """Attention weights over the encoded words for each state: softmax of state x matrix x read, 0 for padding."""
    scores = torch.einsum("bth,bsh->bts", matrix(states), read)
    return torch.softmax(scores.masked_fill(~there[:, None, :], -torch.inf), dim=-1)


def mix(write: Any, weights: Any, gate: Any, copies: Any, extra: int) -> Any:
    """The probability of every word, extra words last: (1 - gate) times writing plus gate times copying."""
    chances = nn.functional.pad(write * (1 - gate), (0, extra))
    return chances.scatter_add(-1, copies[:, None, :].expand_as(weights), weights * gate)


class _Network(nn.Module):
    """The common parts of both networks: embeddings, a decoder, the loss.

    ``begin`` encodes the input and returns the encodings and the first state of the decoder. ``chances`` returns the
    probabilities of the next words after a state.
    """

    def __init__(self, sizes: Sizes, known: int, written: int) -> None:
        super().__init__()
        self.sizes, self.written = sizes, written
        self.embed = nn.Embedding(known, sizes.embedding, padding_idx=PAD)
        self.decoder = nn.LSTM(sizes.embedding, sizes.hidden, batch_first=True)
        self.drop = nn.Dropout(sizes.dropout)

    def forward(self, source: Any, lengths: Any, copies: Any, extra: int, given: Any, wanted: Any) -> dict[str, Any]:
        """The mean loss per target word, with the target words before it as input. PAD does not count."""
        kept, state = self.begin(source, lengths, copies)
        chances, _ = self.chances(kept, state, given, int(extra))
        each = -torch.log(chances.gather(-1, wanted.unsqueeze(-1)).squeeze(-1) + _LEAST)
        there = wanted != PAD
        return {"loss": (each * there).sum() / there.sum()}

    def vectors(self, numbers: Any) -> Any:
        """The embeddings of words, given by their input numbers."""
        return self.drop(self.embed(numbers))


class Acg(_Network):
    """Attention, copying and generating."""

    def __init__(self, sizes: Sizes, known: int, written: int) -> None:
        super().__init__(sizes, known, written)
        self.encoder = nn.LSTM(sizes.embedding, sizes.hidden, batch_first=True)
        self.attention = nn.Linear(sizes.hidden, sizes.hidden, bias=False)
        self.join = nn.Linear(2 * sizes.hidden, sizes.hidden, bias=False)
        self.out = nn.Linear(sizes.hidden, written)
        self.gate = nn.Linear(sizes.hidden, 1)

    def begin(self, source: Any, lengths: Any, copies: Any) -> tuple[Any, Any]:
        """Encode the last query of each session."""
        read, last = last_states(self.encoder, self.vectors(source[:, -1]), lengths[:, -1])
        there = torch.arange(source.shape[-1], device=source.device) < lengths[:, -1:]
        return (read, there, copies), last

    def chances(self, kept: Any, state: Any, given: Any, extra: int) -> tuple[Any, Any]:
        """The probability of every word to follow each given word."""
        read, there, copies = kept
        states, state = self.decoder(self.vectors(given), state)
        weights = attend(self.attention, states, read, there)
        seen = torch.einsum("bts,bsh->bth", weights, read)
        joined = self.drop(torch.tanh(self.join(torch.cat([seen, states], dim=-1))))
        write = torch.softmax(self.out(joined), dim=-1)
        return mix(write, weights, torch.sigmoid(self.gate(joined)), copies, extra), state


class HredQs(_Network):
    """A hierarchical recurrent encoder and decoder."""

    def __init__(self, sizes: Sizes, known: int, written: int) -> None:
        super().__init__(sizes, known, written)
        self.encoder = nn.LSTM(sizes.embedding, sizes.hidden, batch_first=True)
        self.session = nn.LSTM(sizes.hidden, sizes.session, batch_first=True)
        self.start = nn.Linear(sizes.session, 2 * sizes.hidden)
        self.join = nn.Linear(sizes.hidden + sizes.embedding, sizes.embedding)
        self.out = nn.Linear(sizes.embedding, written)

    def begin(self, source: Any, lengths: Any, copies: Any) -> tuple[Any, Any]:
        """Encode all queries of each session, first to last."""
        real = lengths > 0
        _, (queries, _) = last_states(self.encoder, self.vectors(source[real]), lengths[real])
        count = real.sum(dim=1)
        # The queries of a session are at the end of its row; the second LSTM needs them at the front.
        front = torch.arange(real.shape[1], device=real.device) < count[:, None]
        rows = torch.zeros(*real.shape, self.sizes.hidden, device=source.device, dtype=queries.dtype)
        rows[front] = queries[0]
        _, (session, _) = last_states(self.session, rows, count)
        first = torch.tanh(self.start(self.drop(session))).chunk(2, dim=-1)
        return (), tuple(part.contiguous() for part in first)

    def chances(self, kept: Any, state: Any, given: Any, extra: int) -> tuple[Any, Any]:
        """The probability of every word to follow each given word."""
        vectors = self.vectors(given)
        states, state = self.decoder(vectors, state)
        joined = self.join(self.drop(torch.cat([states, vectors], dim=-1)))
        return torch.softmax(self.out(joined), dim=-1), state


def search(network: Any, batch: Mapping[str, Any], beams: int, known: Any, most: int) -> list[list[list[int]]]:
    """Beam search: for each row, the most likely texts as word numbers, best first by mean log probability per word.

    ``known`` (rows, extras) has the input number of each extra word, for the step after it is written.
    """
    device, rows = batch["source"].device, len(batch["source"])
    kept, state = network.begin(batch["source"], batch["lengths"], batch["copies"])
    kept = tuple(one.repeat_interleave(beams, dim=0) for one in kept)
    state = tuple(one.repeat_interleave(beams, dim=1) for one in state)
    totals = torch.full((rows, beams), -torch.inf, device=device)
    totals[:, 0] = 0.0
    made = torch.zeros((rows, beams, 0), dtype=torch.long, device=device)
    done = torch.zeros((rows, beams), dtype=torch.bool, device=device)
    given = torch.full((rows * beams, 1), START, device=device)
    for _ in range(most):
        chances, state = network.chances(kept, state, given, batch["extra"])
        logs = torch.log(chances[:, 0] + _LEAST)
        logs[:, _NEVER] = -torch.inf
        logs = logs.view(rows, beams, -1)
        logs[done] = -torch.inf
        logs[..., PAD] = torch.where(done, 0.0, logs[..., PAD])  # a finished text stays as it is
        totals, places = (totals.unsqueeze(-1) + logs).view(rows, -1).topk(beams, dim=1)
        beam, word = places // logs.shape[-1], places % logs.shape[-1]
        made = torch.cat([made.gather(1, beam.unsqueeze(-1).expand(-1, -1, made.shape[-1])), word.unsqueeze(-1)], -1)
        done = done.gather(1, beam) | (word == END)
        order = (beam + beams * torch.arange(rows, device=device).unsqueeze(1)).view(-1)
        state = tuple(one[:, order] for one in state)
        copied = known.gather(1, (word - network.written).clamp(min=0))
        given = torch.where(word < network.written, word, copied).view(-1, 1)
        if bool(done.all()):
            break
    lengths = (made != PAD).sum(-1).clamp(min=1)
    best = torch.sort(totals / lengths, dim=1, descending=True, stable=True)
    found = made.gather(1, best.indices.unsqueeze(-1).expand_as(made)).cpu().numpy()
    possible = torch.isfinite(best.values).sum(1).tolist()  # with more beams than texts, some beams have none
    return [[[int(n) for n in line if n not in (PAD, END)] for line in found[i, : possible[i]]] for i in range(rows)]


NETWORKS = {"acg": Acg, "hred-qs": HredQs}


@dataclass(frozen=True)
class WordRewriter:
    """A word network with its vocabulary."""

    kind: str
    network: Any
    words: Words
    sizes: Sizes

    @classmethod
    def new(cls, kind: str, words: Words, sizes: Sizes) -> WordRewriter:
        """A new network; its weights depend on the current seed."""
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


def fit_words(
    kind: str,
    pairs: pl.DataFrame,
    pace: Schedule,
    work: Path,
    dev: pl.DataFrame,
    score: Score,
    vectors: Vectors | None = None,
    sizes: Sizes | None = None,
    device: str | None = None,
) -> WordRewriter:
    """Train a network on pairs and keep the weights of the epoch with the best score on ``dev``."""
    where = choose_device(device)
    seed_all(pace.seed)
    sizes = sizes or SIZES[kind]
    if vectors is not None:
        sizes = replace(sizes, embedding=vectors[1].shape[1])
    made = WordRewriter.new(kind, Words.of(pairs["original_text"].to_list(), pairs["text"].to_list(), sizes), sizes)
    if vectors is not None:
        set_vectors(made, vectors)
    made.network.to(where)
    rows = _WordRows(made, pairs)
    arguments = TrainingArguments(**pace.arguments(work, where), remove_unused_columns=False)
    trainer = Trainer(model=made.network, args=arguments, train_dataset=rows, data_collator=rows.collate)
    # The loss of the network is already a mean over the batch.
    trainer.model_accepts_loss_kwargs = False
    best = _Best(made, dev, score)
    trainer.add_callback(best)
    run(
        trainer,
        pace,
        {
            "data": digest_of(pairs),
            "kind": kind,
            **asdict(sizes),
        },
        None,
    )
    made.network.load_state_dict(best.weights)
    made.network.eval()
    return made


def set_vectors(made: WordRewriter, vectors: Vectors) -> None:
    """Set the embeddings of known words from vectors, and freeze all embeddings, as published."""
    places = {word: i for i, word in enumerate(vectors[0])}
    pairs = [(number, places[word]) for word, number in made.words.numbers.items() if word in places]
    if not pairs:
        raise DataError("vectors: no word of the training queries has a vector; are the words lower-cased?")
    numbers, rows = np.array(pairs).T
    table = made.network.embed.weight
    with torch.no_grad():
        # Words without a vector keep their random embedding, with the scale of the vectors.
        table *= float(np.std(vectors[1]))
        table[torch.from_numpy(numbers)] = torch.from_numpy(np.asarray(vectors[1][rows], np.float32))
    table.requires_grad_(False)


class _WordRows:
    """A dataset of example numbers; ``collate`` makes batches from them."""

    def __init__(self, made: WordRewriter, pairs: pl.DataFrame) -> None:
        self._words, self._copying = made.words, made.copying
        self._sessions = [made.session(text) for text in pairs["original_text"]]
        most = made.sizes.most_words - 1  # room for the end
        self._targets = [split_words(text)[:most] for text in pairs["text"]]

    def __len__(self) -> int:
        return len(self._targets)

    def __getitem__(self, number: int) -> int:
        return number

    def collate(self, numbers: Sequence[int]) -> dict[str, Any]:
        """The inputs of the network, the words given to the decoder, and the words that it has to write."""
        batch, extras = pad_batch(self._words, [self._sessions[number] for number in numbers], self._copying)
        targets = [self._targets[number] for number in numbers]
        given = np.zeros((len(targets), 1 + max(len(target) for target in targets)), np.int64)
        wanted = np.zeros_like(given)
        for row, (target, extra) in enumerate(zip(targets, extras, strict=True)):
            given[row, : len(target) + 1] = [START, *self._words.read(target)]
            wanted[row, : len(target) + 1] = [*self._words.write(target, extra), END]
        return {**batch, "given": torch.from_numpy(given), "wanted": torch.from_numpy(wanted)}


class _Best(TrainerCallback):
    """Rewrites the queries of ``dev`` after each epoch and keeps the weights of the best epoch."""

    def __init__(self, made: WordRewriter, dev: pl.DataFrame, score: Score) -> None:
        self._made, self._dev, self._score = made, dev, score
        self.value, self.weights = -np.inf, {}

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        value = self._score(
            self._dev["text"].to_list(), [lines[0] for lines in self._made.write(self._dev["original_text"].to_list())]
        )
        if value > self.value:
            self.value = value
            self.weights = {name: one.detach().clone() for name, one in self._made.network.state_dict().items()}
