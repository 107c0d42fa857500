"""Whatever is done to a release, verify tells it; and it never looks outside the folder."""

import json
import os
import shutil

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_release import contents, facts, parquet_bytes, publish_unchecked, resign, toy_pairs

from askew.core.errors import ConfigError, DataError, Note
from askew.core.folders import checksum_text, read_checksums
from askew.pairs.dataset.checking import verify
from askew.pairs.dataset.release import publish

TRAIN = "data/train-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "out"
    publish(toy_pairs(), facts(), out)
    return out


@pytest.fixture
def folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "copy")


def problems(folder):
    """The code and the value of each problem that has them; the text of the others."""
    found = verify(folder).wrong
    return [(line.code, *line.values.values()) if isinstance(line, Note) else line for line in found]


FILES = [
    "README.md", "askew.json", "croissant.json", TRAIN, "data/dev-00000-of-00001.parquet",
    "data/test-00000-of-00001.parquet", "json/Optimal.json", "json/Effective.json", "json/Fair.json",
    *(f"tsv/group_{group}_results.tsv" for group in (1, 2, 3, 4)),
]  # fmt: skip


def test_the_list_above_is_complete(original):
    assert sorted([*FILES, "checksums.sha256"]) == list(contents(original))


@pytest.mark.parametrize("name", FILES)
def test_an_altered_file_is_named(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert ("changed", name) in problems(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_also_where_the_checksums_hide_it(folder, name):
    (folder / name).unlink()
    assert ("missing", name) in problems(folder)
    resign(folder)
    report = verify(folder)
    assert f"{name}: missing" in report.wrong
    assert not any(line.startswith("checksums") for line in report.wrong)


def test_a_release_of_another_format_is_refused_with_the_command_that_writes_it_again(folder):
    path = folder / "askew.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))
    (line,) = [line for line in verify(folder).wrong if line.startswith("askew.json: expected")]
    assert "found format 0; " in line and ": askew publish RECIPE" in line


def test_missing_checksums_are_told(folder):
    (folder / "checksums.sha256").unlink()
    assert verify(folder).wrong == ["checksums.sha256: missing"]


@pytest.mark.parametrize("name", ["extra.txt", ".hidden", "json/other.json", "new/deep/file", "data/a\nb"])
def test_an_extra_file_is_named(folder, name):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    assert problems(folder) == [("not-listed", name)]


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/hostname", "data/../../secret", "..", "./README.md", "a\\b", "C:x"]
)
def test_a_checksum_name_that_leads_out_is_an_error_and_is_not_read(folder, name):
    (folder.parent / "secret").write_text("secret")
    with (folder / "checksums.sha256").open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    assert problems(folder) == [("outside", name)]


@pytest.mark.parametrize("line", ["", "x", "0" * 64, "0" * 63 + "  README.md", "0" * 64 + " README.md", "\0"])
def test_a_malformed_checksum_line_is_told(folder, line):
    with (folder / "checksums.sha256").open("a") as file:
        file.write(f"{line}\n")
    assert problems(folder) == [("no-checksum", 14)]


def test_a_name_that_is_there_twice_is_told(folder):
    path = folder / "checksums.sha256"
    path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")
    assert problems(folder) == [("twice", "README.md")]


def test_checksums_that_are_no_text_are_told(folder):
    (folder / "checksums.sha256").write_bytes(b"\xff\xfe")
    (line,) = verify(folder).wrong
    assert line.startswith("checksums.sha256: ") and "UnicodeDecodeError" in line


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}(/[a-z]{1,5})?\.json", fullmatch=True), st.just("ab" * 32)))
def test_checksums_read_back(digests):
    assert read_checksums(checksum_text(digests)) == (digests, [])


@given(st.text())
def test_any_text_as_checksums_is_read_without_a_crash_and_names_stay_inside(text):
    for name in read_checksums(text)[0]:
        assert not name.startswith("/")
        assert ".." not in name.split("/")


@pytest.mark.parametrize("name", ["README.md", TRAIN, "json/Fair.json"])
def test_a_file_that_is_a_link_is_refused_and_not_followed(folder, name):
    secret = folder.parent / "secret"
    shutil.copy(folder / name, secret)
    (folder / name).unlink()
    (folder / name).symlink_to(secret)
    found = problems(folder)
    assert ("link", name) in found and f"{name}: missing" in found


def test_a_folder_that_is_a_link_is_refused_and_not_followed(folder):
    shutil.move(folder / "json", folder.parent / "elsewhere")
    (folder / "json").symlink_to(folder.parent / "elsewhere")
    found = problems(folder)
    assert ("link", "json") in found and "json/Fair.json: missing" in found


def test_a_pipe_is_refused_and_not_opened(folder):
    os.mkfifo(folder / "README.txt")
    assert problems(folder) == [("no-file", "README.txt")]


