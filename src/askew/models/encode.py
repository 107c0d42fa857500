"""Load encoders and rerankers with sentence-transformers. Code inside a model's folder is never run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError
from askew.models.find import LOADING, cannot_load, load_parts, locate, need, one_at_a_time, open_transformers

_CLASSES = {
    "dense": "SentenceTransformer",
    "sparse": "SparseEncoder",
    "cross": "CrossEncoder",
}


@cache
@one_at_a_time
def load_model(kind: str, name: str, revision: str | None = None, device: str | None = None) -> Any:
    """A model of a kind: dense, sparse or cross. Each model is loaded once."""
    need("sentence_transformers", f"the model {name!r}")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    open_transformers()
    import sentence_transformers

    model_class = getattr(sentence_transformers, _CLASSES[kind], None)
    if model_class is None:
        raise ConfigError(
            f"a model of kind {kind!r} needs a newer sentence-transformers: "
            f"the installed version has no {_CLASSES[kind]}"
        )
    place = locate(name)
    try:
        model = model_class(place, revision=revision, device=device, trust_remote_code=False)
    except LOADING as error:
        raise cannot_load(name, kind, error) from error
    endings = {"cross": ("ForSequenceClassification", "ForCausalLM"), "sparse": ("ForMaskedLM",)}.get(kind)
    config = getattr(model.transformers_model, "config", None) if endings else None
    made_for = getattr(config, "architectures", None) or []
    if endings and made_for and not any(end in architecture for architecture in made_for for end in endings):
        # A new head would have random weights.
        raise ConfigError(
            f"model {name!r}: expected a {kind} model ({' or '.join(endings)}), found {', '.join(made_for)}. "
            "This model has no trained head, so it would rank at random; choose another model, or train this model"
        )
    model.eval()
    return model


# Load classifiers of texts: any checkpoint for sequence classification.

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
    (config,) = load_parts(name, "classifier", "AutoConfig", revision=revision)
    made_for = config.architectures or []
    if not any(_HEAD in architecture for architecture in made_for):
        raise ConfigError(
            f"model {name!r}: expected a model architecture whose name ends in {_HEAD}, found "
            f"{', '.join(made_for) or 'none'}"
        )
    classes = ("AutoModelForSequenceClassification", "AutoTokenizer")
    model, tokenizer = load_parts(name, "classifier", *classes, revision=revision)
    model.eval()
    labels = tuple(str(config.id2label[i]) for i in range(config.num_labels))
    longest = min(int(tokenizer.model_max_length), int(getattr(config, "max_position_embeddings", 512)))
    return Loaded(labels, model.to(device) if device else model, tokenizer, longest)
