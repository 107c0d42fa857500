"""The judge on SmolLM2, with a tiny Llama: its logits, pairs side by side, long texts, and a damaged head."""

import json

import numpy as np
import pytest

from askew.core.errors import DataError
from askew.models.generate import open_generator

torch = pytest.importorskip("torch", reason="the extra 'neural' is not installed")
pytest.importorskip("transformers", reason="the extra 'neural' is not installed")
pair_judge = pytest.importorskip("askew.models.pair_network")
save_file = pytest.importorskip("safetensors.torch").save_file
HEAD, make_head, load_pair_judge = pair_judge.HEAD, pair_judge.make_head, pair_judge.load_pair_judge

WORD_LINE = "who wrote the book red car old ship tall queen ancient boat of a is that ruler"
WORDS = WORD_LINE.split()
PAIRS = [
    ("red car", "a car that is red"), ("old ship", "ancient boat"), ("red car", "old"), ("tall queen", ""),
    ("who wrote the book", "ruler of the book"), ("red car", "a car that is red"), ("", "queen"),
]  # fmt: skip
QUERIES, TEXTS = [a for a, _ in PAIRS], [b for _, b in PAIRS]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """A network this small is slower on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A Llama of two layers whose tokenizer has words, colons and line breaks."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokens = ["</s>", "<unk>", "\n", ":", "Query", "paraphrase", *WORDS]
    own = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    own.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|:|\w+"), "removed", invert=True)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, eos_token="</s>", unk_token="<unk>")
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=len(tokens), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, bos_token_id=0, eos_token_id=0, initializer_range=0.3,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("model")
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """An adapter of the query weights of both layers, and a head."""
    folder, chance = tmp_path_factory.mktemp("adapter"), torch.Generator().manual_seed(6)
    shapes = {"lora_A": (4, 32), "lora_B": (32, 4)}
    tensors = {
        f"base_model.model.model.layers.{layer}.self_attn.q_proj.{part}.weight": torch.randn(shape, generator=chance)
        for layer in range(2)
        for part, shape in shapes.items()
    }
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": 4, "lora_alpha": 2, "target_modules": ["q_proj"], "task_type": "CAUSAL_LM"}
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    torch.manual_seed(8)
    save_file(make_head(32, 16, 2, 0.1).state_dict(), folder / HEAD)
    return folder


@pytest.fixture(scope="module")
def judge(model, adapter):
    return load_pair_judge(adapter, model, "cpu")


@pytest.fixture(scope="module")
def plainly(model, adapter):
    """The logits of one text by transformers itself: all of its tokens in one pass, the head on the last state."""
    from safetensors.torch import load_file

    made = open_generator(model, "causal", device="cpu")
    network = open_generator(model, "causal", str(adapter), device="cpu").model
    head = make_head(32, 16, 2, 0.1).eval()
    head.load_state_dict(load_file(adapter / HEAD))

    def logits(tokens):
        ids = made.tokenizer(tokens, add_special_tokens=False)["input_ids"] if isinstance(tokens, str) else tokens
        with torch.inference_mode():
            return head(network.model(input_ids=torch.tensor([ids])).last_hidden_state[0, -1]).numpy()

    return logits


def test_the_logits_are_those_of_transformers_for_the_whole_text(judge, plainly):
    found = judge.logits(QUERIES, TEXTS)
    wanted = [plainly(f"Query: {query}\nparaphrase: {text}\n") for query, text in PAIRS]
    assert found.shape == (len(PAIRS), 2) and found == pytest.approx(np.array(wanted), abs=1e-4)
    assert np.ptp(found, axis=0).min() > 0.1  # a network that tells pairs apart


def test_a_pair_is_judged_alone_as_in_company_and_in_any_order(judge):
    found = judge.logits(QUERIES, TEXTS)
    for (query, text), one in zip(PAIRS, found, strict=True):
        assert judge.logits([query], [text])[0] == pytest.approx(one, abs=1e-4)
    order = [3, 6, 0, 5, 2, 4, 1]
    again = judge.logits([QUERIES[row] for row in order], [TEXTS[row] for row in order])
    assert again == pytest.approx(found[order], abs=1e-4)
    assert judge.logits([], []).shape == (0, 2)


def test_many_reformulations_of_a_query_go_to_further_passes_each_with_the_query(judge, monkeypatch):
    texts = [f"{one} {other}" for one in WORDS for other in WORDS[:4]]
    queries = ["red car of a queen"] * len(texts)
    whole = judge.logits(queries, texts)
    monkeypatch.setattr(pair_judge, "_COLUMNS", 40)
    passes = list(judge._passes(queries, texts))
    assert len(passes) > 10 and max(len(one.columns) for one in passes) <= 40
    assert sorted(row for one in passes for row in one.rows) == list(range(len(texts)))
    assert judge.logits(queries, texts) == pytest.approx(whole, abs=1e-4)


def test_a_pair_longer_than_a_pass_is_judged_alone(judge, monkeypatch):
    whole = judge.logits(QUERIES, TEXTS)
    monkeypatch.setattr(pair_judge, "_COLUMNS", 1)
    assert all(len(one.rows) == 1 for one in judge._passes(QUERIES, TEXTS))
    assert judge.logits(QUERIES, TEXTS) == pytest.approx(whole, abs=1e-4)


def test_passes_of_different_lengths_that_are_computed_together_give_the_same(judge, monkeypatch):
    whole = judge.logits(QUERIES, TEXTS)
    monkeypatch.setattr(pair_judge, "_COLUMNS", 20)
    passes, states = list(judge._passes(QUERIES, TEXTS)), np.zeros_like(judge._states(QUERIES, TEXTS))
    assert len({len(one.columns) for one in passes}) > 1
    judge._judge(passes, states)  # as on a GPU
    found = judge._head(torch.from_numpy(states)).detach().double().numpy()
    assert found == pytest.approx(whole, abs=1e-4)


def test_long_texts_are_cut(judge, plainly, model):
    tokens = pair_judge.PairTokens(open_generator(model, "causal", device="cpu").tokenizer)
    query, text = " ".join(["red:car:queen"] * 30), " ".join(["boat"] * 60)
    before, after = tokens.query(query), tokens.reformulation(text)
    assert len(before) == pair_judge.MOST_QUERY and len(after) == 2 + pair_judge.MOST_TEXT + 1
    assert (
        after == tokens.reformulation(" ".join(["boat"] * pair_judge.MOST_TEXT)) != tokens.reformulation("boat " * 47)
    )
    assert judge.logits([query], [text])[0] == pytest.approx(plainly([*before, *after]), abs=1e-4)


def damaged_heads():
    good = make_head(32, 16, 2, 0.1).state_dict()
    return {
        "no file": None,
        "no tensors": b"weights",
        "another width": make_head(8, 16, 2, 0.1).state_dict(),
        "a part is missing": {name: one for name, one in good.items() if name != "4.bias"},
        "other names": {f"head.{name}": one for name, one in good.items()},
        "no numbers": {**good, "4.bias": torch.full((2,), torch.nan)},
    }


@pytest.mark.parametrize("what", list(damaged_heads()))
def test_a_damaged_head_is_refused_in_one_line(what, model, adapter, tmp_path):
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (tmp_path / name).write_bytes((adapter / name).read_bytes())
    head = damaged_heads()[what]
    if isinstance(head, bytes):
        (tmp_path / HEAD).write_bytes(head)
    elif head is not None:
        save_file(head, tmp_path / HEAD)
    with pytest.raises(DataError) as caught:
        load_pair_judge(tmp_path, model, "cpu")
    assert (caught.value.code, caught.value.values) == ("damaged-head", {"file": HEAD})
    assert "\n" not in str(caught.value)
