"""negatives: make training examples from a run, judgements and documents. This is ``askew negatives`` as a function."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, check_name, one_of
from askew.core.folders import refuse_no_parent
from askew.core.ranking import Floats, Ints
from askew.data.memory import queries_in_memory
from askew.data.queries import read_queries
from askew.measures.counts import Progress, gather_texts
from askew.measures.lists import QrelsLike, RunLike
from askew.search.annotated import AnnotatedRun, Counting, document_lean, read_ranked, refuse_unknown
from askew.train.crossencoder import Examples

if TYPE_CHECKING:
    from askew.core.ranking import Flags, Rankings
    from askew.search.annotated import JudgedPairs


@dataclass(frozen=True)
class Example:
    """A query with its relevant documents and its negatives, as (id, text); ``lean`` has the lean of each negative."""

    query_id: str
    query: str
    positives: list[tuple[str, str]]
    negatives: list[tuple[str, str]]
    lean: list[float]


def _pairs(one: Example) -> Iterator[dict[str, Any]]:
    for label, passages in ((1, one.positives), (0, one.negatives)):
        for _, text in passages:
            yield {"query": one.query, "passage": text, "label": label}


def _triples(one: Example) -> Iterator[dict[str, Any]]:
    for number, (_, negative) in enumerate(one.negatives):
        positive = one.positives[number % len(one.positives)][1]
        yield {"query": one.query, "positive": positive, "negative": negative}


def _tevatron(one: Example) -> Iterator[dict[str, Any]]:
    sides = {
        name: [{"docid": doc, "title": "", "text": text} for doc, text in passages]
        for name, passages in (("positive_passages", one.positives), ("negative_passages", one.negatives))
    }
    yield {"query_id": one.query_id, "query": one.query, **sides}


def _flagembedding(one: Example) -> Iterator[dict[str, Any]]:
    pos, neg = ([text for _, text in passages] for passages in (one.positives, one.negatives))
    yield {"query": one.query, "pos": pos, "neg": neg}


# The layouts of training examples in other programs.
LAYOUTS: dict[str, Callable[[Example], Iterator[dict[str, Any]]]] = {
    "st-pairs": _pairs, "st-triples": _triples, "tevatron": _tevatron, "flagembedding": _flagembedding
}  # fmt: skip


def write_examples(examples: Iterable[Example], out: Path, layout: str) -> int:
    """Write examples as JSON Lines and return their number. No file is written if there are none or an error occurs."""
    check_name("layout", layout, LAYOUTS)
    unfinished = out.with_name(f".{out.name}.writing")
    written = 0
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            for one in examples:
                written += 1
                for line in LAYOUTS[layout](one):
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
        if written:
            unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    return written


EXCLUDE = ("judged", "relevant")
FEW, NONE, FEW_LEANING = "fewer documents than requested negatives", "no document left", "fewer leaning documents"
NO_RELEVANT, NO_NEGATIVES = "no relevant document", "no negatives"
# The number of list entries processed together: it bounds the memory, and the work stays vectorized.
_PLACES = 1 << 21
_STRIDE, _MIX = np.uint64(0x9E3779B97F4A7C15), (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class NegativeSampling:
    """The number of negatives of a query, the share of negatives with the highest lean, and the depth of the list."""

    count: int = 20
    share: float = 0.6
    depth: int = 1000
    exclude: str = "judged"
    seed: int = 7

    def __post_init__(self) -> None:
        if self.count < 1 or self.depth < 1 or self.seed < 0 or not 0 <= self.share <= 1:
            raise ConfigError(
                "negatives: expected count and depth of 1 or more, 0 <= share <= 1 and a seed of 0 or more; "
                f"found {self}"
            )
        one_of(self.exclude, EXCLUDE, "negatives, ⟨exclude⟩")

    @property
    def leaning(self) -> int:
        """The wanted number of negatives that lean."""
        return int(np.floor(self.count * self.share + 0.5))


# Published: 12 of 20 negatives by lean, from the top 1,000. The baseline ranker of the paper takes all 20 at random.
PRESETS = {"bigdeli2022": NegativeSampling(), "original": NegativeSampling(share=0.0)}


@dataclass(frozen=True)
class Negatives:
    """Negatives by query, those with lean first. ``short`` counts the queries with too few negatives, by reason."""

    row: Ints
    doc: Ints
    leaning: Flags
    short: Counter[str] = field(default_factory=Counter)


def sample_negatives(lists: Rankings, lean: Floats, judged: JudgedPairs, how: NegativeSampling) -> Negatives:
    """The negatives of every query of a run. ``lean`` has a non-negative number for each document."""
    excluded = judged.relevant if how.exclude == "relevant" else np.ones(len(judged.row), np.bool_)
    taken = np.unique(judged.row[excluded] * len(lean) + judged.doc[excluded])
    step = max(1, _PLACES // how.depth)
    parts = [
        _some(lists, start, min(start + step, len(lists.query_ids)), lean, taken, how)
        for start in range(0, len(lists.query_ids), step)
    ]
    row, doc, leaning = (np.concatenate([part[i] for part in parts]) if parts else np.zeros(0) for i in range(3))
    short: Counter[str] = sum((part[3] for part in parts), Counter())
    return Negatives(row.astype(np.int64), doc.astype(np.int64), leaning.astype(np.bool_), short)


def _some(lists: Rankings, start: int, stop: int, lean: Floats, taken: Ints, how: NegativeSampling) -> tuple[Any, ...]:
    """The negatives of the queries from ``start`` to ``stop``."""
    # The documents of the queries as rows of a matrix, and a mask of the filled cells.
    begin = lists.offsets[start:stop]
    lengths = np.minimum(lists.offsets[start + 1 : stop + 1] - begin, how.depth)
    places = np.arange(max(1, int(lengths.max(initial=0))))
    there = places < lengths[:, None]
    docs = np.zeros(there.shape, np.int64)
    docs[there] = lists.docs[(begin[:, None] + places)[there]]
    rows = np.arange(start, stop)[:, None]
    free = there & ~np.isin(rows * len(lean) + docs, taken)
    lean_of = np.where(free, lean[docs], 0.0)
    chosen_leaning = _first(-lean_of, lean_of > 0, how.leaning)
    left = free & ~chosen_leaning
    wanted = how.count - chosen_leaning.sum(axis=1)
    chosen_random = _first(_draws(lists.query_ids[start:stop].to_pylist(), docs.shape[1], how.seed), left, wanted)
    at_lean, at_random = np.nonzero(chosen_leaning), np.nonzero(chosen_random)
    row = np.concatenate([at_lean[0], at_random[0]])
    order = np.argsort(row, kind="stable")
    doc = np.concatenate([docs[at_lean], docs[at_random]])[order]
    leaning = (np.arange(len(row)) < len(at_lean[0]))[order]
    found, of_lean = chosen_leaning.sum(axis=1) + chosen_random.sum(axis=1), chosen_leaning.sum(axis=1)
    counts = {
        NONE: int((found == 0).sum()),
        FEW: int(((found > 0) & (found < how.count)).sum()),
        FEW_LEANING: int(((of_lean < how.leaning) & (found > 0)).sum()),
    }
    return row[order] + start, doc, leaning, +Counter(counts)


def _first(keys: Any, eligible: Flags, count: Any) -> Flags:
    """In each row, the ``count`` eligible cells with the smallest keys; of equal keys, the first cells."""
    order = np.lexsort((keys, ~eligible), axis=-1)
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    return eligible & (ranks < np.broadcast_to(np.asarray(count), len(keys))[:, None])


def _draws(query_ids: Sequence[str], width: int, seed: int) -> npt.NDArray[np.uint64]:
    """A random number for each rank of each query: SplitMix64 with a start value from the query id and the seed."""
    starts = [hashlib.sha256(f"{seed}\0{one}".encode("utf-8", "surrogatepass")).digest()[:8] for one in query_ids]
    begin = np.frombuffer(b"".join(starts), "<u8").astype(np.uint64)
    with np.errstate(over="ignore"):
        value = begin[:, None] + np.arange(1, width + 1, dtype=np.uint64) * _STRIDE
        value = (value ^ (value >> np.uint64(30))) * _MIX[0]
        value = (value ^ (value >> np.uint64(27))) * _MIX[1]
    return np.asarray(value ^ (value >> np.uint64(31)), np.uint64)


def groups_of(
    relevant: tuple[Ints, Ints], negatives: tuple[Ints, Ints], queries: int, each: int = 4, seed: int = 7
) -> Examples:
    """Groups of one relevant document and up to ``each`` negatives; every negative of a query is used once.

    ``relevant`` and ``negatives`` are given as (row of the query, document). If a query has several relevant documents,
    its groups use them in turn.
    """
    row, doc = negatives
    # Leaning and random negatives are shuffled, so that a group can have both.
    order = np.lexsort((np.random.default_rng(seed).permutation(len(row)), row))
    row, doc = row[order], doc[order]
    many = np.bincount(row, minlength=queries)
    by_row = np.argsort(relevant[0], kind="stable")
    positives = np.bincount(relevant[0], minlength=queries)
    within = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    used = positives[row] > 0
    row, doc, within = row[used], doc[used], within[used]
    chunk = within // each
    chunks = np.where(positives > 0, -(-many // each), 0)
    number = (np.cumsum(chunks) - chunks)[row] + chunk
    right = np.full((int(chunks.sum()), 1 + each), -1, np.int64)
    right[number, 1 + within % each] = doc
    left = np.repeat(np.arange(queries), chunks)
    turn = np.arange(len(left)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    first = np.cumsum(positives) - positives
    right[:, 0] = relevant[1][by_row][first[left] + turn % np.maximum(positives[left], 1)]
    labels = np.zeros(right.shape)
    labels[:, 0] = 1.0
    left_out = {NO_RELEVANT: int((positives == 0).sum()), NO_NEGATIVES: int(((many == 0) & (positives > 0)).sum())}
    return Examples(left, right, labels, {reason: count for reason, count in left_out.items() if count})


NO_JUDGEMENT, NO_TEXT = "no relevant document judged", "no text of the query"


@dataclass(frozen=True)
class RankerData:
    """The training data of a ranker: a run, its documents, the texts of its queries, and judgements."""

    run: RunLike
    docs: object
    queries: object
    qrels: QrelsLike

    def texts(self) -> dict[str, str]:
        """The text of each query by id, from a file or from data in memory."""
        given = self.queries
        table = read_queries(Path(given)) if isinstance(given, str | Path) else queries_in_memory(given)
        return dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))


@dataclass(frozen=True)
class NegativesJob:
    """How negatives are sampled and written: the sampling, the lean of documents, and the layout of the file."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {name: {"sampling": one} for name, one in PRESETS.items()}
    sampling: NegativeSampling = field(default_factory=NegativeSampling)
    counting: Counting = field(default_factory=Counting)
    layout: str = "st-pairs"


