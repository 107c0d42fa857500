"""Read a Llama model from a GGUF file in about a second.

``transformers`` can read such a file too, but iterates three times over its 98,000 tokens and merges in Python, which
takes 15 seconds for SmolLM2. The weights are the same.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import DataError

_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_ALIGNMENT = 32
_NAMES = {
    "token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


class _GgufReader:
    """Reads one value after the other. Arrays are skipped, because only the tokenizer needs them."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at = data, 4  # after the magic bytes GGUF

    def take(self, form: str) -> Any:
        found = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found[0] if len(found) == 1 else found

    def string(self) -> str:
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.take(_FORMATS[kind])
        inner, count = self.take("IQ")
        if inner == _STRING:
            for _ in range(count):
                self.at += 8 + struct.unpack_from("<Q", self.data, self.at)[0]
        else:
            self.at += count * struct.calcsize(_FORMATS[inner])
        return None


def read_llama(path: Path) -> Any:
    """The model of a file as a model of transformers, in 32 bits."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _model(*_tensors(data))
    except (KeyError, struct.error, UnicodeDecodeError, ValueError) as error:
        raise DataError(f"{path}: expected a GGUF file of a Llama model, found something else ({error!r})") from error


def _tensors(data: mmap.mmap) -> tuple[dict[str, Any], dict[str, Any]]:
    """The metadata of a file and its tensors in 32 bits."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

    reader = _GgufReader(data)
    _, count, settings_count = reader.take("IQQ")
    settings = {}
    for _ in range(settings_count):
        name = reader.string()
        settings[name] = reader.value(reader.take("I"))
    listed = []
    for _ in range(count):
        name, dims = reader.string(), reader.take("I")
        shape = [reader.take("Q") for _ in range(dims)]
        listed.append((name, shape[::-1], GGMLQuantizationType(reader.take("I")), reader.take("Q")))
    alignment = settings.get("general.alignment", _ALIGNMENT)
    start = -(-reader.at // alignment) * alignment
    found = {}
    for name, shape, kind, offset in listed:
        block, size = GGML_QUANT_SIZES[kind]
        width = shape[-1] // block * size
        raw = np.frombuffer(data, np.uint8, int(np.prod(shape[:-1])) * width, start + offset)
        raw = raw.view(np.float32) if kind == GGMLQuantizationType.F32 else raw
        found[name] = np.array(dequantize(raw.reshape(*shape[:-1], -1), kind), np.float32).reshape(shape)
    return settings, found


def _model(settings: dict[str, Any], tensors: dict[str, Any]) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    def of(name: str) -> Any:
        return settings[f"llama.{name}"]

    heads, shared = of("attention.head_count"), of("attention.head_count_kv")
    config = LlamaConfig(
        vocab_size=of("vocab_size"), hidden_size=of("embedding_length"), intermediate_size=of("feed_forward_length"),
        num_hidden_layers=of("block_count"), num_attention_heads=heads, num_key_value_heads=shared,
        max_position_embeddings=of("context_length"), rms_norm_eps=of("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": of("rope.freq_base")},
        tie_word_embeddings="output.weight" not in tensors,
        **{f"{one}_token_id": settings.get(f"tokenizer.ggml.{name}_token_id")
           for one, name in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))},
    )  # fmt: skip
    state = {}
    for name, found in tensors.items():
        *layer, part, kind = name.removeprefix("blk.").split(".")
        rows = {"attn_q": heads, "attn_k": shared}.get(part)
        weight = _unpaired(found, rows) if rows else found
        place = f"layers.{layer[0]}.{_NAMES[part]}" if layer else _NAMES.get(part, part)
        state["lm_head.weight" if part == "output" else f"model.{place}.{kind}"] = torch.from_numpy(weight)
    with torch.device("meta"):  # skips the initialization with random weights
        model = LlamaForCausalLM(config)
    model.load_state_dict(state, strict=False, assign=True)
    model.tie_weights()
    model.model.rotary_emb = LlamaRotaryEmbedding(config)
    return model


def _unpaired(weight: Any, heads: int) -> Any:
    """Reorder rotary weights: rotated pairs are adjacent in the file, but half a head apart in transformers."""
    pairs = weight.reshape(heads, -1, 2, weight.shape[-1])
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weight.shape)
