"""train selector: train a model that selects among the candidates of a build without judgements.

The model is the cross-encoder of the Refairmulate paper, and the candidate with the highest score is selected. The
store of a build has all candidates and their results. A published dataset has only the chosen pairs: enough to train
on, but not enough to choose among candidates. Queries are split by their words into ``train`` and ``test``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from askew.core.address import public
from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError, one_of
from askew.core.files import fingerprint, parse_json, write_whole
from askew.core.folders import walk
from askew.core.measure import Direction, gain_column, new_column, old_column
from askew.core.outcome import UNKNOWN_SIGN, signs
from askew.core.ranking import Flags, Floats, Ints
from askew.core.store.manifest import Manifest
from askew.core.store.store import Store
from askew.core.tables import part_of
from askew.core.text import SALT, normal
from askew.data.columns import parquet_frames
from askew.measures.catalogue import Catalogue, MeasureRequest
from askew.measures.statistics.curves import average_precision
from askew.measures.statistics.intervals import size_bounds
from askew.measures.statistics.significance import Paired, paired
from askew.models.find import MINILM, identify, load_parts
from askew.pairs.dataset.checking import read_statement
from askew.pairs.dataset.splits import no_texts
from askew.pairs.resources import frames_of
from askew.pairs.stages import finished_pairs, measures_of
from askew.search.disk import StoredTexts
from askew.train.card import WORK, Card, CardTable, claim
from askew.train.common import Progress, Schedule, Trained, finished, found_before, write_held_out
from askew.train.crossencoder import CrossEncoder, Examples, RankerSettings, RankerTexts, first_tokens, fit

LEARNS = ("refairmulate", "effectiveness", "no-loss")
PASSAGES = ("none", "separator", "literal")
POSITIVE, NEGATIVE, NEITHER = 1, 0, -1
KEEP_ORIGINAL = NO_DOCUMENT = -1
_MARKS = 8

# The Refairmulate paper: learning rate 2e-5, 10% warm-up, batches of 16, one epoch, texts without passages. Its public
# inference code adds the passages.
PACE = Schedule(epochs=1.0, batch_size=16, learning_rate=2e-5, warmup=0.1, weight_decay=0.01, save_every=2000)
PRESETS: dict[str, dict[str, Any]] = {"refairmulate2025": {}, "refairmulate2025-code": {"passages": "literal"}}


@dataclass(frozen=True)
class SelectorSettings:
    """How a selector is trained: the task and the input of the cross-encoder.

    ``most_each`` limits the examples of each label per query.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    learns: str = "refairmulate"
    passages: str = "none"
    model: str = MINILM
    most_each: int = 4
    text_tokens: int = 48
    passage_tokens: int = 96
    pace: Schedule = PACE

    def __post_init__(self) -> None:
        one_of(self.learns, LEARNS, "selector, learns")
        one_of(self.passages, PASSAGES, "selector, passages")
        if min(self.most_each, self.text_tokens, self.passage_tokens) < 1:
            raise ConfigError("selector: expected ⟨most_each⟩, ⟨text_tokens⟩ and ⟨passage_tokens⟩ to be 1 or more")

    def of_encoder(self) -> dict[str, Any]:
        """The settings that determine what the cross-encoder reads and learns."""
        return {name: value for name, value in asdict(self).items() if name != "pace"}

    def ranker(self) -> RankerSettings:
        """The settings of the cross-encoder."""
        side = self.text_tokens + (0 if self.passages == "none" else 1 + self.passage_tokens)
        return RankerSettings(self.model, most_tokens=2 * side + _MARKS, most_left_tokens=side)


def sample(query: Ints, labels: npt.NDArray[Any], most: int, seed: int = 7) -> Ints:
    """The training rows: at most ``most`` for each label and query, sampled at random; in the order of the rows."""
    rows = np.flatnonzero(labels != NEITHER)
    draws = np.random.default_rng([seed, len(labels)]).random(len(labels))[rows]
    drawn = pl.DataFrame({"query": query[rows], "label": labels[rows], "row": rows, "draw": draws})
    return drawn.filter(pl.col("draw").rank("ordinal").over("query", "label") <= most)["row"].to_numpy()


