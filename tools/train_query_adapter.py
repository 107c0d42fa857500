"""Fine-tune SmolLM2-135M-Instruct to write queries, measure it, and write the model card of the adapter askew ships.

    python tools/train_query_adapter.py prepare --data DATA --out EXAMPLES     boolq and squad_part
    python tools/train_query_adapter.py train --examples EXAMPLES --gguf FILE --out ADAPTER     wants a GPU
    python tools/train_query_adapter.py measure --examples EXAMPLES --adapter ADAPTER     and writes the card

``prepare`` splits by passage (askew.core.split), so that no passage is on both sides, and makes two kinds of examples:
passage to query; and query to query, which are two questions about one passage that all-MiniLM-L6-v2 finds alike, and
for every other question its content words with the question. ``train`` fits a LoRA adapter on the train part with the
loss on the target only. ``measure`` compares the base model and the adapter on the test part, through askew's own code.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from askew.core.split import part_of
from askew.models.prompts import from_passage, from_query
from askew.trainers.rewriting.scores import bleu_counts, common_length, f_measure

COLLECTIONS = ("boolq", "squad_part")
ALIKE, SAME = 0.75, 0.985
SEED = 7
_STOP_LINES = """a an and are as at be by did do does for from had has have how in is it of on or that the their there
these this to was were what when where which who whom whose why will with can could would should you your i"""
STOP = frozenset(_STOP_LINES.split())
LORA = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.05, "target_modules": "all-linear", "task_type": "CAUSAL_LM"}
TRAINING = {"num_train_epochs": 1.5, "learning_rate": 4e-4, "per_device_train_batch_size": 128, "warmup_steps": 50}


def prepare(data: Path, out: Path) -> None:
    examples: dict[str, list[dict[str, str]]] = defaultdict(list)
    for name in COLLECTIONS:
        docs = dict(_columns(data / name / "docs.tsv"))
        queries = dict(_columns(data / name / "queries.tsv"))
        asked: dict[str, list[str]] = defaultdict(list)
        for line in (data / name / "qrels.txt").read_text(encoding="utf-8").splitlines():
            query, _, doc, grade = line.split()
            if int(grade) > 0:
                asked[doc].append(" ".join(queries[query].split()))
        for doc, texts in asked.items():
            part = part_of(f"{name}/{doc}")
            for text in texts:
                examples[part].append({"task": "passage", "prompt": from_passage(docs[doc]), "target": text})
                if (short := _keywords(text)) and len(text) % 2 == 0:
                    examples[part].append({"task": "keywords", "prompt": from_query(short), "target": text})
        for doc, one, other in _alike(asked):
            part = part_of(f"{name}/{doc}")
            examples[part].append({"task": "query", "prompt": from_query(one), "target": other})
    out.mkdir(parents=True, exist_ok=True)
    for part, rows in sorted(examples.items()):
        random.Random(SEED).shuffle(rows)
        (out / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        print(
            part, len(rows), {task: sum(r["task"] == task for r in rows) for task in ("passage", "query", "keywords")}
        )


def _columns(path: Path) -> list[list[str]]:
    return [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines() if line]


def _keywords(text: str) -> str:
    """The content words of a question, where they are two or more and fewer than all."""
    words = re.findall(r"[\w'’-]+", text)
    kept = [word for word in words if word.lower() not in STOP]
    return " ".join(kept) if 2 <= len(kept) < len(words) else ""


def _alike(asked: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    from askew.models import MINILM, load_model

    encoder = load_model("dense", MINILM)
    texts = sorted({text for group in asked.values() if len(group) > 1 for text in group})
    vectors = dict(zip(texts, encoder.encode(texts, batch_size=256, normalize_embeddings=True), strict=True))
    pairs = []
    for doc, group in asked.items():
        distinct = sorted(set(group))
        for one in distinct:
            for other in distinct:
                if one != other and ALIKE <= float(vectors[one] @ vectors[other]) < SAME:
                    pairs.append((doc, one, other))
    return pairs


def train(examples: Path, gguf: Path, out: Path, device: str, workers: int) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments, set_seed

    set_seed(SEED)
    model, tokenizer = _base(gguf, device)
    parts = {part: _read(examples / f"{part}.jsonl") for part in ("train", "dev", "test")}
    encoded = {part: [_encode(row, tokenizer) for row in rows] for part, rows in parts.items()}
    before = _loss(model, encoded["test"], parts["test"], tokenizer)
    model = get_peft_model(model, LoraConfig(**LORA))
    arguments = TrainingArguments(
        output_dir=str(out / "work"),
        seed=SEED,
        data_seed=SEED,
        dataloader_num_workers=workers,
        lr_scheduler_type="cosine",
        bf16=device == "cuda",
        eval_strategy="no",
        save_strategy="no",
        logging_steps=100,
        disable_tqdm=True,
        report_to=[],
        **TRAINING,
    )
    collator = DataCollatorForSeq2Seq(tokenizer, padding=True, label_pad_token_id=-100)
    trainer = Trainer(
        model=model, args=arguments, train_dataset=encoded["train"], eval_dataset=encoded["dev"], data_collator=collator
    )
    trainer.train()
    model.eval()
    after = _loss(model, encoded["test"], parts["test"], tokenizer)
    model.half().save_pretrained(out)
    hardware = torch.cuda.get_device_name(0) if device == "cuda" else platform.processor()
    facts = {
        "sizes": {part: len(rows) for part, rows in parts.items()}, "loss": {"base": before, "adapter": after},
        "lora": LORA, "training": TRAINING, "seed": SEED, "hardware": hardware,
    }  # fmt: skip
    (out / "measured.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")


def _base(gguf: Path, device: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name).to(device)
    # Reading a GGUF file has turned its weights into plain floats, but the marks of the quantised form stay on.
    model.is_quantized = False
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.eval(), tokenizer


def _read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _encode(row: dict[str, str], tokenizer: Any) -> dict[str, list[int]]:
    prompt = tokenizer(row["prompt"], add_special_tokens=False)["input_ids"]
    target = tokenizer(" " + row["target"], add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
    return {"input_ids": prompt + target, "attention_mask": [1] * len(prompt + target),
            "labels": [-100] * len(prompt) + target}  # fmt: skip


def _sample(rows: list[dict[str, str]], count: int = 400) -> list[dict[str, str]]:
    chosen = []
    for task in ("passage", "query"):
        chosen += [row for row in rows if row["task"] == task][: count // 2]
    return chosen


def _loss(model: Any, encoded: list[Any], rows: list[dict[str, str]], tokenizer: Any) -> dict[str, float]:
    """Mean loss of a target's token, by task."""
    import torch
    from transformers import DataCollatorForSeq2Seq

    collate = DataCollatorForSeq2Seq(tokenizer, padding=True, label_pad_token_id=-100)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for task in ("passage", "query", "keywords"):
        chosen = [one for one, row in zip(encoded, rows, strict=True) if row["task"] == task]
        for start in range(0, len(chosen), 64):
            batch = collate(chosen[start : start + 64]).to(model.device)
            with torch.inference_mode():
                loss = model(**batch).loss.item()
            tokens = int((batch["labels"][:, 1:] != -100).sum())
            sums[task][0] += loss * tokens
            sums[task][1] += tokens
    return {task: total / tokens for task, (total, tokens) in sums.items()}


