"""Whatever a text holds, it stays a text: in HTML, in SVG, in attributes, in LaTeX."""

import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.measure import Direction
from askew.report import markup as n
from askew.report.markup import Markup, escape, join, number, quoted, shown, tag
from askew.report.page import (
    Section,
    code,
    document,
    facts,
    figure,
    folded,
    labels_note,
    listed,
    paragraph,
    slug,
)
from askew.report.table import (
    CODE,
    QUOTE,
    Column,
    Group,
    Table,
    columns,
    html_table,
    latex,
    latex_table,
    measure_label,
    table,
)

HOSTILE = [
    "<script>alert(1)</script>", '"onload="alert(1)', "'><img src=x onerror=alert(1)>", "</style></title></svg>",
    "a\u202egnol\u202c b", "\x00\x1b[31m", "&amp;lt;", "]]><!--", "{{7*7}}", "\ud800", "\u2066x\u2069", "\ufffe",
]  # fmt: skip
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

SVG = "http://www.w3.org/2000/svg"


class Tags(HTMLParser):
    """What a browser would see: elements and attributes."""

    def __init__(self):
        super().__init__()
        self.names, self.attributes, self.text = [], [], []

    def handle_starttag(self, name, attributes):
        self.names.append(name)
        self.attributes += [key for key, _ in attributes]

    def handle_data(self, data):
        self.text.append(data)


def seen(markup):
    parser = Tags()
    parser.feed(str(markup))
    parser.close()
    return parser


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_becomes_no_element_and_no_attribute(text):
    found = seen(tag("p", text, title=text))
    assert (found.names, found.attributes) == (["p"], ["title"])
    assert not STEERING.search(tag("p", text, title=text))


@given(st.text())
def test_any_text_comes_back_from_markup_as_it_is_shown(text):
    read = ElementTree.fromstring(tag("p", shown(text), title=shown(text)))
    assert (read.text or "") == shown(text)
    assert read.get("title") == shown(text)


@given(st.text())
def test_whatever_is_shown_can_be_written_and_steers_nothing(text):
    line = shown(text)
    line.encode("utf-8")
    assert not STEERING.search(line)
    assert "\n" not in line


def test_markup_is_not_escaped_twice_and_text_between_it_is():
    inner = tag("b", "x < y")
    assert join([inner, "<i>"]) == "<b>x &lt; y</b>&lt;i&gt;"
    assert isinstance(join([inner]), Markup)


def test_an_element_or_attribute_that_could_run_or_load_something_is_refused():
    for name in ("script", "iframe", "object", "a b", "p><script"):
        with pytest.raises(ValueError, match=f"HTML element {re.escape(repr(name))}"):
            tag(name)
    with pytest.raises(ValueError, match="HTML attribute 'onclick'"):
        tag("p", onclick="x")
    for address in ("javascript:alert(1)", "https://example.org", "//example.org"):
        with pytest.raises(ValueError, match=f"href={re.escape(repr(address))}"):
            tag("a", "x", href=address)
    assert tag("a", "x", href="#here") == '<a href="#here">x</a>'


def test_numbers_are_written_short():
    assert [number(value) for value in (1.0, 1.5, 0.333333, -0.001, 100.0)] == ["1", "1.5", "0.33", "0", "100"]


def test_a_long_text_from_elsewhere_is_cut_and_set_apart():
    found = ElementTree.fromstring(quoted("א" * 500))
    assert (found.tag, found.get("dir"), len(found.text), found.text[-1]) == ("bdi", "auto", 300, "…")


def a_table():
    rows = [["<b>q</b>", "1", "x\u202ey"], ["c_1 & d", "2", "50% of $5 {~^\\}"]]
    columns = [Column("query", QUOTE), Column("n"), Column("method", CODE)]
    return Table("toy", "A <caption>", columns, [Group("", rows[:1]), Group("second_group", rows[1:])], ["note & end"])


def test_a_table_has_a_caption_scopes_and_a_box_that_scrolls():
    html = ElementTree.fromstring(tag("div", html_table(a_table())))
    box = html.find("div")
    assert box.get("role") == "region"
    assert box.get("aria-labelledby") == box.find("table/caption").get("id")
    assert "".join(box.find("table/caption").itertext()) == "A <caption>"
    assert [cell.get("scope") for cell in html.iter("th")] == ["col"] * 3 + ["row", "rowgroup", "row"]
    assert [len(row) for row in html.iter("tr")] == [3, 3, 1, 3]
    assert html.find("p").text == "note & end"


