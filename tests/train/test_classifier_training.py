"""The trainer of query classifiers, on a tiny encoder built here: what it learns, what it refuses, what it leaves."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("accelerate", reason="the extra 'train' is not installed")

from askew.core.errors import DataError, StoreError
from askew.core.groups import Groups
from askew.rewrite.classifiers import classify
from askew.train.classifier import (
    ClassifierSettings,
    LabeledTexts,
    contradictions,
    cross_calibrated,
    known_words,
    marking,
    normalised,
    read_labeled_queries,
    stratified_folds,
    train_classifier,
)
from askew.train.common import Schedule
from askew.ui.cli.main import app
from askew.ui.cli.train import train_app

WORDS = ["she", "he", "mother", "father", "tea", "rain", "who", "is", "old", "cost", "of", "the", "a", "how", "when"]
QUICK = Schedule(epochs=15, batch_size=8, learning_rate=5e-3, warmup=0.1, save_every=50, seed=3)


@pytest.fixture(scope="module")
def tiny_encoder(tmp_path_factory, bert_tokenizer):
    """A BERT of one small layer without a head; its weights are random but fixed."""
    import torch
    from transformers import BertConfig, BertModel

    fast = bert_tokenizer(WORDS, room=32)
    config = BertConfig(
        vocab_size=len(fast), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32, initializer_range=0.1,
    )  # fmt: skip
    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("encoder")
    BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def queries(tmp_path):
    """Sixty queries whose class one word tells, and two that nobody could place."""
    frames = ["who is {}", "how old is {}", "when is the {}", "cost of {}", "is {} old"]
    told = {"f": ["she", "mother", "the mother", "a mother"], "m": ["he", "father", "the father", "a father"],
            "n": ["tea", "rain", "the tea", "a rain"]}  # fmt: skip
    lines = [f"{frame.format(word)},{label}" for label, words in told.items() for word in words for frame in frames]
    lines += ["he or she,o", "mother, father,o"]
    file = tmp_path / "queries.csv"
    file.write_text("".join(f"{i},{line}\n" for i, line in enumerate(lines)), encoding="utf-8")
    return file


def job(tiny_encoder, **changed):
    groups = Groups.of("gender:female,male")
    return ClassifierSettings(str(tiny_encoder), groups, False, False, pace=QUICK, folds=3, **changed)


def test_it_learns_calibrates_writes_a_card_and_opens_in_the_transformer_classifier(tiny_encoder, queries, tmp_path):
    out = tmp_path / "model"
    made = train_classifier(queries, out, job(tiny_encoder), "cpu", "askew train classifier")
    facts = json.loads((out / "measured.json").read_text(encoding="utf-8"))
    found = made.measured["cross_validation"]
    assert made.new and made.folder == out and facts["measured"] == made.measured
    assert found["n"] == 60
    assert found["accuracy"]["value"] >= 0.9
    assert found["accuracy"]["low"] <= found["accuracy"]["value"] <= found["accuracy"]["high"]
    assert set(found["f1"]) == {"neutral", "female", "male"}
    assert facts["data"][0]["left out: label 'o'"] == 2
    assert not (out / "checkpoints").exists()
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "BERT-base uncased (published)" in card and "0.856" in card
    settings = {"model": str(out)}
    done = classify(str(queries), "transformer", **settings)
    assert done.judged == 60 and done.right >= 54
    temperature = json.loads((out / "calibration.json").read_text(encoding="utf-8"))["temperature"]
    assert temperature == made.measured["temperature"]
    again = train_classifier(queries, out, job(tiny_encoder), "cpu", "askew train classifier")
    assert again == replace(made, new=False)
    with pytest.raises(StoreError, match="another training"):
        train_classifier(queries, out, job(tiny_encoder, drop=("o", "x")), "cpu")


def test_a_stopped_cross_validation_goes_on_after_its_finished_folds(tiny_encoder, queries, tmp_path, monkeypatch):
    from askew.train import classifier

    fitted, real = [], classifier.fit

    def counted(data, *rest):
        fitted.append(len(data))
        if len(fitted) == 3:
            raise KeyboardInterrupt
        return real(data, *rest)

    monkeypatch.setattr(classifier, "fit", counted)
    quick = replace(job(tiny_encoder), pace=replace(QUICK, epochs=1))
    with pytest.raises(KeyboardInterrupt):
        train_classifier(queries, tmp_path / "m", quick, "cpu")
    fitted.clear()
    fitted.extend([0, 0, 0])  # of the folds, only the interrupted one is trained again; then all 60 texts
    train_classifier(queries, tmp_path / "m", quick, "cpu")
    assert fitted == [0, 0, 0, 40, 60]


def test_a_class_that_is_missing_is_told(tiny_encoder, tmp_path):
    file = tmp_path / "q.csv"
    file.write_text("1,who is she,f\n2,tea,n\n3,rain,n\n", encoding="utf-8")
    with pytest.raises(DataError, match="neutral 2, female 1, male 0"):
        train_classifier(file, tmp_path / "m", job(tiny_encoder), "cpu")


def test_a_class_with_fewer_texts_than_folds_is_told(tiny_encoder, tmp_path):
    file = tmp_path / "q.csv"
    lines = [f"{i},tea {i},n" for i in range(4)] + [f"1{i},he {i},m" for i in range(4)] + ["99,she,f"]
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"3 texts.* 'female', found 1"):
        train_classifier(file, tmp_path / "m", job(tiny_encoder), "cpu")


@pytest.mark.parametrize(("label", "said"), [("x", "found 'x' for the query '7'"), ("", "label"), ("fm", "found 'fm'")])
def test_an_unknown_label_is_told(tiny_encoder, tmp_path, label, said):
    file = tmp_path / "q.csv"
    file.write_text(f"1,she,f\n7,he,{label}\n", encoding="utf-8")
    with pytest.raises(DataError, match=said):
        read_labeled_queries(file, job(tiny_encoder))


def test_queries_without_labels_are_told(tiny_encoder, tmp_path):
    file = tmp_path / "q.tsv"
    file.write_text("1\tshe\n2\the\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"label.* found none for '1'"):
        read_labeled_queries(file, job(tiny_encoder))


SOME = ["a b", "A b!", "c", "C.", "d e", "f", "g", "h", "i", "j k"]
texts = st.lists(st.sampled_from(SOME), min_size=30, max_size=60)


@settings(max_examples=30)
@given(texts, st.integers(0, 9), st.integers(2, 4))
def test_equal_texts_are_in_one_fold_and_every_class_is_spread_evenly(texts, seed, folds):
    known = sorted({normalised(text) for text in texts})
    label_of = {text: i % 2 for i, text in enumerate(known)}
    assume(len(known) >= 2 * folds)
    data = LabeledTexts(tuple(texts), np.array([label_of[normalised(text)] for text in texts]), ("x", "y"))
    fold = stratified_folds(data, folds, seed)
    of_text = {}
    for text, k in zip(texts, fold, strict=True):
        assert of_text.setdefault(normalised(text), k) == k
    for label in (0, 1):
        counts = [sum(k == f for text, k in of_text.items() if label_of[text] == label) for f in range(folds)]
        assert max(counts) - min(counts) <= 1
    assert (stratified_folds(data, folds, seed) == fold).all()


def test_a_text_with_two_classes_is_counted():
    data = LabeledTexts(("Who is it?", "who is it", "tea", "tea"), np.array([0, 1, 1, 1]), ("x", "y"))
    assert contradictions(data) == 1


def test_words_and_names_become_examples_of_their_class_and_those_of_two_classes_do_not(tmp_path):
    file = tmp_path / "words.toml"
    file.write_text(
        '[groups]\nfemale = ["she", "cousin"]\nmale = ["he", "cousin"]\nplant = ["rose"]\n', encoding="utf-8"
    )
    found = known_words(ClassifierSettings(groups=Groups.load(file), names=False), ("neutral", "female", "male"))
    assert found == [("he", 2), ("she", 1)]
    with_names = known_words(ClassifierSettings(groups=Groups.load(file)), ("neutral", "female", "male"))
    assert ("mary", 1) in with_names and ("john", 2) in with_names and len(with_names) > 300


def test_the_temperature_of_a_fold_is_that_of_the_others():
    labels = np.array([0, 1] * 10)
    sure = np.eye(2)[labels] * 8.0
    fold = np.array([0] * 10 + [1] * 10)
    sure[:10] = sure[:10][:, ::-1]  # fold 0 is always wrong, and sure of it; fold 1 is always right
    found = cross_calibrated(sure, labels, fold)
    assert found[fold == 0].max() > 0.99, "the others are right, so fold 0 stays sure"
    assert found[fold == 1].max() < 0.65, "the others are wrong, so fold 1 becomes unsure"


def test_the_command_teaches_and_names_its_settings():
    from typer.testing import CliRunner

    shown = CliRunner().invoke(train_app, ["classifier", "--help"])
    assert shown.exit_code == 0
    for word in ("learning_rate", "lexicon", "--folds", "--classifier transformer"):
        assert word in shown.output
    assert app is not train_app


def test_an_unknown_setting_is_told_with_those_that_are_known(tiny_encoder, queries, tmp_path):
    from typer.testing import CliRunner

    given = ["classifier", str(queries), "--out", str(tmp_path / "m"), "--set", "epoch=2"]
    told = CliRunner().invoke(train_app, given).exception
    assert "unknown setting 'epoch' in askew train: did you mean 'epochs'?" in str(told)


def test_the_command_trains_with_its_settings(tiny_encoder, queries, tmp_path):
    from typer.testing import CliRunner

    out = tmp_path / "m"
    given = ["classifier", str(queries), "--out", str(out), "--folds", "2", "--device", "cpu", "--json", "--seed", "5"]
    for one in (f"model={tiny_encoder}", "words=false", "names=false", "epochs=1", "drop=o"):
        given += ["--set", one]
    done = CliRunner().invoke(train_app, given, catch_exceptions=False)
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["cross_validation"]["n"] == 60 and facts["out"] == str(out)
    card = json.loads((out / "measured.json").read_text(encoding="utf-8"))
    assert card["settings"]["epochs"] == 1 and card["seed"] == 5 and card["settings"]["folds"] == 2


def test_known_words_are_marked_by_the_tokenizer_that_is_saved_with_the_model(tiny_encoder, queries, tmp_path):
    from transformers import AutoTokenizer

    words = tmp_path / "words.toml"
    words.write_text('[groups]\nfemale = ["mother"]\nmale = ["father", "old man"]\n', encoding="utf-8")
    pace = Schedule(epochs=1, save_every=0)
    own = ClassifierSettings(str(tiny_encoder), Groups.load(words), names=False, pace=pace, folds=2)
    out = tmp_path / "model"
    train_classifier(queries, out, own, "cpu")
    read_again = AutoTokenizer.from_pretrained(out)
    for text, marked in (
        ("who is the Mother", "who is the female mother"),
        ("fathers father's", "fathers male father's"),
        ("an old man", "an male old man"),
    ):
        assert read_again.backend_tokenizer.normalizer.normalize_str(text) == marked
    assert classify(str(queries), "transformer", model=str(out)).judged == 60


def test_a_class_is_written_before_known_words_at_any_place_whatever_the_tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    bare = Tokenizer(models.WordLevel({"[UNK]": 0, "male": 1, "female": 2, "tom": 3, "is": 4, "she": 5}, "[UNK]"))
    bare.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # and no normalizer: so it is with byte-level ones
    marked = marking(
        PreTrainedTokenizerFast(tokenizer_object=bare, unk_token="[UNK]"), [("tom", 1), ("she", 0)], ("female", "male")
    )
    for text, wanted in (
        ("tom", "male tom"), ("is tom", "is male tom"), ("tom is she", "male tom is female she"), ("", ""),
    ):  # fmt: skip
        assert marked.convert_ids_to_tokens(marked(text)["input_ids"]) == wanted.split()


def test_a_part_of_an_epoch_may_be_asked_for():
    from askew.train.adapter import PACES
    from askew.train.classifier import PACE
    from askew.train.common import with_settings

    for pace in (PACE, *PACES.values()):
        assert with_settings({"epochs": 0.5}, pace, "--set").epochs == 0.5


def test_nothing_but_results_is_said_when_a_classifier_opens(tiny_encoder, tmp_path, capfd):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    from askew.models.encode import load_classifier

    AutoModelForSequenceClassification.from_pretrained(tiny_encoder, num_labels=3).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(tiny_encoder).save_pretrained(tmp_path)
    capfd.readouterr()
    logging.enable_progress_bar()
    load_classifier(str(tmp_path))
    assert capfd.readouterr() == ("", "")
