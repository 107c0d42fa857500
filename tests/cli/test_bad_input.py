"""Wrong input: one line that says what and where, the exit code of its kind, and never a traceback."""

from pathlib import Path

import pytest

from askew.core import errors

ALL = "--docs docs.tsv --qrels qrels.txt"


@pytest.mark.parametrize(
    ("kind", "code"),
    [("ConfigError", 2), ("DataError", 3), ("MissingExtra", 4), ("StoreError", 5), ("StageError", 6)],
)
def test_each_kind_of_error_has_its_own_exit_code(kind, code):
    assert getattr(errors, kind).exit_code == code


# Files that are not there or cannot be read


@pytest.mark.parametrize(
    "command",
    [
        "measure nowhere",
        "measure old.run --docs nowhere",
        "measure old.run --qrels nowhere",
        f"measure old.run {ALL} --queries nowhere",
        f"measure old.run {ALL} --background nowhere",
        f"measure old.run {ALL} --lexicon nowhere.toml",
        f"compare old.run nowhere {ALL}",
        "annotate nowhere",
    ],
)
def test_a_missing_file_is_named(askew, command):
    askew(command).refused(3, "nowhere")


def test_a_folder_is_not_a_run(askew):
    Path("folder").mkdir()
    askew(f"measure folder {ALL}").refused(3, "folder", "expected a file")


def test_a_folder_without_documents_is_not_a_collection(askew):
    Path("folder").mkdir()
    askew("measure old.run --docs folder").refused(3, "folder", ".tsv")


@pytest.mark.parametrize("option", ["run", "docs", "qrels", "queries", "lexicon"])
def test_text_that_is_not_utf8_is_named_with_its_byte(askew, option):
    contents = {
        "run": b"q1 Q0 d\xe9 1 1.0 tag\n",
        "docs": b"d1\tcaf\xe9\n",
        "qrels": b"q1 0 d\xe9 1\n",
        "queries": b"q1\tcaf\xe9\n",
        "lexicon": b"[groups]\na = ['caf\xe9']\nb = ['x']\n",
    }
    name = "latin.toml" if option == "lexicon" else "latin.txt"
    Path(name).write_bytes(contents[option])
    given = {"run": f"measure {name} {ALL}"}.get(option, f"measure old.run {ALL} --{option} {name}")
    askew(given).refused(3, name, "UTF-8")


def test_a_damaged_gzip_file_is_named(askew):
    Path("run.gz").write_bytes(b"\x1f\x8b\x08\x00 not gzip")
    askew(f"measure run.gz {ALL}").refused(3, "run.gz", "gzip")


@pytest.mark.parametrize("name", ["run.parquet", "docs.parquet", "qrels.parquet"])
def test_a_damaged_parquet_file_is_named(askew, files, name):
    files.text(name, "not parquet")
    option = name.split(".", maxsplit=1)[0]
    command = f"measure {name} {ALL}" if option == "run" else f"measure old.run {ALL} --{option} {name}"
    askew(command).refused(3, name)


# Runs


@pytest.mark.parametrize("line", ["q1 d1", "q1 Q0 d1 1", "q1 Q0 d1 1 1.0", "q1 Q0 d1 1 1.0 tag more"])
def test_a_run_of_wrong_columns_is_named_with_its_line(askew, files, line):
    files.text("bad.run", f"q1 Q0 d1 1 9.0 tag\n{line}\n")
    askew(f"measure bad.run {ALL}").refused(3, "bad.run:2", "6 columns", f"found {len(line.split())}")


def test_the_line_of_wrong_columns_is_counted_with_the_blank_lines_before_it(askew, files):
    files.text("bad.run", "\n\nq1 Q0 d1 1\n")
    askew(f"measure bad.run {ALL}").refused(3, "bad.run:3")


@pytest.mark.parametrize("score", ["nan", "NaN", "high", "1,5"])
def test_a_score_that_is_no_number_is_named_with_its_line(askew, files, score):
    files.text("bad.run", f"q1 Q0 d1 1 9.0 tag\nq1 Q0 d2 2 {score} tag\n")
    askew(f"measure bad.run {ALL}").refused(3, "bad.run:2", "number", score)


@pytest.mark.parametrize("name", ["empty.run", "empty.tsv", "empty.jsonl"])
@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_run_is_called_empty(askew, files, name, text):
    files.text(name, text)
    askew(f"measure {name} {ALL}").refused(3, name, "no ranked documents")


def test_a_document_ranked_twice_is_named_with_its_lines(askew, files):
    files.run("bad.run", {"q1": ["d1", "d2", "d1"]})
    askew(f"measure bad.run {ALL}").refused(3, "'d1'", "'q1'", "lines 1 and 3")


