"""A fast Llama network for sampling, with fused weights and a shared cache of keys and values.

For a network this small, ``transformers`` spends most of its time outside the matrix products. Here the query, key and
value weights are one matrix, the weights of the gate and the up projection are another, and on the CPU they have the
layout that its matrix products read fastest. Numbers are 16-bit (bfloat16) if the processor supports them natively and
the network is large enough to gain from it, otherwise 32-bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
        weights = sum(one.numel() for one in model.parameters())
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
        linears = [_linear(one, self.dtype) for one in (read, attention.o_proj.weight, gates, mlp.down_proj.weight)]
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
            found = read(rms_norm(state, width, before, self._eps)).float().view(texts, count, -1, self._size)
            pairs = torch.view_as_complex(found[:, :, :rotated].reshape(texts, count, rotated, -1, 2)) * turns
            turned = torch.view_as_real(pairs).flatten(-2).transpose(1, 2)
            keys, values = memory.keys[i], memory.values[i]
            keys[:, :, start:end] = turned[:, self._heads :]
            values[:, :, start:end] = found[:, :, rotated:].transpose(1, 2)
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
