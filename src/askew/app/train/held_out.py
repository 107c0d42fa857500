"""The held-out queries of a model: written next to the model, and checked when the model is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from askew.core.whole_files import write_whole
from askew.corpora.queries import read_queries
from askew.publish.splits import normal

HELD_OUT = "held-out.jsonl"


def write_held_out(folder: Path, query_ids: Sequence[str], texts: Sequence[str]) -> None:
    """Write ids and texts as a JSON Lines file of queries; write no file if there are none."""
    lines = [
        json.dumps({"query_id": name, "text": text}, ensure_ascii=False)
        for name, text in zip(query_ids, texts, strict=True)
    ]
    if lines:
        write_whole(folder / HELD_OUT, "\n".join(lines) + "\n")


def seen_by(folder: Path, texts: Sequence[str]) -> int | None:
    """How many of the texts are not among the model's held-out queries; None if the model has no list of them."""
    if not (folder / HELD_OUT).is_file():
        return None
    held = {normal(text) for text in read_queries(folder / HELD_OUT)["text"].to_pylist()}
    return sum(normal(text) not in held for text in texts)
