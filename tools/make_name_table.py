"""Write src/askew/shipped/names/table.npz: which words have a capital inside a sentence, and a small model of names.

    python tools/make_name_table.py --data DATA --out src/askew/shipped/names/table.npz
    python tools/make_name_table.py --data DATA --measure [--keep FILE]

DATA has the folders boolq, squad_part, gap and fairytaleqa. The table counts capitals inside the sentences of their
passages. The model is trained on lower-cased questions of SQuAD, with and without their function words, and on queries
of BoolQ. In SQuAD the original capitals say which words are names. BoolQ's queries are typed in lower case; there a
word is a name if the passage of the query writes it with a capital. The features of a question come from a table that
was counted without the question's passage and the passages around it: there are five folds of neighboring passages, so
that nearly every article is in one fold. ``--measure`` leaves out a fifth of the passages with their questions and
tests on them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from askew.rewrite import names as namewords
from askew.rewrite.names import NameTable, read_table
from askew.rewrite.words import FUNCTION_WORDS, SENTENCE_ENDS, cased_words

FOLDS = 5
PENALTY, ITERATIONS, SMALLEST = 1.0, 200, 0.02
# A word counted less often than this is left to the model for unseen words; a pair must have two capitals as often.
LEAST_WORD, LEAST_PAIR, OFTEN_PAIR = 1, 2, 6
LEAST_ENDING = 30
Sample = tuple[list[str], list[int]]
NOT_KNOWN = -1


def rate_class(capitals: int, count: int) -> int:
    """The class of a word by how often it was counted, and how often with a capital."""
    share = (capitals + 0.5) / (count + 1)
    rate = sum(share >= bound for bound in namewords.RATE_BOUNDS)
    return rate * namewords._COUNTS + sum(count >= bound for bound in namewords.COUNT_BOUNDS)


def features(table: NameTable, words: Sequence[str]) -> list[list[int]]:
    """Return the indices of the features of each word; none for words that cannot belong to a name."""
    codes = table.codes(words)
    found: list[list[int]] = [[] for _ in words]
    for i, word in enumerate(words):
        before_2, before, code, after, after_2 = codes[i : i + 5]
        if not namewords._MAY_NAME[code]:
            continue
        group = namewords._GROUP[code]
        found[i] = [
            code,
            namewords.BEFORE + group * namewords.CLASSES + before,
            namewords.AFTER + group * namewords.CLASSES + after,
            namewords.BEFORE_2 + group * namewords.GROUPS + namewords._GROUP[before_2],
            namewords.AFTER_2 + group * namewords.GROUPS + namewords._GROUP[after_2],
            namewords.PAIR_BEFORE
            + (table.pairs.get(f"{words[i - 1]} {word}", 0) if namewords._MAY_NAME[before] else 0),
            namewords.PAIR_AFTER + (table.pairs.get(f"{word} {words[i + 1]}", 0) if namewords._MAY_NAME[after] else 0),
        ]
        if code in namewords._RARE and (end := table.ends.get(word[-namewords.ENDING_LETTERS :])) is not None:
            found[i].append(namewords.ENDING + end)
    return found


def write_table(path: Path, table: NameTable) -> None:
    """Write a table to one small file."""
    words, pairs = sorted(table.words), sorted(table.pairs)
    scale = max(map(abs, table.weights)) / 127
    np.savez_compressed(
        path, words=text_bytes(words), word_codes=np.array([table.words[w] for w in words], np.uint8),
        pairs=text_bytes(pairs), pair_codes=np.array([table.pairs[p] for p in pairs], np.uint8),
        ends=text_bytes(list(table.ends)), weights=np.round(np.array(table.weights) / scale).astype(np.int8),
        scale=np.float64(scale), bias=np.float64(table.bias),
    )  # fmt: skip


def text_bytes(texts: list[str]) -> np.ndarray:
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


class Counts:
    """How often words, and pairs of words, are written with a capital inside a sentence."""

    def __init__(self) -> None:
        self.all: Counter[str] = Counter()
        self.capital: Counter[str] = Counter()
        self.pair: Counter[str] = Counter()
        self.capital_pair: Counter[str] = Counter()

    def add(self, text: str) -> None:
        before, before_capital, start = "", False, True
        for token in cased_words(text):
            if token in SENTENCE_ENDS:
                before, start = "", True
                continue
            word, capital = token.casefold(), token != token.lower()
            if not start:
                self.all[word] += 1
                self.capital[word] += capital
            if before and word not in FUNCTION_WORDS:
                self.pair[f"{before} {word}"] += 1
                self.capital_pair[f"{before} {word}"] += before_capital and capital
            # The first word of a sentence has a capital anyway: no pair begins with it.
            before = "" if start or word in FUNCTION_WORDS else word
            before_capital, start = capital, False

    def table(self) -> NameTable:
        """The classes; no weights yet."""
        words = {
            word: rate_class(self.capital[word], count)
            for word, count in self.all.items()
            if count >= LEAST_WORD and word.isalpha() and len(word) > 1 and word not in FUNCTION_WORDS
        }
        pairs = {
            pair: 1 if capital < OFTEN_PAIR else 2
            for pair, capital in self.capital_pair.items()
            if capital >= LEAST_PAIR and capital > 0.7 * self.pair[pair]
        }
        return NameTable(words, pairs, {}, [], 0.0)


def count(texts: list[str]) -> NameTable:
    counts = Counts()
    for text in texts:
        counts.add(text)
    return counts.table()


def read_tsv(path: Path) -> dict[str, str]:
    rows = (line.rstrip("\n").split("\t", 1) for line in path.open(encoding="utf-8"))
    return {row[0]: row[1] for row in rows}


class Collection:
    """Passages and queries, in folds of neighboring passages."""

    def __init__(self, folder: Path) -> None:
        self.docs = {doc: text.split(" -- ", 1)[-1] for doc, text in read_tsv(folder / "docs.tsv").items()}
        self.queries = read_tsv(folder / "queries.tsv")
        lines = (line.split() for line in (folder / "qrels.txt").read_text(encoding="utf-8").splitlines())
        self.doc_of = {row[0]: row[2] for row in lines if int(row[3]) > 0}
        # SQuAD's articles follow each other: twenty stretches, dealt out in turn.
        self.fold = {doc: i * 20 // len(self.docs) % FOLDS for i, doc in enumerate(self.docs)}

    def texts(self, folds: set[int]) -> list[str]:
        return [text for doc, text in self.docs.items() if self.fold[doc] in folds]


def by_capitals(query: str) -> Sample:
    """The words of a cased question, and which are names: capitals, but for the first word, which is not known."""
    words, labels, start = [], [], True
    for token in cased_words(query):
        if token not in SENTENCE_ENDS:
            words.append(token.casefold())
            labels.append(NOT_KNOWN if start else int(token != token.lower()))
        start = token in SENTENCE_ENDS
    return words, labels


def by_passage(query: str, passage: str) -> Sample:
    """The words of a lower-case query, and which are names: as its passage writes them, or not known."""
    seen = Counts()
    seen.add(passage)
    words = [token.casefold() for token in cased_words(query) if token not in SENTENCE_ENDS]
    known = [seen.capital[word] / seen.all[word] if seen.all[word] else None for word in words]
    return words, [NOT_KNOWN if share is None else int(share > 0.5) for share in known]


def content(sample: Sample) -> Sample:
    """The words that are no function words: a question as one types it into a search box."""
    kept = [(word, label) for word, label in zip(*sample, strict=True) if word not in FUNCTION_WORDS]
    return [word for word, _ in kept], [label for _, label in kept]


def shortened(sample: Sample, rng: random.Random) -> Sample:
    """As it stands, without function words, or a few of its words: queries are typed in all these ways."""
    way = rng.random()
    if way < 0.4:
        return sample
    words, labels = content(sample)
    if way > 0.7 and len(words) > 2:
        size = rng.randint(2, min(4, len(words)))
        start = rng.randint(0, len(words) - size)
        return words[start : start + size], labels[start : start + size]
    return words, labels


def samples(squad: Collection, boolq: Collection, folds: set[int]) -> list[Sample]:
    """Questions of the passages of some folds, with what is known of their words."""
    found = [by_capitals(t) for q, t in squad.queries.items() if squad.fold[squad.doc_of[q]] in folds]
    typed = [(t, boolq.doc_of.get(q)) for q, t in boolq.queries.items()]
    return found + [by_passage(t, boolq.docs[doc]) for t, doc in typed if doc is not None and boolq.fold[doc] in folds]


def rows_of(table: NameTable, found: list[Sample]) -> tuple[list[list[int]], list[int]]:
    rows, labels = [], []
    for words, known in found:
        for used, label in zip(features(table, words), known, strict=True):
            if used and label != NOT_KNOWN:
                rows.append(used)
                labels.append(label)
    return rows, labels


def fit(rows: list[list[int]], labels: list[int], size: int) -> tuple[list[float], float]:
    """Logistic regression with a squared penalty."""
    where = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    x = sparse.csr_matrix((np.ones(len(where)), (where, np.concatenate(rows))), shape=(len(rows), size))
    transposed, y = x.T.tocsr(), np.array(labels, float)

    def loss(flat: Any) -> tuple[float, Any]:
        logit = x @ flat[:-1] + flat[-1]
        wrong = 1 / (1 + np.exp(-logit)) - y
        value = (np.logaddexp(0, logit) - y * logit).sum() + PENALTY * (flat[:-1] ** 2).sum() / 2
        return value, np.append(transposed @ wrong + PENALTY * flat[:-1], wrong.sum())

    found = minimize(loss, np.zeros(size + 1), jac=True, method="L-BFGS-B", options={"maxiter": ITERATIONS}).x
    weights = np.where(np.abs(found[:-1]) < SMALLEST, 0, found[:-1])
    return weights.tolist(), float(found[-1])


def train(squad: Collection, boolq: Collection, further: list[str], folds: set[int]) -> NameTable:
    """The table of some folds, with a model whose features came from tables of the other folds."""
    endings = Counter(word[-namewords.ENDING_LETTERS :] for text in squad.texts(folds) for word in text.lower().split()
                      if word.isalpha())  # fmt: skip
    ends = {end: i for i, end in enumerate(sorted(e for e, n in endings.items() if n >= LEAST_ENDING))}
    rows: list[list[int]] = []
    labels: list[int] = []
    rng = random.Random(3)
    for fold in sorted(folds):
        others = folds - {fold}
        table = replace(count([*squad.texts(others), *boolq.texts(others), *further]), ends=ends)
        more_rows, more_labels = rows_of(table, [shortened(s, rng) for s in samples(squad, boolq, {fold})])
        rows += more_rows
        labels += more_labels
    weights, bias = fit(rows, labels, namewords.ENDING + len(ends))
    table = count([*squad.texts(folds), *boolq.texts(folds), *further])
    print(
        f"{len(table.words):,} words, {len(table.pairs):,} pairs, {len(ends):,} endings; trained on {len(rows):,} words"
    )
    return replace(table, ends=ends, weights=weights, bias=bias)


def measure(table: NameTable, name: str, found: list[Sample]) -> dict[str, Any]:
    """Precision and recall of the words that belong to names, at several thresholds."""
    scores, labels, seen = [], [], []
    for words, known in found:
        for word, score, label in zip(words, table.scores(words), known, strict=True):
            if label != NOT_KNOWN and word not in FUNCTION_WORDS and not word[0].isdigit():
                scores.append(score)
                labels.append(label)
                seen.append(word in table.words)
    p, y, known_word = 1 / (1 + np.exp(-np.array(scores))), np.array(labels, bool), np.array(seen)
    print(f"{name}: {len(y):,} words, {y.sum():,} of names, {(~known_word).mean():.1%} not in the table")
    measured: dict[str, Any] = {"words": len(y), "words of names": int(y.sum())}
    for threshold in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95):
        told = p >= threshold
        precision, recall = (told & y).sum() / max(1, told.sum()), (told & y).sum() / y.sum()
        unseen = (told & y & ~known_word).sum() / max(1, (y & ~known_word).sum())
        print(f"  {threshold:.2f}  precision {precision:.3f}  recall {recall:.3f}  recall of unseen {unseen:.3f}")
        measured[f"{threshold:.2f}"] = {"precision": float(precision), "recall": float(recall)}
    return measured


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder with boolq, squad_part, gap, fairytaleqa")
    options.add_argument("--out", type=Path, help="the file to write")
    options.add_argument("--measure", action="store_true", help="test on held-out passages and questions")
    options.add_argument("--keep", type=Path, help="with --measure, the .json file for the results")
    given = options.parse_args()
    squad, boolq = Collection(given.data / "squad_part"), Collection(given.data / "boolq")
    gap = [text.split(" -- ", 1)[-1] for text in read_tsv(given.data / "gap" / "docs.tsv").values()]
    tales, everything = Collection(given.data / "fairytaleqa"), set(range(FOLDS))
    if given.measure:
        table = train(squad, boolq, [*gap, *tales.texts(everything - {0})], everything - {0})
        left = samples(squad, boolq, {0})
        cased = [by_capitals(t) for q, t in squad.queries.items() if squad.fold[squad.doc_of[q]] == 0]
        rng = random.Random(4)
        told = [by_capitals(t) for q, t in tales.queries.items() if tales.fold[tales.doc_of[q]] == 0]
        parts = {
            "SQuAD, articles left out": cased,
            "SQuAD, without function words": [content(s) for s in cased],
            "all, shortened": [shortened(s, rng) for s in left],
            "BoolQ, passages left out (capitals of the passage)": left[len(cased) :],
            "FairytaleQA, stories left out": told,
        }
        measured = {"test": {name: measure(table, name, found) for name, found in parts.items()}}
        if given.keep:
            given.keep.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if given.out:
        write_table(given.out, train(squad, boolq, [*gap, *tales.texts(everything)], everything))
        read_table(given.out)
        print(f"{given.out}: {given.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
