"""Sample tokens: choose one token per row, and decode many short texts that share a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from askew.core.errors import ConfigError

# A fast Llama network for sampling, with fused weights and a shared cache of keys and values.

_LARGE = 20_000_000  # weights; a smaller network gains nothing from 16 bits
_ROPES = ("default", "linear", "llama3")


def can_decode(model: Any) -> bool:
    """Whether a model of transformers is a plain Llama, which the class ``Llama`` supports."""
    config = model.config
    rope = getattr(config, "rope_parameters", None) or {}
    return (
        type(model).__name__ == "LlamaForCausalLM"
        and not (config.attention_bias or config.mlp_bias)
        and config.hidden_act == "silu"
        and rope.get("rope_type", "default") in _ROPES
        and all(weight.is_floating_point() for weight in model.parameters())
    )


def fast_dtype(device: Any, weights: int) -> Any:
    """The data type that is fastest on a device without a visible change of the generated texts."""
    import torch

    if weights < _LARGE:
        return torch.float32
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
    native = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)
    return torch.bfloat16 if device.type == "cpu" and native() else torch.float32


@dataclass
class Memory:
    """Cached keys and values, (layer, text, head, column, size); the first ``used`` columns are filled."""

    keys: Any
    values: Any
    used: int = 0


class Llama:
    """The weights of a Llama model, prepared for decoding.

    A pass reads the same number of tokens for one or more texts; a mask says which columns of the memory each token
    can see. Samples and prompt endings are columns of one memory, so their shared prefix is stored once.
    """

    def __init__(self, model: Any, dtype: Any | None = None) -> None:
        import torch

        config, inner = model.config, model.model
        weights = sum(parameter.numel() for parameter in model.parameters())
        self.device, self.dtype = model.device, dtype or fast_dtype(model.device, weights)
        self._heads, self._shared = config.num_attention_heads, config.num_key_value_heads
        self._size = inner.layers[0].self_attn.head_dim
        self._eps = config.rms_norm_eps
        self._embedding = inner.embed_tokens.weight.detach().float()
        with torch.inference_mode():
            self._layers = [self._prepare(layer) for layer in inner.layers]
            self._norm = inner.norm.weight.detach().float()
            self._head = _linear(model.lm_head.weight, self.dtype)
        self._speeds = inner.rotary_emb.inv_freq.detach().float()

    def _prepare(self, layer: Any) -> tuple[Any, ...]:
        import torch

        attention, mlp = layer.self_attn, layer.mlp

        def paired(weight: Any, heads: int) -> Any:
            """Make rotated pairs adjacent, so that a rotation is one product of complex numbers."""
            halves = weight.detach().float().view(heads, 2, self._size // 2, -1)
            return halves.transpose(1, 2).reshape(heads * self._size, -1)

        query = paired(attention.q_proj.weight, self._heads) * self._size**-0.5
        key = paired(attention.k_proj.weight, self._shared)
        read = torch.cat([query, key, attention.v_proj.weight.float()])
        gates = torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight])
        norms = (layer.input_layernorm.weight.detach().float(), layer.post_attention_layernorm.weight.detach().float())
        linears = [_linear(part, self.dtype) for part in (read, attention.o_proj.weight, gates, mlp.down_proj.weight)]
        return (*norms, *linears)

    def memory(self, texts: int, columns: int) -> Memory:
        """An empty memory."""
        import torch

        # In 32 bits on the CPU, because attention is not faster there in 16 bits.
        dtype = torch.float32 if self.device.type == "cpu" else self.dtype
        shape = (len(self._layers), texts, self._shared, columns, self._size)
        return Memory(*(torch.empty(shape, dtype=dtype, device=self.device) for _ in range(2)))

    def read(self, tokens: Any, positions: Any, mask: Any, memory: Memory, keep: Any | None = None) -> Any:
        """The logits after each token, (texts, tokens, vocabulary); ``keep`` are the positions to return."""
        states = self.states(tokens, positions, mask, memory)
        return self._head(states if keep is None else states[:, keep]).float()

    def states(self, tokens: Any, positions: Any, mask: Any, memory: Memory) -> Any:
        """The hidden states after each token, (texts, tokens, width).

        ``tokens`` is (texts, tokens). ``positions`` (tokens) and ``mask`` (tokens, columns so far) are shared by all
        texts, or each text has its own: (texts, tokens) and (texts, 1, tokens, columns).
        """
        import torch
        from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu

        texts, count = tokens.shape
        start, end = memory.used, memory.used + count
        memory.used = end
        angles = positions.float().unsqueeze(-1) * self._speeds
        turns = torch.polar(torch.ones_like(angles), angles).unsqueeze(-2)
        state = self._embedding[tokens]
        width, rotated = state.shape[-1:], self._heads + self._shared
        mask = mask.to(memory.keys.dtype)
        for i, (before, after, read, out, gates, down) in enumerate(self._layers):
            projected = read(rms_norm(state, width, before, self._eps)).float().view(texts, count, -1, self._size)
            pairs = torch.view_as_complex(projected[:, :, :rotated].reshape(texts, count, rotated, -1, 2)) * turns
            turned = torch.view_as_real(pairs).flatten(-2).transpose(1, 2)
            keys, values = memory.keys[i], memory.values[i]
            keys[:, :, start:end] = turned[:, self._heads :]
            values[:, :, start:end] = projected[:, :, rotated:].transpose(1, 2)
            query = turned[:, : self._heads].to(keys.dtype)
            seen = scaled_dot_product_attention(
                query, keys[:, :, :end], values[:, :, :end], attn_mask=mask, scale=1.0, enable_gqa=True
            )
            state = state + out(seen.transpose(1, 2).reshape(texts, count, -1))
            gate, passed = gates(rms_norm(state, width, after, self._eps)).chunk(2, dim=-1)
            state = state + down(silu(gate) * passed)
        return rms_norm(state, width, self._norm, self._eps)


def _linear(weight: Any, dtype: Any) -> Callable[[Any], Any]:
    """A matrix product with these weights; on the CPU they are reordered once if oneDNN is available."""
    import torch

    plain = weight.detach().to(dtype).contiguous()
    if plain.device.type == "cpu" and torch.backends.mkldnn.is_available():
        try:
            multiply = torch.ops.mkldnn._linear_pointwise.default
            packed = torch.ops.mkldnn._reorder_linear_weight(plain, 16)
            multiply(plain[:1], packed, None, "none", [], "")
        except (AttributeError, RuntimeError):  # a different build of torch, or a processor without support by oneDNN
            pass
        else:
            return lambda x: multiply(x.to(dtype), packed, None, "none", [], "")
    return lambda x: torch.nn.functional.linear(x.to(dtype), plain)


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
    # The columns of the memory: the prefix (owner -1), then each ending (its number).
    places, owners = list(range(longest)), [-1] * longest
    last, starts = [], []
    for j, ending in enumerate(endings):
        places += range(longest, longest + len(ending))
        owners += [j] * len(ending)
        last.append(len(owners) - 1 if ending else longest - 1)
        starts.append(longest + len(ending))
    owner, columns = torch.tensor(owners, device=device), len(owners)
    memory = network.memory(len(prefixes), columns + rows * how.max_new_tokens)
    widths = [longest - len(prefix) for prefix in prefixes]
    padding = torch.tensor(widths, device=device).unsqueeze(-1) if any(widths) else None

    def seen_by(ending: Any) -> Any:
        """Which columns belong to the prompt with the given ending: (rows, columns)."""
        return (owner == -1) | (owner == ending.unsqueeze(-1))

    def positions_of(positions: Any) -> Any:
        """The positions of each text, counted from its first token."""
        return positions if padding is None else (positions - padding).clamp(min=0)

    def mask_of(visible: Any, own: Any | None = None) -> Any:
        """The attention mask of each text. ``own`` is the column of each row; padding sees itself, as every row needs
        at least one visible column.
        """
        if padding is not None:
            order = torch.arange(visible.shape[-1], device=device)
            visible = visible & (order >= padding).unsqueeze(1)
            if own is not None:
                visible = visible | (order == own.unsqueeze(-1))
        mask = torch.zeros(visible.shape, device=device).masked_fill_(~visible, -torch.inf)
        return mask if padding is None else mask.unsqueeze(1)

    tokens = torch.tensor(
        [[*[0] * (longest - len(text)), *text, *(t for e in endings for t in e)] for text in prefixes]
    )
    order = torch.arange(columns, device=device)
    visible = seen_by(owner) & (order <= order.unsqueeze(-1))
    logits = network.read(
        tokens.to(device), positions_of(torch.tensor(places, device=device)), mask_of(visible, order), memory,
        torch.tensor(last, device=device),
    )  # fmt: skip
    logits = logits.repeat_interleave(count, dim=1)
    ending_of = torch.arange(len(endings), device=device).repeat_interleave(count)
    seen, positions = seen_by(ending_of), torch.tensor(starts, device=device)[ending_of]
    drawn = torch.stack([noise(seed, rows, how) for seed in seeds], dim=1).to(device)
    written: list[list[list[int]]] = [[[] for _ in range(rows)] for _ in prefixes]
    open_rows = [[True] * rows for _ in prefixes]
    live = list(range(rows))
    for step in range(how.max_new_tokens):
        chosen = choose(logits.flatten(0, 1), drawn[step][:, live].flatten(), how, stops, step).view(-1, len(live))
        for texts, is_open, row_tokens in zip(written, open_rows, chosen.tolist(), strict=True):
            append_tokens(texts, is_open, live, row_tokens, stops)
        rest = [i for i, row in enumerate(live) if any(is_open[row] for is_open in open_rows)]
        if not rest or step + 1 == how.max_new_tokens:
            break
        if len(rest) < len(live):
            live, chosen, seen, positions = [live[i] for i in rest], chosen[:, rest], seen[rest], positions[rest]
        seen = torch.cat([seen, torch.eye(len(live), dtype=torch.bool, device=device)], dim=1)
        logits = network.read(chosen, positions_of(positions), mask_of(seen), memory)
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
