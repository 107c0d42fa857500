"""How large is the code, and does it keep its layers? Files, lines, statements, import cycles, imports by layer,
and the modules in which a function runs when runs are measured, a page is requested and a finished build is published.

python benchmarks/code.py [--before REVISION]

The three jobs run twice, and the second run is counted, so that imports do not count.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
BESIDE = ("tests", "benchmarks", "tools")
SHOWN = ("files", "lines", "code lines", "statements", "functions", "classes", "longest function", "most parameters",
         "modules in cycles")  # fmt: skip


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
    }
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


def at_revision(revision: str) -> tuple[dict[str, int], Counter[str]]:
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
        return counts(Path(folder) / "src")


def executed(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Each job with the number of modules and functions of askew that run in it."""
    from starlette.testclient import TestClient

    import askew
    from askew.core.files import DATA
    from askew.ui.cli.main import run
    from askew.ui.web.app import create_app
    from askew.ui.web.settings import Settings

    source = str(Path(askew.__file__).parent)
    ran: set[tuple[str, str, int]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(source):
            ran.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    def count(name: str, job: Callable[[int], object]) -> tuple[str, int, int]:
        for turn in (1, 2):
            ran.clear()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                job(turn)
        return name, len({file for file, _, _ in ran}), len(ran)

    def measure(turn: int) -> None:
        demo = DATA / "demo"
        asked = "RR AP nDCG@10 ARaB(tf)@10"
        askew.measure(demo / "bm25.run", docs=demo / "docs.tsv", qrels=demo / "qrels.txt", measures=asked)

    def command(*words: str) -> None:
        out = io.StringIO()
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            run([*words])

    threading.setprofile(note)
    sys.setprofile(note)
    yield count("measure a run", measure)
    with TestClient(create_app(Settings()), base_url="http://127.0.0.1") as client:
        yield count("request a page", lambda turn: client.get("/", params={"q": ("nurse", "doctor")[turn - 1]}))
    with contextlib.chdir(folder):
        command("run", "demo")
        yield count("publish a build", lambda turn: command("publish", "demo", "--out", f"published{turn}"))
    sys.setprofile(None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before")
    options = parser.parse_args()
    now, layers = counts(ROOT / "src")
    old, before = at_revision(options.before) if options.before else ({}, Counter())
    print(f"{'':28} {'now':>8}" + (f" {'before':>8}" if old else ""))
    for name in SHOWN:
        print(f"{name:28} {now[name]:8,}" + (f" {old[name]:8,}" if old else ""))
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").rglob("*.md"))
    beside = {name: sum(len(path.read_text().splitlines()) for path in (ROOT / name).rglob("*.py")) for name in BESIDE}
    print(f"words of docs: {words:,}; lines of " + ", ".join(f"{name}: {lines:,}" for name, lines in beside.items()))
    print("\nmodules and functions that run")
    with tempfile.TemporaryDirectory() as folder:
        for name, ran, functions in executed(Path(folder)):
            print(f"{name:28} {ran:8,} {functions:8,}")
    print("\nimports between packages")
    for name, count in sorted(layers.items()):
        print(f"{name:36} {count:4}" + (f" {before[name]:4}" if before else ""))


if __name__ == "__main__":
    main()
