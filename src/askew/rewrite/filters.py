"""A filter that drops candidates that name a group which their original query does not name."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from askew.core import defaults
from askew.core import plugins as registry
from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError, place
from askew.core.groups import Groups, GroupsLike
from askew.core.plugins import Between, Count, OneOf
from askew.core.ranking import Floats
from askew.core.text import Tokenizer, build_vocabulary
from askew.data.files import read_text
from askew.measures.statistics.curves import Calibration
from askew.measures.statistics.curves import calibrate as choose_threshold
from askew.models import MINILM, halving, identify, load_model
from askew.rewrite.lexical import SAME
from askew.rewrite.words import FUNCTION_WORDS, tokens

# Labeled pairs of an original and a candidate, for the choice of a filter's threshold.

# Known names of columns; the first one that a file has is used.
QUERY_NAMES = ("original_query", "original", "query", "original_text", "text")
CANDIDATE_NAMES = ("variation", "variant", "candidate", "reformulation", "paraphrase", "rewrite")
LABEL_NAMES = ("valid", "label", "keeps_meaning", "keeps_the_meaning", "same_meaning")
ID_NAMES = ("q_id", "query_id", "qid", "id")
_LABELS = {
    **dict.fromkeys(("1", "true", "yes", "y", "t", "1.0"), 1),
    **dict.fromkeys(("0", "false", "no", "n", "f", "0.0"), 0),
}
NOT_ASKED = "the value of the pair in a column is not among the values that only= lists"


@dataclass(frozen=True)
class LabeledPairs:
    """Pairs with labels: 1 if the candidate keeps the meaning, else 0. ``queries`` has the query of each pair.

    ``left_out`` counts the excluded pairs by reason.
    """

    originals: tuple[str, ...]
    candidates: tuple[str, ...]
    labels: npt.NDArray[np.int8]
    queries: tuple[str, ...]
    left_out: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.originals)


def read_labeled(path: Path | str, only: Mapping[str, Collection[str]] | None = None) -> LabeledPairs:
    """Read labeled pairs from a CSV or TSV file with a header line, by the known names of its columns.

    ``only`` maps columns to the values to keep, such as ``{"transformation_type": ["paraphrase"]}``. Candidates that
    only repeat the original are left out: they keep the meaning, but annotators label them as wrong because nothing was
    changed, and every similarity gives them its highest score.
    """
    file = Path(path)
    rows = _rows(file)
    _, first = next(rows, (0, None))
    if first is None:
        raise DataError(f"labeled pairs {file}: the file is empty; expected a header line and labeled pairs")
    header = [name.strip() for name in first]
    at_query = _column(header, QUERY_NAMES, "the original query", file)
    at_candidate = _column(header, CANDIDATE_NAMES, "the candidate", file)
    at_label = _column(header, LABEL_NAMES, "the label", file)
    at_id = next((header.index(name) for name in ID_NAMES if name in header), at_query)
    for name in only or {}:
        if name not in header:
            columns = ", ".join(header)
            raise ConfigError(f"labeled pairs {file}: expected a column {name!r}, found the columns {columns}")
    tests = {header.index(name): frozenset(values) for name, values in (only or {}).items()}
    pairs, left_out = [], Counter[str]()
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"{place(file, line)}: expected {len(header)} columns as in the header, found {len(row)}")
        if (label := _LABELS.get(row[at_label].strip().lower())) is None:
            expected = "expected a label such as true, false, 1 or 0"
            raise DataError(f"{place(file, line)}: {expected}, found {row[at_label]!r}")
        if not all(row[at] in values for at, values in tests.items()):
            left_out[NOT_ASKED] += 1
        elif tokens(row[at_query]) == tokens(row[at_candidate]):
            left_out[SAME] += 1
        else:
            pairs.append((row[at_query], row[at_candidate], label, row[at_id]))
    if not pairs and not left_out[SAME]:
        raise DataError(f"labeled pairs {file}: expected pairs after the header line, found none")
    originals, candidates, labels, queries = zip(*pairs, strict=True) if pairs else ((), (), (), ())
    return LabeledPairs(originals, candidates, np.array(labels, np.int8), queries, left_out)


def _column(header: list[str], names: Sequence[str], what: str, file: Path) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    expected = f"a column for {what} (one of {', '.join(names)})"
    raise ConfigError(f"labeled pairs {file}: expected {expected}, found the columns {', '.join(header)}")


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the number of its first line."""
    if file.suffix.lower() not in (".csv", ".tsv"):
        raise ConfigError(f"labeled pairs {file}: expected a .csv or .tsv file, found {file.suffix or 'no ending'!r}")
    text = read_text(file, "labeled pairs")
    separator = "\t" if file.suffix.lower() == ".tsv" else ","
    reader, line = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True), 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{place(file, line)}: not a line of a CSV file ({error})") from None


