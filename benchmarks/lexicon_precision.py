"""How often does a word of a shipped lexicon name a person of its group? Precision from mentions that were read.

    python benchmarks/lexicon_precision.py                      # the table, from the sheets in lexicon_precision/
    python benchmarks/lexicon_precision.py words gender         # which words were wrong, and how often
    python benchmarks/lexicon_precision.py draw age --data DATA --out sheet.jsonl --seed 2 --per-group 80

``draw`` finds every mention with askew's own tokenizer and matching rule, and samples ``--per-group`` of each group:
equal numbers from each collection as far as they go, within a collection in proportion to the words (``--by share``,
for the reported figures) or as evenly over the words as possible (``--by word``, to find words of poor precision).
A word counts at most three times in a document. Mentions in another sheet can be left out (``--not-in``).
A sheet has one mention per line; README.md in its folder says what the fields and labels mean. For a lexicon of your
own, give its file, the folders of your collections below DATA (each with docs.tsv: id, TAB, text) by ``--collections``,
label the sheet, and print its table with ``--sheets FOLDER``.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askew.core.lexicon import load_lexicon, shipped_lexicons
from askew.core.text import GroupVocabulary, build_vocabulary, word

SHEETS = Path(__file__).parent / "lexicon_precision"
COLLECTIONS = ("msmarco_dl1920", "boolq", "squad_part", "gap", "fairytaleqa")
# Wikipedia text under CC BY-SA; of the other collections a sheet keeps the position alone.
WITH_CONTEXT = ("boolq", "squad_part")
PER_DOCUMENT = 3
CONTEXT_WORDS = 12
Z = 1.959963984540054


@dataclass(frozen=True)
class Mention:
    """A term of the lexicon in a document, from the character ``start`` up to ``end``."""

    group: str
    word: str
    collection: str
    doc_id: str
    start: int
    end: int
    text: str

    @property
    def key(self) -> tuple[str, str, int]:
        return self.collection, self.doc_id, self.start


def spans(text: str) -> list[tuple[str, int, int]]:
    """The tokens of ``askew.core.text.word`` with their places. Lower-casing must keep the places."""
    lowered = text.lower()
    if len(lowered) != len(text):
        return []
    found, at = [], 0
    for token in word(text):
        start = lowered.index(token, at)
        at = start + len(token)
        found.append((token, start, at))
    return found


def mentions_in(vocabulary: GroupVocabulary, collection: str, doc_id: str, text: str) -> Iterator[Mention]:
    """Every mention by the matching rule of ``askew.measures``, at most ``PER_DOCUMENT`` of each word."""
    places = spans(text)
    tokens = [token for token, _, _ in places]
    seen: Counter[str] = Counter()
    at = 0
    while at < len(tokens):
        mask, used = vocabulary.match(tokens, at)
        term = " ".join(tokens[at : at + used])
        if mask and seen[term] < PER_DOCUMENT:
            seen[term] += 1
            start, end = places[at][1], places[at + used - 1][2]
            for bit, group in enumerate(vocabulary.groups):
                if mask >> bit & 1:
                    yield Mention(group, term, collection, doc_id, start, end, text)
        at += used


def all_mentions(lexicon: str, data: Path, collections: Sequence[str] = COLLECTIONS) -> list[Mention]:
    vocabulary = build_vocabulary(load_lexicon(lexicon), word, "word")
    found: list[Mention] = []
    for collection in collections:
        with (data / collection / "docs.tsv").open(encoding="utf-8") as lines:
            for line in lines:
                doc_id, _, text = line.rstrip("\n").partition("\t")
                found.extend(mentions_in(vocabulary, collection, doc_id, text))
    return found


def equal_parts(available: dict[str, int], count: int) -> dict[str, int]:
    """Divide ``count`` evenly; what one cannot fill goes to the others."""
    parts = dict.fromkeys(available, 0)
    while count > 0 and any(parts[name] < available[name] for name in parts):
        for name in sorted(parts):
            if count > 0 and parts[name] < available[name]:
                parts[name] += 1
                count -= 1
    return parts


def in_proportion(mentions: list[Mention], count: int, chance: random.Random) -> list[Mention]:
    """Every k-th mention of those sorted by word, from a random start: each word has its share."""
    shuffled = chance.sample(mentions, len(mentions))
    ordered = sorted(shuffled, key=lambda mention: mention.word)
    step = len(ordered) / count
    start = chance.random() * step
    return [ordered[int(start + i * step)] for i in range(count)]


def evenly(mentions: list[Mention], count: int, chance: random.Random) -> list[Mention]:
    """As many of each word as possible, the same for all words."""
    by_word: dict[str, list[Mention]] = defaultdict(list)
    for mention in chance.sample(mentions, len(mentions)):
        by_word[mention.word].append(mention)
    parts = equal_parts({term: len(found) for term, found in by_word.items()}, count)
    return [mention for term in sorted(parts) for mention in by_word[term][: parts[term]]]


def sample(mentions: list[Mention], per_group: int, seed: int, by: str) -> list[Mention]:
    chance = random.Random(seed)
    drawn: list[Mention] = []
    for group in dict.fromkeys(mention.group for mention in mentions):
        of_group = [mention for mention in mentions if mention.group == group]
        if by == "word":
            drawn += evenly(of_group, per_group, chance)
            continue
        of_collection: dict[str, list[Mention]] = defaultdict(list)
        for mention in of_group:
            of_collection[mention.collection].append(mention)
        parts = equal_parts({name: len(found) for name, found in of_collection.items()}, per_group)
        for name, count in parts.items():
            if count:
                drawn += in_proportion(of_collection[name], count, chance)
    return drawn


def context(mention: Mention) -> str:
    """At most ``CONTEXT_WORDS`` words around the mention, which stands between ``**``."""
    before, after = mention.text[: mention.start].split(), mention.text[mention.end :].split()
    room = CONTEXT_WORDS - len(mention.word.split())
    left = min(len(before), room // 2)
    right = min(len(after), room - left)
    term = f"**{mention.text[mention.start : mention.end]}**"
    return " ".join([*before[len(before) - left :], term, *after[:right]])


def sheet_row(lexicon: str, mention: Mention) -> dict[str, Any]:
    row: dict[str, Any] = {"lexicon": lexicon, "group": mention.group, "word": mention.word}
    row |= {"collection": mention.collection, "doc_id": mention.doc_id, "start": mention.start}
    row |= {"label": None, "reason": None}
    if mention.collection in WITH_CONTEXT:
        row["context"] = context(mention)
    return row


def read_sheet(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def draw(arguments: argparse.Namespace) -> None:
    known = {(row["collection"], row["doc_id"], row["start"]) for path in arguments.not_in for row in read_sheet(path)}
    found = all_mentions(arguments.lexicon, arguments.data, arguments.collections)
    fresh = [mention for mention in found if mention.key not in known]
    if arguments.group:
        fresh = [mention for mention in fresh if mention.group in arguments.group]
    drawn = sample(fresh, arguments.per_group, arguments.seed, arguments.by)
    name = load_lexicon(arguments.lexicon).name
    lines = [json.dumps(sheet_row(name, mention), ensure_ascii=False) for mention in drawn]
    arguments.out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for group, count in Counter(mention.group for mention in found).items():
        print(f"{group}: {count} mentions, {sum(mention.group == group for mention in drawn)} drawn")


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95% interval of Wilson (1927) for a share."""
    share = right / count
    middle = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z * ((share * (1 - share) + Z * Z / (4 * count)) / count) ** 0.5 / (1 + Z * Z / count)
    return max(0.0, middle - half), min(1.0, middle + half)


