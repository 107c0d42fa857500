"""Why does a mention stand in the results of a query? Train the adapter minilm-why from labels.

    python benchmarks/why_model.py --data DATA --labels FILE ... --out FOLDER               train
    python benchmarks/why_model.py --data DATA --labels FILE ... --out FOLDER/K --fold K    without a fold, 0 to 4

The network and its training are those of ``mention_model.py``; it reads the query before the text. Trained on labels
with ``why`` (README.md in ``benchmarks/mentions``) outside MS MARCO, the test split and its documents. A fold is a
fifth of the queries; the probabilities of its mentions go to ``out_of_fold.npy``. ``training.json`` says how it was
trained. ``warrant_model.py`` measures.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from mention_model import FOLDS, LABELS, TEST_ONLY, Label, Settings, fit, positions, read_texts

from askew.core.text import is_clipped
from askew.measures.relevance import WHY, after_query

# Too few are labeled to tell them apart.
MERGED = {"stereotype": "warranted"}
EPOCHS = 14


@dataclass(frozen=True)
class Row:
    collection: str
    doc: str
    at: int
    word: str
    query: str
    rank: int
    who: str
    why: str
    split: str
    text: str

    @property
    def judged(self) -> bool:
        return self.rank == 0


def read_rows(files: list[Path], data: Path) -> list[Row]:
    """All labels with ``why``, with the text of the query and of the document."""
    found, texts, queries = [], {}, {}
    for line in (line for file in files for line in file.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        if "why" not in row:
            continue
        name = row["collection"]
        if name not in texts:
            texts[name] = read_texts(data, name)
        if "query" not in row and name not in queries:
            lines = (data / name / "queries.tsv").read_text(encoding="utf-8").splitlines()
            queries[name] = dict(one.split("\t", 1) for one in lines)
        query = row["query"] if "query" in row else queries[name][row["query_id"]]
        found.append(Row(
            name, row["doc"], row["at"], row["word"], query, row["rank"], row["who"], row["why"],
            row.get("split", "train"), texts[name][row["doc"]],
        ))  # fmt: skip
    return found


def fold_of_query(row: Row) -> int:
    return zlib.crc32(row.query.encode()) % FOLDS


def usable(rows: list[Row]) -> list[Row]:
    """What may be trained on: found by a search, or judged relevant in GrepBiasIR, where there is no search."""
    held_out = {(one.collection, one.doc) for one in rows if one.split == "test"}
    return [
        one
        for one in rows
        if one.split != "test" and one.collection not in TEST_ONLY and (one.collection, one.doc) not in held_out
        and (not one.judged or one.collection == "grepbiasir") and not is_clipped(one.text, one.at)
    ]  # fmt: skip


def as_labels(rows: list[Row]) -> list[Label]:
    """The query before the text, and the place of the mention after it."""
    found = []
    for one in rows:
        text, at = after_query(one.query, one.text, one.at)
        why = MERGED.get(one.why, one.why)
        found.append(Label(one.collection, one.doc, at, one.word, why, one.split, one.query, text))
    return found


def describe(labels: list[Label], settings: Settings, seed: int, device: str) -> dict[str, object]:
    """What the adapter was trained on, and how."""
    from askew.train.card import hardware

    return {
        "program": "benchmarks/why_model.py", "settings": asdict(settings), "seed": seed, "hardware": hardware(device),
        "rows": len(labels), "collections": dict(Counter(one.collection for one in labels).most_common()),
        "classes": {name: sum(one.who == name for one in labels) for name in WHY},
    }  # fmt: skip


def main() -> None:
    import torch
    from safetensors.torch import save_file

    from askew.measures.resolver import NeuralResolver
    from askew.models.adapted import WEIGHTS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path, nargs="+", default=[LABELS])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fold", type=int, choices=range(FOLDS))
    given = parser.parse_args()
    rows = usable(read_rows(given.labels, given.data))
    kept = [one for one in rows if given.fold is None or fold_of_query(one) != given.fold]
    print(f"{len(kept):,} rows: {dict(Counter(one.collection for one in kept))}", flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    settings = Settings(epochs=EPOCHS, alone=0.0)
    labels = as_labels(kept)
    save_file(fit(labels, settings, given.seed, device, names_of=WHY), given.out / WEIGHTS)
    text = json.dumps(describe(labels, settings, given.seed, device), indent=1)
    (given.out / "training.json").write_text(text + "\n", encoding="utf-8")
    if given.fold is not None:
        left = [one for one in rows if fold_of_query(one) == given.fold]
        found = NeuralResolver(str(given.out), classes=WHY).probabilities(*positions(as_labels(left)))
        np.save(given.out / "out_of_fold.npy", found)
        right = np.mean(found.argmax(axis=1) == [WHY.index(MERGED.get(one.why, one.why)) for one in left])
        print(f"fold {given.fold}: {right:.3f} of {len(left)} right")


if __name__ == "__main__":
    main()
