"""The teacher of whether a text is usable: what it is fit on, what it reads, and what it says."""

import numpy as np
import pytest
from toy_training import label_row, rewrites_row

pytest.importorskip("torch", reason="the extra 'neural' is not installed")

import torch
import train_equivalence
import train_rewrite
from training import rewriting
from training.data import Reformulations
from training.pair_learners import MinilmLearner, SmollmLearner
from training.preferences import Sample
from training.teacher import Candidate, Evidence, Teacher, candidate_of, open_judges, teacher_rows

from askew.models.pair_network import load_pair_judge, load_pair_network, pair_logits
from askew.rewrite.equivalence import FEATURES, pair_features

TEXTS = ["a b", "c d", "e f", "g h", "i j"]


def labeled(n=200):
    """The need of a text is in its words: "good" is the same, "odd" is not natural."""
    words = ["good", "bad", "good odd", "bad odd"]
    methods = ("rewrite:keywords", "supervised:neutral", "extract")
    return [
        label_row(f"query {i // 4}", f"{words[i % 4]} {i}", "same" if "good" in words[i % 4] else "partly",
                  int("odd" not in words[i % 4]), method=methods[i % 3])
        for i in range(n)
    ]  # fmt: skip


def by_words(candidates):
    return np.array([["good" in one.text, "odd" in one.text] for one in candidates], float)


def silent(line):
    assert "\n" not in line


def test_a_labeled_row_has_the_kind_of_its_method_and_others_are_paraphrases():
    kinds = {"rewrite:neutral": "neutral", "supervised:keywords": "keywords", "extract": "paraphrase",
             "querygym:genqr": "paraphrase"}  # fmt: skip
    for method, kind in kinds.items():
        row = label_row("q", "c", "same", method=method)
        assert candidate_of(row) == Candidate("q", "c", kind)


def test_the_teacher_is_fit_on_dev_and_fresh_labels_of_open_collections_and_on_no_test_query():
    labels = [
        label_row("one", "x", "same"), label_row("two", "x", "same", split="dev"),
        label_row("three", "x", "same", split="dev", collection="msmarco"),
        label_row("four", "x", "same", split="test"), label_row("Four?", "y", "same", split="dev"),
    ]  # fmt: skip
    fresh = [label_row("five", "x", "same"), label_row("six", "x", "same", collection="msmarco"),
             label_row("seven", "x", "same"), label_row("four", "z", "same")]  # fmt: skip
    data = Reformulations([rewrites_row("Seven", TEXTS, split="test")], labels)
    assert [row["query"] for row in teacher_rows(data, fresh)] == ["two", "five"]


def test_what_is_in_the_features_is_learned_and_reported_by_family():
    said = []
    teacher = Teacher(by_words, labeled(), said.append)
    assert teacher.areas["all"] == {"rows": 200, "same": 1.0, "natural": 1.0, "usable": 1.0}
    assert {name: one["rows"] for name, one in teacher.areas.items()} == {
        "all": 200, "rewrite": 67, "supervised": 67, "others": 66,
    }  # fmt: skip
    assert len(said) == 4 and "rewrite: {'rows': 67" in said[1]
    queries = ["p", "q"]
    texts = [(0, "good"), (0, "bad"), (1, "good odd"), (0, "good")]
    found = teacher.judge([Sample(query, "neutral", text, -1.0) for query, text in texts], queries)
    assert list(found) == [Candidate(queries[query], text, "neutral") for query, text in texts[:3]]
    good, bad, odd = found.values()
    yes = [good["same"], good["natural"], good["usable"], bad["natural"], odd["same"]]
    no = [bad["same"], bad["usable"], odd["natural"], odd["usable"]]
    assert min(yes) > 0.7 and max(no) < 0.3


def test_areas_are_those_of_queries_that_a_regression_was_not_fit_on():
    chance = np.random.default_rng(0)

    def noise(candidates):
        return chance.normal(size=(len(candidates), 60))

    found = Teacher(noise, labeled(120), silent).areas["all"]
    assert all(0.3 < found[name] < 0.7 for name in ("same", "natural", "usable"))  # near 1 on the rows themselves


@pytest.mark.parametrize("rows", [[], labeled(4), [row for row in labeled() if row["natural"]]])
def test_labels_of_one_query_or_one_value_are_refused_in_one_line(rows):
    with pytest.raises(SystemExit, match="teacher: expected dev or fresh labels of several queries") as caught:
        Teacher(by_words, rows, silent)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("judged", [False, True])
def test_features_are_logits_log_probabilities_both_ways_and_those_of_words(judged, causal, encoder, tmp_path):
    torch.manual_seed(3)
    settings, small = train_rewrite.Settings(rank=2, alpha=4), train_equivalence.Settings(rank=2, hidden=4)
    folder, second = tmp_path / "minilm", tmp_path / "judge"
    MinilmLearner(small, "cpu", encoder).save(folder)
    SmollmLearner(small, "cpu", causal, None).save(second)
    base = rewriting.open_base(causal, "cpu")
    tensors = {
        name: torch.randn_like(one) * 0.1 for name, one in rewriting.peft_tensors(base.adapted(settings, 0.0)).items()
    }
    asked = [Candidate("old ship", "ancient boat", "vocabulary"), Candidate("red car", "car", "keywords"),
             Candidate("tall queen", "a queen that is tall", "explicit")]  # fmt: skip
    judges = open_judges("cpu", str(folder), encoder, str(second) if judged else None, causal)
    found = Evidence(base, tensors, settings, judges)(asked)
    queries, texts = [one.query for one in asked], [one.text for one in asked]
    assert found[:, :2] == pytest.approx(pair_logits(*load_pair_network(encoder, folder, "cpu"), queries, texts, 1))
    if judged:
        assert found[:, 2:4] == pytest.approx(load_pair_judge(second, causal, "cpu").logits(queries, texts), abs=1e-4)
        found = np.delete(found, [2, 3], axis=1)
    assert found.shape == (3, 2 + 6 + len(FEATURES))
    assert found[:, 8:] == pytest.approx(pair_features(queries, texts))
    writer = base.merged(tensors, settings)
    for row, one in zip(found, asked, strict=True):
        there = log_probabilities(writer, base.tokenizer, one.query, one.kind, one.text)
        back = log_probabilities(writer, base.tokenizer, one.text, "original", one.query)
        wanted = [value for part in (there, back) for value in (sum(part), sum(part) / len(part), min(part))]
        assert row[2:8] == pytest.approx(wanted, abs=1e-3)


@torch.no_grad()
def log_probabilities(model, tokenizer, text, kind, target):
    """Of each token of the target and of the end, one after the other."""
    ids = tokenizer(f"Query: {text}\n{kind}:", add_special_tokens=False)["input_ids"]
    found = []
    for token in [*tokenizer(f" {target}", add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]:
        found.append(model(input_ids=torch.tensor([ids])).logits[0, -1].log_softmax(-1)[token].item())
        ids.append(token)
    return found
