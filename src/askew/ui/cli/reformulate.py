"""``askew reformulate``, ``askew classify`` and ``askew calibrate``: reformulate, classify and filter queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups
from askew.ui.cli import options as o
from askew.ui.cli.render import Waiting, note, print_records, reasons, safe, say_json


@o.options("""
QUERIES: A file of queries, the folder of a collection, 'irds:ID' (a dataset of ir_datasets), or 'demo'.
--query: Reformulate this one query, and print the best reformulations: those that are most likely to keep its meaning
    and to be natural.
--count: The most reformulations of a query by each method: the best three, and others that are more likely good than
    not. Without the filter 'equivalence', a method keeps all.
--out: The file to write the reformulations to: .tsv, .jsonl or .parquet.
--method: A reformulator (see 'askew list reformulators'); may be repeated. Default: 'rewrite' and 'reduce'.
--docs: Documents to read passages from: a file, a folder or 'irds:ID'.
--index: A BM25 index to read passages from, instead of --docs.
--filter (keep): A filter that drops unsuitable reformulations (see 'askew list filters'), or 'none'. May be repeated;
    filters are applied in the given order. Default: 'rules', and for the method 'rewrite' also 'equivalence'.
--depth: For methods that read passages: the number of top-ranked passages to read per query.
--set OWNER.NAME=VALUE (settings): A setting of one method or filter, such as --set extract.count=5 for the method
    'extract'; may be repeated.
""")
def reformulate_command(
    queries: str | None = None,
    query: str | None = None,
    count: int = defaults.SUGGESTIONS,
    out: Path | None = None,
    method: list[str] | None = None,
    docs: str | None = None,
    index: Path | None = None,
    keep: list[str] | None = None,
    depth: int = defaults.PASSAGES,
    groups: str | None = None,
    lexicon: str | None = None,
    settings: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Reformulate queries with one or more methods. Report how many candidates were kept and dropped, and why."""
    from askew.rewrite.reformulate import candidates_of, check_place, default_filters, default_methods, write_candidates
    from askew.search.retrieve import queries_notes

    if query is not None:
        _one_query(query, count, method, o.settings_by_owner(settings), as_json)
        return
    if queries is None or out is None:
        raise ConfigError(
            "give both QUERIES and ⟨out⟩ to reformulate many queries, or only ⟨query⟩ to reformulate one query"
        )
    check_place(out)
    note(queries_notes(queries))
    own = o.settings_by_owner(settings)
    methods = method or default_methods()
    filters = [] if keep == ["none"] else keep or default_filters(method)
    with Waiting("reformulating") as progress:
        table, tallies = candidates_of(
            queries, methods, filters, own, docs, index, depth, progress, Groups.resolve(groups, lexicon), count
        )
    write_candidates(table, out)
    if as_json:
        rows = [
            {"method": one.method, "made": one.made, "kept": one.kept, "queries": one.queries,
             "seconds": round(one.seconds, 3),
             "per_second": round(one.made / one.seconds if one.seconds else 0.0, 1),
             "rejected": dict(one.rejected.most_common())}
            for one in tallies
        ]  # fmt: skip
        say_json({"out": str(out), "candidates": table.height, "methods": rows})
        return
    print_records([
        {"method": one.method, "tried": one.made, "kept": one.kept, "queries": one.queries,
         "dropped": reasons(dict(one.rejected.most_common()))}
        for one in tallies
    ])  # fmt: skip
    typer.echo(f"{table.height:,} candidates of {table['query_id'].n_unique():,} queries: {safe(str(out))}")


def _one_query(
    query: str, count: int, method: list[str] | None, settings: Mapping[str, Mapping[str, Any]], as_json: bool
) -> None:
    """Print the best reformulations of a query."""
    from askew.rewrite.reformulate import suggest

    if method and len(method) > 1:
        raise ConfigError(f"⟨query⟩: expected at most one ⟨method⟩, found {len(method)}")
    found = suggest(query, count, method[0] if method else None, settings)
    note(found.notes)
    if as_json:
        say_json({"query": query, "reformulations": [vars(one) for one in found.kept], "dropped": found.rejected})
        return
    print_records([
        {"reformulation": one.text, "kind": one.kind or "",
         **{name: f"{vars(one)[name]:.2f}" for name in ("same", "natural")}}
        for one in found.kept
    ])  # fmt: skip
    note([f"{found.rejected.total()} more were dropped: {reasons(found.rejected)}"] if found.rejected else [])


