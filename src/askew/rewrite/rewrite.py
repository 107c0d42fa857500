"""Queries rewritten by a model: SmolLM2-135M with askew's adapter, any other model, or one that askew trained.

``rewrite`` needs no documents. Six kinds of reformulations are written: *question*, *keywords*, *synonyms* (content
words replaced), *specific* (abbreviations, titles and types spelled out), *paraphrase* (another structure) and
*neutral* (without a gender; only for queries with a word of the gender lexicon). Models that can be used:

- by default SmolLM2-135M with the adapter ``smollm2-rewrite`` (extra ``lm``; its card reports its quality);
- any causal or sequence-to-sequence model by folder or hub id, with the prompts of the bank for the kinds;
- a folder made by ``askew train rewriter``; such a model has no kinds and gives its most likely texts.

For an OpenAI-compatible endpoint, use the method ``llm`` with ``prompt`` paraphrase, synonyms and so on.
Candidates are not filtered; the filter ``equivalence`` drops those with another meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, check_names
from askew.core.lexicon import load_lexicon
from askew.core.plugins import Count
from askew.core.protocols import Candidates, QueryBatch, seed_for
from askew.models.find import identify
from askew.models.generate import SMOLLM, Generator, Sampling, find_adapter, kind_of, load_generator
from askew.models.prompts import KINDS, kind_ending, query_prefix
from askew.models.rewrite import ABOUT, load_rewriter, read_about
from askew.rewrite.generate import clean, plain, refuse
from askew.rewrite.prompts import load_prompt
from askew.rewrite.words import plain_words

ADAPTER = "smollm2-rewrite"
NEUTRAL = "neutral"
# The number of queries that a GPU decodes together; on the CPU one query is decoded at a time.
_BLOCK = 256


class RewriteReformulator:
    """Rewrites the query with a language model, in six kinds.

    ``kinds``    the kinds to write, separated by commas: question, keywords, synonyms, specific,
                 paraphrase, neutral.
    ``samples``  the number of texts sampled for each kind. ``count``: the maximum number of candidates per query.
    ``model``    SmolLM2-135M-Instruct, another causal or seq2seq model, or a folder of ``askew train rewriter``.
    ``adapter``  the name of an adapter that askew ships, or a folder; "none" for none. Used with SmolLM2 only.
    ``device``   cuda or cpu; by default a language model runs on the GPU if there is one.
    """

    method = "rewrite"
    reads = frozenset[str]()

    def __init__(
        self, kinds: str = ",".join(KINDS), samples: Count = 8, count: Count = 20, model: str = SMOLLM,
        adapter: str = ADAPTER, revision: str | None = None, top_k: int = 50, top_p: float = 0.95,
        temperature: float = 1.0, max_new_tokens: int = 32, seed: int = 7, device: str | None = None,
    ) -> None:  # fmt: skip
        self._kinds = tuple(kind.strip() for kind in kinds.split(","))
        check_names("kind", self._kinds, KINDS, "rewrite")
        if len(set(self._kinds)) < len(self._kinds):
            raise ConfigError(f"rewrite: expected each of ⟨kinds⟩ once, found {kinds}")
        self._samples, self._count, self._seed = samples, count, seed
        self._model, self._revision, self._device = model, revision, device
        self._adapter = adapter if adapter != "none" and model == SMOLLM else None
        self._sampling = Sampling(max_new_tokens, 1, top_k, top_p, temperature)

    @property
    def _trained(self) -> bool:
        return (Path(self._model) / ABOUT).is_file()

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with model and adapter identified by their weights."""
        if self._trained:
            about = read_about(self._model)
            base = about.get("model") if about["kind"] == "causal" else None
            return {"model": identify(self._model), "base": base, "count": self._count}
        model = self._model if self._model == SMOLLM else identify(self._model, self._revision)
        how: dict[str, Any] = {"adapter": None if self._adapter is None else identify(str(find_adapter(self._adapter)))}
        if self._adapter is None:
            how["prompts"] = [load_prompt(kind).id for kind in self._kinds]
        return {"model": model, **how, "kinds": list(self._kinds), "samples": self._samples, "count": self._count,
                "seed": self._seed, **vars(self._sampling)}  # fmt: skip

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return distinct texts for each query; the kinds take turns."""
        candidates = Candidates()
        readable = [row for row, text in enumerate(batch.texts) if text.strip()]
        if len(readable) < len(batch):
            candidates.reject("nothing to read", len(batch) - len(readable))
        for row, lines in zip(readable, self._lines(batch, readable), strict=True):
            seen, count = {plain(batch.texts[row])}, 0
            for text, kind in lines:
                line = clean(text)
                reason = refuse(line, seen, batch.texts[row]) or ("beyond count" if count == self._count else "")
                if reason:
                    candidates.reject(reason)
                    continue
                seen.add(plain(line))
                candidates.add(row, line, kind=kind)
                count += 1
        return candidates

    def _lines(self, batch: QueryBatch, rows: Sequence[int]) -> Iterator[list[tuple[str, str | None]]]:
        """Yield the texts that the model writes for the query of each row, each with its kind."""
        if self._trained:
            rewriter = load_rewriter(self._model, self._device)
            # One query at a time: in a batch the last digits differ, which may change a close decision.
            for row in rows:
                yield [(line, None) for line in rewriter.write([batch.texts[row]], beams=self._count)[0]]
            return
        kind = kind_of(self._model, self._revision)
        writer = load_generator(self._model, kind, self._adapter, self._revision, self._device)
        for first in range(0, len(rows), _BLOCK):
            block = rows[first : first + _BLOCK]
            texts = [batch.texts[row] for row in block]
            seeds = [seed_for(self._seed, self.method, batch.query_ids[row]) for row in block]
            for by_kind in self._drawn(writer, texts, seeds):
                turns = zip_longest(*by_kind, fillvalue="")
                yield [(line, kind) for turn in turns for line, kind in zip(turn, self._kinds, strict=True) if line]

    def _drawn(self, writer: Generator, texts: Sequence[str], seeds: Sequence[int]) -> Iterator[list[list[str]]]:
        """Yield the samples of each kind for each text."""
        if self._adapter is not None:
            written: list[list[list[str]]] = [[] for _ in texts]
            gendered = [names_gender(text) for text in texts]
            for which in (False, True):
                rows = [row for row in range(len(texts)) if gendered[row] is which]
                endings = [kind_ending(kind) for kind in self._kinds if which or kind != NEUTRAL]
                prefixes = [query_prefix(texts[row]) for row in rows]
                drawn = writer.sample_kinds_many(
                    prefixes, endings, self._samples, [seeds[row] for row in rows], self._sampling
                )
                for row, lines in zip(rows, drawn, strict=True):
                    written[row] = lines
            for lines, neutral in zip(written, gendered, strict=True):
                by_kind = iter(lines)
                yield [next(by_kind) if neutral or kind != NEUTRAL else [] for kind in self._kinds]
            return
        prompts = [load_prompt(kind) for kind in self._kinds]
        for text, seed in zip(texts, seeds, strict=True):
            # A small model is asked for one reformulation and, unlike an endpoint, not for JSON.
            request = f"Query: {' '.join(text.split())}\nAnswer with one reformulation and nothing else."
            shown = [
                writer.shown([{"role": "system", "content": prompt.system}, {"role": "user", "content": request}])
                for prompt in prompts
            ]
            yield [
                [clean(text) for text in writer.sample(prompt, self._samples, seed + at, self._sampling)]
                for at, prompt in enumerate(shown)
            ]


@cache
def _gender_words() -> frozenset[str]:
    return frozenset(word for words in load_lexicon("gender").groups.values() for word in words)


def names_gender(text: str) -> bool:
    """Whether a query has a word of the gender lexicon, so that there is something to make neutral."""
    return not _gender_words().isdisjoint(plain_words(text))
