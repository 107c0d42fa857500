"""Which group a query asks about, by the group words that it contains.

Probabilities are computed from the counts. With c(g) mentions of each of G groups, and c2 the second highest count, the
weights are::

    neutral      NEUTRAL + c2
    each group   c(g) + OTHERS / G

and a probability is a weight divided by the sum of all weights. Mentions of several groups raise the probability of
neutral, and the label with the highest probability is the group named most, or neutral. NEUTRAL and OTHERS are
set so that the probabilities for no mention and for one mention are close to the accuracy on the 3,709 annotated MS
MARCO queries of Rekabsaz and Schedl (2020) with the lexicon ``gender`` and first names: 0.63 and 0.93 (two mentions,
not fitted: 0.97). That sample has more gendered queries than a query log, so in a log "neutral" is right more often
than its probability says.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from askew.core import defaults
from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA, parse_json, write_whole
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import Lexicon, load_lexicon, shipped_lexicons
from askew.core.plugins import Count, OneOf, Positive, Share, from_spec, settings_of
from askew.core.protocols import Classified, ClassifierPlugin
from askew.core.ranking import Floats, Ints
from askew.core.text import build_vocabulary, word
from askew.models import load_classifier, locate
from askew.models.find import MINILM, has_minilm, identify, need

if TYPE_CHECKING:
    import polars as pl

# Temperature scaling (Guo and others 2017): one number that calibrates the probabilities of a classifier.

FILE = "calibration.json"
# A temperature outside these bounds means that there were too few errors, or only errors, to fit it.
COLDEST, HOTTEST = 0.05, 20.0


def softmax(logits: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities of each row; they sum to one."""
    from scipy import special

    return np.asarray(special.softmax(logits / temperature, axis=1))


def log_loss(logits: Floats, labels: npt.NDArray[np.integer], temperature: float = 1.0) -> float:
    """Mean negative log-likelihood of the right labels."""
    from scipy import special

    return float(-np.mean(special.log_softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels]))


def fit_temperature(logits: Floats, labels: npt.NDArray[np.integer]) -> float:
    """Return the temperature with the lowest log loss on held-out texts.

    The loss is convex in 1 / temperature, so it has one minimum.
    """
    from scipy import optimize

    if logits.ndim != 2 or len(logits) != len(labels) or not len(labels):
        raise DataError(
            f"temperature: expected one row of logits for each label, found logits of shape {logits.shape} "
            f"and {len(labels)} labels",
            code="unequal-lengths",
        )
    if labels.min() < 0 or labels.max() >= logits.shape[1]:
        raise DataError(f"temperature: expected labels from 0 to {logits.shape[1] - 1}, found another label")

    def loss(logarithm: float) -> float:
        return log_loss(logits, labels, math.exp(logarithm))

    bounds = (math.log(COLDEST), math.log(HOTTEST))
    best = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return math.exp(best.x)


def write_calibration(folder: Path | str, logits: Floats, labels: npt.NDArray[np.integer]) -> dict[str, Any]:
    """Fit the temperature on held-out texts and write it to the folder of the model."""
    temperature = fit_temperature(logits, labels)
    facts = {
        "temperature": temperature, "texts": len(labels), "log_loss_before": log_loss(logits, labels),
        "log_loss_after": log_loss(logits, labels, temperature),
    }  # fmt: skip
    write_whole(Path(folder) / FILE, json.dumps(facts, indent=2, sort_keys=True) + "\n")
    return facts


def read_temperature(folder: Path | str) -> float:
    """Read the temperature from the folder of a model; 1, which changes nothing, if there is none."""
    file = Path(folder) / FILE
    if not file.is_file():
        return 1.0
    try:
        facts = parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: expected JSON with a temperature ({error})") from None
    temperature = facts.get("temperature") if isinstance(facts, dict) else None
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 < temperature < math.inf:
        raise DataError(f"{file}: expected a temperature above 0, found {temperature!r}")
    return float(temperature)


# Trained classifiers: a checkpoint for sequence classification, with a temperature that calibrates it.


