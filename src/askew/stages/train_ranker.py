"""train ranker: a run, judgements and documents in, a cross-encoder out. The whole of ``askew train ranker``."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from askew.core.errors import DataError, StoreError
from askew.core.fingerprint import digest_file, fingerprint
from askew.core.lexicon import load_lexicon
from askew.core.ranking import Ints
from askew.core.split import part_of
from askew.corpora.queries import read_queries
from askew.stages.negatives import (
    NO_TEXT,
    Counting,
    Ranked,
    document_lean,
    gather_texts,
    leaning_groups,
    read_ranked,
    refuse_unknown,
)
from askew.stages.texts import Progress
from askew.stages.universe import QrelsLike, RunLike
from askew.trainers.card import Card, read_measured, write_card
from askew.trainers.common import Pace
from askew.trainers.negatives import Judgements, Lists, Sampling, groups_of, sample_negatives
from askew.trainers.ranker import PACE, Examples, RankerSettings, Texts, fit

OTHER_PART = "another part of the split"
WORK = "checkpoints"
# A loss of Seyedsalehi et al. is published with the boolean lean, whatever the negatives were sampled by.
_LOSS_LEAN = {"bias-aware": "bool"}


@dataclass(frozen=True)
class RankerJob:
    """How a ranker is trained: the negatives, the model and its loss, the pace; which queries.

    ``part`` is train, dev or test of a split by query id (an empty text takes all queries).
    """

    sampling: Sampling = field(default_factory=Sampling)
    counting: Counting = field(default_factory=Counting)
    settings: RankerSettings = field(default_factory=RankerSettings)
    pace: Pace = PACE
    negatives_each: int = 4
    part: str = "train"


@dataclass(frozen=True)
class Trained:
    """What a training came to."""

    out: Path
    queries: int
    pairs: int
    left_out: Mapping[str, int]
    short: Mapping[str, int]
    notes: Sequence[str]
    new: bool = True


def train_ranker(
    run: RunLike, docs: object, queries: str | Path, qrels: QrelsLike, out: Path, job: RankerJob | None = None,
    device: str | None = None, command: str = "", progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Train a cross-encoder on the negatives of a run; the folder ``out`` opens in sentence-transformers.

    A training that was stopped goes on; one that is finished is not done again.
    """
    given = job or RankerJob()
    ranked = read_ranked(run, docs, qrels, given.counting, given.sampling.depth, progress)
    table = read_queries(Path(queries))
    kept, left_out = _kept(ranked, table, given.part)
    lists, judged = _restrict(ranked, kept)
    lean = document_lean(ranked.mentions, given.counting.lean, given.counting.groups)
    found = sample_negatives(lists, lean, judged, given.sampling)
    relevant = judged.row[judged.relevant], judged.doc[judged.relevant]
    examples = groups_of(relevant, (found.row, found.doc), len(kept), given.negatives_each, given.sampling.seed)
    left_out.update(examples.left_out)
    texts, examples = _texts(ranked, lists, table, examples, given)
    identity = _identity(texts, examples, given)
    pairs = int((examples.right >= 0).sum())
    done = Trained(out, len(kept), pairs, dict(left_out), dict(found.short), ranked.notes)
    if finished(out, identity):
        return replace(done, new=False)
    encoder = fit(texts, examples, given.settings, given.pace, out / WORK, device, identity, progress)
    encoder.save(out)
    write_card(out, _card(done, given, identity, encoder.device, command, (run, docs, queries, qrels)))
    shutil.rmtree(out / WORK, ignore_errors=True)
    return done


def _kept(ranked: Ranked, table: pa.Table, part: str) -> tuple[Ints, Counter[str]]:
    """The rows of the run that are trained on: those with a text, of the part that is asked for."""
    known = set(table["query_id"].to_pylist())
    left_out: Counter[str] = Counter()
    kept = []
    for row, query in enumerate(ranked.rankings.query_ids.to_pylist()):
        if query not in known:
            left_out[NO_TEXT] += 1
        elif part and part_of(query) != part:
            left_out[OTHER_PART] += 1
        else:
            kept.append(row)
    if not kept:
        why = ", ".join(f"{count} with {reason}" for reason, count in left_out.items())
        raise DataError(f"training: expected queries with a text in the part {part!r}, found none ({why})")
    return np.array(kept, np.int64), left_out


