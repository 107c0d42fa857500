"""Run the commands in the documentation and write their real output below them.

A block that starts with ```console has lines "$ askew ..." and their output. Between <!-- results: TITLE --> and <!--
end --> is the section with that title of benchmarks/results.md: the date, the command, the machine and the output,
with Markdown tables outside of the fence. With TITLE | PATTERN it is the first match of the pattern in the section
or, if the pattern has groups, one line per group; rows of a Markdown table are shown as a table with their header.
With TITLE | PATTERN => A; B; C it is a table with these columns: a row for each match, and a cell for each group.
Between <!-- generated: NAME --> or <!-- names: A B() --> and <!-- end --> is a list of commands, decision records or
public names, which the site replaces by the whole reference. ``python tools/refresh_docs.py`` rewrites all of them; a
test checks that they are up to date. So no number in them is typed by hand.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RESULTS = ROOT / "benchmarks" / "results.md"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_RESULT = re.compile(r"(<!-- results: ([^\n]*?)(?: \| ([^\n]*?))?(?: => ([^\n]*))? -->\n).*?(<!-- end -->)", re.DOTALL)
_GENERATED = re.compile(r"(<!-- (generated|names): ([^\n]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
# A Markdown table: the header, the line of dashes, and the rows.
_TABLE = re.compile(r"(^\|.*\|\n\|[-:| ]+\|(?:\n\|.*\|)+)", re.MULTILINE)


def refreshed(text: str) -> str:
    """The page with the output of its commands and the results of the benchmarks as they are now."""
    text = _RESULT.sub(lambda found: f"{found[1]}\n{result(found[2], found[3], found[4])}\n\n{found[5]}", text)
    text = _GENERATED.sub(lambda found: f"{found[1]}\n{generated(found[2], found[3])}\n\n{found[4]}", text)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return _BLOCK.sub(lambda block: f"```console\n{_run_block(block[1])}```", text)


def generated(kind: str, given: str) -> str:
    """A table of public names or of commands with a line on each, or the list of the decision records."""
    if kind == "names":
        import askew

        rows = [
            (name.replace("()", "(...)"), getattr(askew, name.removesuffix("()")).__doc__) for name in given.split()
        ]
        return _lines("name", rows)
    if given == "commands":
        from typer.main import get_command

        from askew.ui.cli.main import app

        commands = getattr(get_command(app), "commands", {})
        return _lines("command", [(f"askew {name}", one.help) for name, one in commands.items() if not one.hidden])
    pages = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    heads = [(page.name, page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")) for page in pages]
    return "\n".join(f"- [{head.replace('. ', chr(92) + '. ', 1)}]({name})" for name, head in heads)


def _lines(kind: str, rows: list[tuple[str, str | None]]) -> str:
    """A table of names with the first sentence of each text."""
    shown = [f"| {kind} | what it is or does |", "|---|---|"]
    for name, text in rows:
        first = re.split(r"(?<=[a-z`)]\.) (?=[A-Z])", " ".join((text or "").strip().split("\n\n")[0].split()))[0]
        shown.append(f"| `{name}` | {first.replace('|', chr(92) + '|').replace('``', '`')} |")
    return "\n".join(shown)


def result(title: str, pattern: str | None = None, columns: str | None = None) -> str:
    """A section of the benchmarks' results: when and where it was measured, and what was printed; or a part of it."""
    parts = re.split(r"^## (.*)$", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if title not in sections:
        raise SystemExit(f"{RESULTS.name}: expected a section {title!r}, found {', '.join(sorted(sections))}")
    if pattern is None:
        return whole(title, sections[title].strip())
    if columns is not None:
        cells = re.findall(pattern, sections[title], re.MULTILINE)
        return table(columns.split("; "), [[one.strip() for one in row] for row in cells])
    found = re.search(pattern, sections[title], re.MULTILINE)
    if found is None:
        raise SystemExit(f"{RESULTS.name}: expected {pattern!r} in the section {title!r}, but it has no match")
    shown = ("\n".join(one for one in found.groups() if one is not None) or found[0]).rstrip("\n")
    header = header_of(shown, sections[title])
    return "\n".join([*header, shown]) if header else f"```\n{shown}\n```"


def whole(title: str, section: str) -> str:
    """A section with its command in the line of the date, and with its Markdown tables outside of the fence."""
    date, _, rest = section.partition(", ")
    machine, _, output = rest.partition("\n\n```\n")
    shown = [f"{date}, `python benchmarks/{title}`, {machine}"]
    for part in (one.strip("\n") for one in _TABLE.split(output.removesuffix("```"))):
        if part:
            shown.append(part if _TABLE.match(part) else f"```\n{part}\n```")
    return "\n\n".join(shown)


def table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; all columns but the first have numbers."""
    if not rows or {len(row) for row in rows} != {len(columns)}:
        raise SystemExit(f"{RESULTS.name}: expected rows with the columns {columns}, found {rows}")
    dashes = ["---", *["--:"] * (len(columns) - 1)]
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (columns, dashes, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def header_of(rows: str, section: str) -> list[str]:
    """The two lines of the header of the Markdown table that the rows are from; none if they are from no table."""
    lines = section[: section.index(rows)].splitlines() if rows.startswith("| ") else []
    start = len(lines)
    while start and lines[start - 1].startswith("|"):
        start -= 1
    header = lines[start : start + 2]
    return header if len(header) == 2 and set(header[1]) <= set("|-: ") else []


def _run_block(block: str) -> str:
    commands = re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)$", block, re.MULTILINE)
    return "".join(f"$ {command}\n{_output(command)}" for command in commands)


def _output(command: str) -> str:
    from askew.ui.cli.main import run

    words = shlex.split(command.replace("\\\n", " "))
    if words[0] != "askew":
        raise SystemExit(f"the documentation can only run askew commands, found {command!r}")
    out = io.StringIO()
    columns = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    os.environ.update(ASKEW_COMPILE_NOTE="off", ASKEW_PROGRESS="off")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            run(words[1:])
    finally:
        os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def main() -> None:
    """Refresh every page."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = refreshed(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"refreshed {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
