"""Made-up logs: the same seed makes the same log, and what is planted in one is found in it."""

import dataclasses
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest

from askew.logs.analyze import analyze_log
from askew.logs.definition import LOG_DATA
from askew.logs.settings import LogSettings
from askew.testing.logs import (
    GROUPS,
    Planted,
    SyntheticLog,
    joint,
    planted_table,
    rank_moves,
    write_log,
    write_sample,
    write_vectors,
)

SMALL = Planted(sessions=16_000, users=5_000, queries_per_topic=4, rare=0.0)
HEADLINES = (
    "specializing reformulations", "for_group reformulations", "female share", "male share", "edited, all",
    "recommended, all", "other, all", "recommended, female", "recommended, male", "gap all, all", "gap all, edited",
    "gap all, recommended", "gap all, other", "gap female, all", "click ratio, all", "click ratio, recommended",
    "clicked result absent", "clicked result lower", "clicked result same", "clicked result higher", "seeks-specific",
    "corrects", "intensifies", "reinforces", "association", "rate shopping and fashion", "rate health",
    "recommended shopping and fashion", "share_female shopping and fashion", "exposure site0.example",
)  # fmt: skip


def found_in(planted, folder):
    """The planted effects of a log, and what the analysis of the log finds."""
    path = write_log(SyntheticLog(planted), folder / "log.parquet")
    settings = LogSettings(threads=2, vectors=write_vectors(planted, folder))
    return planted_table(analyze_log(path, format="parquet", settings=settings), planted)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    return {seed: found_in(dataclasses.replace(SMALL, seed=seed), tmp_path_factory.mktemp("log")) for seed in range(6)}


def test_every_planted_effect_of_one_log_lies_within_its_interval(reports):
    found = reports[3].filter(pl.col("effect").is_in(HEADLINES))
    assert found.height == len(HEADLINES)
    assert found.filter(~pl.col("within"))["effect"].to_list() == []


def test_intervals_hold_what_was_planted_about_as_often_as_they_say(reports):
    together = pl.concat(reports.values())
    assert together.height == 6 * 131
    assert 0.92 <= together["within"].mean() <= 0.99


def test_no_planted_effect_of_any_log_lies_further_off_than_so_many_intervals_allow(reports):
    together = pl.concat(reports.values())
    # Bonferroni: intervals wide enough that all of them hold together with 95%.
    wider = NormalDist().inv_cdf(1 - 0.025 / together.height) / NormalDist().inv_cdf(0.975)
    planted, found = pl.col("planted"), pl.col("found")
    above = planted <= found + wider * (pl.col("high") - found)
    below = planted >= found - wider * (found - pl.col("low"))
    assert together.filter(~(above & below)).rows() == []


def test_an_effect_of_another_size_is_not_within_the_interval(reports):
    table = reports[3]
    ratio = table.filter(effect="click ratio, all").row(0, named=True)
    assert not ratio["low"] <= 1.0 <= ratio["high"]
    change = table.filter(effect="clicked result absent").row(0, named=True)
    assert not change["low"] <= 0.5 <= change["high"]


def test_twice_the_effect_is_found_as_twice_the_effect(tmp_path):
    strong = dataclasses.replace(
        SMALL, seed=3, for_group=0.8, click_ratio={"edited": 4.0, "recommended": 4.5, "other": 4.2}, correlation=0.9
    )
    found = {row["effect"]: row for row in found_in(strong, tmp_path).iter_rows(named=True)}
    assert found["for_group reformulations"]["found"] == pytest.approx(0.8, abs=0.02)
    assert found["click ratio, all"]["found"] == pytest.approx(strong.truth["click_ratio"]["all"], rel=0.1)
    assert found["association"]["found"] > 0.7


def test_the_same_seed_makes_the_same_log_and_another_seed_another():
    one, two, other = (
        next(SyntheticLog(Planted(sessions=500, users=100, seed=seed), pages=True).chunks()) for seed in (1, 1, 2)
    )
    assert one.equals(two)
    assert not one.equals(other)


def test_chances_add_up_to_one():
    assert joint(SMALL).sum() == pytest.approx(1.0)
    moves = rank_moves(SMALL)
    assert moves.sum(axis=(1, 2)) == pytest.approx(SMALL.changes)
    new, old = np.meshgrid(np.arange(11), np.arange(11), indexing="ij")
    assert moves[1][old <= new].sum() == 0
    assert moves[3][(old >= new) | (old == 0)].sum() == 0
    assert sum(SMALL.truth["share"][group] for group in GROUPS) == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["aol", "tsv", "parquet"])
def test_every_form_of_a_made_up_log_tells_the_same(tmp_path, form):
    log = SyntheticLog(Planted(sessions=800, users=200, queries_per_topic=3), pages=form == "parquet")
    path = write_log(log, tmp_path / f"log.{form}", form)
    report = analyze_log([path], format=form, settings=LogSettings(topics="words"))
    assert report.rejected == {}
    assert (report.counts["rows_read"], report.counts["sessions"], report.counts["pairs"]) == (1600, 800, 800)
    queries = pl.concat(pl.DataFrame(pl.from_arrow(chunk)) for chunk in log.chunks())["query"]
    assert report.counts["for_group"] == queries.str.contains(r"\b(?:wo)?men\b|\b(?:fe)?male\b").sum()


def test_the_shipped_sample_is_what_the_generator_writes(tmp_path):
    write_sample(tmp_path)
    shipped = LOG_DATA / "sample"
    assert pl.read_parquet(tmp_path / "log.parquet").equals(pl.read_parquet(shipped / "log.parquet"))
    assert (tmp_path / "vocab.txt").read_text() == (shipped / "vocab.txt").read_text()
    assert np.load(tmp_path / "vectors.npy") == pytest.approx(np.load(shipped / "vectors.npy"))
