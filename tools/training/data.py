"""Rows to train on: rewrites, labeled candidates and queries, and what may not be trained on.

``--made`` is the folder ``benchmarks/reformulation``: ``queries.jsonl`` (queries of the open collections with five
rewrites each), ``labels.jsonl`` (labeled candidates), ``plain.txt`` (queries without rewrites) and ``groups.jsonl``
(queries with the group they ask about). ``--rewrites`` and ``--labels`` are further files of the same fields; they come
first.
Rows of MS MARCO are for research only: none of them is trained on, nor is any query of the parts dev and test.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
MADE = Path(__file__).resolve().parents[2] / "benchmarks" / "reformulation"
# Collections whose license allows to pass on what was trained, with that license; rows of others are left out.
LICENSES = {"boolq": "CC-BY-SA-3.0", "squad": "CC-BY-SA-4.0", "web": "CC-BY-SA-4.0"}
OPEN = tuple(LICENSES)
_REWRITE_FIELDS = ("collection", "query", "rewrites", "split")
LABEL_FIELDS = ("collection", "query", "candidate", "method", "need", "natural", "split")


@dataclass(frozen=True)
class Reformulations:
    """All rows of the files, those to train on and those held out."""

    rewrites: list[Row]
    labels: list[Row]

    def held_out(self, used: Sequence[str] = ("train",)) -> set[str]:
        """The queries of all parts but those used, whatever the collection, without regard to capitals."""
        return {plain(row["query"]) for row in [*self.rewrites, *self.labels] if row["split"] not in used}

    def training_rewrites(self) -> list[Row]:
        """The queries with rewrites to train on."""
        return self._training(self.rewrites)

    def training_labels(self) -> list[Row]:
        """The labeled candidates to train on."""
        return self._training(self.labels)

    def training_queries(self, lines: Iterable[str]) -> list[str]:
        """Queries to write texts for: of the web queries to train on, and of further lines; each one once."""
        held_out = self.held_out()
        web = [row["query"] for row in self.training_rewrites() if row["collection"] == "web"]
        distinct: dict[str, str] = {}
        for query in [*web, *lines]:
            distinct.setdefault(plain(query), query)
        return [query for key, query in distinct.items() if key and key not in held_out]

    def _training(self, rows: Iterable[Row]) -> list[Row]:
        held_out = self.held_out()
        return [row for row in rows if row["collection"] in OPEN and plain(row["query"]) not in held_out]


def plain(query: str) -> str:
    """A query in lower case, with single blanks, without final marks: two that are alike in this are the same query."""
    return " ".join(query.lower().split()).rstrip("?. ")


def read_reformulations(made: Path, rewrites: Sequence[Path], labels: Sequence[Path]) -> Reformulations:
    """The rows of the given files, then those of the folder ``made``."""
    return Reformulations(
        [row for file in (*rewrites, made / "queries.jsonl") for row in read_rows(file, _REWRITE_FIELDS)],
        [row for file in (*labels, made / "labels.jsonl") for row in read_rows(file, LABEL_FIELDS)],
    )


def read_rows(file: Path, fields: Sequence[str]) -> list[Row]:
    """The rows of a file of JSON lines, each with the fields."""
    rows = []
    for number, line in enumerate(read_lines(file), start=1):
        try:
            row = json.loads(line)
            missing = [name for name in fields if name not in row]
        except (ValueError, TypeError):
            missing = list(fields)
        if missing:
            raise SystemExit(f"{file}, line {number}: expected a JSON object with {', '.join(missing)}; correct it")
        rows.append(row)
    return rows


def read_lines(file: Path) -> list[str]:
    """The lines of a file, or of the same file with .gz, that are not empty."""
    try:
        packed = file.with_name(f"{file.name}.gz")
        is_packed = packed.exists() and not file.exists()
        text = gzip.decompress(packed.read_bytes()).decode() if is_packed else file.read_text(encoding="utf-8")
        return [line for line in text.splitlines() if line.strip()]
    except OSError as error:
        raise SystemExit(f"{file}: cannot be read ({error.strerror}); give another file or folder") from None


def rows_by_collection(rows: Iterable[Row], licenses: Mapping[str, str] = LICENSES) -> dict[str, Row]:
    """How many rows there are of each collection, and its license."""
    counted = Counter(row["collection"] for row in rows)
    return {name: {"rows": count, "license": licenses[name]} for name, count in sorted(counted.items())}


def lower_some(texts: Sequence[str], share: float, chance: Any) -> tuple[str, ...]:
    """The texts, or with this probability all of them in lower case and without a final question mark or full stop."""
    if chance.random() < share:
        return tuple(text.lower().rstrip("?. ") for text in texts)
    return tuple(texts)


def write_training(folder: Path, facts: Mapping[str, Any], device: str) -> None:
    """``training.json`` beside an adapter: what it was trained on and how, and on what machine; no path is in it."""
    from askew.core.address import public
    from askew.train.card import hardware, versions

    told = {**public(facts), "hardware": hardware(device), "versions": versions()}
    (folder / "training.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def say(line: str) -> None:
    """A line of progress, at once."""
    print(line, flush=True)


def choose_device(given: str | None) -> str:
    """The given device, else the GPU where there is one; its 32-bit products may be rounded to 19 bits (TF32)."""
    import torch

    torch.set_float32_matmul_precision("high")
    return given or ("cuda" if torch.cuda.is_available() else "cpu")


Report = Callable[[str], None]