# The similarity of two short texts in spelling: a cosine that needs no model and no statistics of a collection.

SIZES = (2, 3)
STEM_WEIGHT = 0.3
FUNCTION_WORD_WEIGHT = 0.2
Vector = tuple[dict[str, float], float]
_ENDINGS = ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")


def light_similarity(originals: Sequence[str], candidates: Sequence[str]) -> Floats:
    """Return the cosine of each pair: 1 for the same words, 0 for nothing in common or an empty text."""
    vectors = {text: text_vector(text) for text in set(originals)}
    cosines = (_cosine(vectors[a], text_vector(b)) for a, b in zip(originals, candidates, strict=True))
    return np.fromiter(cosines, np.float64, len(candidates))


@lru_cache(maxsize=256)
def text_vector(text: str) -> Vector:
    """The features of a text, and the length of its vector."""
    features: dict[str, float] = {}
    get = features.get
    for token, count in Counter(tokens(text)).items():
        times = 1.0 + math.log(count) if count > 1 else 1.0
        for feature, value in _word_vector(token):
            features[feature] = get(feature, 0.0) + times * value
    return features, math.hypot(*features.values())


@lru_cache(maxsize=1 << 16)
def _word_vector(token: str) -> tuple[tuple[str, float], ...]:
    """The features of a word, multiplied by the weight of the word."""
    marked = f"<{token}>"
    grams = Counter(marked[i : i + n] for n in SIZES for i in range(len(marked) - n + 1))
    length = math.hypot(*grams.values())
    weight = math.sqrt(len(token)) * (FUNCTION_WORD_WEIGHT if token in FUNCTION_WORDS else 1.0)
    weight /= math.hypot(1.0, STEM_WEIGHT)
    # A blank marks a stem: no gram has one.
    whole = (" " + stem(token), STEM_WEIGHT * weight)
    return (*((gram, weight * count / length) for gram, count in grams.items()), whole)


@lru_cache(maxsize=1 << 16)
def stem(token: str) -> str:
    """Remove the most common English endings; rough on purpose, because the character pairs cover other forms."""
    for ending in _ENDINGS:
        if token.endswith(ending) and len(token) - len(ending) >= 3:
            token = token[: -len(ending)] + ("y" if ending in ("ies", "ied") else "")
            break
    if len(token) > 3 and token[-1] == token[-2] and token[-1] not in "ls":
        token = token[:-1]
    return token[:-1] if len(token) > 4 and token.endswith("e") else token


def _cosine(first: Vector, other: Vector) -> float:
    if len(first[0]) > len(other[0]):
        first, other = other, first
    (few, one_length), (many, other_length) = first, other
    if not few:
        return 0.0
    get = many.get
    dot = sum([value * get(feature, 0.0) for feature, value in few.items()])
    # Rounded, because the order of the words changes the last digits, and the same words must give the same cosine.
    return round(dot / (one_length * other_length), 9)


# Whether a candidate keeps the meaning of the original, estimated by the similarity of two vectors.

FAR = "meaning too far"
# The thresholds with the highest F1 on the labeled variations of ANTIQUE, rounded (tests/rewrite/test_calibrated.py has
# the numbers). Only the kinds that reformulators make are used: 1,066 paraphrases, synonyms and shortened queries, 68 %
# of them valid. Misspelled and reordered queries are left out, because all are valid: with them neural's best threshold
# keeps nearly all pairs. On the same kinds of TREC DL 2019, neural's best threshold is 0.66, and light's keeps nearly
# all pairs (F1 0.84 to 0.85).
THRESHOLDS = {"light": 0.53, "neural": 0.68}


