"""train classifier: train and calibrate a classifier on labeled queries. This is ``askew train classifier``."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA, digest_file, fingerprint
from askew.core.groups import Groups
from askew.core.lexicon import load_lexicon
from askew.core.ranking import Flags, Floats, Ints
from askew.data.memory import queries_in_memory
from askew.data.queries import read_queries
from askew.models.encode import Loaded
from askew.models.find import MINILM, identify, need
from askew.models.relevance import room
from askew.rewrite.classifiers import LABEL, fit_temperature, softmax, write_calibration
from askew.train.card import WORK, Card, CardTable, claim
from askew.train.common import (
    Progress,
    Schedule,
    Trained,
    choose_device,
    finished,
    found_before,
    open_classifier,
    read_published,
    remembered,
    run,
    seed_all,
)
from askew.train.scores import ClassifierScores, classifier_scores

# Train classifiers of short texts: an encoder with a classification head, fine-tuned as a whole.

NAMES = DATA / "names" / "en.toml"
_WORD = re.compile(r"\w+")
_BATCH = 128
_EDGE = "\u2063"  # invisible, and no part of a word
_PUBLISHED = "gender:female,male"
PACE = Schedule(epochs=5.0, batch_size=32, learning_rate=5e-5, warmup=0.1, weight_decay=0.01, save_every=200)


@dataclass(frozen=True)
class ClassifierSettings:
    """The settings of a classifier. Queries with a label in ``drop`` that is not a class are left out and counted.

    The classes are ``classes`` if given, or neutral and the groups, or else the labels of the data. If the data has the
    labels of the published queries (f, m, n) and no groups are given, the groups are female and male.

    ``model``        an encoder or a causal model: a name, a folder (with safetensors or one GGUF file) or a hub id.
    ``groups``       groups of words; a group with the name of a class gives examples of that class.
    ``words``        whether the words of the groups are added as examples.
    ``names``        whether common first names are added as examples of the class of their gender.
    ``marks``        whether the tokenizer writes the name of the class before each known word (how old is male tom).
                     The model then also reads the known class of a word, and is loaded like any other model.
    ``most_tokens``  the maximum number of tokens; longer texts are cut.
    ``smoothing``    label smoothing: this share of each label is spread over all classes, as labels may be wrong.
    """

    model: str = MINILM
    groups: Groups | None = None
    words: bool = True
    names: bool = True
    marks: bool = True
    most_tokens: int = 48
    smoothing: float = 0.1
    pace: Schedule = PACE
    folds: int = 5
    classes: tuple[str, ...] = ()
    drop: tuple[str, ...] = ("o",)

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise ConfigError(f"folds: expected two or more, found {self.folds}")
        if self.most_tokens < 4 or not 0 <= self.smoothing < 1:
            raise ConfigError(f"classifier: expected most_tokens >= 4 and 0 <= smoothing < 1; found {self}")

    def facts(self) -> dict[str, Any]:
        """The settings of the model as JSON values; groups are identified by their content."""
        names = ("model", "groups", "words", "names", "marks", "most_tokens", "smoothing")
        found = {name: getattr(self, name) for name in names}
        return {**found, "groups": self.groups and self.groups.counted.id}

    def all_facts(self) -> dict[str, Any]:
        """All settings as JSON values."""
        own = {"folds": self.folds, "classes": list(self.classes), "drop": list(self.drop)}
        return {**self.facts(), **asdict(self.pace), **own}

    def settled(self, labels: Collection[str]) -> ClassifierSettings:
        """The settings with the classes, which may depend on the labels of the data."""
        if self.classes:
            return self
        if self.groups is not None:
            return replace(self, classes=(LABEL, *self.groups.names))
        published = replace(self, groups=Groups.of(_PUBLISHED)).settled(())
        if all(_class_of(label, published.classes) is not None for label in labels):
            return published
        return replace(self, classes=tuple(sorted(labels)))


@dataclass(frozen=True)
class LabeledTexts:
    """Texts with labels; a label is a position in ``classes``."""

    texts: tuple[str, ...]
    labels: Ints
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        counts = np.bincount(self.labels, minlength=len(self.classes)).tolist()
        if len(self.classes) < 2 or not all(counts):
            have = ", ".join(f"{name} {n}" for name, n in zip(self.classes, counts, strict=True))
            raise DataError(
                "classifier: expected two classes or more, each with at least one text; found these numbers of texts: "
                f"{have}"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def data(self) -> str:
        """A fingerprint of the content."""
        return fingerprint([list(self.texts), self.labels.tolist(), list(self.classes)])

    def take(self, rows: Flags) -> LabeledTexts:
        """Some of the texts."""
        return LabeledTexts(tuple(self.texts[i] for i in np.flatnonzero(rows)), self.labels[rows], self.classes)


def normalised(text: str) -> str:
    """The normalized text; texts that differ only in case, blanks and punctuation become equal."""
    return " ".join(_WORD.findall(text.lower())) or text


def stratified_folds(data: LabeledTexts, folds: int, seed: int) -> Ints:
    """The fold of each text: classes are spread evenly, and texts with the same normalized form share a fold."""
    first: dict[str, int] = {}
    group = np.array([first.setdefault(normalised(text), len(first)) for text in data.texts], np.int64)
    label_of, fold_of = np.zeros((2, len(first)), np.int64)
    label_of[group[::-1]] = data.labels[::-1]  # the class of the first of equal texts decides
    rng = np.random.default_rng([seed, folds])
    begin = 0
    for label, name in enumerate(data.classes):
        places = rng.permutation(np.flatnonzero(label_of == label))
        if len(places) < folds:
            raise DataError(f"folds: expected {folds} texts or more of the class {name!r}, found {len(places)}")
        fold_of[places] = (begin + np.arange(len(places))) % folds
        begin += len(places)
    return np.asarray(fold_of[group])


def contradictions(data: LabeledTexts) -> int:
    """The number of texts that occur with more than one class."""
    pairs = {(normalised(text), label) for text, label in zip(data.texts, data.labels.tolist(), strict=True)}
    return sum(count > 1 for count in Counter(text for text, _ in pairs).values())


def known_words(settings: ClassifierSettings, classes: Sequence[str]) -> list[tuple[str, int]]:
    """Words of the groups and first names, each with its class; words of several classes are left out."""
    lists = [] if settings.groups is None or not settings.words else [settings.groups.counted]
    lists += [load_lexicon(NAMES)] if settings.names else []
    found = {
        (term.rstrip("*"), list(classes).index(group))
        for lexicon in lists
        for group, terms in lexicon.groups.items()
        if group in classes
        for term in terms
    }
    owners = Counter(word for word, _ in found)
    return sorted((word, label) for word, label in found if owners[word] == 1)


def marking(tokenizer: Any, words: Sequence[tuple[str, int]], classes: Sequence[str]) -> Any:
    """A tokenizer that writes the name of the class before each known word. It is saved with the model."""
    from tokenizers import Regex, normalizers
    from transformers import PreTrainedTokenizerFast

    backend = tokenizer.backend_tokenizer
    steps = [backend.normalizer] if backend.normalizer is not None else []
    # tokenizers cannot insert a text before the first character, so an invisible character is prepended and removed.
    steps.append(normalizers.Prepend(_EDGE))
    for label, name in enumerate(classes):
        own = sorted((word for word, of in words if of == label), key=lambda word: (-len(word), word))
        if own:
            there = "|".join(re.escape(word) for word in own)
            steps.append(normalizers.Replace(Regex(rf"(?i)\b(?=(?:{there})\b)"), f"{name} "))
    steps.append(normalizers.Replace(_EDGE, ""))
    backend.normalizer = normalizers.Sequence(steps)
    # Not the tokenizer class of the model, because it would build a new normalizer when it is loaded.
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side,
        **tokenizer.special_tokens_map,
    )


def fit(
    data: LabeledTexts, settings: ClassifierSettings, work: Path, identity: Mapping[str, Any], device: str = "cpu",
    progress: Progress | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Fine-tune a classifier; return it with its tokenizer. A stopped training is resumed (see ``common.run``)."""
    need("accelerate", "training", "train")
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

    pace = settings.pace
    seed_all(pace.seed)
    extra = known_words(settings, data.classes)
    names = dict(enumerate(data.classes))
    numbers = {name: number for number, name in names.items()}
    head = {"num_labels": len(names), "id2label": names, "label2id": numbers}
    model, tokenizer = open_classifier(settings.model, "encoder", **head)
    # Weights from a GGUF file are plain floats here, but the model is still marked as quantized, which blocks training.
    model.is_quantized = False
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    if settings.marks and extra:
        tokenizer = marking(tokenizer, extra, data.classes)
    texts = [*data.texts, *(word for word, _ in extra)]
    labels = [*data.labels.tolist(), *(label for _, label in extra)]
    encoded = tokenizer(texts, truncation=True, max_length=room(model, tokenizer, settings.most_tokens))
    examples = [
        {"labels": label, **{name: column[i] for name, column in encoded.items()}} for i, label in enumerate(labels)
    ]
    trainer = Trainer(
        model=model,
        args=TrainingArguments(**pace.arguments(work, device), label_smoothing_factor=settings.smoothing),
        train_dataset=examples,
        data_collator=DataCollatorWithPadding(tokenizer),
        processing_class=tokenizer,
    )
    run(trainer, pace, {**identity, **settings.facts(), "model": identify(settings.model)}, progress)
    return trainer.model, tokenizer


