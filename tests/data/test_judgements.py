"""Reading judgements: TREC, BEIR, JSON Lines, Parquet; repeats and contradictions."""

import gzip
import json

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.data.judgements import read_judgements

TREC = "q1 0 d1 2\nq1 0 d2 0\nq2 0 d1 1\n"
ROWS = [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d1", 1)]
IDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
LAW = settings(max_examples=60, deadline=None, database=None)


def write(folder, content, name="a.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder, content, name="a.txt"):
    return read_judgements(write(folder, content, name))


def rows(qrels):
    return qrels.lines.select("query_id", "doc_id", "relevance").rows()


def json_lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


def parquet(folder, columns, name="a.parquet"):
    path = folder / name
    pl.DataFrame(columns).write_parquet(path)
    return path


# --- columns --------------------------------------------------------------------------------------


def test_trec_judgements_are_read_in_order_without_notes(tmp_path):
    qrels = read(tmp_path, TREC)
    assert (rows(qrels), qrels.notes) == (ROWS, [])


def test_judgements_have_three_columns_and_no_line_numbers(tmp_path):
    assert read(tmp_path, TREC).lines.columns == ["query_id", "doc_id", "relevance"]


@pytest.mark.parametrize("separator", ["\t", "   ", " \t "])
def test_any_blanks_and_tabs_separate_the_columns(tmp_path, separator):
    assert rows(read(tmp_path, TREC.replace(" ", separator))) == ROWS


@pytest.mark.parametrize("header", ["query-id\tcorpus-id\tscore", "query_id\tdoc_id\trelevance", "QID\tpid\trel"])
def test_three_columns_under_a_header_are_read(tmp_path, header):
    assert rows(read(tmp_path, f"{header}\nq\td\t1\n", "test.tsv")) == [("q", "d", 1)]


def test_three_columns_without_a_header_are_read(tmp_path):
    assert rows(read(tmp_path, "q\td\t1\n")) == [("q", "d", 1)]


def test_a_header_after_a_blank_line_is_still_a_header(tmp_path):
    qrels = read(tmp_path, "\nquery-id\tcorpus-id\tscore\nq\td\t1\n", "test.tsv")
    assert rows(qrels) == [("q", "d", 1)]


def test_a_first_line_with_a_whole_number_at_its_end_is_a_judgement_even_of_a_query_called_topic(tmp_path):
    assert rows(read(tmp_path, "topic 0 d 1\nq 0 d 1\n")) == [("topic", "d", 1), ("q", "d", 1)]


def test_a_blank_in_an_id_between_tabs_is_not_cut_off(tmp_path):
    qrels = read(tmp_path, "query-id\tcorpus-id\tscore\nq 1\td\t1\n", "test.tsv")
    assert rows(qrels) == [("q 1", "d", 1)]


def test_blanks_and_tabs_that_could_be_read_in_two_ways_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:2:.*TABs and blanks"):
        read(tmp_path, "q\td\t1\nq\t0 d\t1\n")


def test_a_no_break_space_is_part_of_an_id_and_no_separator(tmp_path):
    assert rows(read(tmp_path, "q\u00a0x d 1\n")) == [("q\u00a0x", "d", 1)]


def test_blank_lines_are_skipped(tmp_path):
    assert rows(read(tmp_path, "\n" + TREC.replace("\n", "\n \n"))) == ROWS


def test_windows_line_ends_are_line_ends(tmp_path):
    assert rows(read(tmp_path, TREC.replace("\n", "\r\n"))) == ROWS


def test_a_byte_order_mark_is_removed(tmp_path):
    assert rows(read(tmp_path, b"\xef\xbb\xbf" + TREC.encode())) == ROWS


def test_a_header_after_a_byte_order_mark_is_a_header(tmp_path):
    assert rows(read(tmp_path, b"\xef\xbb\xbfquery-id\tcorpus-id\tscore\nq\td\t1\n")) == [("q", "d", 1)]


def test_a_last_line_without_a_line_end_is_read(tmp_path):
    assert rows(read(tmp_path, TREC.removesuffix("\n"))) == ROWS


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt"])
def test_gzip_is_known_by_its_content(tmp_path, name):
    assert rows(read(tmp_path, gzip.compress(TREC.encode()), name)) == ROWS


def test_relevance_may_be_negative(tmp_path):
    assert rows(read(tmp_path, "q 0 d -2\n")) == [("q", "d", -2)]


def test_unicode_ids_and_ids_of_ten_thousand_characters_are_kept(tmp_path):
    query, doc = "запрос" * 2000, "文" * 10_000
    assert rows(read(tmp_path, f"{query} 0 {doc} 1\n")) == [(query, doc, 1)]


@LAW
@given(
    entries=st.dictionaries(st.tuples(IDS, IDS), st.integers(-3, 9), min_size=1, max_size=8),
    separator=st.sampled_from([" ", "\t", "  "]),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
@example(entries={("QUERY_ID", "d"): 0, ("q", "d"): 1}, separator=" ", end="\n")
def test_judgements_written_in_any_style_read_back_the_same(tmp_path_factory, entries, separator, end):
    lines = [separator.join([query, "0", doc, str(grade)]) for (query, doc), grade in entries.items()]
    qrels = read(tmp_path_factory.getbasetemp(), end.join(lines), "law.txt")
    assert rows(qrels) == [(query, doc, grade) for (query, doc), grade in entries.items()]


# --- repeats --------------------------------------------------------------------------------------


def test_a_judgement_that_stands_there_twice_is_counted_once_and_noted(tmp_path):
    qrels = read(tmp_path, TREC + "q1 0 d1 2\nq1 1 d1 2\n")
    assert rows(qrels) == ROWS
    assert [(note.code, note.values) for note in qrels.notes] == [("repeated-judgements", {"count": 2})]


def test_judgements_that_contradict_each_other_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:1: document 'd1'.*different judgements.*'q1'"):
        read(tmp_path, TREC + "q1 0 d1 0\n")


def test_a_contradiction_is_named_by_its_line_in_the_file(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:4: document 'd2'.*different judgements.*'q3'"):
        read(tmp_path, "\nq3 0 d1 1\nq3 0 d1 1\nq3 0 d2 1\nq3 0 d2 3\n")


def test_a_document_may_be_judged_differently_for_two_queries(tmp_path):
    assert rows(read(tmp_path, "q 0 d 1\nr 0 d 0\n")) == [("q", "d", 1), ("r", "d", 0)]


# --- what is wrong --------------------------------------------------------------------------------


def test_missing_judgements_name_the_file(tmp_path):
    with pytest.raises(DataError, match=r"judgements .*gone\.txt:.*such file"):
        read_judgements(tmp_path / "gone.txt")


def test_a_folder_is_not_a_file_of_judgements(tmp_path):
    with pytest.raises(DataError, match=r"judgements .*a folder"):
        read_judgements(tmp_path)


@pytest.mark.parametrize("content", ["", "\n \n", "query-id\tcorpus-id\tscore\n"])
@pytest.mark.parametrize("name", ["a.txt", "a.tsv"])
def test_a_file_without_judgements_is_refused(tmp_path, content, name):
    with pytest.raises(DataError, match=r"judgements .*no judgements"):
        read(tmp_path, content, name)


def test_json_lines_without_judgements_are_refused(tmp_path):
    with pytest.raises(DataError, match="has no judgements"):
        read(tmp_path, "\n", "a.jsonl")


@pytest.mark.parametrize("line", ["q d", "q", "q 0 d 1 extra", "q 0 d 1 extra more"])
def test_a_line_with_other_columns_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=rf"a\.txt:4: expected 4 columns .* found {len(line.split())}"):
        read(tmp_path, TREC + line + "\n")


@pytest.mark.parametrize("grade", ["1.0", "yes", "1_0", "nan", "+-1"])
def test_a_relevance_that_is_no_whole_number_names_the_file_and_line(tmp_path, grade):
    with pytest.raises(DataError, match=r"a\.txt:4:.*whole number as.*'"):
        read(tmp_path, f"{TREC}q 0 d {grade}\n")


def test_a_relevance_too_large_for_a_number_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:1"):
        read(tmp_path, f"q 0 d 1{'0' * 30}\n")


def test_bytes_that_are_not_utf_8_name_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:4: expected UTF-8.*the byte 0xe9"):
        read(tmp_path, TREC.encode() + b"q 0 caf\xe9 1\n")


def test_a_gzip_file_cut_short_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.txt:.*or cut short"):
        read(tmp_path, gzip.compress(TREC.encode())[:-6])


# --- JSON Lines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_json_lines_are_read(tmp_path, name):
    content = json_lines(
        {"query_id": "q", "doc_id": "d", "relevance": 1}, {"query_id": 2, "doc_id": 3, "relevance": "0"}
    )
    assert rows(read(tmp_path, content, name)) == [("q", "d", 1), ("2", "3", 0)]


@pytest.mark.parametrize("line", ['{"query_id": "q"', '["q", "d", 1]', "7", '{"query_id": "q", "doc_id": "d"}'])
def test_json_that_is_no_judgement_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.jsonl:3: .*relevance") as caught:
        read(tmp_path, '\n{"query_id": "q", "doc_id": "d", "relevance": 1}\n' + line, "a.jsonl")
    assert caught.value.code in {"bad-json", "bad-line", "missing-column"}


@pytest.mark.parametrize("grade", ["1.5", "null", "true", '"high"', "[1]"])
def test_a_json_relevance_that_is_no_whole_number_names_the_file_and_line(tmp_path, grade):
    with pytest.raises(DataError, match=r"a\.jsonl:1:.*whole number as"):
        read(tmp_path, f'{{"query_id": "q", "doc_id": "d", "relevance": {grade}}}\n', "a.jsonl")


def test_a_json_relevance_that_is_a_whole_number_in_decimals_is_read(tmp_path):
    content = json_lines({"query_id": "q", "doc_id": "d", "relevance": 2.0})
    assert rows(read(tmp_path, content, "a.jsonl")) == [("q", "d", 2)]


@pytest.mark.parametrize("missing", ["null", '""'])
@pytest.mark.parametrize("name", ["query_id", "doc_id"])
def test_a_json_judgement_without_an_id_names_the_file_and_line(tmp_path, name, missing):
    other = "doc_id" if name == "query_id" else "query_id"
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, f'{{"{name}": {missing}, "{other}": "x", "relevance": 1}}\n', "a.jsonl")


@pytest.mark.parametrize("digits", [50, 5000])
def test_a_json_relevance_of_very_many_digits_names_the_file_and_line(tmp_path, digits):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, f'{{"query_id": "q", "doc_id": "d", "relevance": {"1" * digits}}}\n', "a.jsonl")


def test_json_nested_without_end_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, "[" * 100_000, "a.jsonl")


