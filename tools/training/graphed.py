"""A training step over inputs of fixed shapes: recorded once as a CUDA graph and replayed, or on a CPU just computed.

The networks here are so small that starting the kernels of a step takes longer than the kernels; a graph starts them
all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from training.low_rank import learning

BETAS = (0.9, 0.98)
_WARM_UP_STEPS = 3
# Any token will do: the steps before the recording are undone.
_SOME_TOKEN = 2


class TrainingStep:
    """AdamW on the weights of a model that learn. ``shapes`` has the shape and type of each input of the loss."""

    def __init__(
        self, model: Any, loss: Callable[..., Any], shapes: Sequence[tuple[tuple[int, ...], Any]], rate: float,
        weight_decay: float, largest_gradient: float, device: str,
    ) -> None:  # fmt: skip
        self._weights, self._loss, self._rate, self._most = learning(model), loss, rate, largest_gradient
        self._graph: Any = None
        on_gpu = torch.device(device).type == "cuda"
        # Inside a graph the rate has to be a tensor: a number would be recorded with its first value.
        self._now = torch.tensor(0.0, device=device)
        self._optimizer = torch.optim.AdamW(
            self._weights, lr=self._now, weight_decay=weight_decay, betas=BETAS, capturable=on_gpu
        )
        self._inputs = [torch.zeros(shape, dtype=kind, device=device) for shape, kind in shapes]
        if on_gpu:
            self._record()

    def __call__(self, share: float, *inputs: Any) -> Any:
        """One step at a share of the learning rate; the loss before it."""
        for place, one in zip(self._inputs, inputs, strict=True):
            place.copy_(one)
        self._now.fill_(self._rate * share)
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._recorded.clone()

    def _step(self) -> Any:
        self._optimizer.zero_grad(set_to_none=True)
        loss = self._loss(*self._inputs)
        loss.backward()
        nn.utils.clip_grad_norm_(self._weights, self._most, foreach=True)
        self._optimizer.step()
        return loss.detach()

    def _record(self) -> None:
        """Record a step; the weights and the optimizer are then as they were."""
        kept = [one.detach().clone() for one in self._weights]
        for one in self._inputs:
            if not one.is_floating_point():
                one.fill_(_SOME_TOKEN)
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):
            for _ in range(_WARM_UP_STEPS):
                self._step()
        torch.cuda.current_stream().wait_stream(beside)
        self._optimizer.zero_grad(set_to_none=True)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._recorded = self._step()
        for state in self._optimizer.state.values():
            for one in state.values():
                if torch.is_tensor(one):
                    one.zero_()
        with torch.no_grad():
            for weight, one in zip(self._weights, kept, strict=True):
                weight.copy_(one)
