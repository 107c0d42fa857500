"""Expansion by word vectors: each query word is expanded with the words whose vectors are nearest to its own.

With a suitable file of vectors (see ``askew.rewrite.embedding``) this covers four methods of ReQue: word2vec
and glove (``similarity`` "euclidean"; ReQue counts the word itself among its 3 nearest, so its 3 is ``topn=2`` here),
anchor (vectors trained on anchor texts), and the nearest-entities part of wiki (vectors of categories and entities).

These are not used as neighbors: words with the same stem (``rough_stem``) as the query word or as a nearer neighbor,
stop words, and strings that are not words. A word begins with a letter and consists of letters, digits, hyphens and
apostrophes; ``_`` joins several words and is written as a blank. A neighbor is also left out if its stems are already
in the query or were added for an earlier word. Stop words and words without a letter are not expanded. Neighbors are
written in lower case.
"""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.core.errors import ConfigError, DataError, place
from askew.core.files import check_file, digest_file
from askew.core.plugins import Between, Count, OneOf
from askew.core.protocols import Candidates, QueryBatch
from askew.core.ranking import Ints
from askew.core.text import is_word_character
from askew.core.text import word as words_of
from askew.data.files import read_text, text_blocks
from askew.rewrite.feedback import NOTHING
from askew.rewrite.lexical import one_line

# Word vectors from files, checked and returned as words and a matrix.

Floats = npt.NDArray[np.float32]
_NUMPY_MAGIC = b"\x93NUMPY"
_GZIP_MAGIC = b"\x1f\x8b"
_HEADER = re.compile(rb"(\d+) (\d+) ?\r?\n")
_VECTORFILES_BLOCK = 1 << 23
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# Wider than any file in use. A larger number in a header means a damaged file, and could exhaust the memory.
_WIDEST = 1 << 16
_IN_NUMBERS = frozenset(b"0123456789+-.eE naifNAIF")


def read_vectors(path: Path, vocabulary: Path | None = None) -> tuple[list[str], Floats]:
    """Read the words of a file and their vectors, unchanged."""
    head = _head(path)
    words_path = vocabulary_of(path, vocabulary)
    if words_path is not None:
        text = read_text(words_path, "vocabulary").removesuffix("\n")
        words = text.split("\n") if text else []
        for number, word in enumerate(words, start=1):
            if not word.strip():
                raise DataError(f"{place(words_path, number)}: expected one word in each line, found a blank line")
        _refuse_repeats(words, lambda i: place(words_path, i + 1))
        return words, _read_matrix(path, len(words))
    header = _HEADER.match(head)
    if header is None:
        return _read_lines(path, None, None)
    count, width = int(header[1]), int(header[2])
    if not 0 < width <= _WIDEST:
        raise DataError(f"{place(path, 1)}: expected a vector length from 1 to {_WIDEST} in this line, found {width}")
    # The first vector is binary unless it is a text line of ``width`` numbers of two characters or more each.
    first = head[header.end() :]
    rest = first[first.find(b" ") + 1 :]
    line = rest.partition(b"\n")[0].rstrip(b"\r")
    if len(line) < min(2 * width - 1, len(rest)) or not frozenset(line) <= _IN_NUMBERS:
        return _read_binary(path, header.end(), count, width)
    return _read_lines(path, count, width)


def vocabulary_of(path: Path, vocabulary: Path | None = None) -> Path | None:
    """Return the file with the words of a matrix: the given one, or vocab.txt in its folder; None for other formats."""
    if _head(path).startswith(_NUMPY_MAGIC):
        return vocabulary or path.parent / "vocab.txt"
    if vocabulary is not None:
        raise ConfigError(
            f"vectors {path}: ⟨vocabulary⟩ is only for vectors in an .npy file; leave out vocabulary={vocabulary}",
            code="no-matrix",
        )
    return None


