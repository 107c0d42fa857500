"""train ranker: train a cross-encoder on a run, judgements and documents. This is ``askew train ranker``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from askew.core.errors import DataError
from askew.core.files import digest_file, fingerprint
from askew.core.ranking import Ints, Rankings
from askew.core.tables import part_of
from askew.core.text import SALT, normal
from askew.measures.counts import gather_texts
from askew.models.find import identify
from askew.search.annotated import (
    AnnotatedRun,
    Counting,
    JudgedPairs,
    document_lean,
    leaning_groups,
    read_ranked,
    refuse_unknown,
)
from askew.train.card import WORK, Card, claim
from askew.train.common import Progress, Schedule, Trained, finished, found_before, write_held_out
from askew.train.crossencoder import PACE, Examples, RankerSettings, RankerTexts, fit
from askew.train.negatives import NO_TEXT, PRESETS, NegativeSampling, RankerData, groups_of, sample_negatives

OTHER_PART = "another part of the split"
# The loss of Seyedsalehi et al. is defined with the boolean lean, whichever lean the negatives were sampled by.
_LOSS_LEAN = {"bias-aware": "bool"}


@dataclass(frozen=True)
class RankerJob:
    """How a ranker is trained: the negatives, the model and its loss, the schedule, and the queries.

    ``part`` is train, dev or test of a split by the words of queries (an empty text: all queries).
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {name: {"sampling": one} for name, one in PRESETS.items()}
    sampling: NegativeSampling = field(default_factory=NegativeSampling)
    counting: Counting = field(default_factory=Counting)
    settings: RankerSettings = field(default_factory=RankerSettings)
    pace: Schedule = PACE
    negatives_each: int = 4
    part: str = "train"


@dataclass(frozen=True)
class RankerTrainingSet:
    """The training set of a ranker.

    ``counts`` has the numbers of left-out queries by reason, ``held_out`` the texts of the queries of other parts by
    id.
    """

    texts: RankerTexts
    examples: Examples
    counts: Mapping[str, int]
    held_out: Mapping[str, str]
    notes: list[str]


def training_set(data: RankerData, job: RankerJob, progress: Progress | None = None) -> RankerTrainingSet:
    """The examples that ``train_ranker`` trains on with these settings."""
    ranked = read_ranked(data.run, data.docs, data.qrels, job.counting, job.sampling.depth, progress)
    words = data.texts()
    kept, left_out = _kept(ranked, words, job.part)
    # The lists and judgements of these queries, renumbered.
    lists = ranked.rankings.select(kept)
    number = np.full(len(ranked.rankings), -1, np.int64)
    number[kept] = np.arange(len(kept))
    row = number[ranked.judged.row]
    judged = JudgedPairs(row[row >= 0], ranked.judged.doc[row >= 0], ranked.judged.relevant[row >= 0])
    lean = document_lean(ranked.mentions, job.counting.lean, job.counting.groups.difference)
    found = sample_negatives(lists, lean, judged, job.sampling)
    relevant = judged.row[judged.relevant], judged.doc[judged.relevant]
    examples = groups_of(relevant, (found.row, found.doc), len(kept), job.negatives_each, job.sampling.seed)
    left_out.update(examples.left_out)
    texts, examples = _texts(ranked, lists, words, examples, job)
    counts = {**left_out, **found.short}
    notes = [*ranked.notes, *(f"{number:,} queries: {reason}" for reason, number in counts.items())]
    asked = ranked.rankings.query_ids.to_pylist()
    held = {name: words[name] for name in asked if job.part and name in words and _part(words[name]) != job.part}
    return RankerTrainingSet(texts, examples, counts, held, notes)