def measure(examples: Path, adapter: Path) -> None:
    """ROUGE-L and BLEU of the likeliest text, by task; then the card."""
    from askew.models.generate import SMOLLM, Sampling, load_generator

    rows = _sample(_read(examples / "test.jsonl"))
    facts = json.loads((adapter / "measured.json").read_text(encoding="utf-8"))
    how = Sampling(max_new_tokens=40, temperature=0.0)
    facts["overlap"] = {}
    for name, given in (("base", None), ("adapter", str(adapter))):
        writer = load_generator(SMOLLM, "causal", given)
        made = [_first_line(writer.sample(row["prompt"], 1, SEED, how)) for row in rows]
        facts["overlap"][name] = {task: _scores(task, rows, made) for task in ("passage", "query")}
    facts["examples"] = _demo_examples(str(adapter))
    (adapter / "measured.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")
    (adapter / "README.md").write_text(_card(facts), encoding="utf-8")


def _first_line(texts: list[str]) -> str:
    return texts[0].split("\n")[0].strip() if texts else ""


def _scores(task: str, rows: list[dict[str, str]], made: list[str]) -> dict[str, float]:
    chosen = [(row, text) for row, text in zip(rows, made, strict=True) if row["task"] == task]
    pairs = [(_words(row["target"]), _words(text)) for row, text in chosen]
    return {
        "n": len(pairs),
        "rouge_l": sum(f_measure(common_length(a, b), len(a), len(b)) for a, b in pairs) / len(pairs),
        "bleu": _bleu(pairs),
        "copies": sum(from_query(text) == row["prompt"] for row, text in chosen) / len(pairs),
    }


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _bleu(pairs: list[tuple[list[str], list[str]]]) -> float:
    """Corpus BLEU (Papineni et al. 2002); 0 where no n-gram of some length is right anywhere."""
    wanted, written = ([" ".join(words) for words in side] for side in zip(*pairs, strict=True))
    *counts, ours, theirs = bleu_counts(wanted, written).sum(axis=0).tolist()
    if not all(counts):
        return 0.0
    logs = [math.log(right / total) for right, total in zip(counts[:4], counts[4:], strict=True)]
    return math.exp(min(0.0, 1 - ours / theirs) + sum(logs) / 4)


