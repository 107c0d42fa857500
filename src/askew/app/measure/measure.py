"""Measure runs: read, count, score, summarize. This is ``askew measure`` as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from askew.app.measure.inputs import MeasuresLike, as_runs, measure_texts, parts_of, query_texts
from askew.app.measure.job import MeasureJob
from askew.app.measure.values import MeasureReport, RunScores
from askew.app.scoring.comparable import note_on_resolver
from askew.app.scoring.decompose import decomposable, decompose_run
from askew.app.scoring.texts import DocumentSource, Progress
from askew.app.scoring.universe import QrelsLike, RunLike, named_runs
from askew.core import defaults
from askew.core.errors import ConfigError, DataError, UnknownName
from askew.core.groups import Groups, GroupsLike
from askew.core.measure import Measure
from askew.core.ranking import ORDERS
from askew.core.who import resolver_id
from askew.corpora.files import check_file
from askew.engine.store import Store
from askew.measures.catalogue import MeasureRequest, Preset, find_preset, is_shipped
from askew.measures.common import MISSING
from askew.measures.effectiveness import NO_RELEVANT, UNANSWERED, UNJUDGED
from askew.plugins import registry
from askew.plugins.kinds import Inputs

__all__ = ["MeasureReport", "RunScores", "measure"]


class MeasureOptions(TypedDict, total=False):
    """The options of ``measure``, for functions that pass them on."""

    groups: GroupsLike | None
    docs: object
    qrels: QrelsLike | None
    queries: str | Path | Sequence[str] | None
    label: str | None
    background: RunLike | None
    preset: str | None
    tokens: str | None
    missing: str | None
    unjudged: str | None
    unanswered: str | None
    no_relevant: str | None
    order: str | None
    fields: Sequence[str]
    run_format: str
    store: str | Path | None
    progress: Progress | None


def measure(
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike],
    collection: object = None,
    measures: MeasuresLike | None = None,
    *,
    groups: GroupsLike | None = None,
    docs: object = None,
    qrels: QrelsLike | None = None,
    queries: str | Path | Sequence[str] | None = None,
    label: str | None = None,
    background: RunLike | None = None,
    preset: str | None = None,
    tokens: str | None = None,
    missing: str | None = None,
    unjudged: str | None = None,
    unanswered: str | None = None,
    no_relevant: str | None = None,
    order: str | None = None,
    fields: Sequence[str] = (),
    run_format: str = defaults.RUN_FORMAT,
    store: str | Path | None = None,
    decompose: bool = False,
    resolver: str = defaults.RESOLVER,
    progress: Progress | None = None,
    before_scoring: Callable[[list[MeasureRequest]], None] | None = None,
) -> MeasureReport:
    """Score runs for bias (lean) and effectiveness.

    The inputs:

    - ``runs``: one run or several. A run is a file, a ``Run``, a data frame or ``{query: {document: score}}``. Several
      runs are a list, or a mapping from names to runs.
    - ``collection``: a ``Collection``, or anything that ``Collection.open`` accepts. A file, a mapping from document id
      to text, or a data frame gives documents only.
    - ``measures``: texts or objects, such as ``"RR@10 ARaB(tf)@10"`` or ``[nDCG @ 10]``. By default, the measures of
      the preset are used. Without a preset, the default depends on the inputs. If there are judgements, it includes
      RR@10, AP@10 and nDCG@10. If there are documents, it includes NFaiRR@10, LexiconShare@10 and the variants tc, tf
      and bool of ARaB@10.
    - ``groups``: the groups to count. A measure that names its own lexicon does not use this argument.
    - ``docs``: the documents, if no collection is given.
    - ``qrels``: the judgements: a file, a data frame or ``{query: {document: relevance}}``. They override those of the
      collection.
    - ``queries``: use only these queries: a file of queries or a list of ids.
    - ``label``: with a file of queries, use only the queries with this label.
    - ``background``: a run. NFaiRR is normalized with the documents of this run. By default, each run is its own
      background.
    - ``preset``: the name of a preset, which has the measures and settings of a publication.

    Options for how values are computed. A measure can also set an option, as in ``"ARaB(tf,tokens=word)@10"``, and so
    can the preset. The option in the measure overrides the argument, the argument overrides the preset, and the preset
    overrides the defaults below:

    - ``tokens``: the tokenizer. Default: ``unclipped``.
    - ``missing``: how to treat a ranked document without text: ``error`` (stop), ``zero`` (it names no group), ``drop``
      (remove it before the cutoff) or ``skip`` (remove it after the cutoff). Default: ``error``.
    - ``unjudged``: how to treat a query without judgements: ``error`` (stop), ``zero`` (its effectiveness is 0) or
      ``absent`` (left out). Default: ``error``.
    - ``unanswered``: how to treat a judged query without a document in the run: ``zero`` (its effectiveness is 0) or
      ``absent``. Such a query has no value of lean. Default: ``zero``.
    - ``no_relevant``: how to treat a judged query without a relevant document: ``absent`` (it has no value of
      effectiveness) or ``zero``. Default: ``absent``. The number of queries that count can therefore differ between
      measures.
    - ``order``: how to rank the documents of a query: ``score`` (by score) or ``file`` (in the order of the lines in
      the run file). Default: ``score``.
    - ``fields``: the fields that make up the text of a document, such as ``("title", "text")``.
    - ``run_format``: the format of run files: ``auto``, ``trec``, ``tsv``, ``jsonl`` or ``parquet``.

    Further arguments:

    - ``decompose``: also split the mean of ARaB into parts: by whether mentions of a group are on topic, and by who is
      mentioned, such as a real or a fictional person. The attribute ``parts`` of the report has the parts. The
      decomposition needs the texts of the queries: give a collection that has them, or a file as ``queries``.
    - ``resolver``: the model that estimates to which part a mention belongs: ``light``, or ``neural``, which is more
      accurate but slow.
    - ``store``: a folder that ``askew annotate`` wrote. Documents with counts in this folder are not counted again.
    - ``progress``: a function that is called with the amount of finished work and the total amount (0 if unknown).
    - ``before_scoring``: a function that is called with the requested measures before any file is read.
    """
    chosen = find_preset(preset) if preset else None
    given = {
        "tokens": tokens, "missing": missing, "unjudged": unjudged, "unanswered": unanswered,
        "no_relevant": no_relevant, "order": order,
    }  # fmt: skip
    options = {key: value for key, value in given.items() if value is not None}
    _check_options(options)
    if fields:
        options["fields"] = "+".join(fields)
    docs, qrels = parts_of(collection, docs, qrels)
    named = named_runs(as_runs(runs))
    for run in named.values():
        if isinstance(run, str | Path):
            check_file(Path(run), "run")
    job = MeasureJob(chosen, options, None if groups is None else Groups.of(groups))
    job.query_texts = lambda: query_texts(collection, queries)
    job.choose_measures(
        measure_texts(measures), docs is not None, qrels is not None, background is not None, tuple(fields)
    )
    divided = decomposable(job.asked, measures is not None) if decompose else []
    told = resolver_id(resolver)
    if before_scoring is not None:
        before_scoring(job.asked)
    job.read(named, background, qrels, run_format)
    job.restrict(queries, label)
    if background is None and len(named) > 1:
        job.notes += note_on_own_backgrounds(job.asked, chosen)
    job.notes += [*note_on_liwc(job.asked), *note_on_resolver(job.asked, divided)]
    kept = Store(store) if store is not None and Path(store).is_dir() else None
    source = None if docs is None else DocumentSource(docs, job.fields, job.published, kept)
    seen: list[Inputs] = []

    def look(asked: list[MeasureRequest], inputs: Sequence[Inputs]) -> list[MeasureRequest]:
        seen.extend(inputs)
        return asked

    report = job.score(source, progress, look)
    for one in divided:
        lexicon = job.catalogue.lexicons[str(one.measure.param("lexicon"))]
        report.parts += [decompose_run(one, each, job.relevance, lexicon, told) for each in seen]
    return report


def measure_defined(
    runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike], collection: object, measures: Sequence[str],
    **options: Any,
) -> tuple[MeasureReport, list[str]]:  # fmt: skip
    """As ``measure``, but leave out measures that are not defined for any query of a run; notes name them."""
    left, notes = list(measures), list[str]()
    while True:
        try:
            return measure(runs, collection, left, **options), notes
        except DataError as error:
            undefined = [name for name in left if f" {name} is not defined" in f" {error}"]
            if not undefined or len(left) == 1:
                raise
            left.remove(undefined[0])
            notes.append(f"left out: {error}")


_ALLOWED = {
    "missing": MISSING, "unjudged": UNJUDGED, "unanswered": UNANSWERED, "no_relevant": NO_RELEVANT, "order": ORDERS,
}  # fmt: skip


def _check_options(options: Mapping[str, str]) -> None:
    """Raise an error for an invalid option, even if no measure uses it."""
    for key, allowed in _ALLOWED.items():
        if key in options and options[key] not in allowed:
            raise ConfigError(f"{key}=: expected one of {', '.join(allowed)}; found {options[key]!r}")
    if "tokens" in options and options["tokens"] not in registry.names("tokenizer"):
        raise UnknownName("tokenizer", options["tokens"], registry.names("tokenizer"))


def note_on_own_backgrounds(asked: Sequence[MeasureRequest], preset: Preset | None) -> list[str]:
    """A note if each run is its own background: runs of different depth then have different ideal values."""
    own = [one for one in asked if one.measure.param("background") == "self"]
    if not own:
        return []
    fixed = [one for one in own if _keeps_its_background(one, preset)]
    advice = (
        f"to use the same background for all runs, request the measure {fixed[0].family.name}(background=run) and set "
        "the option background= to a run"
        if fixed
        else "to use the same background for all runs, set the option background= to a run"
    )
    return [f"{_texts(own)}: the background of each run is the documents that it retrieved itself; {advice}"]


def _keeps_its_background(one: MeasureRequest, preset: Preset | None) -> bool:
    """Whether the background is fixed, so that giving a background run alone would have no effect."""
    by_preset = preset is not None and "background" in preset.defaults.get(one.family.name, {})
    return by_preset or Measure.parse(one.text).param("background") is not None


def note_on_liwc(asked: Sequence[MeasureRequest]) -> list[str]:
    """A note if a shipped lexicon is used in place of LIWC, which is not part of askew."""
    named = [one for one in asked if Measure.parse(one.text).name == "LIWC"]
    notes = []
    for lexicon in dict.fromkeys(str(one.measure.param("lexicon")) for one in named):
        if is_shipped(lexicon):
            texts = _texts([one for one in named if one.measure.param("lexicon") == lexicon])
            name = lexicon.partition("@")[0]
            notes.append(
                f"{texts}: the open lexicon {name} is used in place of LIWC; "
                "give the LIWC dictionary, a .dic file, with lexicon="
            )
    return notes


def _texts(asked: Sequence[MeasureRequest]) -> str:
    return ", ".join(one.text for one in asked)
