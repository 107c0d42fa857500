"""The networks of word rewriters, and beam search for their most likely texts. Needs PyTorch when imported.

``acg``      one LSTM encodes the query and another one decodes. Each step attends to the encoded words (Luong's general
             attention) and mixes two distributions: over the words of the vocabulary, and over the words of the query
             to copy. After Dehghani et al. (2017), Learning to Attend, Copy, and Generate.
``hred-qs``  one LSTM encodes each query of a session, a second one encodes the sequence of their vectors, and a third
             one decodes; no attention and no copying. After Sordoni et al. (2015), A Hierarchical Recurrent
             Encoder-Decoder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from askew.models.rewrite import END, PAD, START, UNKNOWN, Sizes, Words

_NEVER = (PAD, UNKNOWN, START)
_LEAST = 1e-20  # keeps the logarithm of an impossible word finite


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


class _Network(nn.Module):  # type: ignore[misc, unused-ignore]
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