# --- Parquet --------------------------------------------------------------------------------------


def test_parquet_is_read(tmp_path):
    path = parquet(tmp_path, {"relevance": [1, 0], "query_id": ["q", "q"], "doc_id": [7, 8], "iteration": [0, 0]})
    assert rows(read_judgements(path)) == [("q", "7", 1), ("q", "8", 0)]


def test_parquet_contradictions_are_named_by_their_row(tmp_path):
    path = parquet(tmp_path, {"query_id": ["q"] * 3, "doc_id": ["a", "b", "b"], "relevance": [1, 0, 1]})
    with pytest.raises(DataError, match=r"a\.parquet:2: document 'b'.*different judgements"):
        read_judgements(path)


def test_parquet_without_our_columns_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet: .*relevance") as caught:
        read_judgements(parquet(tmp_path, {"query_id": ["q"], "doc_id": ["d"]}))
    assert (caught.value.code, caught.value.values) == ("missing-column", {"found": ["query_id", "doc_id"]})


def test_parquet_without_rows_has_no_judgements(tmp_path):
    with pytest.raises(DataError, match="has no judgements"):
        read_judgements(parquet(tmp_path, {"query_id": [], "doc_id": [], "relevance": []}))


@pytest.mark.parametrize("content", [b"", b"this is no Parquet file"])
def test_a_file_that_is_not_parquet_is_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"judgements .*a\.parquet"):
        read(tmp_path, content, "a.parquet")