def test_three_columns_that_may_be_ranks_or_scores_are_refused(askew, files):
    files.text("bad.run", "q1 d1 7\nq1 d2 5\n")
    askew(f"measure bad.run {ALL}").refused(3, "bad.run", "ranks or scores")


def test_a_rank_too_large_for_any_computer_is_refused(askew, files):
    files.text("bad.run", "q1 d1 1\nq1 d2 99999999999999999999\n")
    askew(f"measure bad.run {ALL}").refused(3, "bad.run")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[1]",
        '{"query_id": "q1", "doc_id": "d1"}',
        '{"query_id": null, "doc_id": "d1", "score": 1}',
        '{"query_id": "q1", "doc_id": "\\ud800", "score": 1}',
        "[" * 100_000,
    ],
    ids=["not JSON", "no object", "no score", "no query", "half a character", "very deep"],
)
def test_a_wrong_line_of_json_is_refused(askew, files, line):
    files.text("bad.jsonl", f"{line}\n")
    askew(f"measure bad.jsonl {ALL}").refused(3, "bad.jsonl")


def test_a_json_run_whose_scores_begin_with_nulls_is_refused_for_its_scores(askew, files):
    rows = [f'{{"query_id": "q1", "doc_id": "d{i}", "score": {"null" if i < 150 else "1.0"}}}\n' for i in range(200)]
    files.text("bad.jsonl", "".join(rows))
    askew(f"measure bad.jsonl {ALL}").refused(3, "bad.jsonl", "score")


def test_a_preset_that_reads_only_trec_says_so_of_another_format(askew, files):
    files.text("other.jsonl", '{"query_id": "q1", "doc_id": "d1", "score": 1}\n')
    result = askew("measure other.jsonl --docs docs.tsv --preset rekabsaz2020 --json")
    assert result.code == 0 or "no ranked documents" not in result.err


@pytest.mark.parametrize("again", ["old.run", "./old.run", "other/../old.run"])
def test_the_same_run_twice_is_refused_and_not_measured_once(askew, again):
    askew(f"measure old.run {again} {ALL}").refused(2, "old.run'", "twice")
    askew(f"compare old.run {again} {ALL}").refused(2, "old.run'", "twice")


def test_an_unknown_run_format_is_refused(askew):
    askew(f"measure old.run {ALL} --run-format xml").refused(2, "'xml'", "jsonl")


# Documents


@pytest.mark.parametrize("policy", ["drop", "skip"])
@pytest.mark.parametrize("measure", ["RaB@10", "ARaB@10", "LexiconShare@10", "FaiRR@10", "NFaiRR@10"])
def test_a_run_none_of_whose_documents_has_a_text_is_refused(askew, files, policy, measure):
    files.docs("other.tsv", {"x": "he"})
    result = askew(f"measure old.run --docs other.tsv --missing {policy} --measures {measure}")
    result.refused(3, "old.run")


def test_a_document_that_stands_there_twice_is_named(askew, files):
    files.text("bad.tsv", "d1\the\nd2\tx\nd3\tx\nd4\tx\nd1\tshe\n")
    askew("measure old.run --docs bad.tsv").refused(3, "'d1'", "more than once")


@pytest.mark.parametrize("line", ["d2 no tab", "d2\ttwo\ttabs", "\tno id"])
def test_a_wrong_line_of_documents_is_named(askew, files, line):
    files.text("bad.tsv", f"d1\tfine\n{line}\n")
    askew("measure old.run --docs bad.tsv").refused(3, "bad.tsv:2")


@pytest.mark.parametrize(
    "line",
    ["{", "[1]", '{"id": "d1"}', '{"text": "x"}', '{"id": "d1", "text": "\\ud800"}'],
    ids=["not JSON", "no object", "no text", "no id", "half a character"],
)
def test_a_wrong_json_document_is_named(askew, files, line):
    files.text("bad.jsonl", f"{line}\n")
    askew("measure old.run --docs bad.jsonl").refused(3, "bad.jsonl")


def test_fields_that_a_document_lacks_are_named(askew, files):
    files.text("docs.jsonl", '{"id": "d1", "text": "x"}\n')
    askew("measure old.run --docs docs.jsonl --fields title").refused(3, "docs.jsonl:1", "title")


# Judgements and queries


def test_a_query_without_judgement_is_named(askew, files):
    files.text("qrels.txt", "q1 0 d2 1\n")
    askew("measure old.run --qrels qrels.txt").refused(3, "'q2'", "--unjudged")