def pair_texts(tokenizer: Any, built: Built, settings: SelectorSettings, rows: Ints) -> tuple[list[str], list[str]]:
    """What the model reads on the left side for each query, and on the right side for each row."""
    sides = [built.originals, built.table["text"].gather(rows).to_list()]
    if settings.passages == "none":
        left, right = (first_tokens(tokenizer, side, settings.text_tokens) for side in sides)
        return left, right
    if built.passages is None:
        raise ConfigError(
            "selector: ⟨passages⟩ needs the text of the top-ranked document of each query, but the data has none; "
            "train on a store that has runs and an index with the texts of the documents"
        )
    passages, first, candidate_first = built.passages
    mark, most = "[SEP]", settings.text_tokens + 1 + settings.passage_tokens
    if settings.passages == "separator":
        mark = tokenizer.sep_token
        sides = [first_tokens(tokenizer, side, settings.text_tokens) for side in sides]
        passages = first_tokens(tokenizer, passages, settings.passage_tokens)
    left, right = (
        first_tokens(
            tokenizer, [f"{text}{mark}{passages[doc]}" for text, doc in zip(side, docs.tolist(), strict=True)], most
        )
        for side, docs in zip(sides, (first, candidate_first[rows]), strict=True)
    )
    return left, right


def fit_selector(
    built: Built, labels: npt.NDArray[Any], settings: SelectorSettings, work: Path, device: str | None = None,
    identity: Mapping[str, Any] | None = None, progress: Progress | None = None,
) -> CrossEncoder:  # fmt: skip
    """Train a cross-encoder to distinguish candidates labeled POSITIVE and NEGATIVE; other rows are not used."""
    lost = [name for label, name in ((POSITIVE, "positive"), (NEGATIVE, "negative")) if not (labels == label).any()]
    if lost:
        raise DataError(
            f"selector: no pair of query and reformulation in the training data has the label {lost[0]!r} for the "
            f"task {settings.learns!r}; use more queries"
        )
    rows = sample(built.query, labels, settings.most_each, settings.pace.seed)
    examples = Examples(built.query[rows], np.arange(len(rows))[:, None], labels[rows].astype(np.float64)[:, None])
    about = {"selector": settings.of_encoder(), **(identity or {})}
    (tokenizer,) = load_parts(settings.model, "cross", "AutoTokenizer", extra="train")
    texts = RankerTexts(*pair_texts(tokenizer, built, settings, rows))
    return fit(texts, examples, settings.ranker(), settings.pace, work, device, about, progress)


def score_candidates(encoder: CrossEncoder, built: Built, settings: SelectorSettings, rows: Ints) -> Floats:
    """The score of some candidates; higher is better."""
    left, right = pair_texts(encoder.tokenizer, built, settings, rows)
    size = 1024 if encoder.device.startswith("cuda") else 64
    return np.asarray(encoder.score([left[query] for query in built.query[rows].tolist()], right, size), np.float64)


def best_candidate(query: Ints, queries: int, worth: Floats, allowed: Flags | None = None) -> Ints:
    """For each query, the allowed row with the highest worth (of equals the first); KEEP_ORIGINAL if there is none."""
    rows = np.arange(len(query)) if allowed is None else np.flatnonzero(allowed)
    order = rows[np.lexsort((rows, -worth[rows]))]
    chosen = np.full(queries, KEEP_ORIGINAL, np.int64)
    # The best is written last, and so it stays.
    chosen[query[order[::-1]]] = order[::-1]
    return chosen


def kept_share(old: Ints, new: Ints) -> Floats:
    """Return for each row the share of the documents in ``old`` that are also in ``new``; 0 if ``old`` has none."""
    there = old != NO_DOCUMENT
    kept = (old[:, :, None] == new[:, None, :]).any(axis=2) & there
    return np.asarray(kept.sum(axis=1) / np.maximum(there.sum(axis=1), 1), np.float64)


def least_leaning(
    query: Ints, queries: int, lean: Floats, original_lean: Floats, kept: Floats, least_kept: float
) -> Ints:
    """For each query, the candidate with the least lean of its results; KEEP_ORIGINAL if no candidate is eligible.

    A candidate is eligible if its results lean less than those of the original query and keep at least the share
    ``least_kept`` of them. Of candidates with equal lean, the one that keeps most is chosen.
    """
    allowed = (kept >= least_kept) & (lean < original_lean[query])
    order = np.lexsort((-kept, lean))
    worth = np.empty(len(query))
    worth[order] = -np.arange(len(order), dtype=np.float64)
    return best_candidate(query, queries, worth, allowed)


