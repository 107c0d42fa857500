"""There and back: a query put into another language and into its own again comes back in other words.

Marian models are one way each (``Helsinki-NLP/opus-mt-en-fr`` and ``opus-mt-fr-en``); NLLB and M2M are one model with
language codes (``facebook/nllb-200-distilled-600M``, codes such as ``eng_Latn`` and ``fra_Latn``; ReQue's ten languages
are Persian, French, German, Russian, Malay, Tamil, Swahili, simplified Chinese, Korean and Arabic).
"""

from __future__ import annotations

from typing import Any

from askew.core.errors import ConfigError
from askew.models.find import identify
from askew.models.generate import load_generator
from askew.plugins.methods import Candidates, QueryBatch
from askew.reformulators.drawing import clean

NLLB = "facebook/nllb-200-distilled-600M"
REQUE = "pes_Arab fra_Latn deu_Latn rus_Cyrl zsm_Latn tam_Taml swh_Latn zho_Hans kor_Hang arb_Arab"


class BackTranslateReformulator:
    """The query translated to another language and back, one candidate for each language.

    ``languages`` are the codes of the languages between, separated by blanks; empty where ``model`` and ``back`` are
    one-way models. ``source`` is the code of the query's language. Without ``device``: on the GPU where there is one.
    """

    method = "backtranslate"
    reads: frozenset[str] = frozenset()

    def __init__(
        self, model: str = NLLB, back: str | None = None, languages: str = REQUE, source: str = "eng_Latn",
        beams: int = 4, device: str | None = None,
    ) -> None:  # fmt: skip
        self._languages = languages.split() or [""]
        if back is not None and len(self._languages) > 1:
            raise ConfigError("backtranslate: a one-way pair has one language between; leave languages empty")
        if beams < 1:
            raise ConfigError(f"backtranslate: expected beams of 1 or more, found {beams}")
        self._there, self._back, self._source = model, back or model, source if languages.split() else ""
        self._beams, self._device = beams, device

    def settings(self) -> dict[str, Any]:
        """What the candidates depend on, the models by their weights."""
        models = [identify(self._there), identify(self._back)]
        return {"models": models, "languages": self._languages, "source": self._source, "beams": self._beams}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """One candidate for each language, where it differs from the query and from the others."""
        there = load_generator(self._there, "seq2seq", None, None, self._device)
        back = load_generator(self._back, "seq2seq", None, None, self._device)
        found = Candidates()
        for row, text in enumerate(asked.texts):
            if not text.strip():
                found.reject("nothing to read")
                continue
            seen = {text.strip().lower()}
            for language in self._languages:
                (away,) = there.translate([text], self._source, language, self._beams)
                (home,) = back.translate([away], language, self._source, self._beams) if away else ("",)
                line = clean(home)
                if not line:
                    found.reject("empty")
                elif line.lower() in seen:
                    found.reject("same as the original" if line.lower() == text.strip().lower() else "duplicate")
                else:
                    seen.add(line.lower())
                    found.add(row, line)
        return found
