"""train generator: train a model that writes queries on a judged collection. This is ``askew train generator``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from askew.app.train.data_sources import known_source
from askew.app.train.trained import Trained, finished, found_before, left_out_notes
from askew.core.errors import DataError
from askew.core.local import public_text
from askew.core.ranking import Floats
from askew.corpora.collection import Collection, open_collection
from askew.statistics.intervals import mean_with_interval
from askew.trainers.card import WORK, Card, CardTable, claim
from askew.trainers.common import Progress, Schedule
from askew.trainers.generator import (
    ADAPTER_PACE,
    DOMAIN,
    PACE,
    PRESETS,
    GeneratorSettings,
    RelevantPassages,
    TextPairs,
    check_settings,
    fit_generator,
    make_pairs,
    prompts_for,
    question,
)
from askew.trainers.rewriting.finetune import TextModel, TextSettings, kind_of
from askew.trainers.rewriting.scores import bounds_of, pair_scores

SHOWN = ("rougeL", "bleu_sentence", "f1")
NO_TEXT_OF_QUERY, NO_TEXT_OF_PASSAGE = "the query has no text", "the passage has no text"
HELD_OUT = "Measured on held-out pairs"
SEEN = "Measured on the training pairs, as in RePair (these values show memorization, not generalization)"


@dataclass(frozen=True)
class GeneratorJob:
    """How a generator is trained.

    The text of a passage is made of ``fields``. At most ``most_pairs`` pairs are trained on (0: all), and at most
    ``most_test`` held-out pairs are measured.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: {"settings": how, "text": text, "pace": pace} for name, (how, text, pace) in PRESETS.items()
    }
    settings: GeneratorSettings = field(default_factory=GeneratorSettings)
    text: TextSettings = field(default_factory=TextSettings)
    pace: Schedule = ADAPTER_PACE
    fields: tuple[str, ...] = ()
    most_pairs: int = 0
    most_test: int = 200

    @classmethod
    def begin(cls, given: Mapping[str, Any]) -> GeneratorJob:
        """The job with the default schedule of the model: an adapter has another learning rate than a whole model."""
        text = TextSettings(**{name: given[name] for name in ("model", "kind") if name in given})
        return cls(pace=PACE if kind_of(text) == "seq2seq" else ADAPTER_PACE)


