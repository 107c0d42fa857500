"""The contracts of filters and of query classifiers. Call these checks from your own tests.

from askew.testing.asking import check_filter
def test_my_filter_keeps_the_contract():
    check_filter(MyFilter())
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from askew.plugins.methods import Classified, ClassifierPlugin, FilterPlugin

# A filter may drop repeated candidates of a query. Only this reason may depend on the other candidates.
DUPLICATE = "duplicate"

Triple = tuple[str, str, int]

TOY_PAIRS: tuple[Triple, ...] = (
    ("is she a good nurse", "is she a skilled nurse", 0),
    ("is she a good nurse", "Is she a skilled nurse?", 0),
    ("is she a good nurse", "is she a good nurse", 0),
    ("is she a good nurse", "", 0),
    ("who won in 1984", "winner of 1984", 4),
    ("who won in 1984", "who won", 4),
    ("Was Marie Curie married", "was the scientist married", 2),
    ("Was Marie Curie married", "husband of Marie Curie", 2),
    ("naïve façade", "naive facade \x07", 9),
    ("", "station hall", 3),
    ("is she a good nurse", "is she a skilled nurse", 7),
)
TOY_TEXTS = (
    "is she a good nurse", "history of the railway station", "", "who was his brother", "naïve façades 1984",
    "he and she", "WOMEN'S RIGHTS", "who was his brother",
)  # fmt: skip


def check_filter(kept_by: FilterPlugin, pairs: Sequence[Triple] = TOY_PAIRS) -> list[str | None]:
    """Check that a filter answers every pair, always the same way; other pairs have no effect, except duplicates."""
    assert isinstance(kept_by, FilterPlugin), (
        "the filter lacks an attribute that askew.plugins.methods.FilterPlugin requires"
    )
    assert kept_by.name and kept_by.name.strip() == kept_by.name, (
        "the name must not be empty, and must not begin or end with a blank"
    )
    json.dumps(dict(kept_by.settings()), sort_keys=True)
    reasons = _answers(kept_by, pairs)
    assert len(reasons) == len(pairs), (
        "the filter must return one value per query and candidate: None to keep the candidate, or the reason to drop it"
    )
    for reason in reasons:
        one_line = reason is None or (reason == " ".join(reason.split()) and reason)
        assert one_line, f"the reason for dropping a candidate must be one line of words, found {reason!r}"
    assert _answers(kept_by, pairs) == reasons, "two calls with the same pairs must give the same result"
    renamed = [(original, candidate, row * 31 + 5) for original, candidate, row in pairs]
    assert _answers(kept_by, renamed) == reasons, "the result must not depend on the row numbers of the queries"
    _check_company(kept_by, pairs, reasons)
    kept = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason is None]
    assert not any(_answers(kept_by, kept)), (
        "if the filter checks only the candidates that it kept before, it must keep all of them again"
    )
    assert kept_by.check([], [], []) == [], "a check of an empty list of pairs must return an empty list"
    return reasons


def _check_company(kept_by: FilterPlugin, pairs: Sequence[Triple], reasons: list[str | None]) -> None:
    for row in {row for _, _, row in pairs}:
        own = [i for i, pair in enumerate(pairs) if pair[2] == row]
        alone = _answers(kept_by, [pairs[i] for i in own])
        assert alone == [reasons[i] for i in own], (
            f"the results for the candidates of query {row} must not depend on the other queries"
        )
    for pair, reason in zip(pairs, reasons, strict=True):
        if reason != DUPLICATE:
            assert _answers(kept_by, [pair]) == [reason], f"{pair}: other candidates may matter only as duplicates"


def _answers(kept_by: FilterPlugin, pairs: Sequence[Triple]) -> list[str | None]:
    return kept_by.check([p[0] for p in pairs], [p[1] for p in pairs], [p[2] for p in pairs])


def check_classifier(
    classifier: ClassifierPlugin, texts: Sequence[str] = TOY_TEXTS, tolerance: float = 1e-4
) -> Classified:
    """Check that a classifier gives every text probabilities that sum to one, always the same, alone or in a batch.

    ``tolerance`` allows for the last digits of a model, which change with the size of a batch.
    """
    assert isinstance(classifier, ClassifierPlugin), (
        "the classifier lacks an attribute that askew.plugins.methods.ClassifierPlugin requires"
    )
    assert len(set(classifier.labels)) == len(classifier.labels), "the labels must be distinct"
    assert all(label and label == label.strip() for label in classifier.labels), (
        "a label must not be empty, and must not begin or end with a blank"
    )
    json.dumps(dict(classifier.settings()), sort_keys=True)
    found = classifier.classify(list(texts))
    _check_classified(found, classifier.labels, len(texts))
    again = classifier.classify(tuple(texts))
    assert np.array_equal(found.probabilities, again.probabilities), (
        "two calls with the same texts must give the same probabilities"
    )
    assert np.array_equal(found.chosen, again.chosen), "two calls with the same texts must give the same labels"
    for i, text in enumerate(texts):
        alone = classifier.classify([text])
        near = np.allclose(alone.probabilities[0], found.probabilities[i], rtol=0, atol=tolerance)
        assert near, f"{text!r}: the probabilities must not depend on the other texts"
        ordered = np.sort(found.probabilities[i])
        if ordered[-1] - ordered[-2:][0] > 2 * tolerance:
            assert alone.chosen[0] == found.chosen[i], f"{text!r}: the label must not depend on the other texts"
    _check_classified(classifier.classify([]), classifier.labels, 0)
    return found


def _check_classified(found: Classified, labels: tuple[str, ...], texts: int) -> None:
    assert found.labels == labels, "the result must have the same labels as the classifier, in the same order"
    assert found.probabilities.shape == (texts, len(labels)), "each text must have a probability for each label"
    assert found.chosen.shape == (texts,), "``chosen`` must have a value for each text"
    assert ((found.probabilities >= 0) & (found.probabilities <= 1)).all(), "a probability must be from 0 to 1"
    assert np.allclose(found.probabilities.sum(axis=1), 1.0), "the probabilities of a text must sum to one"
    assert ((found.chosen >= -1) & (found.chosen < len(labels))).all(), (
        "``chosen`` must be the number of a label, or -1 to abstain"
    )