EFFECTIVENESS, LEAN = "RR@10", "ARaB(tf)@10"
# The parts of the queries, also for a rewriter; as in RePair.
SHARES = {"train": 0.7, "test": 0.3}
DEPTH = 10


@dataclass(frozen=True)
class Built:
    """The candidates of a dataset.

    ``query`` has the number of the query of each row. ``whole`` is true if no candidate is left out, so that a choice
    among them is the same as at query time. ``found`` has the top-ranked documents of each query and of each candidate;
    shorter lists are padded with NO_DOCUMENT. ``scored`` has the texts of the measures.
    """

    table: pl.DataFrame
    query: Ints
    query_ids: Sequence[str]
    originals: Sequence[str]
    whole: bool
    found: tuple[Ints, Ints] | None = None
    index: Path | None = None
    scored: Sequence[str] = field(default=(), kw_only=True)

    @cached_property
    def measures(self) -> dict[str, MeasureRequest]:
        """The measures of originals and candidates, by text, without those whose code is in a Python file.

        Somebody else may have written the build, so none of its code is run.
        """
        return {one.text: one for one in Catalogue().complete(text for text in self.scored if ".py:" not in text)}

    @cached_property
    def first(self) -> Ints:
        """The first row of each query."""
        return np.searchsorted(self.query, np.arange(len(self.query_ids)))

    def new(self, measure: str) -> Floats:
        """Return the values of a measure by candidate."""
        return self._column(new_column(measure))

    def old(self, measure: str) -> Floats:
        """Return the values of a measure for the original queries, by query."""
        return self._column(old_column(measure))[self.first]

    def gain(self, measure: str) -> Floats:
        """Return the gain of each candidate over its original."""
        return self._column(gain_column(measure))

    def _column(self, name: str) -> Floats:
        if name not in self.table.columns:
            raise DataError(f"pairs: expected the column {name!r}, found {', '.join(self.table.columns)}")
        return self.table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()

    def parts(self) -> npt.NDArray[np.str_]:
        """Return the part of each query: the split of the published dataset, or one by the normalized text.

        Queries with the same normalized text are in the same part.
        """
        if "split" in self.table.columns:
            return self.table["split"].gather(self.first).to_numpy().astype(np.str_)
        return np.array([part_of(normal(text), SHARES, SALT) for text in self.originals])

    @cached_property
    def passages(self) -> tuple[list[str], Ints, Ints] | None:
        """Return the top-ranked passages, and the position of that of each query and candidate; None without texts."""
        if self.found is None or self.index is None:
            return None
        kept = StoredTexts(self.index)
        firsts = [docs[:, 0] for docs in self.found]
        used, places = np.unique(np.concatenate(firsts), return_inverse=True)
        first, candidate_first = np.split(places, [len(firsts[0])])
        return ["" if doc == NO_DOCUMENT else kept[doc] for doc in used.tolist()], first, candidate_first


def read_built(source: Path) -> Built:
    """Read candidates from the store of a build, or from a published dataset (only the chosen pairs)."""
    if (source / "askew.json").is_file():
        stated = read_statement(walk(source)[0]).facts
        return built_of(published_pairs(source), [one.name for one in stated.measures], whole=False)
    store, pairs = pairs_in_store(source)
    steps = {manifest.key: manifest for manifest in store.steps()}
    runs = steps.get(steps[pairs.input_key].input_key) if pairs.input_key in steps else None
    built = built_of(pl.concat(frames_of(store, pairs)), measures_of(pairs), whole=True)
    if runs is None:
        return built
    lists = pl.concat(frames_of(store, runs, ["variant_id", "doc"]))
    found = _top_documents(lists, pl.Series(built.query_ids)), _top_documents(lists, built.table["variant_id"])
    indexes = sorted(source.glob("index-bm25-*"))
    return replace(built, found=found, index=indexes[0] if len(indexes) == 1 else None)


