"""What the programs that train the shipped adapters may read, and how preferences are found."""

import json
import random
import subprocess
import sys

import pytest
from toy_training import KINDS, TOOLS, label_row, rewrites_row

pytest.importorskip("torch", reason="the extra 'neural' is not installed")

import train_queries
from training import data
from training.preferences import Sample, limit, make_pairs

TEXTS = ["a b", "c d", "e f", "g h", "i j"]


def of(rewrites, labels=()):
    return data.Reformulations(list(rewrites), list(labels))


def test_rows_of_ms_marco_and_queries_of_dev_and_test_are_not_trained_on():
    rewrites = [
        rewrites_row("one", TEXTS, "boolq"), rewrites_row("two", TEXTS, "msmarco"),
        rewrites_row("three", TEXTS, "squad", "dev"), rewrites_row("four", TEXTS, "web", "test"),
        rewrites_row("Three ", TEXTS, "web"),  # the text of a dev query, whatever its own part says
        rewrites_row("five", TEXTS, "web"),
    ]  # fmt: skip
    labels = [
        label_row("one", "x", "same"), label_row("two", "x", "same", collection="msmarco"),
        label_row("four", "x", "same", collection="web"), label_row("six", "x", "same", split="test"),
    ]  # fmt: skip
    found = of(rewrites, labels)
    assert [row["query"] for row in found.training_rewrites()] == ["one", "five"]
    assert [row["query"] for row in found.training_labels()] == ["one"]
    assert found.training_queries(["seven", "Six", "FOUR", "five", "seven", " "]) == ["five", "seven"]


def test_rows_are_counted_with_the_license_of_their_collection():
    rows = [rewrites_row(str(i), TEXTS, name) for i, name in enumerate(("boolq", "squad", "boolq"))]
    assert data.rows_by_collection(rows) == {
        "boolq": {"rows": 2, "license": "CC-BY-SA-3.0"}, "squad": {"rows": 1, "license": "CC-BY-SA-4.0"},
    }  # fmt: skip


