"""Notes on grades that count as relevant, and on queries without results, relevant documents or judgements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from askew.core.measure import Measure
from askew.core.protocols import Judgements
from askew.measures.catalogue import MeasureRequest
from askew.measures.effectiveness import relevance_level


def note_on_grades(asked: Sequence[MeasureRequest], grades: Iterable[int]) -> list[str]:
    """A note on the grades that count as relevant, if there are several above zero and a measure does not name one."""
    positive = sorted({grade for grade in grades if grade > 0})
    by_level: dict[int, list[str]] = {}
    for one in asked:
        level = one.measure.param("rel") if one.judged else None
        if isinstance(level, int) and Measure.parse(one.text).param("rel") is None:
            by_level.setdefault(level, []).append(one.text)
    if len(positive) < 2:
        return []
    return [
        f"{', '.join(texts)}: grades of {level} or more count as relevant, and the judgements have grades up to "
        f"{positive[-1]}; to change this, set rel, as in "
        f"{Measure.parse(texts[0])(rel=next(grade for grade in positive if grade != level)).text}"
        for level, texts in by_level.items()
    ]


def unanswered_note(name: str, asked: Sequence[MeasureRequest], unanswered: Sequence[str], judged: int) -> list[str]:
    """A note on judged queries for which a run has no document."""
    ways = {one.measure.param("unanswered") for one in asked} - {None}
    if not unanswered or not ways:
        return []
    what = f"{name}: no document for {len(unanswered)} of {judged} judged queries, such as {unanswered[0]!r}"
    if "zero" in ways:
        return [
            f"{what}: their effectiveness is 0 and their lean is missing. If they were not searched, leave them out: "
            "name the searched queries with queries=, or set unanswered='absent'"
        ]
    return [f"{what}: left out (unanswered='zero': their effectiveness is 0)"]


def without_relevant(asked: MeasureRequest, judged: Judgements) -> int:
    """The number of judged queries without a relevant document, if the measure needs one; otherwise 0."""
    if not getattr(asked.family, "needs_relevant", False):
        return 0
    return int((judged.judged & (judged.relevant(relevance_level(asked.measure)) == 0)).sum())


def left_out_by_judgements(asked: MeasureRequest, judged: Judgements, answered: int) -> int:
    """The number of queries that a measure leaves out for reasons that other notes report."""
    bare = judged.judged & (judged.relevant(relevance_level(asked.measure)) == 0)
    left = np.zeros(len(bare), np.bool_)
    if asked.measure.param("no_relevant") == "absent" and getattr(asked.family, "needs_relevant", False):
        left |= bare
    if asked.measure.param("unjudged") == "absent":
        left |= ~judged.judged
    if asked.measure.param("unanswered") == "absent":
        left[answered:] = True
    return int(left.sum())


def judgement_notes(name: str, asked: Sequence[MeasureRequest], judged: Judgements, answered: int) -> list[str]:
    """Notes on queries without a relevant document and on queries of the run without a judgement."""
    notes = []
    counted: dict[tuple[int, str], list[str]] = {}
    for one in asked:
        key = without_relevant(one, judged), str(one.measure.param("no_relevant"))
        counted.setdefault(key, []).append(one.text)
    for (count, way), texts in counted.items():
        if count:
            bare = f"{name}: {count} of {int(judged.judged.sum())} judged queries have no relevant document"
            measures = ", ".join(texts)
            notes.append(
                f"{bare}; these queries are left out of {measures} (no_relevant='zero' counts them as 0)"
                if way == "absent"
                else f"{bare}; these queries count as 0 in {measures} (no_relevant='absent' leaves them out)"
            )
    unjudged = int((~judged.judged).sum())
    if unjudged:
        ways = {str(one.measure.param("unjudged")) for one in asked if one.measure.param("unjudged")}
        bare = f"{name}: {unjudged} of {answered} queries of the run have no judgement"
        notes.append(
            f"{bare}; these queries are left out of the measures of effectiveness"
            if ways == {"absent"}
            else f"{bare}; the effectiveness of these queries is 0"
        )
    return notes