def logits_of(model: Any, tokenizer: Any, data: LabeledTexts, most_tokens: int) -> Floats:
    """One row of logits for each text."""
    made = Loaded(data.classes, model.eval(), tokenizer, room(model, tokenizer, most_tokens))
    return made.logits(data.texts, _BATCH)


def cross_validate(
    data: LabeledTexts, fold: Ints, settings: ClassifierSettings, work: Path, identity: Mapping[str, Any],
    device: str = "cpu", progress: Progress | None = None,
) -> Floats:  # fmt: skip
    """The logits of every text by a model trained on the other folds. Finished folds are stored for resuming."""
    folds = int(fold.max()) + 1
    found = np.zeros((len(data), len(data.classes)))
    for k in range(folds):
        about = {**identity, **settings.facts(), **asdict(settings.pace), "model": identify(settings.model), "fold": k}

        def within(done: int, total: int, label: str = "", k: int = k) -> None:
            if progress is not None:
                progress(k * total + done, folds * total, f"fold {k + 1} of {folds}")

        def held_out_logits(k: int = k, about: Mapping[str, Any] = about, within: Progress = within) -> Any:
            place = work / f"fold-{k}"
            model, tokenizer = fit(data.take(fold != k), settings, place, about, device, within)
            logits = logits_of(model, tokenizer, data.take(fold == k), settings.most_tokens)
            shutil.rmtree(place, ignore_errors=True)
            return logits.tolist()

        found[fold == k] = np.array(remembered(work / f"fold-{k}.json", about, held_out_logits))
    return found


