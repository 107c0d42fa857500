"""The program that trains the mention model writes what the product loads."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from askew.core.groups import WHO
from askew.models.mention import MOST_TOKENS

pytest.importorskip("torch", reason="the extra neural is not installed")

SENTENCE = "the queen of a ship he she his said that every man went home * ^ ."
CASES = {"he went home": "real", "the queen said that": "fictional", "every man said": "generic", "a ship": "other"}


@pytest.fixture(scope="module")
def program():
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "mention_model.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def encoder(tmp_path_factory, bert_tokenizer):
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("encoder")
    tokenizer = bert_tokenizer(SENTENCE.split(), MOST_TOKENS)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=MOST_TOKENS,
    )  # fmt: skip
    torch.manual_seed(4)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def label(program, text, who, **others):
    word = text.split()[1]
    row = program.Label("toy", text, text.index(word), word, who, "train", "", text)
    return replace(row, **others)


def test_what_was_trained_is_loaded_and_gives_the_labels_back(program, encoder, tmp_path):
    from safetensors.torch import save_file

    from askew.measures.resolver import NeuralResolver

    labels = [label(program, text, who) for text, who in CASES.items()] * 8
    settings = program.Settings(rank=4, hidden=16, epochs=25, learning_rate=1e-2, batch_size=8)
    tensors = program.fit(labels, settings, 0, "cpu", encoder)
    assert (
        len(tensors) == 4 + 1 + 2 * 2 * 6
    )  # the head; cases; two matrices for each of six linear layers of two blocks
    save_file(tensors, tmp_path / "adapter.safetensors")
    found = NeuralResolver(str(tmp_path), encoder, "cpu").probabilities(*program.positions(labels[:4]))
    assert [WHO[column] for column in found.argmax(1)] == list(CASES.values())


def test_a_merged_adapter_gives_what_the_low_rank_layers_give(program, encoder):
    import torch
    from training.low_rank import encoder_tensors, low_rank_layers

    from askew.models.adapted import MentionNetwork, add_adapter
    from askew.models.mention import windows
    from askew.models.relevance import open_encoder

    settings = program.Settings(rank=3, hidden=8)
    network, tokenizer = program.make_network(encoder, settings, "cpu")
    torch.manual_seed(1)
    for _, layer in low_rank_layers(network):
        torch.nn.init.normal_(layer.b)
    merged = MentionNetwork(open_encoder(encoder)[0], 8, len(WHO))
    add_adapter(merged, encoder_tensors(network))
    rows = [label(program, text, who) for text, who in CASES.items()]
    batch = list(windows(tokenizer, *program.positions(rows)))
    with torch.no_grad():
        # The tensors are kept with 16 bits.
        assert merged.eval()(batch).numpy() == pytest.approx(network.eval()(batch).numpy(), abs=0.02)


def test_exchanged_groups_keep_the_place_of_the_mention(program):
    text = "His mother told HER son: the king took her car, and he thanked her."
    mentions = [
        ("His", 0, "Her"),
        ("mother", 4, "father"),
        ("HER", 16, "HIS"),
        ("king", 29, "queen"),
        ("her", 63, "him"),
    ]
    labels = [program.Label("toy", "d", at, word, "real", "train", "", text) for word, at, _ in mentions]
    for label_, (_, _, new) in zip(program.exchange_groups(labels), mentions, strict=True):
        assert label_.text == "Her father told HIS daughter: the queen took his car, and she thanked him."
        assert label_.text[label_.at :].startswith(new) and label_.word == new


def test_a_mention_is_read_in_its_sentence_alone(program):
    text = "A ship sailed. It was late! The captain said that he would wait. Then it rained."
    mention = program.Label("toy", "d", text.index("he would"), "he", "generic", "train", "", text)
    alone = program.in_sentence(mention)
    assert (alone.text.strip(), alone.text[alone.at :][:8]) == ("The captain said that he would wait.", "he would")


def test_rows_of_documents_under_test_and_of_ms_marco_are_not_trained_on(program):
    rows = [
        label(program, "he went home", "real"),
        label(program, "he went home", "real", doc="d1"),
        label(program, "he went home", "real", doc="d1", at=9, split="test"),
        label(program, "he went home", "real", collection="msmarco_dl1920"),
        label(program, "channels.he remains", "other", at=9),
    ]
    assert program.training_rows(rows, False) == rows[:1]
    assert program.training_rows(rows, True) == rows[:2]


def test_a_clipped_word_is_lower_case_and_glued_to_a_full_stop(program):
    for text, at, clipped in [
        ("channels.he remains", 9, True), ("(tv).he remains", 5, True), ("channels. he remains", 10, False),
        ("channels.He remains", 9, False), ("..he remains", 2, False), (".he remains", 1, False), ("he", 0, False),
    ]:  # fmt: skip
        assert label(program, text + " x", "real", at=at).clipped == clipped, text


def test_accuracy_has_an_interval_over_queries(program):
    right = np.array([1, 1, 1, 0, 1, 1, 1, 1], bool)
    queries = ["a", "a", "b", "b", "c", "d", "e", "f"]
    found = program.accuracy(right, queries)
    assert found["accuracy"] == 7 / 8
    assert (found["rows"], found["queries"]) == (8, 6)
    assert found["low"] < 7 / 8 < found["high"]
    part = program.accuracy(right, queries, of=np.array([1, 1, 0, 0, 1, 0, 0, 0], bool))
    # All right: two queries alone cannot exclude an accuracy of a sixth.
    assert (part["accuracy"], part["high"], part["queries"]) == (1.0, 1.0, 2)
    assert part["low"] == pytest.approx(0.1581, abs=1e-4)
    none = program.accuracy(np.zeros(2, bool), ["a", "b"])
    assert (none["low"], none["high"]) == (0.0, pytest.approx(1 - 0.1581, abs=1e-4))