def train_ranker(
    data: RankerData, out: Path, settings: RankerJob | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train a cross-encoder on the negatives of a run. sentence-transformers can load the folder ``out``."""
    given = settings or RankerJob()
    made = training_set(data, given, progress)
    examples, held = made.examples, made.held_out
    data_of = [list(made.texts.left), list(made.texts.right), examples.left.tolist(), examples.right.tolist()]
    identity: dict[str, object] = {
        "data": fingerprint(data_of), "weights": identify(given.settings.model), "negatives": asdict(given.sampling),
        "counting": given.counting.facts(), "settings": asdict(given.settings), "pace": asdict(given.pace),
        "negatives_each": given.negatives_each, "part": given.part,
    }  # fmt: skip
    before = claim(out, identity)
    if before is not None:
        return found_before(out, before, made.notes)
    measured = {
        "queries": len(np.unique(examples.left)), "pairs": int((examples.right >= 0).sum()), "held_out": len(held),
        "counts": made.counts,
    }  # fmt: skip
    encoder = fit(made.texts, examples, given.settings, given.pace, out / WORK, device, identity, progress)
    encoder.save(out)
    write_held_out(out, list(held), list(held.values()))
    sources = (data.run, data.docs, data.queries, data.qrels)
    files = [Path(one) for one in sources if isinstance(one, str | Path) and Path(one).is_file()]
    rows = tuple({"file": file.name, "sha256": digest_file(file)[:16]} for file in files)
    counts = {"queries": measured["queries"], "pairs": measured["pairs"], "held out": measured["held_out"]}
    count, leaning = given.sampling.count, given.sampling.leaning
    card = Card(
        title="A cross-encoder that ranks documents",
        about=f"The model was trained on the documents of a run. Each query has {count} negatives (documents that the "
        f"model learns to rank low). Up to {leaning} of them are the documents with the highest lean. "
        "Use the model with `askew rerank RUN --model FOLDER` or `askew bench --method rerank:FOLDER`.",
        command=command, base=str(identity["weights"]), data=(*rows, counts), seed=given.pace.seed,
        settings={**asdict(given.settings), **asdict(given.pace)}, device=encoder.device, measured=measured,
        limits=(
            "Lean is measured by counting the words of a lexicon; such words are not bias by themselves.",
            "To measure the effect of the model, take queries that the model was not trained on. Rerank a run of these "
            "queries with `askew rerank`, and compare the two runs with `askew compare`.",
        ),
        extra={"identity": identity},
    )  # fmt: skip
    return finished(out, card, made.notes)


def _part(text: str) -> str:
    """The part of a query by its words, so that the same query is never in two parts, whatever its ids."""
    return part_of(normal(text), salt=SALT)


def _kept(ranked: AnnotatedRun, words: Mapping[str, str], part: str) -> tuple[Ints, Counter[str]]:
    """The rows of the run to train on: queries with a text, in the requested part. Also count the others."""
    left_out: Counter[str] = Counter()
    kept = []
    for row, query in enumerate(ranked.rankings.query_ids.to_pylist()):
        if query not in words:
            left_out[NO_TEXT] += 1
        elif part and _part(words[query]) != part:
            left_out[OTHER_PART] += 1
        else:
            kept.append(row)
    if not kept:
        why = ", ".join(f"{reason}: {count}" for reason, count in left_out.items())
        where = f" in the part {part!r} of the split" if part else ""
        raise DataError(f"training: no query{where} has a text ({why})")
    return np.array(kept, np.int64), left_out


def _texts(
    ranked: AnnotatedRun, lists: Rankings, words: Mapping[str, str], examples: Examples, job: RankerJob
) -> tuple[RankerTexts, Examples]:
    """The texts that the examples use, and the examples with indexes into these texts."""
    used, places = np.unique(examples.right, return_inverse=True)
    shift = int(used[0] < 0) if len(used) else 0
    used = used[shift:]
    right = places.reshape(examples.right.shape) - shift
    needed = np.zeros(len(ranked.universe.doc_ids), np.bool_)
    needed[used] = True
    documents = gather_texts(ranked.source, ranked.universe.doc_ids, needed)
    refuse_unknown("judgements", ranked.universe, documents.is_valid().to_numpy(zero_copy_only=False), needed)
    kind = _LOSS_LEAN.get(job.settings.loss, job.counting.lean)
    lean = document_lean(ranked.mentions, kind, job.counting.groups.difference)[used]
    group = leaning_groups(ranked.mentions)[used]
    texts = RankerTexts(
        [words[one] for one in lists.query_ids.to_pylist()], documents.take(pa.array(used)).to_pylist(), lean, group
    )
    return texts, replace(examples, right=right)
