"""Sampling of distinct candidates from a generative model, passage by passage, until there are enough."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from askew.core.errors import ConfigError
from askew.models.generate import Generator, Sampling
from askew.plugins.methods import Candidates, QueryBatch, seed_for

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MOST_CHARACTERS = 300


@dataclass(frozen=True)
class Drawing:
    """The number of candidates per query, and how they are sampled.

    ``attempts`` is the maximum number of texts sampled for one query. Without it, sampling from a model that always
    writes the same text would never end.
    """

    count: int = 10
    per_call: int = 5
    attempts: int = 100
    seed: int = 7
    randomize: bool = False

    def __post_init__(self) -> None:
        if min(self.count, self.per_call, self.attempts) < 1:
            raise ConfigError(
                "expected count=, per_call= and attempts= to be 1 or more, "
                f"found count={self.count}, per_call={self.per_call} and attempts={self.attempts}"
            )


def draw(
    asked: QueryBatch,
    prompts: Callable[[int], Sequence[tuple[str, str | None]]],
    writer: Generator,
    sampling: Sampling,
    how: Drawing,
    method: str,
) -> Candidates:
    """Sample candidates for every query. ``prompts(row)`` returns the prompts of a query with their document ids."""
    found = Candidates()
    for row, query_id in enumerate(asked.query_ids):
        shown = [pair for pair in prompts(row) if pair[0].strip()]
        if not shown:
            found.reject("nothing to read")
            continue
        seen, drawn, call = {plain(asked.texts[row])}, 0, 0
        kept = 0
        while kept < how.count and drawn < how.attempts:
            prompt, doc_id = shown[call % len(shown)]
            seed = seed_for(how.seed, method, query_id, str(call))
            wanted = min(how.per_call, how.count - kept, how.attempts - drawn)
            for text in writer.sample(prompt, wanted, seed, _varied(sampling, how, seed)):
                drawn += 1
                line = clean(text)
                if reason := refuse(line, seen, asked.texts[row]):
                    found.reject(reason)
                    continue
                seen.add(plain(line))
                found.add(row, line, doc_id)
                kept += 1
            call += 1
        if not kept:
            found.reject("the model wrote no usable candidate for the query")
    return found


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
        return "same as the original"
    return "duplicate" if plain(line) in seen else ""


def plain(text: str) -> str:
    """Normalize a query: texts that differ only in case, blanks and final punctuation become equal."""
    return " ".join(text.lower().split()).rstrip("?.! ")


def _varied(sampling: Sampling, how: Drawing, seed: int) -> Sampling:
    """Return the parameters of one call; with ``randomize``, drawn from the ranges of Refairmulate's generator."""
    if not how.randomize:
        return sampling
    rng = random.Random(seed)
    longest = max(sampling.min_new_tokens, rng.randint(20, 64))
    return Sampling(longest, sampling.min_new_tokens, rng.randint(5, 20), sampling.top_p, rng.uniform(0.7, 1.5))
