"""A classifier of short texts: an encoder with a head for its classes, fine-tuned as a whole.

Words that are known to belong to a class (a lexicon, first names) may be added as examples of their own, as Bigdeli and
others did for the gender of queries. Cross-validation is stratified, and equal texts are in the same fold. Nothing is
chosen on a test fold: the settings stand before the first fold begins.
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
    """What is trained.

    ``model``        an encoder or a causal model, by name, folder (of safetensors or one GGUF file) or hub id.
    ``groups``       their words are added as examples of the class that has a group's name.
    ``words``        whether they are.
    ``names``        common first names are added too, where they are names of a group's members.
    ``marks``        the tokenizer puts the name of the class before each such word (how old is male tom): what is known
                     of words stands beside what the encoder knows, and the model still opens like any other.
    ``most_tokens``  longer texts are cut.
    ``smoothing``    so much of each label is spread over all classes: labels of people are not always right.
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
            raise ConfigError(f"classifier: expected most_tokens of 4 or more, 0 <= smoothing < 1; found {self}")

    def facts(self) -> dict[str, Any]:
        """As JSON values, the words by their content."""
        counted = None if self.groups is None else self.groups.counted
        return {**asdict(replace(self, groups=None)), "groups": counted and counted.id}


@dataclass(frozen=True)
class LabeledTexts:
    """Texts and the place of the class of each in ``classes``."""

    texts: tuple[str, ...]
    labels: Ints
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        counts = np.bincount(self.labels, minlength=len(self.classes)).tolist()
        if len(self.classes) < 2 or not all(counts):
            have = ", ".join(f"{name} {n}" for name, n in zip(self.classes, counts, strict=True))
            missing = [name for name, n in zip(self.classes, counts, strict=True) if not n]
            raise DataError(
                f"classifier: expected texts of two classes or more and of every class, found none of "
                f"{', '.join(missing) or 'a second'} ({have})"
            )

    def __len__(self) -> int:
        return len(self.texts)

    def data(self) -> str:
        """Names the content."""
        return fingerprint([list(self.texts), self.labels.tolist(), list(self.classes)])

    def take(self, rows: Flags) -> LabeledTexts:
        """Some of the texts."""
        return LabeledTexts(tuple(self.texts[i] for i in np.flatnonzero(rows)), self.labels[rows], self.classes)


def normalised(text: str) -> str:
    """What two texts share that differ only in case, blanks and punctuation."""
    return " ".join(_WORD.findall(text.lower())) or text


def stratified_folds(data: LabeledTexts, folds: int, seed: int) -> Ints:
    """The fold of each text: every class spread evenly, texts that are the same but for punctuation together."""
    first: dict[str, int] = {}
    group = np.array([first.setdefault(normalised(text), len(first)) for text in data.texts], np.int64)
    label_of = np.zeros(len(first), np.int64)
    label_of[group[::-1]] = data.labels[::-1]  # of equal texts the first one's class says where they go
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
    """How many texts have more than one class."""
    classes: dict[str, set[int]] = {}
    for text, label in zip(data.texts, data.labels.tolist(), strict=True):
        classes.setdefault(normalised(text), set()).add(label)
    return sum(len(found) > 1 for found in classes.values())


def known_words(settings: ClassifierSettings, classes: Sequence[str]) -> list[tuple[str, int]]:
    """Words of the groups and first names, each with its class; a word of several classes is left out."""
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
    """A tokenizer that writes the name of its class before each known word. It is saved with the model."""
    from tokenizers import Regex, normalizers
    from transformers import PreTrainedTokenizerFast

    backend = tokenizer.backend_tokenizer
    steps = [backend.normalizer] if backend.normalizer is not None else []
    # Nothing can be put before the first letter of a text (tokenizers fails there), so one stands there a while.
    steps.append(normalizers.Prepend(_EDGE))
    for label, name in enumerate(classes):
        own = sorted((word for word, of in words if of == label), key=lambda word: (-len(word), word))
        if own:
            there = "|".join(re.escape(word) for word in own)
            steps.append(normalizers.Replace(Regex(rf"(?i)\b(?=(?:{there})\b)"), f"{name} "))
    steps.append(normalizers.Replace(_EDGE, ""))
    backend.normalizer = normalizers.Sequence(steps)
    # Not of the model's own class: that one would build its normalizer anew when it is opened.
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
    """A fine-tuned classifier and its tokenizer. It goes on where it was stopped (see ``common.run``)."""
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
    logging.set_verbosity_error()  # the head is new, and transformers would warn of it at length
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
    # Reading a GGUF file has made its weights plain floats; the mark of the packed form stays on and forbids training.
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
    """Logits of every text by a model that has not seen it. A finished fold is kept, so a stopped run goes on."""
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
