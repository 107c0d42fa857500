"""Shards: however documents are divided, merged they are the index of all of them, byte for byte."""

import itertools
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError, StoreError
from askew.data.documents import read_documents
from askew.search.bm25 import build
from askew.search.bm25 import build as shards
from askew.search.bm25.analyze import Analyzer
from askew.search.bm25.build import build_index, merge_shards
from askew.search.bm25.index import Index
from askew.search.bm25.ranker import Bm25Ranker
from askew.search.disk import StoredTexts, keeping_texts

MSMARCO = Path(__file__).resolve().parents[3] / "shared" / "data" / "msmarco_dl1920"
WORDS = [*(f"w{i}" for i in range(12)), "naïve", "Ωmega", "日本", "don't", "the"]
documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=40)


def table(texts, first=0):
    ids = pa.array([f"d{first + i}" for i in range(len(texts))], pa.string())
    return pa.table({"doc_id": ids, "text": pa.array(texts, pa.large_string())})


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def divide(texts, cuts):
    edges = [0, *sorted(cut % (len(texts) + 1) for cut in cuts), len(texts)]
    return [table(texts[a:b], a) for a, b in itertools.pairwise(edges)]


def make_shards(folder, tables, analyzer="english", texts=False):
    made = []
    for number, one in enumerate(tables):
        made.append(folder / f"shard{number}")
        made[-1].mkdir()
        batches = keeping_texts([one], made[-1]) if texts else [one]
        build_index(batches, made[-1], Analyzer(analyzer), threads=1)
    return made


@settings(max_examples=60)
@given(documents, st.lists(st.integers(0, 1000), max_size=5), st.booleans())
def test_any_division_into_shards_gives_the_bytes_of_one_index(tmp_path_factory, texts, cuts, keep):
    folder = tmp_path_factory.mktemp("shards")
    (whole,) = make_shards(folder, [table(texts)], texts=keep)
    one = files(whole)
    (folder / "apart").mkdir()
    merge_shards(make_shards(folder / "apart", divide(texts, cuts), texts=keep), folder / "merged")
    assert files(folder / "merged") == one


@settings(max_examples=30)
@given(documents, st.integers(1, 60), st.integers(1, 5))
def test_parts_written_while_building_give_the_bytes_of_one_index(tmp_path_factory, texts, most, rows):
    folder = tmp_path_factory.mktemp("parts")
    build_index([table(texts)], folder / "whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_MOST_TOKENS", most)
        patch.setattr(build, "_ROWS", rows)
        patch.setattr(shards, "_PIECE", most)
        build_index([table(texts)], folder / "parts", threads=3)
    assert files(folder / "parts") == files(folder / "whole")
    assert not [path for path in (folder / "parts").iterdir() if path.is_dir()]


def test_counts_above_255_are_merged(tmp_path):
    texts = ["cat " * 300, "dog cat", "dog " * 400 + "cat " * 256, "ant " * 1000]
    build_index([table(texts)], tmp_path / "whole")
    merge_shards(make_shards(tmp_path, divide(texts, [1, 2, 3])), tmp_path / "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")
    assert sorted(Index(tmp_path / "merged").term_frequencies().tolist())[-4:] == [256, 300, 400, 1000]


def test_merged_texts_are_read_by_ordinal(tmp_path):
    texts = [f"text {i} ä" for i in range(7)]
    merge_shards(make_shards(tmp_path, divide(texts, [2, 2, 5]), texts=True), tmp_path / "merged")
    kept = StoredTexts(tmp_path / "merged")
    assert [kept[i] for i in range(7)] == texts


def test_merged_shards_of_merged_shards_are_the_same_index(tmp_path):
    texts = [f"w{i % 5} w{i}" for i in range(30)]
    parts = make_shards(tmp_path, divide(texts, [7, 19]))
    merge_shards(parts, tmp_path / "at once")
    merge_shards(parts[:2], tmp_path / "first")
    merge_shards([tmp_path / "first", parts[2]], tmp_path / "in turn")
    assert files(tmp_path / "in turn") == files(tmp_path / "at once")


@pytest.mark.skipif(not MSMARCO.exists(), reason="the real data is not there: expected ../shared/data/msmarco_dl1920")
def test_shards_of_real_passages_give_the_bytes_and_lists_of_one_index(tmp_path):
    passages = pa.concat_tables(read_documents(MSMARCO / "docs.tsv"))
    build_index([passages], tmp_path / "whole")
    edges = [0, 1000, 1001, 20_000, len(passages)]
    tables = [passages.slice(a, b - a) for a, b in itertools.pairwise(edges)]
    merge_shards(make_shards(tmp_path, tables), tmp_path / "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")
    queries = [line.split("\t")[1] for line in (MSMARCO / "queries.dl19.tsv").read_text().splitlines()]
    one, other = (Bm25Ranker(tmp_path / name).search(queries, 100) for name in ("whole", "merged"))
    assert one.docs.tolist() == other.docs.tolist()
    assert one.scores.tolist() == other.scores.tolist()


def test_a_document_id_in_two_shards_is_refused_and_nothing_is_left(tmp_path):
    parts = make_shards(tmp_path, [table(["a1", "b1"]), table(["c1"], first=1)])
    with pytest.raises(DataError) as caught:
        merge_shards(parts, tmp_path / "merged")
    assert caught.value.code == "repeated-id" and caught.value.values == {"id": "d1"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shard0", "shard1"]


def test_a_merge_does_not_go_where_something_is(tmp_path):
    parts = make_shards(tmp_path, [table(["a1"])])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("kept")
    with pytest.raises(ConfigError) as caught:
        merge_shards(parts, tmp_path / "full")
    assert caught.value.code == "not-empty"
    assert (tmp_path / "full" / "letter").read_text() == "kept"


@pytest.mark.parametrize("name", [*shards.ARRAYS, *shards.STRINGS, "header.json"])
def test_a_flipped_bit_in_a_shard_is_refused(tmp_path, name):
    parts = make_shards(tmp_path, divide(["cat " * 300, "dog", "cat dog"], [1]))
    path = parts[0] / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        merge_shards(parts, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("dies_at", ["terms.arrow", "docs.i32", "forward_tf.i32", "header.json"])
def test_a_killed_merge_leaves_no_index_and_can_be_done_again(tmp_path, dies_at):
    texts = [f"w{i % 5} w{i}" for i in range(30)]
    parts = make_shards(tmp_path, divide(texts, [11]))
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "def watch(event, args):\n"
        f"    if event == 'open' and str(args[0]).endswith({dies_at!r}) and 'merged' in str(args[0]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "from askew.search.bm25.build import merge_shards\n"
        "sys.addaudithook(watch)\n"
        "merge_shards(sys.argv[2:], Path(sys.argv[1]))\n"
    )
    out = tmp_path / "merged"
    done = subprocess.run([sys.executable, "-c", program, out, *parts], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not out.exists()
    merge_shards(parts, out)
    build_index([table(texts)], tmp_path / "whole")
    assert files(out) == files(tmp_path / "whole")
