"""Croissant metadata (croissant.json): files with checksums, a record set for each split, responsible-AI (RAI) fields.

Format 1.0, http://mlcommons.org/croissant/1.0, with the vocabulary http://mlcommons.org/croissant/RAI/1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from askew.pairs.dataset import numbers
from askew.pairs.dataset.card import LIMITS, NO_LICENSE, NOT_BIAS, USES, group_limit, language
from askew.pairs.dataset.columns import about_columns
from askew.pairs.dataset.facts import Facts
from askew.pairs.dataset.numbers import PairNumbers
from askew.report.markup import one_line

# The terms of the namespace cr; all other terms without a prefix belong to schema.org.
_TERMS = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
    "conformsTo": "dct:conformsTo",
}
_FORMATS = {"parquet": "application/x-parquet", "json": "application/json", "tsv": "text/tab-separated-values"}
_TYPES: dict[Any, str] = {
    pl.String: "sc:Text", pl.Boolean: "sc:Boolean", pl.Float64: "sc:Float", pl.Int32: "sc:Integer",
    pl.Int64: "sc:Integer",
}  # fmt: skip


def croissant(
    pairs: PairNumbers, facts: Facts, splits: Mapping[str, str], digests: Mapping[str, str], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """The metadata; ``splits`` maps each split to its file, ``digests`` and ``sizes`` cover all data files."""
    found = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": one_line(facts.title),
        "description": one_line(facts.description),
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "license": one_line(facts.text("license", NO_LICENSE)),
        "inLanguage": language(facts),
        "version": facts.text("version", "1.0.0"),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": name,
                "contentSize": f"{sizes[name]} B",
                "encodingFormat": _FORMATS[name.rpartition(".")[2]],
                "sha256": digests[name],
            }
            for name in sorted(digests)
        ],
        "recordSet": [_records(pairs, facts, split, file) for split, file in splits.items()],
        **_rai(pairs, facts),
    }
    stated = {"homepage": "url", "citation": "citeAs"}
    found |= {name: facts.text(fact) for fact, name in stated.items() if facts.text(fact)}
    return found


def _records(pairs: PairNumbers, facts: Facts, split: str, file: str) -> dict[str, Any]:
    about = about_columns(facts)
    taken: set[str] = set()
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{split}/{_slug(name, taken)}",
            "name": name,
            "description": about.get(name, "a column that the build added"),
            "dataType": _TYPES[kind],
            "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
        }
        for name, kind in pairs.schema.items()
        if name != "split"
    ]
    rows = pairs.every.splits[split]
    return {
        "@type": "cr:RecordSet", "@id": split, "name": split, "description": f"The {rows} pairs of the split {split}.",
        "key": [{"@id": f"{split}/query_id"}, {"@id": f"{split}/variant_id"}], "field": fields,
    }  # fmt: skip


def _slug(name: str, taken: set[str]) -> str:
    """A unique name that JSON-LD does not read as an address."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") or "column"
    while plain in taken:
        plain += "_"
    taken.add(plain)
    return plain


def _rai(pairs: PairNumbers, facts: Facts) -> dict[str, Any]:
    methods = ", ".join(f"{value} ({n} pairs)" for value, n, _ in pairs.column_counts("method"))
    dropped = "; ".join(f"{reason}: {count}" for reason, count in facts.mapping("dropped").items())
    measures = "; ".join(f"{one.name} = {one.signature} ({one.direction.value} is better)" for one in facts.measures)
    lexicons = "; ".join(map(_lexicon, facts.rows("lexicons"))) or "none stated"
    contact = f" Contact: {facts.text('contact')}" if facts.text("contact") else ""
    biases = [
        f"{name} of the original queries: mean {numbers.shown(one.value)} (n = {one.n})."
        for name, one in pairs.originals.items()
    ]
    for name, (old, new, gain) in pairs.subsets[facts.main].means.items():
        means = f"{numbers.shown(old.value)} for original queries and {numbers.shown(new.value)} for reformulations"
        biases.append(f"Mean {name} of the pairs in the subset {facts.main}: {means} (n = {gain.n} pairs).")
    return {
        "rai:dataCollection": one_line(
            f"{pairs.every.queries} queries of {facts.collection}, reformulated by {methods or 'no method'}; "
            f"original queries and reformulations were searched with {facts.ranker}."
        ),
        "rai:dataCollectionType": "Others",
        "rai:dataPreprocessingProtocol": one_line(
            f"Number of rows that the build left out, by step and reason: {dropped}."
            if dropped
            else "askew.json has no counts of rows that the build left out."
        ),
        "rai:dataAnnotationProtocol": one_line(
            "Values are computed from the judgements of the collection and from the words of lexicons. "
            f"Measures: {measures}. Lexicons: {lexicons}."
        ),
        "rai:machineAnnotationTools": [f"{name} {one_line(str(v))}" for name, v in facts.mapping("versions").items()]
        or ["askew"],
        "rai:dataBiases": [NOT_BIAS, *map(one_line, biases)],
        "rai:dataLimitations": [one_line(group_limit(facts.groups)), *LIMITS],
        "rai:dataUseCases": list(USES),
        "rai:personalSensitiveInformation": _personal(pairs, facts),
        "rai:dataReleaseMaintenancePlan": one_line(
            "checksums.sha256 lists the SHA-256 of every file. The files of a release do not change; a change needs a "
            f"new release.{contact}"
        ),
    }


def _lexicon(row: Mapping[str, Any]) -> str:
    groups = [f"groups {', '.join(map(str, row['groups']))}"] if row.get("groups") else []
    more = [*groups, *(f"{name} {row[name]}" for name in ("license", "source") if row.get(name))]
    return f"{row.get('id', 'not named')} ({'; '.join(more)})" if more else str(row.get("id", "not named"))


def _personal(pairs: PairNumbers, facts: Facts) -> list[str]:
    texts, mails, digits = pairs.texts
    known = {*about_columns(facts), "split"}
    others = [name for name in pairs.schema if name not in known]
    lines = [
        f"Query texts may name people. Of {texts} distinct query texts, {mails} seem to contain an email "
        f"address, and {digits} contain seven or more digits in a row. No other search for personal information was "
        "made.",
        "It is neither known nor inferred which groups the senders of the queries belong to. The measures "
        "count the words of each group in retrieved documents.",
    ]
    if "context" in pairs.schema:
        lines.append(
            f"The column 'context' states who sent the query and when. {pairs.contexts} pairs have a value in this "
            f"column; the number of distinct values is {pairs.senders}. The column can link the queries of "
            "one person. Review this column before you publish the dataset."
        )
    if others:
        lines.append(one_line(f"The build added these columns; review them before you publish the dataset: {others}."))
    return lines


def croissant_problems(found: Any, digests: Mapping[str, str], columns: list[str]) -> Iterator[str]:
    """One line for each difference between the metadata and the files and columns of the release."""
    try:
        files = {one["contentUrl"]: one["sha256"] for one in found["distribution"]}
        fields = [[field["name"] for field in records["field"]] for records in found["recordSet"]]
    except (KeyError, TypeError):
        yield "croissant.json: expected the fields 'distribution' and 'recordSet' as `askew publish` writes them"
        return
    wrong = sorted(str(name)[:60] for name, digest in files.items() if digests.get(name) != digest)
    if wrong:
        yield (
            f"croissant.json: number of listed files that are missing or have another SHA-256: {len(wrong)}; first: "
            f"{wrong[0]!r}"
        )
    if not fields or any(names != columns for names in fields):
        yield "croissant.json: the fields of a record set differ from the columns of the Parquet files"