@pytest.mark.parametrize("grade", [0.5, "x", float("nan")])
def test_a_parquet_relevance_that_is_no_whole_number_is_refused(tmp_path, grade):
    with pytest.raises(DataError, match=r"a\.parquet"):
        read_judgements(parquet(tmp_path, {"query_id": ["q"], "doc_id": ["d"], "relevance": [grade]}))


def test_a_parquet_relevance_that_is_a_whole_number_in_decimals_is_read(tmp_path):
    path = parquet(tmp_path, {"query_id": ["q"], "doc_id": ["d"], "relevance": [2.0]})
    assert rows(read_judgements(path)) == [("q", "d", 2)]


@pytest.mark.parametrize("name", ["query_id", "doc_id", "relevance"])
def test_a_parquet_row_without_a_value_is_refused(tmp_path, name):
    columns = {"query_id": ["q", "q"], "doc_id": ["d", "e"], "relevance": [1, 1]}
    columns[name] = [columns[name][0], None]
    with pytest.raises(DataError, match=r"a\.parquet"):
        read_judgements(parquet(tmp_path, columns))


@pytest.mark.parametrize("lines", ["q1 0 d1 1\nq1 0 7187158\n", "q1\td1\t1\nq1\t0\td2\t1\n"])
def test_a_line_with_another_number_of_columns_is_an_error(lines, tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text(lines)
    with pytest.raises(DataError) as error:
        read_judgements(path)
    assert error.value.code == "bad-width"
