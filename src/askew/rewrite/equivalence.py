"""Models that decide whether a reformulation has the meaning of its query, and whether a person would type it.

``light``   logistic regressions on the words, names and numbers that a pair shares or does not share
            (``askew.rewrite.equivalence``). Less accurate, but there is no model to install.
``minilm``  logistic regressions on the logits of ``light`` and of a MiniLM cross-encoder (adapter
            ``minilm-equivalence``).
``neural``  logistic regressions on the same logits and those of SmolLM2, which also reads both texts (adapter
            ``smollm2-equivalence``).

Each model gives a pair the probabilities *same* and *natural*, calibrated on labeled reformulations. *Natural* means
that one would not be surprised to see the reformulation in a query log: a stiff one ("people who are nurses") is not
natural. The cards of the models report their quality.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA, digest_file, parse_json
from askew.core.plugins import Share
from askew.core.ranking import Floats
from askew.models.find import MINILM, has_minilm, has_smollm, identify, need, need_smollm
from askew.rewrite.filters import light_similarity, stem
from askew.rewrite.names import COUNT_BOUNDS, UNSEEN, KeptNames, read_table
from askew.rewrite.words import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    adds_number,
    has_numbers,
    numbers,
    parts_of_numbers,
    plain_words,
    readings,
)

# Whether a reformulation has the meaning of its query, and whether a person would type it, without a neural model.

CERTAINTY = 0.5
_NEGATIONS = frozenset(("not", "no", "never", "without", "non", "t", "cannot", "none", "neither", "nor"))
_COMPARED = frozenset(
    ("most", "least", "best", "worst", "more", "less", "only", "all", "any", "every", "same", "other")
)
# The number of frequency classes in the table of names.
_COUNT_CLASSES = len(COUNT_BOUNDS) + 1

# "Left out" are words that only the original query has, and "added" are words that only the reformulation has. "Left
# out and added": there are words of both kinds. "As many left out as added": the numbers of both kinds are equal and
# not 0. "Begins as the query": the first two words of both texts are equal. "Share of pairs kept": the share of the
# pairs of adjacent words in the query that the reformulation also has. Features of one text, such as "ends with
# function word", describe the reformulation.
FEATURES = (
    "similarity", "similarity squared", "left out", "share left out", "none left out", "added", "share added",
    "none added", "left out, rare", "added, rare", "added, names", "names lost", "numbers lost", "numbers added",
    "length ratio", "length", "query length", "follows the query", "begins as the query", "share of pairs kept",
    "order changed", "share of function words", "no function word", "question word lost", "question word added",
    "negation changed", "comparison lost", "function words left out", "function words added", "repeats",
    "left out and added", "as many left out as added", "ends with function word", "ends with added word", "looks alike",
)  # fmt: skip


def pair_features(originals: Sequence[str], candidates: Sequence[str]) -> Floats:
    """Return the features of each pair: a row per pair, a column for each of ``FEATURES``."""
    sides = {text: _QuerySide(text) for text in set(originals)}
    similarities = light_similarity(originals, candidates).tolist()
    features = np.empty((len(candidates), len(FEATURES)))
    for i, (original, candidate, similarity) in enumerate(zip(originals, candidates, similarities, strict=True)):
        features[i] = _row(sides[original], _Side(candidate), similarity)
    return features


class _Side:
    """The words of one text of a pair."""

    __slots__ = ("content", "function", "pairs", "places", "text", "words")

    def __init__(self, text: str) -> None:
        words = plain_words(text)
        self.text, self.words = text, words
        self.content = [word for word in words if word not in FUNCTION_WORDS]
        self.function = FUNCTION_WORDS.intersection(words)
        self.pairs = set(pairwise(words))
        # The position of each content word, by its stem.
        self.places = {stem(word): i for i, word in enumerate(self.content)}


class _QuerySide(_Side):
    """The words of an original, and the names and numbers that a candidate must keep."""

    __slots__ = ("names", "numbers", "readings", "typed")

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.names = KeptNames(text, CERTAINTY)
        self.typed = parts_of_numbers(self.words)
        self.numbers = numbers(text) if self.typed else self.typed
        self.readings = readings(text) if self.typed else self.typed


def _row(query: _QuerySide, candidate: _Side, similarity: float) -> list[float]:
    """The features, in the order of their names."""
    removed = [query.content[i] for key, i in query.places.items() if key not in candidate.places]
    new = [candidate.content[i] for key, i in candidate.places.items() if key not in query.places]
    size, other_size = len(query.words) or 1, len(candidate.words) or 1
    order = [query.places[key] for key in candidate.places if key in query.places]
    gone, came = query.function - candidate.function, candidate.function - query.function
    last = candidate.words[-1] if candidate.words else ""
    # The share of left-out words with the first four letters of a new word: mostly forms of the same word.
    heads = {word[:4] for word in new}
    alike = sum(word[:4] in heads for word in removed) / len(removed) if removed else 0.0
    return [
        similarity, similarity * similarity, *_counts(removed, query), *_counts(new, candidate),
        sum(map(_rarity, removed)), sum(map(_rarity, new)), sum(map(_is_name, new)),
        query.names.lost_in(candidate.text, candidate.words),
        not query.typed.issubset(candidate.words) and not has_numbers(candidate.text, query.numbers),
        bool(new) and not "".join(new).isalpha() and adds_number(candidate.text, query.readings),
        math.log(other_size / size), math.log(other_size), math.log(size),
        query.words == candidate.words[: len(query.words)],
        query.words[:2] == candidate.words[:2], len(query.pairs & candidate.pairs) / (len(query.pairs) or 1),
        sum([b < a for a, b in pairwise(order)]) / (len(order) or 1),
        1 - len(candidate.content) / other_size, not candidate.function,
        not gone.isdisjoint(QUESTION_WORDS), not came.isdisjoint(QUESTION_WORDS),
        query.function.isdisjoint(_NEGATIONS) != candidate.function.isdisjoint(_NEGATIONS),
        not (_COMPARED.isdisjoint(gone) and _COMPARED.isdisjoint(removed)),
        min(4, len(gone)) / 4, min(4, len(came)) / 4,
        len(candidate.content) > len(candidate.places), bool(removed and new), len(removed) == len(new) > 0,
        last in FUNCTION_WORDS, last in new, alike,
    ]  # fmt: skip


def _counts(words: list[str], side: _Side) -> tuple[float, float, bool]:
    return min(5, len(words)) / 5, len(words) / (len(side.places) or 1), not words


@lru_cache(maxsize=1 << 16)
def _is_name(word: str) -> bool:
    """Whether a word by itself is taken for a name."""
    return bool(read_table().names([word], CERTAINTY))


@lru_cache(maxsize=1 << 16)
def _rarity(word: str) -> float:
    """0 for the most frequent words, 1 for words that the table of names does not have."""
    code = read_table().code(word)
    return 1.0 - (code % _COUNT_CLASSES + 1) / _COUNT_CLASSES if code < UNSEEN else 1.0


ADAPTER = "smollm2-equivalence"
MINILM_ADAPTER = "minilm-equivalence"
MODELS = ("auto", "neural", "minilm", "light")
OTHER_MEANING = "other meaning"
NOT_NATURAL = "not natural"
OUTSIDE = "unlike the texts that the judge was trained on"
# Of the labeled pairs that the models were fit on, 1 in 750 is longer than this; none repeats its query. Expansions by
# language models are outside this range, and the models cannot tell which of them ask for the same thing
# (benchmarks/equivalence.py).
MOST_WORDS, MOST_PER_WORD, SHORTEST = 31, 4, 2
WEIGHTS = "equivalence.json"
LIGHT = DATA / "equivalence-light.json"
OUTPUTS = ("same", "natural")


def in_range(original: str, candidate: str) -> bool:
    """Whether a pair is like those that the models were fit on: not much longer than the query, nor repeating it."""
    query, words = plain_words(original), plain_words(candidate)
    size = len(query)
    if len(words) > min(MOST_WORDS, MOST_PER_WORD * max(SHORTEST, size)):
        return False
    return size < SHORTEST or sum(words[at : at + size] == query for at in range(len(words) - size + 1)) < 2


def chosen_model(model: str) -> str:
    """Return the name of a model; ``auto`` is the best model with installed libraries and weights."""
    if model not in MODELS:
        raise ConfigError(f"equivalence: expected ⟨model⟩ to be one of {', '.join(MODELS)}, found {model!r}")
    if model != "auto":
        return model
    return "light" if not has_minilm() else "neural" if has_smollm() else "minilm"


class EquivalenceFilter:
    """Drops reformulations that have another meaning, that nobody would type, or that the model cannot judge.

    It cannot judge texts unlike those it was fit on: longer than 31 words or 4 words per word of the query, or with the
    whole query more than once. Expansions by language models are such texts.

    ``same``, ``natural``  the minimum probabilities; by default those chosen on the development labels.
    ``model``              auto, neural (extras neural and lm), minilm (extra neural) or light.
    ``adapter``            the folder of another adapter for the model, SmolLM2 or MiniLM.
    ``device``             cuda or cpu; by default the GPU if there is one.
    """

    name = "equivalence"

    def __init__(
        self, same: Share | None = None, natural: Share | None = None, model: str = "auto", adapter: str | None = None,
        device: str | None = None,
    ) -> None:  # fmt: skip
        self.model = chosen_model(model)
        self._judge = load_judge(self.model, adapter, device)
        self.thresholds = {
            output: self._judge.thresholds[output] if limit is None else float(limit)
            for output, limit in zip(OUTPUTS, (same, natural), strict=True)
        }

    def settings(self) -> Mapping[str, Any]:
        """Return the model, identified by its weights, and the thresholds."""
        return {"model": self._judge.id, **self.thresholds}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return None for each kept reformulation, and else the reason."""
        return [self.reason(scores) for scores in self.score(originals, candidates)]

    def reason(self, scores: Mapping[str, float]) -> str | None:
        """Return the reason why a pair with these probabilities is dropped; None if it is kept."""
        if math.isnan(scores["same"]):
            return OUTSIDE
        if scores["same"] < self.thresholds["same"]:
            return OTHER_MEANING
        return NOT_NATURAL if scores["natural"] < self.thresholds["natural"] else None

    def score(self, originals: Sequence[str], candidates: Sequence[str]) -> list[dict[str, float]]:
        """Return the probabilities ``same`` and ``natural`` of each pair; NaN if they cannot be judged."""
        if len(originals) != len(candidates):
            sizes = f"{len(originals)} queries and {len(candidates)} reformulations"
            raise ConfigError(
                f"equivalence: expected exactly one reformulation for each query, found {sizes}", code="unequal-lengths"
            )
        if not len(originals):
            return []
        probabilities = 1 / (1 + np.exp(-self._judge.logits(originals, candidates)))
        judged = [in_range(*pair) for pair in zip(originals, candidates, strict=True)]
        probabilities[np.logical_not(judged)] = np.nan
        return [dict(zip(OUTPUTS, pair, strict=True)) for pair in probabilities.tolist()]


