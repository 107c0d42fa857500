"""Train the adapter of SmolLM2-135M-Instruct that rewrites queries.

    python tools/train_rewrite.py --rewrites FILE ... --labels FILE ... --fresh-labels FILE --queries FILE ...
        --equivalence ADAPTER --out FOLDER

1. Supervised training. Each query and its five rewrites give training pairs in several directions; the prompt has
   the wanted kind of rewrite.
2. Sampling. The model writes texts for many queries (``query_pool``; ``--queries`` are files of lines "id TAB text"). A
   teacher and some rules give each text a reward. The teacher (``training.teacher``) combines an earlier equivalence
   model, with ``--judge`` also one on SmolLM2, the model of step 1, and features of the words.
3. Preference training. Direct preference optimization on pairs of texts with a high and a low reward.

Steps 2 and 3 are repeated ``--rounds`` times: the model of the last round writes texts for other queries, and training
continues. From the third round on, texts are sampled at a higher temperature, and any good text may be chosen, not only
the best (settings ``third_...``). ``--resume`` continues after ``--finished-rounds`` rounds of an earlier run, with a
new teacher.

The adapters are written to ``FOLDER/supervised``, ``FOLDER/round-1`` and so on, and the last one to ``FOLDER``, each
with ``training.json``. ``FOLDER/soft.jsonl`` has the teacher's probabilities for every text, as input of
``tools/train_equivalence.py``. ``--start`` uses the adapter of an earlier supervised training. Without
``--equivalence`` the program ends after step 1. The training takes some minutes on a GPU.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from training.data import (
    LABEL_FIELDS,
    Reformulations,
    Row,
    choose_device,
    plain,
    read_lines,
    read_reformulations,
    read_rows,
    rows_by_collection,
    say,
    write_training,
)
from training.low_rank import read_peft_tensors, save_peft_adapter
from training.options import add_reformulations, make_parser, settings_of
from training.preferences import PairSettings, Sample, limit, make_pairs
from training.rewriting import Base, RewriteSettings, base_name, open_base, train_preferences, train_supervised
from training.sampling import SamplingSettings, sample_texts
from training.teacher import Candidate, Evidence, Teacher, open_judges, teacher_rows

from askew.models.find import MINILM
from askew.models.generate import SMOLLM
from askew.models.pair_network import OUTPUTS

SOFT = "soft.jsonl"
# The allowed numbers of words in a query of a file, and the kinds of rewrites that are also used as queries.
LENGTHS = range(3, 21)
POOL_KINDS = ("keywords", "explicit", "vocabulary")


@dataclass(frozen=True)
class Settings(PairSettings, RewriteSettings, SamplingSettings):
    """How the model is trained: the values of the adapter that askew ships."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.1
    most_tokens: int = 64
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    # Supervised
    epochs: int = 2
    learning_rate: float = 1e-3
    batch_size: int = 128
    warmup: float = 0.05
    more_directions: int = 5
    lower_case: float = 0.3
    # Sampled texts
    queries_per_file: int = 2600
    written_queries: int = 450
    web_rewrites: float = 0.5
    other_rewrites: float = 0.2
    samples_per_kind: int = 6
    temperature: float = 1.0
    top_p: float = 0.95
    top_k: int = 50
    most_new_tokens: int = 28
    queries_at_once: int = 400
    # Pairs
    rounds: int = 3
    least_reward: float = 0.65
    least_margin: float = 0.3
    later_margin: float = 0.2
    chosen_per_kind: int = 2
    draw_chosen: int = 0
    most_pairs: int = 24_000
    # From the third round on
    third_temperature: float = 1.1
    third_reward: float = 0.7
    third_margin: float = 0.3
    third_chosen: int = 3
    third_pairs: int = 28_000
    # Preferences
    preference_epochs: int = 1
    preference_learning_rate: float = 1e-4
    preference_batch_size: int = 64
    preference_warmup: float = 0.1
    beta: float = 0.1
    chosen_weight: float = 0.2