def _demo_examples(adapter: str) -> list[dict[str, Any]]:
    """What it writes for passages of the embedded demo: those nearest to and farthest from their passage."""
    from askew.corpora.demo import demo_files
    from askew.models import MINILM, load_model
    from askew.models.generate import SMOLLM, Sampling, load_generator

    passages = [text for _, text in _columns(demo_files().docs)][::9]
    writer, encoder = load_generator(SMOLLM, "causal", adapter), load_model("dense", MINILM)
    how = Sampling(max_new_tokens=40, temperature=0.0)
    made = [_first_line(writer.sample(from_passage(text), 1, SEED, how)) for text in passages]
    vectors = encoder.encode([*passages, *made], normalize_embeddings=True)
    near = [float(vectors[i] @ vectors[len(passages) + i]) for i in range(len(passages))]
    order = sorted(range(len(passages)), key=lambda i: -near[i])
    return [{"passage": passages[i], "made": made[i], "cosine": near[i]} for i in [*order[:4], *order[-4:]]]


def _card(facts: dict[str, Any]) -> str:
    loss, overlap = facts["loss"], facts["overlap"]
    sizes = facts["sizes"]
    lines = [
        "---",
        "license: cc-by-sa-4.0",
        "base_model: HuggingFaceTB/SmolLM2-135M-Instruct",
        "datasets:",
        "- google/boolq",
        "- rajpurkar/squad",
        "---",
        "# smollm2-query",
        "",
        "A LoRA adapter for SmolLM2-135M-Instruct (Apache-2.0) that writes the query a passage answers, and a query in",
        "other words. Trained by `tools/train_query_adapter.py` on BoolQ (CC BY-SA 3.0) and a part of SQuAD 1.1",
        f"(CC BY-SA 4.0), the passages of the train part only: {sizes['train']:,} examples ({sizes['dev']:,} dev,",
        f"{sizes['test']:,} test; no passage on two sides). The adapter is under CC BY-SA 4.0.",
        "",
        "Training data: BoolQ, by Clark, Lee, Chang, Kwiatkowski, Collins and Toutanova (NAACL 2019),",
        "https://github.com/google-research-datasets/boolean-questions, CC BY-SA 3.0; SQuAD 1.1, by Rajpurkar, Zhang,",
        "Lopyrev and Liang (EMNLP 2016), https://rajpurkar.github.io/SQuAD-explorer/, CC BY-SA 4.0; both from articles",
        "of Wikipedia by its contributors. License of the adapter: https://creativecommons.org/licenses/by-sa/4.0/",
        "",
        f"LoRA {json.dumps(facts['lora'])}; training {json.dumps(facts['training'])}; seed {facts['seed']}; "
        f"{facts['hardware']}.",
        "",
        "Measured on the test part, the likeliest text. `copies` is the share of texts that repeat the query they were",
        "given: the base model's overlap on queries owes much to that. The loss is per token of the target.",
        "",
        "| task | model | loss | ROUGE-L | BLEU | copies | n |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in ("passage", "query"):
        for name in ("base", "adapter"):
            o = overlap[name][task]
            lines.append(
                f"| {task} | {name} | {loss[name][task]:.3f} | {o['rouge_l']:.3f} | {o['bleu']:.3f} "
                f"| {o['copies']:.1%} | {o['n']} |"
            )
    lines += ["", "Examples from askew's demo collection, the four nearest to their passage and the four farthest:", ""]
    for row in facts["examples"]:
        lines += [f"- {row['made']} (cosine {row['cosine']:.2f})", f"  > {row['passage'][:200]}", ""]
    lines += [
        "Limits: 135 million parameters and two kinds of text. It invents facts, drifts to yes/no questions (as BoolQ",
        "has them), and repeats the lean of its training data. Every candidate is to be filtered and measured.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    one = steps.add_parser("prepare")
    one.add_argument("--data", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    two = steps.add_parser("train")
    two.add_argument("--examples", type=Path, required=True)
    two.add_argument("--gguf", type=Path, required=True)
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--device", default="cuda")
    two.add_argument("--workers", type=int, default=4)
    three = steps.add_parser("measure")
    three.add_argument("--examples", type=Path, required=True)
    three.add_argument("--adapter", type=Path, required=True)
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.data, options.out)
    elif options.step == "train":
        train(options.examples, options.gguf, options.out, options.device, options.workers)
    else:
        measure(options.examples, options.adapter)


if __name__ == "__main__":
    main()
