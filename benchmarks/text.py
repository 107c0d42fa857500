"""Texts to measure on: a real file, or passages made of the demo's words, about 3% of them not ASCII.

The demo is written to be full of gendered words; nine in ten of them are left out here, so that there is about one
mention in two passages, as in MS MARCO.
"""

from __future__ import annotations

import random
from pathlib import Path

from askew.core.lexicon import load_lexicon
from askew.data.collection import demo_files
from askew.data.documents import read_documents


def passages(path: Path | None, count: int, seed: int = 0) -> list[str]:
    """``count`` passages of about 60 words."""
    source = path or demo_files().docs
    real = [text for batch in read_documents(source) for text in batch["text"].to_pylist()]
    if path is not None:
        return (real * (count // len(real) + 1))[:count]
    gendered = {term for terms in load_lexicon("rekabsaz2021").groups.values() for term in terms}
    words = [word for text in real if text.isascii() for word in text.split(" ")]
    words = [word for i, word in enumerate(words) if word.lower().strip(".,;:'") not in gendered or i % 10 == 0]
    odd = ["naïve", "café", "“quoted”", "it’s", "–", "Zürich", "façade", "she’s", "São", "π", "日本", "woman’s"]
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        tokens = rng.choices(words, k=rng.randint(40, 80))
        if rng.random() < 0.03:
            for _ in range(rng.randint(1, 4)):
                tokens.insert(rng.randrange(len(tokens)), rng.choice(odd))
        made.append(" ".join(tokens))
    return made
