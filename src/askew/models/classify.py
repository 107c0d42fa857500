"""Load classifiers of texts: any checkpoint for sequence classification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError
from askew.models.encode import LOADING
from askew.models.find import cannot_load, locate, need, no_bars

_HEAD = "ForSequenceClassification"


@dataclass(frozen=True)
class Loaded:
    """A classifier in memory; ``labels`` are in the order of its logits."""

    labels: tuple[str, ...]
    model: Any
    tokenizer: Any
    most_tokens: int

    def logits(self, texts: Sequence[str], batch_size: int = 64) -> npt.NDArray[np.float64]:
        """One row of logits for each text."""
        import torch

        rows = []
        for start in range(0, len(texts), batch_size):
            batch = self.tokenizer(
                list(texts[start : start + batch_size]), padding=True, truncation=True, max_length=self.most_tokens,
                return_tensors="pt",
            ).to(self.model.device)  # fmt: skip
            with torch.inference_mode():
                rows.append(self.model(**batch).logits.float().cpu().numpy())
        return np.concatenate(rows).astype(np.float64) if rows else np.zeros((0, len(self.labels)))


@cache
def load_classifier(name: str, revision: str | None = None, device: str | None = None) -> Loaded:
    """A classifier by folder or hub id. A model without a trained head is an error, as it would predict at random."""
    need("transformers", f"the model {name!r}")
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    no_bars()

    place = locate(name)
    try:
        config = AutoConfig.from_pretrained(place, revision=revision, trust_remote_code=False)
        made_for = config.architectures or []
        if not any(_HEAD in one for one in made_for):
            raise ConfigError(
                f"model {name!r}: expected a model architecture whose name ends in {_HEAD}, found "
                f"{', '.join(made_for) or 'none'}"
            )
        model = AutoModelForSequenceClassification.from_pretrained(place, revision=revision, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(place, revision=revision, trust_remote_code=False)
    except LOADING as error:
        raise cannot_load(name, "classifier", error) from error
    model.eval()
    labels = tuple(str(config.id2label[i]) for i in range(config.num_labels))
    longest = min(int(tokenizer.model_max_length), int(getattr(config, "max_position_embeddings", 512)))
    return Loaded(labels, model.to(device) if device else model, tokenizer, longest)