class SemanticFilter:
    """Drops candidates too different from the original, by spelling (light, no model) or a sentence encoder (neural).

    ``threshold``  the minimum cosine; by default the calibrated threshold of the similarity.
    ``model``      an encoder by name, folder or hub id; used with ``similarity="neural"`` only.
    """

    name = "semantic"

    def __init__(
        self, similarity: Annotated[str, OneOf(tuple(THRESHOLDS))] = defaults.SIMILARITY, model: str = MINILM,
        revision: str | None = None, threshold: Annotated[float, Between(-1, 1)] | None = None, batch_size: Count = 64,
        device: str | None = None,
    ) -> None:  # fmt: skip
        self._similarity, self._model, self._revision = similarity, model, revision
        self._batch, self._device = batch_size, device
        self.threshold = THRESHOLDS[similarity] if threshold is None else float(threshold)

    def settings(self) -> Mapping[str, Any]:
        """Return the similarity with its threshold, and the encoder, if there is one, identified by its weights."""
        weights = identify(self._model, self._revision) if self._similarity == "neural" else None
        return {"similarity": self._similarity, "threshold": self.threshold, "model": weights}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return ``meaning too far`` for each pair with a similarity below the threshold, and None for other pairs."""
        scores = self.score_pairs(originals, candidates)
        return [None if near else FAR for near in (scores >= self.threshold).tolist()]

    def score_pairs(self, originals: Sequence[str], candidates: Sequence[str]) -> Floats:
        """Return the cosine of each pair, on which a threshold can be calibrated."""
        if len(originals) != len(candidates):
            sizes = f"{len(originals)} originals and {len(candidates)} candidates"
            raise ConfigError(f"semantic: expected as many candidates as original queries, found {sizes}")
        if self._similarity == "light":
            return light_similarity(originals, candidates)
        if not len(originals):
            return np.zeros(0)
        encoder = load_model("dense", self._model, self._revision, self._device)
        places = {text: i for i, text in enumerate(dict.fromkeys([*originals, *candidates]))}
        count_model_calls(len(places))
        encode = partial(
            encoder.encode, list(places), show_progress_bar=False, convert_to_numpy=True, normalize_embeddings=True
        )
        vectors = halving(encoder, self._batch, lambda size: encode(batch_size=size))
        left, right = [places[text] for text in originals], [places[text] for text in candidates]
        return np.asarray(np.einsum("ij,ij->i", vectors[left], vectors[right]), np.float64)


# Choose the threshold of the semantic filter on labeled pairs.

_POINTS = 12


@dataclass(frozen=True)
class Calibrated:
    """A calibration, and the numbers of pairs and queries that it is based on."""

    found: Calibration
    pairs: int
    queries: int
    left_out: Mapping[str, int]

    def facts(self) -> dict[str, Any]:
        """All values as JSON values, with a dozen points of the precision-recall curve."""
        curve, cut, area = self.found.curve, self.found.cut, self.found.average_precision
        places = np.unique(np.linspace(0, len(curve.thresholds) - 1, _POINTS).round().astype(int))
        points = [
            {"threshold": float(curve.thresholds[i]), "precision": float(curve.precision[i]),
             "recall": float(curve.recall[i]), "kept": float(curve.kept[i] / self.pairs)}
            for i in places
        ]  # fmt: skip
        return {
            "pairs": self.pairs, "queries": self.queries, "left_out": dict(self.left_out), "base_rate": curve.base_rate,
            "average_precision": area.value, "low": area.low, "high": area.high, "threshold": cut.threshold,
            "precision": cut.precision, "recall": cut.recall, "curve": points,
        }  # fmt: skip


def calibrate(
    labeled: Path, similarity: str, rule: str, least: float, seed: int, settings: Mapping[str, Any]
) -> Calibrated:
    """The precision-recall curve of a similarity on labeled pairs, its area, and the threshold chosen by a rule."""
    pairs = read_labeled(labeled)
    semantic: SemanticFilter = registry.build("filter", "semantic", {"similarity": similarity, **settings})
    scores = semantic.score_pairs(pairs.originals, pairs.candidates)
    calibration = choose_threshold(scores, pairs.labels, pairs.queries, rule=rule, least_precision=least, seed=seed)
    return Calibrated(calibration, len(pairs), len(set(pairs.queries)), pairs.left_out)


GROUP_ADDED = "group added"
DEFAULT_LEXICON = "gender"


class GroupFilter:
    """Drops candidates that name a group which the original query does not name.

    ``groups``  a lexicon by name or file, or groups; the lexicon gender if not given.
    """

    name = "groups"

    def __init__(self, groups: GroupsLike | None = None) -> None:
        self._groups = Groups.of(DEFAULT_LEXICON if groups is None else groups)
        self._tokenize: Tokenizer = registry.load("tokenizer", self._groups.tokenizer)
        self._vocabulary = build_vocabulary(self._groups.counted, self._tokenize, self._groups.tokenizer)

    def settings(self) -> Mapping[str, Any]:
        """Return the words of the groups, identified by their content, and the tokenizer."""
        return {"lexicon": self._groups.counted.id, "tokens": self._groups.tokenizer}

    def check(self, originals: Sequence[str], candidates: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """Return a list with None for each kept candidate, and the reason for each dropped candidate."""
        counts = {text: self._vocabulary.count(self._tokenize(text)) for text in {*originals, *candidates}}
        named = {text: {group for group, n in enumerate(of_groups) if n} for text, of_groups in counts.items()}
        pairs = zip(originals, candidates, strict=True)
        return [None if named[after] <= named[before] else GROUP_ADDED for before, after in pairs]
