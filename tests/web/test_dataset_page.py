"""Dataset: it opens on chosen pairs, held-out figures first; facets, order and the chart select rows."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.measure import gain_column, held_out_gain_column
from askew.pairs.build import build
from askew.ui.explorer.pairs import (
    CHOSEN,
    EVERY,
    FACETS,
    MOST_CELLS,
    SORTS,
    PairFilter,
    ShownPairs,
    _cells,
    gain_cells,
    open_pairs,
)

LEAN, EFFECT = "ARaB(tf,who=generic)@10", "RR@10"


@pytest.fixture(scope="module")
def table(store):
    return open_pairs(store)


def shown(client, **given):
    text = client.get("/pairs", params=given).text
    return int(re.search(r"<strong>([\d,]+) of", text)[1].replace(",", "")), text


def test_it_opens_on_the_pairs_chosen_for_any_subset(client, demo_pairs):
    chosen = demo_pairs.filter(pl.any_horizontal("optimal", "effective", "fair"))
    assert shown(client)[0] == chosen.height < demo_pairs.height
    assert shown(client, subset="all")[0] == demo_pairs.height
    assert client.get("/api/pairs").json()["total"] == demo_pairs.height


def test_what_is_downloaded_is_what_is_shown(client, tmp_path):
    given = {"lean_min": 0.1, "sort": "-lean"}
    total, text = shown(client, **given)
    link = re.search(r'href="(/pairs/selection.parquet[^"]*)"', text)[1].replace("&amp;", "&")
    (tmp_path / "x.parquet").write_bytes(client.get(link).content)
    found = pl.read_parquet(tmp_path / "x.parquet")
    assert found.height == total > 0
    gains = found[gain_column(LEAN)]
    assert gains.min() >= 0.1 and gains.is_sorted(descending=True)


def test_held_out_figures_come_first_and_in_sample_ones_are_labeled(client, table):
    text = shown(client)[1]
    head = re.search(r'id="table-figures-fair".*?</tr>', text)[0]
    assert head.index("change, held out") < head.index("in-sample")
    assert text.index("table-figures-fair") < text.index("table-figures-effective") < text.index('id="table-pairs"')
    rows = re.findall(r'<td class="gains">(.*?)</td>', text)
    assert all("in-sample" in row for row in rows)
    held = [row for row in rows if "held out" in row]
    assert held and all(row.index("held out") < row.index("in-sample") for row in held)
    # A pair that neither half chose has no held-out gains.
    assert any(row["held_out_gains"].keys() == {EFFECT, LEAN} for row in table.page(PairFilter(subset="fair")).rows)


def test_held_out_figures_are_those_of_the_build(store, table, tmp_path):
    made = build("demo", store=store.root)
    rows = {(row["subset"], row["measure"]): row for row in made.summary.to_dicts()}
    for row in table.held_out.rows:
        same = rows[row["subset"], row["measure"]]
        for name in ("figures", "change", "low", "high", "in_sample_change", "held_out_queries"):
            assert row[name] == same[name], (row["subset"], row["measure"], name)
    published = pl.concat([pl.read_parquet(path) for path in made.publish(tmp_path / "out").folder.rglob("*.parquet")])
    told = {(row["query_id"], row["variant_id"]): row for row in published.iter_rows(named=True)}
    for key, gains in table.held_out.gains.items():
        for measure, gain in gains.items():
            assert key not in told or told[key][held_out_gain_column(measure)] == pytest.approx(gain, abs=1e-6)


def test_a_facet_counts_what_its_link_would_show(client, table):
    for wanted in (PairFilter(subset=CHOSEN), PairFilter(subset=EVERY, outcome="same-less", text="how")):
        counts = table.facets(wanted)
        for name in ("subset", *FACETS):
            for value, count in counts[name].items():
                assert table.page(wanted.but(**{name: value})).total == count, (name, value)
    text = shown(client, outcome="same-less")[1]
    links = re.findall(
        r'<a href="([^"]+)" class="value" title="[^"]+"><span>[^<]*</span><span class="count">(.+?)<', text
    )
    assert len(links) > 5
    for link, count in links:
        assert f"<strong>{count} of" in client.get(link.replace("&amp;", "&")).text, link


def test_a_subset_may_be_called_chosen(store, table):
    named = ShownPairs(table.name, table.selection(PairFilter()).rename({"optimal": CHOSEN}), table.manifest, store)
    assert named.counts["subset"][CHOSEN] == table.counts["subset"][CHOSEN]
    assert named.page(PairFilter(subset=CHOSEN)).total == table.page(PairFilter(subset=CHOSEN)).total


@pytest.mark.parametrize("name", [*SORTS, "lean", "effectiveness"])
def test_every_head_sorts_and_a_second_click_turns_the_order_around(table, name):
    column = SORTS.get(name) or gain_column({"lean": LEAN, "effectiveness": EFFECT}[name])
    up, down = (table.selection(PairFilter(sort=f"{sign}{name}")).collect()[column] for sign in ("", "-"))
    assert up.drop_nulls().is_sorted() and down.drop_nulls().is_sorted(descending=True)
    assert up.len() == down.len() == table.manifest.rows_out


def test_heads_are_links_that_say_how_the_table_is_sorted(client):
    text = shown(client, sort="-lean")[1]
    assert re.search(r'<th scope="col" class="gains" title="[^"]+" aria-sort="descending">', text)
    assert text.count("aria-sort=") == 1
    assert "sort=lean" in text and "sort=-same" in text and "sort=text" in text
    assert 'title="p_same: ' in text


def test_the_chart_holds_every_pair_that_fits_whatever_the_rectangle(table, demo_pairs):
    found = gain_cells(table, PairFilter(subset="fair", lean_min=0.1))
    assert found.fitting["pairs"].sum() + found.unknown == demo_pairs["fair"].sum()
    assert found.every["pairs"].sum() == demo_pairs.height
    assert found.span == gain_cells(table, PairFilter(subset="negative")).span


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), max_size=200),
    st.sampled_from([0.0, 0.05]),
)
def test_cells_keep_the_number_of_pairs_and_never_mix_gains_with_losses(points, tolerance):
    x, y = (np.array([point[side] for point in points], np.float64) for side in (0, 1))
    found = _cells(pl.DataFrame({"x": x, "y": y}), ((-1.0, 1.0), (-1.0, 1.0)), tolerance)
    assert found["pairs"].sum() == len(points)
    assert all((np.sign(mean) == sign) or abs(mean) <= tolerance or sign == 0
               for mean, sign in zip(found["x"], found["x_sign"], strict=True))  # fmt: skip
    assert np.dot(found["x"], found["pairs"]) == pytest.approx(x.sum(), abs=1e-9)


def test_the_number_of_cells_is_bounded_whatever_the_number_of_pairs():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 200_000))
    x[::3] = 0
    found = _cells(pl.DataFrame({"x": x, "y": y}), ((x.min(), x.max()), (y.min(), y.max())), 0.0)
    assert found.height <= MOST_CELLS and found["pairs"].sum() == 200_000


def test_a_filter_that_nothing_fits_says_what_to_do(client):
    total, text = shown(client, lean_min=100)
    assert total == 0 and 'role="status"' in text and 'href="/pairs"' in text
