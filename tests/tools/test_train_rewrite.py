"""The program that trains the rewriting model: on the CPU, with a tiny model."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from toy_training import KINDS, TEXTS, label_row

pytest.importorskip("torch", reason="the extra 'neural' is not installed")
pytest.importorskip("peft", reason="the extra 'lm' is not installed")

import torch
import train_rewrite
from training import rewriting
from training.preferences import Preference, make_pairs
from training.sampling import sample_texts
from training.teacher import Candidate

from askew.models.decode import Sampling
from askew.models.generate import load_generator
from askew.models.prompts import kind_ending, query_prefix

SMALL = train_rewrite.Settings(
    dropout=0.0, batch_size=15, epochs=60, learning_rate=1e-2, more_directions=0, lower_case=0.0, most_tokens=24,
    preference_batch_size=2, preference_epochs=10, preference_learning_rate=5e-3, samples_per_kind=2, most_new_tokens=6,
)  # fmt: skip


@pytest.fixture
def base(causal):
    loaded = load_generator(causal, "causal")
    return rewriting.Base(loaded.model, loaded.tokenizer, "cpu")


def silent(line):
    assert "\n" not in line


def test_what_was_learned_is_saved_and_loaded_with_the_base_model(base, rows, causal, tmp_path):
    from training.low_rank import save_peft_adapter

    before = {name: one.clone() for name, one in base.model.state_dict().items()}
    tensors, measured = rewriting.train_supervised(base, rows, rows, SMALL, 0, silent)
    assert measured[0]["train"] > 1.0
    assert measured[-1]["train"] < 0.1
    assert measured[-1]["dev"]["boolq"] < 0.1
    assert all(torch.equal(one, before[name]) for name, one in base.model.state_dict().items())
    save_peft_adapter(tmp_path / "adapter", tensors, "tiny", SMALL.alpha, SMALL.dropout)
    writer = load_generator(causal, "causal", adapter=str(tmp_path / "adapter"))
    how = Sampling(max_new_tokens=8, min_new_tokens=1, temperature=0.0)
    endings = [kind_ending(kind) for kind in KINDS]
    (found,) = writer.sample_kinds_many([query_prefix("old ship")], endings, 1, [0], how)
    assert [one for (one,) in found] == TEXTS["old ship"]


def test_the_same_seed_gives_the_same_adapter(base, rows):
    few = train_rewrite.Settings(batch_size=15, epochs=1, most_tokens=24)
    one, again, other = (rewriting.train_supervised(base, rows, [], few, seed, silent)[0] for seed in (0, 0, 1))
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_a_layer_that_learns_merged_into_the_weights_gives_the_same(base, rows):
    few = train_rewrite.Settings(batch_size=5, epochs=2, most_tokens=24, dropout=0.0, learning_rate=2e-2)
    tensors, _ = rewriting.train_supervised(base, rows, [], few, 0, silent)
    adapted = base.adapted(few, 0.0).eval()
    rewriting.put_peft_tensors(adapted, tensors)
    tokens = torch.tensor([[4, 3, 11, 12, 6, 3]])
    with torch.no_grad():
        found = [model(input_ids=tokens).logits for model in (adapted, base.merged(tensors, few), base.model)]
    assert torch.allclose(found[0], found[1], atol=1e-4)
    assert not torch.allclose(found[0], found[2], atol=1e-2)


def test_preferences_make_chosen_texts_more_probable_than_rejected_ones(base, rows):
    tensors, _ = rewriting.train_supervised(base, rows, [], SMALL, 0, silent)
    pairs = [Preference("red car", "keywords", "car", "auto"), Preference("old ship", "keywords", "boat", "ship")]
    preferred, measured = rewriting.train_preferences(base, tensors, pairs, rows, SMALL, 0, silent)
    assert measured[-1]["train"] < measured[0]["train"] and set(measured[-1]["dev"]) == {"boolq"}

    def margins(weights):
        model = base.merged(weights, SMALL)
        chosen = [(one.query, one.kind, one.chosen) for one in pairs]
        rejected = [(one.query, one.kind, one.rejected) for one in pairs]
        encoded = rewriting.encode(base.tokenizer, chosen + rejected)
        with torch.no_grad():
            likely, *_ = rewriting.log_probabilities(model, *rewriting.pack(encoded, 24, 1))
        return likely[:2] - likely[2:]

    assert (margins(preferred) > margins(tensors) + 0.5).all()


def test_the_prompt_is_the_one_of_use_and_the_loss_is_on_the_target_alone(base):
    ((prompt, target),) = rewriting.encode(base.tokenizer, [("red car", "keywords", "car red")])
    shown = base.tokenizer(query_prefix("red car") + kind_ending("keywords"), add_special_tokens=False)["input_ids"]
    assert prompt == shown and target[-1] == base.tokenizer.eos_token_id and len(target) == 3
    tokens, wanted = rewriting.pack([(prompt, target)], 12, 0)
    assert wanted[0].tolist() == [-100] * len(prompt) + target + [-100] * (12 - len(prompt) - 3)
    assert tokens[0].tolist() == prompt + target + [0] * (12 - len(prompt) - 3)
    short, _ = rewriting.pack([(prompt, target)], 5, 0)
    assert short[0].tolist() == prompt[-2:] + target  # the beginning of the prompt is cut off


def test_examples_go_in_all_directions_with_the_wanted_kind(rows):
    settings = train_rewrite.Settings(more_directions=40, lower_case=0.0)
    row = {**rows[0], "query": "Red car?"}
    found = rewriting.examples_of(row, settings, random.Random(0))
    assert found[:5] == [("Red car?", kind, text) for kind, text in zip(KINDS, TEXTS["red car"], strict=True)]
    kind_of = dict(zip(["Red car?", *TEXTS["red car"]], ["original", *KINDS], strict=True))
    assert all(kind == kind_of[target] and text != target for text, kind, target in found)
    assert {"original", *KINDS} == {kind for _, kind, _ in found}
    lowered = rewriting.examples_of(row, train_rewrite.Settings(lower_case=1.0), random.Random(0))
    assert all(text == text.lower() and "?" not in text + target for text, _, target in lowered)


def test_samples_are_of_every_kind_and_their_probabilities_are_those_of_the_model(base):
    settings = train_rewrite.Settings(samples_per_kind=3, most_new_tokens=5, queries_at_once=2)
    queries = ["tall queen of height", "car", "old ship"]
    found = sample_texts(base.model, base.tokenizer, queries, settings, 1)
    assert [(one.query, one.kind) for one in found] == [(q, k) for q in range(3) for k in KINDS for _ in range(3)]
    assert found == sample_texts(base.model, base.tokenizer, queries, settings, 1)
    one = next(one for one in found if len(one.text.split()) < 4 and one.text and "<unk>" not in one.text)
    encoded = rewriting.encode(base.tokenizer, [(queries[one.query], one.kind, one.text)])
    with torch.no_grad():
        likely, *_ = rewriting.log_probabilities(base.model, *rewriting.pack(encoded, 24, 1))
    assert one.log_probability == pytest.approx(likely.item(), abs=2e-3)


def test_fewer_rows_than_a_batch_are_refused_in_one_line(base, rows):
    with pytest.raises(SystemExit, match="batch_size: expected as many rows as a batch has or more, found 15"):
        rewriting.train_supervised(
            base, rows, [], train_rewrite.Settings(batch_size=16, more_directions=0), 0, silent
        )  # fmt: skip


@pytest.fixture
def options(causal, encoder, made, tmp_path):
    """A run of all steps on tiny models, with labels for the teacher."""
    import train_equivalence
    from training.pair_learners import MinilmLearner

    MinilmLearner(train_equivalence.Settings(rank=2, hidden=4), "cpu", encoder).save(tmp_path / "equivalence")
    kinds = (("car red", "same", 1, "rewrite"), ("ship", "partly", 1, "trial"), ("a that", "same", 0, "rewrite"))
    fresh = [label_row(f"red car {i}", text, need, natural, method=f"{method}:keywords")
             for i in range(10) for text, need, natural, method in kinds]  # fmt: skip
    (tmp_path / "fresh.jsonl").write_text("\n".join(map(json.dumps, fresh)), encoding="utf-8")
    return [
        "--made", made, "--out", tmp_path / "out", "--device", "cpu", "--model", causal, "--fresh-labels",
        tmp_path / "fresh.jsonl", "--equivalence", tmp_path / "equivalence", "--encoder", encoder, "--batch-size", 8,
        "--epochs", 1, "--samples-per-kind", 4, "--most-new-tokens", 5, "--least-reward", 0.0, "--least-margin", -1.0,
        "--later-margin", -1.0, "--third-margin", -1.0, "--third-reward", 0.0, "--preference-batch-size", 4,
    ]  # fmt: skip


def run(options, *more):
    train_rewrite.main([str(one) for one in (*options, *more)])


def read_training(folder):
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def test_the_program_writes_both_adapters_and_what_they_were_trained_on(causal, options, tmp_path, capsys):
    run(options, "--rounds", 1)
    out = tmp_path / "out"
    for folder in (out, out / "supervised"):
        assert (folder / "adapter_model.safetensors").is_file() and (folder / "adapter_config.json").is_file()
        told = read_training(folder)
        assert told["base"] == Path(causal).name  # no path of this machine
        assert told["data"] == {"web": {"rows": 3, "license": "CC-BY-SA-4.0"}}
        assert (told["settings"]["batch_size"], told["settings"]["beta"], told["seed"]) == (8, 0.1, 0)
        assert told["hardware"].startswith("CPU")
    assert set(told["losses"][0]["dev"]) == {"web"}
    told = read_training(out)
    (only,) = told["rounds"]
    assert set(only["losses"][0]["dev"]) == {"web"} and sum(only["pairs"].values()) >= 4
    assert only["texts"] == only["sampled queries"] * 5 * 4
    assert told["teacher"]["all"]["rows"] == 32 and told["teacher"]["rewrite"]["rows"] == 22  # 30 fresh ones, 2 of dev
    assert load_generator(causal, "causal", adapter=str(out)).sample("Query", 1, 0, Sampling(4)) is not None
    said = capsys.readouterr().out
    assert "supervised, epoch 1 of 1" in said and "teacher, areas under the ROC curve" in said


def test_every_distinct_text_is_written_with_what_the_teacher_says_of_it(options, tmp_path):
    run(options, "--rounds", 1)
    rows = [json.loads(line) for line in (tmp_path / "out" / "soft.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {tuple(row) for row in rows} == {("query", "text", "same", "natural")}
    assert all(0 <= row[name] <= 1 for row in rows for name in ("same", "natural"))
    (only,) = read_training(tmp_path / "out")["rounds"]
    assert len({row["query"] for row in rows}) == only["sampled queries"] and len(rows) <= only["texts"]
    assert "big boat" not in {row["query"] for row in rows}  # of dev


def test_in_a_further_round_the_last_model_writes_texts_for_other_queries_and_learns_on(options, tmp_path, monkeypatch):
    sampled, started = [], []
    sample, prefer = train_rewrite.sample_texts, train_rewrite.train_preferences

    def note_queries(model, tokenizer, queries, *rest):
        sampled.append((list(queries), {name: one.clone() for name, one in model.state_dict().items()}))
        return sample(model, tokenizer, queries, *rest)

    def note_start(base, start, *rest):
        started.append((start, prefer(base, start, *rest)[0]))
        return started[-1][1], []

    monkeypatch.setattr(train_rewrite, "sample_texts", note_queries)
    monkeypatch.setattr(train_rewrite, "train_preferences", note_start)
    run(options, "--rounds", 2)
    (first, before), (second, after) = sampled
    assert not set(first) & set(second) and abs(len(first) - len(second)) <= 1
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert started[1][0] is started[0][1]
    out = tmp_path / "out"
    assert [len(read_training(folder)["rounds"]) for folder in (out / "round-1", out)] == [1, 2]
    soft = (out / "soft.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["query"] for line in soft} == {*first, *second}


def test_a_later_round_takes_pairs_with_a_smaller_margin(options, monkeypatch):
    margins = []

    def note(samples, rewards, queries, settings, chance):
        margins.append(settings.least_margin)
        return make_pairs(samples, rewards, queries, replace(settings, least_margin=-1.0), chance)

    monkeypatch.setattr(train_rewrite, "make_pairs", note)
    run(options, "--rounds", 2, "--least-margin", 0.3, "--later-margin", 0.2)
    assert margins == [0.3, 0.2]
    with pytest.raises(SystemExit, match=r"--rounds: .* 0$"):
        run(options, "--rounds", 0)


def test_from_the_third_round_on_any_good_text_may_be_chosen_and_texts_are_drawn_at_a_higher_temperature():
    settings = train_rewrite.Settings()
    first, second, third, fourth = (train_rewrite.settings_of_round(settings, number) for number in range(4))
    assert (first.least_margin, second.least_margin, first.draw_chosen, second.temperature) == (0.3, 0.2, 0, 1.0)
    assert (third.temperature, third.least_reward, third.least_margin, third.chosen_per_kind) == (1.1, 0.7, 0.3, 3)
    assert third.draw_chosen and third == fourth


def test_a_third_round_goes_on_from_the_adapter_after_two_with_a_judge_beside(options, causal, tmp_path, monkeypatch):
    import train_equivalence
    from training.pair_learners import SmollmLearner

    run(options, "--rounds", 1)
    SmollmLearner(train_equivalence.Settings(rank=2, hidden=4), "cpu", causal, None).save(tmp_path / "judge")
    out, started, prefer = tmp_path / "out", [], train_rewrite.train_preferences

    def note_start(base, start, *rest):
        started.append(start)
        return prefer(base, start, *rest)

    monkeypatch.setattr(train_rewrite, "train_preferences", note_start)
    more = ["--start", out / "supervised", "--resume", out, "--finished-rounds", 2, "--judge", tmp_path / "judge"]
    run(options, *more, "--out", tmp_path / "third")
    (only,) = read_training(tmp_path / "third")["rounds"]
    assert sum(only["pairs"].values()) >= 4 and not (tmp_path / "third" / "round-3").exists()
    resumed = train_rewrite.read_peft_tensors(out)
    assert len(started) == 1 and all(torch.equal(one, resumed[name]) for name, one in started[0].items())
    for wrong, said in (
        (["--finished-rounds", 3], "--rounds: expected 4 or more"),
        (["--resume", out], "--resume: needs --start and --finished-rounds"),
    ):
        with pytest.raises(SystemExit, match=said):
            run(options, *wrong)


def test_a_reward_is_the_probability_of_usable_or_the_limit_of_a_rule():
    good, copy = Candidate("old ship", "ancient boat", "neutral"), Candidate("old ship", "ship old", "neutral")
    said = {"same": 0.9, "natural": 0.9, "usable": 0.7}
    judged = {good: said, copy: said}
    assert [train_rewrite.reward(one, judged) for one in (good, copy)] == [0.7, 0.15]
