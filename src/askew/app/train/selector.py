"""train selector: train a model that selects among the candidates of a build without judgements.

Queries are split by their words. The cross-encoder is trained on ``train`` and the probability that a candidate loses
no effectiveness on ``fit``. The threshold is chosen on ``dev``, and results are reported for ``test``. This is
``askew train selector`` as a function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from askew.app.build.built_pairs import (
    EFFECTIVENESS,
    LEAN,
    Built,
    QuerySubset,
    as_measured,
    effects,
    labels_for,
    read_built,
)
from askew.app.scoring.texts import Progress
from askew.app.train.held_out import write_held_out
from askew.app.train.trained import Trained, finished, found_before
from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import fingerprint
from askew.core.local import public
from askew.core.ranking import Floats, Ints
from askew.core.whole_files import write_whole
from askew.models import MINILM, identify, load_model
from askew.rankers.disk import StoredTexts, read_header
from askew.statistics.curves import average_precision
from askew.statistics.significance import Paired
from askew.trainers.card import WORK, Card, CardTable, claim
from askew.trainers.common import Schedule
from askew.trainers.ranker import CrossEncoder
from askew.trainers.selector import (
    CLOSE,
    LISTS,
    NEITHER,
    ORIGINAL,
    PACE,
    POSITIVE,
    PRESETS,
    Chance,
    SelectorSettings,
    agreement,
    choose_threshold,
    closeness,
    sample,
    score_candidates,
)
from askew.trainers.selector import train_selector as train_on_pairs

RULE = "selector.json"
CROSS_ENCODER, LEAN_AWARE = "cross-encoder", "lean-aware"
# What the model card says about the training pairs of each task (the setting ``learns``).
_LESS = "In a negative pair, the reformulation is less effective than the original query."
_PAIRS = {
    "refairmulate": "The positive pairs are the subset 'fair' of the dataset: the reformulation is effective and its "
    "results lean less. The negative pairs are those that the dataset marks as negative.",
    "effectiveness": f"In a positive pair, the reformulation is more effective than the original query. {_LESS}",
    "no-loss": f"In a positive pair, the reformulation is at least as effective as the original query. {_LESS}",
}

_LIMITS = ("Lean is measured by counting the words of a lexicon; such words are not bias by themselves.",)
_CHOICE_LIMITS = (
    *_LIMITS,
    f"The rule 'lean-aware' selects reformulations by the {LEAN} of their results. A comparison by {LEAN} therefore "
    f"favors this rule over rules that do not use {LEAN}.",
    "The row 'oracle' uses the relevance judgements to choose reformulations, so it is not a selector. The null "
    "hypothesis of 'p' is that the mean gain is 0. The null hypothesis of 'p (non-inferiority)' is that the mean "
    "loss is at least as large as the setting 'margin'. Neither p-value is corrected for the number of tests.",
)  # fmt: skip


@dataclass(frozen=True)
class SelectorJob:
    """How a selector is trained. ``lean_aware=None``: learn the lean-aware rule if the source has the data for it.

    ``similar`` is a sentence encoder for the similarity of results to the query; an empty text leaves this feature out.
    ``margin`` is the largest acceptable loss of mean effectiveness; the tests check whether a loss of this size is
    ruled out. The threshold of the lean-aware rule is chosen on dev: the lower end of the interval of the mean gain
    must be at least ``-slack``. The default of ``slack`` is 0 and not the margin, because the lowest threshold that dev
    allows is overfitted to dev.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {name: {"settings": one} for name, one in PRESETS.items()}
    settings: SelectorSettings = field(default_factory=SelectorSettings)
    pace: Schedule = PACE
    lean_aware: bool | None = None
    similar: str = MINILM
    margin: float = 0.01
    slack: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1 or not 0 <= self.slack < 1:
            raise ConfigError(
                f"expected 0 < margin < 1 and 0 <= slack < 1, found margin={self.margin} and slack={self.slack}"
            )


