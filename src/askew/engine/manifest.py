"""What a finished step left, and how it came to be. Written last: no manifest, not finished."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from askew.core.errors import StoreError
from askew.core.fingerprint import fingerprint

FORMAT = 1


def key_of(stage: str, version: int, settings: Mapping[str, Any], input_key: str) -> str:
    """Stage, version, settings and input: nothing else decides what a step's result is."""
    # As they are read back: JSON has only texts for names.
    plain = json.loads(json.dumps(dict(settings)))
    return fingerprint({"stage": stage, "version": version, "settings": plain, "input": input_key})


@dataclass(frozen=True)
class Part:
    """One file of a step: which input rows it answers for, what came out, and its digest."""

    file: str
    start: int
    stop: int
    rows: int
    kept: int
    dropped: dict[str, int]
    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """Says the same on every machine: time, host and versions stand beside it in provenance.json."""

    step: str
    key: str
    stage: str
    version: int
    settings: dict[str, Any]
    input_key: str
    columns: dict[str, str]
    parts: list[Part]
    format: int = FORMAT

    @property
    def rows_in(self) -> int:
        """Rows read."""
        return sum(part.stop - part.start for part in self.parts)

    @property
    def rows_out(self) -> int:
        """Rows written."""
        return sum(part.rows for part in self.parts)

    @property
    def dropped(self) -> dict[str, int]:
        """Rows dropped, by reason."""
        total: dict[str, int] = {}
        for part in self.parts:
            for reason, count in part.dropped.items():
                total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items()))

    @property
    def totals(self) -> dict[str, Any]:
        """What the parts come to together."""
        return {"rows_in": self.rows_in, "rows_out": self.rows_out, "dropped": self.dropped}

    def to_json(self) -> str:
        """The text of manifest.json."""
        return json.dumps({**asdict(self), "totals": self.totals}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def parse(cls, data: bytes, path: str) -> Manifest:
        """Read manifest.json back; ``path`` is for a message."""
        try:
            return _from_json(json.loads(data.decode("utf-8")), path)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(f"{path}: the manifest is damaged ({first}); {remedy(path)}") from None


def remedy(path: str) -> str:
    """What to do about a file of a step that cannot be used."""
    folder = path.rpartition("/")[0]
    return f"delete its folder and run again: askew verify {folder.rpartition('/')[0] or '.'} --repair"


def _from_json(data: Any, path: str) -> Manifest:
    if not isinstance(data, dict):
        raise TypeError(f"expected an object, found {type(data).__name__}")
    if data.get("format") != FORMAT:
        raise StoreError(
            f"{path}: written by another version of askew (format {data.get('format')!r}, this askew reads {FORMAT}); "
            f"{remedy(path)}"
        )
    totals = data.pop("totals")
    data["parts"] = [_checked(Part(**part)) for part in data["parts"]]
    found = _checked(Manifest(**data))
    if totals != found.totals:
        raise ValueError("the totals are not those of the parts")
    if found.key != key_of(found.stage, found.version, found.settings, found.input_key):
        raise ValueError("the key is not that of its stage, settings and input")
    return found


_Facts = TypeVar("_Facts", Part, Manifest)
_TYPES = {"int": int, "str": str, "dict": dict, "list": list}


def _checked(facts: _Facts) -> _Facts:
    """The facts, if each is of the type it should have: what is read from JSON may be anything."""
    for one in fields(facts):
        expected = _TYPES[str(one.type).partition("[")[0]]
        value = getattr(facts, one.name)
        if not isinstance(value, expected) or isinstance(value, bool):
            raise TypeError(f"{one.name} should be {expected.__name__}, found {type(value).__name__}")
    return facts
