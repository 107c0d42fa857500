"""Write src/askew/data/wordbreak.csv: Unicode's word-break classes as the BM25 analysis needs them.

The facts come from the Unicode Character Database through the ``regex`` package (pip install regex). Two choices
follow Lucene's StandardTokenizer: the colon counts as MidLetter (as it did up to Unicode 14), and full-width digits as
Numeric.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import regex

CLASSES = (
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
    ("Pictograph", r"[\p{Emoji_Presentation}--\p{Regional_Indicator}]"),
)


def main() -> None:
    """Write the table."""
    patterns = [(name, regex.compile(pattern, regex.V1)) for name, pattern in CLASSES]

    def class_of(point: int) -> str:
        if 0xD800 <= point <= 0xDFFF:
            return ""
        char = chr(point)
        return next((name for name, pattern in patterns if pattern.match(char)), "")

    target = Path(__file__).resolve().parent.parent / "src" / "askew" / "data" / "wordbreak.csv"
    with target.open("w", encoding="ascii") as file:
        file.write("# Word-break classes of the Unicode Character Database; written by tools/make_wordbreak.py\n")
        file.write("first,last,class\n")
        for name, points in groupby(range(0x110000), class_of):
            run = list(points)
            if name:
                file.write(f"{run[0]:X},{run[-1]:X},{name}\n")
    sys.stdout.write(f"wrote {target.name}\n")


if __name__ == "__main__":
    main()
