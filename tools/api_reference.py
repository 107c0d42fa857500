"""Write docs/api.md, the reference of the public interface, from the docstrings and signatures of its names.

``python tools/api_reference.py`` writes it anew; a test checks that it is as it would be written.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import askew

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
SECTIONS = {
    "Data": ("Collection", "Run", "Groups", "Lexicon"),
    "Measures": ("Measure", "Direction"),
    "Measure and compare": (
        "measure", "MeasureReport", "compare", "CompareReport", "sensitivity", "SensitivityReport",
        "check", "CheckReport", "resolve_mentions",
    ),
    "Audit an engine": ("audit", "AuditSettings", "AuditReport"),
    "Search and reformulate": ("Ranker", "Reformulator", "Filter", "classify", "Classification"),
    "Build pairs": ("build", "Pairs"),
    "Train": ("Trainer", "Trained", "Classifier", "Selector"),
    "Compare mitigation methods": ("bench", "show_bench", "BenchSettings", "BenchReport"),
    "Analyze query logs": ("analyze_log", "LogSettings", "LogReport"),
    "Shipped models": ("shipped_models", "ShippedModel"),
    "Errors": (
        "AskewError", "ConfigError", "UnknownName", "DataError", "MissingExtra", "StoreError", "StageError",
    ),
}  # fmt: skip
# Others are made by functions and methods.
CONSTRUCTED = (
    "Groups", "Lexicon", "Measure", "Ranker", "Reformulator", "Filter", "Trainer", "Classifier", "Selector",
    "AuditSettings", "BenchSettings", "LogSettings",
)  # fmt: skip
HEAD = """# Reference of the Python interface

All names of `import askew`, from their docstrings ([how to use them](python.md)). What is not here is internal and may
change.
This page is written by `python tools/api_reference.py`.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name) for name in names]
        if title == "Measures":
            parts.append(_measures())
    known = {name for names in SECTIONS.values() for name in names} | set(_families()) | {"__version__"}
    if missing := sorted(set(askew.__all__) - known):
        raise SystemExit(f"no section of tools/api_reference.py has {', '.join(missing)}")
    return "\n".join(parts)


def _families() -> list[str]:
    return [name for name in askew.__all__ if isinstance(getattr(askew, name), askew.Measure)]


def _measures() -> str:
    return (
        "### Families of measures\n\n"
        + ", ".join(f"`{name}`" for name in _families())
        + ': measures without parameters and cutoff; `ARaB("tf") @ 10` adds them. `askew show measure NAME` and '
        "[measures](measures.md) say what each is.\n"
    )


def _entry(name: str) -> str:
    thing = getattr(askew, name)
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return f"### {name}\n\n{_prose(thing)}\n"
    if not inspect.isclass(thing):
        return f"### {name}\n\n```text\n{_signature(f'askew.{name}', thing)}\n```\n\n{_prose(thing)}\n"
    lines = [f"### {name}\n", _prose(thing), ""]
    if name in CONSTRUCTED:
        lines = [lines[0], f"```text\n{_signature(f'askew.{name}', thing)}\n```\n", *lines[1:]]
    lines += [f"- `{_short(member, found)}`: {_first(found)}" for member, found in _members(thing)]
    return "\n".join(lines).rstrip() + "\n"


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    for name, found in vars(thing).items():
        inner = getattr(found, "__func__", found)
        documented = (found.fget if isinstance(found, property) else getattr(found, "func", inner)).__doc__ \
            if isinstance(found, property) or callable(inner) or hasattr(found, "func") else None  # fmt: skip
        if not name.startswith("_") and documented and not inspect.isclass(found):
            yield name, found


def _short(name: str, found: Any) -> str:
    if isinstance(found, property) or hasattr(found, "attrname"):
        return name
    inner = getattr(found, "__func__", found)
    given = [p for p in inspect.signature(inner).parameters if p not in ("self", "cls")]
    return f"{name}({', '.join(given)})"


def _first(found: Any) -> str:
    inner = found.fget if isinstance(found, property) else getattr(found, "func", getattr(found, "__func__", found))
    return _marked(" ".join((inspect.getdoc(inner) or "").split("\n\n")[0].split()))


def _signature(name: str, thing: Any) -> str:
    # Annotations are texts and come in quotes; defaults keep theirs.
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(thing)))
    text = re.sub(r"\b(?:askew(?:\.\w+)*|collections\.abc|typing|pathlib|pa|npt)\.(?=\w)", "", text)
    one = f"{name}{text.replace(' -> None', '')}"
    if len(one) <= 100:
        return one
    inside, _, gives = text[1:].rpartition(") -> ")
    if not inside:
        inside, gives = text[1:-1], ""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(inside):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            parts.append(inside[start:at].strip())
            start = at + 1
    parts.append(inside[start:].strip())
    body = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{body})" + (f" -> {gives}" if gives and gives != "None" else "")


def _prose(thing: Any) -> str:
    return _marked(inspect.getdoc(thing) or "")


def _marked(text: str) -> str:
    return text.replace("``", "`")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
