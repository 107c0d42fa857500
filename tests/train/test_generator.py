"""Query generators: pairs as RePair makes them, a split without leaks, and tiny models that learn them by heart."""

import json
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, StoreError
from askew.core.protocols import Passage, QueryBatch
from askew.train.common import Schedule
from askew.train.finetune import TextModel, TextSettings, epochs_for, fit_texts, kind_of
from askew.train.generator import (
    NO_PASSAGE,
    NO_QUERY,
    NO_TEXT_OF_PASSAGE,
    NO_TEXT_OF_QUERY,
    PRESETS,
    SEEN,
    GeneratorSettings,
    check_settings,
    components,
    make_pairs,
    of_part,
    prompts_for,
    train_generator,
)
from askew.train.rewriter import PAIR_COLUMNS, RewriterSettings, fit_rewriter

PASSAGES = ["the author wrote the old book", "the sky is blue", "red cars run fast", "the old station open"]
QUERIES = ["who wrote the book", "colour of sky", "fast cars", "history of station"]
SMALL = {"most_input": 32, "most_target": 8, "lora_dropout": 0.0, "rank": 16, "alpha": 32}


def judged(query=(0, 1, 2, 3), doc=(0, 1, 2, 3), queries=QUERIES, passages=PASSAGES, contexts=None):
    contexts = contexts or [None] * len(queries)
    rows = [(f"q{q}", f"d{d}", queries[q], contexts[q], passages[d]) for q, d in zip(query, doc, strict=True)]
    columns = ("query_id", "doc_id", "query", "context", "passage")
    return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")


def pairs_of(judged, settings):
    pairs, _ = make_pairs(judged, settings)
    return SimpleNamespace(**pairs.to_dict(as_series=False))


def test_each_relevant_passage_is_a_pair_or_all_of_a_query_are_one():
    found = pairs_of(judged((0, 0, 1), (0, 3, 1)), GeneratorSettings(split="none"))
    assert (found.read, found.written) == ([PASSAGES[0], PASSAGES[3], PASSAGES[1]], [QUERIES[0]] * 2 + [QUERIES[1]])
    found = pairs_of(judged((0, 1, 0), (0, 1, 3)), GeneratorSettings(join="concatenate", split="none"))
    assert (found.read, found.written) == ([f"{PASSAGES[0]} {PASSAGES[3]}", PASSAGES[1]], QUERIES[:2])


def test_the_other_direction_and_who_asked():
    settings = GeneratorSettings("query-passage", context=True, split="none")
    found = pairs_of(judged((0, 1), (0, 1), contexts=["u1", None, None, None]), settings)
    assert found.read == [f"u1: {QUERIES[0]}", QUERIES[1]]
    assert found.written == PASSAGES[:2]


def test_repairs_preset_is_as_published():
    settings = GeneratorSettings(**PRESETS["repair2023"])
    text, pace = settings.text, settings.pace
    found = pairs_of(judged((0, 0), (0, 1), queries=["Who Wrote it"], passages=["The Book", "IS Blue"]), settings)
    assert (found.read, found.written) == (["the book is blue"], ["who wrote it"])
    assert prompts_for(found.read, "seq2seq", settings, "msmarco.passage") == [
        "msmarco.passage_cf question: the book is blue"
    ]
    assert (text.most_input, text.most_target, text.steps, pace.batch_size) == (32, 256, 4000, 128)
    aol = GeneratorSettings(**PRESETS["repair2023-aol"])
    pairs, left_out = make_pairs(
        judged((0, 1, 0), (0, 0, 1), queries=["ab", "a"], passages=["0123456789", "012345678"]), aol
    )
    assert pairs["read"].to_list() == ["0123456789"]
    assert left_out == Counter({NO_QUERY: 1, NO_PASSAGE: 1})


def test_so_many_steps_are_so_many_epochs():
    assert epochs_for(10, 0, Schedule(epochs=2.5)) == 2.5
    # 10 pairs in batches of 4 are 3 batches; two make one step, so that an epoch has 2 steps.
    assert epochs_for(10, 8, Schedule(batch_size=4, accumulate=2)) == 4.0


def test_components_join_what_hangs_together():
    assert components(np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])).tolist() == [0, 0, 0, 1, 2]
    # A chain: each row shares something with the next only.
    assert len(set(components(np.array([3, 2, 2, 1, 1]), np.array([9, 9, 8, 8, 7])))) == 1


