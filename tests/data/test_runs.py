"""Reading runs: every format, every separator, and what is said when a file is not a run."""

import gzip
import json
import os
import random
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.data.runs import read_run
from askew.measures.lists import Universe

TREC = "q1 Q0 d1 1 2.5 tag\nq1 Q0 d2 2 1.5 tag\nq2 Q0 d1 1 0.5 tag\n"
ROWS = [("q1", "d1", 2.5), ("q1", "d2", 1.5), ("q2", "d1", 0.5)]
IDS = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=12)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
LAW = settings(max_examples=60, deadline=None, database=None)


def rows(run):
    frame = run.lines.select("query_id", "doc_id", pl.col("score").cast(pl.Float64))
    return frame.rows()


def write(folder, content, name="a.run"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder, content, name="a.run", **options):
    return read_run(write(folder, content, name), **options)


def json_lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


def orders(run, order="file"):
    universe = Universe.of([run.lines])
    rankings = universe.rankings(run, order)
    ids = universe.doc_ids.take(rankings.docs).to_pylist()
    bounds = rankings.offsets.tolist()
    queries = rankings.query_ids.to_pylist()
    return {query: ids[a:b] for query, a, b in zip(queries, bounds[:-1], bounds[1:], strict=True)}


# --- TREC -----------------------------------------------------------------------------------------


def test_a_trec_run_gives_its_rows_in_the_order_of_the_file(tmp_path):
    assert rows(read(tmp_path, TREC)) == ROWS


def test_a_run_is_named_after_its_file(tmp_path):
    assert read(tmp_path, TREC, "bm25.run").name == "bm25.run"


def test_a_clean_run_has_no_notes(tmp_path):
    assert read(tmp_path, TREC).notes == []


def test_a_run_keeps_its_rank_column(tmp_path):
    assert read(tmp_path, TREC).lines["rank"].to_list() == ["1", "2", "1"]


def test_a_run_keeps_its_line_numbers(tmp_path):
    assert read(tmp_path, TREC).lines["line"].to_list() == [1, 2, 3]


def test_the_line_numbers_count_blank_lines(tmp_path):
    assert read(tmp_path, "\n\n" + TREC.replace("\nq2", "\n\nq2")).lines["line"].to_list() == [3, 4, 6]


def test_a_run_of_one_line_without_a_line_end_is_read(tmp_path):
    assert rows(read(tmp_path, "q Q0 d 1 0.5 t")) == [("q", "d", 0.5)]


@pytest.mark.parametrize("separator", [" ", "\t", "   ", " \t ", "\t\t"])
def test_any_blanks_and_tabs_separate_the_columns(tmp_path, separator):
    assert rows(read(tmp_path, TREC.replace(" ", separator))) == ROWS


def test_blanks_before_and_after_a_line_do_not_count(tmp_path):
    assert rows(read(tmp_path, "".join(f"  {line} \t\n" for line in TREC.splitlines()))) == ROWS


def test_lines_may_use_different_separators(tmp_path):
    first, rest = TREC.split("\n", 1)
    assert rows(read(tmp_path, first.replace(" ", "\t") + "\n" + rest)) == ROWS


def test_windows_line_ends_are_line_ends(tmp_path):
    assert rows(read(tmp_path, TREC.replace("\n", "\r\n"))) == ROWS


def test_the_tag_does_not_keep_the_carriage_return_of_a_windows_line(tmp_path):
    assert rows(read(tmp_path, "q d 0.5\r\nq e 0.25\r\n")) == [("q", "d", 0.5), ("q", "e", 0.25)]


def test_old_macintosh_line_ends_do_not_turn_two_lines_into_one(tmp_path):
    assert rows(read(tmp_path, "1 10 1\r1 11 2\r")) == [("1", "10", -1.0), ("1", "11", -2.0)]


def test_a_byte_order_mark_is_not_part_of_the_first_query_id(tmp_path):
    assert rows(read(tmp_path, b"\xef\xbb\xbf" + TREC.encode())) == ROWS


def test_blank_lines_are_skipped(tmp_path):
    assert rows(read(tmp_path, "\n  \n" + TREC.replace("\n", "\n\n\t\n"))) == ROWS


def test_many_blank_lines_before_the_first_line_are_skipped(tmp_path):
    assert rows(read(tmp_path, "\n" * 60 + TREC)) == ROWS


def test_quotes_and_commas_in_ids_are_ordinary_characters(tmp_path):
    assert rows(read(tmp_path, '"q Q0 d,\'" 1 0.5 t\n#q Q0 d 1 0.5 t\n')) == [('"q', "d,'\"", 0.5), ("#q", "d", 0.5)]


def test_ids_that_look_like_numbers_stay_as_they_are_written(tmp_path):
    assert rows(read(tmp_path, "007 Q0 1e5 1 0.5 t\n7 Q0 00 1 0.5 t\n")) == [("007", "1e5", 0.5), ("7", "00", 0.5)]


