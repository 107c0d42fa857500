"""Trained rewriters: fine-tuned models of transformers that write reformulations of a query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError
from askew.core.files import parse_json
from askew.models.generate import Generator, find_adapter, load_generator
from askew.models.prompts import from_query

ABOUT, KINDS = "rewriter.json", ("seq2seq", "causal")
_FORM = 1


def shown_to(kind: str, text: str, prefix: str = "") -> str:
    """The prompt of a model of transformers for a query, the same in training and use."""
    return prefix + text if kind == "seq2seq" else from_query(text)


@dataclass(frozen=True)
class TextRewriter:
    """A sequence-to-sequence or causal model fine-tuned to rewrite; ``prefix`` is put before each query."""

    kind: str
    writer: Generator
    prefix: str = ""

    def write(self, texts: Sequence[str], beams: int = 1) -> list[list[str]]:
        """For each text, ``beams`` rewritten texts, the most likely one first."""
        tokenizer, options = self.writer.tokenizer, dict[str, Any]()
        if tokenizer.pad_token_id is None:
            options["pad_token_id"] = tokenizer.eos_token_id
        shown = [shown_to(self.kind, text, self.prefix) for text in texts]
        outputs = self.writer.search(shown, beams, beams, **options)
        return [[line.partition("\n")[0] for line in lines] for lines in outputs]  # a query is one line


def write_about(folder: Path, about: Mapping[str, Any]) -> None:
    """Write ``rewriter.json``, the description of the weights in a folder."""
    text = json.dumps({"form": _FORM, **about}, ensure_ascii=False)
    (folder / ABOUT).write_text(text, encoding="utf-8")


def read_about(folder: str) -> dict[str, Any]:
    """The content of ``rewriter.json`` in a folder."""
    file = Path(folder) / ABOUT
    try:
        about = parse_json(file.read_bytes())
        is_known = about["form"] == _FORM and about["kind"] in KINDS
    except (OSError, ValueError, KeyError, TypeError):
        is_known = False
    if not is_known:
        raise ConfigError(f"rewriter {folder!r}: expected a folder with {ABOUT}, written by 'askew train rewriter'")
    return dict(about)


@cache
def load_rewriter(folder: str, device: str | None = None) -> TextRewriter:
    """A trained rewriter; each one is loaded once, on the GPU if there is one."""
    about = read_about(folder)
    if about["kind"] == "seq2seq":
        return TextRewriter("seq2seq", load_generator(folder, "seq2seq", device=device), about["prefix"])
    adapter = str(find_adapter(folder))
    return TextRewriter("causal", load_generator(about["model"], "causal", adapter, device=device))