def test_what_is_no_folder_is_a_users_mistake(tmp_path):
    with pytest.raises(ConfigError, match="none: "):
        verify(tmp_path / "none")


def edit_json(name, change):
    def edit(folder):
        path, pair = folder / name, "\n        "
        # A pair is a line, as publish writes it.
        value = json.loads(path.read_text())
        value = change(value) or value
        if not name.startswith("json/"):
            path.write_text(json.dumps(value))
            return
        groups = []
        for group, entries in value.items():
            lines = ",".join(f"{pair}{json.dumps(query)}: {json.dumps(one)}" for query, one in entries.items())
            end = "\n    " if lines else ""
            groups.append(f'\n    "{group}": {{{lines}{end}}}')
        path.write_text("{" + ",".join(groups) + "\n}\n")

    return edit


def edit_text(name, old, new):
    def edit(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


def edit_rows(change, name=TRAIN):
    def edit(folder):
        (folder / name).write_bytes(parquet_bytes(change(pl.read_parquet(folder / name))))

    return edit


def first_entry(value):
    return next(iter(value["4"].values()))


def drop_first(value):
    value["4"].pop(next(iter(value["4"])))


def repeat_key(folder):
    path = folder / "json" / "Fair.json"
    path.write_text(path.read_text().replace('"1": {', '"4": {}, "1": {', 1))


def move_a_pair(folder):
    train, dev = (pl.read_parquet(folder / "data" / f"{name}-00000-of-00001.parquet") for name in ("train", "dev"))
    (folder / TRAIN).write_bytes(parquet_bytes(train.slice(1)))
    (folder / "data/dev-00000-of-00001.parquet").write_bytes(parquet_bytes(pl.concat([dev, train.head(1)])))


def copy_a_pair(folder):
    path = folder / "data/dev-00000-of-00001.parquet"
    path.write_bytes(parquet_bytes(pl.concat([pl.read_parquet(path), pl.read_parquet(folder / TRAIN).head(1)])))


def bytes_that_are_no_text(folder):
    rows = pl.read_parquet(folder / TRAIN).to_arrow()
    texts = [b"\xff\xfe", *(str(one).encode() for one in rows["text"][1:])]
    wrong = pa.array(texts, pa.large_binary()).view(pa.large_string())
    pq.write_table(rows.set_column(rows.column_names.index("text"), "text", wrong), folder / TRAIN)


CAREFUL = {
    "a score in Optimal.json": (
        edit_json("json/Optimal.json", lambda v: first_entry(v).update(score=9.0)),
        "json/Optimal.json: 1 lines do not agree",
    ),
    "a text in Effective.json": (
        edit_json("json/Effective.json", lambda v: first_entry(v).update(query_text="x")),
        "json/Effective.json: 1 lines do not agree",
    ),
    "an entry gone from Fair.json": (edit_json("json/Fair.json", drop_first), "json/Fair.json: "),
    "a key twice in Fair.json": (
        repeat_key,
        "json/Fair.json: 1 lines do not agree",
    ),
    "a group too many": (edit_json("json/Fair.json", lambda v: v.update({"5": {}})), "json/Fair.json: "),
    "NaN in Fair.json": (
        edit_json("json/Fair.json", lambda v: first_entry(v).update(score=float("nan"))),
        "json/Fair.json: 1 lines do not agree",
    ),
    "deep JSON": (
        lambda f: (f / "json/Fair.json").write_text("[" * 100_000),
        "json/Fair.json: 40 lines do not agree with the Parquet rows; first: line 1",
    ),
    "a header": (
        edit_text("tsv/group_1_results.tsv", "Orig_RR10", "Orig_RR"),
        "tsv/group_1_results.tsv: 1 lines do not agree with the Parquet rows; first: line 1",
    ),
    "a row": (
        edit_text("tsv/group_4_results.tsv", "topic q", "Topic q"),
        "tsv/group_4_results.tsv: 1 lines do not agree with the Parquet rows; first: line 2",
    ),
    "a number of the card": (
        edit_text("README.md", "| all | 200 |", "| all | 201 |"),
        "README.md: the table of counts",
    ),
    "a mean of the card": (edit_text("README.md", "| 0.4500 |", "| 0.4600 |"), "README.md: the table of means"),
    "a file's digest in the metadata": (
        edit_json("croissant.json", lambda v: v["distribution"][0].update(sha256="0" * 64)),
        "croissant.json: number of listed files that are missing or have another SHA-256: 1; first: "
        "'data/dev-00000-of-00001.parquet'",
    ),
    "a field of the metadata": (
        edit_json("croissant.json", lambda v: v["recordSet"][0]["field"].pop() and None),
        "croissant.json: the fields of a record set differ from the columns",
    ),
    "metadata of another kind": (
        edit_json("croissant.json", lambda _: [1]),
        "croissant.json: expected the fields 'distribution'",
    ),
    "the counts of the facts": (
        edit_json("askew.json", lambda v: v["pairs"]["subsets"].update(fair=1)),
        "askew.json: the stated numbers of pairs differ from the numbers of pairs in the Parquet files",
    ),
    "the format": (
        edit_json("askew.json", lambda v: v.update(format=1)),
        "askew.json: expected a release in format 2, found format 1; publish the dataset again: askew publish RECIPE",
    ),
    "facts that are a list": (edit_json("askew.json", lambda _: [1]), "askew.json: expected a release in format 2"),
    "no shares": (
        edit_json("askew.json", lambda v: v.pop("split") and None),
        "askew.json: expected the field 'split' with the keys 'salt'",
    ),
    "other shares": (
        edit_json("askew.json", lambda v: v["split"].update(shares=[["train", 0.1], ["dev", 0.1], ["test", 0.8]])),
        "are not in the split computed from the text of their original query",
    ),
    "a share that leads out": (
        edit_json("askew.json", lambda v: v["split"].update(shares=[["../../x", 1.0]])),
        "shares: the name of a split must start with a lowercase letter",
    ),
    "another direction": (
        edit_json("askew.json", lambda v: v["facts"]["measures"]["RR@10"].update(direction="down")),
        "is better, found RR@10",
    ),
    "an unknown direction": (
        edit_json("askew.json", lambda v: v["facts"]["measures"]["RR@10"].update(direction="left")),
        "askew.json: the field 'facts'",
    ),
    "no Parquet": (lambda f: (f / TRAIN).write_bytes(b"PAR1 no"), f"{TRAIN}: cannot be read as Parquet"),
    "bytes that are no text": (bytes_that_are_no_text, f"{TRAIN}: cannot be read as Parquet"),
    "half a Parquet": (
        lambda f: (f / TRAIN).write_bytes((f / TRAIN).read_bytes()[:-100]),
        f"{TRAIN}: cannot be read as Parquet",
    ),
    "a column gone": (edit_rows(lambda t: t.drop("method")), f"{TRAIN}: schema: pairs: expected the column 'method'"),
    "a column more": (
        edit_rows(lambda t: t.with_columns(x=pl.lit(1, pl.Int64))),
        "the same columns as in the first split",
    ),
    "columns in another order": (edit_rows(lambda t: t.select(reversed(t.columns))), f"{TRAIN}: schema: expected"),
    "another type": (edit_rows(lambda t: t.with_columns(pl.col("group").cast(pl.Int64))), f"{TRAIN}: schema: expected"),
    "a group that is none": (
        edit_rows(lambda t: t.with_columns(group=pl.lit(0, pl.Int32))),
        "must be a number from 1 to 4, found 0",
    ),
    "a pair gone": (edit_rows(lambda t: t.slice(1)), "askew.json: the stated numbers of pairs"),
    "a pair in another split": (
        move_a_pair,
        "splits: 1 query ids are in more than one split; first: 'q0' in dev, train",
    ),
    "a pair in two splits": (
        copy_a_pair,
        "no two reformulations of an original query have the same id: broken by 2 of 201 pairs; first: query 'q0'",
    ),
}


@pytest.mark.parametrize("what", CAREFUL)
def test_a_change_with_new_checksums_is_found(folder, what):
    edit, said = CAREFUL[what]
    edit(folder)
    resign(folder)
    report = verify(folder)
    assert not report.ok
    assert any(said in line for line in report.wrong), report.wrong
    assert not any(line.startswith("checksums") for line in report.wrong)


def at(table, subset, changes):
    """Change the first pair of a subset."""
    place = int(table[subset].arg_max()) if subset else 0
    here = pl.int_range(table.height) == place
    return table.with_columns(
        pl.when(here).then(value).otherwise(pl.col(name)).alias(name) for name, value in changes.items()
    )


def second_effective(table):
    """Make a second pair of a query Effective."""
    query = table.filter("effective")["query_id"][0]
    return table.with_columns((pl.col("effective") | (pl.col("query_id") == query)).alias("effective")).with_columns(
        fair=pl.col("optimal") | pl.col("effective"), negative=pl.col("negative") & (pl.col("query_id") != query)
    )


# What is broken in which pair, the telling words of its line, and how many pairs break the rule.
BROKEN = {
    "label of effective": ("effective", {"label": pl.lit(4)}, "column 'label'", "1 of 200"),
    "label of optimal": ("optimal", {"label": pl.lit(4)}, "column 'label'", "1 of 200"),
    "fair": ("effective", {"fair": pl.lit(False)}, "column 'fair'", "1 of 200"),
    "negative": ("effective", {"negative": pl.lit(True)}, "column 'negative'", "1 of 200"),
    "text": ("fair", {"text": pl.col("original_text")}, "different texts", "1 of 36"),
    "optimal by effectiveness": ("optimal", {"new_RR_10": pl.lit(0.9)}, "column 'optimal'", "2 of 200"),
    "optimal by lean": ("optimal", {"new_ARaB_tf_10": pl.lit(None)}, "column 'optimal'", "2 of 200"),
    "gain in effectiveness": ("fair", {"gain_RR_10": pl.lit(0.123)}, "gain in RR@10", "1 of 200"),
    "missing gain": ("", {"gain_LexiconShare_10": pl.lit(None)}, "gain in LexiconShare@10", "1 of 200"),
    "gain in lean": ("negative", {"new_ARaB_tf_10": pl.lit(7.0)}, "gain in ARaB(tf)@10", "1 of 200"),
    "outcome": ("fair", {"outcome": pl.lit("worse-more")}, "column 'outcome'", "1 of 200"),
    "group": ("", {}, "column 'group'", "5 of 200"),
    "score": ("effective", {"score": pl.lit(9.0)}, "column 'score'", "1 of 200"),
    "original text": ("", {"original_text": pl.lit("something else")}, "same original_text", "4 of 200"),
    "group of one pair": ("", {"group": pl.col("group") % 4 + 1}, "same group", "4 of 200"),
    "old value": ("", {"old_RR_10": pl.col("old_RR_10") + 1}, "same old_RR_10", "4 of 200"),
    "two effective": (second_effective, {}, "column 'effective'", "4 of 200"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_rule_is_refused_by_publish_and_found_by_verify(tmp_path, what):
    where, changes, words, count = BROKEN[what]
    pairs = toy_pairs()
    if callable(where):
        pairs = where(pairs)
    elif not changes:
        pairs = pairs.with_columns(group=pl.when(pl.col("query_id") == "q0").then(1).otherwise(pl.col("group")))
    else:
        pairs = at(pairs, where, changes)
    with pytest.raises(DataError) as error:
        publish(pairs, facts(), tmp_path / "out")
    assert words in str(error.value)
    publish_unchecked(pairs, facts(), tmp_path / "out")
    report = verify(tmp_path / "out")
    assert not report.ok
    (line,) = [line for line in report.wrong if words in line]
    assert f"by {count}" in line
    assert "first: query 'q" in line


def test_each_line_names_the_values_of_its_first_pair(tmp_path):
    pairs = toy_pairs()
    first = pairs.filter("effective").sort("query_id", "variant_id").row(0, named=True)
    changed = at(pairs.sort("query_id", "variant_id"), "effective", {"label": pl.lit(4)})
    publish_unchecked(changed, facts(), tmp_path / "out")
    line = next(line for line in verify(tmp_path / "out").wrong if "column 'label'" in line)
    assert line.endswith(f"query {first['query_id']!r}, variant {first['variant_id']!r}, label 4")


def test_gains_within_the_tolerance_count_as_the_same(tmp_path):
    pairs = toy_pairs().filter(pl.col("outcome") == "same-same")
    shifted = pairs.with_columns(pl.col("new_RR_10") - 1e-4, pl.col("gain_RR_10") - 1e-4, pl.col("score") - 1e-4)
    with pytest.raises(DataError, match="column 'outcome'"):
        publish(shifted, facts(), tmp_path / "out")
    stated = facts()
    stated["selection"] = {**stated["selection"], "tolerance": 1e-3}
    publish(shifted, stated, tmp_path / "out")
    assert verify(tmp_path / "out").ok


def test_what_the_facts_do_not_state_is_told_as_not_checked(tmp_path):
    publish(toy_pairs(), facts(selection={}), tmp_path / "out")
    report = verify(tmp_path / "out")
    assert report.ok
    assert any("names no selector" in note for note in report.notes)


def test_the_report_ends_with_the_verdict(folder):
    assert verify(folder).lines()[-1].endswith("fair 36, negative 59): all rules hold")
    (folder / "extra").write_text("x")
    assert verify(folder).lines()[-1].endswith("1 problem")


def test_verify_changes_nothing(folder):
    before = contents(folder)
    verify(folder)
    assert contents(folder) == before


@pytest.mark.parametrize("seed", range(25))
def test_a_random_byte_changed_anywhere_never_crashes_and_never_passes(folder, seed):
    names = list(contents(folder))
    name = names[seed % len(names)]
    data = bytearray((folder / name).read_bytes())
    data[(seed * 7919) % len(data)] ^= 1 + seed
    (folder / name).write_bytes(data)
    assert not verify(folder).ok
    if name != "checksums.sha256":
        resign(folder)
        verify(folder)
