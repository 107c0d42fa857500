"""The teacher: how probable it is that a text is usable, by all that is known of it and not only by what is fast.

Three logistic regressions (same, natural, and usable: both) read the two logits of an earlier equivalence model on
MiniLM, and where there is one those of a judge on SmolLM2; the log probability of the text given the query, and of the
query given the text, by the supervised rewriting model (sum, mean and least of the tokens); and the features of
``askew.rewrite.equivalence``. They are fit on labels that the earlier equivalence models have not seen: those of
the part dev, and ``--fresh-labels``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askew.models.adapted import find_encoder_adapter
from askew.models.generate import find_adapter
from askew.models.pair_network import load_pair_judge, load_pair_network, pair_logits
from askew.models.prompts import KINDS
from askew.rewrite.equivalence import pair_features
from training.areas import areas, wanted_of
from training.data import OPEN, Reformulations, Report, Row, plain
from training.logistic import fit_logistic, fold_of, out_of_fold, probabilities
from training.pair_learners import Judge
from training.preferences import Sample
from training.rewriting import ORIGINAL, Base, RewriteSettings, encode, token_log_probabilities

PENALTY = 10.0
_MOST_TOKENS = 96
_PAIRS_AT_ONCE = 1024
# The kind that stands for texts of methods that know no kinds.
_ANY_KIND = KINDS[0]


@dataclass(frozen=True)
class Candidate:
    """A text for a query, and the kind of reformulation that was asked for."""

    query: str
    text: str
    kind: str


Features = Callable[[Sequence[Candidate]], Any]


def candidate_of(row: Row) -> Candidate:
    """A labeled row; its kind is in the name of the method."""
    kind = row["method"].partition(":")[2]
    return Candidate(row["query"], row["candidate"], kind if kind in KINDS else _ANY_KIND)


def teacher_rows(data: Reformulations, fresh: Sequence[Row]) -> list[Row]:
    """The labels to fit the teacher on: of open collections, and of no query of the part test."""
    test = data.held_out(("train", "dev"))
    rows = [*(row for row in data.labels if row["split"] == "dev"), *fresh]
    return [row for row in rows if row["collection"] in OPEN and plain(row["query"]) not in test]


def open_judges(device: str, adapter: str, encoder: str, judge: str | None, model: str) -> list[Judge]:
    """The equivalence models that the teacher reads: on MiniLM, and where it is given one on SmolLM2."""
    network = load_pair_network(encoder, find_encoder_adapter(adapter, "an equivalence adapter"), device)
    found: list[Judge] = [lambda queries, texts: pair_logits(*network, queries, texts, _PAIRS_AT_ONCE)]
    return found if judge is None else [*found, load_pair_judge(find_adapter(judge), model, device).logits]


class Evidence:
    """The features of candidates, each row: two logits of each judge, six log probabilities, and those of the words."""

    def __init__(
        self, base: Base, tensors: Mapping[str, Any], settings: RewriteSettings, judges: Sequence[Judge]
    ) -> None:
        self._base, self._writer, self._judges = base, base.merged(tensors, settings), judges

    def __call__(self, candidates: Sequence[Candidate]) -> Any:
        queries, texts = [one.query for one in candidates], [one.text for one in candidates]
        there = self._log_probabilities([(one.query, one.kind, one.text) for one in candidates])
        back = self._log_probabilities([(one.text, ORIGINAL, one.query) for one in candidates])
        logits = [judge(queries, texts) for judge in self._judges]
        return np.hstack([*logits, there, back, pair_features(queries, texts)])

    def _log_probabilities(self, examples: Sequence[tuple[str, str, str]]) -> Any:
        """Sum, mean and least of the tokens of each target."""
        encoded = encode(self._base.tokenizer, examples)
        found = token_log_probabilities(self._writer, self._base, encoded, _MOST_TOKENS).double().numpy()
        total, count, least = found.T
        return np.stack([total, total / count, least], axis=1)


class Teacher:
    """The regressions, fit on labeled rows. ``areas`` has the areas under the ROC curve of rows in other folds."""

    def __init__(self, features: Features, rows: Sequence[Row], report: Report) -> None:
        self._features, wanted = features, wanted_of(rows)
        folds = np.array([fold_of(plain(row["query"])) for row in rows])
        if len(set(folds.tolist())) < 2 or any(len(set(one.tolist())) < 2 for one in wanted.values()):
            raise SystemExit(
                f"teacher: expected dev or fresh labels of several queries, usable and not; found {len(rows)} rows;"
                " give --fresh-labels"
            )
        x = features([candidate_of(row) for row in rows])
        self.areas = areas(rows, {name: out_of_fold(x, y, folds, PENALTY) for name, y in wanted.items()})
        for name, found in self.areas.items():
            report(f"teacher, areas under the ROC curve of queries in other folds, {name}: {found}")
        self._fits = {name: fit_logistic(x, y, PENALTY) for name, y in wanted.items()}

    def judge(self, samples: Sequence[Sample], queries: Sequence[str]) -> dict[Candidate, dict[str, float]]:
        """The probabilities same, natural and usable of each distinct sample."""
        distinct = list(dict.fromkeys(Candidate(queries[one.query], one.text, one.kind) for one in samples))
        x = self._features(distinct)
        found = {name: probabilities(x, *fit).tolist() for name, fit in self._fits.items()}
        return {one: {name: found[name][row] for name in found} for row, one in enumerate(distinct)}
