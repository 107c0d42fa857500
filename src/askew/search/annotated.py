"""Annotated runs: rankings with judgements, and the lean and group of each document."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from askew.core.errors import ConfigError, DataError, one_of
from askew.core.groups import Groups
from askew.core.measure import Measure
from askew.core.protocols import DocMentions
from askew.core.ranking import Flags, Floats, Ints, Rankings
from askew.measures.arab import KINDS, magnitudes
from askew.measures.common import pick_groups
from askew.measures.counts import DocumentSource, Progress, count_needed
from askew.measures.fairr import neutrality
from askew.measures.lists import QrelsLike, RunLike, Universe, as_judgements, as_run, named_runs
from askew.measures.requested import CountKey
from askew.search.mitigation import NO_GROUP, document_groups

LEANS = (*KINDS, "neutrality")
_DEFAULT = "rekabsaz2020"


@dataclass(frozen=True)
class JudgedPairs:
    """Judgements: the row of the query, the document, and whether the document is relevant."""

    row: Ints
    doc: Ints
    relevant: Flags


@dataclass(frozen=True)
class Counting:
    """The groups that are counted in documents, and the measure of a document's lean."""

    lean: str = "tf"
    groups: Groups = field(default_factory=lambda: Groups.load(_DEFAULT))

    def __post_init__(self) -> None:
        one_of(self.lean, LEANS, "lean")
        if NO_GROUP in self.groups.names:
            raise ConfigError(
                f"groups: the name {NO_GROUP!r} is reserved for documents that name no group; rename the group",
                code="reserved-name",
            )

    @property
    def key(self) -> CountKey:
        """The key of the counts: lexicon, tokenizer and overlap rule."""
        return CountKey(self.groups.counted.id, self.groups.tokenizer, self.groups.overlap)

    def facts(self) -> dict[str, object]:
        """The settings that determine the counts and the lean, as JSON values."""
        lexicon, tokens, overlap = self.key[:3]
        compared = self.groups.difference
        return {"lean": self.lean, "lexicon": lexicon, "tokens": tokens, "overlap": overlap, "groups": compared}


def document_lean(mentions: DocMentions, kind: str = "tf", groups: str = "auto") -> Floats:
    """The absolute lean of each document, whichever group it leans toward; 0 is balanced.

    ``tc``, ``tf`` and ``bool`` are the absolute differences of ARaB (counts, ln(1 + count), presence). ``neutrality``
    is 1 minus the neutrality of NFaiRR. ``groups`` are the compared groups in the syntax of measures (``male-female``).
    For more than two groups it is the largest difference between any two of them, for one group its magnitude.
    """
    counts = mentions.counts[:, _compared(mentions, groups)]
    number = counts.shape[1]
    if kind == "neutrality":
        if number < 2:
            raise ConfigError(
                f"lean=neutrality: expected two groups or more, found {', '.join(mentions.groups)}",
                code="too-few-groups",
            )
        return 1.0 - neutrality(counts, np.full(number, 1.0 / number))
    values = magnitudes(kind, counts)
    return np.asarray(values[:, 0] if number == 1 else values.max(axis=1) - values.min(axis=1))


def _compared(mentions: DocMentions, groups: str) -> list[int]:
    """The columns of the compared groups: the given one or two, or all of them with "auto"."""
    all_of = list(range(len(mentions.groups)))
    if groups == "auto" and len(all_of) != 2:
        return all_of
    columns = pick_groups(Measure("lean").with_params({"groups": groups, "lexicon": "given"}), mentions.groups)
    return [column for column in columns if column is not None]


def leaning_groups(mentions: DocMentions, groups: str = "auto") -> Ints:
    """The group number of each document, from 1; 0 for no group (see ``document_groups``)."""
    return document_groups(mentions.counts[:, _compared(mentions, groups)])


def compared_groups(mentions: DocMentions, groups: str = "auto") -> tuple[tuple[str, ...], npt.NDArray[np.int32]]:
    """The compared groups, and the mentions of each group in each document."""
    columns = _compared(mentions, groups)
    return tuple(mentions.groups[column] for column in columns), mentions.counts[:, columns]


@dataclass(frozen=True)
class AnnotatedRun:
    """A run with its judgements, and the mentions of the groups in its documents."""

    universe: Universe
    rankings: Rankings
    judged: JudgedPairs
    mentions: DocMentions
    source: DocumentSource
    notes: list[str]


def read_ranked(
    run: RunLike, docs: object, qrels: QrelsLike | None, counting: Counting, depth: int | None = None,
    progress: Progress | None = None,
) -> AnnotatedRun:  # fmt: skip
    """Read a run, its judgements and its documents. A ranked document without text raises an error."""
    ((name, ranked),) = named_runs([run]).items()
    read = as_run(ranked, name, "auto", False)
    judged = None if qrels is None else as_judgements(qrels)
    frames = [read.lines, *([judged.lines] if judged else [])]
    universe = Universe.of(frames)
    rankings = universe.rankings(read, "score").cut(depth)
    source = DocumentSource(docs)
    needed = np.zeros(len(universe.doc_ids), np.bool_)
    needed[rankings.docs] = True
    lexicon, key = counting.groups.counted, counting.key
    nothing = np.zeros(0, np.int64)
    judgements = JudgedPairs(nothing, nothing, np.zeros(0, np.bool_))
    if judged is not None:
        by_query = universe.judged(judged.lines).of_queries(rankings.query_ids)
        row = np.repeat(np.arange(len(rankings)), np.diff(by_query.offsets))
        judgements = JudgedPairs(row, by_query.docs, by_query.relevance > 0)
    counted = needed.copy()
    counted[judgements.doc[judgements.relevant]] = True
    mentions, notes = count_needed(source, universe.doc_ids, counted, [key], {lexicon.id: lexicon}, progress)
    refuse_unknown(name, universe, mentions[key].known, needed)
    return AnnotatedRun(universe, rankings, judgements, mentions[key], source, [*read.notes, *notes])


def refuse_unknown(name: str, universe: Universe, known: npt.NDArray[np.bool_], needed: npt.NDArray[np.bool_]) -> None:
    """Raise an error if a needed document has no text."""
    missing = np.flatnonzero(needed & ~known)
    if len(missing):
        first = universe.doc_ids[int(missing[0])].as_py()
        raise DataError(
            f"run {name}: {len(missing)} of {int(needed.sum())} ranked documents have no text in the given documents, "
            f"the first is {first!r}; give the documents that the run ranks",
            code="no-text",
            missing=len(missing),
            documents=int(needed.sum()),
        )