def test_texts_in_cells_stay_texts():
    found = seen(html_table(a_table()))
    assert "b" not in found.names
    assert "<b>q</b>" in found.text


def test_a_table_in_latex_has_rules_and_every_special_sign_is_escaped():
    lines = latex_table(a_table()).splitlines()
    assert [line for line in lines if line.endswith("rule")] == ["\\toprule", "\\midrule", "\\midrule", "\\bottomrule"]
    assert "\\begin{tabular}{lrl}" in lines
    assert "\\multicolumn{3}{l}{\\textit{second\\_group}} \\\\" in lines
    assert "c\\_1 \\& d & 2 & 50\\% of \\$5 \\{\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\} \\\\" in lines


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_no_text_is_a_command_of_latex(text):
    left = re.sub(r"\\(text[a-z]+\{\}|[&%$#_{}])", "", latex(text))
    assert not re.search(r"[\\&%$#_{}~^]", left)


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="expected 2 cells"):
        table("toy", "x", columns("a", "b"), [["1"]])


def page(*texts):
    body = [paragraph(*texts), listed(texts), facts([(text, code(text)) for text in texts]), folded("more", texts[0])]
    body.append(figure(tag("svg", tag("title", texts[0])), texts[0], texts[0]))
    return document(texts[0], [paragraph(texts[0])], [Section("one", texts[0], body)], [paragraph(texts[0])])


@pytest.mark.parametrize("text", HOSTILE)
def test_a_page_of_hostile_texts_has_only_our_elements(text):
    found = seen(page(text))
    plain = seen(page("words"))
    assert (found.names, found.attributes) == (plain.names, plain.attributes)
    assert "script" not in found.names
    page(text).encode("utf-8")


def test_a_page_is_well_formed_names_its_language_and_loads_nothing():
    read = ElementTree.fromstring(page("words"))
    assert read.get("lang") == "en"
    policy = next(meta for meta in read.iter("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    assert policy.get("content").startswith("default-src 'none'")
    assert all(link.get("href").startswith("#") for link in read.iter("a"))
    targets = {element.get("id") for element in read.iter()}
    assert {link.get("href")[1:] for link in read.iter("a")} <= targets
    addresses = set(re.findall(r"https?://[^\s\"'<]+|@import|url\(", page("words")))
    assert addresses <= {SVG}


def test_escaping_keeps_line_breaks_and_shown_does_not():
    assert (escape("a\n<b"), shown(" a\n\tb ")) == ("a\n&lt;b", "a b")


def test_numbers_for_readers_have_true_signs_and_a_dash_where_there_is_none():
    assert [n.mean(value) for value in (0.12345, -0.5, -0.00001, None, math.nan)] == [
        "0.1235", "−0.5000", "0.0000", "–", "–"]  # fmt: skip
    assert [n.change(value) for value in (12.34, -5.0, -0.01, None)] == ["+12.3%", "−5.0%", "+0.0%", "–"]
    assert (n.count(12345), n.share(0.1234), n.share_interval(0.0, 0.25)) == ("12,345", "12.3%", "[0.0, 25.0]")
    assert (n.p_value(0.0004), n.p_value(0.04), n.p_value(None)) == ("<0.001", "0.040", "–")


def test_a_change_of_very_few_queries_has_no_interval():
    row = {"queries": 4, "low": -3.0, "high": 5.0}
    assert (n.interval_of(row), n.interval_of({**row, "queries": 5})) == ("–", "[−3.0, +5.0]")


def test_a_note_explains_only_the_signs_that_are_there():
    labels = [measure_label("RR@10", Direction.UP, "*"), measure_label("ARaB(tf)@10", Direction.ZERO)]
    assert [label.replace("\u00a0", " ") for label in labels] == ["RR@10 ↑ *", "|ARaB(tf)@10| ↓"]
    assert "by construction" in labels_note(labels)
    assert "by construction" not in labels_note(labels, elsewhere="bm25")


def test_names_of_files_are_made_of_measures_and_kept_apart():
    assert slug("ARaB(tf)@10", before="help-hurt") == "help-hurt-arab-tf-10"
    assert slug("../..", before="x") == "x"
    assert slug("a b", {"x-a-b": 1}) == "x-a-b-2"