def test_questions_that_differ_in_marks_alone_are_on_one_side():
    asked = [f"query {i}{mark}" for i in range(30) for mark in ("", "?", " !")]
    rows = np.arange(len(asked))
    found = pairs_of(judged(rows, rows, asked, [f"passage {i}" for i in rows]), GeneratorSettings(split="query"))
    assert len(set(found.part)) > 1
    assert all(len(set(three)) == 1 for three in np.reshape(found.part, (-1, 3)).tolist())
    apart = pairs_of(judged(rows, rows, asked, [f"passage {i}" for i in rows]), GeneratorSettings())
    assert all(len(set(three)) == 1 for three in np.reshape(apart.part, (-1, 3)).tolist())


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40))
def test_no_query_and_no_passage_stands_on_two_sides(rows):
    queries, passages = [f"query {i % 9}" for i in range(13)], [f"passage {i}" for i in range(13)]
    query, doc = np.array(rows).T
    given_ = judged(query, doc, queries, passages)
    for split, columns in (("apart", (0, 1)), ("query", (1,))):
        found = pairs_of(given_, GeneratorSettings(split=split))
        for side in columns:
            texts = (found.read, found.written)[side]
            parts = {text: set() for text in texts}
            for text, part in zip(texts, found.part, strict=True):
                parts[text].add(part)
            assert all(len(one) == 1 for one in parts.values())
        assert len(found.read) == len(rows)


def test_nothing_held_out_means_every_part_is_all():
    pairs, _ = make_pairs(judged(), GeneratorSettings(split="none"))
    assert of_part(pairs, "train") == of_part(pairs, "test") == (PASSAGES, QUERIES)


def test_pairs_that_are_all_too_short_are_refused():
    with pytest.raises(DataError, match=r"4 pairs .*1000"):
        make_pairs(judged(), GeneratorSettings(least_passage=1000))


def test_settings_that_cannot_be_are_refused(models):
    for wrong in ({"direction": "both"}, {"join": "all"}, {"split": "random"}):
        with pytest.raises(ConfigError, match=r"generator, .*: expected one of"):
            GeneratorSettings(**wrong)
    for wrong in ({"kind": "rnn"}, {"rank": 0}, {"steps": -1}):
        with pytest.raises(ConfigError):
            TextSettings(**wrong)
    causal = TextSettings(models["causal"])
    for wrong in ({"context": True}, {"prefix": "x: "}):
        with pytest.raises(ConfigError, match=f"'{next(iter(wrong))}' needs"):
            check_settings(GeneratorSettings(**wrong, text=causal))


def test_the_kind_is_read_off_the_model(models, tmp_path):
    assert [kind_of(TextSettings(models[kind])) for kind in ("seq2seq", "causal")] == ["seq2seq", "causal"]
    with pytest.raises(ConfigError, match="cannot be loaded"):
        kind_of(TextSettings(str(tmp_path)))


def test_the_loss_is_that_of_the_library_and_of_the_target_alone(models):
    import torch

    for kind in ("seq2seq", "causal"):
        made = TextModel.load(TextSettings(models[kind], **SMALL), "cpu")
        found = made.losses(PASSAGES, QUERIES)
        for i in range(2):
            batch = made.collator()([made.encode(PASSAGES[i], QUERIES[i])])
            with torch.inference_mode():
                theirs = made.model(**batch).loss
            assert found[i] == pytest.approx(float(theirs), rel=1e-4)
        row = made.encode(PASSAGES[0], QUERIES[0])
        words = [one for one in row["labels"] if one != -100]
        assert made.tokenizer.decode(words, skip_special_tokens=True).split() == QUERIES[0].split()
        assert words[-1] == 1  # the end is learned too


