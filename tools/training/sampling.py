"""Many texts for many queries at once, each with its log probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from askew.models.prompts import KINDS, kind_ending, query_prefix
from training.preferences import Sample

_MOST_PROMPT_TOKENS = 64
_LOOK_EVERY = 4


class SamplingSettings(Protocol):
    """What decides on samples; see ``train_queries.Settings``."""

    samples_per_kind: int
    temperature: float
    top_p: float
    top_k: int
    most_new_tokens: int
    queries_at_once: int


def sample_texts(
    model: Any, tokenizer: Any, queries: Sequence[str], settings: SamplingSettings, seed: int
) -> list[Sample]:
    """Texts of each kind for each query, ordered by query and kind. Queries of similar length are read together."""
    chance = torch.Generator(device=model.device).manual_seed(seed)
    order = sorted(range(len(queries)), key=lambda row: len(queries[row]))
    model.eval()
    found = []
    for first in range(0, len(order), settings.queries_at_once):
        asked = [(row, kind) for row in order[first : first + settings.queries_at_once] for kind in KINDS]
        prompts = [query_prefix(queries[row]) + kind_ending(kind) for row, kind in asked]
        made = zip(*_write(model, tokenizer, prompts, settings, chance), strict=True)
        rows = [one for one in asked for _ in range(settings.samples_per_kind)]
        for (row, kind), (text, total) in zip(rows, made, strict=True):
            found.append(Sample(row, kind, text.split("\n")[0].strip(), total))
    return sorted(found, key=lambda one: (one.query, KINDS.index(one.kind)))


@torch.no_grad()
def _write(
    model: Any, tokenizer: Any, prompts: Sequence[str], settings: SamplingSettings, chance: Any
) -> tuple[list[str], list[float]]:
    """The texts of each prompt, one prompt after the other, and their log probabilities."""
    count, end = settings.samples_per_kind, tokenizer.eos_token_id
    ids, mask = _pad_left(tokenizer, prompts, model.device)
    places = (mask.cumsum(1) - 1).clamp(min=0)
    read = model(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=True, logits_to_keep=1)
    memory = read.past_key_values
    memory.batch_repeat_interleave(count)
    logits, mask, place = (one.repeat_interleave(count, 0) for one in (read.logits[:, -1], mask, places[:, -1:]))
    done = torch.zeros(len(logits), dtype=torch.bool, device=model.device)
    totals = torch.zeros(len(logits), device=model.device)
    written = []
    for step in range(settings.most_new_tokens):
        tokens = _draw(logits, settings, chance)
        likely = torch.log_softmax(logits.float(), -1).gather(1, tokens[:, None])[:, 0]
        totals += torch.where(done, 0.0, likely)
        tokens = torch.where(done, end, tokens)
        written.append(tokens)
        done |= tokens == end
        # To look makes the GPU wait, so it is done now and then.
        if step % _LOOK_EVERY == _LOOK_EVERY - 1 and bool(done.all()):
            break
        mask, place = torch.cat([mask, torch.ones_like(mask[:, :1])], 1), place + 1
        logits = model(
            input_ids=tokens[:, None], attention_mask=mask, position_ids=place, past_key_values=memory, use_cache=True
        ).logits[:, -1]
    texts = tokenizer.batch_decode(torch.stack(written, 1).tolist(), skip_special_tokens=True)
    return list(texts), [round(one, 3) for one in totals.tolist()]


def _pad_left(tokenizer: Any, prompts: Sequence[str], device: Any) -> tuple[Any, Any]:
    """The tokens of prompts that end together, and which of them are no padding."""
    rows = [row[-_MOST_PROMPT_TOKENS:] for row in tokenizer(list(prompts), add_special_tokens=False)["input_ids"]]
    longest = max(map(len, rows))
    ids = [[tokenizer.eos_token_id] * (longest - len(row)) + row for row in rows]
    mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _draw(logits: Any, settings: SamplingSettings, chance: Any) -> Any:
    """A token for each row: among the ``top_k`` most probable, then among those that make up ``top_p`` of these."""
    values, tokens = torch.topk(logits.float() / max(settings.temperature, 1e-4), min(settings.top_k, logits.shape[-1]))
    shares = values.softmax(-1)
    shares = torch.where(shares.cumsum(-1) - shares >= settings.top_p, 0.0, shares)
    return tokens.gather(1, torch.multinomial(shares, 1, generator=chance))[:, 0]