def query_pool(
    data: Reformulations, made: Path, files: Sequence[Path], fresh: Sequence[Row], settings: Settings, seed: int
) -> list[str]:
    """The queries to write texts for, none of them held out, in random order.

    They are the web queries to train on, plain ones, some of those written with their groups, some of each file that
    have neither rewrites nor labels, and some of the rewrites themselves.
    """
    chance, lines = random.Random(seed), read_lines(made / "plain.txt")
    groups = read_rows(made / "groups.jsonl", ("query", "source"))
    written = [row["query"] for row in groups if row["source"] == "written"]
    lines += chance.sample(written, min(settings.written_queries, len(written)))
    known = {plain(row["query"]) for row in [*data.rewrites, *data.labels, *fresh]}
    for file in files:
        texts = [line.partition("\t")[2].strip() for line in read_lines(file)]
        new = [text for text in texts if len(text.split()) in LENGTHS and plain(text) not in known]
        lines += chance.sample(new, min(settings.queries_per_file, len(new)))
    for row in data.training_rewrites():
        share = settings.web_rewrites if row["collection"] == "web" else settings.other_rewrites
        texts = [one["text"] for one in row["rewrites"] if one["kind"] in POOL_KINDS]
        if texts and chance.random() < share:
            lines.append(chance.choice(texts))
    found = data.training_queries(lines)
    chance.shuffle(found)
    return found


def judged_texts(
    base: Base, tensors: Mapping[str, Any], queries: Sequence[str], teacher: Teacher, settings: Settings, seed: int
) -> tuple[list[Sample], dict[Candidate, dict[str, float]]]:
    """Texts that the model writes, and what the teacher says of each distinct one."""
    samples = sample_texts(base.merged(tensors, settings), base.tokenizer, queries, settings, seed)
    say(f"{len(samples):,} texts for {len(queries):,} queries")
    return samples, teacher.judge(samples, queries)


def reward(one: Candidate, judged: Mapping[Candidate, Mapping[str, float]]) -> float:
    """The probability that the text is usable, and at most its limit."""
    return min(judged[one]["usable"], limit(one.query, one.kind, one.text))


def write_soft(file: Path, judged: Mapping[Candidate, Mapping[str, float]], how: str) -> None:
    """A line for each text: the query, the text, and the probabilities same and natural."""
    with file.open(how, encoding="utf-8") as opened:
        for one, found in judged.items():
            row = {"query": one.query, "text": one.text, **{name: round(found[name], 3) for name in OUTPUTS}}
            opened.write(json.dumps(row, ensure_ascii=False) + "\n")


def settings_of_round(settings: Settings, number: int) -> Settings:
    """How texts are drawn and paired in a round; the first one is 0."""
    if number < 2:
        return replace(settings, least_margin=settings.later_margin) if number else settings
    return replace(
        settings, temperature=settings.third_temperature, least_reward=settings.third_reward,
        least_margin=settings.third_margin, chosen_per_kind=settings.third_chosen, draw_chosen=1,
        most_pairs=settings.third_pairs,
    )  # fmt: skip


