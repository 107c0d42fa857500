"""Groups of age on the commands that train, sample and rerank: nothing they say or write is about gender."""

import json
import re
from pathlib import Path

import pytest

GENDER = re.compile(r"female|\bmale\b|gender|women|\bman\b|\bshe\b|rekabsaz|nonbinary", re.IGNORECASE)
# Mentions (old, young): d1 (2, 0), d2 (0, 2), d3 none, d4 (1, 1), d5 (0, 1).
DOCS = {
    "d1": "Retired people and the elderly.", "d2": "A teen met other teens.", "d3": "The weather is fine.",
    "d4": "The elderly and a teen.", "d5": "One teen.",
}  # fmt: skip
ARGUMENTS = "old.run --docs docs.tsv --queries queries.tsv --qrels qrels.txt"
ASKED = ["who are {}", "how old are {}", "when do {} rest", "cost of {}"]
LABELS = {"old": ["the elderly", "retired people", "elderly people"], "young": ["teens", "a teen", "the teens"],
          "neutral": ["tea", "the rain", "a tea"]}  # fmt: skip


@pytest.fixture(autouse=True)
def world(files):
    """Documents, a run and queries about age, and a lexicon of it."""
    files.text("age.csv", "elderly,old\nretired,old\nteen,young\nteens,young\n")
    files.docs("docs.tsv", DOCS)
    files.run("old.run", {"q1": ["d1", "d2", "d3", "d5"], "q2": ["d2", "d5", "d1", "d3"]})
    files.text("queries.tsv", "q1\twho rests\nq2\twho works\n")
    files.text("qrels.txt", "q1 0 d3 1\nq2 0 d3 1\n")
    return files


def nothing_of_gender(*texts):
    for text in texts:
        found = GENDER.search(text)
        assert found is None, text[max(0, found.start() - 80) : found.end() + 80]


def test_negatives_lean_by_age(askew):
    done = askew(f"negatives {ARGUMENTS} --out made.jsonl --lexicon age.csv --count 2 --share 0.5")
    assert done.code == 0, done.err
    made = Path("made.jsonl").read_text(encoding="utf-8")
    nothing_of_gender(done.out, done.err, made)
    leaning = [line["passage"] for line in map(json.loads, made.splitlines()) if line["query"] == "who rests"]
    assert leaning[0] == DOCS["d3"] and leaning[1] == DOCS["d1"]
    by_name = askew(f"negatives {ARGUMENTS} --out other.jsonl --groups age.csv:old,young --count 2 --share 0.5")
    assert by_name.code == 0 and Path("other.jsonl").read_text(encoding="utf-8") == made
    wrong = askew(f"negatives {ARGUMENTS} --out third.jsonl --lexicon age.csv --groups old,middle")
    wrong.refused(2, "unknown group 'middle'", "known: old, young")
    nothing_of_gender(wrong.err)


def test_a_run_is_reranked_by_shares_of_age(askew, files):
    files.run("old.run", {"q1": ["d3", "d4"], "q2": ["d2", "d5", "d1"]})
    command = "rerank old.run --docs docs.tsv --out new.run --method detconstsort --groups age.csv"
    done = askew(command)
    assert done.code == 0, done.err
    lines = [line.split() for line in Path("new.run").read_text(encoding="utf-8").splitlines()]
    assert [line[2] for line in lines if line[0] == "q2"] == ["d2", "d1", "d5"]
    assert askew(f"{command} --targets neutral:0,old:1,young:0").code == 0
    wrong = askew(f"{command} --targets neutral:0,male:1,female:0")
    wrong.refused(2, "expected shares of neutral, old, young that add up to 1")
    nothing_of_gender(done.out, done.err, Path("new.run").read_text(encoding="utf-8"), wrong.err.partition("found")[0])


def test_three_groups_share_the_first_places(askew, files):
    files.text("three.csv", "child,child\nteen,teen\nelderly,old\n")
    files.docs("docs.tsv", {"c1": "child", "c2": "child", "t1": "teen", "o1": "elderly", "b1": "teen elderly"})
    files.run("old.run", {"q1": ["c1", "c2", "t1", "o1", "b1"]})
    done = askew("rerank old.run --docs docs.tsv --out new.run --method detconstsort --lexicon three.csv")
    assert done.code == 0, done.err
    ranked = [line.split()[2] for line in Path("new.run").read_text(encoding="utf-8").splitlines()]
    assert set(ranked[:4]) >= {"c1", "t1", "o1"} and ranked[0] == "c1"
    files.text("qrels.txt", "q1 0 b1 1\n")
    sampled = askew(f"negatives {ARGUMENTS} --out made.jsonl --lexicon three.csv --count 3 --json").json
    assert (sampled["negatives"], sampled["leaning"]) == (3, 2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory, bert_tokenizer):
    """A BERT of one small layer without a head."""
    torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
    pytest.importorskip("accelerate", reason="the extra 'train' is not installed")
    from transformers import BertConfig, BertModel

    texts = [*ASKED, *(text for some in LABELS.values() for text in some)]
    words = sorted({word.lower() for text in texts for word in re.findall(r"\w+", text)})
    tokenizer = bert_tokenizer(words, room=32)
    torch.manual_seed(7)
    folder = tmp_path_factory.mktemp("encoder")
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=32,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def labeled(files, names):
    lines = [(names[label], frame.format(who)) for label, some in LABELS.items() for who in some for frame in ASKED]
    text = "".join(f"{at},{asked},{label}\n" for at, (label, asked) in enumerate(lines))
    return files.text("labels.csv", text)


def train(askew, tiny, more):
    quick = f"--folds 2 --device cpu --set model={tiny} --set epochs=1 --set save_every=0"
    done = askew(f"train classifier labels.csv --out model {quick} {more}")
    assert done.code == 0, done.err
    names = ("README.md", "measured.json", "config.json", "tokenizer.json", "calibration.json")
    return done, [(Path("model") / name).read_text(encoding="utf-8") for name in names]


def test_a_classifier_of_age_is_trained_with_words_of_age(askew, files, tiny):
    labeled(files, {"old": "o", "young": "y", "neutral": "n"})
    done, written = train(askew, tiny, "--groups age.csv")
    nothing_of_gender(done.out, done.err, *written)
    facts = json.loads(written[1])
    assert list(facts["measured"]["cross_validation"]["f1"]) == ["neutral", "old", "young"]
    assert list(facts["data"][1].values()) == [4]
    assert facts["settings"]["groups"].startswith("age@")
    asked = askew("classify queries.tsv --classifier transformer --set model=model --groups age.csv --json")
    assert asked.code == 0, asked.err
    nothing_of_gender(asked.out, asked.err)


def test_without_groups_the_classes_are_the_labels_of_the_data(askew, files, tiny):
    labeled(files, {"old": "senior", "young": "junior", "neutral": "none"})
    done, written = train(askew, tiny, "--json")
    nothing_of_gender(done.out, done.err, *written)
    facts = json.loads(written[1])
    assert list(facts["measured"]["cross_validation"]["f1"]) == ["junior", "none", "senior"]
    assert list(facts["data"][1].values()) == [0] and facts["settings"]["groups"] is None