def _head(path: Path) -> bytes:
    with check_file(path, "vectors").open("rb") as file:
        head = file.read(1 << 12)
    if not head:
        raise DataError(f"vectors {path}: expected word vectors, found an empty file")
    if head.startswith(_GZIP_MAGIC):
        raise DataError(f"vectors {path}: expected word vectors, found a gzip file; unpack it first")
    return head


def _read_lines(path: Path, count: int | None, width: int | None) -> tuple[list[str], Floats]:
    words: list[str] = []
    parts: list[Floats] = []
    skipped = 0 if count is None else 1
    for first, text in text_blocks(path, "vectors", _VECTORFILES_BLOCK):
        lines = text.removesuffix("\n").split("\n")[skipped if first == 1 else 0 :]
        if not lines:
            continue
        if width is None:
            width = max(1, lines[0].rstrip(" ").count(" "))
        new_words, numbers = _parse(path, max(first, 1 + skipped), lines, width)
        words += new_words
        parts.append(numbers)
    if not words or width is None:
        raise DataError(f"vectors {path}: expected word vectors, found no line with a vector")
    if count is not None and len(words) != count:
        raise DataError(
            f"vectors {path}: the first line announces {count} words, found {len(words)}; the file is cut short, or "
            "its first line is wrong"
        )
    _refuse_repeats(words, lambda i: place(path, i + 1 + skipped))
    return words, np.concatenate(parts)


def _parse(path: Path, first: int, lines: list[str], width: int) -> tuple[list[str], Floats]:
    rows = [line.rstrip(" ").rsplit(" ", width) for line in lines]
    for number, (row, line) in enumerate(zip(rows, lines, strict=True), start=first):
        has_more = " " in row[0] and _NUMBER.fullmatch(row[0].rpartition(" ")[2])
        if len(row) != width + 1 or not row[0].strip() or has_more:
            size = len(line.split())
            raise DataError(f"{place(path, number)}: expected a word and {width} numbers, found {size} fields")
    texts = pl.Series([text for _, *texts in rows for text in texts], dtype=pl.String)
    numbers = texts.cast(pl.Float32, strict=False).fill_null(math.nan).to_numpy().reshape(-1, width)
    if len(odd := np.argwhere(~np.isfinite(numbers))):
        row_number, column = map(int, odd[0])
        word, *fields = rows[row_number]
        where = place(path, first + row_number)
        raise DataError(f"{where}: expected finite numbers after the word {word!r}, found {fields[column]!r}")
    return [word for word, *_ in rows], numbers


def _read_binary(path: Path, start: int, count: int, width: int) -> tuple[list[str], Floats]:
    size = path.stat().st_size
    # The shortest record is one letter, a blank and the numbers, so a count that needs more bytes is wrong.
    if count * (4 * width + 2) > size - start:
        raise DataError(
            f"vectors {path}: the first line announces {count} words of width {width}, but the file is shorter"
        )
    words, vectors = [], np.empty((count, width), "<f4")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = start
        for i in range(count):
            blank = data.find(b" ", at)
            if blank < 0 or blank + 1 + 4 * width > size:
                raise DataError(f"vectors {path}: the file is cut short in word {i + 1} of {count}, at byte {at}")
            try:
                # Some programs end each record with a line feed, which then precedes the next word.
                words.append(data[at:blank].lstrip(b"\n").decode("utf-8"))
            except UnicodeDecodeError:
                shown = data[at:blank][:20]
                raise DataError(f"vectors {path}: expected UTF-8 text, found {shown!r} as word {i + 1}") from None
            if not words[-1]:
                raise DataError(f"vectors {path}: expected a word, but word {i + 1} is empty")
            at = blank + 1 + 4 * width
            vectors[i] = np.frombuffer(data[blank + 1 : at], "<f4")
        if data[at : at + 64].strip():
            raise DataError(f"vectors {path}: the first line announces {count} words, but more follow at byte {at}")
    _refuse_repeats(words, lambda i: f"vectors {path}: word {i + 1}")
    _refuse_odd(vectors, lambda i: f"vectors {path}: word {i + 1} ({words[i]!r})")
    return words, vectors.astype(np.float32, copy=False)