def test_given_files_come_before_our_own(tmp_path, made):
    file = tmp_path / "more.jsonl"
    file.write_text(json.dumps(rewrites_row("zzz", TEXTS)) + "\n", encoding="utf-8")
    found = data.read_reformulations(made, [file], [])
    assert [row["query"] for row in found.rewrites][:2] == ["zzz", "red car"]
    assert len(found.labels) == 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("{}\nno json\n", "line 1: expected a JSON object with collection, query, rewrites, split"),
        ('{"collection": "web", "query": "x", "rewrites": [], "split": "dev"}\n7\n', "line 2: expected a JSON object"),
    ],
)
def test_a_file_that_cannot_be_used_is_answered_in_one_line(tmp_path, made, text, said):
    if text is None:
        (made / "queries.jsonl").unlink()
    else:
        (made / "queries.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match=said) as caught:
        data.read_reformulations(made, [], [])
    assert "\n" not in str(caught.value)


def test_each_of_our_own_queries_is_of_an_open_collection_and_has_a_rewrite_of_each_kind():
    found = data.read_reformulations(data.MADE, [], [])
    assert {row["collection"] for row in found.rewrites} <= set(data.OPEN)
    assert {tuple(sorted(one["kind"] for one in row["rewrites"])) for row in found.rewrites} == {tuple(sorted(KINDS))}
    assert len({(row["collection"], row["id"]) for row in found.rewrites}) == len(found.rewrites)
    trained = [row for row in found.rewrites if row["split"] == "train"]
    assert found.training_rewrites() == trained  # none is held out elsewhere


@pytest.mark.parametrize(
    ("kind", "text", "highest"),
    [
        ("paraphrase", "when did the war of 1812 begin", 1.0),
        ("paraphrase", "1812 war start of the when", 0.15),  # the same words
        ("paraphrase", "", 0.1),
        ("paraphrase", "when did the war begin", 0.1),  # a number is lost
        ("paraphrase", "when in 1811 did the war of 1812 begin", 0.5),  # a number is added
        ("paraphrase", "war war war of 1812", 0.2),
        ("paraphrase", "1812", 0.3),
        ("keywords", "1812", 1.0),
        ("keywords", "when war 1812 began", 0.4),
        ("keywords", "war 1812 begin date month year day hour", 0.4),
    ],
)
def test_a_text_with_a_fault_has_a_low_reward_at_most(kind, text, highest):
    assert limit("when the start of war 1812", kind, text) == highest


def samples_of(*texts, kind="paraphrase", query=0):
    return [Sample(query, kind, text, likely) for text, likely in texts]


def test_pairs_keep_the_least_reward_and_the_least_margin():
    settings = train_queries.Settings(least_reward=0.65, least_margin=0.3)
    samples = samples_of(("good", -1.0), ("fair", -1.0), ("near", -1.0), ("poor", -1.0))
    rewards = [0.9, 0.8, 0.65, 0.55]
    found = make_pairs(samples, rewards, ["q"], settings, random.Random(0))
    # 0.8 - 0.55 is too little; of 0.9 only 0.55 is far enough.
    assert [(one.chosen, one.rejected) for one in found] == [("good", "poor")]
    assert make_pairs(samples, [0.64, 0.3, 0.2, 0.1], ["q"], settings, random.Random(0)) == []
    assert make_pairs(samples, [0.9, 0.9, 0.9, 0.9], ["q"], settings, random.Random(0)) == []


def test_at_most_two_texts_are_chosen_for_a_query_and_kind_and_texts_of_others_are_not_mixed_in():
    settings = train_queries.Settings()
    samples = samples_of(("a", -1.0), ("b", -1.0), ("c", -1.0), ("A", -1.0), ("bad", -1.0), ("", -1.0))
    samples += samples_of(("other", -1.0), kind="keywords") + samples_of(("third", -1.0), query=1)
    rewards = [0.8, 0.9, 0.95, 0.0, 0.1, 0.0, 0.05, 0.02]
    found = make_pairs(samples, rewards, ["q", "r"], settings, random.Random(3))
    assert {(one.query, one.kind, one.chosen, one.rejected) for one in found} == {
        ("q", "paraphrase", "c", "bad"), ("q", "paraphrase", "b", "bad"),
    }  # fmt: skip
    few = train_queries.Settings(most_pairs=1)
    assert len(make_pairs(samples, rewards, ["q", "r"], few, random.Random(3))) == 1


def test_drawn_texts_are_any_of_those_with_the_least_reward():
    settings = train_queries.Settings(draw_chosen=1, chosen_per_kind=1, least_reward=0.7, least_margin=0.3)
    samples = samples_of(("a", -1.0), ("b", -1.0), ("c", -1.0), ("fair", -1.0), ("bad", -1.0))
    rewards = [0.95, 0.8, 0.7, 0.69, 0.1]
    found = [make_pairs(samples, rewards, ["q"], settings, random.Random(seed))[0] for seed in range(30)]
    assert {one.chosen for one in found} == {"a", "b", "c"} and {one.rejected for one in found} <= {"bad"}


def test_half_of_the_rejected_texts_are_the_most_probable_ones():
    settings = train_queries.Settings(chosen_per_kind=1)
    samples, rewards = [], []
    for query in range(200):
        samples += samples_of(("good", -1.0), *((f"w{i}", -2.0 - i) for i in range(10)), query=query)
        rewards += [0.9] + [0.1] * 10
    found = make_pairs(samples, rewards, ["q"] * 200, settings, random.Random(1))
    likeliest = sum(one.rejected == "w0" for one in found)
    assert len(found) == 200 and 90 < likeliest < 130  # a half, and a tenth of the other half


def test_the_programs_need_no_libraries_but_those_of_a_gpu_machine():
    absent = ("polars", "pyarrow", "numba", "peft", "gguf", "typer", "rich", "sentence_transformers", "ir_measures")
    program = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r}); sys.modules.update(dict.fromkeys({absent!r}))\n"
        "import train_query_groups, train_queries\n"
        "print(len(train_query_groups.log_counts(['her brother'])))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


def test_what_is_noted_of_a_training_does_not_change_the_name_of_the_weights(tmp_path):
    from askew.models.find import identify

    names = []
    for seed in (1, 2):
        folder = tmp_path / str(seed) / "adapter"
        folder.mkdir(parents=True)
        (folder / "adapter.safetensors").write_bytes(b"weights")
        data.write_training(folder, {"seed": seed}, "cpu")
        names.append(identify(str(folder)))
    assert names[0] == names[1]
