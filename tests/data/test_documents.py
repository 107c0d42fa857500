"""Streaming documents: TSV, JSON Lines, Parquet, folders; blocks never lose or split a line."""

import gzip
import json

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.core.files import decode_block
from askew.core.tables import DOCUMENTS
from askew.data.collection import demo_files
from askew.data.documents import documents_at, read_documents
from askew.data.files import line_blocks, suffix_of
from askew.data.judgements import read_judgements
from askew.data.queries import read_queries
from askew.data.runs import read_run

TSV = "d1\tshe said so\nd2\the, too\n"
ROWS = [("d1", "she said so"), ("d2", "he, too")]
IDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\r\n"), max_size=30)
LAW = settings(max_examples=60, deadline=None, database=None)


def write(folder, content, name="a.tsv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows(path, **options):
    tables = list(read_documents(path, **options))
    assert all(table.schema == DOCUMENTS for table in tables)
    return [(row["doc_id"], row["text"]) for table in tables for row in table.to_pylist()]


def read(folder, content, name="a.tsv", **options):
    return rows(write(folder, content, name), **options)


def json_lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


def parquet(folder, columns, name="a.parquet"):
    path = folder / name
    pl.DataFrame(columns).write_parquet(path)
    return path


# --- blocks of lines ------------------------------------------------------------------------------


@LAW
@given(
    lines=st.lists(st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")), max_size=12),
    last=st.binary(max_size=6).map(lambda b: b.replace(b"\n", b"")),
    size=st.integers(1, 9),
    packed=st.booleans(),
)
def test_blocks_of_any_size_never_lose_or_split_a_line(tmp_path_factory, lines, last, size, packed):
    content = b"x" + b"\n".join([*lines, last])
    path = write(tmp_path_factory.getbasetemp(), gzip.compress(content) if packed else content, "law.bin")
    found = list(line_blocks(path, size))
    assert b"".join(block for _, block in found) == content
    assert all(block.endswith(b"\n") for _, block in found[:-1])


@LAW
@given(content=st.text("ab\n", max_size=40), size=st.integers(1, 9))
def test_each_block_has_the_number_of_its_first_line(tmp_path_factory, content, size):
    path = write(tmp_path_factory.getbasetemp(), content, "law.txt")
    number = 1
    for first_line, block in line_blocks(path, size):
        assert first_line == number
        number += block.count(b"\n")


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_a_byte_order_mark_is_removed_whatever_the_size_of_the_blocks(tmp_path, size):
    path = write(tmp_path, b"\xef\xbb\xbfd1\ttext\n")
    assert b"".join(block for _, block in line_blocks(path, size)) == b"d1\ttext\n"


def test_a_byte_order_mark_after_the_start_belongs_to_the_text(tmp_path):
    path = write(tmp_path, "d1\ta\nd2\t\ufeffb\n")
    assert b"".join(block for _, block in line_blocks(path, 5)) == "d1\ta\nd2\t\ufeffb\n".encode()


def test_an_empty_file_has_no_blocks(tmp_path):
    assert list(line_blocks(write(tmp_path, ""))) == []


def test_a_line_longer_than_many_blocks_stays_whole(tmp_path):
    path = write(tmp_path, "x" * 1000 + "\ny\n")
    assert list(line_blocks(path, 7)) == [(1, b"x" * 1000 + b"\n"), (2, b"y\n")]


def test_a_block_that_is_not_utf_8_names_its_own_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:12: expected UTF-8.*the byte 0xff"):
        decode_block(tmp_path / "a.tsv", 10, b"a\nb\n\xff\n")


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("a.TSV", ".tsv"), ("a.tsv.gz", ".tsv"), ("a.b.jsonl", ".jsonl"), ("a", ""), ("a.gz", ""), ("tsv", "")],
)
def test_the_ending_says_the_format_with_gz_put_aside(tmp_path, name, suffix):
    assert suffix_of(tmp_path / name) == suffix


def test_documents_larger_than_a_block_are_read_whole_in_several_batches(tmp_path):
    count, text = 18_000, "she said " * 110
    path = write(tmp_path, "".join(f"d{number}\t{text}\n" for number in range(count)))
    tables = list(read_documents(path))
    assert len(tables) > 1
    ids = pa.chunked_array([chunk for table in tables for chunk in table["doc_id"].chunks])
    assert ids.to_pylist() == [f"d{number}" for number in range(count)]
    assert all(table["text"].unique().to_pylist() == [text] for table in tables)