def precision(rows: Iterable[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Right and read mentions of each group, and of ``all``."""
    counts: dict[str, tuple[int, int]] = {}
    for row in rows:
        for name in (row["group"], "all"):
            right, count = counts.get(name, (0, 0))
            counts[name] = (right + (row["label"] == "yes"), count + 1)
    return counts


def reasons(rows: Iterable[dict[str, Any]], group: str) -> str:
    """Why the wrong mentions of a group (or of ``all``) are wrong, the most frequent reason first."""
    wrong = Counter(row["reason"] for row in rows if row["label"] == "no" and group in ("all", row["group"]))
    return ", ".join(f"{reason} {count}" for reason, count in wrong.most_common()) or "-"


def table(folder: Path = SHEETS) -> str:
    """A Markdown table: precision of each group of each lexicon that has a sheet."""
    lines = [
        "| lexicon | group | mentions read | precision | 95% interval | wrong mentions |",
        "|---|---|---|---|---|---|",
    ]
    for path in reported(folder):
        rows = read_sheet(path)
        counts = precision(rows)
        known = load_lexicon(path.stem).group_names if path.stem in shipped_lexicons() else counts
        for group in (*(group for group in known if group != "all"), "all"):
            right, count = counts[group]
            low, high = wilson(right, count)
            lines.append(
                f"| `{path.stem}` | {group} | {count} | {right / count:.2f} | {low:.2f} to {high:.2f} "
                f"| {reasons(rows, group)} |"
            )
    return "\n".join(lines)


def reported(folder: Path = SHEETS) -> list[Path]:
    """The sheets behind the reported figures: those of the first readings chose the words."""
    return [path for path in sorted(folder.glob("*.jsonl")) if not path.stem.endswith(".first")]


def worst_words(sheet: Path) -> str:
    """The words with wrong mentions in a sheet, the most wrong ones first."""
    read: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for row in read_sheet(sheet):
        read[row["word"]] += 1
        wrong[row["word"]] += row["label"] == "no"
    return "\n".join(f"{term}: {count} of {read[term]} wrong" for term, count in wrong.most_common() if count)


def main() -> None:
    parser = argparse.ArgumentParser(description="precision of the shipped lexicons")
    parser.add_argument("--sheets", type=Path, default=SHEETS)
    commands = parser.add_subparsers(dest="command")
    drawing = commands.add_parser("draw", help="draw mentions to read")
    drawing.add_argument("lexicon")
    drawing.add_argument("--data", type=Path, required=True)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--per-group", type=int, default=80)
    drawing.add_argument("--by", choices=("share", "word"), default="share")
    drawing.add_argument("--collections", nargs="*", default=COLLECTIONS)
    drawing.add_argument("--group", nargs="*", default=[], help="these groups only")
    drawing.add_argument("--not-in", type=Path, nargs="*", default=[])
    words = commands.add_parser("words", help="the words with wrong mentions")
    words.add_argument("lexicon")
    arguments = parser.parse_args()
    if arguments.command == "draw":
        draw(arguments)
    elif arguments.command == "words":
        print(worst_words(arguments.sheets / f"{arguments.lexicon}.jsonl"))
    else:
        print(table(arguments.sheets))


if __name__ == "__main__":
    main()
