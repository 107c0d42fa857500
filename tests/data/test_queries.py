"""Reading queries: TSV, JSON Lines and the published annotated list."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import DataError
from askew.data.queries import SCHEMA, queries_of, read_queries

TSV = "q1\thow to calm a baby\nq2\tnurse, or doctor?\n"
ROWS = [("q1", "how to calm a baby", None), ("q2", "nurse, or doctor?", None)]
IDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\r\n"), max_size=30)
LAW = settings(max_examples=60, deadline=None, database=None)


def read(folder, content, name="a.tsv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_queries(path)


def rows(table):
    return [(row["query_id"], row["text"], row["label"]) for row in table.to_pylist()]


# --- TSV ------------------------------------------------------------------------------------------


def test_queries_are_read_in_order_with_no_label(tmp_path):
    table = read(tmp_path, TSV)
    assert (rows(table), table.schema) == (ROWS, SCHEMA)


@pytest.mark.parametrize("name", ["a.txt", "a", "queries.dev"])
def test_any_other_ending_is_read_as_tsv(tmp_path, name):
    assert rows(read(tmp_path, TSV, name)) == ROWS


def test_blank_lines_are_skipped(tmp_path):
    assert rows(read(tmp_path, "\n" + TSV.replace("\n", "\n  \n"))) == ROWS


def test_windows_line_ends_are_not_part_of_the_text(tmp_path):
    assert rows(read(tmp_path, TSV.replace("\n", "\r\n"))) == ROWS


def test_a_byte_order_mark_is_not_part_of_the_first_id(tmp_path):
    assert rows(read(tmp_path, b"\xef\xbb\xbf" + TSV.encode())) == ROWS


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.tsv"])
def test_gzip_is_known_by_its_content(tmp_path, name):
    assert rows(read(tmp_path, gzip.compress(TSV.encode()), name)) == ROWS


def test_blanks_around_an_id_do_not_count(tmp_path):
    assert rows(read(tmp_path, " q1 \ttext\n")) == [("q1", "text", None)]


def test_a_query_may_have_an_empty_text(tmp_path):
    assert rows(read(tmp_path, "q1\t\n")) == [("q1", "", None)]


def test_quotes_in_a_text_are_ordinary_characters(tmp_path):
    assert rows(read(tmp_path, 'q1\t"who is\nq2\tshe"\n')) == [("q1", '"who is', None), ("q2", 'she"', None)]


def test_unicode_and_ids_of_ten_thousand_characters_are_kept(tmp_path):
    query = "идентификатор" * 1000
    assert rows(read(tmp_path, f"{query}\tкто она 🙂\n")) == [(query, "кто она 🙂", None)]


@LAW
@given(queries=st.dictionaries(IDS, TEXTS, min_size=1, max_size=8), end=st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_queries_written_as_tsv_read_back_the_same(tmp_path_factory, queries, end):
    content = end.join(f"{query}\t{text}" for query, text in queries.items())
    assert rows(read(tmp_path_factory.getbasetemp(), content, "law.tsv")) == [(q, t, None) for q, t in queries.items()]


# --- what is wrong --------------------------------------------------------------------------------


def test_missing_queries_name_the_file(tmp_path):
    with pytest.raises(DataError, match=r"queries .*gone\.tsv:.*such file"):
        read_queries(tmp_path / "gone.tsv")


def test_a_folder_is_not_a_file_of_queries(tmp_path):
    with pytest.raises(DataError, match=r"queries .*a folder"):
        read_queries(tmp_path)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl", "a.csv"])
@pytest.mark.parametrize("content", ["", "\n  \n"])
def test_a_file_without_queries_is_refused(tmp_path, name, content):
    with pytest.raises(DataError, match="has no queries"):
        read(tmp_path, content, name)


@pytest.mark.parametrize("line", ["q3 no tab", "q3\ttwo\ttabs"])
def test_a_line_with_other_than_two_columns_names_the_file_and_line(tmp_path, line):
    columns = line.count("\t") + 1
    with pytest.raises(DataError, match=rf"a\.tsv:3: expected 2 columns .* found {columns}"):
        read(tmp_path, TSV + line + "\n")


def test_a_query_without_an_id_names_the_line_and_is_not_said_to_lack_columns(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3") as caught:
        read(tmp_path, TSV + " \ttext\n")
    assert "expected 2 columns" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "q\tx\nq\ty\n"),
        ("a.csv", "q,x,n\nq,y,n\n"),
        ("a.jsonl", '{"id": 1, "text": "x"}\n{"id": "1", "text": "y"}\n'),
    ],
)
def test_a_query_id_that_stands_there_twice_is_refused(tmp_path, name, content):
    with pytest.raises(DataError, match=r"the query id '[q1]'.*than once"):
        read(tmp_path, content, name)


class _Compared(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        _Compared.times += 1
        return str.__eq__(self, other)


def test_a_repeated_query_at_the_end_of_many_is_found_without_comparing_all_with_all():
    ids = [*range(15_000), 14_999]
    rows = ((line, _Compared(number), "x", None, None) for line, number in enumerate(ids, start=1))
    with pytest.raises(DataError, match=r"the query id '14999'.*than once"):
        queries_of(rows, Path("queries.tsv"))
    assert _Compared.times < 15_000


def test_bytes_that_are_not_utf_8_name_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3: expected UTF-8.*the byte 0xe9"):
        read(tmp_path, TSV.encode() + b"q3\tcaf\xe9\n")


def test_a_gzip_file_cut_short_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:.*or cut short"):
        read(tmp_path, gzip.compress(TSV.encode())[:-6])


# --- JSON Lines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("id_name", ["query_id", "qid", "_id", "id"])
@pytest.mark.parametrize("text_name", ["text", "query"])
def test_json_queries_are_found_by_any_of_their_names(tmp_path, id_name, text_name):
    assert rows(read(tmp_path, json.dumps({id_name: 7, text_name: "who"}), "a.jsonl")) == [("7", "who", None)]


def test_json_queries_keep_their_label(tmp_path):
    content = '{"query_id": "q", "text": "who", "label": "n"}\n{"query_id": "r", "text": "she"}\n'
    assert rows(read(tmp_path, content, "a.ndjson")) == [("q", "who", "n"), ("r", "she", None)]


def test_a_json_label_may_be_a_number(tmp_path):
    content = '{"query_id": "q", "text": "who", "label": 3}\n'
    assert rows(read(tmp_path, content, "a.jsonl")) == [("q", "who", "3")]


@pytest.mark.parametrize("line", ['{"query_id": 3', "[]", "3", '"id text"', '{"text": "x"}', '{"query_id": 3}'])
def test_json_that_is_no_query_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.jsonl:3: .*'query_id'") as caught:
        read(tmp_path, '\n{"query_id": 1, "text": "x"}\n' + line + "\n", "a.jsonl")
    assert caught.value.code in {"bad-json", "bad-line", "missing-column"}


@pytest.mark.parametrize("value", ["null", '""', "[1]"])
def test_a_json_query_without_an_id_names_the_file_and_line(tmp_path, value):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, f'{{"query_id": {value}, "text": "x"}}\n', "a.jsonl")


def test_a_json_query_whose_text_is_null_does_not_ask_for_none(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, '{"query_id": 1, "text": null}\n', "a.jsonl")


def test_a_json_number_of_five_thousand_digits_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, f'{{"query_id": {"1" * 5000}, "text": "x"}}\n', "a.jsonl")


def test_json_nested_without_end_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, "[" * 100_000, "a.jsonl")


# --- the published annotated list -----------------------------------------------------------------


def test_the_annotated_list_has_id_query_and_label(tmp_path):
    assert rows(read(tmp_path, "1,who is she,f\n2,what is tax,n\n", "a.csv")) == [
        ("1", "who is she", "f"),
        ("2", "what is tax", "n"),
    ]


def test_commas_in_an_annotated_query_belong_to_the_query(tmp_path):
    assert rows(read(tmp_path, '1,nurse, doctor, or "both", n\n', "a.csv")) == [("1", 'nurse, doctor, or "both"', "n")]


def test_the_annotated_list_may_have_windows_line_ends(tmp_path):
    assert rows(read(tmp_path, "1,who,n\r\n", "a.csv")) == [("1", "who", "n")]


def test_an_annotated_line_without_a_label_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.csv:2: .*id,query,label") as caught:
        read(tmp_path, "1,who,n\n2,what\n", "a.csv")
    assert (caught.value.code, caught.value.values) == ("bad-width", {"line": 2, "found": 2})


def test_an_annotated_line_without_an_id_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.csv:1"):
        read(tmp_path, " ,who,n\n", "a.csv")


@LAW
@given(
    queries=st.dictionaries(
        st.text("0123456789abc", min_size=1, max_size=6),
        st.tuples(st.text("abc, '\"", max_size=20), st.sampled_from("nfm")),
        min_size=1,
        max_size=8,
    )
)
def test_an_annotated_list_reads_back_the_same_whatever_commas_its_queries_have(tmp_path_factory, queries):
    content = "".join(f"{query},{text},{label}\n" for query, (text, label) in queries.items())
    expected = [(query, text, label) for query, (text, label) in queries.items()]
    assert rows(read(tmp_path_factory.getbasetemp(), content, "law.csv")) == expected


def test_who_asked_and_when_travels_with_a_query(tmp_path):
    rows = [
        {"query_id": "1", "text": "a", "user": "u7", "time": "2006-03-01 10:00"},
        {"query_id": "2", "text": "b", "user_id": 12},
        {"query_id": "3", "text": "c", "user": None},
    ]
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    expected = ["u7 2006-03-01 10:00", "12", None]
    assert read_queries(path)["context"].to_pylist() == expected
    columns = {name: [row.get(name) for row in rows] for name in ("query_id", "text", "user", "time")}
    pq.write_table(pa.table(columns), tmp_path / "queries.parquet")
    assert read_queries(tmp_path / "queries.parquet")["context"].to_pylist() == [expected[0], None, None]


def test_queries_of_nobody_have_no_context(tmp_path):
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query_id": "1", "text": "a"}')
    assert read_queries(path).schema == SCHEMA
