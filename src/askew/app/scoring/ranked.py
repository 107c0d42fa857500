"""A run with what is known of its documents: lists, judgements, and how far each document leans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.scoring.texts import DocumentSource, Progress, count_needed
from askew.app.scoring.universe import QrelsLike, RunLike, Universe, as_run, named_runs
from askew.core.errors import ConfigError, DataError
from askew.core.groups import Groups
from askew.core.lexicon import Lexicon, load_lexicon
from askew.core.measure import Measure
from askew.core.ranking import Floats, Ints, Rankings
from askew.corpora.judgements import QrelsFile, read_judgements
from askew.corpora.memory import judgements_in_memory
from askew.measures.arab import KINDS, magnitudes
from askew.measures.common import lean_of, pick_groups
from askew.measures.fairr import neutrality
from askew.plugins.kinds import DocMentions
from askew.trainers.negatives import JudgedPairs, Lists

LEANS = (*KINDS, "neutrality")
NEUTRAL, FIRST, SECOND = 0, 1, 2


def document_lean(mentions: DocMentions, kind: str = "tf", groups: str = "auto") -> Floats:
    """How far each document leans, whichever way: 0 leans nowhere.

    ``tc``, ``tf`` and ``bool`` are the differences of ARaB (counts, ln(1 + count), presence) without their sign;
    ``neutrality`` is 1 minus the neutrality of NFaiRR.
    """
    if kind not in LEANS:
        raise ConfigError(f"lean: expected one of {', '.join(LEANS)}, found {kind!r}")
    first, second = _two(mentions, groups)
    if kind == "neutrality":
        counts = mentions.counts[:, [first, second]]
        return 1.0 - neutrality(counts, np.full(2, 0.5))
    measure = Measure("ARaB").with_params({"groups": groups, "lexicon": "given"})
    return np.abs(lean_of(measure, magnitudes(kind, mentions.counts), mentions.groups))


def leaning_groups(mentions: DocMentions, groups: str = "auto") -> Ints:
    """Which way each document leans by its counts: NEUTRAL, FIRST (male by default) or SECOND (female)."""
    first, second = _two(mentions, groups)
    more = mentions.counts[:, first] - mentions.counts[:, second]
    return np.where(more > 0, FIRST, np.where(more < 0, SECOND, NEUTRAL)).astype(np.int64)


def group_names(mentions: DocMentions, groups: str = "auto") -> tuple[str, str, str]:
    """What the numbers of ``leaning_groups`` stand for."""
    first, second = _two(mentions, groups)
    return ("neutral", mentions.groups[first], mentions.groups[second])


def _two(mentions: DocMentions, groups: str) -> tuple[int, int]:
    first, second = pick_groups(Measure("lean").with_params({"groups": groups, "lexicon": "given"}), mentions.groups)
    if second is None:
        raise ConfigError(f"lean: expected two groups joined by '-', such as male-female, found {groups!r}")
    return first, second


@dataclass(frozen=True)
class Counting:
    """With which lexicon and tokenizer groups are counted, and by which measure a document leans."""

    lean: str = "tf"
    lexicon: str | Lexicon = "rekabsaz2020"
    tokens: str = "word"
    groups: str = "auto"
    overlap: str = "all"

    @classmethod
    def of(cls, groups: Groups | None) -> Counting:
        """Count these groups; the published ones where none are given."""
        if groups is None:
            return cls()
        return cls(lexicon=groups.lexicon, tokens=groups.tokenizer, groups=groups.difference, overlap=groups.overlap)


@dataclass(frozen=True)
class AnnotatedRun:
    """A run with what is known of its documents: the lists, the judgements, and how often each names the groups."""

    universe: Universe
    rankings: Rankings
    judged: JudgedPairs
    mentions: DocMentions
    source: DocumentSource
    notes: list[str]

    @property
    def lists(self) -> Lists:
        """The lists as a sampler reads them."""
        return Lists(self.rankings.query_ids.to_pylist(), self.rankings.offsets, self.rankings.docs)


def read_ranked(
    run: RunLike, docs: object, qrels: QrelsLike | None, counting: Counting, depth: int | None = None,
    progress: Progress | None = None,
) -> AnnotatedRun:  # fmt: skip
    """Read a run, its judgements and its documents; a ranked document without text is an error."""
    ((name, given),) = named_runs([run]).items()
    found = as_run(given, name, "auto", False)
    judged = None if qrels is None else _judgements(qrels)
    frames = [found.lines, *([judged.lines] if judged else [])]
    universe = Universe.of(frames)
    rankings = universe.rankings(found, "score").cut(depth)
    source = DocumentSource(docs)
    needed = np.zeros(len(universe.doc_ids), np.bool_)
    needed[rankings.docs] = True
    lexicon = load_lexicon(counting.lexicon)
    key = (lexicon.id, counting.tokens, counting.overlap)
    every = _by_row(universe, rankings, judged)
    counted = needed.copy()
    counted[every.doc[every.relevant]] = True
    mentions, notes = count_needed(source, universe.doc_ids, counted, [key], {lexicon.id: lexicon}, progress)
    refuse_unknown(name, universe, mentions[key].known, needed)
    return AnnotatedRun(universe, rankings, every, mentions[key], source, [*found.notes, *notes])


def _judgements(qrels: QrelsLike) -> QrelsFile:
    return read_judgements(Path(qrels)) if isinstance(qrels, str | Path) else judgements_in_memory(qrels)


def _by_row(universe: Universe, rankings: Rankings, judged: QrelsFile | None) -> JudgedPairs:
    if judged is None:
        nothing = np.zeros(0, np.int64)
        return JudgedPairs(nothing, nothing, np.zeros(0, np.bool_))
    found = universe.judged(judged.lines, rankings)
    row = np.repeat(np.arange(len(rankings)), np.diff(found.offsets))
    return JudgedPairs(row, found.docs, found.relevance > 0)


def refuse_unknown(name: str, universe: Universe, known: npt.NDArray[np.bool_], needed: npt.NDArray[np.bool_]) -> None:
    """Refuse documents that are needed and have no text."""
    missing = np.flatnonzero(needed & ~known)
    if len(missing):
        first = universe.doc_ids[int(missing[0])].as_py()
        raise DataError(
            f"run {name}: {len(missing)} of {int(needed.sum())} ranked documents have no text in the documents given, "
            f"the first is {first!r}; give the documents that the run ranks"
        )


def gather_texts(source: DocumentSource, doc_ids: pa.Array, needed: npt.NDArray[np.bool_]) -> pa.Array:
    """The texts of some documents by ordinal, streamed; null where a document is not needed or not there."""
    wanted = doc_ids.take(pa.array(np.flatnonzero(needed)))
    ids, texts = [], []
    for batch in source.batches():
        rows = batch.filter(pc.is_in(batch["doc_id"], value_set=wanted))
        ids += rows["doc_id"].chunks
        texts += rows["text"].cast(pa.large_string()).chunks
    if not ids:
        return pa.nulls(len(doc_ids), pa.large_string())
    known = pa.concat_arrays([one.cast(pa.string()) for one in ids])
    return pa.concat_arrays(texts).take(pc.index_in(doc_ids, value_set=known))