def test_unicode_ids_are_kept(tmp_path):
    assert rows(read(tmp_path, "запрос Q0 文書🙂 1 0.5 t\n")) == [("запрос", "文書🙂", 0.5)]


@pytest.mark.parametrize("separator", [" ", "  "])
def test_a_no_break_space_is_part_of_an_id_and_no_separator(tmp_path, separator):
    text = "q Q0 d\u00a0x 1 0.5 t\nq Q0 e 2 0.25 t\n".replace(" ", separator)
    assert rows(read(tmp_path, text)) == [("q", "d\u00a0x", 0.5), ("q", "e", 0.25)]


def test_ids_of_ten_thousand_characters_are_kept(tmp_path):
    query, doc = "q" * 10_000, "d" * 10_000
    assert rows(read(tmp_path, f"{query} Q0 {doc} 1 0.5 t\n")) == [(query, doc, 0.5)]


def test_ids_of_ten_thousand_characters_are_kept_by_the_careful_reader(tmp_path):
    query, doc = "q" * 10_000, "d" * 10_000
    assert rows(read(tmp_path, f"{query}  Q0 {doc} 1 0.5 t\n")) == [(query, doc, 0.5)]


@pytest.mark.parametrize(
    ("text", "value"), [("+0.5", 0.5), (".5", 0.5), ("5.", 5.0), ("-3", -3.0), ("1e-3", 0.001), ("1E3", 1000.0)]
)
def test_scores_may_be_written_as_any_decimal_number(tmp_path, text, value):
    assert rows(read(tmp_path, f"q Q0 d 1 {text} t\n")) == [("q", "d", value)]


@LAW
@given(
    entries=st.lists(st.tuples(IDS, IDS, FINITE), min_size=1, max_size=8, unique_by=lambda e: e[:2]),
    separators=st.lists(st.sampled_from([" ", "\t", "  ", " \t"]), min_size=1, max_size=3),
    end=st.sampled_from(["\n", "\r\n", "\n\n", " \n"]),
    last=st.booleans(),
)
def test_a_run_written_in_any_separator_style_reads_back_the_same(tmp_path_factory, entries, separators, end, last):
    lines = [
        separators[n % len(separators)].join([query, "Q0", doc, str(n + 1), repr(score), "tag"])
        for n, (query, doc, score) in enumerate(entries)
    ]
    text = end.join(lines) + (end if last else "")
    assert rows(read(tmp_path_factory.getbasetemp(), text, "law.run")) == entries


# --- what is wrong with a TREC run ----------------------------------------------------------------


def test_a_missing_run_names_the_file(tmp_path):
    with pytest.raises(DataError, match=r"run .*gone\.run:.*such file"):
        read_run(tmp_path / "gone.run")


def test_a_folder_is_not_a_run(tmp_path):
    with pytest.raises(DataError, match="found a folder"):
        read_run(tmp_path)


def test_a_file_name_longer_than_the_system_allows_is_no_such_file(tmp_path):
    with pytest.raises(DataError, match="xxxx"):
        read_run(tmp_path / ("x" * 300))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read_names_the_file(tmp_path):
    path = write(tmp_path, TREC)
    path.chmod(0)
    with pytest.raises(DataError, match=r"a\.run"):
        read_run(path)


@pytest.mark.parametrize("name", ["a.run", "a.tsv", "a.jsonl"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\xef\xbb\xbf", b"\n \n\n", gzip.compress(b"", mtime=0)],
    ids=["nothing", "byte-order mark", "blank lines", "gzip of nothing"],
)
def test_an_empty_file_has_no_ranked_documents(tmp_path, name, content):
    with pytest.raises(DataError, match=rf"run .*{re.escape(name)}:") as caught:
        read(tmp_path, content, name)
    assert caught.value.code == "empty"


@pytest.mark.parametrize("line", ["q Q0 d 1 0.5", "q Q0 d 1 0.5 my tag", "q Q0 d 1 0.5 t extra more"])
def test_a_run_with_five_seven_or_eight_columns_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=rf"a\.run:4: expected the 6 columns .* found {len(line.split())}"):
        read(tmp_path, TREC + line + "\n")


