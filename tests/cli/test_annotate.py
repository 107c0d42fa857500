"""``askew annotate``: counted once, kept, found again, and never trusted when damaged."""

import fcntl
import gzip
import shutil
from pathlib import Path

import pytest

from askew.core.store.store import Store
from askew.measures.counts import Annotate, annotate
from askew.measures.resolver import default_resolver

MEASURE = "measure old.run --docs docs.tsv --measures 'ARaB(tc)@10 RaB(bool)@2 ARaB(tf)@1' --json --per-query"


def part() -> Path:
    return next(Path(".askew").glob("mentions-*/part-*.parquet"))


def manifest() -> Path:
    return next(Path(".askew").glob("mentions-*/manifest.json"))


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def test_it_tells_what_it_counted_and_where_it_is_kept(askew):
    result = askew("annotate --tokens unclipped docs.tsv")
    assert result.out.startswith("counted 5 documents with rekabsaz2020@")
    assert f"kept in {manifest().parent}\n" in result.out
    assert (result.code, result.err) == (0, "")


def test_json_says_the_same_of_each_count(askew):
    (report,) = askew("annotate --tokens unclipped docs.tsv --json").json["counts"]
    assert report == {
        "lexicon": report["lexicon"],
        "tokens": "unclipped",
        "overlap": "all",
        "folder": str(manifest().parent),
        "ran": True,
        "rows": 5,
        "key": manifest().parent.name.removeprefix("mentions-"),
    }


def test_measuring_with_the_store_gives_identical_numbers_and_tells_where_they_come_from(askew):
    before = askew(MEASURE)
    assert (before.code, before.err) == (0, "")
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    after = askew(MEASURE)
    assert (after.code, after.out) == (0, before.out)
    assert len(after.notes) == 1 and after.noted("4 documents", " .askew")


def test_what_is_not_in_the_store_is_counted_and_the_note_says_what_was(askew):
    command = "measure old.run --docs docs.tsv --measures 'RaB(tc)@2 NFaiRR@2' --json --per-query"
    before = askew(command)
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    after = askew(command)
    assert after.out == before.out
    assert after.noted("4 documents", " .askew (rekabsaz2020@")


@pytest.mark.parametrize("options", ["--tokens blank", "--overlap first", "--lexicon gender --tokens seyedsalehi"])
def test_measuring_with_the_store_gives_identical_numbers_whatever_was_counted(askew, options):
    parameters = {"--tokens": "tokens", "--overlap": "overlap", "--lexicon": "lexicon"}
    words = options.split()
    inner = ",".join(f"{parameters[key]}={value}" for key, value in zip(words[::2], words[1::2], strict=True))
    command = f"measure old.run --docs docs.tsv --measures 'RaB(tc,{inner})@2 NFaiRR({inner})@2' --json --per-query"
    before = askew(command)
    assert askew(f"annotate docs.tsv {options}").code == 0
    assert askew(command).out == before.out
    flip(part(), 100)
    askew(command).refused(5)


def test_the_same_command_again_says_already_counted(askew):
    (first,) = askew("annotate --tokens unclipped docs.tsv --json").json["counts"]
    again = askew("annotate --tokens unclipped docs.tsv")
    assert again.out.startswith("already counted: 5 documents")
    assert askew("annotate --tokens unclipped docs.tsv --json").json["counts"] == [{**first, "ran": False}]


def test_documents_are_known_by_their_content_and_not_by_their_name(askew):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    shutil.copy("docs.tsv", "copy.tsv")
    assert askew("annotate --tokens unclipped copy.tsv --json").json["counts"][0]["ran"] is False


def test_changed_documents_are_counted_again_and_change_the_numbers(askew, files):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    files.docs("docs.tsv", dict.fromkeys(("d1", "d2", "d3", "d4"), "She"))
    result = askew("measure old.run --docs docs.tsv --measures 'RaB(tc)@1' --json").json
    assert result["runs"][0]["measures"]["RaB(tc)@1"]["mean"] == -1.0
    assert askew("annotate --tokens unclipped docs.tsv --json").json["counts"][0]["ran"] is True


def test_another_lexicon_tokenizer_or_overlap_is_another_step(askew, files):
    files.text("own.toml", "[groups]\nyoung = ['he']\nold = ['she']\n")
    options = ["--tokens word", "--tokens blank", "--lexicon gender", "--overlap first", "--lexicon own.toml"]
    keys = {askew(f"annotate docs.tsv --json {option}").json["counts"][0]["key"] for option in options}
    assert len(keys) == len(options)


