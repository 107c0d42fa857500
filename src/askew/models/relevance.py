"""Score the relevance of a document to a query with a linear head on a frozen encoder.

``joint``  the query and the document as one sequence; the feature vector is the one of the first token. This was
           published for BERT, which is pretrained on pairs of texts. It works poorly for encoders of single texts.
``apart``  the query and the document are encoded separately; the features are the elementwise products of their
           vectors and the cosine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.files import fingerprint, parse_json
from askew.models.find import identify, load_parts

Vectors = npt.NDArray[np.float32]
LAYOUTS = ("joint", "apart")
MOST_TOKENS = 256
FILE = "head.json"
_BATCH = 64


def encode_pairs(
    queries: Sequence[str], documents: Sequence[str], model: str, layout: str, cache: Path | None = None,
    device: str = "cpu",
) -> Vectors:  # fmt: skip
    """One row of features for each query and its document. ``cache`` is a folder that stores the features."""
    one_of(layout, LAYOUTS, "adapter: ⟨layout⟩")
    key = fingerprint([identify(model), layout, list(queries), list(documents), MOST_TOKENS])
    file = cache / f"{layout}-{key}.npy" if cache is not None else None
    if file is not None and file.is_file():
        stored: Vectors = np.load(file, allow_pickle=False)
        return stored
    encoder, tokenizer = open_encoder(model, device)
    if layout == "joint":
        rows = [
            _states(encoder, tokenizer, queries[at : at + _BATCH], documents[at : at + _BATCH])[0][:, 0]
            for at in range(0, len(queries), _BATCH)
        ]
        features = np.concatenate(rows).astype(np.float32)
    else:
        features = combine(*(_means(encoder, tokenizer, texts) for texts in (queries, documents)))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part.npy")
        np.save(unfinished, features, allow_pickle=False)
        unfinished.replace(file)
    return features


def combine(queries: Vectors, right: Vectors) -> Vectors:
    """The features of pairs of unit vectors, scaled to a standard deviation of about one."""
    width = np.sqrt(queries.shape[1])
    products = queries * right
    return np.hstack([products * width, products.sum(1, keepdims=True) * width / 4]).astype(np.float32)


def _means(encoder: Any, tokenizer: Any, texts: Sequence[str]) -> Vectors:
    """The unit vector of each text; each distinct text is encoded once."""
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    parts = []
    for at in range(0, len(distinct), _BATCH):
        states, mask = _states(encoder, tokenizer, distinct[at : at + _BATCH])
        parts.append((states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True))
    vectors = np.concatenate(parts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    places = {text: row for row, text in enumerate(distinct)}
    return vectors[[places[text] for text in texts]].astype(np.float32)


def _states(encoder: Any, tokenizer: Any, texts: Sequence[str], others: Sequence[str] | None = None) -> tuple[Any, Any]:
    import torch

    batch = tokenizer(
        list(texts), list(others) if others is not None else None, padding=True, truncation=True,
        max_length=room(encoder, tokenizer), return_tensors="pt",
    ).to(encoder.device)  # fmt: skip
    with torch.inference_mode():
        states = encoder(**batch).last_hidden_state
    return states.float().cpu().numpy(), batch["attention_mask"].cpu().numpy().astype(np.float32)


def room(model: Any, tokenizer: Any, most: int = MOST_TOKENS) -> int:
    """The maximum number of tokens for a model: ``most``, or fewer if the model or tokenizer allows fewer."""
    places = getattr(model.config, "max_position_embeddings", None) or most
    return min(most, int(places), int(tokenizer.model_max_length))


def open_encoder(model: str, device: str = "cpu", extra: str = "train") -> tuple[Any, Any]:
    """An encoder and its tokenizer by name, folder or hub id; code inside a model's folder is never run."""
    encoder, tokenizer = load_parts(model, "encoder", "AutoModel", "AutoTokenizer", extra=extra)
    return encoder.float().to(device).eval(), tokenizer


@dataclass(frozen=True)
class RelevanceHead:
    """A trained head; a logit above zero means that the document is relevant."""

    model: str
    layout: str
    with_title: bool
    weights: tuple[float, ...]
    bias: float

    def logits(self, queries: Sequence[str], documents: Sequence[str], device: str = "cpu") -> npt.NDArray[np.float64]:
        """One logit for each query and its document; with ``with_title``, a document must begin with its title."""
        rows = encode_pairs(queries, documents, self.model, self.layout, None, device)
        if rows.shape[1] != len(self.weights):
            raise ConfigError(
                f"head: its weights need an encoder with {len(self.weights)} features, found {rows.shape[1]} features "
                f"in the encoder {self.model!r}"
            )
        return np.asarray(rows.astype(np.float64) @ np.array(self.weights) + self.bias)


def read_head(folder: Path) -> RelevanceHead:
    """The head in a folder that ``askew train adapter`` wrote."""
    file = folder / FILE
    try:
        facts = parse_json(file.read_bytes())
        return RelevanceHead(
            str(facts["model"]), str(facts["layout"]), bool(facts["with_title"]),
            tuple(float(weight) for weight in facts["weights"]), float(facts["bias"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DataError(f"{file}: expected the head of askew train adapter ({reason})") from None
