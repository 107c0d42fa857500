"""The tables and sentences of an audit, for report.html and for the explorer."""

from __future__ import annotations

from collections.abc import Mapping

from askew.app.audit.facts import AuditedMean, AuditFacts, PartsFacts, TriedFacts
from askew.core.pages import pages
from askew.publish.page import numerals as n
from askew.publish.page.counted import part_name
from askew.publish.page.document import code, facts, paragraph
from askew.publish.page.markup import Markup, shown
from askew.publish.page.table import CODE, NAME, QUOTE, WORDS, Column, Group, Table, columns, table
from askew.statistics.significance import Paired

LEAD = (
    "How much the results of a search engine lean (the measured bias), where the lean comes from, and what reduces it."
)
GAIN = (
    "Gain: how much better this audit is than the baseline, as a mean over the queries that are in both audits. A "
    "negative gain is worse. For a measure whose best value is 0, the gain is the mean decrease of the distance of "
    "each query from 0. It is not the difference of the two means, in which positive and negative values cancel out."
)
DETECTABLE = (
    "Detectable gain: a true mean change of this size, for better or for worse, is significant at the 5% level with a "
    "probability of 80%. A smaller change is likely to be missed."
)
LIMITS = (
    "Models estimate why each counted word is in the results, and whom or what the word refers to. Models also "
    "estimate the probability that a reformulation asks for the same thing as the query. "
    f"{pages('warrant', 'models')} state the accuracy of these models.",
    "The worst queries and the suggested reformulations are selected by one measure of lean (the deciding measure). "
    "The report also estimates the lean that the engine's results would have after askew reorders them, based on the "
    "counts of the words that name the groups. The suggested reformulations and the new order are chosen to reduce "
    "lean, so the deciding measure improves by construction. Judge a change of the engine by the other measures, and "
    "audit the changed engine again.",
    "The share of results kept states how much of the result list stays the same, not how relevant the results are.",
    "Every query was sent to the engine once. A second audit gives other numbers if the engine then returns other "
    "results.",
)


def about(found: AuditFacts) -> Markup:
    """The engine, the queries, the groups, and the measure that decides which queries are worst."""
    return facts([
        ("engine", code(found.engine)), *([("searched", found.audited)] if found.audited else []),
        ("queries", n.count(found.queries)),
        ("queries without results", n.count(found.unanswered)), ("results per query", n.count(found.k)),
        ("groups", ", ".join(found.groups)), ("deciding measure", code(found.deciding)),
    ])  # fmt: skip


def _interval(low: float | None, high: float | None) -> str:
    return n.NONE if low is None or high is None else f"[{n.mean(low)}, {n.mean(high)}]"


def mean_words(one: AuditedMean) -> str:
    """A mean with its interval and the number of queries, as text."""
    ends = _interval(one.low, one.high)
    return n.mean(one.mean) + ("" if ends == n.NONE else f" {ends}") + f", {one.n:,} queries"


def means_table(found: AuditFacts) -> Table:
    """The mean of each measure."""
    rows = [
        [one.text, n.mean(one.mean), _interval(one.low, one.high), n.count(one.n), one.better] for one in found.measures
    ]
    head = [Column("measure", CODE), Column("mean"), Column("95% interval"), Column("n queries"),
            Column("better", WORDS)]  # fmt: skip
    said = "The intervals of bounded measures are valid for every distribution; the other intervals are approximate."
    return table("measures", "Means over queries", head, rows, *([found.reading] if found.reading else []), said)


def baseline_table(found: Mapping[str, Paired]) -> Table:
    """The change of each measure since the baseline."""
    head = [Column("measure", CODE), Column("baseline"), Column("now"), Column("gain"), Column("95% interval"),
            Column("detectable gain"), Column("n queries")]  # fmt: skip
    rows = [
        [text, n.mean(one.old), n.mean(one.new), n.mean(one.gain), _interval(one.low, one.high), n.mean(one.detectable),
         n.count(one.n)]
        for text, one in found.items()
    ]  # fmt: skip
    return table(
        "baseline",
        "Means over the queries that are in both audits, in the baseline and now",
        head,
        rows,
        GAIN,
        DETECTABLE,
    )


def signatures(found: AuditFacts) -> tuple[str, str]:
    """A heading, and the signature of each measure."""
    return "Signatures: every setting that the value of a measure depends on", "\n".join(
        one.signature for one in found.measures
    )


def parts_table(found: PartsFacts, place: int) -> Table:
    """The parts of one measure; ``place`` is the number of the measure, from 1."""
    rows = [
        [f"{one.kind}: {part_name(one.name)}", n.share(one.share), n.share_interval(one.low, one.high), n.mean(one.net),
         _interval(one.net_low, one.net_high)]
        for one in found.parts
    ]  # fmt: skip
    head = columns("part", "share", "95% interval", "net", "95% interval")
    caption = (
        f"Contribution of each kind of mention to the mean of {found.measure} (mean: {n.mean(found.value)}; mentions "
        f"of groups: {found.mentions:,})"
    )
    has_who = any(one.kind == "who" for one in found.parts)
    who = ' Each row "who" is a kind of person or thing that mentions refer to.' if has_who else ""
    corrected = ' The values of the rows "who" are corrected for known errors of the model.' if has_who else ""
    also = ', and so do the net values of the rows "who"' if has_who else ""
    note = (
        'A mention is a word that names a group. Each row "why" is a reason why mentions are in the results.'
        f'{who} A model ({found.resolver}) estimates all values.{corrected} The net values of the rows "why" add up to '
        f'the mean of {found.measure}{also}. The row "on topic" includes stereotypes, that is, mentions that present '
        "one group as the default. Stereotypes have no row of their own, because too few mentions have this label."
    )
    return table("parts" if place == 1 else f"parts-{place}", caption, head, rows, note)