def test_a_wrong_line_far_behind_the_first_block_is_named_by_its_number(tmp_path):
    count = 18_000
    path = write(tmp_path, f"d\t{'she said ' * 110}\n" * count + "no tab\n")
    with pytest.raises(DataError, match=rf"a\.tsv:{count + 1}: expected 2 columns"):
        list(read_documents(path))


# --- TSV ------------------------------------------------------------------------------------------


def test_documents_are_read_in_order(tmp_path):
    assert read(tmp_path, TSV) == ROWS


@pytest.mark.parametrize("name", ["a.txt", "a", "collection.dat", "a.TSV"])
def test_other_endings_are_read_as_tsv(tmp_path, name):
    assert read(tmp_path, TSV, name) == ROWS


def test_a_last_line_without_a_line_end_is_read(tmp_path):
    assert read(tmp_path, TSV.removesuffix("\n")) == ROWS


def test_windows_line_ends_are_not_part_of_the_text(tmp_path):
    assert read(tmp_path, TSV.replace("\n", "\r\n")) == ROWS


def test_a_carriage_return_inside_a_text_stays(tmp_path):
    assert read(tmp_path, "d\ta\rb\n") == [("d", "a\rb")]


def test_only_the_line_end_is_cut_off_a_text_that_ends_in_a_carriage_return(tmp_path):
    assert read(tmp_path, "d1\ta\r\r\nd2\tb\r\n") == [("d1", "a\r"), ("d2", "b")]


def test_a_no_break_space_is_part_of_an_id(tmp_path):
    assert read(tmp_path, "d\u00a0\ttext\n") == [("d\u00a0", "text")]


