"""The program that trains the equivalence model: its pairs, its loss, and what it writes."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra 'neural' is not installed")

import torch
import train_equivalence
from toy_training import TEXTS, label_row
from training.areas import areas, family
from training.negatives import UNKNOWN, Mix, Pair, add_words, drop_word, soft_pairs, swap_word

from askew.models.pair_network import load_pair_network, pair_logits
from askew.trainers.low_rank import save_encoder_adapter

SMALL = train_equivalence.Settings(rank=4, hidden=16, epochs=25, learning_rate=1e-2, batch_size=8, dropout=0.0)
TEXT = "who wrote the book of the nurse"


def test_a_dropped_word_is_a_content_word():
    found = {drop_word(TEXT, random.Random(seed)) for seed in range(20)}
    assert found == {"who the book of the nurse", "who wrote the of the nurse", "who wrote the book of the"}
    assert drop_word("the nurse", random.Random(0)) is None


def test_a_swapped_word_is_one_of_another_text():
    found = {swap_word(TEXT, "the nurse of ships", random.Random(seed)) for seed in range(20)}
    assert found == {TEXT.replace(word, "ships") for word in ("wrote", "book", "nurse")}
    assert swap_word(TEXT, "the book", random.Random(0)) is None


def test_added_words_are_one_to_three_of_another_text():
    for seed in range(20):
        words = add_words(TEXT, "old ships sail west of here", random.Random(seed)).split()
        rest = [word for word in words if word not in ("old", "ships", "sail", "west", "here")]
        assert rest == TEXT.split() and 1 <= len(words) - len(rest) <= 3
    assert add_words(TEXT, "the book", random.Random(0)) is None


def test_an_epoch_has_rewrites_made_negatives_and_repeated_labels(rows):
    labels = [label_row("red car", "car", "partly", 1), label_row("old ship", "boat", "same", 0)]
    settings = train_equivalence.Settings(lower_case=0.0, shuffled=1.0, rewrites_per_epoch=1.0)
    pairs = Mix(rows, labels, settings, random.Random(0)).epoch()
    assert pairs.count(Pair("red car", "car", 0.0, 1.0, 1.5)) == 3
    assert pairs.count(Pair("old ship", "boat", 1.0, 0.0, 1.5)) == 3
    of = {text: query for query, texts in TEXTS.items() for text in (query, *texts)}
    positive = [one for one in pairs if one.same == 1.0 and one.weight == 1.0]
    assert len(positive) == 3 * len(rows)
    assert all(of[one.query] == of[one.candidate] and one.query != one.candidate for one in positive)
    neighbors = [one for one in pairs if (one.same, one.natural, one.weight) == (0.0, 1.0, 1.0)]
    assert len(neighbors) == len(rows) and all(one.candidate in of for one in neighbors)
    shuffled = [one for one in pairs if one.same == UNKNOWN]
    assert [one.natural for one in shuffled] == [0.0] * len(rows)
    known = {tuple(sorted(text.split())) for text in of}
    assert all(tuple(sorted(one.candidate.split())) in known for one in shuffled)


def test_an_epoch_takes_a_share_of_the_rewrites_and_some_soft_labels_as_they_are(rows):
    soft = [Pair("Red Car?", str(i), i / 100, 0.5) for i in range(100)]
    settings = train_equivalence.Settings(lower_case=1.0, rewrites_per_epoch=0.6, soft_per_epoch=30)
    mix = Mix(rows * 100, [], settings, random.Random(0), soft)
    epochs = [mix.epoch() for _ in range(2)]
    taken = [[one for one in pairs if one in soft] for pairs in epochs]
    assert [len(set(one)) for one in taken] == [30, 30] and set(taken[0]) != set(taken[1])
    for pairs in epochs:
        positive = [one for one in pairs if (one.same, one.natural) == (1.0, 1.0)]
        assert 0.5 < len(positive) / (3 * 300) < 0.7
    few = Mix([], [], settings, random.Random(0), soft[:5]).epoch()
    assert sorted(few, key=lambda one: one.same) == soft[:5]


def test_soft_labels_of_held_out_queries_are_left_out_and_values_that_are_no_probabilities_refused():
    row = {"query": "Old Ship?", "text": "boat", "same": 0.25, "natural": 1}
    assert soft_pairs([row, {**row, "query": "red car"}], {"red car"}) == [Pair("Old Ship?", "boat", 0.25, 1.0)]
    for wrong in (1.2, -1.0, "0.5", None):
        with pytest.raises(SystemExit, match="soft labels: expected same and natural from 0 to 1") as caught:
            soft_pairs([{**row, "same": wrong}], set())
        assert "\n" not in str(caught.value)


def test_epochs_differ_and_the_same_seed_gives_the_same_ones(rows):
    settings = train_equivalence.Settings()
    one, again = (Mix(rows, [], settings, random.Random(5)) for _ in range(2))
    first = one.epoch()
    assert first == again.epoch() and first != one.epoch()


def test_neighbors_share_rare_words_with_a_query(rows):
    more = [{**rows[0], "query": text} for text in ("red queen hats", "red car parts", "boats")]
    mix = Mix([rows[0], *more], [], train_equivalence.Settings(), random.Random(0))
    assert mix._near[0] == [2, 1]  # two shared words, then one
    assert len(mix._near[3]) == 1  # nothing is shared: any query


def test_what_is_not_known_does_not_count_in_the_loss():
    pairs = [Pair("a", "b", 1.0, UNKNOWN, 2.0), Pair("a", "c", 0.0, 0.0, 0.5)]
    logits = torch.tensor([[0.0, 9.0], [0.0, 0.0]])
    # Of a logit of 0 the loss is log 2, whatever is wanted.
    assert train_equivalence.pair_loss(logits, pairs, 0.03).item() == pytest.approx((2 + 0.5 + 0.5) / 3 * 0.693147)


def test_what_was_trained_is_loaded_and_gives_the_labels_back(encoder, tmp_path):
    pairs = [Pair("red car", "crimson auto", 1.0, 1.0), Pair("red car", "old ship", 0.0, 1.0),
             Pair("old ship", "ancient boat", 1.0, 1.0), Pair("old ship", "that is a", 0.0, 0.0)]  # fmt: skip
    network, tokenizer, losses = train_equivalence.fit([pairs * 8] * SMALL.epochs, SMALL, 0, "cpu", encoder)
    assert losses[-1] < 0.5 * losses[0]
    save_encoder_adapter(tmp_path / "adapter", network)
    texts = [one.query for one in pairs], [one.candidate for one in pairs]
    loaded = pair_logits(*load_pair_network(encoder, tmp_path / "adapter", "cpu"), *texts, 2)
    assert loaded == pytest.approx(pair_logits(network, tokenizer, *texts, 4), abs=0.05)  # kept with 16 bits
    assert ((loaded > 0) == [[one.same > 0, one.natural > 0] for one in pairs]).all()


def test_areas_are_of_all_rows_and_of_each_family_of_methods():
    methods = ("rewrite:neutral", "rewrite:keywords", "supervised:neutral", "trial:neutral", "extract")
    assert [family(one) for one in methods] == ["rewrite", "rewrite", "supervised", "supervised", "others"]
    needs, natural = ("same", "partly", "same", "different", "same"), (1, 1, 0, 1, 1)
    rows = [label_row("q", "c", *one) for one in zip(needs, natural, strict=True)]
    rows = [{**row, "method": method} for row, method in zip(rows, methods, strict=True)]
    scores = np.array([0.9, 0.1, 0.2, 0.2, 0.8])
    found = areas(rows, {"same": scores, "usable": scores})
    assert found["all"] == {"rows": 5, "same": 0.9167, "usable": 1.0}  # of 6 pairs 5 in order, one equal
    assert found["rewrite"] == {"rows": 2, "same": 1.0, "usable": 1.0}
    assert found["supervised"] == {"rows": 2, "same": 0.5, "usable": None}
    assert found["others"] == {"rows": 1, "same": None, "usable": None}


def test_the_program_writes_the_adapter_and_what_it_was_trained_on(encoder, made, tmp_path, capsys):
    soft = [{"query": query, "text": "car", "same": 0.3, "natural": 0.9} for query in ("ancient queen", "Big boat")]
    (tmp_path / "soft.jsonl").write_text("\n".join(map(json.dumps, soft)), encoding="utf-8")
    options = ["--made", made, "--out", tmp_path / "out", "--device", "cpu", "--model", encoder, "--epochs", 2,
               "--soft", tmp_path / "soft.jsonl", tmp_path / "soft.jsonl"]  # fmt: skip
    train_equivalence.main([str(one) for one in options])
    told = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert told["base"] == Path(encoder).name  # no path of this machine
    assert told["rewrites"] == {"web": {"rows": 3, "license": "CC-BY-SA-4.0"}}
    assert told["labels"]["web"]["rows"] == 18 and told["needs"] == {"same": 15, "different": 3}
    assert told["dev"]["all"]["rows"] == 2 and told["dev"]["all"]["same"] in (0.0, 0.5, 1.0)
    assert told["soft labels"] == 2  # the query of dev is left out, both times
    assert told["dev"]["others"]["same"] is None and len(told["losses"]) == told["settings"]["epochs"] == 2
    assert load_pair_network(encoder, tmp_path / "out", "cpu")
    assert "epoch 2 of 2" in capsys.readouterr().out
