"""A release is whole or not at all, the same for the same input, and refuses pairs that break its rules."""

import json
import re

import polars as pl
import polars.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_release import choose, contents, facts, frame, row, toy_pairs

from askew.core.errors import AskewError, ConfigError, DataError
from askew.core.tables import part_of
from askew.core.text import normal
from askew.pairs.dataset import release
from askew.pairs.dataset.checking import verify
from askew.pairs.dataset.numbers import size_category
from askew.pairs.dataset.release import publish
from askew.pairs.dataset.splits import Originals, check_shares, leaks, with_split
from askew.pairs.gains import SAME

FILES = [
    "README.md", "askew.json", "checksums.sha256", "croissant.json", "data/dev-00000-of-00001.parquet",
    "data/test-00000-of-00001.parquet", "data/train-00000-of-00001.parquet", "json/Effective.json", "json/Fair.json",
    "json/Optimal.json", "tsv/group_1_results.tsv", "tsv/group_2_results.tsv", "tsv/group_3_results.tsv",
    "tsv/group_4_results.tsv",
]  # fmt: skip


def read(folder):
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / "data").iterdir())])


def test_what_is_published_reads_back_and_verifies(tmp_path):
    pairs = toy_pairs()
    done = publish(pairs, facts(), tmp_path / "out")
    assert list(contents(tmp_path / "out")) == FILES
    back = read(tmp_path / "out").sort("query_id", "variant_id")
    wanted = pairs.sort("query_id", "variant_id").with_columns(pl.col("group").cast(pl.Int32))
    polars.testing.assert_frame_equal(back, wanted, check_column_order=False)
    report = verify(tmp_path / "out")
    assert report.ok, report.lines()
    assert report.notes == []
    assert report.facts["pairs"] == 200 and report.sizes.startswith(f"{len(FILES)} files, ")
    assert sum(done.splits.values()) == 200
    assert done.subsets == report.facts["subsets"] == {name: int(pairs[name].sum()) for name in done.subsets}
    assert min(done.subsets.values()) > 0


