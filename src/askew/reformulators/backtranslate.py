"""Back-translation: a query is translated into another language and back, which rewords it.

A Marian model translates in one direction (``Helsinki-NLP/opus-mt-en-fr`` and ``opus-mt-fr-en``). NLLB and M2M are
single models that take language codes (``facebook/nllb-200-distilled-600M``, with codes such as ``eng_Latn`` and
``fra_Latn``). The default is ReQue's ten languages: Persian, French, German, Russian, Malay, Tamil, Swahili, simplified
Chinese, Korean and Arabic.
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
    """Translates the query into another language and back, one candidate for each language.

    ``languages`` are the codes of the intermediate languages, separated by blanks. Leave it empty if ``model`` and
    ``back`` are one-way models. ``source`` is the code of the query's language. Without ``device``, the GPU is used if
    there is one.
    """

    method = "backtranslate"
    reads: frozenset[str] = frozenset()

    def __init__(
        self, model: str = NLLB, back: str | None = None, languages: str = REQUE, source: str = "eng_Latn",
        beams: int = 4, device: str | None = None,
    ) -> None:  # fmt: skip
        self._languages = languages.split() or [""]
        if back is not None and len(self._languages) > 1:
            raise ConfigError(
                f"backtranslate: the parameter 'languages' names {len(self._languages)} languages, but the two models "
                "in 'model' and 'back' translate into only one language and back; set 'languages' to an empty text"
            )
        if beams < 1:
            raise ConfigError(f"backtranslate: expected beams= to be 1 or more, found {beams}")
        self._there, self._back, self._source = model, back or model, source if languages.split() else ""
        self._beams, self._device = beams, device

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the models identified by their weights."""
        models = [identify(self._there), identify(self._back)]
        return {"models": models, "languages": self._languages, "source": self._source, "beams": self._beams}

    def reformulate(self, asked: QueryBatch) -> Candidates:
        """Return one candidate for each language, if it differs from the query and from the other candidates."""
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