def pairs_in_store(source: Path) -> tuple[Store, Manifest]:
    """The store of a build, and its step with the pairs."""
    store = Store(source)
    pairs = finished_pairs(store)
    if len(pairs) != 1:
        raise DataError(
            f"{source}: expected a published dataset, or a store with one finished step 'pairs', found {len(pairs)}; "
            "make one with askew run RECIPE --store FOLDER"
        )
    return store, pairs[0]


def published_pairs(folder: Path) -> pl.DataFrame:
    """Read all pairs of a dataset, with the texts of the original queries and the split of each pair."""
    files = sorted((folder / "data").glob("*.parquet"))
    if not files:
        raise DataError(f"{folder}: expected a published dataset with files below data/, found none")
    parts = zip(files, parquet_frames(files, "dataset"), strict=True)
    pairs = pl.concat(frame.with_columns(split=pl.lit(file.name.partition("-")[0])) for file, frame in parts)
    if "original_text" in pairs.columns and pairs["original_text"].null_count():
        raise no_texts(folder)
    return pairs


def built_of(table: pl.DataFrame, scored: Sequence[str], whole: bool) -> Built:
    """Make candidates from a table with one row for each candidate; ``scored`` has the texts of its measures."""
    missing = [name for name in ("query_id", "text", "original_text") if name not in table.columns]
    if missing:
        raise DataError(f"pairs: expected the column {missing[0]!r}, found {', '.join(table.columns)}")
    if not table.height:
        raise DataError("pairs: expected at least one pair, found none")
    if table["original_text"].null_count():
        raise no_texts("pairs")
    ids = table["query_id"].unique(maintain_order=True)
    numbers = pl.DataFrame({"query_id": ids, "_query": np.arange(len(ids))})
    joined = table.join(numbers, on="query_id", maintain_order="left").sort("_query", maintain_order=True)
    originals = joined.group_by("_query", maintain_order=True).agg(pl.col("original_text").first())["original_text"]
    numbered = joined["_query"].to_numpy()
    return Built(joined.drop("_query"), numbered, ids.to_list(), originals.to_list(), whole, scored=scored)


def _top_documents(lists: pl.DataFrame, ids: pl.Series) -> Ints:
    """Return the top-ranked documents of queries or candidates, one row for each."""
    cut = lists.select("variant_id", doc=pl.col("doc").list.head(DEPTH))
    found = ids.to_frame("variant_id").join(cut, on="variant_id", how="left", maintain_order="left")["doc"]
    there = np.arange(DEPTH) < found.list.len().fill_null(0).to_numpy()[:, None]
    docs = np.full(there.shape, NO_DOCUMENT, np.int64)
    docs[there] = found.explode().drop_nulls().to_numpy()
    return docs


def labels_for(built: Built, learns: str) -> npt.NDArray[np.int8]:
    """Return the training label of each candidate: POSITIVE, NEGATIVE or NEITHER."""
    if learns == "refairmulate":
        missing = [name for name in ("fair", "negative") if name not in built.table.columns]
        if missing:
            raise DataError(
                f"pairs: expected the column {missing[0]!r}, which marks a subset of pairs; build the dataset with the "
                "selector 'refairmulate'"
            )
        fair, negative = (built.table[name].to_numpy().astype(bool) for name in ("fair", "negative"))
        if not (negative & ~fair).any():
            raise DataError(
                "pairs: expected negative pairs (pairs whose reformulation worsens effectiveness or lean), found "
                "none. A selector cannot be trained on positive examples alone. "
                "Build the dataset with the selector 'refairmulate', which marks negative pairs"
            )
        return np.where(fair, POSITIVE, np.where(negative, NEGATIVE, NEITHER)).astype(np.int8)
    sign = signs(built.gain(EFFECTIVENESS))
    if learns == "effectiveness":
        return np.where(sign == 1, POSITIVE, np.where(sign == -1, NEGATIVE, NEITHER)).astype(np.int8)
    one_of(learns, LEARNS, "selector, learns")
    return np.where(sign == UNKNOWN_SIGN, NEITHER, np.where(sign >= 0, POSITIVE, NEGATIVE)).astype(np.int8)


