"""train generator: train a model that writes queries on a judged collection. This is ``askew train generator``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pyarrow.compute as pc
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from askew.core.address import public_text
from askew.core.errors import ConfigError, DataError, one_of
from askew.core.files import fingerprint
from askew.core.ranking import Floats, Ints
from askew.core.tables import part_of
from askew.core.text import word
from askew.data.collection import Collection, open_collection
from askew.measures.statistics.intervals import mean_with_interval
from askew.models.prompts import from_passage
from askew.train.card import WORK, Card, CardTable, claim
from askew.train.common import Progress, Schedule, Trained, finished, found_before, known_source, left_out_notes
from askew.train.finetune import TextModel, TextSettings, bounds_of, fit_texts, kind_of, pair_scores

DIRECTIONS, JOINS, SPLITS = ("passage-query", "query-passage"), ("replicate", "concatenate"), ("apart", "query", "none")
DOMAIN = "{domain}"
NO_QUERY, NO_PASSAGE = "a query that is too short", "a passage that is too short"
_MOST_QUERY_WORDS = 40


PACE = Schedule(3.0, 16, 1e-4, 1, 0.05, 0.01, "linear", 1000)
ADAPTER_PACE = Schedule(1.5, 16, 4e-4, 1, 0.05, 0.0, "cosine", 1000)
# RePair (CIKM 2023) as released: T5-base, from all passages of a query to the query, lower-cased, 4,000 steps (the
# paper calls them epochs) in batches of 128 at a constant 0.001. Its files cut the input to 32 tokens and the output to
# 256. One of its scripts has 512 and 64 for this direction; the limits 512 and 64 are the defaults of docquery.
_REPAIR: dict[str, Any] = {
    "join": "concatenate", "lower": True, "prefix": f"{DOMAIN}_cf question: ",
    "text": TextSettings("google-t5/t5-base", "seq2seq", 32, 256, optimizer="adafactor", steps=4000),
    "pace": Schedule(1.0, 128, 1e-3, 1, 0.0, 0.0, "constant", 500),
}  # fmt: skip
PRESETS: dict[str, dict[str, Any]] = {
    "repair2023": _REPAIR,
    # For AOL, queries of one character and documents of fewer than ten are dropped; the user precedes the document.
    "repair2023-aol": {**_REPAIR, "context": True, "least_query": 2, "least_passage": 10},
}
_OF_PAIRS = ("direction", "join", "split", "context", "lower", "prefix", "least_query", "least_passage")


@dataclass(frozen=True)
class GeneratorSettings:
    """How pairs become examples, and how a generator is trained on them.

    ``context`` puts the user of the query before the input ("USER: "), if it is known.
    ``prefix`` is put before the input of sequence-to-sequence models; ``{domain}`` in it is replaced by the name of the
    collection. Queries with fewer than ``least_query`` characters and passages with fewer than ``least_passage``
    characters are left out.
    The text of a passage is made of ``fields``. At most ``most_test`` held-out pairs are measured.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    direction: str = "passage-query"
    join: str = "replicate"
    split: str = "apart"
    context: bool = False
    lower: bool = False
    prefix: str = ""
    least_query: int = 1
    least_passage: int = 1
    text: TextSettings = field(default_factory=TextSettings)
    pace: Schedule = ADAPTER_PACE
    fields: tuple[str, ...] = ()
    most_test: int = 200

    def __post_init__(self) -> None:
        one_of(self.direction, DIRECTIONS, "generator, direction")
        one_of(self.join, JOINS, "generator, join")
        one_of(self.split, SPLITS, "generator, split")

    @classmethod
    def begin(cls, given: Mapping[str, Any]) -> GeneratorSettings:
        """The default schedule of the model: an adapter has another learning rate than a whole model."""
        text = TextSettings(**{name: given[name] for name in ("model", "kind") if name in given})
        return cls(pace=PACE if kind_of(text) == "seq2seq" else ADAPTER_PACE)

    def of_pairs(self) -> dict[str, Any]:
        """The settings that determine the examples."""
        return {name: getattr(self, name) for name in _OF_PAIRS}


