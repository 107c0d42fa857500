"""Train rewriters: models that learn from pairs (a query, a better query) to rewrite queries.

Three kinds are compared in section 4 of RePair: a fine-tuned sequence-to-sequence model, attention with copying
(``acg``) and a hierarchical session encoder (``hred-qs``). A causal model with an adapter is a fourth kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, one_of
from askew.models.rewrite import (
    TEXT_KINDS,
    WORD_KINDS,
    Sizes,
    TextRewriter,
    WordRewriter,
    shown_to,
    write_about,
)
from askew.trainers.common import Progress, Schedule
from askew.trainers.rewriting.finetune import TextModel, TextSettings, fit_texts
from askew.trainers.rewriting.words import Rewrites, Score, Vectors, fit_words

KINDS = (*WORD_KINDS, *TEXT_KINDS)
T5 = "google-t5/t5-base"


@dataclass(frozen=True)
class RewriterSettings:
    """The kind of model and its settings: ``sizes`` for a word network, ``text`` for a model of transformers.

    ``prefix`` is put before each query that a sequence-to-sequence model reads.
    """

    kind: str = "acg"
    sizes: Sizes = field(default_factory=Sizes)
    text: TextSettings = field(default_factory=TextSettings)
    prefix: str = ""

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, "rewriter, kind")

    @property
    def parts(self) -> tuple[str, ...]:
        """The name of the settings that this kind uses: ``sizes`` or ``text``."""
        return ("sizes",) if self.kind in WORD_KINDS else ("text",)

    def own(self) -> dict[str, Any]:
        """The settings that this kind uses."""
        if self.kind in WORD_KINDS:
            return {"kind": self.kind, **asdict(self.sizes)}
        return {**asdict(self.text), "kind": self.kind, "prefix": self.prefix}


# Section 4 of RePair and the code it runs: LSTMs of 512, one layer, dropout 0.2, embeddings of 300 (fastText, kept as
# they are), a vocabulary of 10,000 for acg and 30,000 for hred-qs, batches of 8, Adam at 0.001, 100 epochs. Its T5 is
# fine-tuned like the T5 that generates candidates: batches of 128, Adafactor at a constant 0.001.
_WORD_PACE = Schedule(100.0, 8, 1e-3, 1, 0.0, 0.0, "constant", 2000)
_TEXT_PACE = Schedule(100.0, 128, 1e-3, 1, 0.0, 0.0, "constant", 2000)
PRESETS: dict[str, tuple[RewriterSettings, Schedule]] = {
    "acg": (RewriterSettings("acg"), _WORD_PACE),
    "hred-qs": (RewriterSettings("hred-qs", Sizes(written=30_000)), _WORD_PACE),
    "seq2seq": (RewriterSettings("seq2seq", text=TextSettings(T5, "seq2seq", optimizer="adafactor")), _TEXT_PACE),
    "causal": (RewriterSettings("causal", text=TextSettings(kind="causal")), Schedule(3.0, 16, 4e-4, save_every=500)),
}


@dataclass(frozen=True)
class Taught:
    """A trained rewriter that is not saved yet."""

    rewriter: WordRewriter | TextRewriter
    device: str
    model: TextModel | None = None

    def write(
        self, texts: Sequence[str], before: Sequence[Sequence[str]] | None = None, beams: int = 1
    ) -> list[list[str]]:
        """For each text, one rewritten text per beam, the most likely one first."""
        return self.rewriter.write(texts, before, beams)

    def save(self, folder: Path) -> None:
        """Write a folder that the reformulator ``rewriter`` can read."""
        if isinstance(self.rewriter, WordRewriter):
            self.rewriter.save(folder)
            return
        assert self.model is not None
        self.model.save(folder)
        base = self.model.settings.model
        write_about(folder, {"kind": self.rewriter.kind, "prefix": self.rewriter.prefix, "model": base})


def fit_rewriter(
    pairs: Rewrites, settings: RewriterSettings, pace: Schedule, work: Path, dev: Rewrites | None = None,
    vectors: Vectors | None = None, device: str | None = None, identity: Mapping[str, Any] | None = None,
    progress: Progress | None = None, score: Score | None = None,
) -> Taught:  # fmt: skip
    """Train on pairs. If the training was stopped, the same call resumes it.

    ``vectors`` are words and their embeddings, which are not trained. With ``dev`` and ``score``, the network rewrites
    the queries of ``dev`` after each epoch, and the weights of the best epoch are kept. ``vectors``, ``dev`` and
    ``score`` are for word networks only.
    """
    if not len(pairs):
        raise DataError("rewriter: expected pairs of queries to train on, found none")
    about = {"data": pairs.data(), "kind": settings.kind, "prefix": settings.prefix, **(identity or {})}
    if settings.kind in WORD_KINDS:
        made = fit_words(settings.kind, pairs, settings.sizes, pace, work, dev, vectors, device, about, progress, score)
        return Taught(made, str(next(made.network.parameters()).device))
    if vectors is not None:
        raise ConfigError(
            f"rewriter {settings.kind}: only rewriters of the kinds {' and '.join(WORD_KINDS)} use vectors="
        )
    prompts = [shown_to(settings.kind, text, settings.prefix) for text in pairs.originals]
    chosen = replace(settings.text, kind=settings.kind)
    model = fit_texts(prompts, pairs.targets, chosen, pace, work, device, about, progress)
    return Taught(TextRewriter(settings.kind, model.generator(), settings.prefix), model.device, model)