def train_selector(
    data: str | Path | Built, out: Path, settings: SelectorJob | None = None, device: str | None = None,
    command: str = "", progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train a selector on the candidates of a store or a published dataset, and measure it on held-out queries."""
    built = data if isinstance(data, Built) else read_built(Path(data))
    given = _settled(built, settings or SelectorJob())
    parts = built.parts()
    labels = np.where(parts[built.query] == "train", labels_for(built, given.settings.learns), NEITHER)
    identity = _identity(built, labels, given)
    before = claim(out, identity)
    if before is not None:
        return found_before(out, before)
    texts = built.texts(given.settings.passages != "none")
    encoder = train_on_pairs(texts, labels, given.settings, given.pace, out / WORK, device, identity, progress)
    held_out = np.flatnonzero(parts[built.query] != "train")
    scores = np.full(len(built.query), np.nan)
    scores[held_out] = score_candidates(encoder, texts, given.settings, held_out)
    rule, figures, tables = _measure(built, parts, scores, given, encoder.device)
    counts = {name: int((parts == name).sum()) for name in sorted(set(parts.tolist()))}
    examples = len(sample(built.query, labels, given.settings.most_each, given.pace.seed))
    encoder.save(out)
    tested = np.flatnonzero(parts == "test").tolist()
    write_held_out(out, [built.query_ids[one] for one in tested], [built.originals[one] for one in tested])
    write_whole(out / RULE, json.dumps({"settings": public(asdict(given.settings)), LEAN_AWARE: rule}, indent=1) + "\n")
    measured = {"queries": counts, "examples": examples, "margin": given.margin, **figures}
    return finished(out, _card(measured, tables, given, identity, encoder.device, command))


def _settled(built: Built, job: SelectorJob) -> SelectorJob:
    """The job with ``lean_aware`` decided by the source."""
    able = built.whole and built.found is not None
    if job.lean_aware and not able:
        found = "this store has no search results" if built.whole else "the source is a published dataset"
        raise DataError(
            f"selector: the rule 'lean-aware' needs a store with the results of all reformulations, but {found}; "
            "give the store of the build, or train without this rule"
        )
    return replace(job, lean_aware=able if job.lean_aware is None else job.lean_aware)


def _identity(built: Built, labels: npt.NDArray[Any], job: SelectorJob) -> dict[str, Any]:
    data = fingerprint([list(built.originals), built.table["text"].to_list(), built.query.tolist(), labels.tolist()])
    similar = identify(job.similar) if job.lean_aware and job.similar else ""
    return {"data": data, "weights": identify(job.settings.model), **asdict(job), "encoder": similar}


@dataclass(frozen=True)
class Close:
    """Cosines of original queries with candidates, with the results of the query and with those of candidates."""

    candidate: Floats
    old: Floats
    new: Floats


def closeness_of(built: Built, rows: Ints, model: str, device: str | None = None) -> Close:
    """The cosines for some candidates, with a sentence encoder."""
    if built.found is None or built.index is None:
        lost = "search results" if built.found is None else "index with the texts of documents"
        raise DataError(f"selector: the source has no {lost}; give the store of a build")
    encoder = load_model("dense", model, None, device)
    kept = StoredTexts(built.index, read_header(built.index)["documents"])
    lists = built.found[0].docs, built.found[1].docs[rows]
    used = np.unique(np.concatenate([one[one >= 0] for one in lists]))
    candidates = built.table["text"].gather(rows).to_list()
    count_model_calls(len(used) + len(built.originals) + len(candidates))
    docs, originals, others = (
        encoder.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        for texts in ([kept[doc] for doc in used.tolist()], list(built.originals), candidates)
    )
    query = built.query[rows]
    sides = [
        _cosines(docs, used, one, originals[at])
        for one, at in zip(lists, (np.arange(len(originals)), query), strict=True)
    ]
    return Close(np.einsum("ij,ij->i", others, originals[query]).astype(np.float64), *sides)


def _cosines(docs: Any, used: Ints, lists: Ints, vectors: Any) -> Floats:
    """The cosine of each query with the documents of its list; -1 where there is no document."""
    places = np.searchsorted(used, np.maximum(lists, used[0] if len(used) else 0))
    columns = [np.einsum("ij,ij->i", docs[places[:, k]], vectors) for k in range(lists.shape[1])]
    return np.where(lists >= 0, np.stack(columns, axis=1), -1.0)


def features(
    built: Built, rows: Ints, scores: Mapping[str, Floats], close: Close | None = None
) -> tuple[tuple[str, ...], Floats]:
    """The features for the probability of no loss, for some candidates: names and columns. They use no judgements."""
    if built.found is None:
        raise DataError(
            "selector: expected a store with runs, to compare the results of the original query and the reformulation; "
            "found no runs; give the store of a build"
        )
    query = built.query[rows]
    old, new = built.found
    names, columns = [*LISTS], [agreement(old.at(query), new.at(rows))]
    if close is not None:
        names += CLOSE
        columns.append(closeness(close.candidate, close.old[query], close.new))
    names += [f"score of {name}" for name in scores]
    return tuple(names), np.column_stack([*columns, *scores.values()])


def _measure(
    built: Built, parts: npt.NDArray[np.str_], scores: Floats, job: SelectorJob, device: str
) -> tuple[dict[str, Any] | None, dict[str, Any], tuple[CardTable, ...]]:
    """The lean-aware rule, the measures of each rule's selections on the test part, and both as tables."""
    test = QuerySubset.of(built, parts, "test")
    apart = _told_apart(built, test, scores, job.settings.learns)
    if not built.whole:
        return None, {"told apart": apart}, (_apart_table(apart),)
    chosen = {**usual_choices(built, test, job.pace.seed), CROSS_ENCODER: test.best(scores[test.rows])}
    rule = None
    if job.lean_aware:
        held = np.flatnonzero(parts[built.query] != "train")
        close = closeness_of(built, held, job.similar, device) if job.similar else None
        chances, rule = learn_chance(built, parts, held, {CROSS_ENCODER: scores[held]}, close, job.slack)
        if close is not None:
            near = np.full(len(scores), np.nan)
            near[held] = close.candidate
            chosen["most similar"] = test.best(near[test.rows])
        rule["similar"] = job.similar
        chosen[LEAN_AWARE] = choose_lean_aware(built, test, chances, rule["threshold"])
    chosen["oracle"] = chosen.pop("oracle")  # move the oracle to the end
    found = {name: effects(built, test, rows, job.margin) for name, rows in chosen.items()}
    choices = {
        name: {"changed": int((chosen[name] != ORIGINAL).sum()), **{m: asdict(one) for m, one in tests.items()}}
        for name, tests in found.items()
    }
    measured: dict[str, Any] = {"told apart": apart, "choices": choices}
    tables = [_choices_table(chosen, found), _apart_table(apart)]
    if rule is not None:
        measured["threshold"] = rule["threshold"]
        weights = zip(rule["chance"]["names"], rule["chance"]["weights"], strict=True)
        tables.append(
            CardTable(
                "Weights of the features in the logistic regression that estimates the probability of a reformulation "
                "being at least as effective as the original query",
                ("feature", "weight"),
                tuple(weights),
            )
        )
    return rule, measured, tuple(tables)


def usual_choices(built: Built, part: QuerySubset, seed: int = 7) -> dict[str, Ints]:
    """The baselines of a selector: the original query, a random candidate, and an oracle that reads the judgements.

    The oracle selects the candidate with the largest sum of the gains in effectiveness and lean, among those without a
    loss in either.
    """
    random = np.random.default_rng([seed, len(part.rows)]).random(len(part.rows))
    both = np.stack([built.gain(measure)[part.rows] for measure in (EFFECTIVENESS, LEAN)])
    allowed = (both >= 0).all(axis=0) & (both.sum(axis=0) > 0)
    return {
        "original": np.full(len(part.queries), ORIGINAL), "random": part.best(random),
        "oracle": part.best(both.sum(axis=0), allowed),
    }  # fmt: skip


def learn_chance(
    built: Built, parts: npt.NDArray[np.str_], rows: Ints, scores: Mapping[str, Floats], close: Close | None,
    slack: float,
) -> tuple[Floats, dict[str, Any]]:  # fmt: skip
    """Learn the probability of no loss on the part ``fit``, from candidates that lean less than their original.

    Returns the probabilities by row of all candidates (NaN outside ``rows``), and the rule: the weights, and the
    threshold chosen on ``dev``.
    """
    names, columns = features(built, rows, scores, close)
    gain = built.gain(EFFECTIVENESS)
    learned = (parts[built.query[rows]] == "fit") & (built.gain(LEAN)[rows] > 0)
    chance = Chance.fit(names, columns[learned], gain[rows][learned] >= 0)
    chances = np.full(len(built.query), np.nan)
    chances[rows] = chance.of(columns)
    dev = QuerySubset.of(built, parts, "dev")

    def choose(threshold: float) -> Ints:
        return choose_lean_aware(built, dev, chances, threshold)

    return chances, {"chance": chance.facts(), "threshold": choose_threshold(choose, len(dev.queries), gain, slack)}


def choose_lean_aware(built: Built, part: QuerySubset, chances: Floats, threshold: float) -> Ints:
    """For each query, the candidate with the least lean among those above the threshold, or else ORIGINAL."""
    lean, old = np.abs(built.new(LEAN))[part.rows], np.abs(built.old(LEAN))[part.queries]
    return part.least(lean, old, chances[part.rows], threshold)


def read_rule(folder: Path) -> dict[str, Any]:
    """The settings of a trained selector, and its lean-aware rule if it has one."""
    if not (folder / RULE).is_file():
        raise DataError(f"{folder}: expected a folder of askew train selector with {RULE}, found none")
    try:
        found = json.loads((folder / RULE).read_text(encoding="utf-8"))
        return {"settings": dict(found["settings"]), LEAN_AWARE: found[LEAN_AWARE]}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{folder / RULE}: the file cannot be read ({type(error).__name__}); train the selector again"
        ) from None