@pytest.mark.parametrize(
    "line", ["q1 d1", "q1 0 d1 1 x", "q1 0 d1 high", "q1 0 d1 0.5", "q1 0 d1 99999999999999999999"]
)
def test_a_wrong_judgement_is_named_with_its_line(askew, files, line):
    files.text("bad.txt", f"q1 0 d2 1\n{line}\n")
    askew("measure old.run --qrels bad.txt").refused(3, "bad.txt:2")


def test_a_document_judged_twice_and_differently_is_named(askew, files):
    files.text("bad.txt", "q1 0 d2 1\nq2 0 d1 1\nq1 0 d2 2\n")
    askew("measure old.run --qrels bad.txt").refused(3, "bad.txt:", "'d2'", "'q1'", "two different judgements")


@pytest.mark.parametrize(
    ("name", "text"),
    [("qrels.jsonl", '{"query_id": "q1"}\n'), ("qrels.jsonl", "7\n"), ("empty.txt", ""), ("header.tsv", "query-id\n")],
)
def test_judgements_that_are_none_are_refused(askew, files, name, text):
    files.text(name, text)
    askew(f"measure old.run --qrels {name}").refused(3, name)


def test_half_a_character_in_the_judgements_is_refused(askew, files):
    files.text("bad.jsonl", '{"query_id": "q1", "doc_id": "\\ud800", "relevance": 1}\n')
    askew("measure old.run --qrels bad.jsonl").refused(3, "bad.jsonl")


@pytest.mark.parametrize(
    ("name", "text"),
    [("q.tsv", ""), ("q.tsv", "no tab\n"), ("q.tsv", "q1\ta\nq1\tb\n"), ("q.csv", "q1,x\n"), ("q.jsonl", "7\n")],
)
def test_wrong_queries_are_refused(askew, files, name, text):
    files.text(name, text)
    askew(f"measure old.run {ALL} --queries {name}").refused(3, name)


def test_queries_that_the_run_has_none_of_are_refused(askew, files):
    files.text("q.tsv", "q9\tx\n")
    askew(f"measure old.run {ALL} --queries q.tsv").refused(3, "old.run")


def test_a_label_that_no_query_has_or_without_queries_is_refused(askew, files):
    files.text("q.csv", "q1,x,n\n")
    askew(f"measure old.run {ALL} --queries q.csv --label z").refused(3, "'z'", "the labels in this file are 'n'")
    askew(f"measure old.run {ALL} --label n").refused(2, "--queries")


def test_a_background_without_a_query_of_the_run_is_refused(askew, files):
    files.run("background.run", {"q1": ["d3"]})
    command = "measure old.run --docs docs.tsv --background background.run --measures NFaiRR@10"
    askew(command).refused(3, "'q2'", "unmatched=absent")


def test_a_preset_for_the_same_queries_refuses_runs_of_other_queries(askew, files):
    files.run("new.run", {"q1": ["d1"]})
    askew("measure old.run new.run --docs docs.tsv --preset bigdeli2022").refused(3, "new.run", "'q2'")


# What must be given


def test_nothing_to_measure_with_is_a_wrong_setting(askew):
    askew("measure old.run").refused(2, "--docs", "--qrels")


@pytest.mark.parametrize(
    ("measure", "option"), [("RR@10", "--qrels"), ("ARaB@10", "--docs"), ("NFaiRR(background=run)@10", "--background")]
)
def test_an_option_that_a_measure_needs_is_asked_for_with_the_same_exit_code(askew, measure, option):
    given = "" if option != "--background" else "--docs docs.tsv"
    askew(f"measure old.run {given} --measures '{measure}'").refused(2, option)


# Names and measures


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--measures ARab@10", ["unknown measure 'ARab'", "did you mean 'ARaB'"]),
        ("--measures arab@10", ["did you mean 'ARaB'"]),
        ("--measures 'RR@10 completelyelse@10'", ["unknown measure 'completelyelse'"]),
        ("--preset rekabsaz", ["unknown preset", "did you mean 'rekabsaz2020'"]),
        ("--lexicon gendre", ["unknown lexicon", "did you mean 'gender'"]),
        ("--tokens wrod", ["unknown tokenizer", "did you mean 'word'"]),
        ("--measures 'ARaB(sing=abs)@10'", ["unknown parameter 'sing'", "did you mean 'sign'"]),
        ("--measures 'ARaB(tx)@10'", ["kind must be one of tc, tf, bool", "'tx'"]),
        ("--measures 'ARaB(groups=male-femal)@10'", ["unknown group", "did you mean 'female'"]),
        ("--missing later", ["--missing: expected one of error, zero", "'later'"]),
        ("--unjudged later", ["--unjudged: expected one of", "'later'"]),
        ("--order rank", ["--order: expected one of score, file", "'rank'"]),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest_known(askew, options, words):
    askew(f"measure old.run {ALL} {options}").refused(2, *words)


