"""Queries generated from passages by a model, as in docTTTTTquery and Refairmulate.

A checkpoint is given by hub id or folder: ``castorini/doc2query-t5-base-msmarco`` (used in the papers),
``doc2query/msmarco-t5-small-v1``, or a model that you trained. docTTTTTquery samples with top-k 10 and 64 tokens.
Refairmulate (``preset="refairmulate"``) samples with top-p 0.9 and draws top-k (at most 20), temperature and length for
every round of calls. A causal model, with or without an adapter, is prompted with the passage and writes a question.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from askew.core.errors import ConfigError
from askew.core.plugins import Count, OneOf
from askew.core.protocols import Candidates, QueryBatch, seed_for
from askew.models.find import identify
from askew.models.generate import SMOLLM, Generator, Sampling, find_adapter, kind_of, load_generator
from askew.models.prompts import from_passage
from askew.rewrite.lexical import SAME

# Sampling of distinct candidates from a generative model, passage by passage, until there are enough.

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MOST_CHARACTERS = 300


@dataclass(frozen=True)
class Drawing:
    """The number of candidates per query, and how they are sampled.

    ``attempts`` is the maximum number of texts sampled for one query. Without it, sampling from a model that always
    writes the same text would never end.
    """

    count: int
    per_call: int
    attempts: int
    seed: int
    randomize: bool = False


def draw(
    batch: QueryBatch,
    prompt_of: Callable[[int, str], str],
    most_passages: int,
    writer: Generator,
    sampling: Sampling,
    how: Drawing,
    method: str,
) -> Candidates:
    """Sample candidates for every query from its top passages; ``prompt_of(row, passage)`` is the prompt of one.

    The passages of a query take turns, one in each round; all queries that have too few candidates share a round.
    """
    shown = [
        [
            (prompt_of(row, passage.text), passage.doc_id)
            for passage in (batch.passages[row][:most_passages] if batch.passages else ())
            if passage.text.strip()
        ]
        for row in range(len(batch))
    ]
    seen = [{plain(text)} for text in batch.texts]
    kept: list[list[tuple[str, str]]] = [[] for _ in batch.texts]
    rejected: list[list[str]] = [[] if prompts else ["nothing to read"] for prompts in shown]
    waiting, call = [row for row, prompts in enumerate(shown) if prompts], 0
    while waiting:
        drawn = call * how.per_call
        if how.randomize:  # drawn from the ranges of Refairmulate's generator
            rng, least = random.Random(seed_for(how.seed, method, str(call))), sampling.min_new_tokens
            longest = max(least, rng.randint(20, 64))
            sampling = Sampling(longest, least, rng.randint(5, 20), sampling.top_p, rng.uniform(0.7, 1.5))
        prompts = [shown[row][call % len(shown[row])] for row in waiting]
        seeds = [seed_for(how.seed, method, batch.query_ids[row], str(call)) for row in waiting]
        size = min(how.per_call, how.attempts - drawn)
        written = writer.sample_many([prompt for prompt, _ in prompts], size, seeds, sampling)
        for row, (_, doc_id), texts in zip(waiting, prompts, written, strict=True):
            for line in map(clean, texts):
                if len(kept[row]) == how.count:
                    break
                if reason := refuse(line, seen[row], batch.texts[row]):
                    rejected[row].append(reason)
                    continue
                seen[row].add(plain(line))
                kept[row].append((line, doc_id))
        call += 1
        waiting = [row for row in waiting if len(kept[row]) < how.count] if call * how.per_call < how.attempts else []
    candidates = Candidates()
    for row in range(len(batch)):
        for reason in rejected[row]:
            candidates.reject(reason)
        for line, doc_id in kept[row]:
            candidates.add(row, line, doc_id)
        if shown[row] and not kept[row]:
            candidates.reject("the model wrote no usable candidate for the query")
    return candidates


def clean(text: str) -> str:
    """Return the first line that is not blank, without control characters and enclosing quotes or list marks."""
    lines = (_CONTROL.sub(" ", line).strip(" \"'“”`*-") for line in text.split("\n"))
    return " ".join(next((line for line in lines if line), "").split())


def refuse(line: str, seen: set[str], original: str) -> str:
    """Return the reason why a line is not accepted as a candidate; empty if it is accepted."""
    if not line:
        return "empty"
    if len(line) > _MOST_CHARACTERS:
        return "too long"
    if plain(line) == plain(original):
        return SAME
    return "duplicate" if plain(line) in seen else ""


def plain(text: str) -> str:
    """Normalize a query: texts that differ only in case, blanks and final punctuation become equal."""
    return " ".join(text.lower().split()).rstrip("?.! ")


# Back-translation: a query is translated into another language and back, which rewords it.

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
        beams: Count = 4, device: str | None = None,
    ) -> None:  # fmt: skip
        self._languages = languages.split() or [""]
        if back is not None and len(self._languages) > 1:
            raise ConfigError(
                f"backtranslate: the parameter 'languages' names {len(self._languages)} languages, but the two models "
                "in 'model' and 'back' translate into only one language and back; set 'languages' to an empty text"
            )
        self._there, self._back, self._source = model, back or model, source if languages.split() else ""
        self._beams, self._device = beams, device

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the models identified by their weights."""
        models = [identify(self._there), identify(self._back)]
        return {"models": models, "languages": self._languages, "source": self._source, "beams": self._beams}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return one candidate for each language, if it differs from the query and from the other candidates."""
        away_model = load_generator(self._there, "seq2seq", None, None, self._device)
        back = load_generator(self._back, "seq2seq", None, None, self._device)
        candidates = Candidates()
        for row, text in enumerate(batch.texts):
            if not text.strip():
                candidates.reject("nothing to read")
                continue
            seen = {text.strip().lower()}
            for language in self._languages:
                (away,) = away_model.translate([text], self._source, language, self._beams)
                (home,) = back.translate([away], language, self._source, self._beams) if away else ("",)
                line = clean(home)
                if not line:
                    candidates.reject("empty")
                elif line.lower() in seen:
                    candidates.reject(SAME if line.lower() == text.strip().lower() else "duplicate")
                else:
                    seen.add(line.lower())
                    candidates.add(row, line)
        return candidates


# Queries generated from passages by any causal language model with a few-shot prompt.

# Written for askew, and short so that a small model can follow them.
EXAMPLES = (
    ("The heart of an adult at rest beats sixty to a hundred times a minute; that of a trained runner may be slower.",
     "what is a normal resting heart rate"),
    ("Sourdough rises by wild yeast. The dough is left for many hours, and the bacteria in it make it taste sour.",
     "why does sourdough taste sour"),
    ("To renew a passport, send the old one with two photographs and the fee; it takes about four weeks.",
     "how long does it take to renew a passport"),
)  # fmt: skip
_MOST_WORDS = 120


class FewShotReformulator:
    """Generates queries from the top-ranked passages with any causal language model and three examples.

    Without ``device``, the GPU is used if there is one.
    """

    method = "fewshot"
    reads = frozenset({"passages"})

    def __init__(
        self, model: str = SMOLLM, revision: str | None = None, count: Count = 10, passages: Count = 5, top_k: int = 20,
        top_p: float = 0.9, temperature: float = 0.8, max_new_tokens: int = 24, per_call: Count = 5,
        attempts: Count = 60, seed: int = 7, device: str | None = None,
    ) -> None:  # fmt: skip
        self._model, self._revision, self._device, self._passages = model, revision, device, passages
        self._sampling = Sampling(max_new_tokens, 1, top_k, top_p, temperature)
        self._how = Drawing(count, per_call, attempts, seed)

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the model identified by its weights."""
        model = self._model if self._model == SMOLLM else identify(self._model, self._revision)
        return {"model": model, "passages": self._passages, **vars(self._sampling), **vars(self._how)}

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return distinct generated queries for each query, in the order of sampling."""
        writer = load_generator(self._model, "causal", None, self._revision, self._device)

        shown = "".join(f"Text: {text}\nSearch query: {query}\n\n" for text, query in EXAMPLES)

        def prompt(row: int, passage: str) -> str:
            return f"{shown}Text: {' '.join(passage.split()[:_MOST_WORDS])}\nSearch query:"

        return draw(batch, prompt, self._passages, writer, self._sampling, self._how, self.method)


DEFAULT = "castorini/doc2query-t5-base-msmarco"
# The values of docTTTTTquery's README, and of Refairmulate's generate.py with its randomization switched on.
PRESETS = {
    "doctttttquery": (Sampling(64, 1, 10, 1.0, 1.0), False),
    "refairmulate": (Sampling(64, 1, 20, 0.9, 1.0), True),
}


class DocQueryReformulator:
    """Generates queries from the top-ranked passages with a T5-class or causal model, passage by passage.

    ``preset`` selects the sampling parameters (doctttttquery or refairmulate). ``prefix`` is put before each passage,
    which some checkpoints need. ``passages`` is the number of top-ranked passages that are read. With ``context`` the
    user and the time are put before the passage, as in the training of RePair's models ("USER: passage"). ``adapter``
    is the folder of an adapter for a causal model, made by ``askew train generator``. At most ``attempts`` texts are
    sampled for a query, by default ten times ``count``. Without ``device``, the GPU is used if there is one.
    """

    method = "docquery"
    reads = frozenset({"passages"})

    def __init__(
        self, model: str = DEFAULT, revision: str | None = None, count: Count = 10, passages: Count = 10,
        preset: Annotated[str, OneOf(tuple(PRESETS))] = "doctttttquery", prefix: str = "", per_call: Count = 5,
        attempts: Count | None = None, seed: int = 7,
        device: str | None = None, context: bool = False, adapter: str | None = None,
    ) -> None:  # fmt: skip
        self._sampling, randomize = PRESETS[preset]
        self._how = Drawing(count, per_call, attempts or 10 * count, seed, randomize)
        self._model, self._revision, self._device, self._adapter = model, revision, device, adapter
        self._passages, self._prefix, self._preset, self._context = passages, prefix, preset, context

    def settings(self) -> dict[str, Any]:
        """Return everything that determines the candidates, with the model identified by its weights."""
        return {
            "model": self._model if self._model == SMOLLM else identify(self._model, self._revision),
            "adapter": None if self._adapter is None else identify(str(find_adapter(self._adapter))),
            "passages": self._passages, "prefix": self._prefix,
            "preset": self._preset, "count": self._how.count, "per_call": self._how.per_call,
            "attempts": self._how.attempts, "seed": self._how.seed, "context": self._context,
        }  # fmt: skip

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """Return distinct generated queries for each query, in the order of sampling."""
        kind = kind_of(self._model, self._revision)
        writer = load_generator(self._model, kind, self._adapter, self._revision, self._device)
        shown = from_passage if kind == "causal" else str

        def prompt(row: int, passage: str) -> str:
            context = batch.contexts[row] if self._context and batch.contexts else None
            return shown(self._prefix + (f"{context}: " if context else "") + passage)

        return draw(batch, prompt, self._passages, writer, self._sampling, self._how, self.method)
