"""The program that trains the equivalence models: their pairs, their loss, and what it writes."""

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
from training.negatives import UNKNOWN, Mix, Pair, add_words, drop_word, soft_pairs, swap_roles, swap_word
from training.pair_learners import MinilmLearner, SmollmLearner, by_length

from askew.models.pair_network import load_pair_judge, load_pair_network

SMALL = train_equivalence.MinilmSettings(
    rank=4, hidden=16, epochs=25, learning_rate=1e-2, batch_size=8, dropout=0.0, head_dropout=0.0
)
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


def test_words_in_exchanged_places_are_content_words_of_a_text_with_three_or_more():
    found = {swap_roles("who beat the king of france", random.Random(seed)) for seed in range(40)}
    assert found == {"who king the beat of france", "who france the king of beat", "who beat the france of king"}
    assert swap_roles("the king of france", random.Random(0)) is None
    assert {swap_roles("king king king", random.Random(seed)) for seed in range(5)} == {None}


def test_some_queries_of_an_epoch_have_two_words_in_exchanged_places(rows):
    rows = [{**row, "query": f"{row['query']} sails"} for row in rows]
    for share, count in ((1.0, len(rows)), (0.0, 0)):
        settings = train_equivalence.Settings(lower_case=0.0, rewrites_per_epoch=1.0, roles=share)
        pairs = Mix(rows, [], settings, random.Random(0)).epoch()
        found = [one for one in pairs if (one.same, one.natural, one.weight) == (0.0, UNKNOWN, 0.7)]
        words = {tuple(sorted(row["query"].split())) for row in rows}
        assert len(found) == count and {tuple(sorted(one.candidate.split())) for one in found} <= words


def test_batches_are_of_pairs_of_similar_length_and_only_the_first_steps_are_trained_on():
    pairs = [Pair("q" * i, "c", 1.0, 1.0) for i in random.Random(1).sample(range(11), 11)]
    found = by_length(pairs, 2, random.Random(0))
    batches = [[len(one.query) for one in found[at : at + 2]] for at in range(0, len(found), 2)]
    assert sorted(batches) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]] != batches
    assert by_length(pairs[:1], 2, random.Random(0)) == pairs[:1]
    assert train_equivalence.first_steps([pairs, pairs, pairs], 2, 8) == [pairs, pairs[:4]]
    assert train_equivalence.first_steps([pairs], 2, 9) == [pairs]


def test_an_epoch_has_rewrites_made_negatives_and_repeated_labels(rows):
    labels = [label_row("red car", "car", "partly", 1), label_row("old ship", "boat", "same", 0)]
    settings = train_equivalence.Settings(lower_case=0.0, shuffled=1.0, rewrites_per_epoch=1.0, roles=0.0)
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


PAIRS = [
    Pair("red car", "crimson auto", 1.0, 1.0), Pair("red car", "old ship", 0.0, 1.0),
    Pair("old ship", "ancient boat", 1.0, 1.0), Pair("old ship", "that is a", 0.0, 0.0),
]  # fmt: skip


def trained(make, model, **more):
    torch.manual_seed(0)
    learner = make(SMALL, "cpu", model, None, **more)
    return learner, train_equivalence.fit(learner, [PAIRS * 8] * SMALL.epochs, SMALL, 0)


@pytest.mark.parametrize("network", ["minilm", "smollm2"])
def test_what_was_trained_is_loaded_and_gives_the_labels_back(network, causal, encoder, tmp_path):
    make, model = (MinilmLearner, encoder) if network == "minilm" else (SmollmLearner, causal)
    learner, losses = trained(make, model)
    assert losses[-1] < 0.5 * losses[0]
    learner.save(tmp_path / "adapter")
    loaded = learner.judge(tmp_path / "adapter")([one.query for one in PAIRS], [one.candidate for one in PAIRS])
    with torch.no_grad():
        assert loaded == pytest.approx(learner.logits(PAIRS).numpy(), abs=0.05)  # kept with 16 bits
    assert ((loaded > 0) == [[one.same > 0, one.natural > 0] for one in PAIRS]).all()