_NAMES_LIMIT = (
    "The training examples include first names, each with one gender. A person with such a name may have another "
    "gender."
)


def train_classifier(
    data: object, out: Path, settings: ClassifierSettings | None = None, device: str | None = None, command: str = "",
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """Cross-validate, then train on all queries of a file, a data frame or a table with query_id, text and label."""
    chosen = choose_device(device)
    texts, job, notes = read_labeled_queries(data, settings or ClassifierSettings())
    digest = digest_file(Path(data)) if isinstance(data, str | Path) else texts.data()
    identity = {"data": digest, "weights": identify(job.model), **job.all_facts()}
    found = claim(out, identity)
    if found is not None:
        return found_before(out, found)
    work = out / WORK
    fold = stratified_folds(texts, job.folds, job.pace.seed)
    logits = cross_validate(texts, fold, job, work, identity, chosen, progress)
    scores = classifier_scores(cross_calibrated(logits, texts.labels, fold), texts.labels, texts.classes)
    raw = classifier_scores(softmax(logits), texts.labels, texts.classes)
    model, tokenizer = fit(texts, job, work / "all", identity, chosen, progress)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    calibration = write_calibration(out, logits, texts.labels)
    measured = {"cross_validation": asdict(scores), "ece_without_temperature": asdict(raw.ece), **calibration}
    name = Path(data).name if isinstance(data, str | Path) else "in memory"
    counts = np.bincount(texts.labels, minlength=len(texts.classes)).tolist()
    rows = {
        "file": name, "sha256": identity["data"], "queries": len(texts),
        **dict(zip(texts.classes, counts, strict=True)), "texts labeled with several classes": contradictions(texts),
        **{f"left out: {why}": n for why, n in notes.items()},
    }  # fmt: skip
    by_name = known_words(replace(job, words=False), texts.classes)
    card = Card(
        title="A classifier of the group that a query is about",
        about="An encoder that classifies queries; all its weights were fine-tuned. Use it with "
        "`askew classify QUERIES --classifier transformer --set model=FOLDER`.",
        command=command,
        base=identity["weights"],
        data=(rows, {"lexicon words added as training examples": len(known_words(job, texts.classes))}),
        seed=job.pace.seed,
        settings=job.all_facts(),
        device=chosen,
        measured=measured,
        tables=(scores_table(scores, job.folds),),
        limits=(
            "Each label is the judgement of one annotator about a short text. Annotators disagree with each other, and "
            "the model will disagree with some of the annotators.",
            *((_NAMES_LIMIT,) if by_name else ()),
            "The temperature of the model was fitted on the held-out logits of the cross-validation. In the "
            "table of the cross-validation, the temperature for each fold was fitted on the other folds.",
        ),
        extra={"identity": dict(identity)},
    )
    return finished(out, card)


def read_labeled_queries(
    source: object, job: ClassifierSettings
) -> tuple[LabeledTexts, ClassifierSettings, dict[str, int]]:
    """The queries with their classes, the job with its classes, and the number of left-out queries by reason."""
    is_file = isinstance(source, str | Path)
    table = read_queries(Path(str(source))) if is_file else queries_in_memory(source)
    rows = list(zip(*(table[name].to_pylist() for name in ("query_id", "text", "label")), strict=True))
    where = str(source) if is_file else "queries in memory"
    bare = [query_id for query_id, _, label in rows if label is None]
    if bare:
        raise DataError(f"{where}: expected a label for every query, found none for {bare[0]!r}")
    settled = job.settled({label for _, _, label in rows} - set(job.drop))
    dropped = {label for label in job.drop if _class_of(label, settled.classes) is None}
    notes = Counter(f"label {label!r}" for _, _, label in rows if label in dropped)
    rows = [row for row in rows if row[2] not in dropped]
    meant = [_class_of(label, settled.classes) for _, _, label in rows]
    for (query_id, _, label), one in zip(rows, meant, strict=True):
        if one is None:
            raise DataError(
                f"{where}: expected one of the labels {', '.join(settled.classes)}, or the beginning of one of them; "
                f"found {label!r} for the query {query_id!r}; give other ⟨groups⟩ or ⟨classes⟩, or leave such queries "
                "out with ⟨drop⟩"
            )
    texts = tuple(text for _, text, _ in rows)
    return LabeledTexts(texts, np.array(meant, np.int64), settled.classes), settled, dict(notes)


def _class_of(label: str, classes: Sequence[str]) -> int | None:
    """The class with this label as name or as unique prefix; None if there is no such class."""
    if label in classes:
        return classes.index(label)
    found = [at for at, name in enumerate(classes) if label and name.startswith(label.lower())]
    return found[0] if len(found) == 1 else None


def cross_calibrated(logits: Floats, labels: Ints, fold: Ints) -> Floats:
    """The probabilities of each fold, with the temperature fitted on the other folds."""
    found = np.zeros_like(logits)
    for k in range(int(fold.max()) + 1):
        temperature = fit_temperature(logits[fold != k], labels[fold != k])
        found[fold == k] = softmax(logits[fold == k], temperature)
    return found


def scores_table(scores: ClassifierScores, folds: int) -> CardTable:
    """The scores of this model, with the published scores if they have the same classes."""
    names = sorted(scores.f1)
    ours = ("this model", str(scores.accuracy), *(str(scores.f1[name]) for name in names), str(scores.ece))
    rows: list[tuple[Any, ...]] = [ours]
    _, listed = read_published("gender-classifier")
    if all({f"f1_{name}" for name in names} <= set(row) for row in listed):
        rows += [
            (f"{r['model']} (published)", r["accuracy"], *(r[f"f1_{name}"] or None for name in names), None)
            for r in listed
        ]
    columns = ("model", "accuracy", *(f"F1 {name}" for name in names), "ECE")
    return CardTable(f"{folds}-fold cross-validation, {scores.n} queries, 95% intervals", columns, tuple(rows))
