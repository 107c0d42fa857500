"""Train classifiers of short texts: an encoder with a classification head, fine-tuned as a whole.

Words that belong to a class (from a lexicon or a list of first names) can be added as further examples, as Bigdeli et
al. did for the gender of queries. Cross-validation is stratified, and equal texts are in the same fold. The settings
are fixed before cross-validation, so no choice depends on a test fold.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import ConfigError, DataError
from askew.core.fingerprint import fingerprint
from askew.core.groups import Groups
from askew.core.lexicon import load_lexicon
from askew.core.ranking import Flags, Floats, Ints
from askew.models.encode import LOADING
from askew.models.find import MINILM, cannot_load, identify, locate, need, no_bars
from askew.models.relevance import room
from askew.trainers.common import Progress, Schedule, remembered, run, seed_all

NAMES = Path(__file__).parent.parent / "data" / "names" / "en.toml"
_WORD = re.compile(r"\w+")
_BATCH = 128
_EDGE = "\u2063"  # invisible, and no part of a word
PACE = Schedule(epochs=5.0, batch_size=32, learning_rate=5e-5, warmup=0.1, weight_decay=0.01, save_every=200)


@dataclass(frozen=True)
class ClassifierSettings:
    """The settings of a classifier.

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

    def __post_init__(self) -> None:
        if self.most_tokens < 4 or not 0 <= self.smoothing < 1:
            raise ConfigError(f"classifier: expected most_tokens >= 4 and 0 <= smoothing < 1; found {self}")

    def facts(self) -> dict[str, Any]:
        """The settings as JSON values; groups are identified by their content."""
        counted = None if self.groups is None else self.groups.counted
        return {**asdict(replace(self, groups=None)), "groups": counted and counted.id}


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
    label_of = np.zeros(len(first), np.int64)
    label_of[group[::-1]] = data.labels[::-1]  # the class of the first of equal texts decides
    fold_of = np.zeros(len(first), np.int64)
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
    classes: dict[str, set[int]] = {}
    for text, label in zip(data.texts, data.labels.tolist(), strict=True):
        classes.setdefault(normalised(text), set()).add(label)
    return sum(len(found) > 1 for found in classes.values())


def known_words(settings: ClassifierSettings, classes: Sequence[str]) -> list[tuple[str, int]]:
    """Words of the groups and first names, each with its class; words of several classes are left out."""
    lists = [] if settings.groups is None or not settings.words else [settings.groups.counted]
    lists += [load_lexicon(NAMES)] if settings.names else []
    found: Counter[tuple[str, int]] = Counter()
    for lexicon in lists:
        for group, terms in lexicon.groups.items():
            if group in classes:
                found.update((term.rstrip("*"), list(classes).index(group)) for term in terms)
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
    data: LabeledTexts, settings: ClassifierSettings, pace: Schedule, work: Path,
    identity: Mapping[str, Any], device: str = "cpu", progress: Progress | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Fine-tune a classifier; return it with its tokenizer. A stopped training is resumed (see ``common.run``)."""
    need("accelerate", "training", "train")
    from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

    seed_all(pace.seed)
    extra = known_words(settings, data.classes)
    model, tokenizer = _new(settings, data.classes)
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


def _new(settings: ClassifierSettings, classes: Sequence[str]) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    no_bars()
    logging.set_verbosity_error()  # no long warning about the new head
    names = dict(enumerate(classes))
    place = locate(settings.model)
    options: dict[str, Any] = {"trust_remote_code": False}
    packed = sorted(Path(place).glob("*.gguf")) if Path(place).is_dir() else []
    if packed:
        options["gguf_file"] = packed[0].name
    try:
        model = AutoModelForSequenceClassification.from_pretrained(
            place, num_labels=len(classes), id2label=names, label2id={name: i for i, name in names.items()}, **options
        )
        tokenizer = AutoTokenizer.from_pretrained(place, **options)
    except LOADING as error:
        raise cannot_load(settings.model, "encoder", error) from error
    # Weights from a GGUF file are plain floats here, but the model is still marked as quantized, which blocks training.
    model.is_quantized = False
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    return model.float(), tokenizer


def logits_of(model: Any, tokenizer: Any, texts: Sequence[str], most_tokens: int) -> Floats:
    """One row of logits for each text."""
    import torch

    model.eval()
    found = []
    for at in range(0, len(texts), _BATCH):
        batch = tokenizer(
            list(texts[at : at + _BATCH]), padding=True, truncation=True,
            max_length=room(model, tokenizer, most_tokens), return_tensors="pt",
        ).to(model.device)  # fmt: skip
        with torch.inference_mode():
            found.append(model(**batch).logits.float().cpu().numpy())
    return np.concatenate(found).astype(np.float64)


def cross_validate(
    data: LabeledTexts, fold: Ints, settings: ClassifierSettings, pace: Schedule, work: Path,
    identity: Mapping[str, Any], device: str = "cpu", progress: Progress | None = None,
) -> Floats:  # fmt: skip
    """The logits of every text by a model trained on the other folds. Finished folds are stored for resuming."""
    folds = int(fold.max()) + 1
    found = np.zeros((len(data), len(data.classes)))
    for k in range(folds):
        about = {**identity, **settings.facts(), **asdict(pace), "model": identify(settings.model), "fold": k}

        def one(k: int = k, about: Mapping[str, Any] = about) -> list[list[float]]:
            def within(done: int, total: int, label: str = "") -> None:
                if progress is not None:
                    progress(k * total + done, folds * total, f"fold {k + 1} of {folds}")

            place = work / f"fold-{k}"
            model, tokenizer = fit(data.take(fold != k), settings, pace, place, about, device, within)
            held_out = [data.texts[i] for i in np.flatnonzero(fold == k)]
            logits = logits_of(model, tokenizer, held_out, settings.most_tokens)
            shutil.rmtree(place, ignore_errors=True)
            return [[float(value) for value in row] for row in logits]

        found[fold == k] = np.array(remembered(work / f"fold-{k}.json", about, one))
    return found