def _restrict(ranked: Ranked, kept: Ints) -> tuple[Lists, Judgements]:
    """The lists and judgements of some rows, numbered anew."""
    chosen = ranked.rankings.select(kept)
    number = np.full(len(ranked.rankings), -1, np.int64)
    number[kept] = np.arange(len(kept))
    row = number[ranked.judged.row]
    mine = row >= 0
    judged = Judgements(row[mine], ranked.judged.doc[mine], ranked.judged.relevant[mine])
    return Lists(chosen.query_ids.to_pylist(), chosen.offsets, chosen.docs), judged


def _texts(ranked: Ranked, lists: Lists, table: pa.Table, examples: Examples, job: RankerJob) -> tuple[Texts, Examples]:
    """The texts that the examples use, and the examples by their places in them."""
    used, places = np.unique(examples.right, return_inverse=True)
    shift = int(used[0] < 0) if len(used) else 0
    used = used[shift:]
    right = places.reshape(examples.right.shape) - shift
    needed = np.zeros(len(ranked.universe.doc_ids), np.bool_)
    needed[used] = True
    documents = gather_texts(ranked.source, ranked.universe.doc_ids, needed)
    refuse_unknown("judgements", ranked.universe, documents.is_valid().to_numpy(zero_copy_only=False), needed)
    words = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    kind = _LOSS_LEAN.get(job.settings.loss, job.counting.lean)
    lean = document_lean(ranked.mentions, kind, job.counting.groups)[used]
    group = leaning_groups(ranked.mentions, job.counting.groups)[used]
    texts = Texts([words[one] for one in lists.query_ids], documents.take(pa.array(used)).to_pylist(), lean, group)
    return texts, replace(examples, right=right)


def _identity(texts: Texts, examples: Examples, job: RankerJob) -> dict[str, object]:
    """What makes a training this one: the examples by their content, and how they are learned."""
    data = fingerprint([list(texts.left), list(texts.right), examples.left.tolist(), examples.right.tolist()])
    counting = {**asdict(job.counting), "lexicon": load_lexicon(job.counting.lexicon).id}
    return {
        "data": data, "negatives": asdict(job.sampling), "counting": counting, "settings": asdict(job.settings),
        "pace": asdict(job.pace), "negatives_each": job.negatives_each, "part": job.part,
    }  # fmt: skip


def finished(out: Path, identity: Mapping[str, object]) -> bool:
    """Whether the model of this very training is there; that of another is refused."""
    found = read_measured(out)
    if found is None:
        return False
    if found.get("extra", {}).get("identity") != identity:
        raise StoreError(f"{out}: there is a model of another training; give another folder, or delete this one")
    return True


def _card(
    done: Trained, job: RankerJob, identity: Mapping[str, object], device: str, command: str,
    sources: tuple[object, ...],
) -> Card:  # fmt: skip
    files = [Path(one) for one in sources if isinstance(one, str | Path) and Path(one).is_file()]
    data = tuple({"file": file.name, "sha256": digest_file(file)[:16]} for file in files)
    leaning = f"{job.sampling.leaning} of {job.sampling.count}"
    return Card(
        title="A cross-encoder that ranks documents",
        about=f"Trained on a run with {leaning} negatives of each query taken from those that lean most.",
        command=command, base=job.settings.model, data=data, seed=job.pace.seed,
        settings={**asdict(job.settings), **asdict(job.pace)}, device=device,
        measured={"queries": done.queries, "pairs": done.pairs, **done.left_out, **done.short},
        limits=(
            "Lean is counted with a lexicon; words that name a group are not bias by themselves.",
            "What it changes is measured by askew rerank and askew compare on queries it was not trained on.",
        ),
        extra={"identity": identity},
    )  # fmt: skip
