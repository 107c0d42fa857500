"""What pages say beside numbers: it agrees with them, claims no more than they do, and can be used as it stands."""

import re

import polars as pl
import pytest

from askew.ui.explorer.pairs import PairFilter, open_pairs
from askew.ui.web.pages.parts import gain_cell, outcome_beside
from askew.ui.web.pages.plan import base_of

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
    assert table.sides == ("RR@10", "ARaB(tf,who=generic)@10")
    found = table.selection(PairFilter(outcome="same-more")).collect()
    mixed = found.filter(pl.col("gain_ARaB_tf_who_generic_10") > 0).height
    assert 0 < mixed < found.height <= 400
    asked = [{"subset": "all", "outcome": "same-more", "size": 200, "page": page} for page in (1, 2)]
    text = "".join(client.get("/pairs", params=one).text for one in asked)
    assert text.count("leans less by ARaB(tf,who=generic)@10, more by another") == mixed
    tables = "".join(re.findall(r"<tbody>.*?</tbody>", text))
    assert tables.count("retrieves as well and leans more") == found.height - mixed
    assert 'title="ARaB(tf,who=generic)@10: held_out_gain_ARaB_tf_who_generic_10, gain_ARaB_tf_who_generic_10"' in text


def test_a_gain_that_may_be_chance_has_a_sign_and_no_colour(client):
    assert gain_cell(0.5) == '<span class="gain up"><span aria-hidden="true">▲ </span>+0.500</span>'
    assert gain_cell(0.5, colored=False) == '<span class="gain"><span aria-hidden="true">▲ </span>+0.500</span>'
    text = client.get("/runs?run=demo:bm25.run&run=demo:minilm.run").text
    table = text[text.index('id="table-comparison"') :].partition("</table>")[0]
    rows = [(re.search('class="gain( up| down)?"', row)[1], _p(row)) for row in table.split("<tr>")[2:]]
    assert len(rows) == 10 and all((colour is not None) == (p < 0.05) for colour, p in rows)
    assert "is colored if its p is below 0.05" in text


def _p(row):
    """The corrected p of a row: its fourth cell."""
    return float(re.findall(r'<td class="number">([^<]*)</td>', row)[1].replace("&lt;", "").strip())


def test_only_losses_are_listed_as_losses_and_none_are_told(client):
    text = client.get("/runs?run=demo:bm25.run&run=demo:minilm.run&measure=RR@10").text
    lost = text[text.index('id="table-worst-1"') :].partition("</table>")[0]
    assert "▼" in lost and lost.count('class="gain down"') == lost.count('scope="row"')
    files = [("files", ("a.run", RUN)), ("files", ("b.run", RUN.replace("2.0", "3.0")))]
    link = client.post("/runs", files=files, follow_redirects=False).headers["location"]
    assert "b.run is worse on no query by" in client.get(link).text


def test_the_examples_of_the_reference_name_the_address_asked_and_stand_under_their_method(client):
    text = client.get("/api", headers={"host": "localhost:9001"}).text
    assert text.count("http://localhost:9001/api/") == 3 and "8642" not in text
    for part in re.split("<h3>", text)[1:]:
        method, _, path = re.match(r"<code>(\w+)( )([^<]*)</code>", part).groups()
        for example in re.findall("<pre>(.*?)</pre>", part):
            assert path in example and (" -d " in example) == (method == "POST")


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("localhost:9001", "http://localhost:9001"),
        ("[::1]:9001", "http://[::1]:9001"),
        ("evil'; rm -r ~ #", "http://127.0.0.1:8642"),
        ("", "http://127.0.0.1:8642"),
    ],
)
def test_a_host_that_is_more_than_a_host_does_not_come_into_an_example(host, base):
    assert base_of("http", host, "127.0.0.1:8642") == base
