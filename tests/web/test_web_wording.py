"""What pages say beside numbers: it agrees with them, claims no more than they do, and can be used as it stands."""

import html
import re

import polars as pl
import pytest

from askew.core.measure import gain_column, held_out_gain_column
from askew.ui.explorer.pairs import PairFilter, open_pairs
from askew.ui.explorer.runs import SIGNIFICANT
from askew.ui.web.pages.parts import gain_cell, outcome_beside, outcome_words
from conftest import DECIDING, JUDGED

RUN = "care-q02 Q0 care-07 1 2.0 t\ncare-q02 Q0 care-17 2 1.0 t\nlaw-q08 Q0 law-08 1 1.0 t\nlaw-q08 Q0 law-01 2 .5 t\n"


@pytest.mark.parametrize(
    ("outcome", "effectiveness", "lean", "words"),
    [
        ("same-more", 0.0, 0.2, "retrieves as well and leans less by ARaB(tf)@10, more by another"),
        ("worse-less", 0.5, 0.2, "retrieves better by RR@10, worse by another and leans less"),
        ("same-more", 0.0, -0.2, "retrieves as well and leans more"),
        ("same-more", 0.0, 0.0, "retrieves as well and leans more"),
        ("worse-more", -0.5, 0.05, "retrieves worse and leans more"),
        ("better-less", 0.5, 0.2, "retrieves better and leans less"),
        ("worse-more", None, None, "retrieves worse and leans more"),
        (None, 0.5, 0.2, "–"),
    ],
)
def test_an_outcome_never_contradicts_the_first_measure_beside_it(outcome, effectiveness, lean, words):
    assert outcome_beside(outcome, ("RR@10", effectiveness), ("ARaB(tf)@10", lean), 0.1) == words


def test_a_pair_that_leans_less_by_the_first_measure_is_never_only_said_to_lean_more(client, store):
    table = open_pairs(store)
    assert table.sides == ("RR@10", DECIDING)
    found = table.selection(PairFilter(outcome="same-more")).collect()
    mixed = found.filter(pl.col(gain_column(DECIDING)) > 0).height
    assert 0 < mixed < found.height <= 400
    asked = [{"subset": "all", "outcome": "same-more", "size": 200, "page": page} for page in (1, 2)]
    text = "".join(client.get("/pairs", params=one).text for one in asked)
    assert text.count(f"leans less by {DECIDING}, more") == mixed
    tables = "".join(re.findall(r"<tbody>.*?</tbody>", text))
    assert tables.count(outcome_words("same-more", None)) == found.height - mixed
    assert f'title="{DECIDING}: {held_out_gain_column(DECIDING)}, {gain_column(DECIDING)}"' in text


def test_a_gain_that_may_be_chance_has_a_sign_and_no_colour(client):
    assert gain_cell(0.5) == '<span class="gain up"><span aria-hidden="true">▲ </span>+0.500</span>'
    assert gain_cell(0.5, colored=False) == '<span class="gain"><span aria-hidden="true">▲ </span>+0.500</span>'
    text = client.get("/runs?run=demo:bm25.run&run=demo:minilm.run").text
    table = text[text.index('id="table-comparison"') :].partition("</table>")[0]
    rows = [(re.search('class="gain( up| down)?"', row)[1], _p(row)) for row in table.split("<tr>")[2:]]
    assert len(rows) == 9 and all((colour is not None) == (p < 0.05) for colour, p in rows)
    assert f"below {SIGNIFICANT}." in text


def _p(row):
    """The corrected p of a row: its fourth cell."""
    return float(re.findall(r'<td class="number">([^<]*)</td>', row)[1].replace("&lt;", "").strip())


def test_only_losses_are_listed_as_losses_and_none_are_told(client):
    text = client.get("/runs?run=demo:bm25.run&run=demo:minilm.run&measure=RR@10").text
    lost = text[text.index('id="table-worst-1"') :].partition("</table>")[0]
    assert "▼" in lost and lost.count('class="gain down"') == lost.count('scope="row"')
    files = [("files", ("a.run", RUN)), ("files", ("b.run", RUN.replace("2.0", "3.0")))]
    link = client.post("/runs", files=files, follow_redirects=False).headers["location"]
    none = client.get(link).text
    assert 'id="table-worst-0"' in none and 'id="table-worst-1"' not in none


PAGES = {
    "start": ("/", {}),
    "results": ("/", {"q": JUDGED, "reformulations": "now"}),
    "results of a query without judgements": ("/", {"q": "best running shoes for women", "reformulations": "now"}),
    "results with a reason": ("/", {"q": "prostate cancer screening for men"}),
    "results in another language": ("/", {"q": "wie viel verdient man als nurse"}),
    "no results": ("/", {"q": "zzqqx"}),
    "comparison": ("/compare", {"q": JUDGED, "to": "nurse job"}),
    "half a comparison": ("/compare", {"q": JUDGED}),
    "dataset": ("/pairs", {}),
    "no pairs": ("/pairs", {"lean_min": 100}),
    "runs": ("/runs", {}),
    "compared runs": ("/runs", {"run": ["demo:bm25.run", "demo:minilm.run"]}),
    "unknown run": ("/runs", {"run": "upload:abc"}),
    "no audit": ("/audit", {}),
    "no log": ("/logs", {}),
    "steps": ("/plan", {}),
    "nothing": ("/nothing-here", {}),
}


@pytest.mark.parametrize("name", PAGES)
def test_each_page_is_worded_as_its_snapshot(client, snapshot, name):
    """Without numbers, and without the rows of tables, which hold data."""
    path, params = PAGES[name]
    text = client.get(path, params=params).text
    data = r"<tbody>.*?</tbody>|<svg.*?</svg>|<(ol|ul) class=.(?:results|side|signatures).*?</\1>"
    main = re.sub(data, "", text.partition("<body>")[2])
    lines = (" ".join(html.unescape(line).split()) for line in re.split("<[^>]+>", main))
    titles = re.findall('(?:title|aria-label|placeholder)="([^"]+)"', main)
    numbers = r"@[0-9a-f]{8,}|[\d.,−+]*\d%?"
    words = [re.sub(numbers, "#", line) for line in (*lines, *map(html.unescape, titles)) if line]
    snapshot("\n".join(dict.fromkeys(words)) + "\n", f"page: {name}".replace(": ", " ").replace(" ", "-"))
