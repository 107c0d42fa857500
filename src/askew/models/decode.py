"""Sample tokens: choose one token per row, and decode many short texts that share a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from askew.core.errors import ConfigError

if TYPE_CHECKING:
    from askew.models.llama import Llama

_BLOCK = 64


@dataclass(frozen=True)
class Sampling:
    """Sampling settings. ``top_k=0`` and ``top_p=1`` allow all tokens; ``temperature=0`` takes the likeliest token."""

    max_new_tokens: int = 32
    min_new_tokens: int = 1
    top_k: int = 10
    top_p: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        fine = 0 < self.top_p <= 1 and 0 <= self.temperature < math.inf and self.top_k >= 0
        if not fine or not 0 <= self.min_new_tokens <= self.max_new_tokens or self.max_new_tokens < 1:
            raise ConfigError(
                "sampling: expected 0 < top_p <= 1, temperature >= 0, top_k >= 0 and "
                f"0 <= min_new_tokens <= max_new_tokens; found {self}"
            )


@dataclass(frozen=True)
class Stops:
    """Tokens that end a text: ``ends`` do not belong to the text, ``breaks`` (tokens with a line break) do."""

    ends: frozenset[int]
    breaks: frozenset[int] = frozenset()


def noise(seed: int, rows: int, how: Sampling) -> Any:
    """A random number between 0 and 1 for each step and row, drawn on the CPU so that it is the same on all devices."""
    import torch

    return torch.rand(how.max_new_tokens, rows, generator=torch.Generator(device="cpu").manual_seed(seed))


def choose(logits: Any, drawn: Any, how: Sampling, stops: Stops, step: int) -> Any:
    """Choose one token for each row of logits, by the random number of the row."""
    import torch

    if step < how.min_new_tokens:
        logits = logits.clone()
        logits[:, sorted(stops.ends | stops.breaks)] = -torch.inf
    if how.temperature == 0:
        return logits.argmax(dim=-1)
    best, tokens = _largest(logits, how.top_k or logits.shape[-1])
    shares = torch.softmax(best / how.temperature, dim=-1)
    # A token is excluded if the tokens before it already reach top_p; the first one is always kept.
    shares[torch.cumsum(shares, dim=-1) - shares >= how.top_p] = 0.0
    reached = torch.cumsum(shares, dim=-1)
    at = (reached <= drawn.unsqueeze(-1) * reached[:, -1:]).sum(-1, keepdim=True)
    # Rounding must not select a position after the last allowed token.
    at = torch.minimum(at, (shares > 0).sum(-1, keepdim=True) - 1)
    return tokens.gather(-1, at).squeeze(-1)


def _largest(logits: Any, count: int) -> tuple[Any, Any]:
    """The largest logits of each row in descending order, and their tokens.

    They are in the blocks with the largest maxima, so only these blocks of a large vocabulary are searched.
    """
    rows, width = logits.shape
    count = min(count, width)
    if width % _BLOCK or count * _BLOCK * 2 > width:
        best, tokens = logits.topk(count)
        return best, tokens
    blocks = logits.view(rows, -1, _BLOCK)
    chosen = blocks.amax(-1).topk(count).indices
    near = blocks.gather(1, chosen.unsqueeze(-1).expand(-1, -1, _BLOCK)).flatten(1)
    best, at = near.topk(count)
    return best, chosen.gather(1, at // _BLOCK) * _BLOCK + at % _BLOCK


@dataclass(frozen=True)
class _Layout:
    """The columns of prompts in one memory: the prefix, then each ending.

    ``owner`` is the ending of a column, -1 for the prefix.
    """

    positions: Any
    owner: Any
    last: Any
    starts: Any

    @classmethod
    def of(cls, prefix: int, endings: Sequence[Sequence[int]], device: Any) -> _Layout:
        import torch

        positions, owner = list(range(prefix)), [-1] * prefix
        last, starts = [], []
        for j, ending in enumerate(endings):
            positions += range(prefix, prefix + len(ending))
            owner += [j] * len(ending)
            last.append(len(owner) - 1 if ending else prefix - 1)
            starts.append(prefix + len(ending))
        return cls(*(torch.tensor(one, device=device) for one in (positions, owner, last, starts)))

    def seen_by(self, ending: Any) -> Any:
        """Which columns belong to the prompt with the given ending: (rows, columns)."""
        return (self.owner == -1) | (self.owner == ending.unsqueeze(-1))


@dataclass(frozen=True)
class _Fill:
    """The left padding of each prefix; ``widths`` is None if all prefixes have the same length."""

    widths: Any | None

    @classmethod
    def of(cls, prefixes: Sequence[Sequence[int]], longest: int, device: Any) -> _Fill:
        import torch

        widths = [longest - len(one) for one in prefixes]
        return cls(torch.tensor(widths, device=device).unsqueeze(-1) if any(widths) else None)

    def places(self, positions: Any) -> Any:
        """The positions of each text, counted from its first token."""
        return positions if self.widths is None else (positions - self.widths).clamp(min=0)

    def mask(self, visible: Any, own: Any | None = None) -> Any:
        """The attention mask of each text. ``own`` is the column of each row; padding sees itself, as every row needs
        at least one visible column.
        """
        if self.widths is None:
            return _mask(visible)
        import torch

        columns = torch.arange(visible.shape[-1], device=visible.device)
        shown = visible & (columns >= self.widths).unsqueeze(1)
        if own is not None:
            shown = shown | (columns == own.unsqueeze(-1))
        return _mask(shown).unsqueeze(1)


def decode(
    network: Llama, prefixes: Sequence[Sequence[int]], endings: Sequence[Sequence[int]], count: int,
    seeds: Sequence[int], how: Sampling, stops: Stops,
) -> list[list[list[int]]]:  # fmt: skip
    """The tokens of ``count`` texts for each prefix and ending, in the order of the endings.

    Shorter prefixes are padded on the left. Prompts are read once. All prefixes have the same rows, so a row leaves the
    batch when its text has ended for every prefix.
    """
    import torch

    device, rows = network.device, len(endings) * count
    longest = max(map(len, prefixes))
    layout = _Layout.of(longest, endings, device)
    columns = len(layout.owner)
    memory = network.memory(len(prefixes), columns + rows * how.max_new_tokens)
    fill = _Fill.of(prefixes, longest, device)
    tokens = torch.tensor([[*[0] * (longest - len(one)), *one, *(t for e in endings for t in e)] for one in prefixes])
    order = torch.arange(columns, device=device)
    visible = layout.seen_by(layout.owner) & (order <= order.unsqueeze(-1))
    logits = network.read(
        tokens.to(device), fill.places(layout.positions), fill.mask(visible, order), memory, layout.last
    )
    logits = logits.repeat_interleave(count, dim=1)
    ending_of = torch.arange(len(endings), device=device).repeat_interleave(count)
    seen, positions = layout.seen_by(ending_of), layout.starts[ending_of]
    drawn = torch.stack([noise(seed, rows, how) for seed in seeds], dim=1).to(device)
    written: list[list[list[int]]] = [[[] for _ in range(rows)] for _ in prefixes]
    open_rows = [[True] * rows for _ in prefixes]
    live = list(range(rows))
    for step in range(how.max_new_tokens):
        chosen = choose(logits.flatten(0, 1), drawn[step][:, live].flatten(), how, stops, step).view(-1, len(live))
        for texts, is_open, found in zip(written, open_rows, chosen.tolist(), strict=True):
            append_tokens(texts, is_open, live, found, stops)
        kept = [i for i, row in enumerate(live) if any(one[row] for one in open_rows)]
        if not kept or step + 1 == how.max_new_tokens:
            break
        if len(kept) < len(live):
            live, chosen, seen, positions = [live[i] for i in kept], chosen[:, kept], seen[kept], positions[kept]
        seen = torch.cat([seen, torch.eye(len(live), dtype=torch.bool, device=device)], dim=1)
        logits = network.read(chosen, fill.places(positions), fill.mask(seen), memory)
        positions = positions + 1
    return written


def append_tokens(
    texts: list[list[int]], is_open: list[bool], live: Sequence[int], tokens: list[int], stops: Stops
) -> None:
    """Append one token to each text that is still open, and close the texts that end with it."""
    for row, token in zip(live, tokens, strict=True):
        if is_open[row] and token not in stops.ends:
            texts[row].append(token)
        is_open[row] = is_open[row] and token not in stops.ends and token not in stops.breaks


def _mask(visible: Any) -> Any:
    import torch

    return torch.zeros(visible.shape, device=visible.device).masked_fill_(~visible, -torch.inf)