def choose(folder: Path, built: Built, rule: str = LEAN_AWARE, device: str | None = None) -> Ints:
    """The row that a trained selector selects for each query, or ORIGINAL, without judgements."""
    found = read_rule(folder)
    settings = SelectorSettings(**{**found["settings"], "model": str(folder)})
    rows = np.arange(len(built.query))
    texts = built.texts(settings.passages != "none")
    encoder = CrossEncoder.load(settings.ranker(), device)
    count_model_calls(len(rows))
    scores = score_candidates(encoder, texts, settings, rows)
    every = QuerySubset(np.arange(len(built.query_ids)), rows, built.query)
    if rule == CROSS_ENCODER:
        return every.best(scores)
    kept = found[LEAN_AWARE]
    if rule != LEAN_AWARE or kept is None:
        raise ConfigError(
            f"selector {folder}: this selector was not trained for the rule {rule!r}; use the rule {CROSS_ENCODER!r}"
        )
    close = closeness_of(built, rows, kept["similar"], encoder.device) if kept["similar"] else None
    _, columns = features(built, rows, {CROSS_ENCODER: scores}, close)
    return choose_lean_aware(built, every, Chance.read(kept["chance"]).of(columns), kept["threshold"])


def _told_apart(built: Built, test: QuerySubset, scores: Floats, learns: str) -> dict[str, Any]:
    """How well the scores separate held-out positive and negative pairs: average precision, and the random baseline."""
    labels = labels_for(built, learns)[test.rows]
    known = labels != NEITHER
    truth = (labels[known] == POSITIVE).astype(np.int64)
    if not 0 < truth.sum() < len(truth):
        raise DataError(
            "selector: expected positive and negative pairs of query and reformulation in the test part, found only "
            "one of these two kinds; build pairs of more queries"
        )
    queries = [built.query_ids[query] for query in built.query[test.rows][known].tolist()]
    found = average_precision(scores[test.rows][known], truth, queries)
    return {**asdict(found), "pairs": int(known.sum()), "positive": float(truth.mean())}


