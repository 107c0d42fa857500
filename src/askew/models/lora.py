"""LoRA adapters of generators in the format of peft, added to the weights of a model when it is loaded.

This is faster than peft, which takes seconds. Adapters with more than plain low-rank matrices are loaded with peft.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from askew.models.find import need

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX, _A, _B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
# Settings of peft that change the meaning of the matrices.
_MORE = ("use_dora", "use_rslora", "fan_in_fan_out", "modules_to_save", "rank_pattern", "alpha_pattern", "lora_bias")


def add_lora(model: Any, folder: Path, name: str) -> Any:
    """Add the adapter of a folder to the weights of a model, and return the model."""
    config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    plain = config.get("peft_type") == "LORA" and not any(config.get(one) for one in _MORE)
    weights = _read(folder / WEIGHTS) if plain and (folder / WEIGHTS).is_file() else {}
    layers = {key.removeprefix(_PREFIX).removesuffix(_A) for key in weights if key.endswith(_A)}
    if not layers or len(weights) != 2 * len(layers):
        return _with_peft(model, folder, name)
    scale = config["lora_alpha"] / config["r"]
    for layer in sorted(layers):
        inner, outer = weights[f"{_PREFIX}{layer}{_A}"], weights[f"{_PREFIX}{layer}{_B}"]
        target = model.get_submodule(layer).weight
        target.data += (scale * (outer.float() @ inner.float())).to(target.dtype)
    return model


def _read(file: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    found: dict[str, Any] = load_file(file)
    return found


def _with_peft(model: Any, folder: Path, name: str) -> Any:
    need("peft", f"the adapter {name!r}", "lm")
    from peft import PeftModel

    return PeftModel.from_pretrained(model, str(folder)).merge_and_unload()