def _read_matrix(path: Path, words: int) -> Floats:
    try:
        matrix: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        # The header of the file is parsed as Python: a damaged header can raise almost any exception.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"vectors {path}: not a complete .npy file ({reason})", code="damaged-matrix") from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise DataError(
            f"vectors {path}: expected a matrix of floats, found {matrix.dtype} of shape {matrix.shape}",
            code="no-floats",
        )
    if len(matrix) != words:
        raise DataError(
            f"vectors {path}: expected {words} rows, one for each word of the vocabulary, found {len(matrix)}"
        )
    vectors = np.ascontiguousarray(matrix, np.float32)
    _refuse_odd(vectors, lambda i: f"vectors {path}: row {i + 1}")
    return vectors


def _refuse_repeats(words: list[str], where: Callable[[int], str]) -> None:
    if len(set(words)) < len(words):
        first = {word: i for i, word in reversed(list(enumerate(words)))}
        again = next(i for i, word in enumerate(words) if first[word] < i)
        raise DataError(f"{where(again)}: the word {words[again]!r} occurs twice; expected each word once")


def _refuse_odd(vectors: Floats, where: Callable[[int], str]) -> None:
    odd = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(odd):
        raise DataError(f"{where(int(odd[0]))}: expected finite numbers, found NaN or infinity")


# Word vectors, and the nearest words of a word by cosine or by Euclidean distance.

SIMILARITIES = ("cosine", "euclidean")
# The number of similarities in memory at a time: 128 MB.
_AT_A_TIME = 1 << 25
# The last digits of a matrix product depend on the shapes, so a few more words than requested are scored again.
_SPARE = 8


