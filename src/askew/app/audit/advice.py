"""Recommend what to do next: short rules on the numbers of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from askew.app.audit.measures import NEITHER
from askew.app.scoring.decompose import Decomposition
from askew.core.measure import Direction

if TYPE_CHECKING:
    from askew.app.audit.report import AuditReport

# A part of the lean above this share is most of the lean.
_MOST = 0.5
# A mean over fewer queries than this is too uncertain.
_FEW = 30
_OFF_TOPIC, _ASKED, _ON_TOPIC = "offtopic", "asked", ("warranted", "ontopic")
_PERSON = "real"


def next_steps(report: AuditReport) -> list[str]:
    """Return recommendations for a search team, the most important first."""
    return [*_of_lean(report), *_of_parts(report), *_of_reformulations(report), *_of_order(report), *_of_trust(report)]


def _of_lean(report: AuditReport) -> list[str]:
    said = []
    if report.unanswered:
        said.append(f"{report.unanswered:,} of {report.queries:,} queries find nothing: look at these first.")
    if report.verdict == NEITHER:
        said.append(
            f"The mean of {report.lean.text} does not differ significantly from zero, but the results of some "
            "queries lean. Look at the worst queries."
        )
    elif report.verdict is not None:
        said.append(f"On average, the results lean toward {report.verdict} (measured by {report.lean.text}).")
    return said


def _of_parts(report: AuditReport) -> list[str]:
    if not report.parts or not report.parts[0].parts:
        return []
    found = report.parts[0]
    off, asked, on = (_share(found, "why", names) for names in ((_OFF_TOPIC,), (_ASKED,), _ON_TOPIC))
    low = _share(found, "why", (_OFF_TOPIC,), "low")
    said = []
    if low > _MOST:
        said.append(
            f"{off:.0%} of the counted mentions (weighted by rank) are estimated to be off topic. Read some of these "
            "results: if they are off topic indeed, improve the relevance of the results first. The off-topic mentions "
            f"of both groups together add {_share(found, 'why', (_OFF_TOPIC,), 'net'):+.4f} to the mean of "
            f"{found.measure}, which is {found.value:+.4f}."
        )
    elif asked + on > _MOST:
        said.append(
            f"{asked + on:.0%} of the counted mentions (weighted by rank) are estimated to be on topic or asked for: "
            "no general action is needed; look at the worst queries one by one."
        )
    real = _share(report.parts[0], "who", (_PERSON,))
    if real > _MOST:
        said.append(
            f"{real:.0%} of the counted mentions (weighted by rank) are estimated to refer to real people: such words "
            "are expected for a query about a person. Look at the worst queries that are not about a person."
        )
    return said


def _share(found: Decomposition, kind: str, names: Sequence[str], value: str = "share") -> float:
    """The share of some parts, or another of their values, such as ``net``."""
    return float(sum(getattr(one, value) for one in found.parts if one.kind == kind and one.name in names))


def _of_reformulations(report: AuditReport) -> list[str]:
    if not report.reformulations.tried:
        return []
    found, worst = report.reformulations.suggested, len(report.worst)
    if not found:
        tried, methods = len(report.reformulations.tried), ", ".join(report.reformulations.methods)
        return [
            f"No reformulation is suggested. The audit tried {tried:,} reformulations (made by {methods}) of the "
            f"{worst:,} queries with the largest lean. None of them meets all of these conditions: it leans at "
            f"least {report.settings.reduction:.0%} less than the original query, it keeps at least "
            f"{report.settings.agree:.0%} of the top results of the original query, and, if there are judgements, it "
            "loses no effectiveness."
        ]
    said = (
        f"For {len(found):,} of the {worst:,} queries with the largest lean (measured by {report.lean.text}), a "
        f"reformulation leans at least {report.settings.reduction:.0%} less than the original query and keeps at least "
        f"{report.settings.agree:.0%} of the top results of the original query.{_reduced(report)} Offer the "
        "reformulation to users as a suggestion, after a person has read it."
    )
    judged = [one for one in found if one.outcome is not None]
    if judged:
        said += (
            f" Judgements are known for {len(judged):,} of these queries. By these judgements, the reformulation is at "
            "least as effective as the original query."
        )
    return [said]


def _reduced(report: AuditReport) -> str:
    """Say by how much the suggested reformulations reduce the lean, because a reduction alone may be very small."""
    if report.lean.direction is not Direction.ZERO:
        return ""
    found = report.reformulations.suggested
    share = sum(one.gain or 0.0 for one in found) / sum(abs(one.lean[0]) for one in found)
    of = "this query" if len(found) == 1 else f"these {len(found):,} queries"
    return (
        f" With the suggested reformulation, the total lean of {of} falls by {share:.0%}. This figure is optimistic, "
        f"because the best of up to {report.settings.tries} reformulations of each query was chosen by the same "
        "measure."
    )


def _of_order(report: AuditReport) -> list[str]:
    found = report.reranking
    if found is None or report.lean.direction is not Direction.ZERO or found.reduction is None:
        return []
    if found.reduction <= 0:
        return [f"Another order of the same results ({found.method}) would not reduce the lean."]
    return [
        f"Another order of the same {report.k} results ({found.method}) would reduce the mean distance of "
        f"{report.lean.text} from zero by {found.reduction:.0%}, from {found.before:.4f} to {found.after:.4f}. To "
        "measure the cost in effectiveness, run askew bench."
    ]


def _of_trust(report: AuditReport) -> list[str]:
    said, found = [], report.stability
    if found.decided and found.same < len(found.decided):
        said.append(
            f"The verdict (toward which group the results lean) is the same in {found.same} of {len(found.decided)} "
            "combinations of measure, word list and tokenizer. Do not rely on the sign of one measure alone."
        )
    if found.compared and found.less < found.compared:
        said.append(
            f"The suggested reformulations lean less than the original queries in {found.less} of {found.compared} "
            "combinations of measure, word list, tokenizer and sign (signed or absolute values). Choose the "
            "measure that matters to you before you adopt these reformulations."
        )
    measured = report.mean(report.lean.text).n
    if measured < _FEW:
        few = "1 query is too few to decide" if measured == 1 else f"{measured} queries are too few to decide"
        said.append(f"{few}: audit at least {_FEW} queries.")
    return said
