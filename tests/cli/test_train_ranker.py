"""``askew negatives``, ``askew rerank``, and training a ranker or a selector from the command line."""

import json
import math
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from askew.core.errors import ConfigError, DataError, StoreError, UnknownName
from askew.search.rerank import rerank
from askew.ui.cli.train import ranker_command, selector_command

ARGUMENTS = "old.run --docs docs.tsv --queries queries.tsv --qrels qrels.txt"


@pytest.fixture(autouse=True)
def world(files):
    """Beside the usual files: the texts of the queries."""
    files.text("queries.tsv", "q1\twho is she\nq2\twho is he\n")
    return files


def lines(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def ranking(path):
    """The documents of each query of a TREC run."""
    found = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        query, _, doc, *_ = line.split()
        found.setdefault(query, []).append(doc)
    return found


# negatives


def test_negatives_are_written_with_what_they_lean(askew):
    # Of q1 d1 and d3 are left (d2 is relevant, d3 judged); only d1 leans, by ln 3. Of q2 d4 leans nowhere, nor does d3.
    done = askew(f"negatives {ARGUMENTS} --out made.jsonl --exclude relevant --json").json
    assert (done["queries"], done["negatives"], done["leaning"]) == (2, 4, 1)
    made = lines("made.jsonl")
    assert [line["label"] for line in made] == [1, 0, 0, 1, 0, 0]
    assert {line["passage"] for line in made if line["query"] == "who is she" and not line["label"]} == {
        "He is a man.", "The weather is fine.",
    }  # fmt: skip


def test_judged_documents_are_no_negatives_unless_asked_for(askew):
    askew(f"negatives {ARGUMENTS} --out made.jsonl --layout tevatron")
    first, second = lines("made.jsonl")
    assert [one["docid"] for one in first["negative_passages"]] == ["d1"]
    assert {one["docid"] for one in second["negative_passages"]} == {"d3", "d4"}


def test_queries_left_out_are_told_by_reason(askew, files):
    files.text("queries.tsv", "q1\twho is she\n")
    done = askew(f"negatives {ARGUMENTS} --out made.jsonl")
    assert done.noted("1 queries: no text") and done.out.startswith("1 queries")


def test_the_negatives_of_queries_that_are_left_out_are_not_counted(askew, files):
    files.text("queries.tsv", "q1\twho is she\n")
    done = askew(f"negatives {ARGUMENTS} --out made.jsonl --json").json
    made = [line for line in lines("made.jsonl") if not line["label"]]
    assert (done["queries"], done["negatives"]) == (1, len(made)) == (1, 1)
    assert done["lean"][0] == pytest.approx(math.log(3))


def test_a_run_whose_documents_have_no_text_is_refused(askew, files):
    files.docs("docs.tsv", {"d1": "he", "d2": "she"})
    done = askew(f"negatives {ARGUMENTS} --out made.jsonl")
    done.refused(3, "have no text in the given documents", "'d3'")
    assert not Path("made.jsonl").exists()


def test_queries_without_a_relevant_document_make_no_examples(askew, files):
    files.text("qrels.txt", "q1 0 d2 0\n")
    askew(f"negatives {ARGUMENTS} --out made.jsonl").refused(3, "found none", "no relevant document judged")


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ("--preset best", "bigdeli2022"),
        ("--layout csv", "tevatron"),
        ("--lean most", "neutrality"),
        ("--share 2", "share"),
    ],
)
def test_a_wrong_option_is_told_with_what_is_known(askew, more, word):
    askew(f"negatives {ARGUMENTS} --out made.jsonl {more}").refused(2, word)


# rerank


def test_groups_take_turns_by_their_shares(askew, files):
    files.docs("docs.tsv", {f"m{i}": "he" for i in range(3)} | {f"f{i}": "she" for i in range(3)})
    files.run("old.run", {"q1": ["m0", "m1", "m2", "f0", "f1", "f2"]})
    done = askew("rerank old.run --docs docs.tsv --out new.run --method detconstsort")
    assert done.code == 0, done.err
    assert ranking("new.run") == {"q1": ["m0", "f0", "m1", "f1", "m2", "f2"]}
    assert done.out.endswith(": 1\n")


def test_the_shares_may_be_given_and_only_the_first_are_written(askew, files):
    files.docs("docs.tsv", {"m0": "he", "m1": "he", "f0": "she", "n0": "it"})
    files.run("old.run", {"q1": ["m0", "m1", "f0", "n0"]})
    shares = "neutral:0,male:0,female:1"
    askew(f"rerank old.run --docs docs.tsv --out new.run --method detconstsort --targets {shares} -k 2")
    assert ranking("new.run") == {"q1": ["f0", "m0"]}
    askew("rerank old.run --docs docs.tsv --out new.run --method detconstsort --targets half").refused(2, "targets")