def test_the_cross_encoder_goes_on_from_an_earlier_adapter(encoder, tmp_path):
    learner, _ = trained(MinilmLearner, encoder)
    learner.save(tmp_path)
    again = MinilmLearner(SMALL, "cpu", encoder, str(tmp_path))
    again.network.eval()
    with torch.no_grad():
        assert again.logits(PAIRS).numpy() == pytest.approx(learner.logits(PAIRS).numpy(), abs=0.05)


def test_the_judge_starts_from_the_weights_of_a_rewriting_adapter(causal, tmp_path):
    from training.low_rank import low_rank_layers, peft_tensors, save_peft_adapter

    first = SmollmLearner(SMALL, "cpu", causal, None).network["body"]
    tensors = {name: torch.randn_like(one) for name, one in peft_tensors(first).items()}
    save_peft_adapter(tmp_path, tensors, "tiny", SMALL.alpha, 0.0)
    started = SmollmLearner(SMALL, "cpu", causal, str(tmp_path)).network["body"]
    assert all(torch.equal(one, tensors[name]) for name, one in peft_tensors(started).items())
    assert len(list(low_rank_layers(started))) == 14  # seven in each of two layers
    other = train_equivalence.Settings(rank=2, hidden=4)
    with pytest.raises(SystemExit, match="expected an adapter of this model and rank") as caught:
        SmollmLearner(other, "cpu", causal, str(tmp_path))
    assert "\n" not in str(caught.value)


def test_areas_are_of_all_rows_and_of_each_family_of_methods():
    methods = ("rewrite:neutral", "round2:keywords", "supervised:neutral", "trial:neutral", "extract")
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


@pytest.mark.parametrize("network", ["minilm", "smollm2"])
def test_the_program_writes_the_adapter_and_what_it_was_trained_on(network, causal, encoder, made, tmp_path, capsys):
    model = encoder if network == "minilm" else causal
    soft = [{"query": query, "text": "car", "same": 0.3, "natural": 0.9} for query in ("ancient queen", "Big boat")]
    (tmp_path / "soft.jsonl").write_text("\n".join(map(json.dumps, soft)), encoding="utf-8")
    out = tmp_path / "out"
    if network == "smollm2":  # an adapter to start from
        SmollmLearner(train_equivalence.Settings(), "cpu", causal, None).save(tmp_path / "first")
    options = ["--made", made, "--out", out, "--device", "cpu", "--model", model, "--epochs", 2, "--network", network,
               "--batch-size", 16, "--soft", tmp_path / "soft.jsonl", tmp_path / "soft.jsonl"]  # fmt: skip
    options += ["--init", tmp_path / "first"] if network == "smollm2" else []
    train_equivalence.main([str(one) for one in options])
    told = json.loads((out / "training.json").read_text(encoding="utf-8"))
    assert told["base"] == Path(model).name and told["network"] == network  # no path of this machine
    assert told["init"] == ("first" if network == "smollm2" else None)
    assert told["settings"]["learning_rate"] == {"minilm": 1e-3, "smollm2": 5e-4}[network]
    assert told["rewrites"] == {"web": {"rows": 3, "license": "CC-BY-SA-4.0"}}
    assert told["labels"]["web"]["rows"] == 18 and told["needs"] == {"same": 15, "different": 3}
    assert told["dev"]["all"]["rows"] == 2 and told["dev"]["all"]["same"] in (0.0, 0.5, 1.0)
    assert told["soft labels"] == 2  # the query of dev is left out, both times
    assert told["dev"]["others"]["same"] is None and len(told["losses"]) == told["settings"]["epochs"] == 2
    assert load_pair_network(model, out, "cpu") if network == "minilm" else load_pair_judge(out, model, "cpu")
    assert "epoch 2 of 2" in capsys.readouterr().out


def test_the_judge_on_smollm2_and_the_shipped_rewriting_adapter_are_the_defaults():
    given, learner, settings = train_equivalence.read_options(["--out", "x"])
    assert (given.network, given.init, given.model) == ("smollm2", "smollm2-rewrite", "SmolLM2-135M-Instruct")
    assert learner is SmollmLearner and settings == train_equivalence.Settings()
    given, learner, settings = train_equivalence.read_options(["--out", "x", "--network", "minilm", "--rank", "8"])
    assert (given.init, settings.rank, settings.epochs) == (None, 8, 6) and "MiniLM-L6" in given.model
    assert learner is MinilmLearner and isinstance(settings, train_equivalence.MinilmSettings)
