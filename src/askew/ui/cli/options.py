"""Options that several commands share, each explained once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from askew.core import defaults
from askew.core.errors import ConfigError

if TYPE_CHECKING:
    from askew.report.table import Table

DEFAULT_STORE = defaults.STORE

Docs = Annotated[
    Path | None,
    typer.Option(
        help="The documents: a file (id TAB text, JSON Lines or Parquet; may be gzipped) or a folder of such files. "
        "In a folder with queries and judgements, only the files of documents are read."
    ),
]
Qrels = Annotated[Path | None, typer.Option(help="Judgements in TREC format.")]
Queries = Annotated[
    Path | None, typer.Option(help="Use only the queries of this file ('id TAB text' or 'id,query,label' lines).")
]
Label = Annotated[
    str | None, typer.Option(help="With --queries: use only queries with this label, such as 'n' (neutral).")
]
Background = Annotated[
    Path | None, typer.Option(help="A run file. The measure NFaiRR is normalized with the documents of this run.")
]
Measures = Annotated[
    str | None, typer.Option(help="The measures, such as 'RR@10 ARaB(tf)@10 NFaiRR@10'; see 'askew list measures'.")
]
PresetName = Annotated[
    str | None,
    typer.Option("--preset", help="Use the measures and settings of a publication; see 'askew list presets'."),
]
LexiconName = Annotated[str | None, typer.Option("--lexicon", help="A lexicon by name, or a .toml, .csv or .dic file.")]
GroupNames = Annotated[
    str | None,
    typer.Option(
        "--groups",
        help="The groups whose words are counted. 'age' counts all groups of the lexicon 'age'; 'age:old,young' counts "
        "two of its groups. Instead of the name of a lexicon, you can give the path of a lexicon file. With --lexicon, "
        "give only the groups: 'old,young'.",
    ),
]
Tokens = Annotated[
    str | None, typer.Option(help="The tokenizer, such as 'unclipped' or 'word'; see 'askew list tokenizers'.")
]
Missing = Annotated[
    str | None,
    typer.Option(
        help="How to treat a ranked document without text: 'error' (stop), 'zero' (it names no group), 'drop' (remove "
        "it before the cutoff) or 'skip' (remove it after the cutoff)."
    ),
]
Unjudged = Annotated[
    str | None,
    typer.Option(
        help="How to treat a query without judgements: 'error' (stop), 'zero' (its effectiveness is 0) or 'absent' "
        "(leave it out)."
    ),
]
Unanswered = Annotated[
    str | None,
    typer.Option(
        help="How to treat a judged query without results: 'zero' (its effectiveness is 0) or 'absent' (leave it out)."
    ),
]
NoRelevant = Annotated[
    str | None,
    typer.Option(
        help="How to treat a judged query without relevant documents: 'absent' (leave it out) or 'zero' (its "
        "effectiveness is 0)."
    ),
]
Order = Annotated[
    str | None,
    typer.Option(
        help="The order of the documents of a run: 'score' (by score, as in trec_eval) or 'file' (the order of the "
        "lines in the run file, as in the published bias scripts)."
    ),
]
Fields = Annotated[str | None, typer.Option(help="Fields that make up a document's text, such as 'title,text'.")]
RunFormat = Annotated[str, typer.Option(help="Format of the runs: 'auto', 'trec', 'tsv', 'jsonl' or 'parquet'.")]
StorePath = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="ASKEW_STORE",
        help="The folder or URL (s3://...) in which the results of finished steps are kept.",
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed.")]
OwnSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of one method or filter, such as --set extract.count=5 for the method 'extract'; may be "
        "repeated.",
        metavar="OWNER.NAME=VALUE",
    ),
]
SectionSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of a section of the recipe, such as --set retrieve.k=50 or --set reformulate.0.count=10; "
        "may be repeated.",
        metavar="SECTION.NAME=VALUE",
    ),
]
EngineSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A setting of the engine, such as --set concurrency=2, or of a reformulator or filter, such as "
        "--set reduce.shortest=2; may be repeated. 'askew show ranker NAME' and 'askew show reformulator NAME' list "
        "the settings.",
        metavar="[METHOD.]NAME=VALUE",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsTsv = Annotated[bool, typer.Option("--tsv", help="Print tab-separated columns.")]

LatexFile = Annotated[Path | None, typer.Option("--latex", help="Also write the tables to this file, in LaTeX.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", help="Also write the numbers to this file, as CSV.")]
FigureFolder = Annotated[Path | None, typer.Option("--figures", help="Also write charts to this folder, as SVG files.")]


def write_tables(
    tables: Sequence[Table], latex: Path | None, csv: Path | None, charts: Mapping[str, str], figures: Path | None
) -> None:
    """Write the tables in LaTeX, the first one as CSV, and the charts by name, where a place is given."""
    from askew.core.files import write_whole
    from askew.report.page import picture_file
    from askew.report.table import csv_table, latex_table

    if latex is not None:
        write_whole(latex, "\n".join(map(latex_table, tables)))
    if csv is not None:
        write_whole(csv, csv_table(tables[0]))
    if figures is not None:
        for name, drawn in charts.items():
            write_whole(figures / f"{name}.svg", picture_file(drawn, "svg"))


def split_fields(text: str | None) -> tuple[str, ...]:
    """Split ``title,text`` into names."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def one_form(as_json: bool, as_tsv: bool) -> None:
    """Refuse --json together with --tsv."""
    if as_json and as_tsv:
        raise ConfigError("--json and --tsv exclude each other: give one of them")


def read_settings(given: list[str] | None) -> dict[str, Any]:
    """Parse ``name=value`` settings. A value that is not valid TOML is read as a text."""
    settings: dict[str, Any] = {}
    for one in given or []:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise ConfigError(f"--set {one!r}: expected NAME=VALUE, as in --set depth=50")
        try:
            settings[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[name.strip()] = value
    return settings


def settings_by_section(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """Parse ``section.name=value`` settings of a recipe by section."""
    return settings_by_owner(given, "SECTION.NAME=VALUE, as in --set retrieve.k=50")


def settings_by_owner(
    given: list[str] | None, expected: str = "OWNER.NAME=VALUE, as in --set extract.count=5"
) -> dict[str, dict[str, Any]]:
    """Parse ``owner.name=value`` settings by owner. The owner may contain dots, the name may not."""
    owners: dict[str, dict[str, Any]] = {}
    for one in given or []:
        owner, dot, name = one.partition("=")[0].rpartition(".")
        if "=" not in one or not dot or not owner.strip() or not name.strip():
            raise ConfigError(f"--set {one!r}: expected {expected}")
        value = read_settings([f"{name}={one.partition('=')[2]}"])
        owners.setdefault(owner.strip(), {}).update(value)
    return owners