def train_generator(
    data: object, out: Path, settings: GeneratorJob | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train on the judged passages of a collection, measure on held-out pairs, and write the model with its card."""
    given = settings or GeneratorJob()
    kind = check_settings(given.settings, given.text)
    collection = open_collection(data, given.fields)
    domain = Path(collection.id.removeprefix("irds:")).name
    judged, left_out = read_judged(collection)
    pairs = _cut(make_pairs(judged, given.settings), given.most_pairs)
    left_out += pairs.left_out
    identity = {"pairs": pairs.data(), "domain": domain, **_plain(given)}
    found = claim(out, identity)
    if found is not None:
        return _usable_here(found_before(out, found, left_out_notes(left_out)), given)
    test_read, wanted = (side[: given.most_test] for side in pairs.of("test"))
    if not test_read:
        raise DataError(
            "generator: expected held-out pairs of a query and a passage, found none; give a collection with more "
            "judged queries, or set split='query'"
        )
    prompts = prompts_for(test_read, kind, given.settings, domain)
    before = TextModel.load(given.text, device).losses(prompts, wanted)
    made = fit_generator(pairs, given.settings, given.text, given.pace, out / WORK, domain, device, identity, progress)
    measured = {
        "pairs": {part: len(pairs.of(part)[0]) for part in ("train", "test")}, "left_out": dict(left_out),
        "test": _measure(made, prompts, test_read, wanted, before, given.settings),
    }  # fmt: skip
    made.save(out)
    card = _card(given, identity, made, command, measured, collection, domain)
    return _usable_here(finished(out, card, left_out_notes(left_out)), given)


def _usable_here(done: Trained, job: GeneratorJob) -> Trained:
    """Replace the public name of a local model in ``use`` by its path, so that the options work as they are."""
    model = job.text.model
    named, here = f"local.model={public_text(model)}", f"local.model={model}"
    return replace(done, use=shlex.join(here if word == named else word for word in shlex.split(done.use)))


def read_judged(collection: Collection) -> tuple[RelevantPassages, Counter[str]]:
    """The relevant passages of each query, without duplicates, and the number of pairs without a text."""
    queries, qrels = collection.queries, collection.judgements
    relevant = qrels.filter(pc.greater(qrels["relevance"], 0))
    relevant = relevant.group_by(["query_id", "doc_id"], use_threads=False).aggregate([])
    left_out: Counter[str] = Counter()
    asked = pc.index_in(relevant["query_id"], value_set=queries["query_id"].combine_chunks())
    left_out[NO_TEXT_OF_QUERY] = asked.null_count
    relevant = relevant.filter(pc.is_valid(asked))
    ids, texts = _passages(collection, relevant["doc_id"].unique())
    found = pc.index_in(relevant["doc_id"], value_set=ids)
    left_out[NO_TEXT_OF_PASSAGE] = found.null_count
    relevant = relevant.filter(pc.is_valid(found))
    if not relevant.num_rows:
        raise DataError(f"collection {collection.id}: expected queries with relevant passages, found none")
    query = pc.index_in(relevant["query_id"], value_set=queries["query_id"].combine_chunks()).to_numpy()
    doc = pc.index_in(relevant["doc_id"], value_set=ids).to_numpy()
    contexts = queries["context"].to_pylist() if "context" in queries.column_names else [None] * queries.num_rows
    judged = RelevantPassages(
        queries["query_id"].to_pylist(), queries["text"].to_pylist(), contexts, ids.to_pylist(), texts.to_pylist(),
        query.astype(np.int64), doc.astype(np.int64),
    )  # fmt: skip
    return judged, Counter({why: count for why, count in left_out.items() if count})


def _passages(collection: Collection, wanted: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The ids and texts of some documents, streamed."""
    parts = []
    for batch in collection.documents():
        rows = batch.filter(pc.is_in(batch["doc_id"], value_set=wanted))
        if rows.num_rows:
            parts.append(rows.select(["doc_id", "text"]))
    if not parts:
        raise DataError(f"collection {collection.id}: none of the judged documents is in the collection")
    table = pa.concat_tables(parts).combine_chunks()
    return table["doc_id"].combine_chunks(), pc.fill_null(table["text"], "").combine_chunks()


def _cut(pairs: TextPairs, most: int) -> TextPairs:
    """Keep at most ``most`` training pairs (0: all). Other parts are unchanged."""
    train = np.flatnonzero((pairs.part == "train") | (pairs.part == ""))
    if not most or len(train) <= most:
        return pairs
    # A random sample with a fixed seed, because consecutive documents of a collection are often similar.
    drawn = np.sort(np.random.default_rng(len(train)).permutation(train)[:most])
    keep = np.sort(np.concatenate([drawn, np.setdiff1d(np.arange(len(pairs.part)), train)])).tolist()
    left_out = pairs.left_out + Counter({"beyond most_pairs": len(train) - most})
    return TextPairs([pairs.read[i] for i in keep], [pairs.written[i] for i in keep], pairs.part[keep], left_out)


def _measure(
    made: TextModel, prompts: Sequence[str], read: Sequence[str], wanted: Sequence[str], before: Sequence[float],
    settings: GeneratorSettings,
) -> dict[str, Any]:  # fmt: skip
    """The loss per target token before and after training, and the similarity of the outputs to the targets.

    Pairs of one query are not independent, so means, intervals and n are over queries.
    """
    scores = pair_scores(wanted, made.write(prompts), read)
    losses = {"loss before": np.array(before), "loss": np.array(made.losses(prompts, wanted))}
    asked = wanted if settings.direction == "passage-query" else read
    values = {**losses, **{name: scores[name] for name in SHOWN}}
    return {name: asdict(mean_with_interval(by_question(one, asked), bounds_of(name))) for name, one in values.items()}


def by_question(values: Floats, asked: Sequence[str]) -> Floats:
    """The mean of the values of each query. Queries with the same words count as one."""
    _, group = np.unique(np.array([question(text) for text in asked], np.str_), return_inverse=True)
    return np.asarray(np.bincount(group, values) / np.bincount(group), np.float64)


def _plain(job: GeneratorJob) -> dict[str, Any]:
    return {
        "settings": asdict(job.settings), "text": asdict(job.text), "pace": asdict(job.pace),
        "fields": list(job.fields), "most_pairs": job.most_pairs, "most_test": job.most_test,
    }  # fmt: skip


def use_with(made: TextModel, settings: GeneratorSettings, domain: str, out: str = "FOLDER") -> str:
    """The options of ``askew reformulate`` that write queries with the model and its settings."""
    if settings.direction != "passage-query":
        return ""
    if made.kind == "causal":
        return _options("docquery", {"model": made.settings.model, "adapter": out})
    prefix = settings.prefix.replace(DOMAIN, domain)
    more = {"prefix": prefix} if prefix else {}
    return _options("docquery", {"model": out, **more, **({"context": "true"} if settings.context else {})})


def _options(method: str, settings: Mapping[str, str]) -> str:
    given = [part for name, value in settings.items() for part in ("--set", f"{method}.{name}={value}")]
    return shlex.join(["--method", method, *given])


def _card(
    job: GeneratorJob, identity: Mapping[str, Any], made: TextModel, command: str, measured: Mapping[str, Any],
    collection: Collection, domain: str,
) -> Card:  # fmt: skip
    rows = tuple(
        (name, f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]", one["n"])
        for name, one in measured["test"].items()
    )
    title = SEEN if job.settings.split == "none" else HELD_OUT
    use = use_with(made, job.settings, domain)
    return Card(
        title=f"A generator of {'queries' if job.settings.direction == 'passage-query' else 'passages'} ({made.kind})",
        about="The model was trained on pairs of a query and a passage that answers the query, as in the toolkit "
        "RePair.",
        command=command, base=made.settings.model, seed=job.pace.seed, device=made.device,
        data=({**known_source(collection.id), "collection": domain, "pairs": identity["pairs"], **measured["pairs"]},),
        settings={**_plain(job)["settings"], **_plain(job)["text"], **_plain(job)["pace"], "fields": list(job.fields)},
        measured=measured,
        tables=(
            CardTable(title, ("measure", "mean over queries [95% interval]", "queries"), rows),
            CardTable("Use: askew reformulate QUERIES --docs DOCS --out FILE", ("with these options",), (
                (use or "this model cannot reformulate queries, because it writes passages",),)),
        ),
        limits=(
            "The model invents facts and repeats the lean of its training data. Filter and measure the texts that it "
            "writes."
        ,),
        extra={"identity": dict(identity), "use": use},
    )  # fmt: skip