def effects(built: Built, queries: Ints, chosen: Ints) -> dict[str, Paired]:
    """Compare the row chosen for each of some queries with the original query, by each measure.

    Signed lean is compared by its absolute value per query. A query is left out of a measure if the original or the
    chosen query has no value.
    """
    found = {}
    for measure, asked in built.measures.items():
        direction, bounds = asked.direction, asked.bounds
        old = built.old(measure)[queries]
        new = np.where(chosen == KEEP_ORIGINAL, old, built.new(measure)[chosen])
        if direction is Direction.ZERO:
            old, new, direction, bounds = np.abs(old), np.abs(new), Direction.DOWN, size_bounds(bounds)
        there = ~np.isnan(old) & ~np.isnan(new)
        found[measure] = paired(old[there], new[there], direction, bounds)
    return found


ABOUT = "selector.json"
CROSS_ENCODER = "cross-encoder"
# The simple rule that a selector is compared with; it needs no training.
LEAST_KEPT = 0.5
SIMPLE_RULE = f"least leaning, {LEAST_KEPT:.0%} of the top {DEPTH} kept"
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
    f"The row '{SIMPLE_RULE}' is a rule that needs no training. It selects reformulations by the {LEAN} of their "
    f"results. A comparison by {LEAN} therefore favors this rule over a selector that does not use {LEAN}.",
    "The row 'oracle' uses the relevance judgements to choose reformulations, so it is not a selector.",
)  # fmt: skip