def test_a_folder_of_documents_is_one_collection(askew, files):
    files.docs("docs/a.tsv", {"d1": "he", "d2": "she"})
    files.text("docs/b.jsonl", '{"id": "d3", "text": "x"}\n{"id": "d4", "text": "he"}\n')
    command = "measure old.run --docs docs --measures 'RaB(tc)@3' --json"
    before = askew(command)
    assert askew("annotate --tokens unclipped docs --json").json["counts"][0]["rows"] == 4
    assert askew(command).out == before.out


def test_the_store_can_be_elsewhere(askew):
    assert askew("annotate --tokens unclipped docs.tsv --store elsewhere").code == 0
    assert not Path(".askew").exists()
    flip(next(Path("elsewhere").glob("*/part-*")), 100)
    askew(f"{MEASURE} --store elsewhere").refused(5)
    assert askew(MEASURE).code == 0


def test_the_store_can_be_named_by_the_environment(askew, monkeypatch):
    monkeypatch.setenv("ASKEW_STORE", "elsewhere")
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    assert list(Path("elsewhere").glob("mentions-*/manifest.json"))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.99])
def test_a_damaged_part_is_one_line_and_never_another_number(askew, share):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    flip(part(), int(share * part().stat().st_size))
    askew(MEASURE).refused(5, str(part()), "damaged")


def test_a_part_cut_short_or_taken_away_is_one_line(askew):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    where = part()
    where.write_bytes(where.read_bytes()[:-10])
    askew(MEASURE).refused(5, "damaged")
    where.unlink()
    askew(MEASURE).refused(5, str(where), "cannot be read")


@pytest.mark.parametrize("text", ["", "{", "{}", '{"format": 99}', '{"format": 1}', "[]", "null", "\x00"])
def test_a_damaged_manifest_is_one_line(askew, text):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    manifest().write_text(text)
    askew(MEASURE).refused(5, "manifest.json")
    askew("annotate --tokens unclipped docs.tsv").refused(5, "manifest.json")
    askew("show store .askew").refused(5, "manifest.json")


def test_a_manifest_whose_columns_are_not_those_of_the_part_is_a_damaged_store(askew):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    manifest().write_text(manifest().read_text().replace('"mentions_female"', '"mentions_femald"'))
    askew(MEASURE).refused(5)


def test_a_half_finished_step_goes_on_and_ends_the_same(askew):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    whole, where = manifest().read_bytes(), manifest()
    where.unlink()
    assert askew("annotate --tokens unclipped docs.tsv --json").json["counts"][0]["ran"] is True
    assert where.read_bytes() == whole


def test_a_part_left_behind_whose_columns_are_damaged_is_never_taken_for_done(askew):
    assert askew("annotate --tokens unclipped docs.tsv").code == 0
    manifest().unlink()
    part().write_bytes(part().read_bytes().replace(b"mentions_female", b"mentions_femald"))
    askew("annotate --tokens unclipped docs.tsv").refused(5)


