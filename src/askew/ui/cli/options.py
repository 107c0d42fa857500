"""The options of commands. Each is explained once: those of several commands here, the others above their command."""

from __future__ import annotations

import inspect
import operator
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.files import parse_toml
from askew.core.groups import Groups

if TYPE_CHECKING:
    from askew.report.table import Table

DEFAULT_STORE = defaults.STORE
SHARED = """
--docs: The documents: a file (id TAB text, JSON Lines or Parquet; may be gzipped) or a folder of such files. In a
    folder with queries and judgements, only the files of documents are read.
--qrels: Judgements in TREC format.
--queries: Use only the queries of this file ('id TAB text' or 'id,query,label' lines).
--label: With --queries: use only queries with this label, such as 'n' (neutral).
--background: A run file. The measure NFaiRR is normalized with the documents of this run.
--measures: The measures, such as 'RR@10 ARaB(tf)@10 NFaiRR@10'; see 'askew list measures'.
--preset: Use the measures and settings of a publication; see 'askew list presets'.
--groups: The groups whose words are counted. 'age' counts all groups of the lexicon 'age'; 'age:old,young' counts two
    of its groups. Instead of the name of a lexicon, you can give the path of a lexicon file. With --lexicon, give only
    the groups: 'old,young'.
--lexicon: A lexicon by name, or a .toml, .csv or .dic file.
--tokens: The tokenizer, such as 'unclipped' or 'word'; see 'askew list tokenizers'.
--missing: How to treat a ranked document without text: 'error' (stop), 'zero' (it names no group), 'drop' (remove it
    before the cutoff) or 'skip' (remove it after the cutoff).
--unjudged: How to treat a query without judgements: 'error' (stop), 'zero' (its effectiveness is 0) or 'absent' (leave
    it out).
--unanswered: How to treat a judged query without results: 'zero' (its effectiveness is 0) or 'absent' (leave it out).
--no-relevant: How to treat a judged query without relevant documents: 'absent' (leave it out) or 'zero' (its
    effectiveness is 0).
--order: The order of the documents of a run: 'score' (by score, as in trec_eval) or 'file' (the order of the lines in
    the run file, as in the published bias scripts).
--fields: Fields that make up a document's text, such as 'title,text'.
--run-format: Format of the runs: 'auto', 'trec', 'tsv', 'jsonl' or 'parquet'.
--store $ASKEW_STORE: The folder or URL (s3://...) in which the results of finished steps are kept.
--seed: Random seed.
--json (as_json): Print JSON.
--tsv (as_tsv): Print tab-separated columns.
--latex: Also write the tables to this file, in LaTeX.
--csv: Also write the numbers to this file, as CSV.
--figures: Also write charts to this folder, as SVG files.
"""
Command = TypeVar("Command", bound=Callable[..., None])


# What every command that measures takes.
MEASURING = (
    "docs:path qrels:path queries:path label background:path measures preset groups lexicon tokens missing unjudged "
    "unanswered no_relevant order fields"
)
_TYPES: dict[str, Any] = {
    "text": str, "path": Path, "int": int, "float": float, "bool": bool, "texts": list[str],
    "paths": list[Path],
}  # fmt: skip


def options(text: str = "", shared: str = SHARED, settings: object = None) -> Callable[[Command], Command]:
    """Declare the arguments and options of a command, as its help lists them; the types are those of the function.

    An entry is ``NAME: help`` for an argument, ``--name: help`` for an option. Before the colon there can also be
    another flag (``-k --k``), how the value is shown (``--set NAME=VALUE``), a variable of the environment
    (``--store $ASKEW_STORE``) and, if it has another name, the parameter: ``--json (as_json)``.

    The entry ``**given`` names the options that the function only passes on: each with its type, if it is not a text.
    They are None unless they are given, or have the value that they have in ``settings``. The help lists them after the
    required ones.
    """
    explained: dict[str, Any] = {}
    passed_on: list[str] = []
    for entry in re.split(r"\n(?=\S)", f"{shared}\n{text}".strip()):
        head, _, about = " ".join(entry.split()).partition(": ")
        if head.startswith("**"):
            passed_on = about.split()
            continue
        words = head.split()
        flags = [word for word in words if word.startswith("-")]
        values = [word for word in words if not word.startswith(("-", "$", "("))]
        variable = next((word[1:] for word in words if word.startswith("$")), None)
        own_name = next((word.strip("()") for word in words if word.startswith("(")), None)
        name = own_name or max(flags or values, key=len).partition("/")[0].strip("-").replace("-", "_").lower()
        shown = values[0] if values and (flags or own_name) else None
        explained[name] = (
            typer.Option(*flags, help=about, metavar=shown, envvar=variable)
            if flags
            else typer.Argument(help=about, metavar=shown)
        )

    def declare(command: Command) -> Command:
        hints = get_type_hints(command, include_extras=True)
        own = [one for one in inspect.signature(command).parameters.values() if one.kind is not one.VAR_KEYWORD]
        passed = []
        for word in passed_on:
            name, _, kind = word.partition(":")
            default = None if kind else getattr(settings, name, None)
            hints[name] = operator.or_(_TYPES[kind or "text"], None) if default is None else type(default)
            passed.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
        required = [one for one in own if one.default is one.empty]
        parameters = [*required, *passed, *own[len(required) :]]
        for name in hints.keys() & explained.keys():
            # A parameter that is annotated by typer itself, because its help is computed, stays as it is.
            if not hasattr(hints[name], "__metadata__"):
                hints[name] = operator.getitem(Annotated, (hints[name], explained[name]))
        command.__annotations__ = hints
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [one.replace(annotation=hints[one.name]) for one in parameters]
        )
        return command

    return declare


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


def inputs(given: dict[str, Any]) -> dict[str, Any]:
    """The options of MEASURING as arguments of a function of the package: groups and fields are read."""
    others = {name: value for name, value in given.items() if name not in ("groups", "lexicon", "fields")}
    counted = Groups.resolve(given.get("groups"), given.get("lexicon"))
    return {**others, "groups": counted, "fields": split_fields(given.get("fields"))}


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
            settings[name.strip()] = parse_toml(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[name.strip()] = value
        except ValueError as error:
            raise ConfigError(f"--set {name}: {error}") from None
    return settings


def settings_by_owner(
    given: list[str] | None, expected: str = "OWNER.NAME=VALUE, as in --set extract.count=5", own: bool = False
) -> dict[str, dict[str, Any]]:
    """Parse ``owner.name=value`` settings by owner. The owner may contain dots, the name may not.

    With ``own``, a setting may have no owner; then its owner is an empty text.
    """
    owners: dict[str, dict[str, Any]] = {}
    for one in given or []:
        owner, dot, name = one.partition("=")[0].rpartition(".")
        if (dot or not own) and ("=" not in one or not owner.strip() or not name.strip()):
            raise ConfigError(f"--set {one!r}: expected {expected}")
        owners.setdefault(owner.strip(), {}).update(read_settings([one.removeprefix(f"{owner}.")]))
    return owners
