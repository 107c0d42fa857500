"""Execute the notebooks of docs/notebooks and store the outputs of their cells.

``python tools/run_notebooks.py`` rewrites the outputs; a test executes the cells and compares. As in Jupyter, the
output of a cell is the printed text, then the value of its last expression as text, and as HTML if it has an HTML form.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs that its cells have now, in a folder of its own."""
    names: dict[str, Any] = {"__name__": "__main__"}
    os.environ.update(ASKEW_COMPILE_NOTE="off", ASKEW_PROGRESS="off")
    cells, number = [], 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                cells.append(cell)
                continue
            number += 1
            cells.append(
                {**cell, "execution_count": number, "outputs": _outputs("".join(cell["source"]), names, number)}
            )
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": _lines(value._repr_html_()), **data}
        found.append({"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def written(notebook: dict[str, Any]) -> str:
    """The notebook as its file has it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Refresh every notebook."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        new = written(executed(json.loads(text)))
        if new != text:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"refreshed {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