@dataclass(frozen=True)
class Made:
    """The summary of ``negatives``.

    ``lean`` has the mean lean of the negatives and of all documents of the run; ``leaning`` is the number of negatives
    that were sampled by lean.
    """

    queries: int
    negatives: int
    leaning: int
    lean: tuple[float, float]
    dropped: Counter[str]
    short: Counter[str]
    notes: list[str]
    out: Path


def negatives(
    data: RankerData, out: Path, settings: NegativesJob | None = None, progress: Progress | None = None
) -> Made:
    """Sample negatives for the queries of a run and write them as training examples.

    Queries without a text or a relevant document are left out and counted.
    """
    refuse_no_parent(out)
    job = settings or NegativesJob()
    ranked = read_ranked(data.run, data.docs, data.qrels, job.counting, job.sampling.depth, progress)
    lean = document_lean(ranked.mentions, job.counting.lean, job.counting.groups.difference)
    found = sample_negatives(ranked.rankings, lean, ranked.judged, job.sampling)
    texts = data.texts()
    dropped: Counter[str] = Counter()
    written = write_examples(_examples(ranked, found, lean, texts, dropped), out, job.layout)
    if not written:
        why = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "the run is empty"
        raise DataError(
            "negatives: expected at least one query that has a text, a relevant document and negatives, found none "
            f"({why})"
        )
    # Only the negatives of queries with a text and a relevant document are written.
    known = np.array([query in texts for query in ranked.rankings.query_ids.to_pylist()], np.bool_)
    answered = np.zeros(len(known), np.bool_)
    answered[ranked.judged.row[ranked.judged.relevant]] = True
    used = (known & answered)[found.row]
    docs, leaning = found.doc[used], found.leaning[used]
    ours, every = (float(lean[of].mean()) if len(of) else 0.0 for of in (docs, ranked.rankings.docs))
    return Made(written, len(docs), int(leaning.sum()), (ours, every), dropped, found.short, ranked.notes, out)