def test_a_step_that_somebody_else_is_writing_is_left_alone(askew):
    folder = Path(askew("annotate --tokens unclipped docs.tsv --json").json["counts"][0]["folder"])
    (folder / "manifest.json").unlink()
    with (Path(".askew/.locks") / folder.name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        askew("annotate --tokens unclipped docs.tsv").refused(5, "another process")


def test_an_empty_collection_is_refused_rather_than_kept(askew, files):
    files.text("empty.tsv", "")
    askew("annotate --tokens word empty.tsv").refused(3, "empty.tsv")


def test_a_document_that_stands_there_twice_is_refused_with_and_without_the_store(askew, files):
    files.text("docs.tsv", "d1\the\nd1\tshe\nd2\tx\nd3\tx\nd4\tx\n")
    askew(MEASURE).refused(3, "documents docs.tsv", "'d1'", "more than once")
    askew("annotate --tokens unclipped docs.tsv")
    askew(MEASURE).refused(3, "'d1'", "more than once")


def test_a_wrong_setting_is_refused_before_anything_is_kept(askew):
    askew("annotate --tokens unclipped docs.tsv --overlap some").refused(2, "'all' or 'first'", "'some'")
    askew("annotate docs.tsv --tokens wrod").refused(2, "did you mean 'word'")
    askew("annotate --tokens unclipped docs.tsv --lexicon gendre").refused(2, "did you mean 'gender'")
    askew("annotate --tokens unclipped docs.tsv --fields title").refused(2, "--fields")
    assert not list(Path(".askew").glob("*/manifest.json"))


def test_wrong_documents_are_refused_and_nothing_is_called_finished(askew, files):
    files.text("docs.tsv", "d1\tfine\nd2 without a tab\n")
    askew("annotate --tokens unclipped docs.tsv").refused(3, "docs.tsv:2", "2 columns")
    askew("annotate nowhere.tsv").refused(3, "nowhere.tsv", "no such file")
    assert not list(Path(".askew").glob("*/manifest.json"))


def test_a_store_that_is_a_file_is_refused(askew, files):
    files.text("store", "not a folder")
    result = askew("annotate --tokens unclipped docs.tsv --store store")
    assert result.code in (2, 3, 5)
    result.refused(result.code, "store")


def test_the_name_of_a_lexicon_is_shown_as_text_and_never_obeyed(askew, files):
    files.text("own.toml", 'name = "\\u001b[31mred"\n[groups]\nyoung = ["he"]\nold = ["she"]\n')
    for _ in ("counted", "already counted"):
        result = askew("annotate --tokens unclipped docs.tsv --lexicon own.toml")
        assert "[31mred@" in result.out
        assert result.out.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "options",
    ["", "--preset rekabsaz2020", "--preset refairmulate2025", "--measures 'ARaB(tf,tokens=blank)@10 FaiRR@5 RR@10'"],
)
def test_what_the_measures_read_is_counted_so_that_measuring_reads_no_text(askew, monkeypatch, options):
    # The headline reads texts: which documents belong to one article.
    command = (
        f"measure old.run --docs docs.tsv --qrels qrels.txt --background new.run --json --per-query {options} "
        "--no-headline"
    )
    before = askew(command)
    assert before.code == 0
    assert askew(f"annotate docs.tsv {options}").code == 0
    monkeypatch.setattr("askew.measures.counts.read_documents", lambda *_: pytest.fail("the texts were read"))
    assert askew(command).out == before.out


def test_each_count_is_told_on_its_own(askew):
    counts = askew("annotate docs.tsv --json").json["counts"]
    # The headline counts people in general as well, where the resolver neural is installed.
    lexicons = ["gender", "rekabsaz2020", *["rekabsaz2020"] * (default_resolver() == "neural"), "rekabsaz2021"]
    assert [(count["lexicon"].partition("@")[0], count["tokens"]) for count in counts] == [
        (lexicon, "unclipped") for lexicon in lexicons
    ]
    assert askew("annotate docs.tsv").out.count("already counted: 5 documents") == len(lexicons)


def test_a_malformed_line_is_remembered_in_the_store(askew, files):
    files.text("docs.tsv", "d1\the\nd2\nd3\tx\nd4\tx\n")
    command = "measure old.run --docs docs.tsv --preset rekabsaz2020 --json --measures"
    before = askew(f"{command} 'RaB(tc)@2'")
    assert before.noted("docs.tsv: 1 lines")
    assert askew("annotate docs.tsv --preset rekabsaz2020").code == 0
    after = askew(f"{command} 'RaB(tc)@2'")
    assert after.out == before.out
    assert after.noted("docs.tsv: 1 lines")
    askew(f"{command} FaiRR@2").refused(3, "'d2'", "no text")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("--tokens word --preset rekabsaz2020", "--tokens"),
        ("--lexicon gender --measures ARaB@10", "--lexicon"),
        ("--measures RR@10", "--measures"),
        ("--measures 'ARaB(tokens=wrod)@10'", "did you mean 'word'"),
        ("--measures 'ARaB(reading=published)@10 FaiRR@10'", "one way"),
        ("--preset bigdely2022", "bigdeli2022"),
    ],
)
def test_counts_that_cannot_be_meant_are_refused(askew, options, word):
    askew(f"annotate docs.tsv {options}").refused(2, word)


@pytest.mark.parametrize("packed", [False, True])
def test_progress_is_told_in_bytes_of_the_file_as_it_lies_on_the_disk(packed):
    docs = Path("docs.tsv")
    if packed:
        docs = Path("docs.tsv.gz")
        docs.write_bytes(gzip.compress(Path("docs.tsv").read_bytes()))
    told = []
    annotate(docs, Store("store"), Annotate(), progress=lambda *done: told.append(done))
    assert told[-1] == (docs.stat().st_size, docs.stat().st_size)


@pytest.mark.parametrize(("command", "kept"), [("annotate docs.tsv", True), ("measure old.run --docs docs.tsv", False)])
def test_an_interruption_says_that_something_is_kept_only_where_it_is(askew, monkeypatch, command, kept):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("askew.measures.mentions.MentionCounter.count", interrupt)
    result = askew(command)
    assert (result.code, "kept" in result.err) == (130, kept)