def train_selector(
    data: str | Path | Built, out: Path, settings: SelectorSettings | None = None, device: str | None = None,
    command: str = "", progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train a selector on the candidates of a store or a published dataset, and measure it on held-out queries."""
    built = data if isinstance(data, Built) else read_built(Path(data))
    given = settings or SelectorSettings()
    parts = built.parts()
    test = np.flatnonzero(parts == "test")
    if not len(test):
        raise DataError(
            f"selector: none of the {len(parts)} queries is in the split 'test'; build a dataset with more queries",
            code="no-test-queries",
            queries=len(parts),
        )
    labels = np.where(parts[built.query] == "train", labels_for(built, given.learns), NEITHER)
    data_of = [list(built.originals), built.table["text"].to_list(), built.query.tolist(), labels.tolist()]
    identity: dict[str, Any] = {
        "data": fingerprint(data_of), "weights": identify(given.model), "settings": given.of_encoder(),
        "pace": asdict(given.pace),
    }  # fmt: skip
    before = claim(out, identity)
    if before is not None:
        return found_before(out, before)
    encoder = fit_selector(built, labels, given, out / WORK, device, identity, progress)
    scores = np.full(len(built.query), np.nan)
    held_out = np.flatnonzero(np.isin(built.query, test))
    scores[held_out] = score_candidates(encoder, built, given, held_out)
    apart, apart_table = _told_apart(built, held_out, scores, given.learns)
    choices, choices_table = _compare_choices(built, test, scores) if built.whole else ({}, [])
    measured = {
        "queries": {name: int((parts == name).sum()) for name in sorted(set(parts.tolist()))},
        "examples": len(sample(built.query, labels, given.most_each, given.pace.seed)),
        "told apart": apart, **choices,
    }  # fmt: skip
    encoder.save(out)
    tested = test.tolist()
    write_held_out(out, [built.query_ids[query] for query in tested], [built.originals[query] for query in tested])
    write_whole(out / ABOUT, json.dumps({"settings": public(given.of_encoder())}, indent=1) + "\n")
    card = Card(
        title="A selector of query reformulations",
        about="A cross-encoder that reads a query and a reformulation of this query. It was trained to separate "
        f"positive and negative pairs of query and reformulation. {_PAIRS[given.learns]} Use it with "
        "`askew bench COLLECTION --method reformulate:METHOD:FOLDER --queries FOLDER/held-out.jsonl`.",
        command=command, base=str(identity["weights"]), data=({"pairs": identity["data"]},), seed=given.pace.seed,
        settings={**given.of_encoder(), **asdict(given.pace)}, device=encoder.device, measured=measured,
        tables=(*choices_table, apart_table), limits=_CHOICE_LIMITS if choices else _LIMITS,
        extra={"identity": identity},
    )  # fmt: skip
    return finished(out, card)


def _told_apart(built: Built, held_out: Ints, scores: Floats, learns: str) -> tuple[dict[str, Any], CardTable]:
    """How well the scores separate held-out positive and negative pairs: average precision, and the random baseline."""
    labels = labels_for(built, learns)
    known = held_out[labels[held_out] != NEITHER]
    truth = (labels[known] == POSITIVE).astype(np.int64)
    if not 0 < truth.sum() < len(truth):
        raise DataError(
            "selector: expected positive and negative pairs of query and reformulation in the test part, found only "
            "one of these two kinds; build pairs of more queries"
        )
    queries = [built.query_ids[query] for query in built.query[known].tolist()]
    found = average_precision(scores[known], truth, queries)
    table = CardTable(
        "How well the selector separates positive and negative pairs (defined above) of held-out queries",
        ("pairs", "queries", "average precision", "95% interval", "random baseline"),
        ((len(known), found.queries, found.value, f"{found.low:.4f} to {found.high:.4f}", float(truth.mean())),),
    )
    return {**asdict(found), "pairs": len(known), "positive": float(truth.mean())}, table


def _compare_choices(built: Built, test: Ints, scores: Floats) -> tuple[dict[str, Any], list[CardTable]]:
    """The effects of the selector, the simple rule and an oracle on held-out queries, and as a table.

    The oracle reads the judgements. It selects the candidate with the largest sum of the gains in effectiveness and
    lean, among those without a loss in either.
    """
    queries = len(built.query_ids)
    chosen = {"original": np.full(queries, KEEP_ORIGINAL), CROSS_ENCODER: best_candidate(built.query, queries, scores)}
    if built.found is not None:
        kept = kept_share(built.found[0][built.query], built.found[1])
        lean, old_lean = np.abs(built.new(LEAN)), np.abs(built.old(LEAN))
        chosen[SIMPLE_RULE] = least_leaning(built.query, queries, lean, old_lean, kept, LEAST_KEPT)
    both = np.stack([built.gain(measure) for measure in (EFFECTIVENESS, LEAN)])
    improves = (both >= 0).all(axis=0) & (both.sum(axis=0) > 0)
    chosen["oracle"] = best_candidate(built.query, queries, both.sum(axis=0), improves)
    choices, rows = {}, []
    for name, taken in chosen.items():
        changed, tests = int((taken[test] != KEEP_ORIGINAL).sum()), effects(built, test, taken[test])
        choices[name] = {"changed": changed, **{measure: asdict(one) for measure, one in tests.items()}}
        main = tests[EFFECTIVENESS]
        cells = [
            f"{one.new:.4f}, gain {one.gain:+.4f} " + ("" if one.low is None else f"[{one.low:+.4f}, {one.high:+.4f}]")
            for one in tests.values()
        ]
        rows.append((name, main.n, changed, main.improved, main.worsened, *cells))
    # Bars mean that absolute values are compared.
    measures = [f"|{name}|" if asked.direction is Direction.ZERO else name for name, asked in built.measures.items()]
    table = CardTable(
        "Reformulations chosen for held-out queries: mean of each measure, and mean gain over the original query with "
        "its 95% interval",
        ("choice", "n", "changed", "improved", "worsened", *measures),
        tuple(rows),
    )
    return {"choices": choices}, [table]


def read_settings(folder: Path) -> SelectorSettings:
    """The settings of a trained selector; its model is the folder."""
    if not (folder / ABOUT).is_file():
        raise DataError(f"{folder}: expected a folder of askew train selector with {ABOUT}, found none")
    try:
        found = parse_json((folder / ABOUT).read_bytes())
        return SelectorSettings(**{**found["settings"], "model": str(folder)})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"{folder / ABOUT}: the file cannot be read ({type(error).__name__}); train the selector again"
        ) from None


def choose(folder: Path, built: Built, device: str | None = None) -> Ints:
    """The row of the candidate with the highest score for each query; KEEP_ORIGINAL if it has no candidates."""
    settings = read_settings(folder)
    rows = np.arange(len(built.query))
    encoder = CrossEncoder.load(settings.ranker(), device)
    count_model_calls(len(rows))
    scores = score_candidates(encoder, built, settings, rows)
    return best_candidate(built.query, len(built.query_ids), scores)