def make_pairs(judged: pl.DataFrame, settings: GeneratorSettings) -> tuple[pl.DataFrame, Counter[str]]:
    """The examples of judged passages, without prompts or prefixes, and the number of omitted pairs by reason.

    An example has an input text (``read``), a target text (``written``) and a part (``part``; empty without a split).
    """
    long_query = pl.Series([len(text.strip()) >= settings.least_query for text in judged["query"]], dtype=pl.Boolean)
    stripped = pl.Series([text.strip() for text in judged["passage"]], dtype=pl.String)
    long_passage = stripped.str.len_chars() >= settings.least_passage
    left_out = Counter({NO_QUERY: (~long_query).sum(), NO_PASSAGE: (long_query & ~long_passage).sum()})
    relevant = judged.with_columns(passage=stripped).filter(long_query & long_passage)
    if not relevant.height:
        raise DataError(
            f"generator: each of the {judged.height} pairs has a query of fewer than {settings.least_query} characters "
            f"or a passage of fewer than {settings.least_passage}; give longer texts"
        )
    relevant = relevant.with_columns(name=_part_names(relevant, settings.split))
    if settings.join == "concatenate":
        first = pl.col("query", "context", "name").first()
        relevant = relevant.group_by("query_id", maintain_order=True).agg(first, pl.col("passage").str.join(" "))
    rows = []
    for query, passage, context, name in relevant.select("query", "passage", "context", "name").iter_rows():
        left, right = (passage, query) if settings.direction == "passage-query" else (query, passage)
        left, right = (f"{context}: {left}" if settings.context and context else left), right.strip()
        if settings.lower:
            left, right = left.lower(), right.lower()
        rows.append((left, right, "" if name is None else part_of(name)))
    pairs = pl.DataFrame(rows, schema=dict.fromkeys(("read", "written", "part"), pl.String), orient="row")
    return pairs, +left_out


def of_part(pairs: pl.DataFrame, part: str) -> tuple[list[str], list[str]]:
    """The inputs and the targets of a part; without a split, every part has all pairs."""
    rows = pairs.filter(pl.col("part").is_in([part, ""]))
    return rows["read"].to_list(), rows["written"].to_list()


def _fingerprint(pairs: pl.DataFrame) -> str:
    return fingerprint([pairs[name].to_list() for name in ("read", "written", "part")])


def _part_names(relevant: pl.DataFrame, split: str) -> pl.Series:
    """The name that determines the part of each row; rows that must be in the same part have the same name."""
    words = pl.Series("name", [None if split == "none" else question(text) for text in relevant["query"]], pl.String)
    if split != "apart":
        return words
    query, doc = (names.rank("dense").to_numpy().astype(np.int64) - 1 for names in (words, relevant["doc_id"]))
    together = pl.DataFrame({"component": components(query, doc), "doc_id": relevant["doc_id"]})
    return together.select(pl.col("doc_id").min().over("component")).to_series()


def question(text: str) -> str:
    """The normalized words of a query; queries that differ only in case, blanks or punctuation become equal."""
    return " ".join(word(text.casefold())) or " ".join(text.split())


def components(left: Ints, right: Ints) -> Ints:
    """The connected component of each row; rows with the same left or the same right value are connected."""
    nodes = int(left.max()) + 1
    size = nodes + int(right.max()) + 1
    edges = coo_array((np.ones(len(left)), (left, nodes + right)), shape=(size, size))
    return np.asarray(connected_components(edges, directed=False)[1][left], np.int64)


def prompts_for(read: Sequence[str], kind: str, settings: GeneratorSettings, domain: str = "") -> list[str]:
    """The prompts of the model: the same as in ``docquery`` (with this prefix) and ``local``."""
    if kind == "seq2seq":
        before = settings.prefix.replace(DOMAIN, domain)
        return [before + text for text in read]
    if settings.direction == "passage-query":
        return [from_passage(text) for text in read]
    return [f"Question: {' '.join(text.split()[:_MOST_QUERY_WORDS])}\nPassage:" for text in read]


def check_settings(settings: GeneratorSettings) -> str:
    """Return seq2seq or causal; raise before training if the model could not be used later with these settings."""
    kind = kind_of(settings.text)
    for name in ("context", "prefix"):
        if kind == "causal" and getattr(settings, name):
            raise ConfigError(
                f"generator: the setting {name!r} needs a sequence-to-sequence model; a causal model has a fixed prompt"
            )
    return kind


SHOWN = ("rougeL", "bleu_sentence", "f1")
NO_TEXT_OF_QUERY, NO_TEXT_OF_PASSAGE = "the query has no text", "the passage has no text"
HELD_OUT = "Measured on held-out pairs"
SEEN = "Measured on the training pairs, as in RePair (these values show memorization, not generalization)"