def no_worst(measure: str) -> str:
    """The sentence of a report without worst queries."""
    return (
        f"No query is listed. Either {measure} is 0 for every query, or the setting 'worst' (the number of queries to "
        "list) is 0."
    )


def worst_table(found: AuditFacts) -> Table:
    """The queries with the largest lean, and the suggested reformulation of each."""
    suggested = {one.query_id: one for one in found.tried if one.suggested}
    rows = []
    for one in found.worst:
        better = suggested.get(one.query_id)
        words = n.NONE if better is None else better.text or "yes"
        counts = [n.count(one.mentions.get(group, 0)) for group in found.groups]
        rows.append([one.text or one.query_id, n.mean(one.lean, 3), *counts, ", ".join(one.named) or n.NONE, words])
    head = [Column("query", QUOTE), Column("lean"), *(Column(f"{group} words") for group in found.groups),
            Column("groups named in the query", NAME), Column("suggested reformulation", QUOTE)]  # fmt: skip
    note = (
        "Words: for each group, how many words of the results name it. A query is shown as its text "
        "if the audit kept the texts (askew audit --keep-queries), and otherwise as its id."
    )
    return table(
        "worst", f"The {len(rows)} queries with the largest lean, measured by {found.deciding}", head, rows, note
    )


def tried_table(found: AuditFacts, texts: Mapping[str, str] | None = None) -> Table:
    """The reformulations that were searched, by query; ``texts`` has the texts of the queries by id."""
    names = {one.query_id: one.text for one in found.worst if one.text} | dict(texts or {})
    grouped: dict[str, list[list[str]]] = {}
    for one in found.tried:
        grouped.setdefault(one.query_id, []).append(_tried(one, found.effectiveness is not None))
    judged = [Column(f"{found.effectiveness} before"), Column("after"), Column("outcome", NAME)]
    head = [Column("reformulation", QUOTE), Column("suggested", NAME), Column("lean before"), Column("lean after"),
            Column("lean", NAME), Column("results kept"), *(judged if found.effectiveness is not None else []),
            Column("P(same)"), Column("method", NAME)]  # fmt: skip
    effect = (
        "Effectiveness is not measured, because there are no judgements."
        if found.effectiveness is None
        else f"Effectiveness is measured by {found.effectiveness}. A suggested reformulation of a "
        "judged query loses no effectiveness."
    )
    model = f" ({found.model})" if found.model else ""
    rule = (
        "A suggested reformulation leans less than the query and keeps enough of the top results of the query."
        if found.agree is None or found.reduction is None
        else f"A suggested reformulation leans at least {n.share(found.reduction, 0)} less than the query and keeps at "
        f"least {n.share(found.agree, 0)} of the top results of the query."
    )
    note = (
        f"Lean is measured by {found.deciding}. {rule} {effect} P(same) is the probability that the reformulation asks "
        f"for the same thing as the query{model}."
    )
    groups = [Group(shown(names.get(query, query)), rows) for query, rows in grouped.items()]
    caption = "Reformulations of the queries with the largest lean, searched with the same engine"
    return Table("reformulations", caption, head, groups, [note])


def _tried(one: TriedFacts, is_judged: bool) -> list[str]:
    effect = [*(n.mean(value) for value in one.effectiveness), one.outcome or n.NONE] if is_judged else []
    return [
        one.text or n.NONE, "yes" if one.suggested else "", n.mean(one.lean[0]), n.mean(one.lean[1]),
        one.lean_verdict or n.NONE, n.share(one.kept, 0), *effect, n.share(one.same, 0), one.method,
    ]  # fmt: skip


def dropped_note(found: AuditFacts) -> list[Markup]:
    """The number of candidates that were not tried, by reason."""
    dropped = [f"{reason}: {count:,}" for reason, count in sorted(found.dropped.items())]
    return (
        [
            paragraph(
                f"Candidate reformulations that were not sent to the engine, by reason: {'; '.join(dropped)}.",
                kind="note",
            )
        ]
        if dropped
        else []
    )


def sensitivity_table(found: AuditFacts) -> Table:
    """The same results, measured with other measures, word lists and tokenizers."""
    rows = [
        [one.label, n.mean(one.mean), _interval(one.low, one.high), one.toward or n.NONE]
        for one in found.sensitivity.ways
    ]
    head = [Column("measure, word list, tokenizer", CODE), Column("mean"), Column("95% interval"),
            Column("leans toward", NAME)]  # fmt: skip
    return table("sensitivity", "The lean of the same results by other measures, word lists and tokenizers", head, rows)


def sensitivity_said(found: AuditFacts) -> list[str]:
    """How often the verdict is the same, and reformulations lean less, with other measures, word lists, tokenizers."""
    one, said = found.sensitivity, list[str]()
    if one.of:
        said.append(
            f"The verdict ({found.verdict}) is the same in {one.holds} of {one.of} combinations of measure, word list "
            "and tokenizer."
        )
    if one.compared:
        said.append(
            f"The mean lean of the suggested reformulations is smaller than that of the original queries in {one.less} "
            f"of {one.compared} combinations of a measure, a word list, a tokenizer, and signed or absolute values."
        )
    return said or [
        "This audit has no verdict on the group toward which the results lean. Compare the means in the table."
    ]
