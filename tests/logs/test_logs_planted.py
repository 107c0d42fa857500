"""Made-up logs: the same seed makes the same log, and what is planted in one is found in it."""

import dataclasses
import math
from statistics import NormalDist

import numpy as np
import polars as pl
import pytest
from log_generator import (
    ENTRIES,
    GROUPS,
    WEIGHTS,
    Planted,
    SyntheticLog,
    joint,
    rank_moves,
    site_chances,
    write_log,
    write_sample,
    write_vectors,
)

from askew.logs.analyze import logs
from askew.logs.definition import LOG_DATA
from askew.logs.effect import KINDS
from askew.logs.numbers import spearman
from askew.logs.page import ends
from askew.logs.settings import LogSettings

SMALL = Planted(sessions=16_000, users=5_000, queries_per_topic=4, rare=0.0)
HEADLINES = (
    "specializing reformulations", "for_group reformulations", "female share", "male share", "edited, all",
    "recommended, all", "other, all", "recommended, female", "recommended, male", "gap all, all", "gap all, edited",
    "gap all, recommended", "gap all, other", "gap female, all", "click ratio, all", "click ratio, recommended",
    "clicked result absent", "clicked result lower", "clicked result same", "clicked result higher", "seeks-specific",
    "corrects", "intensifies", "reinforces", "association", "rate shopping and fashion", "rate health",
    "recommended shopping and fashion", "share_female shopping and fashion", "exposure site0.example",
)  # fmt: skip


def truth_of(planted):
    """The true value of every planted effect, computed from the probabilities and not from a sample."""
    both, queries = joint(planted), planted.queries
    totals = both.sum(axis=0)
    entry = {("all", name): float(totals[:, e].sum()) for e, name in enumerate(ENTRIES)}
    weights = {}
    for g, group in enumerate(GROUPS):
        for e, name in enumerate(ENTRIES):
            entry[group, name] = float(totals[g, e] / totals[g].sum())
            weights[group, name] = float(totals[g, e])
    medians = {}
    for group in ("all", *GROUPS):
        for name in ("all", *ENTRIES):
            parts = [key for key in weights if group in ("all", key[0]) and name in ("all", key[1])]
            medians[group, name] = _mixture_median(
                [(planted.medians[key], weights[key]) for key in parts], planted.spread
            )
    clicks = both.sum(axis=(0, 1)) @ np.array([planted.click_ratio[name] for name in ENTRIES])
    events, topics = planted.specializing * planted.for_group, {}
    for topic in planted.words:
        here = np.array(queries.topics) == topic
        part, in_events = both[here], float(both[here].sum())
        in_log = events * in_events + (1 - events) * float(queries.in_log[here].sum())
        topics[topic] = {
            "rate": in_events / in_log, "recommended": float(part[:, :, 1].sum() / in_events),
            "share_female": float(part[:, 0].sum() / in_events),
        }  # fmt: skip
    return {
        "specializing": planted.specializing, "for_group": planted.for_group,
        "share": {group: float(both[:, g].sum()) for g, group in enumerate(GROUPS)},
        "entry": entry, "median": medians,
        "click_ratio": {"all": float(clicks), **{name: float(planted.click_ratio[name]) for name in ENTRIES}},
        "change": dict(zip(("absent", "lower", "same", "higher"), planted.changes, strict=True)),
        "kind": dict(zip(KINDS, planted.kinds, strict=True)), "site": _site_truth(planted, float(clicks)),
        "topic": topics, "association": spearman(queries.female, queries.association).rho,
    }  # fmt: skip


def _mixture_median(parts, spread):
    """The median of a mixture of log-normal distributions, given as (median, weight), by bisection."""
    low, high = 1e-3, 1e5
    for _ in range(100):
        middle = math.sqrt(low * high)
        below = sum(w * 0.5 * (1 + math.erf(math.log(middle / m) / (spread * math.sqrt(2)))) for m, w in parts)
        low, high = (middle, high) if below < sum(w for _, w in parts) / 2 else (low, middle)
    return math.sqrt(low * high)


def _site_truth(planted, clicks):
    """The exposure ratio of each site. A result that is on both pages replaces a randomly drawn one on each page."""
    before, after = site_chances(planted)
    moves = rank_moves(planted)[1:]
    shared = planted.click_before * clicks
    taken_after = shared * float((moves.sum(axis=(0, 2))[1:] * WEIGHTS).sum())
    taken_before = shared * float((moves.sum(axis=(0, 1))[1:] * WEIGHTS).sum())
    ratios = after * (WEIGHTS.sum() - taken_after) / (before * (WEIGHTS.sum() - taken_before))
    return {f"site{number}.example": float(ratio) for number, ratio in enumerate(ratios)}


def planted_table(report, planted):
    """One row per effect: the planted value, the estimate with its interval, and whether the interval covers the value.

    An effect is left out if the report has no table or no interval for it.
    """
    rows = []
    for name, truth, table, value, where in _effects(truth_of(planted)):
        found = report.tables[table].filter(**where).to_dicts() if table in report.tables else []
        low, high = ends(found[0], value) if found else (None, None)
        if low is not None and high is not None:
            row = {"effect": name, "planted": truth, "found": found[0][value], "low": low, "high": high}
            rows.append({**row, "n": found[0]["n"], "within": low <= truth <= high})
    return pl.DataFrame(rows, infer_schema_length=None)


def _effects(truth):
    """Every planted effect: its name, its true value, and the table, column and row where it should be found."""
    for what in ("specializing", "for_group"):
        yield f"{what} reformulations", truth[what], "frequency", "share", {"what": what}
    for group, value in truth["share"].items():
        yield f"{group} share", value, "groups", "share", {"group": group}
    for kind, table, column, label in (
        ("entry", "entries", "share", "{1}, {0}"),
        ("median", "gaps", "median", "gap {0}, {1}"),
    ):
        for (group, entry), value in truth[kind].items():
            yield label.format(group, entry), value, table, column, {"group": group, "entry": entry}
    for kind, table, column, key, label in (
        ("click_ratio", "clicks", "ratio", "entry", "click ratio, {}"),
        ("change", "ranks", "share", "change", "clicked result {}"),
        ("kind", "kinds", "share", "kind", "{}"),
    ):
        for name, value in truth[kind].items():
            yield label.format(name), value, table, column, {"group": "all", key: name}
    for site, value in truth["site"].items():
        yield f"exposure {site}", value, "sites", "ratio", {"site": site}
    for topic, values in truth["topic"].items():
        for name, value in values.items():
            yield f"{name} {topic}", value, "topics", name, {"topic": topic}
    yield "association", truth["association"], "association", "rho", {}


def found_in(planted, folder):
    """The planted effects of a log, and what the analysis of the log finds."""
    path = write_log(SyntheticLog(planted), folder / "log.parquet")
    settings = LogSettings(threads=2, vectors=write_vectors(planted, folder))
    return planted_table(logs(path, format="parquet", settings=settings), planted)


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
    assert found["click ratio, all"]["found"] == pytest.approx(truth_of(strong)["click_ratio"]["all"], rel=0.1)
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
    assert sum(truth_of(SMALL)["share"][group] for group in GROUPS) == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["aol", "tsv", "parquet"])
def test_every_form_of_a_made_up_log_tells_the_same(tmp_path, form):
    log = SyntheticLog(Planted(sessions=800, users=200, queries_per_topic=3), pages=form == "parquet")
    path = write_log(log, tmp_path / f"log.{form}", form)
    report = logs([path], format=form, settings=LogSettings(topics="words"))
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