def train_generator(
    data: object, out: Path, settings: GeneratorSettings | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train on the judged passages of a collection, measure on held-out pairs, and write the model with its card."""
    given = settings or GeneratorSettings()
    kind = check_settings(given)
    collection = open_collection(data, given.fields)
    domain = Path(collection.id.removeprefix("irds:")).name
    judged, left_out = read_judged(collection)
    pairs, short = make_pairs(judged, given)
    left_out += short
    identity = {
        "pairs": _fingerprint(pairs), "domain": domain, "settings": given.of_pairs(), "text": asdict(given.text),
        "pace": asdict(given.pace), "fields": list(given.fields), "most_test": given.most_test,
    }  # fmt: skip
    found = claim(out, identity)
    if found is not None:
        return _usable_here(found_before(out, found, left_out_notes(left_out)), given)
    test_read, wanted = (side[: given.most_test] for side in of_part(pairs, "test"))
    if not test_read:
        raise DataError(
            "generator: expected held-out pairs of a query and a passage, found none; give a collection with more "
            "judged queries, or set ⟨split=query⟩"
        )
    prompts = prompts_for(test_read, kind, given, domain)
    before = TextModel.load(given.text, device).losses(prompts, wanted)
    read, written = of_part(pairs, "train")
    if not read:
        raise DataError(f"generator: expected pairs in the part 'train', found none among {pairs.height} pairs")
    about = {**given.of_pairs(), **identity}
    text = replace(given.text, kind=kind)
    made = fit_texts(
        prompts_for(read, kind, given, domain), written, text, given.pace, out / WORK, device, about, progress
    )
    measured = {
        "pairs": {part: len(of_part(pairs, part)[0]) for part in ("train", "test")}, "left_out": dict(left_out),
        "test": _measure(made, prompts, test_read, wanted, before, given),
    }  # fmt: skip
    made.save(out)
    rows = tuple(
        (name, f"{one['mean']:.3f} [{one['low']:.3f}, {one['high']:.3f}]", one["n"])
        for name, one in measured["test"].items()
    )
    title = SEEN if given.split == "none" else HELD_OUT
    # The options of ``askew reformulate`` that write queries with the model and its settings.
    options = {"model": made.settings.model, "adapter": "FOLDER"}
    if made.kind != "causal":
        prefix = given.prefix.replace(DOMAIN, domain)
        options = {"model": "FOLDER", "prefix": prefix, "context": "true" if given.context else ""}
    parts = [part for name, value in options.items() if value for part in ("--set", f"docquery.{name}={value}")]
    use = shlex.join(["--method", "docquery", *parts]) if given.direction == "passage-query" else ""
    card = Card(
        title=f"A generator of {'queries' if given.direction == 'passage-query' else 'passages'} ({made.kind})",
        about="The model was trained on pairs of a query and a passage that answers the query, as in the toolkit "
        "RePair.",
        command=command, base=made.settings.model, seed=given.pace.seed, device=made.device,
        data=({**known_source(collection.id), "collection": domain, "pairs": identity["pairs"], **measured["pairs"]},),
        settings={**given.of_pairs(), **asdict(given.text), **asdict(given.pace), "fields": list(given.fields)},
        measured=measured,
        tables=(
            CardTable(title, ("measure", "mean over queries [95% interval]", "queries"), rows),
            CardTable("Use: askew reformulate QUERIES --docs DOCS --out FILE", ("with these options",), (
                (use or "this model cannot reformulate queries, because it writes passages",),)),
        ),
        limits=("The model invents facts and repeats the lean of its training data. Filter and measure its texts.",),
        extra={"identity": dict(identity), "use": use},
    )  # fmt: skip
    return _usable_here(finished(out, card, left_out_notes(left_out)), given)


def _usable_here(done: Trained, job: GeneratorSettings) -> Trained:
    """Replace the public name of a local model in ``use`` by its path, so that the options work as they are."""
    model = job.text.model
    named, here = f"local.model={public_text(model)}", f"local.model={model}"
    return replace(done, use=shlex.join(here if word == named else word for word in shlex.split(done.use)))


def read_judged(collection: Collection) -> tuple[pl.DataFrame, Counter[str]]:
    """The relevant passages of each query, without duplicates, and the number of pairs without a text.

    The columns are query_id, doc_id, query, context (null if it is not known) and passage.
    """
    queries = pl.DataFrame(collection.queries).rename({"text": "query"})
    if "context" not in queries.columns:
        queries = queries.with_columns(context=pl.lit(None, pl.String))
    qrels = pl.DataFrame(collection.judgements).filter(pl.col("relevance") > 0)
    relevant = qrels.select("query_id", "doc_id").unique(maintain_order=True)
    asked = relevant.join(
        queries.select("query_id", "query", "context"), on="query_id", how="inner", maintain_order="left"
    )
    found = asked.join(_passages(collection, asked["doc_id"]), on="doc_id", how="inner", maintain_order="left")
    if not found.height:
        raise DataError(f"collection {collection.id}: expected queries with relevant passages, found none")
    left_out = {NO_TEXT_OF_QUERY: relevant.height - asked.height, NO_TEXT_OF_PASSAGE: asked.height - found.height}
    return found, +Counter(left_out)


def _passages(collection: Collection, doc_ids: pl.Series) -> pl.DataFrame:
    """The texts of some documents by id, streamed."""
    wanted = doc_ids.unique().to_arrow()
    parts = []
    for batch in collection.documents():
        rows = batch.filter(pc.is_in(batch["doc_id"], value_set=wanted.cast(batch["doc_id"].type)))
        if rows.num_rows:
            parts.append(pl.DataFrame(rows.select(["doc_id", "text"])))
    if not parts:
        raise DataError(f"collection {collection.id}: none of the judged documents is in the collection")
    passages = pl.concat(parts).unique("doc_id", keep="first", maintain_order=True)
    return passages.select("doc_id", passage=pl.col("text").fill_null(""))


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