def test_reranking_needs_a_model_and_the_texts_of_the_queries(askew):
    askew("rerank old.run --docs docs.tsv --out new.run").refused(2, "rerank: a cross-encoder needs both")
    with pytest.raises(ConfigError, match="model= and queries="):
        rerank(Path("old.run"), Path("docs.tsv"), Path("new.run"))
    askew("rerank old.run --docs docs.tsv --out new.run --method best").refused(2, "detconstsort")
    askew("rerank old.run --docs docs.tsv --out new.run -k 0 --method detconstsort").refused(2, "1 or more")


def test_a_run_without_texts_is_refused_before_a_model_is_loaded(askew, files):
    files.text("queries.tsv", "q1\twho is she\n")
    command = "rerank old.run --docs docs.tsv --queries queries.tsv --model nowhere --out new.run"
    askew(command).refused(3, "1 of 2 queries have no text", "'q2'")
    files.text("queries.tsv", "q1\twho is she\nq2\twho is he\n")
    files.docs("docs.tsv", {"d1": "he"})
    askew(command).refused(3, "ranked documents have no text")


# Training


train = typer.Typer()
train.command("ranker")(ranker_command)
train.command("selector")(selector_command)


def trained(command):
    """Run a command of ``askew train``; a mistake is raised as it is."""
    done = CliRunner().invoke(train, shlex.split(command))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A BERT of one small layer."""
    torch = pytest.importorskip("torch", reason="the extra 'train' is not installed")
    pytest.importorskip("accelerate", reason="the extra 'train' is not installed")
    from transformers import BertConfig, BertModel, BertTokenizerFast

    known = ["who", "is", "he", "she", "a", "man", "woman", "the", "weather", "fine", "and", "met"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *known]
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=64).save_pretrained(folder)
    return folder


QUICK = "--device cpu --set batch_size=2 --set most_tokens=32 --set most_left_tokens=8 --set epochs=2"


def test_a_ranker_is_trained_and_reranks(askew, tiny):
    command = f"ranker {ARGUMENTS} --out model --model {tiny} --part '' {QUICK}"
    first, again = trained(command), trained(command)
    assert " 5 pairs of 2 queries: model" in first and "already trained" not in first and "already trained" in again
    card = Path("model/README.md").read_text(encoding="utf-8")
    assert (
        "Each query has 20 negatives" in card and "Up to 12 of them" in card and Path("model/measured.json").is_file()
    )
    with pytest.raises(StoreError, match="another training"):
        trained(f"{command} --set epochs=3")
    done = askew("rerank old.run --docs docs.tsv --queries queries.tsv --model model --out new.run --device cpu")
    assert done.code == 0, done.err
    found = ranking("new.run")
    assert {query: sorted(docs) for query, docs in found.items()} == {
        "q1": ["d1", "d2", "d3"],
        "q2": ["d1", "d3", "d4"],
    }
    from sentence_transformers import CrossEncoder

    texts = {"d1": "He is a man.", "d2": "She is a woman.", "d3": "The weather is fine."}
    scores = CrossEncoder("model", device="cpu").predict([("who is she", text) for text in texts.values()])
    expected = [doc for _, doc in sorted(zip(scores, texts, strict=True), reverse=True)]
    assert found["q1"] == expected


def test_a_ranker_in_json_counts_what_was_left_out(tiny, files):
    files.text("queries.tsv", "q1\twho is she\n")
    told = json.loads(trained(f"ranker {ARGUMENTS} --out model --model {tiny} --part '' {QUICK} --json"))
    assert told["queries"] == 1 and told["new"]
    assert [count for reason, count in told["counts"].items() if "no text" in reason] == [1]


def test_queries_that_gave_no_pair_are_not_among_those_trained_on(tiny, files):
    files.text("qrels.txt", "q1 0 d2 1\nq2 0 d1 0\n")
    told = json.loads(trained(f"ranker {ARGUMENTS} --out model --model {tiny} --part '' {QUICK} --json"))
    assert told["queries"] == 1 and told["counts"]["no relevant document"] == 1


WORDS = ["who is she", "who is he", "the weather", "a man", "a woman", "he met", "she met", "is fine"]


@pytest.fixture
def same_words(files):
    """Two ids for each question, told apart by a mark of punctuation only."""
    asked = {f"q{mark}{i}": f"{text}{mark}" for i, text in enumerate(WORDS) for mark in ("", "?")}
    files.text("queries.tsv", "".join(f"{name}\t{text}\n" for name, text in asked.items()))
    files.run("old.run", {name: ["d1", "d2", "d3"] for name in asked})
    files.text("qrels.txt", "".join(f"{name} 0 d2 1\n" for name in asked))
    return asked


def test_the_same_question_is_never_trained_on_and_held_out(tiny, same_words):
    command = f"ranker {ARGUMENTS} --out model --model {tiny} {QUICK}"
    told = trained(command)
    held = {line["query_id"]: line["text"] for line in lines("model/held-out.jsonl")}
    assert 0 < len(held) < len(same_words) and held.items() <= same_words.items()
    asked = {text.rstrip("?") for text in held.values()}
    assert len(held) == 2 * len(asked)
    assert f" {3 * (len(same_words) - len(held))} pairs of {len(same_words) - len(held)} queries" in told
    assert f"\n{len(held)} queries " in told and "held out" in told
    assert "--model model \\\n    --queries model/held-out.jsonl" in told


def test_a_ranker_of_all_queries_holds_none_out(tiny):
    assert "held-out" not in trained(f"ranker {ARGUMENTS} --out model --model {tiny} --part '' {QUICK}")
    assert not Path("model/held-out.jsonl").exists()


def test_texts_longer_than_the_model_can_read_are_told(tiny, files):
    files.docs("docs.tsv", {f"d{i}": "he and she met " * 40 for i in range(1, 6)})
    with pytest.raises(ConfigError, match="reads at most 64 tokens"):
        trained(f"ranker {ARGUMENTS} --out model --model {tiny} --part '' --device cpu")


def test_other_weights_in_the_same_folder_are_another_training(tiny):
    import shutil

    import torch
    from transformers import BertModel

    from askew.models.find import identify

    shutil.copytree(tiny, "base")
    command = f"ranker {ARGUMENTS} --out model --model base --part '' {QUICK}"
    trained(command)
    torch.manual_seed(5)
    BertModel(BertModel.from_pretrained("base").config).save_pretrained("base")
    identify.cache_clear()  # another command is another process
    with pytest.raises(StoreError, match="another training"):
        trained(command)


def test_a_ranker_without_queries_of_its_part_or_negatives_is_refused(tiny, files):
    with pytest.raises(DataError, match="no query in the part 'nowhere' of the split has a text"):
        trained(f"ranker {ARGUMENTS} --out model --model {tiny} --part nowhere {QUICK}")
    files.run("old.run", {"q1": ["d2"], "q2": ["d1"]})
    with pytest.raises(DataError, match=r"found none .*no negatives"):
        trained(f"ranker {ARGUMENTS} --out model --model {tiny} --part '' {QUICK}")


def test_a_setting_nobody_has_is_told(tiny):
    with pytest.raises(UnknownName, match="did you mean 'epochs'"):
        trained(f"ranker {ARGUMENTS} --out model --model {tiny} --set epoch=1")
    with pytest.raises(ConfigError, match="epochs to be a float"):
        trained(f"ranker {ARGUMENTS} --out model --model {tiny} --set epochs=many")
    with pytest.raises(ConfigError, match="expected one of bce"):
        trained(f"ranker {ARGUMENTS} --out model --model {tiny} --loss best")


def test_a_selector_is_trained_from_the_store_of_a_build(askew, tiny):
    import torch

    assert askew("run refairmulate-paper --store store").code == 0
    torch.set_num_threads(1)  # compiled loops have just asked for all cores; a tiny model is faster with one
    command = f"selector store --out model --model {tiny} --set text_tokens=12 --set batch_size=16"
    told = trained(f"{command} --set most_each=1")
    for word in ("original", "cross-encoder", "least leaning", "oracle", "precision"):
        assert word in told
    # Lean is without its sign there, and a distance is called one.
    assert "|ARaB(tf)@10|" in told and "RR@10" in told and "|RR@10|" not in told
    assert max(map(len, told.splitlines())) <= 80
    assert "askew bench" in told and "--method reformulate:METHOD:model \\\n    --queries model/held-out.jsonl" in told
    held = lines("model/held-out.jsonl")
    assert next(line.split()[1] for line in told.splitlines() if line.startswith(" oracle")) == str(len(held))
    facts = json.loads(trained(f"{command} --set most_each=1 --json"))
    assert not facts["new"] and facts["choices"]["original"]["changed"] == 0


def test_a_selector_needs_a_build(tiny):
    with pytest.raises(DataError, match="askew run RECIPE"):
        trained(f"selector . --out model --model {tiny}")
    with pytest.raises(UnknownName, match="refairmulate2025-code"):
        trained("selector . --out model --preset refairmulate")
    with pytest.raises(ConfigError, match="learns: expected one of"):
        trained("selector . --out model --learns everything")