def write_collection(folder, count=40):
    """The four facts again and again, each with its own number, so that there is something to hold out."""
    docs, queries, qrels = [], [], []
    for i in range(count):
        docs.append(json.dumps({"doc_id": f"d{i}", "title": "book", "text": PASSAGES[i % 4]}))
        queries.append(json.dumps({"query_id": f"q{i}", "text": QUERIES[i % 4], "user": "u1"}))
        qrels.append(f"q{i} 0 d{i} 1")
    qrels += ["q0 0 missing 1", "nobody 0 d0 1", "q1 0 d0 0"]
    for name, lines in (("docs.jsonl", docs), ("queries.jsonl", queries), ("qrels.txt", qrels)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def asked(passage=PASSAGES[2]):
    return QueryBatch(("x",), ("ask",), ((Passage("d", passage, 1.0),),), contexts=("u1",))


def test_a_generator_is_trained_measured_and_feeds_docquery(models, tmp_path):
    from askew.rewrite.generate import DocQueryReformulator

    source = write_collection(tmp_path)
    job = GeneratorSettings(
        context=True, prefix="ask : ", split="none", text=TextSettings(models["seq2seq"], **SMALL),
        pace=Schedule(12.0, 8, 1e-2, 1, 0.0, 0.0, "constant", 0), fields=("title", "text"), most_test=8,
    )  # fmt: skip
    made = train_generator(source, tmp_path / "out", job, "cpu")
    assert made.measured["left_out"] == {NO_TEXT_OF_QUERY: 1, NO_TEXT_OF_PASSAGE: 1}
    assert made.measured["pairs"] == {"train": 40, "test": 40}
    found = made.measured["test"]
    assert found["loss"]["mean"] < 0.1 < found["loss before"]["mean"]
    # Eight pairs of four questions: the unit of an interval is the question.
    assert found["f1"]["mean"] > 0.9 and found["f1"]["n"] == 4
    use = "--method docquery --set docquery.model=FOLDER --set 'docquery.prefix=ask : ' --set docquery.context=true"
    assert made.use == use
    card = (tmp_path / "out" / "README.md").read_text()
    assert SEEN in card
    assert not (tmp_path / "out" / "checkpoints").exists()
    reads = DocQueryReformulator(str(tmp_path / "out"), count=1, prefix="ask : ", context=True, device="cpu")
    assert reads.reformulate(asked(f"book {PASSAGES[2]}")).texts == ["fast cars"]
    assert train_generator(source, tmp_path / "out", job, "cpu") == replace(made, new=False)  # nothing is done again
    with pytest.raises(StoreError, match="another training"):
        train_generator(source, tmp_path / "out", GeneratorSettings(text=job.text), "cpu")


def test_an_adapter_is_trained_and_feeds_docquery(models, tmp_path):
    from askew.models.generate import load_generator
    from askew.rewrite.generate import DocQueryReformulator

    prompts = prompts_for(PASSAGES, "causal", GeneratorSettings())
    settings = TextSettings(models["causal"], **SMALL)
    before = load_generator(models["causal"], "causal").model.state_dict()["lm_head.weight"].clone()
    made = fit_texts(prompts, QUERIES, settings, Schedule(40.0, 4, 1e-2, 1, 0, 0, "constant", 0), tmp_path / "w", "cpu")
    assert max(made.losses(prompts, QUERIES)) < 0.1
    assert made.write(prompts) == QUERIES
    made.save(tmp_path / "out")
    assert (tmp_path / "out" / "adapter_model.safetensors").is_file()
    assert not (tmp_path / "out" / "model.safetensors").exists()
    reads = DocQueryReformulator(models["causal"], count=1, adapter=str(tmp_path / "out"), device="cpu")
    assert reads.reformulate(asked()).texts == ["fast cars"]
    # What others have loaded of the same name has not changed.
    after = load_generator(models["causal"], "causal").model.state_dict()["lm_head.weight"]
    assert (before == after).all()


class Stopped(Exception):
    pass


def test_an_adapter_that_was_stopped_ends_with_the_same_weights(models, tmp_path):
    import torch

    settings = TextSettings(models["causal"], most_input=16, most_target=8)
    pace = Schedule(3.0, 2, 1e-2, 1, 0.0, 0.0, "linear", 2, 3)

    def stop(done, *_):
        if done == 5:
            raise Stopped

    whole = fit_texts(PASSAGES, QUERIES, settings, pace, tmp_path / "whole", "cpu")
    with pytest.raises(Stopped):
        fit_texts(PASSAGES, QUERIES, settings, pace, tmp_path / "again", "cpu", progress=stop)
    again = fit_texts(PASSAGES, QUERIES, settings, pace, tmp_path / "again", "cpu")
    for name, weights in whole.model.state_dict().items():
        assert torch.equal(weights, again.model.state_dict()[name]), name


@pytest.mark.parametrize("kind", ["seq2seq", "causal"])
def test_a_rewriter_of_transformers_is_taught_saved_and_used(models, tmp_path, kind):
    from askew.rewrite.rewrite import RewriteReformulator

    targets = ["old book", "blue sky", "red cars", "station history"]
    pairs = pl.DataFrame([list("abcd"), QUERIES, targets], schema=PAIR_COLUMNS)
    prefix = "ask : " if kind == "seq2seq" else ""
    pace = Schedule(40.0, 4, 1e-2, 1, 0.0, 0.0, "constant", 0)
    settings = RewriterSettings(kind, text=TextSettings(models[kind], **SMALL), prefix=prefix, pace=pace)
    taught = fit_rewriter(pairs, settings, tmp_path / "work", device="cpu")
    assert [lines[0] for lines in taught.rewriter.write(QUERIES, beams=2)] == targets
    taught.save(tmp_path / "out")
    found = RewriteReformulator(model=str(tmp_path / "out"), count=1).reformulate(
        QueryBatch(("a", "b"), (QUERIES[1], " "))
    )
    assert (found.texts, found.rejected) == (["blue sky"], Counter({"nothing to read": 1}))


def test_no_pairs_and_no_held_out_pairs_are_told(models, tmp_path):
    text = TextSettings(models["causal"], **SMALL)
    with pytest.raises(DataError, match="pairs of texts"):
        fit_texts([], [], text, Schedule(), tmp_path / "w", "cpu")
    source = write_collection(tmp_path, 2)  # both are in the part train
    with pytest.raises(DataError, match=r"held-out pairs.*split="):
        train_generator(source, tmp_path / "out", GeneratorSettings(text=text), "cpu")
