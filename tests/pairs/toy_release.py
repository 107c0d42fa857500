"""A small set of pairs that keeps every rule, made by the paper's definitions, and its facts."""

import hashlib
import random
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from askew.core.measure import pair_columns
from askew.pairs.dataset import release
from askew.pairs.dataset.columns import PairFile

MEASURES = {
    "RR@10": {"signature": "RR(judged_only=False)@10", "direction": "up"},
    "ARaB(tf)@10": {"signature": "ARaB(kind='tf',lexicon='gender@1',sign='signed')@10", "direction": "zero"},
    "LexiconShare@10": {"signature": "LexiconShare(lexicon='gender@1',sign='abs')@10", "direction": "down"},
}
LABELS = {"better-less": 0, "better-same": 1, "same-less": 2, "same-same": 3}
ACCEPTED = {"1": [0, 1, 2, 3], "2": [0, 2], "3": [0, 1], "4": [0]}


def facts(**more):
    stated = {
        "title": "Toy pairs",
        "description": "Pairs made up for the tests.",
        "collection": "toy",
        "ranker": "bm25(k1=0.82,b=0.68)",
        "measures": MEASURES,
        "selection": {
            "selector": "refairmulate-paper",
            "effectiveness": ["RR@10"],
            "bias": ["ARaB(tf)@10"],
            "accept": ACCEPTED,
            "optimal_groups": [1, 2, 3, 4],
            "negative": "effectiveness",
        },
        "lexicons": [{"id": "gender@1", "license": "CC0-1.0"}],
        "sources": [{"name": "toy queries", "license": "CC0-1.0", "note": "made up"}],
        "recipe": '[plan]\nname = "toy"\n',
        "counts": {"queries": 40},
        "dropped": {"same as the original": 3},
        "versions": {"askew": "0.1.0"},
        "license": "cc-by-4.0",
        "language": "en",
    }
    return {**stated, **more}


LEAN = {"better": "less", "same": "same", "worse": "more"}


def sign(gain):
    return "better" if gain > 0 else "worse" if gain < 0 else "same"


def row(query, variant, old, new, *, original="", text=""):
    """One pair from its values (RR, ARaB, share); group, label, outcome and score follow from them."""
    gains = (new[0] - old[0], abs(old[1]) - abs(new[1]), old[2] - new[2])
    outcome = f"{sign(gains[0])}-{LEAN[sign(gains[1])]}"
    group = 1 + 2 * (old[0] < 1) + (old[1] != 0)
    made = {
        "query_id": query, "variant_id": variant, "original_text": original or f"what about topic {query}",
        "text": text or f"tell me of topic {query} way {variant}", "method": "swap" if variant < "v3" else "reduce",
        "group": group, "label": LABELS.get(outcome, 4), "outcome": outcome, "score": gains[0] + gains[1],
        "optimal": False, "effective": False, "fair": False, "negative": gains[0] < 0, "doc_id": None,
    }  # fmt: skip
    for name, before, after, gain in zip(MEASURES, old, new, gains, strict=True):
        made |= dict(zip(pair_columns(name), (before, after, gain), strict=True))
    return made


def choose(rows):
    """Set the flags: Optimal is a perfect accepted variant, Effective the best accepted one that is not perfect."""
    accepted = [r for r in rows if r["label"] in ACCEPTED[str(r["group"])] and not r["negative"]]
    perfect = [r for r in accepted if r["new_RR_10"] == 1 and r["new_ARaB_tf_10"] == 0]
    others = [r for r in accepted if r not in perfect]
    for found, flag in ((perfect[:1], "optimal"), (sorted(others, key=lambda r: -r["score"])[:1], "effective")):
        for one in found:
            one[flag] = one["fair"] = True
    return rows


def toy_pairs(queries=40, variants=5, seed=7):
    draw = random.Random(seed)
    rows = []
    for q in range(queries):
        old = (draw.choice([0.0, 0.5, 1.0]), draw.choice([0.0, 0.25, -0.5]), draw.choice([0.0, 1.5]))
        news = [(draw.choice([0.0, 0.5, 1.0]), draw.choice([0.0, 0.25, -0.5]), 1.0) for _ in range(variants)]
        rows += choose([row(f"q{q}", f"v{i}", old, new) for i, new in enumerate(news)])
    return frame(rows)


def frame(rows):
    floats = {column: pl.Float64 for name in MEASURES for column in pair_columns(name)}
    return pl.DataFrame(rows, schema_overrides={"doc_id": pl.String, "score": pl.Float64, **floats})


def parquet_bytes(pairs):
    """The bytes of a Parquet file of a release with these pairs."""
    sink = pa.BufferOutputStream()
    file = PairFile(sink)
    file.add(pairs)
    file.close()
    return bytes(sink.getvalue().to_pybytes())


def publish_unchecked(pairs, stated, out):
    """Publish pairs that break a rule."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(release.Problems, "lines", lambda _: [])
        patched.setattr(release.Originals, "leaks", lambda _: [])
        release.publish(pairs, stated, out)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def resign(folder: Path) -> None:
    """Write the checksums anew, as someone would who changes a release with care."""
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in contents(folder).items()]
    (folder / "checksums.sha256").write_text("".join(line for line in lines if "checksums.sha256" not in line))
