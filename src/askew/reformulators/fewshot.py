"""Queries generated from passages by any causal language model with a few-shot prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from askew.core.errors import ConfigError
from askew.models.find import identify
from askew.models.generate import SMOLLM, Sampling, load_generator
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.drawing import Drawing, draw

# Written for askew, and short so that a small model can follow them.
EXAMPLES = (
    ("The heart of an adult at rest beats sixty to a hundred times a minute; that of a trained runner may be slower.",
     "what is a normal resting heart rate"),
    ("Sourdough rises by wild yeast. The dough is left for many hours, and the bacteria in it make it taste sour.",
     "why does sourdough taste sour"),
    ("To renew a passport, send the old one with two photographs and the fee; it takes about four weeks.",
     "how long does it take to renew a passport"),
)  # fmt: skip
_MOST_WORDS = 120


class FewShotReformulator:
    """Generates queries from the top-ranked passages with any causal language model and three examples.

    Without ``device``, the GPU is used if there is one.
    """

    method = "fewshot"
    reads = frozenset({"passages"})

    def __init__(
        self, model: str = SMOLLM, revision: str | None = None, count: int = 10, passages: int = 5, top_k: int = 20,
        top_p: float = 0.9, temperature: float = 0.8, max_new_tokens: int = 24, per_call: int = 5, attempts: int = 60,
        seed: int = 7, device: str | None = None,
    ) -> None:  # fmt: skip
        if passages < 1:
            raise ConfigError(f"fewshot: expected passages= to be 1 or more, found {passages}")
        self._model, self._revision, self._device, self._passages = model, revision, device, passages
        self._sampling = Sampling(max_new_tokens, 1, top_k, top_p, temperature)
        self._how = Drawing(count, per_call, attempts, seed)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the model identified by its weights."""
        model = self._model if self._model == SMOLLM else identify(self._model, self._revision)
        return {"model": model, "passages": self._passages, **vars(self._sampling), **vars(self._how)}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return distinct generated queries for each query, in the order of sampling."""
        writer = load_generator(self._model, "causal", None, self._revision, self._device)

        def prompts(row: int) -> Sequence[tuple[str, str | None]]:
            passages = (asked.passages or ((),) * len(asked))[row][: self._passages]
            return [(_prompt(passage.text), passage.doc_id) for passage in passages if passage.text.strip()]

        return draw(asked, prompts, writer, self._sampling, self._how, self.method)


def _prompt(passage: str) -> str:
    shown = "".join(f"Text: {text}\nSearch query: {query}\n\n" for text, query in EXAMPLES)
    return f"{shown}Text: {' '.join(passage.split()[:_MOST_WORDS])}\nSearch query:"