def _examples(
    ranked: AnnotatedRun, found: Negatives, lean: Floats, texts: dict[str, str], dropped: Counter[str]
) -> Iterator[Example]:
    """The examples of the queries with a text, a relevant document and negatives."""
    relevant = ranked.judged.relevant
    positive_row, positive = ranked.judged.row[relevant], ranked.judged.doc[relevant]
    needed = np.zeros(len(lean), np.bool_)
    needed[positive], needed[found.doc] = True, True
    documents = gather_texts(ranked.source, ranked.universe.doc_ids, needed)
    refuse_unknown("judgements", ranked.universe, documents.is_valid().to_numpy(zero_copy_only=False), needed)
    size = len(ranked.rankings)
    ends = [np.searchsorted(row, np.arange(size + 1)) for row in (positive_row, found.row)]
    names = ranked.universe.doc_ids

    def told(docs: Sequence[int]) -> list[tuple[str, str]]:
        return [(names[doc].as_py(), documents[doc].as_py()) for doc in docs]

    for row, query in enumerate(ranked.rankings.query_ids.to_pylist()):
        first, mine = (slice(end[row], end[row + 1]) for end in ends)
        if query not in texts:
            dropped[NO_TEXT] += 1
        elif first.start == first.stop:
            dropped[NO_JUDGEMENT] += 1
        elif mine.start < mine.stop:
            docs = found.doc[mine].tolist()
            yield Example(query, texts[query], told(positive[first].tolist()), told(docs), lean[docs].tolist())
