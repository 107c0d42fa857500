"""Write src/askew/shipped/wordbreak.csv: Unicode's word-break classes as the BM25 analysis needs them.

The classes come from the Unicode Character Database through the ``regex`` package (pip install regex). They are then
corrected, character by character, to the observed behavior of Lucene's StandardTokenizer, which follows an older
version of Unicode (needs the extra ``lucene``). Single characters therefore agree with Lucene by construction; only
tests on texts show real agreement. In Lucene the colon counts as MidLetter, and full-width digits as Numeric.
"""

from __future__ import annotations

import argparse
import sys
import unicodedata
from itertools import groupby
from pathlib import Path

import regex

from askew.search.bm25 import wordbreak
from askew.search.bm25.analyze import Analyzer

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from anserini import java_classes

CLASSES = (
    ("ComplexMark", r"[\p{Line_Break=SA}&&[\p{WB=Extend}\p{WB=Format}]]"),
    ("Extend", r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]"),
    ("Han", r"\p{Script=Han}"),
    ("Hiragana", r"\p{Script=Hiragana}"),
    ("Complex", r"\p{Line_Break=SA}"),
    ("Hebrew", r"\p{WB=Hebrew_Letter}"),
    ("Letter", r"\p{WB=ALetter}"),
    ("Numeric", r"[\p{WB=Numeric}\uFF10-\uFF19]"),
    ("ExtendNumLet", r"\p{WB=ExtendNumLet}"),
    ("Katakana", r"\p{WB=Katakana}"),
    ("MidLetter", r"[\p{WB=MidLetter}:]"),
    ("MidNum", r"\p{WB=MidNum}"),
    ("MidNumLet", r"\p{WB=MidNumLet}"),
    ("SingleQuote", r"\p{WB=Single_Quote}"),
    ("DoubleQuote", r"\p{WB=Double_Quote}"),
    ("Pictograph", r"\p{Extended_Pictographic}"),
    ("Regional", r"\p{Regional_Indicator}"),
)


# What a character may turn out to be, the most likely first.
_GUESSES = (
    "Other",
    "Extend",
    "ComplexMark",
    "Letter",
    "Numeric",
    "Han",
    "Katakana",
    "Complex",
    "Pictograph",
    "MidLetter",
    "MidNum",
)


def by_database() -> list[str]:
    """The class of every code point by the Unicode Character Database."""
    patterns = [(name, regex.compile(pattern, regex.V1)) for name, pattern in CLASSES]

    def class_of(point: int) -> str:
        if 0xD800 <= point <= 0xDFFF:
            return ""
        char = chr(point)
        return next((name for name, pattern in patterns if pattern.match(char)), "")

    return [class_of(point) for point in range(0x110000)]


def corrected(classes: list[str]) -> tuple[list[str], int, int]:
    """The classes changed to what Lucene is seen to do; how many were changed, and how many still differ."""
    table = wordbreak.class_table()
    table[:] = [wordbreak._NAMES.index(name or "Other") for name in classes]
    analyzer = Analyzer("plain")
    points = [p for p in range(0x80, 0x32000) if unicodedata.category(chr(p)) not in ("Cn", "Cs", "Co")]
    texts = {p: f"q{chr(p)}q x {chr(p)} x 7{chr(p)}7 x {chr(p)}{chr(p)}" for p in points}
    java = java_classes()
    utils, own = java("io.anserini.analysis.AnalyzerUtils"), java("io.anserini.analysis.DefaultEnglishAnalyzer")
    plain = own.newNonStemmingInstance()
    wanted = {point: list(utils.analyze(plain, text).toArray()) for point, text in texts.items()}
    changed = left = 0
    for point, text in texts.items():
        if analyzer.terms(text) == wanted[point]:
            continue
        before = int(table[point])
        for guess in _GUESSES:
            table[point] = wordbreak._NAMES.index(guess)
            if analyzer.terms(text) == wanted[point]:
                changed += 1
                break
        else:
            table[point] = before
            left += 1
    return ["" if c == 0 else wordbreak._NAMES[c] for c in table.tolist()], changed, left


def main() -> None:
    """Write the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    classes, changed, left = corrected(by_database())
    target = Path(__file__).resolve().parent.parent / "src" / "askew" / "shipped" / "wordbreak.csv"
    with target.open("w", encoding="ascii") as file:
        file.write("# Word-break classes: Unicode Character Database, corrected to Lucene's; tools/make_wordbreak.py\n")
        file.write("first,last,class\n")
        for name, points in groupby(range(0x110000), classes.__getitem__):
            run = list(points)
            if name:
                file.write(f"{run[0]:X},{run[-1]:X},{name}\n")
    sys.stdout.write(f"wrote {target.name}; {changed} characters corrected, {left} still differ from Lucene\n")


if __name__ == "__main__":
    main()
