"""The manifest describes a finished step and its parts. It is written last: a step without it is unfinished."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from askew.core.errors import StoreError
from askew.core.files import fingerprint, parse_json

FORMAT = 1


def key_of(stage: str, version: int, settings: Mapping[str, Any], input_key: str) -> str:
    """The key of a step. Its result depends only on the stage, its version, its settings and the input."""
    # Convert as JSON would read them back: JSON keys are always text.
    plain = json.loads(json.dumps(dict(settings)))
    return fingerprint({"stage": stage, "version": version, "settings": plain, "input": input_key})


def file_of(start: int, stop: int, sha256: str) -> str:
    """The name of a part: its range of input rows and the start of its digest."""
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError("a digest should be 64 hexadecimal digits")
    return f"part-{start:012d}-{stop:012d}-{sha256[:16]}.parquet"


@dataclass(frozen=True)
class Part:
    """One file of a step: its range of input rows, its row counts, and its digest."""

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
    """The manifest of a step. It is the same on every machine: time, host and versions are in provenance.json."""

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
        """The number of input rows."""
        return sum(part.stop - part.start for part in self.parts)

    @property
    def rows_out(self) -> int:
        """The number of output rows."""
        return sum(part.rows for part in self.parts)

    @property
    def dropped(self) -> dict[str, int]:
        """The number of dropped rows by reason."""
        total: Counter[str] = Counter()
        for part in self.parts:
            total.update(part.dropped)
        return dict(sorted(total.items()))

    @property
    def totals(self) -> dict[str, Any]:
        """The totals over all parts."""
        return {"rows_in": self.rows_in, "rows_out": self.rows_out, "dropped": self.dropped}

    def to_json(self) -> str:
        """The text of manifest.json."""
        return json.dumps({**asdict(self), "totals": self.totals}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def parse(cls, data: bytes, path: str) -> Manifest:
        """Parse manifest.json. Error messages name ``path``."""
        try:
            return _from_json(parse_json(data), path)
        except (ValueError, KeyError, TypeError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise StoreError(f"{path}: the manifest is damaged ({first}); {remedy(path)}") from None


def remedy(path: str) -> str:
    """How to repair a step with an unusable file, for error messages."""
    folder = path.rpartition("/")[0]
    return f"repair it with: askew verify {folder.rpartition('/')[0] or '.'} --repair"


def _from_json(data: Any, path: str) -> Manifest:
    if not isinstance(data, dict):
        raise TypeError(f"expected an object, found {type(data).__name__}")
    if data.get("format") != FORMAT:
        other = f"written by another version of askew (format {data.get('format')!r}, this askew reads {FORMAT})"
        raise StoreError(f"{path}: {other}; {remedy(path)}", code="other-format")
    totals = data.pop("totals")
    data["parts"] = [_checked(Part(**part)) for part in data["parts"]]
    for part in data["parts"]:
        # The name of the file is made of the other facts, so that it is never another file.
        if part.file != file_of(part.start, part.stop, part.sha256) or part.start > part.stop:
            raise ValueError(f"{part.file!r} is not the name of this part")
    manifest = _checked(Manifest(**data))
    if totals != manifest.totals:
        raise ValueError("the field 'totals' differs from the sums over the entries of the field 'parts'")
    if manifest.key != key_of(manifest.stage, manifest.version, manifest.settings, manifest.input_key):
        raise ValueError("the field 'key' differs from the key of stage, version, settings and input")
    return manifest


_Facts = TypeVar("_Facts", Part, Manifest)
_TYPES = {"int": int, "str": str, "dict": dict, "list": list}


def _checked(facts: _Facts) -> _Facts:
    """Check the type of each field: values read from JSON may have any type. No number is negative."""
    for field in fields(facts):
        expected: type = _TYPES[str(field.type).partition("[")[0]]
        value: Any = getattr(facts, field.name)
        if type(value) is not expected:
            raise TypeError(f"{field.name} should be {expected.__name__}, found {type(value).__name__}")
        inner = {"dropped": int, "columns": str}.get(field.name)
        for number in list(value.values()) if isinstance(value, dict) and inner else [value]:
            if inner and type(number) is not inner:
                raise TypeError(
                    f"{field.name} should have values of type {inner.__name__}, found {type(number).__name__}"
                )
            if isinstance(number, int) and not 0 <= number < 2**63:
                raise ValueError(f"{field.name} should be 0 or more and below 2^63, found {number}")
    return facts
