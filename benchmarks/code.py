"""How large is the code, and does it keep its layers? Files, lines, statements, import cycles, imports by layer.

python benchmarks/code.py [--before REVISION]
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHOWN = ("files", "lines", "code lines", "statements", "functions", "classes", "longest function", "most parameters",
         "modules in cycles", "imports of siblings")  # fmt: skip


def modules(src: Path) -> dict[str, ast.Module]:
    found = {}
    for path in sorted(src.rglob("*.py")):
        name = ".".join(path.relative_to(src).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(name: str, tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Modules of the package that a module imports when it is imported; not those inside functions."""
    for node in _at_import(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                named = [text for text in (f"{node.module}.{one.name}", node.module) if text in known]
                yield from named[:1]
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name in known)


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _at_import(node)


def in_cycles(graph: dict[str, set[str]]) -> int:
    """Modules that can be reached from themselves."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        left = list(graph[start])
        while left:
            one = left.pop()
            if one not in seen:
                seen.add(one)
                left += graph.get(one, ())
        return seen

    return sum(name in reached(name) for name in graph)


def counts(src: Path) -> tuple[dict[str, int], Counter[str]]:
    trees = modules(src)
    known = set(trees)
    graph = {name: {one for one in imports(name, tree, known) if one != name} for name, tree in trees.items()}
    texts = [path.read_text(encoding="utf-8") for path in src.rglob("*.py")]
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    layer = Counter(
        f"{_top(name)} -> {_top(one)}" for name, found in graph.items() for one in found if _top(name) != _top(one)
    )
    facts = {
        "files": len(trees),
        "lines": sum(len(text.splitlines()) for text in texts),
        "code lines": sum(_code_lines(tree) for tree in trees.values()),
        "statements": sum(isinstance(one, ast.stmt) for one in nodes),
        "functions": len(functions),
        "classes": sum(isinstance(one, ast.ClassDef) for one in nodes),
        "longest function": max((one.end_lineno or 0) - one.lineno + 1 for one in functions),
        "most parameters": max(len(one.args.args) + len(one.args.kwonlyargs) for one in functions),
        "modules in cycles": in_cycles(graph),
        "imports of siblings": sum(
            _job(name) != _job(one) for name, found in graph.items() for one in found
            if _top(name) == _top(one) and _top(name) in ("app", "stages")
        ),
    }  # fmt: skip
    return facts, layer


def _code_lines(tree: ast.Module) -> int:
    """Lines that a statement stands on, without docstrings."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            ends = [child.lineno for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            lines |= set(range(node.lineno, min(ends, default=(node.end_lineno or node.lineno) + 1)))
    return len(lines)


def _top(name: str) -> str:
    return [*name.split("."), "askew"][1]


def _job(name: str) -> str:
    return [*name.split("."), "", ""][2]


def at_revision(revision: str) -> tuple[dict[str, int], Counter[str]]:
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        return counts(Path(folder) / "src")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before")
    options = parser.parse_args()
    now, layers = counts(ROOT / "src")
    old, before = at_revision(options.before) if options.before else ({}, Counter())
    print(f"{'':28} {'now':>8}" + (f" {'before':>8}" if old else ""))
    for name in SHOWN:
        print(f"{name:28} {now[name]:8,}" + (f" {old[name]:8,}" if old else ""))
    print("\nimports between packages")
    for name, count in sorted(layers.items()):
        print(f"{name:36} {count:4}" + (f" {before[name]:4}" if before else ""))


if __name__ == "__main__":
    main()
