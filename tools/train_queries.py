"""Train the models that write and judge queries, in the order in which those that ship were trained.

    python tools/train_queries.py prepare --data DATA --out WORK       rows to train on, from the label sets
    python tools/train_queries.py train --work WORK --before ADAPTERS  some 25 minutes on an NVIDIA H200

``DATA`` has ``reformulation`` (``rewrites.jsonl``, ``equivalence.jsonl``, ``naturalness.jsonl``) and the collections
boolq, squad_part and fairytaleqa; the other rows are in ``benchmarks/reformulation``. ``ADAPTERS`` has the adapters
smollm2-rewrite, smollm2-equivalence and minilm-equivalence that shipped before, which training starts from.

1. Judges on SmolLM2 and MiniLM learn three outputs from labels: the same need, natural in two levels (yes and stiff
   against no), and natural in three levels (yes against the rest). The teacher is their blend with the judges before.
2. The rewriter learns from the written targets (three times each) and from those rewrites of earlier training data that
   the teacher takes for the same and natural; then from pairs of its own texts (DPO), in one round. The reward is
   P(same) x P(natural), lower where only frame words change.
3. The judges learn the probabilities of the teacher for texts that the rewriter wrote, and the labels again. Of their
   outputs the first and the third are kept.
4. The generator learns the query of a judged passage; 15% of the passages, by a hash of their text, are held out. It
   does not ship: a reader found 76 of 200 unfiltered outputs answered by their passage, and 46 of these natural.

No query of the parts dev and test is trained on, nor any row of MS MARCO.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from training.data import MADE, OPEN, choose_device, plain, read_lines, read_reformulations, read_rows, say
from training.graphed import TrainingStep
from training.logistic import fit_logistic
from training.low_rank import (
    Pace,
    adapt,
    fit_epochs,
    half_precision,
    peft_tensors,
    put_encoder_tensors,
    put_peft_tensors,
    read_peft_tensors,
    save_encoder_adapter,
    save_peft_adapter,
)
from training.preferences import PairSettings, Sample, limit, make_pairs
from training.rewriting import HUB_ID, Base, RewriteSettings, open_base, train_preferences, train_supervised
from training.sampling import SamplingSettings, sample_texts

from askew.models import pair_network
from askew.models.adapted import WEIGHTS, make_head
from askew.models.find import MINILM
from askew.models.generate import SMOLLM
from askew.models.pair_network import HEAD, MOST_TOKENS, PairNetwork, PairTokens
from askew.models.prompts import from_passage
from askew.models.relevance import open_encoder

Pairs = Sequence[tuple[Any, ...]]
Teacher = Callable[[Pairs], Any]
# The kinds of earlier rewrites, as they are named now.
KINDS = {"vocabulary": "synonyms", "explicit": "specific", "keywords": "keywords", "paraphrase": "paraphrase"}
_STOP_LINES = """a an the of in on at to for from by with and or is are was were be been do does did can could will
would should has have had it its this that what who which when where why how many much there as if than i my me you
your"""
STOP = frozenset(_STOP_LINES.split())
OUTPUTS, FLUENT = 3, 2


@dataclass(frozen=True)
class Settings(PairSettings, RewriteSettings, SamplingSettings):
    """The values of the models that ship."""

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05
    most_tokens: int = 64
    epochs: int = 2
    learning_rate: float = 1e-3
    batch_size: int = 128
    warmup: float = 0.05
    more_directions: int = 3
    lower_case: float = 0.3
    weight_decay: float = 0.01
    largest_gradient: float = 1.0
    preference_epochs: int = 1
    preference_learning_rate: float = 1e-4
    preference_batch_size: int = 64
    preference_warmup: float = 0.1
    beta: float = 0.1
    chosen_weight: float = 0.2
    samples_per_kind: int = 5
    temperature: float = 1.0
    top_p: float = 0.95
    top_k: int = 50
    most_new_tokens: int = 28
    queries_at_once: int = 400
    least_reward: float = 0.55
    least_margin: float = 0.25
    chosen_per_kind: int = 2
    draw_chosen: int = 0
    most_pairs: int = 20_000


SETTINGS = Settings()
JUDGE = replace(SETTINGS, rank=16, alpha=32)


def prepare(data: Path, out: Path) -> None:
    """Write the rows that the models learn from; a pair is query, text, and three wanted values (-1: not known)."""
    source = data / "reformulation"
    rows = read_reformulations(MADE, [source / "rewrites.jsonl"], [source / "equivalence.jsonl"])
    fields = ("query", "candidate", "need", "natural", "split")
    levels = read_rows(source / "naturalness.jsonl", fields)
    held_out = rows.held_out() | {plain(row["query"]) for row in levels if row["split"] != "train"}
    levels += read_rows(MADE / "levels.jsonl", fields)
    read = [
        (row["query"], row["candidate"], float(row["need"] == "same"), float(row["natural"] != "no"),
         float(row["natural"] == "yes"))
        for row in levels if plain(row["query"]) not in held_out
    ]  # fmt: skip
    labels = [
        (row["query"], row["candidate"], float(row["need"] == "same"), float(row["natural"]),
         -1.0 if row["natural"] else 0.0)
        for row in rows.training_labels() if plain(row["query"]) not in held_out
    ]  # fmt: skip
    chance = random.Random(2)
    rewrites = [row for row in rows.training_rewrites() if plain(row["query"]) not in held_out]
    typed = [
        (chance.choice(row["rewrites"])["text"], row["query"], -1.0, 1.0, 1.0)
        for row in rewrites if row["collection"] != "web"
    ]  # fmt: skip
    targets = [
        row for row in read_rows(MADE / "targets.jsonl", ("query", "rewrites")) if plain(row["query"]) not in held_out
    ]
    known = {plain(row["query"]) for row in targets}
    earlier = [
        {**row, "rewrites": [{**one, "kind": KINDS.get(one["kind"], "paraphrase")} for one in row["rewrites"]]}
        for row in rewrites if plain(row["query"]) not in known
    ]  # fmt: skip
    queries = {plain(line): line for line in rows.training_queries(read_lines(MADE / "plain.txt"))}
    queries |= {plain(one["text"]): one["text"] for row in targets for one in row["rewrites"][:2]}
    passages = []
    for name in ("boolq", "squad_part", "fairytaleqa"):
        texts, asked = (
            dict(line.split("\t", 1) for line in read_lines(data / name / f"{part}.tsv"))
            for part in ("docs", "queries")
        )
        if name != "fairytaleqa":
            some = sorted(text.strip() for text in asked.values() if len(text.split()) in range(3, 21))
            queries |= {plain(text): text for text in chance.sample(some, 4500)}
        for line in read_lines(data / name / "qrels.txt"):
            query, _, document, grade = line.split()
            digest = int(hashlib.sha256(texts[document].encode()).hexdigest(), 16)
            if int(grade) > 0 and digest % 20 >= 3 and len(asked[query].split()) in range(3, 26):
                passages.append((texts[document], asked[query].strip()))
    found: dict[str, list[Any]] = {
        "levels": read, "labels": labels, "typed": typed, "targets": targets, "earlier": earlier,
        "queries": [text for key, text in queries.items() if key and key not in held_out], "passages": passages,
        "dev": [row for row in rows.rewrites if row["split"] == "dev" and row["collection"] in OPEN][:300],
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    (out / "rows.json.gz").write_bytes(gzip.compress(json.dumps(found).encode()))
    say(str({name: len(some) for name, some in found.items()}))


class SmollmJudge:
    """SmolLM2 that reads a pair; a head on the state after its last token gives three logits."""

    def __init__(self, base: Base, folder: Path) -> None:
        torch.manual_seed(0)
        self._tokens, self._filler, self._device = PairTokens(base.tokenizer), base.tokenizer.eos_token_id, base.device
        body = base.adapted(JUDGE, JUDGE.dropout)
        put_peft_tensors(body, read_peft_tensors(folder))
        head = make_head(body.config.hidden_size, 256, OUTPUTS, 0.1).to(base.device)
        if (folder / HEAD).exists():
            put_head(head, load_file(folder / HEAD))
        self.network = nn.ModuleDict({"body": body, "head": head})

    def logits(self, pairs: Pairs) -> Any:
        rows = [[*self._tokens.query(pair[0]), *self._tokens.reformulation(pair[1])] for pair in pairs]
        longest = max(map(len, rows))
        padded = torch.tensor([[*row, *[self._filler] * (longest - len(row))] for row in rows], device=self._device)
        states = self.network["body"].model(input_ids=padded, use_cache=False).last_hidden_state
        last = torch.tensor([len(row) - 1 for row in rows], device=self._device)
        return self.network["head"](states[torch.arange(len(rows), device=self._device), last].float())

    def save(self, folder: Path) -> None:
        """Write the adapter, and the head with the first and the third output."""
        save_peft_adapter(folder, peft_tensors(self.network["body"]), HUB_ID, JUDGE.alpha, JUDGE.dropout)
        head = {name: one.half().cpu().contiguous() for name, one in self.network["head"].state_dict().items()}
        save_file(
            {**head, **{name: head[name][[0, FLUENT]].contiguous() for name in ("4.weight", "4.bias")}}, folder / HEAD
        )


class MinilmJudge:
    """The cross-encoder on MiniLM with three logits."""

    def __init__(self, base: Base, folder: Path) -> None:
        torch.manual_seed(0)
        self._device = base.device
        weights = load_file(folder / WEIGHTS)
        encoder, self._tokenizer = open_encoder(MINILM)
        adapt(encoder, "encoder.layer", next(len(one) for name, one in weights.items() if name.endswith(".a")), 32, 0.1)
        kept = pair_network.OUTPUTS
        vars(pair_network)["OUTPUTS"] = ("same", "natural", "fluent")
        self.network = PairNetwork(encoder, len(weights["head.1.weight"]), 0.1).to(base.device)
        vars(pair_network)["OUTPUTS"] = kept
        head = {name.removeprefix("head."): one for name, one in weights.items() if name.startswith("head.")}
        put_encoder_tensors(self.network, {name: one for name, one in weights.items() if name.startswith("enc.")})
        put_head(self.network.head, head)

    def logits(self, pairs: Pairs) -> Any:
        batch = self._tokenizer(
            [pair[0] for pair in pairs], [pair[1] for pair in pairs], padding=True, truncation=True,
            max_length=MOST_TOKENS, return_tensors="pt", return_token_type_ids=True,
        ).to(self._device)  # fmt: skip
        with half_precision(self._device):
            return self.network(batch).float()

    def save(self, folder: Path) -> None:
        """Write the adapter with the first and the third output."""
        save_encoder_adapter(folder, self.network)
        weights = load_file(folder / WEIGHTS)
        for name in ("head.4.weight", "head.4.bias"):
            weights[name] = weights[name][[0, FLUENT]].contiguous()
        save_file(weights, folder / WEIGHTS)


def put_head(head: Any, weights: dict[str, Any]) -> None:
    """Set a head of three outputs to one of two or three; a missing third one begins as the second."""
    rows = [0, 1, len(weights["4.bias"]) - 1]
    with torch.no_grad():
        for name, one in head.state_dict().items():
            one.copy_(weights[name][rows] if name.startswith("4.") else weights[name])


def logits_of(judge: Any, pairs: Pairs) -> Any:
    """A row of logits for each pair."""
    judge.network.eval()
    found = np.zeros((len(pairs), OUTPUTS))
    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at][0]) + len(pairs[at][1]))
    with torch.inference_mode():
        for first in range(0, len(order), 512):
            rows = order[first : first + 512]
            found[rows] = judge.logits([pairs[at] for at in rows]).double().cpu().numpy()
    return found


def fit_judge(
    judge: Any, pairs: Pairs, labels: Pairs, per_epoch: int, epochs: int, rate: float, size: int, typed: Pairs = ()
) -> Any:
    """Train on pairs, and on so many of the labels in each epoch, in batches of about the same length."""
    chance, made = random.Random(0), []
    for _ in range(epochs):
        rows = [
            *pairs,
            *chance.sample(labels, min(per_epoch, len(labels))),
            *chance.sample(typed, min(300, len(typed))),
        ]
        lowered = [
            (row[0].lower().rstrip("?. "), row[1].lower().rstrip("?. "), *row[2:]) if chance.random() < 0.25 else row
            for row in rows
        ]
        lowered.sort(key=lambda row: len(row[0]) + len(row[1]))
        starts = list(range(0, max(1, len(lowered) - size + 1), size))
        chance.shuffle(starts)
        made.append([row for start in starts for row in lowered[start : start + size]])

    def loss(rows: Pairs) -> Any:
        logits = judge.logits(rows)
        wanted = torch.tensor([row[2:] for row in rows], device=logits.device)
        known = (wanted >= 0).float() * torch.tensor([1.0, 1.0, 2.0], device=logits.device)
        smooth = wanted.clamp(min=0) * 0.94 + 0.03
        return (
            functional.binary_cross_entropy_with_logits(logits, smooth, reduction="none") * known
        ).sum() / known.sum()

    fit_epochs(judge.network, made, loss, size, Pace(rate, 0.1, 0.01, 1.0, 0.98), say)
    return judge


def teacher_of(new: Sequence[Any], before: Sequence[Any], levels: Pairs) -> Teacher:
    """The probabilities same, natural in two levels, and natural in three levels of pairs.

    The last one is a regression on the logits of the new judges. (It was fit on predictions out of fold for the models
    that ship: four folds by query.)
    """
    weights, bias = fit_logistic(
        np.hstack([logits_of(one, levels) for one in new]), np.array([row[4] for row in levels]), 3.0
    )

    def judge(pairs: Pairs) -> Any:
        logits, old = [logits_of(one, pairs) for one in new], [logits_of(one, pairs) for one in before]
        mean = (logits[0] + logits[1] + 2 * old[0] + old[1])[:, :FLUENT] / 5
        return 1 / (1 + np.exp(-np.column_stack([mean, np.hstack(logits) @ weights + bias])))

    return judge


def content(text: str) -> set[str]:
    """The beginnings of the content words."""
    return {word[:5] for word in re.findall(r"[a-z0-9']+", text.lower()) if word not in STOP}


def rewards_of(queries: Sequence[str], samples: Sequence[Sample], teacher: Teacher) -> tuple[list[float], Pairs]:
    """P(same) x P(natural) of each sample, lower where only frame words change; and all judged pairs."""
    keys = list(dict.fromkeys((queries[one.query], one.text) for one in samples if one.text))
    judged = dict(zip(keys, teacher(keys).tolist(), strict=True))
    rewards = []
    for one in samples:
        query = queries[one.query]
        same, _, natural = judged.get((query, one.text), (0.0, 0.0, 0.0))
        reward = min(same * natural, limit(query, one.kind, one.text))
        asked, written = content(query), content(one.text)
        if one.kind in ("synonyms", "specific") and not written - asked:
            reward = min(reward, 0.3)
        elif one.kind != "keywords" and written == asked:
            reward *= 0.75
        rewards.append(reward)
    return rewards, [(*key, *values) for key, values in judged.items()]


def train_rewriter(base: Base, rows: dict[str, Any], teacher: Teacher, out: Path) -> Pairs:
    """Targets, then preferences; the pairs that the teacher judged on the way."""
    flat = [(row["query"], one["text"]) for row in rows["earlier"] for one in row["rewrites"]]
    good = iter((teacher(flat)[:, [0, FLUENT]] >= 0.6).all(axis=1))
    kept = [{**row, "rewrites": [one for one in row["rewrites"] if next(good)]} for row in rows["earlier"]]
    examples = [*rows["targets"] * 3, *(row for row in kept if row["rewrites"])]
    random.Random(1).shuffle(examples)
    tensors, _ = train_supervised(base, examples, rows["dev"], SETTINGS, 0, say)
    chosen = random.Random(5).sample(rows["queries"], min(4500, len(rows["queries"])))
    samples = sample_texts(base.merged(tensors, SETTINGS), base.tokenizer, chosen, SETTINGS, 1)
    rewards, judged = rewards_of(chosen, samples, teacher)
    pairs = make_pairs(samples, rewards, chosen, SETTINGS, random.Random(0))
    tensors, _ = train_preferences(base, tensors, pairs, rows["dev"][:200], SETTINGS, 0, say)
    save_peft_adapter(out / "smollm2-rewrite", tensors, HUB_ID, SETTINGS.alpha, SETTINGS.dropout)
    return judged


def train_generator(base: Base, pairs: Sequence[Sequence[str]], out: Path) -> None:
    """The query of a passage, in half of the cases in lower case."""
    tokenizer, size, longest, most, epochs = base.tokenizer, 64, 256, 48, 3
    model, chance, end = base.adapted(SETTINGS, SETTINGS.dropout, 0), random.Random(3), base.tokenizer.eos_token_id

    def loss(tokens: Any, places: Any, wanted: Any) -> Any:
        states = model.model(input_ids=tokens, use_cache=False).last_hidden_state
        picked = states.gather(1, places.unsqueeze(-1).expand(-1, -1, states.shape[-1]))
        logits = model.lm_head(picked).float().flatten(0, 1)
        total = functional.cross_entropy(logits, wanted.flatten(), ignore_index=-100, reduction="sum")
        return total / (wanted != -100).sum()

    def encoded(texts: Sequence[str]) -> list[list[int]]:
        return list(tokenizer(list(texts), add_special_tokens=False)["input_ids"])

    prompts = encoded([from_passage(passage) for passage, _ in pairs])
    written = [
        encoded([f" {query}" for _, query in pairs]),
        encoded([f" {query.lower().rstrip('?. ')}" for _, query in pairs]),
    ]
    shapes = [((size, longest), torch.long), ((size, most), torch.long), ((size, most), torch.long)]
    step = TrainingStep(model, loss, shapes, 8e-4, 0.01, 1.0, base.device)
    order, done, steps = list(range(len(pairs))), 0, epochs * (len(pairs) // size)
    for _ in range(epochs):
        chance.shuffle(order)
        for first in range(0, len(order) - size + 1, size):
            tokens, wanted = torch.full((size, longest), end), torch.full((size, most), -100)
            places = torch.zeros((size, most), dtype=torch.long)
            for row, at in enumerate(order[first : first + size]):
                target = [*chance.choice(written)[at], end][: most - 2]
                prompt = prompts[at][-(longest - len(target)) :]
                tokens[row, : len(prompt) + len(target)] = torch.tensor([*prompt, *target])
                places[row, : len(target)] = torch.arange(len(prompt) - 1, len(prompt) + len(target) - 1)
                wanted[row, : len(target)] = torch.tensor(target)
            share = min(1.0, (done + 1) / (0.05 * steps)) * 0.5 * (1 + math.cos(math.pi * done / steps))
            step(share, tokens, places, wanted)
            done += 1
    save_peft_adapter(out / "smollm2-docquery", peft_tensors(model), HUB_ID, SETTINGS.alpha, SETTINGS.dropout)


def train(work: Path, before: Path, device: str | None) -> None:
    """All four steps; the adapters are written to the folder ``work``."""
    rows = json.loads(gzip.decompress((work / "rows.json.gz").read_bytes()))
    base = open_base(SMOLLM, choose_device(device))
    levels, labels, typed = rows["levels"], rows["labels"], rows["typed"]
    new = [
        fit_judge(SmollmJudge(base, before / "smollm2-rewrite"), levels, labels, 4000, 4, 5e-4, 128, typed),
        fit_judge(MinilmJudge(base, before / "minilm-equivalence"), levels, labels, 4000, 5, 8e-4, 128, typed),
    ]
    old = [SmollmJudge(base, before / "smollm2-equivalence"), MinilmJudge(base, before / "minilm-equivalence")]
    judged = train_rewriter(base, rows, teacher_of(new, old, levels), work)
    soft = [*random.Random(9).sample(judged, min(len(judged), 36_000)), *[row for row in levels for _ in range(3)]]
    for judge, rate, name in zip(new, (3e-4, 6e-4), ("smollm2-equivalence", "minilm-equivalence"), strict=True):
        fit_judge(judge, soft, labels, 8000, 1, rate, 256).save(work / name)
    train_generator(base, rows["passages"], work)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    one = parts.add_parser("prepare")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(do=lambda given: prepare(given.data, given.out))
    one = parts.add_parser("train")
    one.add_argument("--work", type=Path, required=True)
    one.add_argument("--before", type=Path, required=True)
    one.add_argument("--device")
    one.set_defaults(do=lambda given: train(given.work, given.before, given.device))
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
