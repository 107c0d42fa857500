"""Queries rewritten by a model that ``askew train rewriter`` taught, as section 4 of RePair compares them."""

from __future__ import annotations

from typing import Any

from askew.core.errors import ConfigError
from askew.models.find import identify
from askew.models.rewrite import load_rewriter, read_about
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.drawing import clean, plain


class RewriterReformulator:
    """The likeliest other ways to ask a query, by a trained rewriter (acg, hred-qs, seq2seq or causal).

    ``model`` is the folder that ``askew train rewriter`` made. ``beams`` ways are followed side by side, ``count`` or
    more of them; of those that end, the likeliest ``count`` are given. A session is the query alone here.
    """

    method = "rewriter"
    reads = frozenset[str]()

    def __init__(self, model: str, count: int = 1, beams: int = 4, device: str | None = None) -> None:
        if count < 1 or beams < count:
            raise ConfigError(
                f"rewriter: expected count of 1 or more and beams of count or more, found {count}, {beams}"
            )
        self._model, self._count, self._beams, self._device = model, count, beams, device

    def settings(self) -> dict[str, Any]:
        """What the candidates depend on, the model by its weights."""
        about = read_about(self._model)
        base = about.get("model") if about["kind"] == "causal" else None
        return {"model": identify(self._model), "base": base, "count": self._count, "beams": self._beams}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Distinct texts for each, likeliest first."""
        found = Candidates()
        rewriter = load_rewriter(self._model, self._device)
        for row, text in enumerate(asked.texts):
            if not text.strip():
                found.reject("nothing to read")
                continue
            seen = {plain(text)}
            # Each by itself: in company the last digits differ, and with them a close choice.
            lines = [clean(line) for line in rewriter.write([text], beams=self._beams)[0]]
            kept = 0
            for line in lines:
                if kept == self._count:
                    break
                if not line or plain(line) in seen:
                    found.reject("empty" if not line else "same as the original or another")
                    continue
                seen.add(plain(line))
                found.add(row, line)
                kept += 1
        return found
