"""Rows to train on, and where the programs are."""

from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
KINDS = ("paraphrase", "vocabulary", "keywords", "explicit", "neutral")
TEXTS = {
    "red car": ["car of red", "crimson auto", "car red", "a car that is red", "auto in red"],
    "old ship": ["ship of old", "ancient boat", "ship old", "a ship that is old", "boat in age"],
    "tall queen": ["queen of height", "high ruler", "queen tall", "a queen that is tall", "ruler in height"],
}
WORDS = sorted({word for query, texts in TEXTS.items() for text in (query, *texts) for word in text.split()})


def rewrites_row(query, texts, collection="boolq", split="train"):
    rewrites = [{"kind": kind, "text": text} for kind, text in zip(KINDS, texts, strict=True)]
    return {"collection": collection, "id": query, "query": query, "rewrites": rewrites, "split": split}


def label_row(query, candidate, need, natural=1, collection="boolq", split="train", method="rewrite:keywords"):
    return {
        "collection": collection, "query": query, "candidate": candidate, "method": method, "need": need,
        "natural": natural, "split": split,
    }  # fmt: skip
