"""Counting mentions: askew's scan against the published scripts' Counter loop, same texts, same tokens, one run.

The peer does per document what the published ARaB script does: lower-case, split, a Counter, a walk over its words
against the two lists, the magnitudes tc, tf and bool of both groups, and the length and the sums of logarithms that it
computes and never uses. ``bare`` is the loop alone: no magnitudes, no length.
"""

from __future__ import annotations

import argparse
import math
import platform
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from text import passages

from askew.core.lexicon import load_lexicon
from askew.measures.arab import magnitudes
from askew.measures.mentions import MentionCounter

WORDS = re.compile(r"\w+")


def published_loop(
    texts: list[str], split: Callable[[str], list[str]], lists: tuple[set[str], set[str]], full: bool
) -> int:
    female, male = lists
    total = 0
    for text in texts:
        counts = Counter(split(text.lower()))
        f = m = 0
        logs_f = logs_m = 0.0
        for word in counts:
            if word in female:
                f += counts[word]
                logs_f += math.log(counts[word] + 1) if full else 0.0
            elif word in male:
                m += counts[word]
                logs_m += math.log(counts[word] + 1) if full else 0.0
        if full:
            tc = (float(f - m), float(f), float(m))
            tf = (math.log(f + 1) - math.log(m + 1), math.log(f + 1), math.log(m + 1))
            present = ((f > 0) - (m > 0), f > 0, m > 0)
            total += len((tc, tf, present, logs_f, logs_m)) + sum(counts.values())
        total += f + m
    return total


def best(function: Callable[[], object], times: int) -> tuple[float, float]:
    """The least CPU and wall seconds of several tries."""
    tries = []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        tries.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(t[0] for t in tries), min(t[1] for t in tries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--lexicon", default="rekabsaz2021")
    options = parser.parse_args()
    texts = passages(options.docs, options.count)
    array = pa.array(texts, pa.large_string())
    lexicon = load_lexicon(options.lexicon)
    lists = (set(lexicon.groups["female"]), set(lexicon.groups["male"]))
    odd = sum(not text.isascii() for text in texts) / len(texts)
    print(
        f"{len(texts):,} texts, {array.nbytes / len(texts):.0f} bytes each, {odd:.1%} not ASCII; "
        f"{sum(map(len, lists))} words; {platform.machine()}, Python {platform.python_version()}"
    )
    part = texts[: max(1, len(texts) // 5)]
    for tokens, split in (("blank", lambda t: t.split(" ")), ("word", WORDS.findall)):
        bare, bare_wall = best(lambda s=split: published_loop(part, s, lists, False), 2)
        full, full_wall = best(lambda s=split: published_loop(part, s, lists, True), 2)
        print(
            f"\ntokens {tokens!r}: Counter loop {1e6 * bare / len(part):.2f} us a text bare, "
            f"{1e6 * full / len(part):.2f} with magnitudes (CPU)"
        )
        for threads in (1, 2):
            counter = MentionCounter(lexicon, tokens, threads=threads, engine="compiled")
            counter.count(array[:1000])

            def work(counter: MentionCounter = counter) -> None:
                counts = counter.count(array).counts
                for kind in ("tc", "tf", "bool"):
                    magnitudes(kind, counts)

            counted = best(lambda c=counter: c.count(array), 3)
            everything = best(work, 3)
            scale = len(texts) / len(part)
            print(
                f"  askew, {threads} thread(s): {1e6 * counted[0] / len(texts):.3f} us a text (CPU) | counting "
                f"{bare * scale / counted[0]:.0f}x CPU, {bare_wall * scale / counted[1]:.0f}x wall | with magnitudes "
                f"{full * scale / everything[0]:.0f}x CPU, {full_wall * scale / everything[1]:.0f}x wall"
            )


if __name__ == "__main__":
    main()