def one_round(
    base: Base, tensors: Mapping[str, Any], queries: Sequence[str], teacher: Teacher, dev: Sequence[Row],
    settings: Settings, number: int, given: argparse.Namespace,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The model writes texts and learns from pairs of them; the tensors after it, and what was counted and measured."""
    here = settings_of_round(settings, number)
    samples, judged = judged_texts(base, tensors, queries, teacher, here, given.seed + 1 + 2 * number)
    write_soft(given.out / SOFT, judged, "a" if number > given.finished_rounds else "w")
    rewards = [reward(Candidate(queries[one.query], one.text, one.kind), judged) for one in samples]
    pairs = make_pairs(samples, rewards, queries, here, random.Random(given.seed + number))
    told = {
        "sampled queries": len(queries), "texts": len(samples), "mean reward": round(sum(rewards) / len(rewards), 4),
        "pairs": dict(Counter(one.kind for one in pairs)),
    }  # fmt: skip
    say(f"round {number + 1} of {settings.rounds}: {told}")
    preferred, losses = train_preferences(base, tensors, pairs, dev, settings, given.seed, say)
    return preferred, {**told, "losses": losses}


def supervised(
    base: Base, data: Reformulations, dev: Sequence[Row], told: Mapping[str, Any], settings: Settings,
    given: argparse.Namespace,
) -> dict[str, Any]:  # fmt: skip
    """Train on rewrites, and write the adapter."""
    rows = data.training_rewrites()
    say(f"queries with rewrites: {rows_by_collection(rows)}")
    tensors, measured = train_supervised(base, rows, dev, settings, given.seed, say)
    folder = given.out / "supervised" if given.equivalence else given.out
    write(folder, tensors, settings, {**told, "losses": measured}, base.device)
    return tensors


def facts(settings: Settings, given: argparse.Namespace) -> dict[str, Any]:
    """What is known before training."""
    known = {"program": "tools/train_rewrite.py", "base": base_name(given.model), "seed": given.seed}
    return {**known, "settings": asdict(settings)}


def write(folder: Path, tensors: Mapping[str, Any], settings: Settings, told: Mapping[str, Any], device: str) -> None:
    """The adapter and ``training.json``."""
    save_peft_adapter(folder, tensors, told["base"], settings.alpha, settings.dropout)
    write_training(folder, told, device)
    say(f"written: {folder}")


def prefer(
    base: Base, tensors: dict[str, Any], teacher: Teacher, queries: Sequence[str], dev: Sequence[Row],
    told: dict[str, Any], settings: Settings, given: argparse.Namespace,
) -> None:  # fmt: skip
    """The rounds of preference training; the adapter of each is written, that of the last one to the folder itself."""
    given.out.mkdir(parents=True, exist_ok=True)
    rounds: list[dict[str, Any]] = []
    for number in range(given.finished_rounds, settings.rounds):
        part = queries[number :: settings.rounds]
        tensors, measured = one_round(base, tensors, part, teacher, dev, settings, number, given)
        rounds.append(measured)
        folder = given.out if number + 1 == settings.rounds else given.out / f"round-{number + 1}"
        write(folder, tensors, settings, {**told, "teacher": teacher.areas, "rounds": rounds}, base.device)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, Settings)
    add_reformulations(parser)
    parser.add_argument(
        "--fresh-labels", type=Path, nargs="*", default=[], help="files of labels not seen by the equivalence model"
    )
    parser.add_argument("--queries", type=Path, nargs="*", default=[], help="files of lines: id TAB text")
    parser.add_argument("--equivalence", help="the adapter of an equivalence model, by name or folder")
    parser.add_argument("--judge", help="the adapter of a SmolLM2 judge that the teacher also uses, by name or folder")
    parser.add_argument("--start", type=Path, help="the folder of a supervised adapter; replaces step 1")
    parser.add_argument("--resume", type=Path, help="the folder of the adapter after --finished-rounds; needs --start")
    parser.add_argument("--finished-rounds", type=int, default=0, help="the rounds that --resume has finished")
    parser.add_argument("--model", default=SMOLLM, help="the base model by name or folder")
    parser.add_argument("--encoder", default=MINILM, help="the base model of the equivalence model")
    given = parser.parse_args(arguments)
    settings = settings_of(given, Settings)
    if not 0 <= given.finished_rounds < settings.rounds:
        least = max(given.finished_rounds, 0) + 1
        raise SystemExit(f"--rounds: expected {least} or more, found {settings.rounds}")
    if (given.resume and not given.start) or bool(given.resume) != bool(given.finished_rounds):
        raise SystemExit("--resume: needs --start and --finished-rounds; give all three or none")
    data = read_reformulations(given.made, given.rewrites, given.labels)
    fresh = [row for file in given.fresh_labels for row in read_rows(file, LABEL_FIELDS)]
    queries = query_pool(data, given.made, given.queries, fresh, settings, given.seed) if given.equivalence else []
    dev = [row for row in data.rewrites if row["split"] == "dev"]
    base = open_base(given.model, choose_device(given.device))
    told = {**facts(settings, given), "data": rows_by_collection(data.training_rewrites())}
    tensors = read_peft_tensors(given.start) if given.start else supervised(base, data, dev, told, settings, given)
    if given.equivalence:
        judges = open_judges(base.device, given.equivalence, given.encoder, given.judge, given.model)
        teacher = Teacher(Evidence(base, tensors, settings, judges), teacher_rows(data, fresh), say)
        tensors = read_peft_tensors(given.resume) if given.resume else tensors
        prefer(base, tensors, teacher, queries, dev, told, settings, given)


if __name__ == "__main__":
    main()
