"""Whole lines of a log, many at a time. A line that never ends is refused before it fills the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from askew.core.errors import DataError, place

_LINE_FEED = 10


def whole_lines(blocks: Iterable[bytes], longest: int, where: str) -> Iterator[tuple[int, bytes]]:
    """Blocks cut at the ends of lines, each with the number of its first line. Few bytes may unpack to a great many."""
    waiting: list[bytes] = []
    line, held = 1, 0
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            whole = b"".join([*waiting, block[:cut]])
            yield line, whole
            line += count_lines(whole)
            waiting, held = [], 0
        waiting.append(block[cut:])
        held += len(block) - cut
        if held > longest:
            raise DataError(
                f"{place(where, line)}: expected lines of at most {longest:,} bytes, found a longer one; is this a log "
                "with a line for each row?"
            )
    if rest := b"".join(waiting):
        yield line, rest


def count_lines(block: bytes) -> int:
    """How many lines end in a block; ten times as fast as the count of bytes, which is made for rare ones."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == _LINE_FEED))


def few_lines(first: int, block: bytes, most: int) -> Iterator[tuple[int, bytes]]:
    """A block as blocks of at most ``most`` lines: what is noted of each line takes more room than a short line."""
    if count_lines(block) <= most:
        yield first, block
        return
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == _LINE_FEED)[most - 1 :: most] + 1
    begin = 0
    for end in [*ends.tolist(), len(block)]:
        if end > begin:
            yield first, block[begin:end]
            first, begin = first + most, end