def _apart_table(found: Mapping[str, Any]) -> CardTable:
    columns = ("pairs", "queries", "average precision", "95% interval", "random baseline")
    interval = f"{found['low']:.4f} to {found['high']:.4f}"
    row = (found["pairs"], found["queries"], found["value"], interval, found["positive"])
    return CardTable(
        "How well the selector separates positive and negative pairs (defined above) of held-out queries",
        columns,
        (row,),
    )


def _choices_table(chosen: Mapping[str, Ints], found: Mapping[str, Mapping[str, Paired]]) -> CardTable:
    rows = []
    for name, tests in found.items():
        main = tests[EFFECTIVENESS]
        cells = [f"{one.new:.4f}, gain {one.gain:+.4f} {_interval(one)}" for one in tests.values()]
        counts = int((chosen[name] != ORIGINAL).sum()), main.improved, main.worsened
        rows.append((name, main.n, *counts, _p(main.p), _p(main.p_no_loss), *cells))
    columns = (
        "choice",
        "n",
        "changed",
        "improved",
        "worsened",
        "p",
        "p (non-inferiority)",
        *map(as_measured, found["original"]),
    )
    return CardTable(
        "Reformulations chosen for held-out queries: mean of each measure, and mean gain over the original query with "
        "its 95% interval",
        columns,
        tuple(rows),
    )


def _interval(one: Paired) -> str:
    return "" if one.low is None or one.high is None else f"[{one.low:+.4f}, {one.high:+.4f}]"


def _p(value: float | None) -> str:
    return "-" if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _card(
    measured: Mapping[str, Any], tables: tuple[CardTable, ...], job: SelectorJob, identity: Mapping[str, Any],
    device: str, command: str,
) -> Card:  # fmt: skip
    return Card(
        title="A selector of query reformulations",
        about="A cross-encoder that reads a query and a reformulation of this query. It was trained to separate "
        f"positive and negative pairs of query and reformulation. {_PAIRS[job.settings.learns]} Use it with "
        "`askew bench COLLECTION --method reformulate:METHOD:FOLDER --queries FOLDER/held-out.jsonl`.",
        command=command, base=str(identity["weights"]), data=({"pairs": identity["data"]},), seed=job.pace.seed,
        settings={**asdict(job.settings), **asdict(job.pace), "margin": job.margin, "slack": job.slack}, device=device,
        measured=measured, tables=tables, limits=_CHOICE_LIMITS if "choices" in measured else _LIMITS,
        extra={"identity": identity},
    )  # fmt: skip