@pytest.mark.parametrize(
    "measure",
    ["RR@0", "RR@x", "RR@", "RR@-1", "RR@1.5", "ARaB(tf@10", "ARaB(tf))@10", "(tf)@10", "ARaB(tf,,abs)@10", "@10"],
)
def test_a_measure_that_cannot_be_read_is_shown(askew, measure):
    askew(f"measure old.run {ALL} --measures '{measure}'").refused(2, measure)


def test_an_unclosed_bracket_is_called_that_and_one_too_many_is_not(askew):
    askew(f"measure old.run {ALL} --measures 'RR@10 ARaB(tf@10'").refused(2, "a bracket is not closed")
    result = askew(f"measure old.run {ALL} --measures 'RR@10)'")
    result.refused(2)
    assert "not closed" not in result.err


@pytest.mark.parametrize(
    ("measure", "word"),
    [
        ("RR(rel=x)@10", "rel"),
        ("ARaB(tf,kind=tc)@10", "given twice"),
        ("ARaB(sign=abs,sign=abs)@10", "given twice"),
        ("ARaB(tf,tc)@10", "too many values without a parameter name"),
        ("ARaB(digits=x)@10", "digits"),
        ("ARaB(digits=1e400)@10", "digits"),
        ("LexiconShare(scale=1e999)@10", "scale"),
        ("NFaiRR(threshold=x)@10", "threshold"),
        ("NFaiRR(depth=x)@10", "depth"),
        ("NFaiRR(depth=0)@10", "depth"),
        ("NFaiRR(depth=1.5)@10", "depth"),
        ("NFaiRR(targets='female:1,male:1')@10", "targets"),
        ("NFaiRR(targets='female:nan,male:0.5')@10", "targets"),
        ("NFaiRR(groups=female)@10", "two groups"),
        ("nDCG(dcg=x)@10", "dcg"),
        ("nDCG@99999999999999999999", "nDCG"),
        ("P(rel=99999999999999999999)@10", "rel"),
        ("RR@10 RR@10", "requested twice"),
        ("", "no measure"),
    ],
)
def test_a_parameter_of_a_wrong_value_is_a_wrong_setting(askew, measure, word):
    askew(["measure", "old.run", *ALL.split(), "--background", "new.run", "--measures", measure]).refused(2, word)


@pytest.mark.parametrize("measure", ["P", "Recall", "Success"])
def test_a_measure_that_needs_a_cutoff_says_so(askew, measure):
    askew(f"measure old.run {ALL} --measures {measure}").refused(2, "cutoff")
    assert "object at 0x" not in askew(f"measure old.run {ALL} --measures {measure}").err


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("Bpref@10", ["Bpref", "takes no cutoff"]),
        ("BPM@10", ["BPM", "max_rel"]),
        ("NFaiRR(depth=True)@10", ["depth", "a whole number from 1"]),
        ("ARaB(digits=400)@10", ["digits", "from 0 to 15"]),
        ("NFaiRR(groups=female+female)@10", ["each named once"]),
        ("NFaiRR(groups=female+mael)@10", ["unknown group 'mael'", "did you mean 'male'"]),
        ("ARaB(lexicon='a.toml)@10 RR@10", ["the quote ' is not closed"]),
    ],
)
def test_what_can_never_be_computed_is_refused_with_what_was_expected(askew, measure, words):
    askew(["measure", "old.run", *ALL.split(), "--measures", measure]).refused(2, *words)


def test_an_unknown_measure_names_those_of_lean_and_where_the_others_are_listed(askew):
    result = askew(f"measure old.run {ALL} --measures Sucess@10")
    result.refused(2, "did you mean 'Success'", "NFaiRR", "askew list measures")
    assert "SetRelP" not in result.err


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--tokens wrod", "wrod"),
        ("--missing later", "later"),
        ("--lexicon gendre", "gendre"),
        ("--json --tsv", "--tsv"),
    ],
)
def test_an_option_is_wrong_also_where_no_measure_asks_for_it(askew, options, word):
    askew(f"measure old.run {ALL} --measures RR@10 {options}").refused(2, word)