def test_a_run_whose_first_line_has_seven_columns_names_line_one(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:1: expected the 6 columns .* found 7"):
        read(tmp_path, "q Q0 d 1 0.5 my tag\n" + TREC)


def test_a_first_line_of_the_wrong_width_after_blank_lines_is_named_by_its_own_number(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:3: expected the 6 columns .* found 4"):
        read(tmp_path, "\n\nq Q0 d 1\n")


def test_a_short_line_and_a_long_line_do_not_make_up_for_each_other(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:2: .* found 5"):
        read(tmp_path, "q Q0 a 1 0.5 t\nq Q0 b 2 0.4\nq Q0 c 3 0.3 t x\n")


def test_a_wrong_line_is_quoted_but_not_at_any_length(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:1: .* found 1 in 'xxx") as caught:
        read(tmp_path, "x" * 100_000 + "\n")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("score", ["nan", "NaN", "-nan", "abc", "1,5", "1_000", "0x10", "true"])
def test_a_score_that_is_no_number_names_the_file_and_line(tmp_path, score):
    with pytest.raises(DataError, match=rf"a\.run:4: .*the score, found '{score}'") as caught:
        read(tmp_path, TREC + f"q9 Q0 d 1 {score} t\n")
    assert (caught.value.code, caught.value.values) == ("bad-number", {"line": 4, "found": score})


def test_a_score_that_is_no_number_is_named_by_its_line_after_blank_lines(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:5:.*the score, found 'abc'"):
        read(tmp_path, "\n" + TREC + "q9 Q0 d 1 abc t\n")


def test_a_document_ranked_twice_for_a_query_names_both_lines(tmp_path):
    with pytest.raises(DataError, match=r"'d1'.*more than once.*'q1' \(lines 1 and 4\)"):
        read(tmp_path, TREC + "q1 Q0 d1 3 0.1 t\n")


def test_a_document_may_be_ranked_for_two_queries(tmp_path):
    assert read(tmp_path, TREC).lines.filter(pl.col("doc_id") == "d1").height == 2


def test_bytes_that_are_not_utf_8_name_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:4: expected UTF-8.*the byte 0xe9"):
        read(tmp_path, TREC.encode() + b"q Q0 caf\xe9 1 0.5 t\n")


def test_a_file_in_utf_16_is_refused_as_not_utf_8(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:1: expected UTF-8.*the byte 0xff"):
        read(tmp_path, TREC.encode("utf-16"))


def test_a_character_cut_off_at_the_end_of_the_file_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:4: expected UTF-8.*the byte 0xc3"):
        read(tmp_path, TREC.encode() + b"q Q0 caf\xc3")


# --- gzip -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.run.gz", "a.run", "a.RUN.GZ"])
def test_gzip_is_known_by_its_content_whatever_the_name(tmp_path, name):
    assert rows(read(tmp_path, gzip.compress(TREC.encode()), name)) == ROWS


def test_plain_text_with_the_ending_of_gzip_is_read_as_plain_text(tmp_path):
    assert rows(read(tmp_path, TREC, "a.run.gz")) == ROWS


def test_the_ending_before_gz_says_the_format(tmp_path):
    content = json_lines({"query_id": "q", "doc_id": "d", "score": 1})
    assert rows(read(tmp_path, gzip.compress(content.encode()), "a.jsonl.gz")) == [("q", "d", 1.0)]


def test_a_gzip_file_of_two_members_is_read_whole(tmp_path):
    first, second = TREC[:40].encode(), TREC[40:].encode()
    assert rows(read(tmp_path, gzip.compress(first) + gzip.compress(second))) == ROWS


def test_a_byte_order_mark_inside_gzip_is_removed(tmp_path):
    assert rows(read(tmp_path, gzip.compress(b"\xef\xbb\xbf" + TREC.encode()))) == ROWS


def test_a_gzip_file_cut_short_anywhere_is_refused(tmp_path):
    packed = gzip.compress(TREC.encode())
    for length in (2, 5, 12, len(packed) // 2, len(packed) - 5, len(packed) - 1):
        with pytest.raises(DataError, match=r"a\.run:.*or cut short"):
            read(tmp_path, packed[:length])


@pytest.mark.parametrize("place", [2, 20, -8, -1])
def test_a_damaged_gzip_file_is_refused(tmp_path, place):
    packed = bytearray(gzip.compress(TREC.encode()))
    packed[place] ^= 0xFF
    with pytest.raises(DataError, match=r"a\.run:.*or cut short"):
        read(tmp_path, bytes(packed))


def test_a_gzip_file_with_other_bytes_after_it_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:.*or cut short"):
        read(tmp_path, gzip.compress(TREC.encode()) + b"more")


# --- three columns --------------------------------------------------------------------------------


def test_three_columns_with_ranks_from_one_are_read_as_ms_marco_ranks(tmp_path):
    assert rows(read(tmp_path, "1\t10\t1\n1\t11\t2\n2\t10\t1\n")) == [("1", "10", -1), ("1", "11", -2), ("2", "10", -1)]


def test_three_columns_with_ranks_from_zero_are_read_as_ranks(tmp_path):
    assert orders(read(tmp_path, "q a 0\nq b 1\nq c 2\n"), "score") == {"q": ["a", "b", "c"]}


def test_ms_marco_ranks_need_not_come_in_order(tmp_path):
    assert orders(read(tmp_path, "q c 3\nq a 1\nq b 2\n"), "score") == {"q": ["a", "b", "c"]}


def test_three_columns_with_decimal_numbers_are_scores(tmp_path):
    assert orders(read(tmp_path, "q a 0.1\nq b 3\nq c 2\n"), "score") == {"q": ["b", "c", "a"]}


def test_three_columns_with_negative_numbers_are_scores(tmp_path):
    assert orders(read(tmp_path, "q a -3\nq b -1\nq c -2\n"), "score") == {"q": ["b", "c", "a"]}


@pytest.mark.parametrize("name", ["top.tsv", "top.run", "top.txt"])
def test_three_columns_are_read_whatever_the_ending(tmp_path, name):
    assert rows(read(tmp_path, "q\ta\t1\nq\tb\t2\n", name)) == [("q", "a", -1.0), ("q", "b", -2.0)]


def test_whole_numbers_that_start_above_one_may_be_ranks_or_scores_and_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:.*ranks or scores"):
        read(tmp_path, "q a 25\nq b 17\nq c 3\n")


def test_one_query_that_does_not_start_at_one_is_enough_to_refuse_whole_numbers(tmp_path):
    with pytest.raises(DataError, match="ranks or scores"):
        read(tmp_path, "q a 1\nq b 2\nr a 7\n")


def test_whole_numbers_with_gaps_that_end_at_one_are_not_taken_for_ranks(tmp_path):
    with pytest.raises(DataError, match="ranks or scores"):
        read(tmp_path, "q a 9\nq b 4\nq c 1\n")


def test_whole_numbers_that_repeat_in_a_query_are_not_taken_for_ranks(tmp_path):
    with pytest.raises(DataError, match="ranks or scores"):
        read(tmp_path, "q a 1\nq b 0\nq c 1\n")


@pytest.mark.parametrize("name", ["top.tsv", "top.run", "top.txt"])
def test_the_header_line_that_the_ambiguity_message_advises_is_understood(tmp_path, name):
    run = read(tmp_path, "query_id\tdoc_id\tscore\nq\ta\t25\nq\tb\t17\n", name)
    assert rows(run) == [("q", "a", 25.0), ("q", "b", 17.0)]


def test_a_header_may_be_separated_by_blanks_as_the_lines_are(tmp_path):
    run = read(tmp_path, "query_id doc_id score\nq a  25\n\nq b 17\n")
    assert (rows(run), run.lines["line"].to_list()) == ([("q", "a", 25.0), ("q", "b", 17.0)], [2, 4])


def test_a_line_of_words_that_a_header_has_is_no_header_where_it_has_numbers(tmp_path):
    assert rows(read(tmp_path, "topic Q0 docno 1 0.5 t\n")) == [("topic", "docno", 0.5)]


def test_blanks_belong_to_the_ids_where_tabs_make_the_columns(tmp_path):
    assert rows(read(tmp_path, "q 1\td 1\t0.5\n")) == [("q 1", "d 1", 0.5)]
    assert rows(read(tmp_path, "q 1\tQ0\td 1\t1\t0.5\tmy tag\n")) == [("q 1", "d 1", 0.5)]


@pytest.mark.parametrize("content", [TREC, "q a 1\n", "query_id\tdoc_id\tscore\nq\ta\t1\n", "q  Q0 a 1 1 t\n"])
def test_every_form_gives_the_same_columns(tmp_path, content):
    types = {"line": pl.Int64, "query_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.String}
    assert read(tmp_path, content).lines.schema == types


def test_a_whole_number_of_thirty_digits_is_no_crash(tmp_path):
    with pytest.raises(DataError, match=r"a\.run"):
        read(tmp_path, f"q a 1\nq b 1{'0' * 29}\n")


def test_a_third_column_that_is_no_number_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:2:.*the score, found 'x'"):
        read(tmp_path, "q a 1\nq b x\n")


def test_a_line_of_another_width_among_three_columns_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.run:3: expected 3.*lines before,.*4"):
        read(tmp_path, "q a 1\n\nq b 2 x\n")


def test_a_document_repeated_in_three_columns_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"'a'.*more than once.*'q'"):
        read(tmp_path, "q a 1\nq a 2\n")


# --- named columns --------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["query_id\tdoc_id\tscore", "qid\tdocno\tscore", "Topic\tPID\tScore"])
def test_named_columns_are_found_by_any_of_their_names(tmp_path, header):
    assert rows(read(tmp_path, f"{header}\nq\ta\t25\nq\tb\t17\n", "a.tsv")) == [("q", "a", 25.0), ("q", "b", 17.0)]


def test_named_columns_may_come_in_any_order_among_others(tmp_path):
    text = "tag\tscore\tdoc_id\tlang\tquery_id\nt\t0.5\td\ten\tq\n"
    assert rows(read(tmp_path, text, "a.tsv")) == [("q", "d", 0.5)]


def test_a_rank_column_stands_in_for_a_score(tmp_path):
    run = read(tmp_path, "query_id\tdoc_id\trank\nq\ta\t7\nq\tb\t5\n", "a.tsv")
    assert orders(run, "score") == {"q": ["b", "a"]}


def test_the_score_column_goes_before_the_rank_column(tmp_path):
    run = read(tmp_path, "query_id\tdoc_id\trank\tscore\nq\ta\t1\t0.5\n", "a.tsv")
    assert rows(run) == [("q", "a", 0.5)]


def test_named_ids_may_hold_blanks_and_quotes(tmp_path):
    text = 'query_id\tdoc_id\tscore\nq 1\ta "b\t0.5\n'
    assert rows(read(tmp_path, text, "a.tsv")) == [("q 1", 'a "b', 0.5)]


def test_named_columns_with_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path):
    content = b"\xef\xbb\xbfquery_id\tdoc_id\tscore\r\nq\ta\t0.5\r\n"
    assert rows(read(tmp_path, content, "a.tsv")) == [("q", "a", 0.5)]


@pytest.mark.parametrize("text", ["q\ta\t0.5\n\nq\tb\t0.4\n", "\nq\ta\t0.5\nq\tb\t0.4\n", "q\ta\t0.5\nq\tb\t0.4\n\n"])
def test_blank_lines_under_a_header_are_skipped(tmp_path, text):
    run = read(tmp_path, "query_id\tdoc_id\tscore\n" + text, "a.tsv")
    assert rows(run) == [("q", "a", 0.5), ("q", "b", 0.4)]


def test_a_header_alone_has_no_ranked_documents(tmp_path):
    with pytest.raises(DataError, match="no ranked documents"):
        read(tmp_path, "query_id\tdoc_id\tscore\n", "a.tsv")


def test_a_header_without_score_or_rank_says_what_was_found(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv: ") as caught:
        read(tmp_path, "query_id\tdoc_id\tweight\nq\ta\t1\n", "a.tsv")
    assert (caught.value.code, caught.value.values) == ("missing-column", {"found": ["query_id", "doc_id", "weight"]})


def test_a_named_score_that_is_no_number_names_its_line_and_itself(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3:.*the score, found 'abc'"):
        read(tmp_path, "query_id\tdoc_id\tscore\nq\ta\t1\nq\tb\tabc\n", "a.tsv")


def test_a_named_column_without_a_value_names_its_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:3: the column doc_id.*no value"):
        read(tmp_path, "query_id\tdoc_id\tscore\nq\ta\t1\nq\t\t0.5\n", "a.tsv")


def test_a_repeat_under_a_header_names_the_lines_of_the_file(tmp_path):
    with pytest.raises(DataError, match=r"\(lines 2 and 3\)"):
        read(tmp_path, "query_id\tdoc_id\tscore\nq\ta\t1\nq\ta\t0.5\n", "a.tsv")


@pytest.mark.parametrize("line", ["q\tb", "q\tb\t0.5\tx"])
def test_a_line_with_other_columns_than_the_header_names_the_file_and_line(tmp_path, line):
    with pytest.raises(DataError, match=r"a\.tsv:3: "):
        read(tmp_path, f"query_id\tdoc_id\tscore\nq\ta\t1\n{line}\n", "a.tsv")


def test_a_tsv_file_with_six_columns_is_read_as_trec(tmp_path):
    assert rows(read(tmp_path, TREC.replace(" ", "\t"), "a.tsv")) == ROWS


def test_a_tsv_file_with_four_columns_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.tsv:1: .*found 4"):
        read(tmp_path, "q\ta\t1\tx\n", "a.tsv")


# --- JSON Lines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl", "a.ndjson"])
def test_json_lines_are_read(tmp_path, name):
    content = json_lines(
        {"query_id": "q", "doc_id": "a", "score": 0.5}, {"score": "0.25", "query_id": "q", "doc_id": "b"}
    )
    assert rows(read(tmp_path, content, name)) == [("q", "a", 0.5), ("q", "b", 0.25)]


def test_json_ids_may_be_numbers(tmp_path):
    assert rows(read(tmp_path, json_lines({"qid": 7, "pid": 12, "rank": 3}), "a.jsonl")) == [("7", "12", -3.0)]


def test_json_lines_may_be_blank_and_end_as_in_windows(tmp_path):
    content = json_lines({"query_id": "q", "doc_id": "a", "score": 0.5}).replace("\n", "\r\n\r\n")
    assert rows(read(tmp_path, content, "a.jsonl")) == [("q", "a", 0.5)]


def test_json_line_ends_inside_ids_are_kept(tmp_path):
    content = json_lines({"query_id": "q\n1", "doc_id": "a\u2028b", "score": 0.5})
    assert rows(read(tmp_path, content, "a.jsonl")) == [("q\n1", "a\u2028b", 0.5)]


def test_a_json_key_that_is_null_for_a_hundred_lines_and_then_is_not_is_read(tmp_path):
    items = [
        {
            "query_id": "q",
            "doc_id": str(n),
            "score": -n,
            "tag": "x" if n > 120 else None,
            "rank": None if n < 150 else n,
        }
        for n in range(160)
    ]
    assert len(rows(read(tmp_path, json_lines(*items), "a.jsonl"))) == 160


def test_broken_json_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:3: not valid JSON"):
        read(tmp_path, '\n{"query_id":"q","doc_id":"d","score":1}\n{"query_id":\n', "a.jsonl")


def test_json_that_is_no_object_names_the_file_and_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1: expected an object"):
        read(tmp_path, '["q", "d", 1]\n', "a.jsonl")


def test_json_without_a_score_says_what_was_found(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl: ") as caught:
        read(tmp_path, json_lines({"query_id": "q", "doc_id": "d"}), "a.jsonl")
    assert (caught.value.code, caught.value.values) == ("missing-column", {"found": ["query_id", "doc_id"]})


def test_a_json_line_without_a_document_names_its_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:2: the column doc_id.*no value"):
        read(
            tmp_path, json_lines({"query_id": "q", "doc_id": "d", "score": 1}, {"query_id": "q", "score": 1}), "a.jsonl"
        )


def test_a_json_line_with_an_empty_document_id_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, json_lines({"query_id": "q", "doc_id": "", "score": 1}), "a.jsonl")


def test_the_line_numbers_of_json_count_blank_lines(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:3: the column doc_id.*no value"):
        read(tmp_path, "\n\n" + json_lines({"query_id": "q", "doc_id": None, "score": 1}), "a.jsonl")


@pytest.mark.parametrize("score", ["NaN", '"abc"', "null", "true"])
def test_a_json_score_that_is_no_number_names_its_line(tmp_path, score):
    with pytest.raises(DataError, match=r"a\.jsonl:1:.*as the score"):
        read(tmp_path, f'{{"query_id":"q","doc_id":"d","score":{score}}}\n', "a.jsonl")


def test_a_json_score_that_is_no_number_is_quoted(tmp_path):
    with pytest.raises(DataError, match="the score, found 'abc'"):
        read(tmp_path, json_lines({"query_id": "q", "doc_id": "d", "score": "abc"}), "a.jsonl")


def test_strange_and_many_keys_are_listed_on_one_printable_line(tmp_path):
    with pytest.raises(DataError, match="and 981 more") as caught:
        read(tmp_path, json_lines({"\ud800\n": 1} | {str(number): 1 for number in range(1000)}), "a.jsonl")
    assert str(caught.value).isprintable()


def test_a_json_id_that_is_a_list_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, json_lines({"query_id": "q", "doc_id": ["d"], "score": 1}), "a.jsonl")


def test_a_json_number_of_five_thousand_digits_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, f'{{"query_id":{"1" * 5000},"doc_id":"d","score":1}}\n', "a.jsonl")


def test_json_nested_without_end_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, "[" * 100_000, "a.jsonl")


def test_half_a_surrogate_pair_in_a_json_id_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"a\.jsonl:1"):
        read(tmp_path, '{"query_id":"q","doc_id":"\\ud800","score":1}\n', "a.jsonl")


# --- Parquet --------------------------------------------------------------------------------------


def parquet(folder, columns, name="a.parquet"):
    path = folder / name
    pl.DataFrame(columns).write_parquet(path)
    return path


def test_parquet_is_read(tmp_path):
    path = parquet(tmp_path, {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [0.5, 0.25]})
    assert rows(read_run(path)) == [("q", "a", 0.5), ("q", "b", 0.25)]


def test_parquet_ids_and_scores_may_be_whole_numbers(tmp_path):
    path = parquet(tmp_path, {"qid": [1], "docid": [2], "score": [3]})
    assert rows(read_run(path)) == [("1", "2", 3.0)]


def test_a_parquet_rank_stands_in_for_a_score(tmp_path):
    path = parquet(tmp_path, {"query_id": ["q", "q"], "doc_id": ["a", "b"], "rank": [2, 1]})
    assert orders(read_run(path), "score") == {"q": ["b", "a"]}


@LAW
@given(scores=st.lists(FINITE, min_size=1, max_size=10))
def test_parquet_scores_lose_nothing(tmp_path_factory, scores):
    columns = {"query_id": ["q"] * len(scores), "doc_id": [str(n) for n in range(len(scores))], "score": scores}
    run = read_run(parquet(tmp_path_factory.getbasetemp(), columns, "law.parquet"))
    assert [row[2] for row in rows(run)] == scores


@pytest.mark.parametrize("content", [b"", b"PAR1", b"this is no Parquet file at all"])
def test_a_file_that_is_not_parquet_is_refused(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.parquet:.*readable Parquet file"):
        read(tmp_path, content, "a.parquet")


def test_a_parquet_file_cut_short_is_refused(tmp_path):
    content = parquet(tmp_path, {"query_id": ["q"], "doc_id": ["a"], "score": [0.5]}).read_bytes()
    with pytest.raises(DataError, match=r"a\.parquet:.*readable Parquet file"):
        read(tmp_path, content[:-20], "a.parquet")


def test_a_parquet_file_with_damaged_pages_is_refused(tmp_path):
    count = 20_000
    columns = {
        "query_id": ["q"] * count,
        "doc_id": [f"d{n}" for n in range(count)],
        "score": [n * 0.37 for n in range(count)],
    }
    content = bytearray(parquet(tmp_path, columns).read_bytes())
    content[len(content) // 3 : len(content) // 3 + 2000] = b"\xff" * 2000
    with pytest.raises(DataError, match=r"a\.parquet:.*readable Parquet file"):
        read(tmp_path, bytes(content), "a.parquet")


def test_parquet_without_our_columns_says_what_was_found(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet: expected the columns .*x, y"):
        read_run(parquet(tmp_path, {"x": [1], "y": [2]}))


def test_parquet_without_rows_has_no_ranked_documents(tmp_path):
    with pytest.raises(DataError, match="no ranked documents"):
        read_run(parquet(tmp_path, {"query_id": [], "doc_id": [], "score": []}))


@pytest.mark.parametrize("score", [None, float("nan")])
def test_a_parquet_score_that_is_no_number_names_its_row(tmp_path, score):
    path = parquet(tmp_path, {"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [0.5, score]})
    with pytest.raises(DataError, match=r"a\.parquet:2:.*as the score"):
        read_run(path)


def test_a_parquet_row_without_a_query_names_its_row(tmp_path):
    path = parquet(tmp_path, {"query_id": ["q", None], "doc_id": ["a", "b"], "score": [0.5, 0.4]})
    with pytest.raises(DataError, match=r"a\.parquet:2: ") as caught:
        read_run(path)
    assert (caught.value.code, caught.value.values) == ("no-value", {"line": 2, "column": "query_id"})


@pytest.mark.parametrize("score", [[1.0], True, {"a": 1}])
def test_parquet_scores_that_are_no_numbers_are_refused(tmp_path, score):
    with pytest.raises(DataError, match=r"a\.parquet:.*the column score"):
        read_run(parquet(tmp_path, {"query_id": ["q"], "doc_id": ["d"], "score": [score]}))


def test_parquet_columns_of_categories_are_read(tmp_path):
    columns = {"query_id": pl.Series(["q", "q"], dtype=pl.Categorical), "doc_id": ["a", "b"], "score": ["2", "1"]}
    assert rows(read_run(parquet(tmp_path, columns))) == [("q", "a", 2.0), ("q", "b", 1.0)]


@pytest.mark.parametrize("doc", [["d"], b"\xff", {"a": 1}])
def test_parquet_ids_that_are_no_text_are_refused(tmp_path, doc):
    with pytest.raises(DataError, match=r"a\.parquet.*doc_id"):
        read_run(parquet(tmp_path, {"query_id": ["q"], "doc_id": [doc], "score": [0.5]}))


# --- the format asked for -------------------------------------------------------------------------


def test_a_format_that_is_asked_for_goes_before_the_ending(tmp_path):
    content = json_lines({"query_id": "q", "doc_id": "d", "score": 1})
    assert rows(read(tmp_path, content, "a.run", form="jsonl")) == [("q", "d", 1.0)]


def test_parquet_can_be_asked_for_by_name(tmp_path):
    path = parquet(tmp_path, {"query_id": ["q"], "doc_id": ["a"], "score": [0.5]}, "a.bin")
    assert rows(read_run(path, "parquet")) == [("q", "a", 0.5)]


def test_trec_can_be_asked_for_by_name(tmp_path):
    assert rows(read(tmp_path, TREC, "a.jsonl", form="trec")) == ROWS


def test_an_unknown_format_lists_the_known_ones(tmp_path):
    with pytest.raises(ConfigError, match=r"run format 'xml':.*jsonl, parquet"):
        read(tmp_path, TREC, form="xml")


# --- interleaved queries --------------------------------------------------------------------------


def test_the_lines_of_a_query_need_not_stand_together(tmp_path):
    run = read(tmp_path, "q Q0 a 1 3 t\nr Q0 a 1 3 t\nq Q0 b 2 2 t\nr Q0 c 2 2 t\n")
    assert orders(run) == {"q": ["a", "b"], "r": ["a", "c"]}


@LAW
@given(
    rankings=st.dictionaries(IDS, st.lists(IDS, min_size=1, max_size=5, unique=True), min_size=1, max_size=4),
    seed=st.integers(0, 1000),
)
def test_however_queries_are_interleaved_each_keeps_its_order(tmp_path_factory, rankings, seed):
    turns = [query for query, docs in rankings.items() for _ in docs]
    random.Random(seed).shuffle(turns)
    left = {query: iter(docs) for query, docs in rankings.items()}
    text = "".join(f"{query} Q0 {next(left[query])} 1 0 t\n" for query in turns)
    assert orders(read(tmp_path_factory.getbasetemp(), text, "law.run")) == rankings


# --- as the published scripts read ----------------------------------------------------------------


def test_the_published_reading_of_a_clean_run_is_the_same_and_has_no_notes(tmp_path):
    run = read(tmp_path, TREC, published=True)
    assert (rows(run), run.notes) == (ROWS, [])


def test_the_published_reading_leaves_out_lines_that_are_not_six_columns_and_counts_them(tmp_path):
    run = read(tmp_path, TREC + "q3 Q0 d1 1 0.5 my tag\nq3  Q0 d1 1 0.5 t\nq3 d1 1\n", published=True)
    assert rows(run) == ROWS
    assert [(note.code, note.values) for note in run.notes] == [("bad-width", {"lines": 3})]


def test_the_published_reading_does_not_count_blank_lines_as_left_out(tmp_path):
    run = read(tmp_path, "\n" + TREC + "\n  \n", published=True)
    assert (rows(run), run.notes) == (ROWS, [])


def test_the_published_reading_takes_six_columns_between_single_tabs(tmp_path):
    assert rows(read(tmp_path, TREC.replace(" ", "\t"), published=True)) == ROWS


def test_the_published_reading_takes_windows_line_ends(tmp_path):
    assert rows(read(tmp_path, TREC.replace("\n", "\r\n"), published=True)) == ROWS


def test_the_published_reading_starts_a_query_anew_when_it_comes_back_and_says_so(tmp_path):
    run = read(tmp_path, "q Q0 a 1 3 t\nq Q0 b 2 2 t\nr Q0 a 1 3 t\nq Q0 c 3 1 t\n", published=True)
    assert orders(run) == {"r": ["a"], "q": ["c"]}
    assert len(run.notes) == 1 and run.notes[0].startswith("a.run: 2 lines")


def test_the_published_reading_keeps_only_the_last_block_of_a_query_that_comes_back_twice(tmp_path):
    blocks = "q Q0 a 1 3 t\nr Q0 a 1 3 t\nq Q0 b 2 2 t\nr Q0 b 2 2 t\nq Q0 c 3 1 t\n"
    run = read(tmp_path, blocks, published=True)
    assert orders(run) == {"r": ["b"], "q": ["c"]}
    assert "3 lines" in run.notes[0]


def test_the_published_reading_keeps_the_line_numbers_of_the_file(tmp_path):
    run = read(tmp_path, "x\nq Q0 a 1 3 t\nr Q0 a 1 3 t\nq Q0 b 2 2 t\n", published=True)
    assert run.lines["line"].to_list() == [3, 4]


def test_the_published_reading_keeps_repeated_documents(tmp_path):
    assert orders(read(tmp_path, "q Q0 a 1 3 t\nq Q0 a 2 2 t\n", published=True)) == {"q": ["a", "a"]}


@pytest.mark.parametrize("content", ["q a 1\nq b 2\n", '{"query_id":"q","doc_id":"a","score":1}\n'])
def test_the_published_reading_of_a_file_without_six_columns_says_why_nothing_is_left(tmp_path, content):
    with pytest.raises(DataError, match="6 columns"):
        read(tmp_path, content, published=True)


@LAW
@given(queries=st.lists(st.sampled_from(["q", "r", "s"]), min_size=1, max_size=15))
def test_the_published_reading_keeps_of_each_query_its_last_block_and_counts_the_rest(tmp_path_factory, queries):
    kept, current = {}, None
    for number, query in enumerate(queries):
        if query != current:
            kept[query], current = [], query
        kept[query].append(f"d{number}")
    text = "".join(f"{query} Q0 d{number} 1 0 t\n" for number, query in enumerate(queries))
    run = read(tmp_path_factory.getbasetemp(), text, "law.run", published=True)
    lost = len(queries) - sum(map(len, kept.values()))
    assert orders(run) == kept
    assert [note.split()[1] for note in run.notes] == ([str(lost)] if lost else [])


def test_a_json_ending_means_json_lines_as_it_does_for_documents(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"query_id": "q1", "doc_id": "d1", "score": 2}\n')
    assert read_run(path).lines["doc_id"].to_list() == ["d1"]


def test_three_columns_are_refused_where_trec_is_asked_for(tmp_path):
    path = tmp_path / "a.run"
    path.write_text("q1\td1\t1\nq1\td2\t2\n")
    assert read_run(path).lines.height == read_run(path, "tsv").lines.height == 2
    with pytest.raises(DataError, match=r"a\.run:1: expected the 6.*TREC run"):
        read_run(path, "trec")
    path.write_text("query_id\tdoc_id\tscore\nq1\td1\t1\n")
    with pytest.raises(DataError, match=r"a\.run:1: expected the 6 columns"):
        read_run(path, "trec")
