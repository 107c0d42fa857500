"""How many mentions a second are resolved, alone and while a collection is counted, and what that costs.

The peer of the counter by class is the plain counter of the same texts.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from text import passages

import askew
from askew.core import machine
from askew.core.groups import NEURAL
from askew.core.lexicon import load_lexicon
from askew.data.documents import read_documents
from askew.measures.mentions import Marker, MentionCounter
from askew.measures.resolver import ResolvedCounter

TOKENS = "unclipped"


def seconds(function: Callable[[], object], times: int = 3) -> float:
    """The least wall-clock seconds of several tries."""
    tries = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        tries.append(time.perf_counter() - begun)
    return min(tries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path, help="a file of documents; without it, made passages")
    parser.add_argument("--count", type=int, default=1_000, help="how many passages to make without --docs")
    parser.add_argument("--lexicon", default="rekabsaz2020")
    given = parser.parse_args()
    read = (batch["text"].to_pylist() for batch in read_documents(given.docs)) if given.docs else ()
    texts = [text for batch in read for text in batch] or passages(None, given.count)
    array = pa.array(texts, pa.large_string())
    lexicon = load_lexicon(given.lexicon)
    marker = Marker(lexicon, TOKENS)
    mentions = [(text, start) for text in texts for start, _, _ in marker.spans(text)]
    odd = sum(not text.isascii() for text in texts) / len(texts)
    print(
        f"{len(texts):,} texts, {array.nbytes / len(texts):.0f} bytes each, {odd:.1%} not ASCII; "
        f"{len(mentions):,} mentions of {given.lexicon}; {machine.threads()} thread(s); {platform.machine()}, "
        f"Python {platform.python_version()}"
    )
    askew.resolve_mentions(mentions[:10])
    alone = seconds(lambda: askew.resolve_mentions(mentions), 1) / len(mentions)
    print(f"resolve_mentions: {1 / alone:,.0f} mentions a second")
    counted(array, lexicon, len(mentions))


def counted(array: pa.Array, lexicon: askew.Lexicon, mentions: int) -> None:
    """Counting a collection: words are found, counted and resolved."""
    plain = MentionCounter(lexicon, TOKENS, engine="compiled")
    by_class = ResolvedCounter(lexicon, TOKENS, "all", NEURAL, engine="compiled")
    for counter in (plain, by_class):
        counter.count(array[:100])
    # A slice is another object: the counter by class remembers its last batch.
    base, full = (seconds(lambda c=counter: c.count(array.slice(0))) for counter in (plain, by_class))
    print(
        f"counting: {len(array) / base:,.0f} texts a second; by class {len(array) / full:,.0f} "
        f"({mentions / full:,.0f} mentions), {full / base:.0f}x the time"
    )


if __name__ == "__main__":
    main()
