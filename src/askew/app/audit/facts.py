"""Read the numbers of an audit from audit.json, from which the pages of an audit are rendered.

Every value is converted to a plain number or text. A value of the wrong type is an error of one line. No value is
treated as markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askew.core.errors import DataError

FILE = "audit.json"
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class AuditedMean:
    """A mean over queries with its interval."""

    text: str
    mean: float | None
    low: float | None
    high: float | None
    n: int
    better: str
    signature: str


@dataclass(frozen=True)
class PartFacts:
    """A part of a measure of lean."""

    kind: str
    name: str
    share: float | None
    low: float | None
    high: float | None
    net: float | None
    net_low: float | None
    net_high: float | None


@dataclass(frozen=True)
class PartsFacts:
    """The parts of one measure."""

    measure: str
    value: float | None
    mentions: int
    resolver: str
    parts: tuple[PartFacts, ...]


@dataclass(frozen=True)
class WorstFacts:
    """A query with a large lean; its text is None unless the audit kept it."""

    query_id: str
    text: str | None
    lean: float | None
    named: tuple[str, ...]
    mentions: Mapping[str, int]


@dataclass(frozen=True)
class TriedFacts:
    """A reformulation that was searched; its text is None unless the audit kept it."""

    query_id: str
    text: str | None
    method: str
    suggested: bool
    same: float | None
    kept: float | None
    lean: tuple[float | None, float | None]
    lean_verdict: str | None
    effectiveness: tuple[float | None, float | None]
    outcome: str | None


@dataclass(frozen=True)
class OtherWay:
    """The mean of the same results with another measure, word list or tokenizer."""

    label: str
    mean: float | None
    low: float | None
    high: float | None
    toward: str | None


@dataclass(frozen=True)
class Sensitivity:
    """How often the verdict is the same, and suggested reformulations lean less, with other measures and word lists.

    A combination is a measure, a word list and a tokenizer. The verdict is the same in ``holds`` of ``of``
    combinations; the reformulations lean less in ``less`` of ``compared`` combinations.
    """

    holds: int
    of: int
    less: int
    compared: int
    ways: tuple[OtherWay, ...]


@dataclass(frozen=True)
class AuditFacts:
    """One audit.

    ``reading`` explains the sign of the first measure of lean; it is empty for files of earlier versions.
    """

    engine: str
    k: int
    queries: int
    unanswered: int
    groups: tuple[str, ...]
    deciding: str
    verdict: str | None
    measures: tuple[AuditedMean, ...]
    parts: tuple[PartsFacts, ...]
    worst: tuple[WorstFacts, ...]
    tried: tuple[TriedFacts, ...]
    dropped: Mapping[str, int]
    sensitivity: Sensitivity
    next_steps: tuple[str, ...]
    failures: tuple[str, ...]
    reading: str
    effectiveness: str | None
    agree: float | None
    reduction: float | None
    audited: str
    model: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, read: Facts) -> AuditFacts:
        """Convert the values of audit.json; KeyError, TypeError or ValueError if they are not those of an audit."""
        return cls(
            str(read["engine"]), int(read["k"]), int(read["queries"]), int(read["unanswered"]), _texts(read["groups"]),
            str(read["deciding"]), _text(read["verdict"]),
            tuple(_measure(text, one) for text, one in read["measures"].items()),
            tuple(_parts(one) for one in read["parts"]), tuple(_worst(one) for one in read["worst"]),
            tuple(_tried(one) for one in read["reformulations"]), _counts(read["dropped_reformulations"]),
            _sensitivity(read["sensitivity"]), _texts(read["next_steps"]), _texts(read["failures"]),
            str(read.get("reading", "")), _text(read.get("effectiveness")), _number(read.get("agree")),
            _number(read.get("reduction")), str(read.get("audited", "")), str(read.get("model", "")),
            _texts(read.get("notes", [])),
        )  # fmt: skip


def read_audit(folder: Path) -> AuditFacts:
    """Read audit.json of a folder that ``askew audit --out`` wrote; report.html is not read."""
    path = folder / FILE
    try:
        return AuditFacts.of(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        why = error.strerror or str(error)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error).partition("\n")[0][:200] or type(error).__name__
    raise DataError(f"audit {path}: cannot be read ({why}); expected a file {FILE} that askew audit --out wrote")


def audits_of(folder: Path) -> dict[str, Path]:
    """Return the audit folders by name: the folder itself if it has an audit, else its subfolders that have one."""
    if (folder / FILE).is_file():
        return {folder.resolve().name: folder}
    if not folder.is_dir():
        raise DataError(f"audit= {folder}: there is no such folder; expected a folder that askew audit --out wrote")
    found = {path.name: path for path in sorted(folder.iterdir()) if (path / FILE).is_file()}
    if not found:
        raise DataError(
            f"audit= {folder}: expected a folder that askew audit --out wrote, or a folder of such folders; found no "
            f"{FILE}"
        )
    return found


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"expected a list of texts, found {type(values).__name__}")
    return tuple(str(one) for one in values)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _counts(values: Facts) -> dict[str, int]:
    return {str(name): int(count) for name, count in values.items()}


def _measure(text: str, one: Facts) -> AuditedMean:
    mean, low, high = (_number(one[name]) for name in ("mean", "low", "high"))
    return AuditedMean(str(text), mean, low, high, int(one["n"]), str(one["better"]), str(one["signature"]))


def _parts(one: Facts) -> PartsFacts:
    numbers = ("share", "low", "high", "net", "net_low", "net_high")
    parts = tuple(
        PartFacts(str(part["kind"]), str(part["name"]), *(_number(part[name]) for name in numbers))
        for part in one["parts"]
    )
    return PartsFacts(str(one["measure"]), _number(one["value"]), int(one["mentions"]), str(one["resolver"]), parts)


def _worst(one: Facts) -> WorstFacts:
    return WorstFacts(
        str(one["query_id"]), _text(one.get("text")), _number(one["lean"]), _texts(one["named"]),
        _counts(one["mentions"]),
    )  # fmt: skip


def _tried(one: Facts) -> TriedFacts:
    lean, effectiveness = (
        (_number(one[f"{name}_before"]), _number(one[f"{name}_after"])) for name in ("lean", "effectiveness")
    )
    return TriedFacts(
        str(one["query_id"]), _text(one.get("text")), str(one["method"]), bool(one["suggested"]), _number(one["same"]),
        _number(one["kept"]), lean, _text(one["lean_verdict"]), effectiveness, _text(one["outcome"]),
    )  # fmt: skip


def _sensitivity(one: Facts) -> Sensitivity:
    less, compared = int(one["reformulations_lean_less"]), int(one["reformulations_compared"])
    return Sensitivity(int(one["holds"]), int(one["of"]), less, compared, tuple(map(_way, one["combinations"])))


def _way(one: Facts) -> OtherWay:
    mean, low, high = (_number(one[name]) for name in ("mean", "low", "high"))
    return OtherWay(str(one["label"]), mean, low, high, _text(one["toward"]))
