"""The fenced blocks of the documentation, and the pages that have them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
_FENCE = re.compile(r"^(`{3,})(\w*)[^\n]*\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
_RESULTS = re.compile(r"<!-- results: .*?<!-- end -->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: where it is, its language, its text, and the comment on the line above it."""

    page: Path
    line: int
    language: str
    text: str
    comment: str
    is_result: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> Iterator[Block]:
    """Every fenced block of a page."""
    text = page.read_text(encoding="utf-8")
    results = [found.span() for found in _RESULTS.finditer(text)]
    for found in _FENCE.finditer(text):
        before = text[: found.start()].rstrip("\n").rpartition("\n")[2].strip()
        yield Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            found[2],
            found[3],
            before if before.startswith("<!--") else "",
            any(start < found.start() < stop for start, stop in results),
        )


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def commands_in(text: str) -> Iterator[list[str]]:
    """The askew commands of a shell block as words, without the name of the program; comments and pipes end one."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        plain = re.sub(r"^\$ ", "", line.strip())
        for part in re.split(r" && | \| ", plain):
            if not re.match(r"(?:[A-Z_]+=\S* )*askew ", part):
                continue
            words = shlex.split(part, comments=True)
            start = words.index("askew") + 1
            yield words[start : words.index(">") if ">" in words else None]