def test_the_same_input_gives_the_same_bytes_whatever_the_order_of_rows_and_facts(tmp_path):
    publish(toy_pairs(), facts(), tmp_path / "a")
    publish(toy_pairs().sample(fraction=1, shuffle=True, seed=1), dict(reversed(facts().items())), tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_sha256sum_format_is_sorted_and_names_all_files_but_itself(tmp_path):
    publish(toy_pairs(), facts(), tmp_path / "out")
    lines = (tmp_path / "out" / "checksums.sha256").read_text().splitlines()
    assert [line[66:] for line in lines] == sorted(set(FILES) - {"checksums.sha256"})
    assert all(len(line.split("  ")[0]) == 64 for line in lines)


def test_every_pair_is_in_the_split_that_its_text_names(tmp_path):
    publish(toy_pairs(), facts(), tmp_path / "out")
    for split in ("train", "dev", "test"):
        found = pl.read_parquet(tmp_path / "out" / "data" / f"{split}-00000-of-00001.parquet")
        assert {part_of(normal(text)) for text in found["original_text"]} == {split}


@pytest.mark.parametrize("shares", [{"../x": 1.0}, {"Train": 1.0}, {"": 1.0}, {"train": 0.5}, {}])
def test_shares_that_are_no_shares_or_no_file_names_are_refused(shares):
    with pytest.raises(ConfigError):
        check_shares(shares)


def test_queries_with_the_same_words_go_together():
    same = ["Who  is the CEO?", "who is the ceo", "ＷＨＯ is the ceo!"]
    assert len({normal(text) for text in same}) == 1
    rows = [row(f"q{i}", "v0", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original=text) for i, text in enumerate(same)]
    for salt in range(20):
        # Whatever the shares, one text has one place.
        table = with_split(frame(rows), {f"s{salt}": 0.5, "other": 0.5})
        assert table["split"].n_unique() == 1
        assert not list(leaks(table))


def test_leaks_by_id_and_by_text_are_told_each_in_a_line():
    rows = [
        {**row("q1", "v0", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original="a b"), "split": "train"},
        {**row("q1", "v1", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original="c d"), "split": "test"},
        {**row("q2", "v0", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original="A, B"), "split": "dev"},
    ]
    by_id, by_text = leaks(frame(rows))
    assert by_id.startswith("splits: 1 query ids ") and by_id.endswith(" 'q1' in test, train")
    assert by_text.startswith("splits: 1 normalized ") and by_text.endswith(" 'a b' in dev, train")


def test_a_rewritten_text_that_is_an_original_elsewhere_is_counted():
    rows = [
        {**row("q1", "v0", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original="a b", text="C d!"), "split": "train"},
        {**row("q1", "v1", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original="a b", text="e"), "split": "train"},
        {**row("q2", "v0", (0.5, 0.0, 0.0), (0.5, 0.0, 0.0), original="c d", text="C D"), "split": "test"},
    ]
    pairs, originals = frame(rows), Originals()
    originals.look(pairs)
    assert originals.echoes(pairs) == 1


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    assert normal(normal(text)) == normal(text)


@given(
    st.text(min_size=1), st.sampled_from([str.upper, str.title, lambda t: f"  {t}\n", lambda t: t.replace(" ", "  ")])
)
def test_ascii_case_and_blanks_do_not_matter(text, change):
    plain = text.encode("ascii", "ignore").decode()
    assert normal(change(plain)) == normal(plain)


@pytest.mark.parametrize("keep", ["none", "optimal", "effective", "negative"])
def test_empty_subsets_are_published_and_verify(tmp_path, keep):
    flags = {name: pl.lit(False) for name in ("optimal", "effective", "negative") if name != keep}
    pairs = toy_pairs().with_columns(**flags).with_columns(fair=pl.col("optimal") | pl.col("effective"))
    publish(pairs, facts(selection={}), tmp_path / "out")
    assert verify(tmp_path / "out").ok
    if keep != "optimal":
        optimal = json.loads((tmp_path / "out" / "json" / "Optimal.json").read_text())
        assert optimal == {"1": {}, "2": {}, "3": {}, "4": {}}


def test_no_pairs_at_all_are_published_and_verify(tmp_path):
    done = publish(toy_pairs().clear(), facts(), tmp_path / "out")
    assert done.splits == {"train": 0, "dev": 0, "test": 0}
    assert verify(tmp_path / "out").ok
    assert "- | -" in (tmp_path / "out" / "README.md").read_text()


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("keep")
    with pytest.raises(ConfigError) as error:
        publish(toy_pairs(), facts(), out)
    assert error.value.code == "not-empty"
    assert contents(tmp_path) == {"out/mine": b"keep"}


def test_an_empty_folder_is_taken_and_a_link_is_not(tmp_path):
    (tmp_path / "empty").mkdir()
    publish(toy_pairs(), facts(), tmp_path / "empty")
    assert verify(tmp_path / "empty").ok
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(ConfigError) as error:
        publish(toy_pairs(), facts(), tmp_path / "link")
    assert error.value.code == "not-empty"


@pytest.mark.parametrize("step", ["croissant", "card", "PairFile", "canonical_json"])
def test_a_failure_on_the_way_leaves_nothing(tmp_path, monkeypatch, step):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(release, step, fail)
    with pytest.raises(KeyboardInterrupt):
        publish(toy_pairs(), facts(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_fills_while_we_write_is_not_overwritten(tmp_path, monkeypatch):
    out = tmp_path / "out"
    real = release.card

    def slow(*arguments):
        out.mkdir()
        (out / "mine").write_text("keep")
        return real(*arguments)

    monkeypatch.setattr(release, "card", slow)
    with pytest.raises(ConfigError) as error:
        publish(toy_pairs(), facts(), out)
    assert error.value.code == "not-empty"
    assert contents(tmp_path) == {"out/mine": b"keep"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.drop("method"), "expected the column 'method'"),
        (lambda p: p.drop("gain_RR_10"), "expected the column 'gain_RR_10'"),
        (
            lambda p: p.with_columns(pl.lit(1.0).alias("old_AP_10")),
            "column 'old_AP_10', but 'measures'",
        ),
        (lambda p: p.with_columns(pl.lit("x").alias("split")), "remove the column 'split'"),
        (lambda p: p.with_columns(pl.lit("1").alias("group")), "column 'group': the type"),
        (lambda p: p.with_columns(pl.lit(5).alias("group")), "must be a number from 1 to 4, found 5"),
        (lambda p: p.with_columns(pl.lit(2**40).alias("group")), "column 'group'"),
        (lambda p: p.with_columns(pl.lit(None, pl.Int64).alias("label")), "expected a value in every row"),
        (lambda p: p.with_columns(pl.lit(" ").alias("text")), "expected a text in every row, found 200 empty"),
        (lambda p: p.with_columns(pl.lit(float("inf")).alias("score")), "expected finite numbers"),
        (lambda p: p.with_columns(pl.lit(1).alias("fair")), "column 'fair': the type"),
        (lambda p: p.with_columns(pl.lit([1]).alias("more")), "column 'more': the type"),
        (lambda p: pl.concat([p, p]), "no two reformulations of an original query have the same id"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(tmp_path, change, said):
    with pytest.raises(AskewError, match=said):
        publish(change(toy_pairs()), facts(), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"selection": {"selector": "boxes", "bias": "AP@10"}}, "AP@10"),
        ({"selection": {"selector": "refairmulate-paper", "accept": {"5": [1]}}}, "group '5'"),
        ({"selection": {"selector": "refairmulate-paper", "accepted": {}}}, "no setting 'accepted'"),
        ({"selection": {"selector": "boxes", "tolerance": -1}}, "tolerance"),
        ({"selection": {"selector": "boxes", "tolerance": "high"}}, "tolerance"),
        ({"counts": {1: 2}}, None),
        ({"counts": {"a": float("nan")}}, "expected only values that JSON allows"),
        ({"counts": {"a": object()}}, "expected only values that JSON allows"),
        ({"title": "\ud800"}, "expected only values that JSON allows"),
    ],
)
def test_wrong_facts_are_refused_with_their_place(tmp_path, change, said):
    if said is None:  # JSON turns the number into a text, which is fine
        publish(toy_pairs(), facts(**change), tmp_path / "out")
        return
    with pytest.raises(ConfigError, match=said):
        publish(toy_pairs(), facts(**change), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_further_columns_and_text_labels_travel_along(tmp_path):
    pairs = toy_pairs().with_columns(
        pl.lit("u1").alias("user"), pl.lit(3, pl.UInt8).alias("turn"), pl.col("label").cast(pl.String),
        pl.col("method").cast(pl.Categorical), pl.col("group").cast(pl.UInt8),
    )  # fmt: skip
    stated = facts()
    del stated["selection"]
    publish(pairs, stated, tmp_path / "out")
    back = read(tmp_path / "out")
    assert back.schema["turn"] == pl.Int64
    assert back["user"].unique().to_list() == ["u1"]
    assert (
        "turn" in json.loads((tmp_path / "out" / "croissant.json").read_text())["rai:personalSensitiveInformation"][2]
    )
    report = verify(tmp_path / "out")
    assert report.ok
    assert len(report.notes) == 1


def test_the_means_of_the_card_are_those_of_the_pairs(tmp_path):
    rows = choose([
        row("q1", "v0", (0.5, 0.5, 1.0), (1.0, 0.0, 0.5)),
        row("q1", "v1", (0.5, 0.5, 1.0), (0.75, 0.25, 0.5)),
        row("q1", "v2", (0.5, 0.5, 1.0), (0.0, -0.5, 0.5)),
    ])  # fmt: skip
    publish(frame(rows), facts(), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| all | 3 | 1 | " in card
    assert "| optimal | `RR@10` | 1 | 0.5000 | 1.0000 | 0.5000 |" in card
    assert "| effective | `ARaB(tf)@10` | 1 | 0.5000 | 0.2500 | 0.2500 |" in card
    assert "| fair | `RR@10` | 2 | 0.5000 | 0.8750 | 0.3750 |" in card
    assert "| negative | `ARaB(tf)@10` | 1 | 0.5000 | -0.5000 | 0.0000 |" in card


def test_a_value_that_was_not_measured_lowers_n_and_not_the_mean(tmp_path):
    rows = [
        row("q1", "v0", (0.5, 0.0, 1.0), (0.5, 0.0, 0.5)),
        row("q2", "v0", (0.5, 0.0, 1.0), (0.5, 0.0, float("nan"))),
    ]
    publish(frame(rows), facts(), tmp_path / "out")
    assert "| all | `LexiconShare@10` | 1 | 1.0000 | 0.5000 | 0.5000 |" in (tmp_path / "out" / "README.md").read_text()
    assert verify(tmp_path / "out").ok


@pytest.mark.parametrize(
    ("n", "name"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (321_604, "100K<n<1M"), (10**9, "100M<n<1B")]
)
def test_sizes_have_their_category(n, name):
    assert size_category(n) == name


NASTY = "x|y `z` <b>q</b>\n---\nlicense: mit"


def test_the_head_holds_no_query_text_and_the_card_no_markup_from_queries(tmp_path):
    rows = choose([row("q1", "v0", (0.5, 0.5, 1.0), (1.0, 0.0, 0.5), original=NASTY, text=NASTY + "!")])
    publish(frame(rows), facts(title='T: "x"\n---\n# y', recipe="```\n<b>\n"), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    _, head, body = card.split("---\n", 2)
    found = pytest.importorskip("yaml", reason="reading the head back needs PyYAML").safe_load(head)
    assert found["pretty_name"] == 'T: "x" --- # y'
    assert found["license"] == "cc-by-4.0"
    assert "x|y" not in card
    assert "<b>q" not in card
    assert "x&#124;y &#96;z&#96; &#60;b&#62;q" in body
    assert "````toml\n```\n<b>\n````" in body
    assert verify(tmp_path / "out").ok


def test_no_time_host_or_path_enters_a_release(tmp_path):
    publish(toy_pairs(), facts(), tmp_path / "some-place")
    for name, data in contents(tmp_path / "some-place").items():
        assert b"some-place" not in data, name
    assert b"datePublished" not in (tmp_path / "some-place" / "croissant.json").read_bytes()


def test_citations_come_from_the_facts(tmp_path):
    stated = facts(citation="Us (2026)", homepage="https://e.org/x", version="2.0.0")
    publish(toy_pairs(), stated, tmp_path / "out")
    found = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert (found["citeAs"], found["version"]) == ("Us (2026)", "2.0.0")
    assert found["url"] == "https://e.org/x"


def test_the_card_and_the_metadata_say_whom_to_write_to(tmp_path):
    publish(toy_pairs(), facts(contact="Data desk\n<desk@e.org>"), tmp_path / "out")
    found = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert found["rai:dataReleaseMaintenancePlan"].endswith(" Contact: Data desk <desk@e.org>")
    assert "\nContact: Data desk &#60;desk&#64;e&#46;org&#62;\n" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize(
    ("stated", "head", "said"),
    [({"license": "CC-BY-4.0"}, "cc-by-4.0", "This dataset: `CC-BY-4.0`."),
     ({"license": "see our page"}, "other", "This dataset: see our page."),
     ({}, "unknown", "No license is stated for this dataset, so the license of the queries applies.")],
)  # fmt: skip
def test_the_license_is_the_stated_one_or_that_of_the_queries(tmp_path, stated, head, said):
    given = {name: value for name, value in facts().items() if name != "license"}
    publish(toy_pairs(), given | stated, tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"\nlicense: {head}\n" in card
    assert f"\n{said}\n" in card
    found = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert found["license"] == stated.get("license", said)


def test_the_groups_of_the_lexicons_are_named_with_license_and_source(tmp_path):
    lexicon = {"id": "age@1", "groups": ["old", "young"], "license": "CC0-1.0", "source": "made up"}
    publish(toy_pairs(), facts(lexicons=[lexicon]), tmp_path / "out")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| id | groups | license | source |\n| --- | --- | --- | --- |\n| `age@1` | old, young | `CC0-1.0` |" in card
    assert "these groups&#58; old, young." in card
    found = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert "age@1 (groups old, young; license CC0-1.0; source made up)" in found["rai:dataAnnotationProtocol"]
    assert "these groups: old, young." in found["rai:dataLimitations"][0]


def test_measures_with_the_same_column_are_refused(tmp_path):
    twin = {"A(x=1)@5": {"signature": "A", "direction": "up"}, "A(x=-1)@5": {"signature": "B", "direction": "up"}}
    with pytest.raises(ConfigError, match=r"measures: .* A_x_1_5"):
        publish(toy_pairs(), facts(measures=twin), tmp_path / "out")


def test_the_rai_fields_say_what_was_measured(tmp_path):
    rows = [row("q1", "v0", (0.5, 0.25, 1.0), (0.5, 0.0, 0.5), original="mail me@e.org now", text="call 555 123 4567")]
    publish(frame(rows), facts(), tmp_path / "out")
    found = json.loads((tmp_path / "out" / "croissant.json").read_text())
    assert any("ARaB(tf)@10" in line and "mean 0.2500 (n = 1)." in line for line in found["rai:dataBiases"])
    # Distinct texts, those with an email address, and those with a long number.
    assert re.findall(r"\d+", found["rai:personalSensitiveInformation"][0]) == ["2", "1", "1"]
    assert found["rai:dataPreprocessingProtocol"].endswith(f": {SAME}: 3.")
    assert all(found[f"rai:{name}"] for name in ("dataCollection", "dataLimitations", "dataUseCases"))


def test_pairs_that_break_a_rule_are_not_published(tmp_path):
    pairs = toy_pairs().with_columns(pl.lit(True).alias("fair"))
    with pytest.raises(DataError, match=r"column 'fair'.*by 164 of 200"):
        publish(pairs, facts(), tmp_path / "out")
    assert not list(tmp_path.iterdir())