class _Judge:
    """Two logistic regressions on features of a pair; their weights and thresholds are read from a file."""

    def __init__(self, file: Path, identity: str) -> None:
        self._weights, self._bias, self.thresholds = read_weights(file)
        self.id = identity

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        return pair_features(originals, candidates)

    def logits(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        """A row for each pair, a column for each output."""
        logits: Floats = self.features(originals, candidates) @ self._weights + self._bias
        return logits


class _MinilmJudge(_Judge):
    """Uses the logits of the cross-encoder, which is loaded at first use, and those of the light model."""

    def __init__(self, adapter: str, device: str | None) -> None:
        for library in ("torch", "transformers"):
            need(library, f"the equivalence model {adapter!r}")
        from askew.models.adapted import find_encoder_adapter

        self._folder, self._device = find_encoder_adapter(adapter, MINILM_ADAPTER), device
        self._light = load_judge("light")
        super().__init__(self._folder / WEIGHTS, f"{identify(MINILM)}+{identify(str(self._folder))}+{self._light.id}")

    @cached_property
    def _network(self) -> tuple[Any, Any]:
        from askew.models.pair_network import load_pair_network

        return load_pair_network(MINILM, self._folder, self._device)

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        from askew.models.pair_network import pair_logits

        logits = pair_logits(*self._network, originals, candidates)
        return np.hstack([logits, self._light.logits(originals, candidates)])


class _NeuralJudge(_Judge):
    """Uses the logits of SmolLM2, which is loaded at first use, and the features of the MiniLM model."""

    def __init__(self, adapter: str, device: str | None) -> None:
        need_smollm(f"the equivalence model {adapter!r}")
        from askew.models.generate import SMOLLM, find_adapter

        self._folder, self._device = find_adapter(adapter), device
        self._smaller = load_judge("minilm", None, device)
        super().__init__(self._folder / WEIGHTS, f"{SMOLLM}+{identify(str(self._folder))}+{self._smaller.id}")

    @cached_property
    def _network(self) -> Any:
        from askew.models.pair_network import load_pair_judge

        return load_pair_judge(self._folder, device=self._device)

    def features(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        logits = self._network.logits(originals, candidates)
        return np.hstack([logits, self._smaller.features(originals, candidates)])


@cache
def load_judge(model: str, adapter: str | None = None, device: str | None = None) -> _Judge:
    """Load one of the models; each is loaded once."""
    if model == "light":
        return _Judge(LIGHT, f"light@{digest_file(LIGHT)[:12]}")
    if model == "minilm":
        return _MinilmJudge(adapter or MINILM_ADAPTER, device)
    return _NeuralJudge(adapter or ADAPTER, device)


def read_weights(file: Path) -> tuple[Floats, Floats, dict[str, float]]:
    """The weights (features, outputs), the bias and the threshold of each output."""
    try:
        facts = parse_json(file.read_bytes())
        weights = np.array([facts[output]["weights"] for output in OUTPUTS], np.float64).T
        bias = np.array([facts[output]["bias"] for output in OUTPUTS], np.float64)
        thresholds = {output: float(facts[output]["threshold"]) for output in OUTPUTS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: expected weights, bias and threshold of {' and '.join(OUTPUTS)} ({error!r}); install askew again",
            code="damaged-weights",
        ) from None
    return weights, bias, thresholds
