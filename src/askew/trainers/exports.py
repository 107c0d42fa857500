"""Export training examples in the layouts of other programs.

    st-pairs      sentence-transformers, labeled pairs: {"query", "passage", "label"}, relevant passages first
    st-triples    sentence-transformers, triples: {"query", "positive", "negative"}, one for each negative
    tevatron      Tevatron: {"query_id", "query", "positive_passages", "negative_passages"}, passages with docid, title
                  and text
    flagembedding FlagEmbedding: {"query", "pos", "neg"}

All layouts are JSON Lines. A file is written completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askew.core.errors import check_name


@dataclass(frozen=True)
class Example:
    """A query with its relevant documents and its negatives, as (id, text); ``lean`` has the lean of each negative."""

    query_id: str
    query: str
    positives: list[tuple[str, str]]
    negatives: list[tuple[str, str]]
    lean: list[float]


def _pairs(one: Example) -> Iterator[dict[str, Any]]:
    for label, passages in ((1, one.positives), (0, one.negatives)):
        for _, text in passages:
            yield {"query": one.query, "passage": text, "label": label}


def _triples(one: Example) -> Iterator[dict[str, Any]]:
    for number, (_, negative) in enumerate(one.negatives):
        positive = one.positives[number % len(one.positives)][1]
        yield {"query": one.query, "positive": positive, "negative": negative}


def _tevatron(one: Example) -> Iterator[dict[str, Any]]:
    sides = {
        name: [{"docid": doc, "title": "", "text": text} for doc, text in passages]
        for name, passages in (("positive_passages", one.positives), ("negative_passages", one.negatives))
    }
    yield {"query_id": one.query_id, "query": one.query, **sides}


def _flagembedding(one: Example) -> Iterator[dict[str, Any]]:
    yield {
        "query": one.query,
        "pos": [text for _, text in one.positives],
        "neg": [text for _, text in one.negatives],
    }


LAYOUTS: dict[str, Callable[[Example], Iterator[dict[str, Any]]]] = {
    "st-pairs": _pairs,
    "st-triples": _triples,
    "tevatron": _tevatron,
    "flagembedding": _flagembedding,
}


def write_examples(examples: Iterable[Example], out: Path, layout: str) -> int:
    """Write examples as JSON Lines and return their number. No file is written if there are none or an error occurs."""
    check_name("layout", layout, LAYOUTS)
    unfinished = out.with_name(f".{out.name}.writing")
    written = 0
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            for one in examples:
                written += 1
                for line in LAYOUTS[layout](one):
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if written:
            unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    return written
