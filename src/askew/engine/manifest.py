"""What a finished step left, and how it came to be. Written last: no manifest, not finished."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from askew.core.errors import StoreError

FORMAT = 1


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

    def to_json(self) -> str:
        """The text of manifest.json."""
        totals = {"rows_in": self.rows_in, "rows_out": self.rows_out, "dropped": self.dropped}
        return json.dumps({**asdict(self), "totals": totals}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read manifest.json back."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data.get("format") != FORMAT:
                raise StoreError(f"{path}: written by another version of askew (format {data.get('format')!r})")
            data.pop("totals")
            data["parts"] = [Part(**part) for part in data["parts"]]
            return cls(**data)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: the manifest is damaged ({error}); delete its folder and run again") from None