def test_a_measure_whose_provider_is_not_installed_is_refused_with_a_whole_sentence(askew):
    result = askew(f"measure old.run {ALL} --measures alpha_nDCG@10")
    if result.code:
        result.refused(result.code, "alpha_nDCG")
        assert result.code in (2, 4)
        assert not result.err.rstrip().endswith(":")


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("own.toml", "groups = 3\n", "[groups]"),
        ("own.toml", "[groups\n", "TOML"),
        ("own.toml", "[groups]\na = []\nb = ['x']\n", "no terms"),
        ("own.toml", "nmae = 'x'\n[groups]\na = ['x']\n", "did you mean 'name'"),
        ("own.csv", "he,male,x\n", "own.csv:1"),
        ("own.csv", "", "no groups"),
        ("own.dic", "he\t1\n", "LIWC"),
        ("own.xml", "x", "own.xml"),
    ],
)
def test_a_wrong_lexicon_file_is_refused(askew, files, name, text, word):
    files.text(name, text)
    result = askew(f"measure old.run {ALL} --lexicon {name}")
    assert result.code in (2, 3)
    result.refused(result.code, word)


# The command line itself


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("measure", "RUNS"),
        ("compare old.run", "NEW"),
        ("annotate", "DOCS"),
        (f"measure old.run {ALL} --mesures RR@10", "--mesures"),
        (f"measure old.run {ALL} --seed many", "--seed"),
        (f"measure old.run {ALL} --docs", "--docs"),
        ("measur old.run", "measur"),
        ("demo extra", "extra"),
    ],
)
def test_a_command_that_cannot_be_read_is_a_wrong_setting_and_no_mistake_of_ours(askew, command, word):
    result = askew(command)
    assert (result.code, result.out) == (2, "")
    assert word.lower() in result.err.lower()
    assert "internal error" not in result.err and "Traceback" not in result.err


def test_a_negative_seed_is_a_wrong_setting(askew):
    askew(f"measure old.run {ALL} --seed -1").refused(2, "seed")
    askew(f"compare old.run new.run {ALL} --seed -1").refused(2, "seed")


def test_askew_alone_shows_its_help(askew):
    result = askew([])
    assert result.code in (0, 2)
    assert "Usage: askew" in result.out + result.err
    assert "internal error" not in result.err


def test_version_is_told_without_a_command(askew):
    result = askew("--version")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("askew 0.")


# Untrusted text in errors


@pytest.mark.parametrize("name", ["\x1b[31mred", "two\nlines", "\x9b31m", "\rback"])
def test_a_strange_file_name_in_an_error_is_shown_as_text(askew, name):
    askew(["measure", name, *ALL.split()]).refused(3, "no such file")


def test_strange_column_names_in_an_error_are_shown_as_text(askew, files):
    files.text("bad.tsv", "query_id\tdoc_id\t\x1b[31mred\nq1\td1\t1\n")
    askew(f"measure bad.tsv {ALL}").refused(3, "red")


def test_strange_keys_in_an_error_are_shown_as_text_on_one_line(askew, files):
    files.text("bad.jsonl", '{"two\\nlines": 1, "\\u001b[31mred": 2}\n')
    askew("measure old.run --docs bad.jsonl").refused(3, "red")


@pytest.mark.parametrize("query", ["[red]x[/red]", "\x1b[31mred"])
def test_a_strange_query_id_in_an_error_is_shown_as_text(askew, files, query):
    files.run("old.run", {query: ["lost"]})
    askew("measure old.run --docs docs.tsv").refused(3, "'lost'", "red")


@pytest.mark.parametrize(
    ("text", "shown"), [("no such luck\nand more", "ZeroDivisionError: no such luck"), ("", "ZeroDivisionError")]
)
def test_an_internal_error_is_one_line_that_asks_for_a_report(askew, monkeypatch, text, shown):
    def fail(_):
        raise ZeroDivisionError(text)

    monkeypatch.delenv("ASKEW_DEBUG", raising=False)
    monkeypatch.setattr("askew.ui.cli.main._invoke", fail)
    result = askew("list measures")
    assert (result.code, result.out) == (70, "")
    assert result.err.count("\n") == 1 and f"internal error ({shown}); " in result.err and "ASKEW_DEBUG=1" in result.err


def test_where_an_internal_error_happened_is_shown_on_request(askew, monkeypatch):
    monkeypatch.setenv("ASKEW_DEBUG", "1")
    monkeypatch.setattr("askew.ui.cli.main._invoke", lambda _: {}["nothing"])
    result = askew("list measures")
    assert result.code == 70
    assert result.err.startswith("Traceback (most recent call last):") and "KeyError: 'nothing'" in result.err
