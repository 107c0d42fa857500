"""Generate texts with sequence-to-sequence models and causal language models.

Each prompt has its own seed and is read once for all its samples. The texts of a prompt therefore do not depend on the
other prompts of a batch (for exceptions on a GPU see ``Generator.sample_kinds_many``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.costs import count_model_calls
from askew.core.errors import ConfigError, DataError
from askew.core.files import DATA
from askew.models.decode import Llama, Sampling, Stops, append_tokens, can_decode, choose, decode, noise
from askew.models.find import (
    LOADING,
    SMOLLM_PACKAGE,
    best_device,
    cannot_load,
    halved,
    identify,
    load_parts,
    need,
    need_smollm,
    one_at_a_time,
    open_transformers,
    package_folder,
)

# Read a Llama model from a GGUF file in about three seconds; the reader of transformers takes ten.

_NAMES = {
    "token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def read_llama(path: Path) -> Any:
    """The Llama model of a GGUF file as a model of transformers, in 32 bits."""
    import torch
    from gguf import GGUFReader, dequantize
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    try:
        reader = GGUFReader(path)
        settings = {name: entry.parts[entry.data[0]][0].item() for name, entry in reader.fields.items() if entry.data}
        heads, shared = settings["llama.attention.head_count"], settings["llama.attention.head_count_kv"]
        config = LlamaConfig(
            vocab_size=settings["llama.vocab_size"], hidden_size=settings["llama.embedding_length"],
            intermediate_size=settings["llama.feed_forward_length"], num_hidden_layers=settings["llama.block_count"],
            num_attention_heads=heads, num_key_value_heads=shared,
            max_position_embeddings=settings["llama.context_length"],
            rms_norm_eps=settings["llama.attention.layer_norm_rms_epsilon"],
            rope_parameters={"rope_type": "default", "rope_theta": settings["llama.rope.freq_base"]},
            tie_word_embeddings=all(tensor.name != "output.weight" for tensor in reader.tensors),
            **{f"{token}_token_id": settings.get(f"tokenizer.ggml.{name}_token_id")
               for token, name in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))},
        )  # fmt: skip
        state = {}
        for tensor in reader.tensors:
            weight = np.array(dequantize(tensor.data, tensor.tensor_type), np.float32)
            *layer, part, kind = tensor.name.removeprefix("blk.").split(".")
            if rows := {"attn_q": heads, "attn_k": shared}.get(part):
                # Rotated pairs are adjacent in the file, but half a head apart in transformers.
                pairs = weight.reshape(rows, -1, 2, weight.shape[-1])
                weight = np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weight.shape)
            place = f"layers.{layer[0]}.{_NAMES[part]}" if layer else _NAMES.get(part, part)
            state["lm_head.weight" if part == "output" else f"model.{place}.{kind}"] = torch.from_numpy(weight)
    except (KeyError, IndexError, ValueError) as error:
        raise DataError(f"{path}: expected a GGUF file of a Llama model, found something else ({error!r})") from error
    with torch.device("meta"):  # skips the initialization with random weights
        model = LlamaForCausalLM(config)
    model.load_state_dict(state, strict=False, assign=True)
    model.tie_weights()
    model.model.rotary_emb = LlamaRotaryEmbedding(config)
    return model


__all__ = ["ADAPTERS", "SMOLLM", "Generator", "Sampling", "find_adapter", "kind_of", "load_generator"]
SMOLLM = "SmolLM2-135M-Instruct"
ADAPTERS = DATA / "adapters"
_LINE_BREAKS = ("\n", "Ċ", "<0x0A>")
_ROWS_ON_GPU = 8192


@dataclass(frozen=True)
class Generator:
    """A model in memory that writes texts."""

    id: str
    model: Any
    tokenizer: Any
    is_seq2seq: bool
    most_tokens: int

    def shown(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Messages as one prompt: by the chat template of the model, or one message per line if it has none."""
        if self.tokenizer.chat_template and not self.is_seq2seq:
            return str(self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
        return "\n".join(message["content"] for message in messages) + "\n"

    def sample(self, prompt: str, count: int, seed: int, how: Sampling) -> list[str]:
        """Sample ``count`` texts for a prompt."""
        return self.sample_many([prompt], count, [seed], how)[0]

    def sample_many(self, prompts: Sequence[str], count: int, seeds: Sequence[int], how: Sampling) -> list[list[str]]:
        """Sample ``count`` texts for each prompt, which has its seed; together on a GPU, one by one on the CPU."""
        count_model_calls(len(prompts) * count)
        shown = [self._tokens(prompt, self.most_tokens) for prompt in prompts]
        texts: list[list[str]] = [[] for _ in prompts]
        # The prompts are longer than queries.
        for i, tokens in self._written(shown, [[]], count, seeds, how, Stops(self._ends), _ROWS_ON_GPU // 4):
            texts[i] = [text.strip() for text in self._texts(tokens)]
        return texts

    def sample_kinds_many(
        self, prefixes: Sequence[str], endings: Sequence[str], count: int, seeds: Sequence[int], how: Sampling
    ) -> list[list[list[str]]]:
        """Sample ``count`` one-line texts for each prompt: a prefix, which has its seed, and one of the endings.

        On machines of the same kind, the texts depend only on the arguments and the weights. On the CPU prefixes are
        decoded one by one, so the texts of a prefix do not depend on the others. On a GPU many prefixes are decoded
        together. The random numbers of a prefix do not depend on the others, but the last digits of a probability may,
        and so, rarely, a token.

        Prefix and ending are tokenized separately; a prefix should end at a word boundary, best with a line break.
        """
        count_model_calls(len(prefixes) * len(endings) * count)
        ends = [self._tokens(ending, self.most_tokens // 2) for ending in endings]
        most = self.most_tokens - max(map(len, ends))
        shown = [self._tokens(prefix, most) for prefix in prefixes]
        texts: list[list[list[str]]] = [[[] for _ in endings] for _ in prefixes]
        stops = Stops(self._ends, self._breaks)
        for i, tokens in self._written(shown, ends, count, seeds, how, stops, _ROWS_ON_GPU):
            lines = [text.partition("\n")[0].strip() for text in self._texts(tokens)]
            texts[i] = [lines[at : at + count] for at in range(0, len(lines), count)]
        return texts

    def _written(
        self, shown: Sequence[Sequence[int]], ends: Sequence[Sequence[int]], count: int, seeds: Sequence[int],
        how: Sampling, stops: Stops, most_rows: int,
    ) -> Iterator[tuple[int, list[list[int]]]]:  # fmt: skip
        """The tokens of the texts of each prefix that is not empty; on a GPU those of similar length together."""
        together = (self._network or self.is_seq2seq) and self.model.device.type == "cuda"
        at_once = max(1, most_rows // (len(ends) * count)) if together else 1
        by_length = sorted((i for i, prefix in enumerate(shown) if prefix), key=lambda i: len(shown[i]))

        def write(some: Sequence[int]) -> list[list[list[int]]]:
            return self._write([shown[i] for i in some], ends, count, [seeds[i] for i in some], how, stops)

        for rows in (by_length[at : at + at_once] for at in range(0, len(by_length), at_once)):
            yield from zip(rows, halved(rows, write), strict=True)

    def _tokens(self, text: str, most: int) -> list[int]:
        cut = self.tokenizer(text, truncation=True, max_length=most, add_special_tokens=self.is_seq2seq)
        return list(cut["input_ids"])

    def _texts(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return list(self.tokenizer.batch_decode([list(row) for row in rows], skip_special_tokens=True))

    def _write(
        self, prefixes: Sequence[Sequence[int]], endings: Sequence[Sequence[int]], count: int, seeds: Sequence[int],
        how: Sampling, stops: Stops,
    ) -> list[list[list[int]]]:  # fmt: skip
        """The tokens of the texts of each prefix, in the order of the endings."""
        import torch

        with torch.inference_mode():
            if self._network:
                return decode(self._network, prefixes, endings, count, seeds, how, stops)
            # Any other model of transformers: each prompt is read once, and its samples are decoded together.
            written: list[list[list[int]]] = [[] for _ in prefixes]
            drawn = [noise(seed, len(endings) * count, how) for seed in seeds]
            for j, ending in enumerate(endings):
                own = [one[:, j * count : (j + 1) * count] for one in drawn]
                prompts = [[*prefix, *ending] for prefix in prefixes]
                if self.is_seq2seq:
                    made = _write_seq2seq(self.model, prompts, torch.cat(own, 1), how, stops)
                    for at, texts in enumerate(written):
                        texts.extend(made[at * count : (at + 1) * count])
                    continue
                for texts, prompt, one in zip(written, prompts, own, strict=True):
                    texts.extend(
                        _write_causal(self.model, torch.tensor([prompt], device=self.model.device), one, how, stops)
                    )
            return written

    def translate(self, texts: Sequence[str], source: str, target: str, beams: int) -> list[str]:
        """Translate each text by beam search; languages are codes of the model, or empty if it has only one."""
        if source and hasattr(self.tokenizer, "src_lang"):
            self.tokenizer.src_lang = source
        options = {}
        if target:
            token = self.tokenizer.convert_tokens_to_ids(target)
            if token is None or token == self.tokenizer.unk_token_id:
                raise ConfigError(
                    f"model {self.id}: it does not know the language {target!r}",
                    code="unknown-language",
                    language=target,
                )
            options["forced_bos_token_id"] = token
        return [line for (line,) in self.search(texts, beams, 1, **options)]

    def search(self, texts: Sequence[str], beams: int, count: int, **options: Any) -> list[list[str]]:
        """The ``count`` likeliest texts for each prompt by beam search, the most likely one first."""
        import torch

        count_model_calls(len(texts) * count)
        outputs = []
        for text in texts:  # one by one: padding would change the last digits of scores, and so sometimes the text
            encoded = self.tokenizer(
                text, return_tensors="pt", truncation=True, max_length=self.most_tokens,
                add_special_tokens=self.is_seq2seq,
            ).to(self.model.device)  # fmt: skip
            start = 0 if self.is_seq2seq else encoded["input_ids"].shape[1]
            with torch.inference_mode():
                rows = self.model.generate(
                    **encoded, num_beams=beams, num_return_sequences=count, do_sample=False, max_new_tokens=64,
                    **options,
                )  # fmt: skip
            lines = self.tokenizer.batch_decode(rows[:, start:], skip_special_tokens=True)
            outputs.append([line.strip() for line in lines])
        return outputs

    @cached_property
    def _network(self) -> Llama | None:
        """The network for fast decoding; None if the model is not a plain Llama."""
        return None if self.is_seq2seq or not can_decode(self.model) else Llama(self.model)

    @cached_property
    def _ends(self) -> frozenset[int]:
        """The tokens that end a text: all special tokens except the one for unknown words."""
        return frozenset(int(token) for token in self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}

    @cached_property
    def _breaks(self) -> frozenset[int]:
        """The tokens that contain a line break, in the spellings of the common tokenizers."""
        near = [i for token, i in self.tokenizer.get_vocab().items() if any(mark in token for mark in _LINE_BREAKS)]
        return frozenset(i for i in near if "\n" in self.tokenizer.decode([i]))


def _write_causal(model: Any, prompt: Any, drawn: Any, how: Sampling, stops: Stops) -> list[list[int]]:
    count = drawn.shape[1]
    read = model(input_ids=prompt, use_cache=True, logits_to_keep=1)
    memory = read.past_key_values
    memory.batch_repeat_interleave(count)
    logits = read.logits[:, -1].repeat(count, 1)

    def following(tokens: Any) -> Any:
        return model(input_ids=tokens, past_key_values=memory, use_cache=True).logits[:, -1]

    return _write(following, logits, drawn, how, stops)


def _write_seq2seq(
    model: Any, prompts: Sequence[Sequence[int]], drawn: Any, how: Sampling, stops: Stops
) -> list[list[int]]:
    """The texts of each prompt, one prompt after the other."""
    import torch

    count, longest = drawn.shape[1] // len(prompts), max(map(len, prompts))
    ids = torch.tensor([[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts], device=model.device)
    lengths = torch.tensor([len(prompt) for prompt in prompts], device=model.device)
    mask = (torch.arange(longest, device=model.device) < lengths.unsqueeze(1)).long()
    states = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    states, mask = states.repeat_interleave(count, dim=0), mask.repeat_interleave(count, dim=0)
    memory = None

    def following(tokens: Any) -> Any:
        nonlocal memory
        answer = model(
            encoder_outputs=(states,), attention_mask=mask, decoder_input_ids=tokens, past_key_values=memory,
            use_cache=True,
        )  # fmt: skip
        memory = answer.past_key_values
        return answer.logits[:, -1]

    start = model.config.decoder_start_token_id
    first = torch.full(
        (len(states), 1), int(start if start is not None else model.config.pad_token_id), device=model.device
    )
    return _write(following, following(first), drawn, how, stops)


def _write(following: Any, logits: Any, drawn: Any, how: Sampling, stops: Stops) -> list[list[int]]:
    """Decode token by token until every sample has ended."""
    count = drawn.shape[1]
    rows: list[list[int]] = [[] for _ in range(count)]
    open_rows = [True] * count
    for step in range(how.max_new_tokens):
        tokens = choose(logits.float().cpu(), drawn[step], how, stops, step)
        append_tokens(rows, open_rows, range(count), tokens.tolist(), stops)
        if not any(open_rows) or step + 1 == how.max_new_tokens:
            break
        logits = following(tokens.unsqueeze(-1).to(logits.device))
    return rows


def find_adapter(name: str) -> Path:
    """The folder of an adapter, given as the name of a shipped adapter or as a folder."""
    folder = ADAPTERS / name if (ADAPTERS / name).is_dir() else Path(name)
    if not (folder / "adapter_config.json").exists():
        shipped = sorted(path.parent for path in ADAPTERS.glob("*/adapter_config.json"))
        # An adapter with a head is a judge and does not generate texts.
        names = ", ".join(place.name for place in shipped if not (place / "head.safetensors").exists())
        raise ConfigError(
            f"adapter {name!r}: expected a folder with adapter_config.json, or one of {names}",
            code="no-adapter",
            known=names,
        )
    return folder


def kind_of(name: str, revision: str | None = None) -> str:
    """Whether a model by name, folder or hub id is seq2seq or causal."""
    if name == SMOLLM:
        return "causal"
    (config,) = load_parts(name, "generator", "AutoConfig", extra="lm", revision=revision)
    return "seq2seq" if config.is_encoder_decoder else "causal"


@one_at_a_time
def open_generator(
    name: str, kind: str, adapter: str | None = None, revision: str | None = None, device: str | None = None
) -> Generator:
    """Load a new copy of a generator by folder or hub id; ``kind`` is seq2seq or causal.

    The weights of SmolLM2 come from a Python package. The default device is the GPU if there is one.
    """
    if name == SMOLLM:
        need_smollm(f"the model {name!r}")
        model, tokenizer = _open_smollm()
    else:
        model_class = "AutoModelForSeq2SeqLM" if kind == "seq2seq" else "AutoModelForCausalLM"
        tokenizer, model = load_parts(name, kind, "AutoTokenizer", model_class, extra="lm", revision=revision)
    if adapter is not None:
        need("peft", f"the adapter {adapter!r}", "lm")
        from peft import PeftModel

        place = str(find_adapter(adapter))
        try:
            model = PeftModel.from_pretrained(model, place).merge_and_unload()
        except LOADING as error:
            raise cannot_load(name, kind, error) from error
    model.eval()
    longest = int(getattr(model.config, "max_position_embeddings", 512) or 512)
    model_id = SMOLLM if name == SMOLLM else identify(name, revision)
    label = model_id if adapter is None else f"{model_id}+{identify(place)}"
    return Generator(label, model.to(best_device(device)), tokenizer, kind == "seq2seq", min(longest, 512))


def _open_smollm() -> tuple[Any, Any]:
    open_transformers()
    from transformers import PreTrainedTokenizerFast

    folder = package_folder(SMOLLM_PACKAGE)
    file = next(iter(sorted(folder.glob("*.gguf"))), None) if folder is not None else None
    if file is None:
        raise ConfigError(f"the package {SMOLLM_PACKAGE} has no .gguf file; reinstall it")
    try:
        place = str(file.parent)
        return read_llama(file), PreTrainedTokenizerFast.from_pretrained(place, gguf_file=file.name)  # nosec B615 - local
    except LOADING as error:
        raise cannot_load(SMOLLM, "causal", error) from error


load_generator = cache(open_generator)  # each generator is loaded once; it must not be changed
