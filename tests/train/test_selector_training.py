"""Selectors from a built dataset, on the demo collection and a tiny encoder: from the store to a choice."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from toy_encoder import make_encoder

from askew.core.errors import ConfigError, DataError, StoreError
from askew.train.common import Schedule
from askew.train.selector import (
    CROSS_ENCODER,
    EFFECTIVENESS,
    KEEP_ORIGINAL,
    LEAN,
    NEGATIVE,
    NEITHER,
    POSITIVE,
    SIMPLE_RULE,
    Built,
    SelectorSettings,
    choose,
    effects,
    labels_for,
    pair_texts,
    read_built,
    train_selector,
)
from askew.ui.cli.main import run as askew

torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
pytest.importorskip("accelerate", reason="the extra 'train' is not installed")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "store"
    assert askew(["run", "refairmulate-paper", "--store", str(folder)]) == 0
    torch.set_num_threads(1)  # compiled loops have just asked for all cores; a tiny model is faster with one
    return folder


@pytest.fixture(scope="module")
def built(store):
    return read_built(store)


@pytest.fixture(scope="module")
def dataset(store):
    folder = store.parent / "dataset"
    assert askew(["publish", "refairmulate-paper", "--store", str(store), "--out", str(folder)]) == 0
    return folder


def job_for(tiny, **more):
    pace = Schedule(epochs=1.0, batch_size=8, learning_rate=1e-3, warmup=0.0, save_every=1000, seed=3)
    return SelectorSettings(model=tiny, text_tokens=12, passage_tokens=12, pace=pace, **more)


@pytest.fixture(scope="module")
def model(store, tiny):
    out = store.parent / "model"
    return train_selector(store, out, job_for(tiny), "cpu", "askew train selector STORE")


def toy(scored=(), **columns):
    """Two queries with two candidates each."""
    texts = {"query_id": ["a", "a", "b", "b"], "variant_id": ["a:1", "a:2", "b:1", "b:2"], "text": ["x", "y", "z", "u"]}
    table = pl.DataFrame({**texts, "original_text": ["one", "one", "two", "two"], **columns})
    return Built(table, np.array([0, 0, 1, 1]), ["a", "b"], ["one", "two"], whole=True, scored=scored)


def test_the_store_of_a_build_has_every_candidate_with_what_it_finds(built):
    assert built.whole and built.found is not None
    assert built.found[0].shape == (len(built.query_ids), 10)
    assert len(built.found[1]) == len(built.query) == built.table.height
    again = built.old(EFFECTIVENESS)[built.query] + built.gain(EFFECTIVENESS)
    assert again == pytest.approx(built.new(EFFECTIVENESS))


def test_the_first_passages_are_those_that_were_found_first(built):
    passages, first, candidate_first = built.passages
    assert len(first) == len(built.query_ids) and len(candidate_first) == len(built.query)
    same = candidate_first == first[built.query]
    assert (same == (built.found[1][:, 0] == built.found[0][built.query, 0])).all()
    assert len(set(passages)) == len(passages) == max(first.max(), candidate_first.max()) + 1


def test_a_published_dataset_keeps_its_own_split(dataset):
    found = read_built(dataset)
    assert not found.whole and found.found is None
    files = {file.name.partition("-")[0]: pl.read_parquet(file) for file in (dataset / "data").glob("*.parquet")}
    for query, part in zip(found.query_ids, found.parts().tolist(), strict=True):
        assert query in files[part]["query_id"].to_list()


def test_labels_are_those_of_the_selection_or_of_effectiveness():
    found = toy(
        fair=[True, False, False, True], negative=[False, True, False, True], **{"gain_RR_10": [0.5, 0, -1, 0.0]}
    )
    assert labels_for(found, "refairmulate").tolist() == [POSITIVE, NEGATIVE, NEITHER, POSITIVE]
    assert labels_for(found, "effectiveness").tolist() == [POSITIVE, NEITHER, NEGATIVE, NEITHER]
    assert labels_for(found, "no-loss").tolist() == [POSITIVE, POSITIVE, NEGATIVE, POSITIVE]
    with pytest.raises(ConfigError, match="best"):
        labels_for(found, "best")


def test_a_dataset_without_negatives_is_refused():
    found = toy(fair=[True] * 4, negative=[False] * 4)
    with pytest.raises(DataError, match=r"expected negative pairs .*, found none"):
        labels_for(found, "refairmulate")
    with pytest.raises(DataError, match="expected the column 'negative'"):
        labels_for(toy(fair=[True] * 4), "refairmulate")


def test_a_folder_that_is_neither_store_nor_dataset_is_told(tmp_path):
    with pytest.raises(DataError, match="askew run"):
        read_built(tmp_path)
    (tmp_path / "askew.json").write_text("{}")
    with pytest.raises(DataError, match="format 2, found format None"):
        read_built(tmp_path)


def test_what_choices_do_is_measured_query_by_query():
    columns = {
        "old_RR_10": [0.5, 0.5, 1.0, 1.0], "new_RR_10": [1.0, 0.0, 0.5, 1.0], "old_ARaB_tf_10": [-0.4, -0.4, 0.2, 0.2],
        "new_ARaB_tf_10": [0.1, 0.0, 0.0, -0.3], "gain_RR_10": [0.5, -0.5, -0.5, 0.0],
        "gain_ARaB_tf_10": [0.3, 0.4, 0.2, -0.1],
    }  # fmt: skip
    found = toy((EFFECTIVENESS, LEAN), **columns)
    queries = np.arange(2)
    done = effects(found, queries, np.array([0, 2]))
    assert (done["RR@10"].old, done["RR@10"].new, done["RR@10"].improved, done["RR@10"].worsened) == (0.75, 0.75, 1, 1)
    # Without their signs the leans are 0.4 and 0.2 before, 0.1 and 0.0 after.
    assert done[LEAN].old == pytest.approx(0.3) and done[LEAN].new == pytest.approx(0.05)
    kept = effects(found, queries, np.array([KEEP_ORIGINAL, KEEP_ORIGINAL]))
    assert kept["RR@10"].gain == kept[LEAN].gain == 0
    only = effects(found, np.array([1]), np.array([3]))
    assert (only["RR@10"].old, only["RR@10"].new) == (1.0, 1.0) and only[LEAN].new == pytest.approx(0.3)


def test_a_dataset_without_held_out_queries_is_refused(tiny, tmp_path):
    found = toy(split=["train"] * 4, fair=[True, False] * 2, negative=[False, True] * 2)
    with pytest.raises(DataError) as error:
        train_selector(found, tmp_path, job_for(tiny), "cpu")
    assert (error.value.code, error.value.values) == ("no-test-queries", {"queries": 2})


def test_a_selector_is_trained_measured_and_written_down(model, store):
    choices = model.measured["choices"]
    assert list(choices) == ["original", CROSS_ENCODER, SIMPLE_RULE, "oracle"]
    assert choices["original"]["changed"] == 0
    assert choices["oracle"][EFFECTIVENESS]["worsened"] == 0 and choices["oracle"][LEAN]["gain"] > 0
    simple = choices[SIMPLE_RULE][LEAN]
    assert simple["worsened"] == 0 and simple["improved"] == choices[SIMPLE_RULE]["changed"] > 0
    assert choices[CROSS_ENCODER]["changed"] == choices["original"][EFFECTIVENESS]["n"]
    card = (model.folder / "README.md").read_text(encoding="utf-8")
    assert SIMPLE_RULE in card and "selector STORE" in card
    facts = json.loads((model.folder / "measured.json").read_text(encoding="utf-8"))
    assert facts["measured"]["queries"] == {
        name: int((read_built(store).parts() == name).sum()) for name in ("train", "test")
    }
    assert not (model.folder / "checkpoints").exists()


def test_a_trained_selector_chooses_again_what_it_chose(model, built):
    test = np.flatnonzero(built.parts() == "test")
    # The texts are enough: no judgement is read where a candidate is chosen.
    texts = replace(built, table=built.table.select("text"))
    again = effects(built, test, choose(model.folder, texts, "cpu")[test])
    for measure in (EFFECTIVENESS, LEAN):
        assert again[measure].new == pytest.approx(model.measured["choices"][CROSS_ENCODER][measure]["new"])


def test_a_selector_from_python_selects_the_candidates_with_the_highest_scores(model, built, store):
    from askew.train.facade import Selector

    found = Selector.load(model.folder).predict(store, "cpu")
    chosen = choose(model.folder, built, "cpu")
    assert found["query_id"].to_list() == list(built.query_ids)
    assert found["is_reformulated"].all() and (built.query[chosen] == np.arange(len(chosen))).all()
    assert found["text"].to_list() == built.table["text"].gather(chosen).to_list()


def test_the_same_training_is_not_done_again_and_another_is_refused(model, store, tiny):
    again = train_selector(store, model.folder, job_for(tiny), "cpu")
    assert not again.new and again.measured == model.measured
    with pytest.raises(StoreError, match="another training"):
        train_selector(store, model.folder, replace(job_for(tiny), most_each=2), "cpu")


def test_a_published_dataset_trains_the_cross_encoder_alone(dataset, tiny, tmp_path):
    done = train_selector(dataset, tmp_path / "model", job_for(tiny), "cpu")
    assert "choices" not in done.measured and 0 < done.measured["told apart"]["value"] <= 1
    assert (choose(tmp_path / "model", read_built(dataset), "cpu") != KEEP_ORIGINAL).all()
    with pytest.raises(ConfigError, match="passages="):
        train_selector(dataset, tmp_path / "third", job_for(tiny, passages="separator"), "cpu")


def test_a_folder_without_a_selector_is_told(built, tmp_path):
    with pytest.raises(DataError, match="askew train selector"):
        choose(tmp_path, built)


def test_passages_follow_the_separator_of_the_tokenizer(built, tiny):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    passages, _, candidate_first = built.passages
    rows = np.array([0, 5])
    settings = SelectorSettings(passages="separator", text_tokens=6, passage_tokens=4)
    left, right = pair_texts(tokenizer, built, settings, rows)
    text, passage, joined = (
        tokenizer(text, add_special_tokens=False)["input_ids"]
        for text in (built.table["text"][5], passages[candidate_first[5]], right[1])
    )
    assert joined == [*text[:6], tokenizer.sep_token_id, *passage[:4]]
    assert len(left) == len(built.originals)


def test_a_candidate_that_wins_in_training_is_scored_higher(tiny, tmp_path):
    """Candidates with the word book are positive, those with cars negative: the encoder learns it."""
    from askew.train.selector import built_of, score_candidates
    from askew.train.selector import fit_selector as on_pairs

    ids = [str(query) for query in range(8) for _ in range(2)]
    table = {"query_id": ids, "text": ["the book", "fast cars"] * 8, "original_text": ["who wrote"] * 16}
    built = built_of(pl.DataFrame(table), (), whole=False)
    pace = Schedule(epochs=15.0, batch_size=8, learning_rate=5e-3, warmup=0.0, save_every=0, seed=1)
    settings = SelectorSettings(model=tiny, text_tokens=8, pace=pace)
    encoder = on_pairs(built, np.tile([POSITIVE, NEGATIVE], 8), settings, tmp_path, "cpu")
    scores = score_candidates(encoder, built, settings, np.arange(2))
    assert scores[0] > scores[1] + 0.2
    with pytest.raises(DataError, match="has the label 'negative'"):
        on_pairs(built, np.full(16, POSITIVE), settings, tmp_path, "cpu")


def test_a_checkpoint_of_another_architecture_is_refused(store, tiny, tmp_path):
    """A training that is stopped and goes on with another encoder finds a checkpoint that is not its own."""
    job = job_for(tiny)
    job = replace(job, pace=replace(job.pace, save_every=2))

    def stop(done, *_):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_selector(store, tmp_path / "model", job, "cpu", progress=stop)
    wider = make_encoder(tmp_path / "wider", width=24)
    other = replace(job, model=wider)
    with pytest.raises(StoreError, match="architecture"):
        train_selector(store, tmp_path / "model", other, "cpu")