class LogitsClassifier:
    """Classifies by any function that returns a row of logits for each text; the base of ``TransformerClassifier``.

    ``identity`` contains, as JSON values, everything that determines the logits.
    """

    name = "logits"

    def __init__(
        self, predict_logits: Callable[[Sequence[str]], Floats], labels: Sequence[str], temperature: float = 1.0,
        abstain_below: float = 0.0, identity: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if len(set(labels)) != len(labels) or len(labels) < 2:
            raise ConfigError(f"{self.name}: expected two labels or more, each once, found {', '.join(labels)}")
        self.labels = tuple(labels)
        self._predict, self._temperature, self._least = predict_logits, float(temperature), float(abstain_below)
        self._identity = dict(identity or {})

    def settings(self) -> Mapping[str, Any]:
        """Return the model, identified by its weights, its labels, its temperature and the threshold."""
        return {
            **self._identity, "labels": list(self.labels), "temperature": self._temperature,
            "abstain_below": self._least,
        }  # fmt: skip

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return the most probable label of each text, or -1 where its probability is below ``abstain_below``."""
        if not len(texts):
            return Classified(self.labels, np.zeros((0, len(self.labels))), np.zeros(0, np.int64))
        logits = np.asarray(self._predict(list(texts)), np.float64)
        if logits.shape != (len(texts), len(self.labels)) or not np.isfinite(logits).all():
            expected = f"{len(texts)} rows of {len(self.labels)} finite logits"
            raise ConfigError(f"{self.name}: expected {expected}, found the shape {logits.shape}")
        return _classified(self.labels, softmax(logits, self._temperature), self._least)


def _classified(labels: tuple[str, ...], probabilities: Floats, least: float) -> Classified:
    """The most probable label of each row, or -1 where its probability is below ``least``."""
    chosen = probabilities.argmax(axis=1).astype(np.int64)
    chosen[probabilities.max(axis=1) < least] = -1
    return Classified(labels, probabilities, chosen)


class TransformerClassifier(LogitsClassifier):
    """A trained transformer for sequence classification, by folder or hub id, with calibrated probabilities.

    ``temperature``    by default the one in ``calibration.json`` in the folder of the model, or 1 if there is none (a
                       model of the hub has none: give it here).
    ``labels``         other names for the model's labels, in its order, separated by commas.
    ``abstain_below``  abstain if the probability of the label is lower; 0: never.
    """

    name = "transformer"

    def __init__(
        self, model: str, revision: str | None = None, labels: str = "", temperature: Positive | None = None,
        abstain_below: Share = 0.0, batch_size: Count = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        loaded = load_classifier(model, revision, device)
        names = tuple(name.strip() for name in labels.split(",")) if labels else loaded.labels
        if len(names) != len(loaded.labels) or not all(names):
            expected = f"{len(loaded.labels)} label names (for {', '.join(loaded.labels)})"
            raise ConfigError(f"transformer: expected {expected}, found {labels!r}")
        super().__init__(
            lambda texts: loaded.logits(texts, batch_size),
            names,
            read_temperature(locate(model)) if temperature is None else temperature,
            abstain_below,
            {"model": identify(model, revision)},
        )


# The mean of the calibrated probabilities of several trained classifiers, which err on different texts.


class MeanClassifier:
    """The mean of the probabilities of several classifiers with the same labels, in any order."""

    name = "mean"

    def __init__(self, members: Sequence[ClassifierPlugin], abstain_below: float = 0.0) -> None:
        if len(members) < 2:
            raise ConfigError(
                f"{self.name}: expected two classifiers or more, found {len(members)}", code="one-classifier"
            )
        self.labels = tuple(members[0].labels)
        for member in members[1:]:
            if sorted(member.labels) != sorted(self.labels):
                raise ConfigError(
                    f"{self.name}: expected classifiers of the same labels, found {', '.join(self.labels)} and "
                    f"{', '.join(member.labels)}",
                    code="other-labels",
                )
        self._members, self._least = tuple(members), float(abstain_below)

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of each classifier, and the threshold."""
        return {"members": [dict(member.settings()) for member in self._members], "abstain_below": self._least}

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return the most probable label of each text, or -1 where its probability is below ``abstain_below``."""
        classified = [member.classify(texts) for member in self._members]
        ordered = [
            member.probabilities[:, [member.labels.index(label) for label in self.labels]] for member in classified
        ]
        return _classified(self.labels, np.mean(ordered, axis=0), self._least)


class TogetherClassifier(MeanClassifier):
    """Combines trained transformers by the mean of their probabilities.

    ``models``         folders or hub ids, separated by commas; each with the temperature in its folder.
    ``abstain_below``  abstain if the mean probability of the label is lower; 0: never.
    """

    name = "together"

    def __init__(
        self, models: str, abstain_below: Share = 0.0, batch_size: Count = 64, device: str | None = None
    ) -> None:
        names = [name.strip() for name in models.split(",") if name.strip()]
        members = [TransformerClassifier(name, batch_size=batch_size, device=device) for name in names]
        super().__init__(members, abstain_below)


# How often a short text names each group of a lexicon.


class TermCounter:
    """Counts the terms of a lexicon, and names of its groups if given. A name that is also a term counts as a term."""

    def __init__(self, lexicon: Lexicon, names: Lexicon | None = None) -> None:
        self.groups = lexicon.group_names
        self._vocabulary = build_vocabulary(lexicon, word, "word")
        words = self._vocabulary.words
        for term, mask in list(words.items()):
            if len(term) >= 3 and not term.endswith("s"):
                words.setdefault(term + "s", mask)  # the possessive
        listed: dict[str, int] = {}
        for group, name in enumerate(self.groups):
            for term in names.groups.get(name, ()) if names is not None else ():
                listed[term] = listed.get(term, 0) | 1 << group
        for term, mask in listed.items():
            words.setdefault(term, mask)

    def count(self, texts: Sequence[str]) -> Ints:
        """Return the counts: one row for each text, one column for each group."""
        counts = [self._vocabulary.count(word(text)) for text in texts]
        return np.array(counts, np.int64).reshape(len(texts), len(self.groups))


# Input of the model ``query-groups`` in addition to the text: counts of words and first names for women and for men.

GROUPS = ("female", "male")
LEXICON = "gender"
NAMES = DATA / "names" / "en.toml"


def log_counts(texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """One row for each text: log(1 + count) of female and male words, then of female and male first names."""
    counts = [counter.count(texts)[:, [counter.groups.index(name) for name in GROUPS]] for counter in _counters()]
    return np.log1p(np.concatenate(counts, axis=1)).astype(np.float32)


@cache
def _counters() -> tuple[TermCounter, TermCounter]:
    return TermCounter(load_lexicon(LEXICON)), TermCounter(load_lexicon(NAMES))


NEUTRAL = 0.05
OTHERS = 0.03
LABEL = "neutral"


class LexicalClassifier:
    """Counts the words of each group in a query and chooses the group with the most; no mention or a tie is neutral.

    ``groups``         a lexicon by name or file, with any number of groups; the lexicon gender if not given.
    ``names``          count common first names too, for the groups female and male if the lexicon has them. The label
                       is right for 71 % of the annotated queries with names and for 50 % without names. The gender of
                       a name is a guess about a person.
    ``ties``           ``neutral`` or ``abstain``, if two groups are named equally often.
    ``abstain_below``  abstain if the probability of the label is lower; 0: never. See the module for the formula.
    """

    name = "lexical"

    def __init__(
        self, groups: GroupsLike | None = None, names: bool = True,
        ties: Annotated[str, OneOf(("neutral", "abstain"))] = "neutral", abstain_below: Share = 0.0,
    ) -> None:  # fmt: skip
        self._lexicon = Groups.of(LEXICON if groups is None else groups).counted
        if LABEL in self._lexicon.groups:
            where = f"the lexicon {self._lexicon.name!r}"
            raise ConfigError(
                f"lexical: rename the group {LABEL!r} of {where}; askew uses this name for texts that name no group"
            )
        listed = load_lexicon(NAMES) if names else None
        self._names = listed if listed and set(listed.groups) & set(self._lexicon.groups) else None
        self._ties, self._least = ties, float(abstain_below)
        self._counter = TermCounter(self._lexicon, self._names)
        self.labels = (LABEL, *self._lexicon.group_names)

    def settings(self) -> Mapping[str, Any]:
        """Return the word lists, identified by their content, the rule for ties and the threshold."""
        return {
            "lexicon": self._lexicon.id, "names": self._names.id if self._names else None, "ties": self._ties,
            "abstain_below": self._least,
        }  # fmt: skip

    def tied(self, texts: Sequence[str]) -> int:
        """Return how many texts name two or more groups equally often, and no group more often."""
        first, second = _two_highest(self._counter.count(texts))
        return int(((first == second) & (first > 0)).sum())

    def classify(self, texts: Sequence[str]) -> Classified:
        """Return for each text the group that the text names most often, or the label ``neutral``."""
        counts = self._counter.count(texts)
        first, second = _two_highest(counts)
        weights = np.column_stack([NEUTRAL + second, counts + OTHERS / counts.shape[1]])
        probabilities = np.asarray(weights / weights.sum(axis=1, keepdims=True))
        chosen = np.where(first > second, counts.argmax(axis=1) + 1, 0).astype(np.int64)
        if self._ties == "abstain":
            chosen[(first == second) & (first > 0)] = -1
        sure = np.take_along_axis(probabilities, np.maximum(chosen, 0)[:, None], axis=1)[:, 0]
        chosen[sure < self._least] = -1
        return Classified(self.labels, probabilities, chosen)


def _two_highest(counts: Ints) -> tuple[Ints, Ints]:
    ordered = np.sort(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    return ordered[:, -1], ordered[:, -2]


# Which gender a query asks about, by a trained model that askew ships. It needs no training and no network.

ADAPTER = "minilm-query-groups"
# The labels, in the order of the logits.
CLASSES = (LABEL, *GROUPS)


def takes_groups(groups: Groups | None) -> bool:
    """Whether the model may replace the counting of words: for no groups, or a shipped lexicon with female and male.

    Words that a user gives are always counted, whatever the names of their groups.
    """
    if groups is None:
        return True
    shipped = groups.lexicon.name in shipped_lexicons() and load_lexicon(groups.lexicon.name).id == groups.lexicon.id
    return shipped and set(groups.names) == set(GROUPS)


class QueryGroupsClassifier(LogitsClassifier):
    """Predicts with a trained model which gender a query asks about: neutral, female or male, calibrated.

    ``groups``         female and male, or none; other groups are refused.
    ``abstain_below``  abstain if the probability of the label is lower; 0: never.
    ``adapter``        the name of the adapter that askew ships, or a folder with an adapter of the same shape.
    """

    name = "query-groups"

    def __init__(
        self, groups: GroupsLike | None = None, abstain_below: Share = 0.0, adapter: str = ADAPTER,
        batch_size: Count = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        named = GROUPS if groups is None else Groups.of(groups).names
        if set(named) != set(GROUPS):
            raise ConfigError(
                f"query-groups: expected the groups 'female' and 'male', found {', '.join(named)}; "
                "use the classifier 'lexical', which works with any groups",
                code="other-groups",
                instead="lexical",
            )
        for library in ("torch", "transformers"):
            need(library, f"the classifier {self.name!r}")
        from askew.models.adapted import find_encoder_adapter

        self._folder, self._batch, self._device = find_encoder_adapter(adapter, ADAPTER), batch_size, device
        words = [load_lexicon(name).id for name in (LEXICON, NAMES)]
        identity = {"model": f"{identify(MINILM)}+{identify(str(self._folder))}", "words": words}
        super().__init__(self.logits, CLASSES, read_temperature(self._folder), abstain_below, identity)

    def logits(self, texts: Sequence[str]) -> Floats:
        """Return a row of logits for each text, before the temperature. The model is loaded here, at first use."""
        from askew.models.adapted import load_query_network, query_logits

        network, tokenizer = load_query_network(MINILM, self._folder, self._device)
        return query_logits(network, tokenizer, texts, log_counts(texts), self._batch)


# Classify queries: the group that each query is about, or neutral.

ABSTAINS = "abstains"


@dataclass(frozen=True)
class Classification:
    """The result of ``classify``: a label for each query.

    ``table`` has query_id, text, label and probability. ``counts`` has the number of queries per label. ``judged``
    is the number of queries that already had a label in the input. ``right`` is the number of these queries for which
    the classifier returned that label. ``classifier`` is the name of the classifier that was used.
    """

    table: pl.DataFrame
    counts: Mapping[str, int]
    right: int
    judged: int
    classifier: str


def named_classifier(spec: Mapping[str, Any], groups: Groups | None = None) -> dict[str, Any]:
    """Replace ``auto`` by the name of a classifier.

    This is ``query-groups`` if its model is installed, the groups are female and male (or not given) and it has all the
    given settings; otherwise ``lexical``.
    """
    named = dict(spec)
    if named.get("classifier") != defaults.CLASSIFIER:
        return named
    counted = groups if named.get("groups") is None else Groups.of(named["groups"])
    names = {"classifier", *settings_of("classifier", QueryGroupsClassifier.name)}
    learned = takes_groups(counted) and set(named) <= names and has_minilm()
    return {**named, "classifier": QueryGroupsClassifier.name if learned else LexicalClassifier.name}


def make_classifier(spec: Mapping[str, Any], groups: Groups | None = None) -> ClassifierPlugin:
    """Build a classifier from ``{"classifier": name, setting: value, ...}`` for these groups."""
    made: ClassifierPlugin = from_spec("classifier", named_classifier(spec, groups), groups=groups)
    if groups is not None and (other := set(made.labels) - {LABEL, *groups.names}):
        raise ConfigError(
            f"the classifier {made.name!r} has labels for the group {sorted(other)[0]!r}, but the requested groups are "
            f"{', '.join(groups.names)}: choose a classifier for the requested groups"
        )
    return made


def classify(
    queries: object, classifier: str = defaults.CLASSIFIER, *, groups: GroupsLike | None = None, **settings: Any
) -> Classification:
    """Label each query with the group that it is about, or with ``neutral``.

    ``queries`` is a collection, a file, ``{id: text}``, a data frame or a list of texts. If the queries already have
    labels, the result also has the number of queries whose predicted label equals the given label. ``settings`` are the
    settings of the classifier (``askew show classifier NAME``). The classifier ``auto`` is ``query-groups`` for the
    groups female and male if its model is installed; otherwise it is ``lexical``.
    """
    made = make_classifier({"classifier": classifier, **settings}, None if groups is None else Groups.of(groups))
    from askew.search.retrieve import as_queries

    query_table = as_queries(queries)
    classified = made.classify(query_table["text"].to_pylist())
    chosen = [name or ABSTAINS for name in classified.names()]
    best = classified.probabilities.max(axis=1) if chosen else np.zeros(0)
    import polars as pl

    table = pl.DataFrame(
        {"query_id": query_table["query_id"].to_pylist(), "text": query_table["text"].to_pylist(), "label": chosen,
         "probability": np.round(best, 6)}
    )  # fmt: skip
    labels = query_table["label"].to_pylist()
    pairs = [
        (label, got) for want, got in zip(labels, chosen, strict=True) if (label := meant(want, classified.labels))
    ]
    counts = Counter(chosen)
    ordered = {label: counts[label] for label in (*classified.labels, ABSTAINS) if counts[label]}
    return Classification(table, ordered, sum(a == b for a, b in pairs), len(pairs), made.name)


def meant(label: str | None, labels: tuple[str, ...]) -> str | None:
    """The label for a label of the file: the same name, or the first label that begins with it (n is neutral)."""
    if not label:
        return None
    return label if label in labels else next((name for name in labels if name.startswith(label.lower())), None)


def query_labels(queries: object, groups: GroupsLike | None = None) -> tuple[dict[str, str], str]:
    """The label of each query by its id, and what labeled them. Both are empty if the texts are not known."""
    from askew.search.retrieve import as_queries

    try:
        table = as_queries(queries)
    except ConfigError:
        return {}, ""
    ids, given = table["query_id"].to_pylist(), table["label"].to_pylist()
    counted = None if groups is None else Groups.of(groups)
    if all(given):
        known = (LABEL, *(GROUPS if counted is None else counted.names))
        return {query: meant(label, known) or label for query, label in zip(ids, given, strict=True)}, "given labels"
    found = classify(table, groups=counted)
    labels = dict(found.table.select("query_id", "label").iter_rows())
    return {query: LABEL if label == ABSTAINS else label for query, label in labels.items()}, found.classifier