@o.options("""
QUERIES: A file of queries, the folder of a collection, 'irds:ID' (a dataset of ir_datasets), or 'demo'.
--classifier: The classifier: 'auto', 'lexical', 'query-groups' or 'transformer' (with --set model=FOLDER).
--out: The file for the labels: .tsv, .jsonl or .parquet.
--set NAME=VALUE (settings): A setting of the classifier, such as --set abstain_below=0.6; may be repeated. 'askew show
    classifier NAME' lists the settings.
""")
def classify_command(
    queries: str,
    classifier: str = defaults.CLASSIFIER,
    out: Path | None = None,
    groups: str | None = None,
    lexicon: str | None = None,
    settings: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Classify which group each query asks about, or none. If the file has labels, report the accuracy."""
    from askew.rewrite.classifiers import classify
    from askew.rewrite.reformulate import check_place, write_candidates
    from askew.search.retrieve import queries_notes

    if out is not None:
        check_place(out)
    note(queries_notes(queries))
    done = classify(queries, classifier, **{"groups": Groups.resolve(groups, lexicon), **o.read_settings(settings)})
    if out is not None:
        write_candidates(done.table, out)
    if as_json:
        say_json({"classifier": done.classifier, "counts": done.counts, "right": done.right, "judged": done.judged})
        return
    typer.echo(f"classifier {done.classifier}")
    print_records([{"label": label, "queries": count} for label, count in done.counts.items()])
    if done.judged:
        typer.echo(
            f"{done.right:,} of {done.judged:,} predictions agree with the labels ({done.right / done.judged:.1%})"
        )


@o.options("""
LABELED: A CSV or TSV file of labeled pairs, with the columns 'original', 'variation' and 'label'.
--similarity: How to measure the similarity of two queries: 'light' (without a model) or 'neural' (with a model; needs
    the optional extra 'neural').
--rule: How to choose the threshold: 'f1' (the highest F1) or 'precision' (a precision of at least --least).
--least: With '--rule precision': the lowest acceptable precision of the threshold. Precision is the share of kept pairs
    that are labeled as having the same meaning.
--set NAME=VALUE (settings): A setting of the similarity measure of --similarity, such as --set batch_size=16; may be
    repeated. 'askew show filter semantic' lists the settings.
""")
def calibrate_command(
    labeled: Path,
    similarity: str = defaults.SIMILARITY,
    rule: str = defaults.THRESHOLD_RULE,
    least: float = defaults.LEAST_PRECISION,
    settings: list[str] | None = None,
    seed: int = defaults.CALIBRATION_SEED,
    as_json: bool = False,
) -> None:
    """Choose the threshold of the semantic filter by labeled pairs.

    Print the precision-recall curve, its area (average precision) and the chosen threshold.
    """
    from askew.rewrite.filters import calibrate

    facts = calibrate(labeled, similarity, rule, least, seed, o.read_settings(settings)).facts()
    if as_json:
        say_json(facts)
        return
    points = facts.pop("curve")
    names = ("threshold", "precision", "recall", "kept")
    print_records([{name: f"{point[name]:.3f}" for name in names} for point in points])
    typer.echo(
        f"average precision of the similarity measure {similarity!r}: {facts['average_precision']:.3f} "
        f"[{facts['low']:.3f}, {facts['high']:.3f}]\n"
        f"number of labeled pairs: {facts['pairs']:,} (of {facts['queries']:,} queries)\n"
        f"pairs that are labeled as having the same meaning: {facts['base_rate']:.1%}"
    )
    typer.echo(
        f"threshold chosen by the rule {rule!r}: {facts['threshold']:.3f} (precision {facts['precision']:.3f}, "
        f"recall {facts['recall']:.3f})"
    )
