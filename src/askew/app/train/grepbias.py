"""train adapter: train a relevance model with little gender preference on GrepBiasIR."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from askew.app.train.data_sources import GREPBIASIR
from askew.app.train.trained import Trained, finished, found_before
from askew.core.errors import ConfigError
from askew.core.whole_files import write_whole
from askew.corpora.grepbias import GrepBias, read_grepbias
from askew.models import MINILM, identify
from askew.models.relevance import FILE, LAYOUTS, encode_pairs
from askew.trainers.card import WORK, Card, claim
from askew.trainers.common import Progress, Schedule, choose_device, remembered
from askew.trainers.grepbias.compare import difference, difference_table
from askew.trainers.grepbias.cosine import cosines, zero_shot_cosine
from askew.trainers.grepbias.finetune import PACES, FinetuneSettings, FinetuneTexts, finetune, save_trained
from askew.trainers.grepbias.heads import CONVERGED, HeadInputs, HeadSettings, fit_heads
from askew.trainers.grepbias.pairs import KINDS, alpha_grid
from askew.trainers.grepbias.protocol import ZeroShot, choose_alphas, zero_shot_heads
from askew.trainers.grepbias.scores import group_rows, summarize
from askew.trainers.grepbias.tables import MethodLogits, accuracy_table, fractions_table, summary_table
from askew.trainers.grepbias.transfer import zero_shot_finetuned

METHODS = ("head", "lora", "full")


@dataclass(frozen=True)
class AdapterJob:
    """The settings of the training.

    ``method``      head (the encoder is frozen), lora (adapter weights) or full (all weights).
    ``with_title``  documents with their titles; the published values are for bodies only.
    ``penalty``     for a head: choose weights (alphas) from the grid 0 to 2, by cross-validation on training queries.
    ``most_loss``   for a head: the largest loss of held-out accuracy that the alphas may cause.
    ``seeds``       the number of measured seeds, starting with ``seed``; the first one trains the model.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: {"method": name, "pace": PACES.get(name)} for name in METHODS
    }
    preset_name: ClassVar[str] = "method"
    method: str = "head"
    model: str = MINILM
    layout: str = "apart"
    with_title: bool = True
    penalty: bool = True
    most_loss: float = 0.02
    head: HeadSettings = CONVERGED
    finetune: FinetuneSettings = field(default_factory=FinetuneSettings)
    pace: Schedule | None = None
    seed: int = 7
    seeds: int = 1

    def __post_init__(self) -> None:
        if self.method not in METHODS or self.layout not in LAYOUTS:
            raise ConfigError(
                f"adapter: expected method= to be one of {', '.join(map(repr, METHODS))} and layout= to be "
                f"{' or '.join(map(repr, LAYOUTS))}, found method={self.method!r} and layout={self.layout!r}"
            )
        if self.seeds < 1 or self.seed < 0:
            raise ConfigError(
                "adapter: expected 'seeds' (the number of random seeds) to be 1 or more, and 'seed' (the first random "
                f"seed) to be 0 or more; found {self.seeds} for 'seeds' and {self.seed} for 'seed'"
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the settings that the method uses."""
        return ("head",) if self.method == "head" else ("finetune", "pace")

    @property
    def measured_seeds(self) -> tuple[int, ...]:
        """The seeds that are measured."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def trained(self) -> tuple[FinetuneSettings, Schedule]:
        """The settings for training the encoder itself (lora or full)."""
        return replace(self.finetune, method=self.method, model=self.model), self.pace or PACES[self.method]


def train_adapter(
    data: str | Path, out: Path, settings: AdapterJob | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Run the zero-shot protocol for the model card, then train a model on all rows of GrepBiasIR."""
    chosen, job = choose_device(device), settings or AdapterJob()
    rows = read_grepbias(Path(data))
    known = {"data": [one["sha256"] for one in rows.files], "weights": identify(job.model), **asdict(job)}
    identity = json.loads(json.dumps(known))
    found = claim(out, identity)
    if found is not None:
        return found_before(out, found)
    protocol = _protocol(rows, job, out / WORK, identity, chosen, progress)
    if job.method == "head":
        alphas = _final_head(rows, job, out, chosen)
    else:
        alphas = _final_encoder(rows, job, out, identity, chosen, progress)
    untrained = _untrained(rows, job, out / WORK, chosen)
    return finished(out, _card(rows, job, identity, chosen, command, protocol, alphas, untrained))


def _rows(data: GrepBias, job: AdapterJob, work: Path, device: str) -> HeadInputs:
    vectors = encode_pairs(data.query, data.texts(job.with_title), job.model, job.layout, work / "vectors", device)
    return HeadInputs(vectors, data.relevant, data.gender, data.query_id)


def _untrained(data: GrepBias, job: AdapterJob, work: Path, device: str) -> MethodLogits:
    """The baseline of every trained model: the cosine of its encoder before any training."""
    vectors = _rows(data, replace(job, layout="apart"), work, device).encodings
    found = zero_shot_cosine(
        cosines(vectors).astype(np.float64), data.relevant, data.query_id, data.category, data.categories
    )
    return MethodLogits(f"cosine, {_text_name(job)}, untrained", found.logits, found.inside)


def _text_name(job: AdapterJob) -> str:
    return "title and body" if job.with_title else "body"


def _texts(data: GrepBias, job: AdapterJob) -> FinetuneTexts:
    return FinetuneTexts(data.query, tuple(data.texts(job.with_title)), data.relevant, data.gender, data.query_id)


def _protocol(
    data: GrepBias, job: AdapterJob, work: Path, identity: Mapping[str, Any], device: str, progress: Progress | None
) -> ZeroShot:
    if job.method != "head":
        settings, pace = job.trained
        return zero_shot_finetuned(
            _texts(data, job), data.category, data.categories, settings, pace, work / "parts", identity,
            job.measured_seeds,
            True, device, progress,
        )  # fmt: skip

    def make() -> dict[str, Any]:
        grid = alpha_grid() if job.penalty else None
        found = zero_shot_heads(
            _rows(data, job, work, device), data.category, data.categories, job.head, job.measured_seeds, grid,
            job.most_loss,
            progress,
        )  # fmt: skip
        return {"logits": found.logits.tolist(), "inside": found.inside.tolist(), "chosen": found.chosen}

    made = remembered(work / "protocol.json", identity, make)
    chosen = tuple(tuple(tuple(one) for one in seed) for seed in made["chosen"])
    return ZeroShot(np.array(made["logits"]), np.array(made["inside"]), chosen)


def _final_head(data: GrepBias, job: AdapterJob, out: Path, device: str) -> tuple[float, ...]:
    rows = _rows(data, job, out / WORK, device)
    settings = replace(job.head, seed=job.seed)
    alphas = choose_alphas(rows, settings, None, job.most_loss).alphas if job.penalty else (0.0,) * len(KINDS)
    heads = fit_heads(rows, np.array([alphas]), settings)
    facts = {
        "model": job.model, "layout": job.layout, "with_title": job.with_title,
        "alphas": dict(zip(KINDS, alphas, strict=True)),
        "weights": heads.weights[0].tolist(), "bias": float(heads.bias[0]),
    }  # fmt: skip
    write_whole(out / FILE, json.dumps(facts) + "\n")
    return alphas


def _final_encoder(
    data: GrepBias, job: AdapterJob, out: Path, identity: Mapping[str, Any], device: str, progress: Progress | None
) -> tuple[float, ...]:
    settings, pace = job.trained
    pace = replace(pace, seed=job.seed)
    model, tokenizer = finetune(_texts(data, job), settings, pace, out / WORK / "all", identity, device, progress)
    save_trained(model, tokenizer, settings.method, out)
    return settings.alphas


def _card(
    data: GrepBias, job: AdapterJob, identity: Mapping[str, Any], device: str, command: str, protocol: ZeroShot,
    alphas: tuple[float, ...], untrained: MethodLogits,
) -> Card:  # fmt: skip
    groups = group_rows(data.categories, data.category, data.query_id, data.relevant, data.gender)
    result = MethodLogits(f"{job.method}, {_text_name(job)}", protocol.logits, protocol.inside, protocol.chosen)
    summary = summarize(result.logits, groups, result.inside)
    opened = {
        "head": "Open the model with `askew.models.relevance.read_head(FOLDER)`.",
        "lora": "The model is a sentence encoder: use it as `--ranker dense` with the setting `model=FOLDER`.",
        "full": "The model is a cross-encoder: use it as the ranker `crossencoder` with the setting `model=FOLDER`.",
    }
    return Card(
        title=f"A relevance model trained to prefer neither gender (method {job.method})",
        about=f"The model was trained on GrepBiasIR with the pairwise penalty of Sundararaman and Subramanian (2022). "
        f"{opened[job.method]}",
        command=command,
        base=identity["weights"],
        data=(GREPBIASIR, *data.files, {"rows": len(data), "queries": len(groups.query_category), **data.notes}),
        seed=job.seed,
        settings=identity,
        device=device,
        measured={
            "summary": asdict(summary),
            "untrained cosine": asdict(summarize(untrained.logits, groups, untrained.inside)),
            "trained - untrained cosine": asdict(difference(untrained, result, groups)),
            "alphas": dict(zip(KINDS, alphas, strict=True)),
            "chosen": protocol.chosen,
        },
        tables=(
            summary_table([untrained, result], groups),
            difference_table("trained - untrained cosine", [(untrained, result)], groups),
            accuracy_table("5" if any(alphas) else "2", result, groups, untrained),
            fractions_table(result, groups, untrained),
        ),
        limits=_limits(job, len(groups.query_category)),
        extra={"identity": dict(identity)},
    )


def _limits(job: AdapterJob, queries: int) -> tuple[str, ...]:
    folds = (
        "In the diagonal cells of the tables, a model is tested on held-out folds of its training category. The alphas "
        "(the weights of the pairwise penalty in the training loss) for a held-out fold are chosen by the results on "
        "the other folds. The models that are tested on the other folds are trained on data that includes the held-out "
        "fold, so the choice of the alphas depends indirectly on the held-out fold. In all other cells, no setting was "
        "chosen with data of the test category.",
    )
    return (
        "The tables show models that were trained on one category of GrepBiasIR and tested on the other categories. "
        "The model in this folder was trained on all categories, so no query of GrepBiasIR is left to test it on.",
        f"The row 'cosine, {_text_name(job)}, untrained' shows the encoder before any training. In this row, a "
        "document counts as relevant if its cosine with the query is above a threshold that was chosen on the training "
        "category. Only an improvement over this row is an effect of the training.",
        *(folds if job.method == "head" and job.penalty else ()),
        f"{queries} queries are few: differences of a few hundredths of |M-F| may be due to chance.",
    )
