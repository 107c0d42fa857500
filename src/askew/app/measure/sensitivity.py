"""Measure runs in every combination of choices (lexicon, tokenizer, ...), and compare the orders of systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from askew.app.measure.agreement import Combination, SensitivityReport
from askew.app.measure.choices import Axes, LexiconLike, Listed, axes_of
from askew.app.measure.inputs import MeasuresLike, as_runs, parts_of
from askew.app.measure.job import MeasureJob
from askew.app.measure.sensitivity_page import check_places, write_pages
from askew.app.measure.values import MeasureReport
from askew.app.scoring.requested import key_of
from askew.app.scoring.texts import DocumentSource, Progress
from askew.app.scoring.universe import RunLike, named_runs
from askew.core import defaults
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.measure import Value
from askew.core.ranking import Floats
from askew.corpora.files import check_file
from askew.engine.store import Store
from askew.measures.catalogue import MeasureRequest
from askew.measures.common import documents_read, known_to, way_of_reading
from askew.plugins.kinds import Inputs

__all__ = ["SensitivityReport", "sensitivity"]
# A mean that is smaller than this fraction of the mean absolute value counts as zero (rounding).
_ROUNDING = 1e-12


def sensitivity(
    runs: Sequence[RunLike] | Mapping[str, RunLike],
    collection: object = None,
    measures: MeasuresLike | None = None,
    *,
    groups: GroupsLike | None = None,
    docs: object = None,
    lexicons: Sequence[LexiconLike] | str | None = None,
    tokens: Listed | None = None,
    signs: Listed | None = None,
    cutoffs: str | Sequence[int] | None = None,
    missing: Listed | None = None,
    who: Listed | None = None,
    queries: str | Path | Sequence[str] | None = None,
    label: str | None = None,
    background: RunLike | None = None,
    order: str | None = None,
    fields: Sequence[str] = (),
    run_format: str = defaults.RUN_FORMAT,
    store: str | Path | None = None,
    html: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> SensitivityReport:
    """Test whether the order of systems depends on the lexicon, the tokenizer, the cutoff, or another choice.

    Two or more runs are measured with every combination of the values below. The orders of the systems are compared
    with Kendall's tau-b. A value that the text of a measure fixes, such as ``sign`` in ``"ARaB(tf,sign=abs)"``, is not
    varied.

    - ``measures``: measures of lean without a cutoff, as in ``"ARaB(tf) NFaiRR"``. Default: ARaB (tc, tf and bool),
      NFaiRR and LexiconShare.
    - ``lexicons``: lexicons by name, file or object. Default: all shipped lexicons that have all groups of ``groups``.
    - ``tokens``: tokenizers. Default: ``word``, ``blank``, ``unclipped`` and ``seyedsalehi``.
    - ``signs``: signed or absolute values. Default: ``signed``, ``abs`` (the absolute value of the measure for each
      query) and ``running-abs`` (ARaB takes the absolute value at every rank, before it averages over the ranks).
    - ``cutoffs``: cutoffs of the measures. Default: 5, 10, 20 and 50.
    - ``missing``: how to treat ranked documents without text. Default: ``zero``, ``drop`` and ``skip``. If all ranked
      documents have a text, ``missing`` is not varied.
    - ``who``: values of the parameter ``who`` (the classes of mentions to count). Default: ``any`` (all mentions) and
      ``generic`` (mentions of people in general).

    These arguments are not varied:

    - ``groups``: the groups to compare. Default: female and male.
    - ``html``: a file for a page with a heat map.
    - ``out``: a folder for the page and all tables.
    - ``runs``, ``collection``, ``docs``, ``queries``, ``label``, ``background``, ``order``, ``fields``, ``run_format``,
      ``store`` and ``progress``: as in ``measure``.
    """
    check_places(html, out)
    counted = Groups.of(defaults.SENSITIVITY_GROUPS if groups is None else groups)
    listed = {"tokens": tokens, "sign": signs, "missing": missing, "who": who}
    axes = axes_of(counted, measures, lexicons, listed, cutoffs)
    choices = _choices(axes)
    docs, _ = parts_of(collection, docs, None)
    named = _named(runs)
    given = {key: value for key, value in (("order", order), ("fields", "+".join(fields))) if value}
    job = MeasureJob(None, given, counted, brief=True)
    job.catalogue.lexicons.update({one.id: one for one in axes.lexicons.values()})
    job.choose_measures(list(choices), docs is not None, False, background is not None, tuple(fields))
    job.read(named, background, None, run_format)
    job.restrict(queries, label)
    kept = Store(store) if store is not None and Path(store).is_dir() else None
    missing_texts = _MissingTexts(choices, missing is not None)
    scored = job.score(DocumentSource(docs, job.fields, job.published, kept), progress, missing_texts.keep)
    report = _report(scored, choices)
    report.notes += [*missing_texts.notes, *_notes(axes, counted, scored)]
    write_pages(report, html, out)
    return report


def _named(runs: Sequence[RunLike] | Mapping[str, RunLike]) -> dict[str, RunLike]:
    named = named_runs(as_runs(runs))
    if len(named) < 2:
        raise ConfigError(f"sensitivity compares the order of systems: give two runs or more, found {len(named)}")
    for run in named.values():
        if isinstance(run, str | Path):
            check_file(Path(run), "run")
    return named


def _choices(axes: Axes) -> dict[str, dict[str, Value]]:
    """The choices of each combination, by the text of its measure."""
    found: dict[str, dict[str, Value]] = {}
    for measure, choices in axes.combinations():
        found[measure.text] = choices
        if len(found) > defaults.MOST_COMBINATIONS:
            raise ConfigError(
                f"sensitivity: more than {defaults.MOST_COMBINATIONS:,} combinations; give fewer values with "
                "measures=, lexicons=, tokens=, signs= or cutoffs="
            )
    return found


class _MissingTexts:
    """Selects the values of ``missing`` to compare, once it is known whether ranked documents have no text."""

    def __init__(self, choices: Mapping[str, dict[str, Value]], given: bool) -> None:
        self._choices, self._given, self.notes = choices, given, list[str]()

    def keep(self, asked: list[MeasureRequest], inputs: Sequence[Inputs]) -> list[MeasureRequest]:
        """Keep all values of ``missing`` if texts are missing, else one value. "error" is kept only if requested."""
        absent = _without_text(asked, inputs)
        alike: dict[tuple[tuple[str, Value], ...], list[MeasureRequest]] = {}
        for one in asked:
            others = tuple(item for item in self._choices[one.text].items() if item[0] != "missing")
            alike.setdefault(others, []).append(one)
        kept = {one.text for same in alike.values() for one in self._compared(same, absent)}
        if not absent:
            # If every document has a text, all values of missing give the same result.
            for chosen in self._choices.values():
                chosen.pop("missing", None)
        else:
            rules = dict.fromkeys(str(one.measure.param("missing")) for one in asked if one.text in kept)
            self.notes.append(
                f"{absent:,} ranked documents have no text; the report compares these ways to treat such documents "
                f"(values of missing=): {', '.join(map(repr, rules))}"
            )
        return [one for one in asked if one.text in kept]

    def _compared(self, same: list[MeasureRequest], absent: int) -> list[MeasureRequest]:
        """The measures to compare, of several that differ only in ``missing``."""
        if not absent:
            return same[:1]
        if self._given or len(same) == 1:
            return same
        return [one for one in same if one.measure.param("missing") != "error"]


def _without_text(asked: Sequence[MeasureRequest], inputs: Sequence[Inputs]) -> int:
    """The number of documents without text that the measures read, not counting those that move up with "drop"."""
    absent = np.zeros(len(inputs[0].doc_ids), np.bool_)
    read = [one for one in asked if one.measure.param("missing") != "drop"] or asked
    for one in {way_of_reading(one.measure): one for one in read}.values():
        key = key_of(one)
        for given in inputs if key is not None else ():
            assert key is not None
            absent |= documents_read(one.measure, given) & ~known_to(one.measure, given.mentions(*key))
    return int(absent.sum())


def _report(scored: MeasureReport, choices: Mapping[str, dict[str, Value]]) -> SensitivityReport:
    combinations = [
        Combination(
            number, choices[one.text], one.signature, one.direction,
            tuple(_mean(run.values[one.text]) for run in scored.runs),
        )
        for number, one in enumerate(scored.asked, start=1)
    ]  # fmt: skip
    return SensitivityReport([run.name for run in scored.runs], combinations, list(scored.notes))


def _mean(values: Floats) -> float:
    """The mean over the queries that have a value."""
    known = values[~np.isnan(values)]
    mean = float(known.mean())
    return 0.0 if abs(mean) <= _ROUNDING * float(np.abs(known).mean()) else mean


def _notes(axes: Axes, groups: Groups, scored: MeasureReport) -> list[str]:
    notes = []
    if len(axes.lexicons) == 1:
        notes.append(
            f"only one lexicon is compared, because no other shipped lexicon has the groups {', '.join(groups.names)}; "
            "add lexicons with lexicons="
        )
    left = sum(any(np.isnan(run.values[one.text]).any() for run in scored.runs) for one in scored.asked)
    if left:
        notes.append(f"in {left:,} of {len(scored.asked):,} combinations, some queries of a run have no value")
    return notes