class WordVectors:
    """Words with their vectors: ``units`` are the vectors scaled to length one, ``lengths`` their original lengths."""

    def __init__(self, words: Sequence[str], vectors: Floats) -> None:
        self.words = list(words)
        self.lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors)).astype(np.float32)
        # A vector of zeros has no direction; it is not scaled, and its cosine with every other vector is 0.
        scales = np.where(self.lengths > 0, self.lengths, 1).astype(np.float32)
        self.units: Floats = vectors / scales[:, None]
        self._places = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def nearest(self, words: Sequence[str], count: int, similarity: str = "cosine") -> list[list[tuple[str, float]]]:
        """Return the nearest words of each word with their similarity, nearest first, without the word itself.

        Similarity is the cosine, or 1 / (1 + distance). Ties are in the order of the file. A word without a vector has
        no neighbors. The neighbors of a word do not depend on the other words of the call.
        """
        places = np.array([self._places.get(word, -1) for word in words], np.int64)
        neighbors: list[list[tuple[str, float]]] = [[] for _ in words]
        with_vector = np.flatnonzero(places >= 0)
        candidates = min(count + _SPARE, len(self))
        step = max(1, _AT_A_TIME // max(1, len(self)))
        for start in range(0, len(with_vector), step):
            rows = with_vector[start : start + step]
            near = self.units[places[rows]] @ self.units.T
            if similarity == "euclidean":
                # In |a - b|^2 = |a|^2 + |b|^2 - 2ab the first term is the same for all b.
                near *= 2 * self.lengths[places[rows]][:, None] * self.lengths
                near -= self.lengths**2
            near[np.arange(len(rows)), places[rows]] = -np.inf
            short_lists = np.argpartition(near, -candidates, axis=1)[:, -candidates:]
            for row, short_list in zip(rows.tolist(), short_lists, strict=True):
                neighbors[row] = self._weigh(int(places[row]), short_list, count, similarity)
        return neighbors

    def _weigh(self, place: int, near: Ints, count: int, similarity: str) -> list[tuple[str, float]]:
        near = np.sort(near[near != place])
        own, others = self.units[place].astype(np.float64), self.units[near].astype(np.float64)
        if similarity == "euclidean":
            gaps = others * self.lengths[near][:, None] - own * self.lengths[place]
            values = 1 / (1 + np.sqrt((gaps * gaps).sum(axis=1)))
        else:
            values = (others * own).sum(axis=1)
        order = np.lexsort((near, -values))[:count]
        return [(self.words[near[i]], float(values[i])) for i in order.tolist()]


@lru_cache(maxsize=2)
def load_vectors(path: Path, vocabulary: Path | None, digests: str) -> WordVectors:
    """Load the vectors of a file; the last two are kept as long as the content of the files is the same."""
    return WordVectors(*read_vectors(path, vocabulary))


def files_of(path: Path, vocabulary: Path | None = None) -> list[Path]:
    """Return the files of the vectors: one file, or a matrix and its words."""
    words = vocabulary_of(path, vocabulary)
    if words is not None:
        check_file(words, "vocabulary")
    return [path] if words is None else [path, words]


# Articles, pronouns, auxiliaries, question words, prepositions and conjunctions: words without useful synonyms.
_STOP_WORDS_LINES = """
a an the this that these those some any no each every all both such own same other another
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves one who whom whose which what when where why how
am is are was were be been being do does did done doing have has had having can could may might must shall should will
would not nor only just also too very so than then there here now again once more most much many few
about above across after against along among around at before behind below beneath beside besides between beyond but by
despite down during except for from if in inside into like near of off on onto or out outside over per since through
throughout till to toward towards under until up upon via with within without and as because while though although
whether yet s t d ll re ve m don
"""
STOP_WORDS = frozenset(_STOP_WORDS_LINES.split())
_JOINS = "-'’ "
# The first lookup reads this many neighbors more than topn: most of the nearest are forms of the word itself.
_AHEAD = 16


class Embedding:
    """Expands each query word with the words whose vectors are nearest, or replaces it by them.

    A query gets one candidate with the neighbors of all its words. ``replace`` puts the neighbors in the place of the
    word; a word without neighbors stays. ``vocabulary`` is the file
    with the words of an .npy matrix; the default is vocab.txt in the folder of the matrix.
    """

    method = "embedding"
    reads: frozenset[str] = frozenset()

    def __init__(
        self, vectors: str, vocabulary: str | None = None, topn: Count = 3, replace: bool = False,
        similarity: Annotated[str, OneOf(SIMILARITIES)] = "cosine", minimum: Annotated[float, Between(-1, 1)] = 0.0,
    ) -> None:  # fmt: skip
        self._path, self._words_path = Path(vectors), None if vocabulary is None else Path(vocabulary)
        files_of(self._path, self._words_path)
        self._topn, self._replace = topn, replace
        self._similarity, self._minimum = similarity, minimum
        # Only words that have a vector are cached, so the cache is never larger than the vocabulary.
        self._known: dict[str, list[str]] = {}

    def settings(self) -> Mapping[str, Any]:
        """Return everything besides the queries that determines the candidates, with files identified by content."""
        return {
            "vectors": self._digests, "topn": self._topn, "replace": self._replace, "similarity": self._similarity,
            "minimum": self._minimum,
        }  # fmt: skip

    @cached_property
    def _digests(self) -> str:
        return "+".join(digest_file(file)[:16] for file in files_of(self._path, self._words_path))

    @cached_property
    def _vectors(self) -> WordVectors:
        return load_vectors(self._path, self._words_path, self._digests)

    def reformulate(self, batch: QueryBatch) -> Candidates:
        """The query with the neighbors of its words."""
        queries = [_Query(text) for text in batch.texts]
        self._look_up(sorted({word for query in queries for word in query.expandable} - set(self._known)))
        candidates = Candidates()
        for row, query in enumerate(queries):
            if chosen := query.new_neighbors(self._known):
                candidates.add(row, query.written(chosen, self._replace))
            else:
                candidates.reject(NOTHING)
        return candidates

    def _look_up(self, words: Sequence[str]) -> None:
        """Find the neighbors of all words at once; look further for words with too few usable neighbors."""
        # The spelling of the vectors: lower case, else capitalized, else upper case.
        forms = ((word, form) for word in words for form in (word.upper(), word.capitalize(), word))
        spelled = {word: form for word, form in forms if form in self._vectors}
        waiting, count = list(spelled), self._topn + _AHEAD
        while waiting:
            lists = self._vectors.nearest([spelled[word] for word in waiting], count, self._similarity)
            further = []
            for word, near in zip(waiting, lists, strict=True):
                names = (_plain(name) for name, value in near if value >= self._minimum)
                usable = _with_new_stems((name for name in names if name is not None), {rough_stem(word)})
                self._known[word] = usable[: self._topn]
                exhausted = len(near) < count or near[-1][1] < self._minimum
                if len(self._known[word]) < self._topn and not exhausted:
                    further.append(word)
            waiting, count = further, count * 4


class _Query:
    """A query split at blanks, and the words of it that may be expanded."""

    def __init__(self, text: str) -> None:
        self.text = one_line(text)
        self._pieces = [(piece, words_of(piece)) for piece in self.text.split(" ")]
        words = dict.fromkeys(word for _, piece_words in self._pieces for word in piece_words)
        self._stems = {rough_stem(word) for word in words}
        self.expandable = [word for word in words if word not in STOP_WORDS and any(map(str.isalpha, word))]

    def new_neighbors(self, neighbors_of: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """Return the neighbors of each word that add a stem to those of the query and of earlier words."""
        have = set(self._stems)
        neighbors = {word: _with_new_stems(neighbors_of.get(word, ()), have) for word in self.expandable}
        return {word: near for word, near in neighbors.items() if near}

    def written(self, chosen: Mapping[str, Sequence[str]], replace: bool) -> str:
        """Return the query with neighbors of its words, after it or in the place of the words."""
        if not replace:
            return " ".join([self.text, *(other for near in chosen.values() for other in near)])
        written: list[str] = []
        for piece, words in self._pieces:
            if any(word in chosen for word in words):
                written += [other for word in words for other in chosen.get(word, [word])]
            else:
                written.append(piece)
        return " ".join(written)


def rough_stem(word: str) -> str:
    """Remove the most common English endings; for inflected words the result is close to Porter's stem.

    Harman's s-stemmer (1991) removes plurals. Then -ing or -ed is removed if three letters with a vowel remain: a
    doubled consonant becomes single, and a short stem gets its -e back (making, make). Then -ion is removed if five
    letters remain, and -e if four remain.
    """
    stem = word
    if len(word) > 3:
        if word.endswith("ies") and not word.endswith(("aies", "eies")):
            stem = word[:-3] + "y"
        elif (word.endswith("es") and not word.endswith(("aes", "ees", "oes"))) or (
            word.endswith("s") and not word.endswith(("us", "ss"))
        ):
            stem = word[:-1]
    for ending in ("ing", "ed"):
        rest = stem.removesuffix(ending)
        if rest != stem and len(rest) >= 3 and any(letter in "aeiouy" for letter in rest):
            stem = _mended(rest)
            break
    if stem.endswith("ion") and len(stem) >= 8:
        stem = stem[:-3]
    return stem[:-1] if stem.endswith("e") and len(stem) >= 5 else stem


def _mended(rest: str) -> str:
    if rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    short = len(rest) == 3 and [letter in "aeiou" for letter in rest] == [False, True, False] and rest[-1] not in "wxy"
    return rest + "e" if short else rest


def _with_new_stems(names: Iterable[str], have: set[str]) -> list[str]:
    """The names that add a stem to those in ``have``, which grows."""
    new = []
    for name in names:
        stems = {rough_stem(word) for word in words_of(name)}
        if stems - have:
            new.append(name)
            have |= stems
    return new


def _plain(name: str) -> str | None:
    """Return a word of the vectors as it is written in a query; None if it is not a word or only stop words."""
    text = one_line(name.replace("_", " ")).lower()
    if not text or not text[0].isalpha() or not all(is_word_character(c) or c in _JOINS for c in text):
        return None
    return None if set(words_of(text)) <= STOP_WORDS else text