def test_a_byte_order_mark_is_not_part_of_the_first_id(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbf" + TSV.encode()) == ROWS


def test_blank_lines_are_skipped(tmp_path):
    assert read(tmp_path, "\n  \n" + TSV.replace("\n", "\n\n")) == ROWS


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv"])
def test_gzip_is_known_by_its_content(tmp_path, name):
    assert read(tmp_path, gzip.compress(TSV.encode()), name) == ROWS


def test_plain_text_with_the_ending_of_gzip_is_read_as_plain_text(tmp_path):
    assert read(tmp_path, TSV, "a.tsv.gz") == ROWS


def test_a_document_may_have_an_empty_text(tmp_path):
    assert read(tmp_path, "d1\t\nd2\ttext\nd3\t\n") == [("d1", ""), ("d2", "text"), ("d3", "")]


def test_blanks_around_an_id_do_not_count_and_those_of_the_text_stay(tmp_path):
    assert read(tmp_path, " d1 \t a  b \n") == [("d1", " a  b ")]


def test_quotes_and_unicode_line_separators_are_ordinary_characters(tmp_path):
    assert read(tmp_path, 'd1\t"a\u2028b\x85c\nd2\td"\n') == [("d1", '"a\u2028b\x85c'), ("d2", 'd"')]


def test_unicode_ids_and_ids_of_ten_thousand_characters_are_kept(tmp_path):
    doc = "文" * 10_000
    assert read(tmp_path, f"{doc}\tона 🙂\n") == [(doc, "она 🙂")]


@LAW
@given(documents=st.lists(st.tuples(IDS, TEXTS), min_size=1, max_size=8), end=st.sampled_from(["\n", "\r\n", "\n\n"]))
@example(documents=[("d", ""), ("e", " ")], end="\n")
def test_documents_written_as_tsv_read_back_the_same(tmp_path_factory, documents, end):
    content = end.join(f"{doc}\t{text}" for doc, text in documents)
    assert read(tmp_path_factory.getbasetemp(), content, "law.tsv") == documents


# --- what is wrong --------------------------------------------------------------------------------


def test_missing_documents_name_the_file(tmp_path):
    with pytest.raises(DataError, match=r"documents .*gone\.tsv:.*such file"):
        rows(tmp_path / "gone.tsv")


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_documents_is_refused(tmp_path, name, content):
    with pytest.raises(DataError, match="no documents"):
        read(tmp_path, content, name)


@pytest.mark.parametrize("line", ["d3 no tab", "d3\ttwo\ttabs", "d3\ta\tb\tc"])
def test_a_line_with_other_than_one_tab_names_the_file_and_line(tmp_path, line):
    columns = line.count("\t") + 1
    with pytest.raises(DataError, match=rf"a\.tsv:4: expected 2 columns .* found {columns} in 'd3"):
        read(tmp_path, "\n" + TSV + line + "\n")


def test_a_line_without_a_tab_and_one_with_two_do_not_make_up_for_each_other(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:1: expected 2 columns"):
        read(tmp_path, "d1\nd2\ta\tb\n")


def test_a_wrong_line_is_quoted_but_not_at_any_length(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:1: expected 2 columns") as caught:
        read(tmp_path, "x" * 100_000)
    assert len(str(caught.value)) < 1000


def test_a_document_without_an_id_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3:.*has no id"):
        read(tmp_path, TSV + " \ttext\n")


def test_a_document_without_an_id_is_named_by_its_line_after_blank_lines(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:5:.*has no id"):
        read(tmp_path, "\n\n" + TSV + "\ttext\n")


@pytest.mark.parametrize("content", ["\t\nd\tx\n", "\t\n\nd\tx\n"])
def test_a_line_of_one_tab_is_a_document_without_an_id_with_or_without_blank_lines_elsewhere(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.tsv:1:.*has no id"):
        read(tmp_path, content)


def test_bytes_that_are_not_utf_8_name_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3: expected UTF-8.*the byte 0xe9"):
        read(tmp_path, TSV.encode() + b"d3\tcaf\xe9\n")


def test_bytes_that_are_not_utf_8_in_json_lines_name_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected UTF-8.*the byte 0xe9"):
        read(tmp_path, b'{"id": 1, "text": "x"}\n{"id": 2, "text": "\xe9"}\n', "a.jsonl")


def test_a_gzip_file_cut_short_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:.*or cut short"):
        read(tmp_path, gzip.compress(TSV.encode())[:-6])


def test_a_damaged_gzip_file_is_refused(tmp_path):
    packed = bytearray(gzip.compress(TSV.encode()))
    packed[-8] ^= 0xFF
    with pytest.raises(DataError, match=r"a\.tsv:.*or cut short"):
        read(tmp_path, bytes(packed))


def test_fields_of_a_tsv_file_are_a_wrong_setting(tmp_path):
    with pytest.raises(ConfigError, match=r"a\.tsv:.*no named fields"):
        read(tmp_path, TSV, fields=("title",))


# --- as the published scripts read ----------------------------------------------------------------


def test_the_published_reading_of_clean_documents_is_the_same(tmp_path):
    assert read(tmp_path, TSV, published=True) == ROWS


@pytest.mark.parametrize("line", ["d3", "d3\t", "d3\ta\tb"])
def test_the_published_reading_gives_lines_of_other_widths_no_text(tmp_path, line):
    assert read(tmp_path, TSV + line + "\n", published=True) == [*ROWS, ("d3", None)]


def test_the_published_reading_skips_blank_lines_and_takes_windows_line_ends(tmp_path):
    assert read(tmp_path, "\n" + TSV.replace("\n", "\r\n\r\n"), published=True) == ROWS


def test_the_published_reading_still_names_the_line_of_bytes_that_are_not_utf_8(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3: expected UTF-8 text"):
        read(tmp_path, TSV.encode() + b"d3\tcaf\xe9\n", published=True)


# --- JSON Lines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson", "a.json", "a.JSONL"])
def test_json_lines_are_read(tmp_path, name):
    assert read(tmp_path, json_lines({"doc_id": "d", "text": "she"}), name) == [("d", "she")]


@pytest.mark.parametrize("id_name", ["doc_id", "docid", "docno", "id", "_id", "pid"])
@pytest.mark.parametrize("text_name", ["text", "contents", "content", "body", "passage"])
def test_json_documents_are_found_by_any_of_their_names(tmp_path, id_name, text_name):
    assert read(tmp_path, json_lines({text_name: "she", id_name: 7}), "a.jsonl") == [("7", "she")]


def test_json_lines_may_be_blank_packed_marked_and_end_as_in_windows(tmp_path):
    content = b"\xef\xbb\xbf\r\n" + json_lines({"id": 1, "text": "she"}, {"id": 2, "text": ""}).encode()
    packed = gzip.compress(content.replace(b"\n", b"\r\n\r\n"))
    assert read(tmp_path, packed, "a.jsonl") == [("1", "she"), ("2", "")]


def test_line_ends_and_tabs_inside_a_json_text_are_kept(tmp_path):
    assert read(tmp_path, json_lines({"id": 1, "text": "a\n\tb"}), "a.jsonl") == [("1", "a\n\tb")]


def test_fields_make_up_the_text_in_the_order_they_are_named(tmp_path):
    content = json_lines({"id": 1, "title": "A", "text": "b", "abstract": "c"})
    assert read(tmp_path, content, "a.jsonl", fields=("abstract", "title")) == [("1", "c A")]


def test_a_field_that_is_null_adds_nothing(tmp_path):
    content = json_lines({"id": 1, "title": None, "text": "b"})
    assert read(tmp_path, content, "a.jsonl", fields=("title", "text")) == [("1", "b")]


def test_a_json_field_that_is_missing_names_the_file_and_line_and_the_field(tmp_path):
    content = json_lines({"id": 1, "title": "A", "text": "b"}, {"id": 2, "text": "b"})
    with pytest.raises(DataError, match=r"a\.jsonl:2:.*document id and 'title', 'text';.*id, text"):
        read(tmp_path, content, "a.jsonl", fields=("title", "text"))


@pytest.mark.parametrize("line", ["{}", '{"text": "x"}', '{"id": 1}', '{"id": 1, "words": "x"}'])
def test_json_without_an_id_or_a_text_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.jsonl:2:.*document id and 'text' .*the keys"):
        read(tmp_path, '{"id": 1, "text": "x"}\n' + line, "a.jsonl")


@pytest.mark.parametrize("line", ['{"id": 1', "she", "{'id': 1}"])
def test_broken_json_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.jsonl:3: not valid JSON"):
        read(tmp_path, '\n{"id": 1, "text": "x"}\n' + line, "a.jsonl")


@pytest.mark.parametrize("line", ["[1]", "7", '"id text"', "null"])
def test_json_that_is_no_object_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.jsonl:1:.*'doc_id'") as caught:
        read(tmp_path, line, "a.jsonl")
    assert (caught.value.code, caught.value.values) == ("bad-line", {"line": 1})


@pytest.mark.parametrize("value", [None, "", " ", ["d"]])
def test_a_json_document_without_an_id_names_the_file_and_line(tmp_path, value):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, json_lines({"doc_id": value, "text": "x"}), "a.jsonl")


@pytest.mark.parametrize("value", [["she", "he"], {"en": "she"}])
def test_a_json_text_that_is_a_list_or_an_object_is_not_counted_as_its_python_notation(tmp_path, value):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, json_lines({"doc_id": "d", "text": value}), "a.jsonl")


def test_a_json_number_of_five_thousand_digits_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, f'{{"doc_id": {"1" * 5000}, "text": "x"}}\n', "a.jsonl")


def test_json_nested_without_end_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, "[" * 100_000, "a.jsonl")


def test_half_a_surrogate_pair_in_a_json_text_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, '{"doc_id": "d", "text": "\\ud800"}\n', "a.jsonl")


@LAW
@given(documents=st.lists(st.tuples(IDS, st.text(st.characters(exclude_categories=("Cs",)))), min_size=1, max_size=8))
def test_documents_written_as_json_lines_read_back_the_same(tmp_path_factory, documents):
    content = json_lines(*({"doc_id": doc, "text": text} for doc, text in documents))
    assert read(tmp_path_factory.getbasetemp(), content, "law.jsonl") == documents


# --- Parquet --------------------------------------------------------------------------------------


def test_parquet_is_read(tmp_path):
    assert rows(parquet(tmp_path, {"text": ["she", "", None], "doc_id": ["a", "b", "c"]})) == [
        ("a", "she"),
        ("b", ""),
        ("c", ""),
    ]


def test_parquet_ids_may_be_numbers_and_columns_have_other_names(tmp_path):
    assert rows(parquet(tmp_path, {"docno": [7], "body": ["she"]})) == [("7", "she")]


def test_parquet_fields_make_up_the_text_in_the_order_they_are_named(tmp_path):
    path = parquet(tmp_path, {"id": [1], "title": ["A"], "text": ["b"], "abstract": ["c"]})
    assert rows(path, fields=("abstract", "title")) == [("1", "c A")]


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_a_part_that_is_null_adds_no_blank_in_any_format(tmp_path, ending):
    if ending == "parquet":
        path = parquet(
            tmp_path, {"id": [1], "title": ["A"], "abstract": pl.Series([None], dtype=pl.String), "text": ["b"]}
        )
    else:
        path = write(tmp_path, json_lines({"id": 1, "title": "A", "abstract": None, "text": "b"}), "a.jsonl")
    assert rows(path, fields=("title", "abstract", "text")) == [("1", "A b")]
    assert rows(path, fields=("abstract", "abstract")) == [("1", "")]


def test_parquet_of_more_rows_than_a_batch_is_read_whole(tmp_path):
    path = parquet(tmp_path, {"doc_id": range(70_000), "text": ["she"] * 70_000})
    tables = list(read_documents(path))
    assert [table.num_rows for table in tables] == [65_536, 70_000 - 65_536]


@pytest.mark.parametrize("content", [b"", b"this is no Parquet file", gzip.compress(b"PAR1", mtime=0)])
def test_a_file_that_is_not_parquet_is_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.parquet:.*readable Parquet file"):
        read(tmp_path, content, "a.parquet")


def test_a_parquet_file_with_damaged_pages_is_refused(tmp_path):
    path = parquet(
        tmp_path, {"doc_id": [f"d{n}" for n in range(20_000)], "text": [str(n * 7919) for n in range(20_000)]}
    )
    content = bytearray(path.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 2000] = b"\xff" * 2000
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet"):
        rows(path)


def test_parquet_without_an_id_or_a_text_says_what_was_found(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet: .*'text'") as caught:
        rows(parquet(tmp_path, {"doc_id": ["d"], "words": ["she"]}))
    assert (caught.value.code, caught.value.values) == ("missing-column", {"found": ["doc_id", "words"]})


def test_a_parquet_field_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet: expected .*title.*; found doc_id, text"):
        rows(parquet(tmp_path, {"doc_id": ["d"], "text": ["she"]}), fields=("title", "text"))


@pytest.mark.parametrize("value", [None, ""])
def test_a_parquet_row_without_an_id_is_refused(tmp_path, value):
    with pytest.raises(DataError, match=r"a\.parquet"):
        rows(parquet(tmp_path, {"doc_id": ["d", value], "text": ["she", "he"]}))


def test_a_parquet_text_that_is_a_list_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet"):
        rows(parquet(tmp_path, {"doc_id": ["d"], "text": [["she", "he"]]}))


# --- folders --------------------------------------------------------------------------------------


def test_a_folder_is_read_file_by_file_in_the_order_of_the_names(tmp_path):
    write(tmp_path, "d3\tc\n", "2.tsv")
    write(tmp_path, gzip.compress(b"d1\ta\n"), "0.tsv.gz")
    write(tmp_path, json_lines({"id": "d2", "text": "b"}), "1.jsonl")
    parquet(tmp_path, {"doc_id": ["d4"], "text": ["d"]}, "3.parquet")
    assert rows(tmp_path) == [("d1", "a"), ("d2", "b"), ("d3", "c"), ("d4", "d")]


def test_an_empty_file_among_others_in_a_folder_is_no_mistake(tmp_path):
    write(tmp_path, "", "0.tsv")
    write(tmp_path, TSV, "1.tsv")
    assert rows(tmp_path) == ROWS


def test_other_files_and_folders_in_a_folder_are_left_alone(tmp_path):
    path = write(tmp_path, TSV)
    write(tmp_path, "# about", "README.md")
    (tmp_path / "more.tsv").mkdir()
    assert list(documents_at(tmp_path).files) == [path]


def test_a_folder_without_documents_is_refused(tmp_path):
    write(tmp_path, "# about", "README.md")
    with pytest.raises(DataError, match=r"\.parquet") as caught:
        rows(tmp_path)
    assert (caught.value.code, caught.value.values) == ("no-documents", {"found": ["README.md"]})


def test_a_wrong_line_in_a_folder_names_its_file(tmp_path):
    write(tmp_path, TSV, "0.tsv")
    write(tmp_path, "no tab\n", "1.tsv")
    with pytest.raises(DataError, match=r"1\.tsv:1: expected 2 columns"):
        rows(tmp_path)


def test_a_single_file_is_a_collection_of_one(tmp_path):
    path = write(tmp_path, TSV)
    assert list(documents_at(path).files) == [path]


# --- the demo -------------------------------------------------------------------------------------


def test_the_demo_has_as_many_documents_and_queries_as_it_says():
    demo = demo_files()
    assert len(rows(demo.docs)) == demo.documents
    assert read_queries(demo.queries_file).num_rows == demo.queries


def test_the_demo_runs_rank_documents_of_the_demo_for_its_queries():
    demo = demo_files()
    docs = {doc for doc, _ in rows(demo.docs)}
    queries = set(read_queries(demo.queries_file)["query_id"].to_pylist())
    assert [run.stem for run in demo.runs] == demo.about.split(", ")
    for frame in [*(read_run(run).lines for run in demo.runs), read_judgements(demo.qrels).lines]:
        assert set(frame["doc_id"]) <= docs
        assert set(frame["query_id"]) <= queries
