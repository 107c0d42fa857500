"""Train the word networks ``acg`` and ``hred-qs`` with the trainer of transformers, which accepts any module."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from askew.core.errors import DataError
from askew.core.fingerprint import fingerprint
from askew.core.whole_files import write_whole
from askew.models.rewrite import END, START, Sizes, WordRewriter, Words, split_words
from askew.trainers.common import Progress, Schedule, choose_device, run, seed_all

Vectors = tuple[Sequence[str], npt.NDArray[np.float32]]
# A function of target texts and written texts; a higher number is better.
Score = Callable[[Sequence[str], Sequence[str]], float]
_BEST = "best.json"


@dataclass(frozen=True)
class Rewrites:
    """Queries and their target rewrites; ``before`` has the earlier queries of the same user, oldest first."""

    query_ids: Sequence[str]
    originals: Sequence[str]
    targets: Sequence[str]
    before: Sequence[Sequence[str]] | None = None

    def __len__(self) -> int:
        return len(self.query_ids)

    def take(self, rows: Sequence[int]) -> Rewrites:
        """The queries of some rows."""
        columns = (self.query_ids, self.originals, self.targets)
        ids, originals, targets = ([column[row] for row in rows] for column in columns)
        before = None if self.before is None else [self.before[row] for row in rows]
        return Rewrites(ids, originals, targets, before)

    def data(self) -> str:
        """A fingerprint of the content."""
        return fingerprint([list(self.originals), list(self.targets), [list(one) for one in self.before or ()]])


def fit_words(
    kind: str, pairs: Rewrites, sizes: Sizes, pace: Schedule, work: Path, dev: Rewrites | None = None,
    vectors: Vectors | None = None, device: str | None = None, identity: Mapping[str, Any] | None = None,
    progress: Progress | None = None, score: Score | None = None,
) -> WordRewriter:  # fmt: skip
    """Train a network on pairs; with ``dev`` and ``score`` the weights of the best epoch are kept."""
    where = choose_device(device)
    seed_all(pace.seed)
    if vectors is not None:
        sizes = replace(sizes, embedding=vectors[1].shape[1])
    read = [*pairs.originals, *(text for texts in pairs.before or () for text in texts)]
    made = WordRewriter.new(kind, Words.of(read, pairs.targets, sizes), sizes)
    if vectors is not None:
        set_vectors(made, vectors)
    made.network.to(where)
    trainer = _trainer(made, _WordRows(made, pairs), pace, work, where)
    best = None
    if dev is not None and len(dev) and score is not None:
        best = _keep_best(made, dev, score, work)
        trainer.add_callback(best)
    chosen_by = None if dev is None else dev.data()
    about = {**asdict(sizes), "words": fingerprint(list(made.words.words)), "dev": chosen_by, **(identity or {})}
    run(trainer, pace, about, progress)
    if best is not None:
        best.restore()
    made.network.eval()
    return made


def set_vectors(made: WordRewriter, vectors: Vectors) -> None:
    """Set the embeddings of known words from vectors, and freeze all embeddings, as published."""
    import torch

    places = {word: i for i, word in enumerate(vectors[0])}
    pairs = [(number, places[word]) for word, number in made.words.numbers.items() if word in places]
    if not pairs:
        raise DataError(
            "vectors: no word of the training queries has a vector; check that the words in the file of vectors are "
            "lower-cased"
        )
    numbers, rows = np.array(pairs).T
    table = made.network.embed.weight
    with torch.no_grad():
        # Words without a vector keep their random embedding, with the scale of the vectors.
        table *= float(np.std(vectors[1]))
        table[torch.from_numpy(numbers)] = torch.from_numpy(np.asarray(vectors[1][rows], np.float32))
    table.requires_grad_(False)


class _WordRows:
    """A dataset of example numbers; ``collate`` makes batches from them."""

    def __init__(self, made: WordRewriter, pairs: Rewrites) -> None:
        self._words, self._copying = made.words, made.copying
        before = pairs.before or [()] * len(pairs)
        self._sessions = [made.session(text, told) for text, told in zip(pairs.originals, before, strict=True)]
        most = made.sizes.most_words - 1  # room for the end
        self._targets = [split_words(text)[:most] for text in pairs.targets]

    def __len__(self) -> int:
        return len(self._targets)

    def __getitem__(self, number: int) -> int:
        return number

    def collate(self, numbers: Sequence[int]) -> dict[str, Any]:
        """The inputs of the network, the words given to the decoder, and the words that it has to write."""
        import torch

        from askew.models.rewrite_networks import pad_batch

        batch, extras = pad_batch(self._words, [self._sessions[number] for number in numbers], self._copying)
        targets = [self._targets[number] for number in numbers]
        given = np.zeros((len(targets), 1 + max(len(target) for target in targets)), np.int64)
        wanted = np.zeros_like(given)
        for row, (target, extra) in enumerate(zip(targets, extras, strict=True)):
            given[row, : len(target) + 1] = [START, *self._words.read(target)]
            wanted[row, : len(target) + 1] = [*self._words.write(target, extra), END]
        return {**batch, "given": torch.from_numpy(given), "wanted": torch.from_numpy(wanted)}


def _trainer(made: WordRewriter, rows: _WordRows, pace: Schedule, work: Path, device: str) -> Any:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(**pace.arguments(work, device), remove_unused_columns=False)
    trainer = Trainer(model=made.network, args=arguments, train_dataset=rows, data_collator=rows.collate)
    # The loss of the network is already a mean over the batch.
    trainer.model_accepts_loss_kwargs = False
    return trainer


def _keep_best(made: WordRewriter, dev: Rewrites, score: Score, work: Path) -> Any:
    """A callback that rewrites the queries of ``dev`` after each epoch and saves the weights of the best epoch."""
    from safetensors.torch import load_file, save_file
    from transformers import TrainerCallback

    class Best(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            value = score(dev.targets, [lines[0] for lines in made.write(dev.originals, dev.before)])
            had = self.read()
            # Epochs that are repeated after a stop have the same value and change nothing.
            if had is None or value > had["value"]:
                name = f"best-{state.global_step}.safetensors"
                weights = {key: one.detach().cpu().contiguous() for key, one in made.network.state_dict().items()}
                save_file(weights, work / name)
                write_whole(work / _BEST, json.dumps({"value": value, "epoch": state.epoch, "file": name}))
                if had is not None and had["file"] != name:
                    (work / had["file"]).unlink(missing_ok=True)

        def read(self) -> dict[str, Any] | None:
            file = work / _BEST
            return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

        def restore(self) -> None:
            found = self.read()
            if found is not None:
                made.network.load_state_dict(load_file(work / found["file"]))

    return Best()
