"""Low-rank adapters (LoRA, Hu et al. 2022): trainable layers added to frozen weights, and their training loop.

Needs PyTorch. An adapter of an encoder is stored in the format of ``askew.models.adapted``, an adapter of a generator
in the format of PEFT.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from askew.models.adapted import WEIGHTS

T = TypeVar("T")
PEFT_CONFIG, PEFT_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PEFT_PREFIX = "base_model.model."


class LowRank(nn.Module):  # type: ignore[misc, unused-ignore]
    """A frozen linear layer plus a trainable low-rank layer; before training, the low-rank layer adds zero."""

    def __init__(self, base: Any, rank: int, alpha: int, dropout: float) -> None:
        super().__init__()
        device = base.weight.device
        self.base, self.scale = base, alpha / rank
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()
        self.a = nn.Parameter(torch.randn(rank, base.in_features, device=device) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank, device=device))

    def forward(self, inputs: Any) -> Any:
        """The output of the frozen layer plus that of the low-rank layer, in the data type of the inputs."""
        kind = inputs.dtype
        low = nn.functional.linear(self.drop(inputs), self.a.to(kind))
        return self.base(inputs) + nn.functional.linear(low, (self.scale * self.b).to(kind))


def adapt(model: Any, inside: str, rank: int, alpha: int, dropout: float) -> None:
    """Freeze a model and add a low-rank layer to each linear layer of the submodule ``inside``, in place."""
    for weight in model.parameters():
        weight.requires_grad_(False)
    part = model.get_submodule(inside)
    linear = [name for name, one in part.named_modules() if isinstance(one, nn.Linear)]
    for path in linear:
        parent, _, last = path.rpartition(".")
        setattr(part.get_submodule(parent), last, LowRank(part.get_submodule(path), rank, alpha, dropout))


def low_rank_layers(model: Any) -> Iterator[tuple[str, LowRank]]:
    """The low-rank layers with their names in the model."""
    return ((name, one) for name, one in model.named_modules() if isinstance(one, LowRank))


def learning(model: Any) -> list[Any]:
    """The trainable weights."""
    return [one for one in model.parameters() if one.requires_grad]


@dataclass(frozen=True)
class Pace:
    """Settings of the optimizer: the learning rate rises over the share ``warmup`` of all steps, and falls to zero."""

    learning_rate: float = 7e-4
    warmup: float = 0.1
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    second_beta: float = 0.999


def linear_pace(step: int, steps: int, warmup: float) -> float:
    """The share of the learning rate at a step: a linear warm-up, times a linear decay over all steps."""
    return _warmed_up(step, steps, warmup) * max(0.0, 1 - step / steps)


def cosine_pace(step: int, steps: int, warmup: float) -> float:
    """The share of the learning rate at a step: a linear warm-up, times a cosine decay over all steps."""
    return _warmed_up(step, steps, warmup) * 0.5 * (1 + math.cos(math.pi * step / steps))


def _warmed_up(step: int, steps: int, warmup: float) -> float:
    """The share of the learning rate that a linear warm-up has reached; all of it if the warm-up is below one step."""
    return min(1.0, (step + 1) / max(1.0, warmup * steps))


def fit_epochs(
    network: Any, epochs: Sequence[Sequence[T]], loss_of: Callable[[Sequence[T]], Any], batch_size: int, pace: Pace,
    report: Callable[[str], None],
) -> list[float]:  # fmt: skip
    """Train on the rows of each epoch in their order; report and return the mean loss of each epoch."""
    weights = learning(network)
    betas = (0.9, pace.second_beta)
    optimizer = torch.optim.AdamW(weights, lr=pace.learning_rate, weight_decay=pace.weight_decay, betas=betas)
    steps = sum(math.ceil(len(rows) / batch_size) for rows in epochs)
    share = partial(linear_pace, steps=steps, warmup=pace.warmup)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    network.train()
    found = []
    for number, rows in enumerate(epochs, start=1):
        losses = []
        for first in range(0, len(rows), batch_size):
            loss = loss_of(rows[first : first + batch_size])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(weights, pace.largest_gradient)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        found.append(sum(losses) / len(losses))
        report(f"epoch {number} of {len(epochs)}: {len(rows):,} rows, loss {found[-1]:.4f}")
    network.eval()
    return found


def half_precision(device: Any) -> Any:
    """A context for training with bfloat16 products on a GPU. On a CPU it changes nothing."""
    kind = torch.device(device).type
    return torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda")


def encoder_tensors(network: Any) -> dict[str, Any]:
    """The adapter of a network with an encoder ``enc``, and its other parts; the scale is multiplied into ``b``."""
    found = {name: one for name, one in network.state_dict().items() if not name.startswith("enc.")}
    for name, layer in low_rank_layers(network):
        found |= {f"{name}.a": layer.a.detach(), f"{name}.b": layer.b.detach() * layer.scale}
    return _stored(found.items())


def put_encoder_tensors(network: Any, tensors: Mapping[str, Any]) -> None:
    """Set the low-rank layers and the head to the tensors of ``encoder_tensors``."""
    with torch.no_grad():
        for name, layer in low_rank_layers(network):
            layer.a.copy_(tensors[f"{name}.a"])
            layer.b.copy_(tensors[f"{name}.b"].to(layer.b.device, torch.float32) / layer.scale)
    rest = {name: one.float() for name, one in tensors.items() if not name.startswith("enc.")}
    network.load_state_dict(rest, strict=False)


def save_encoder_adapter(folder: Path, network: Any) -> None:
    """Write an adapter in the format that ``askew.models.adapted.load_adapted`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(encoder_tensors(network), folder / WEIGHTS)


def peft_tensors(model: Any) -> dict[str, Any]:
    """The adapter of a generator, with the tensor names of PEFT."""
    found = {}
    for name, layer in low_rank_layers(model):
        found[f"{_PEFT_PREFIX}{name}.lora_A.weight"] = layer.a.detach()
        found[f"{_PEFT_PREFIX}{name}.lora_B.weight"] = layer.b.detach()
    return _stored(found.items())


def put_peft_tensors(model: Any, tensors: Mapping[str, Any]) -> None:
    """Set the low-rank layers to the weights of an adapter."""
    with torch.no_grad():
        for name, layer in low_rank_layers(model):
            layer.a.copy_(tensors[f"{_PEFT_PREFIX}{name}.lora_A.weight"])
            layer.b.copy_(tensors[f"{_PEFT_PREFIX}{name}.lora_B.weight"])


def merge_peft_tensors(model: Any, tensors: Mapping[str, Any], scale: float) -> None:
    """Add an adapter to the weights of a model that has no low-rank layers."""
    ending = ".lora_A.weight"
    with torch.no_grad():
        for name in (one.removesuffix(ending) for one in tensors if one.endswith(ending)):
            weight = model.get_submodule(name.removeprefix(_PEFT_PREFIX)).weight
            a, b = (tensors[f"{name}.lora_{part}.weight"].to(weight.device, torch.float32) for part in "AB")
            weight += (scale * (b @ a)).to(weight.dtype)


def save_peft_adapter(folder: Path, tensors: Mapping[str, Any], base: str, alpha: int, dropout: float) -> None:
    """Write an adapter of a causal model in the format of PEFT."""
    folder.mkdir(parents=True, exist_ok=True)
    first = next(iter(tensors.values()))
    layers = {name.removesuffix(".weight").rpartition(".")[0].rpartition(".")[2] for name in tensors}
    config = {
        "base_model_name_or_path": base, "bias": "none", "fan_in_fan_out": False, "inference_mode": True,
        "lora_alpha": alpha, "lora_dropout": dropout, "peft_type": "LORA", "r": len(first),
        "target_modules": sorted(layers), "task_type": "CAUSAL_LM",
    }  # fmt: skip
    save_file(dict(tensors), folder / PEFT_WEIGHTS)
    (folder / PEFT_CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def read_peft_tensors(folder: Path) -> dict[str, Any]:
    """The weights of an adapter that ``save_peft_adapter`` wrote."""
    return dict(load_file(folder / PEFT_WEIGHTS))


def _stored(tensors: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: one.half().cpu().contiguous() for name, one in tensors}
