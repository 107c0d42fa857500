"""A notebook as a page of the site: its text, its code, and the outputs that it keeps."""

from __future__ import annotations

from typing import Any

# A longer line does not fit beside the navigation.
_LONG = 90


def as_markdown(notebook: dict[str, Any]) -> str:
    """The cells one after the other; outputs are shown as they were kept, nothing is executed."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell)) + "\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"]).rstrip()
    if cell["cell_type"] != "code":
        return [source]
    return [_fenced(source, "python"), *(_output(one) for one in cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        # One block of HTML ends at a blank line.
        lines = [line for line in "".join(data["text/html"]).splitlines() if line.strip()]
        return '<div class="output">\n' + "\n".join(lines) + "\n</div>"
    text = "".join(output.get("text", data.get("text/plain", ""))).rstrip()
    return _fenced(text, "{ .text .prose }" if _is_prose(text) else "text")


def _is_prose(text: str) -> bool:
    """Whether a text has long lines that may be wrapped: it has no columns, which have two blanks between them."""
    lines = [line.strip() for line in text.splitlines()]
    return any(len(line) > _LONG for line in lines) and not any("  " in line for line in lines)


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
