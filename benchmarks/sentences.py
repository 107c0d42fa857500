"""A random sample of the sentences that people read, for readers who say which of them need a second reading.

    python benchmarks/sentences.py --seed 1 --out sheet.jsonl     60 sentences, half of the docs, half of the program
    python benchmarks/sentences.py --tally readings.jsonl         the share that needs no second reading

Sentences of the docs are those outside of code blocks and tables; a link is shown as its title in brackets. Sentences
of the program are those that users see: help texts, messages, page texts, and docstrings of public names and of
commands. Each row has an id, the sentence, its file with the heading or the function, and what comes before it: the
text of its paragraph or list, or the last strings of its function (of its statement, at the top level of a module),
because many messages are composed of several strings. ``--tally`` reads rows with the fields ``id``, ``reader``,
``clear`` and ``note``.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import askew

ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(r"^(`{3,}).*?^\1[ ]*$|<!--.*?-->", re.MULTILINE | re.DOTALL)
_END = re.compile(r"(?<=[a-z0-9)`*\]\"%][.?!:])\s+(?=[A-Z*`\[])")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_VALUE, _WORD = re.compile(r"\{[^{}]*\}"), re.compile(r"[A-Za-z]{2,}|\b[aAI]\b")
_SHORTEST, _LONGEST, _CONTEXT = 4, 80, 600
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def sentences_of_text(text: str) -> Iterator[tuple[str, str]]:
    """Each sentence of a running text with what its paragraph or list says before it."""
    last = ""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        # A list item is read after the introduction of the list and the items before it.
        before = last if _ITEM.match(paragraph) else ""
        for one in _END.split(" ".join(paragraph.split())):
            if len(_WORD.findall(_VALUE.sub("", one))) >= _SHORTEST and len(one.split()) <= _LONGEST:
                yield one, before
            before = f"{before} {one}".strip()
        last = before


def of_docs() -> Iterator[dict[str, str]]:
    """Sentences of README, the contributors' files and the documentation."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        text = _LINK.sub(r"[\1]", _FENCE.sub("\n\n", page.read_text(encoding="utf-8")))
        for part in re.split(r"^(?=#)", text, flags=re.MULTILINE):
            heading, *lines = part.splitlines() or [""]
            kept = (line for line in lines if not line.startswith(("|", "    ", ":::")))
            for sentence, before in sentences_of_text("\n".join(kept)):
                place = f"{page.relative_to(ROOT)}, {heading.strip('# ')}"
                yield {"where": place, "sentence": sentence, "before": before}


def of_program() -> Iterator[dict[str, str]]:
    """Sentences that a user of the package sees; values of an f-string are shown as {...}."""
    for file in sorted((ROOT / "src" / "askew").rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
            id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
        }
        inner |= set(hidden_docstrings(tree, "cli" in file.parts))
        for name, root in units(tree):
            said = ""
            for node in sorted(own_nodes(root), key=lambda one: (one.lineno, one.col_offset)):
                text = "" if id(node) in inner else string_of(node).strip()
                if " " not in text or re.search(r"[<>\\]|\bSELECT\b|^\W", text):
                    continue
                for sentence, before in sentences_of_text(text):
                    context = f"{said} {before}".strip()[-_CONTEXT:]
                    yield {"where": f"{file.relative_to(ROOT)}, {name}", "sentence": sentence, "before": context}
                said = f"{said} {' '.join(text.split())} |".lstrip()


def units(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Each function or class of a module, and each other statement at its top level."""
    yield from ((node.name, node) for node in ast.walk(tree) if isinstance(node, _NAMED))
    yield from (("module", node) for node in tree.body if not isinstance(node, _NAMED))


def own_nodes(root: ast.AST) -> Iterator[ast.expr]:
    """The expressions of a function, class or statement, without those of the functions and classes inside it."""
    for child in ast.iter_child_nodes(root):
        if isinstance(child, ast.expr):
            yield child
        if not isinstance(child, _NAMED):
            yield from own_nodes(child)


def hidden_docstrings(tree: ast.Module, commands: bool) -> Iterator[int]:
    """The docstrings that only a reader of the source sees: those of no public name and of no command."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, *_NAMED)) or ast.get_docstring(node) is None:
            continue
        name = getattr(node, "name", "")
        if name not in askew.__all__ and not (commands and name == "command"):
            docstring = node.body[0]
            assert isinstance(docstring, ast.Expr)
            yield id(docstring.value)


def string_of(node: ast.AST) -> str:
    """The text of a constant or an f-string."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            "{" + ast.unparse(part.value) + "}" if isinstance(part, ast.FormattedValue) else string_of(part)
            for part in node.values
        )
    return ""


def sample(count: int, seed: int) -> list[dict[str, str]]:
    """Half of the sentences from the docs, half from the program, each sentence once."""
    chance, found = random.Random(seed), list[dict[str, str]]()
    for source, wanted in ((of_docs(), count // 2), (of_program(), count - count // 2)):
        every = list({row["sentence"]: row for row in source}.values())
        found += chance.sample(every, min(wanted, len(every)))
    chance.shuffle(found)
    return [{"id": f"s{seed}-{number:03}", **row} for number, row in enumerate(found)]


def tally(file: Path) -> None:
    """Print how many sentences each reader, and both, found clear at the first reading."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    by_reader: dict[str, dict[str, bool]] = {}
    for row in rows:
        by_reader.setdefault(row["reader"], {})[row["id"]] = row["clear"]
    for reader, clear in by_reader.items():
        print(f"{reader}: {sum(clear.values())} of {len(clear)} need no second reading")
    every = [all(reader[one] for reader in by_reader.values()) for one in next(iter(by_reader.values()))]
    print(f"all readers: {sum(every)} of {len(every)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tally", type=Path)
    options = parser.parse_args()
    if options.tally:
        tally(options.tally)
        return
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in sample(options.count, options.seed))
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
