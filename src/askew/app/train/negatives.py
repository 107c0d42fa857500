"""negatives: make training examples from a run, judgements and documents. This is ``askew negatives`` as a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from askew.app.scoring.ranked import AnnotatedRun, Counting, document_lean, read_ranked, refuse_unknown
from askew.app.scoring.texts import Progress, gather_texts
from askew.app.scoring.universe import QrelsLike, RunLike
from askew.core.errors import DataError
from askew.core.ranking import Floats, Ints
from askew.corpora.memory import queries_in_memory
from askew.corpora.queries import read_queries
from askew.publish.files import refuse_no_parent
from askew.trainers.exports import Example, write_examples
from askew.trainers.negatives import PRESETS, Negatives, NegativeSampling, sample_negatives

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
    """The summary of ``make_negatives``.

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


def make_negatives(
    data: RankerData, out: Path, settings: NegativesJob | None = None, progress: Progress | None = None
) -> Made:
    """Sample negatives for the queries of a run and write them as training examples.

    Queries without a text or a relevant document are left out and counted.
    """
    refuse_no_parent(out)
    job = settings or NegativesJob()
    ranked = read_ranked(data.run, data.docs, data.qrels, job.counting, job.sampling.depth, progress)
    lean = document_lean(ranked.mentions, job.counting.lean, job.counting.groups.difference)
    found = sample_negatives(ranked.lists, lean, ranked.judged, job.sampling)
    texts = data.texts()
    dropped: Counter[str] = Counter()
    written = write_examples(_examples(ranked, found, lean, texts, dropped), out, job.layout)
    if not written:
        why = ", ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "the run is empty"
        raise DataError(
            "negatives: expected at least one query that has a text, a relevant document and negatives, found none "
            f"({why})"
        )
    used = np.isin(found.row, _whole(ranked, texts))
    docs, leaning = found.doc[used], found.leaning[used]
    means = tuple(float(lean[of].mean()) if len(of) else 0.0 for of in (docs, ranked.rankings.docs))
    return Made(
        written, len(docs), int(leaning.sum()), (means[0], means[1]), dropped, found.short, ranked.notes, out
    )  # fmt: skip


def _whole(ranked: AnnotatedRun, texts: dict[str, str]) -> Ints:
    """The rows of queries with a text and a relevant document. Only their negatives are written."""
    known = np.array([query in texts for query in ranked.rankings.query_ids.to_pylist()], np.bool_)
    answered = np.zeros(len(known), np.bool_)
    answered[ranked.judged.row[ranked.judged.relevant]] = True
    return np.flatnonzero(known & answered)


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
