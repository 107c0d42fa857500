"""Texts from elsewhere stay texts: in Markdown, in a table, in YAML."""

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from askew.report.markup import code, fenced, markdown, one_line, yaml_text

NASTY = "a|b\n<script>alert(1)</script> `c` [x](http://e.com) **b** _i_ &amp; $m$ #h :smile: www.evil.com me@mail.org"
texts = st.one_of(st.text(max_size=80), st.text(alphabet="|`*_<>&[]()#!~:/\\.@\n\r\t -+=1aw$^{}\"'", max_size=60))
renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def inline_tokens(source: str) -> list:
    return [child for token in renderer.parse(source) for child in (token.children or [])]


@given(texts)
@example(NASTY)
@example("1. one")
@example("- one")
@example("=== one")
@example("10) one")
def test_an_escaped_line_is_one_paragraph_of_plain_text_that_reads_as_it_was(text):
    shown = markdown(text)
    tokens = renderer.parse(shown)
    wanted = one_line(text)
    assert [token.type for token in tokens] == (["paragraph_open", "inline", "paragraph_close"] if wanted else [])
    children = inline_tokens(shown)
    assert {child.type for child in children} <= {"text", "text_special"}
    assert "".join(child.content for child in children) == wanted


@given(texts)
@example(NASTY)
def test_an_escaped_text_stays_in_its_table_cell(text):
    source = f"| head | other |\n| --- | --- |\n| {markdown(text)} | {code(text)} |\n"
    tokens = renderer.parse(source)
    assert sum(token.type == "td_open" for token in tokens) == 2
    assert not [token for token in tokens if token.type.startswith("html")]
    cell = "".join(child.content for child in inline_tokens(source)[2:])
    assert one_line(text) in cell


@given(texts)
def test_escaping_leaves_no_character_that_means_something(text):
    shown = markdown(text)
    assert not re.search(r"[|`*_<>\[\]\\{}#~$^:@!\x00-\x1f]", re.sub(r"&#\d+;", "", shown))
    assert html.unescape(shown) == one_line(text)


def test_a_name_without_a_scheme_is_no_link_either():
    assert markdown("see www.evil.com.") == "see www&#46;evil&#46;com."


def test_marks_that_turn_the_direction_become_blanks():
    assert one_line("abc\u202egnp.exe") == "abc gnp.exe"


def test_a_long_text_is_cut_with_a_mark():
    assert markdown("a" * 400) == "a" * 299 + "…"


def test_a_plain_name_is_code_and_another_is_escaped():
    assert code("ARaB(tf)@10") == "`ARaB(tf)@10`"
    assert code("a`b|c") == "a&#96;b&#124;c"


@given(st.text(alphabet="`a\n ~#", max_size=60))
def test_a_fence_is_never_closed_by_what_stands_in_it(text):
    tokens = renderer.parse("\n".join([*fenced(text), "", "after"]))
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]


@given(texts)
@example("a: b # c")
@example("\u2028\x85\ufeff\U0001f600\ufffe")
@example('"\n---\nlicense: mit')
def test_a_yaml_text_reads_back_as_one_line(text):
    yaml = pytest.importorskip("yaml", reason="reading YAML back needs PyYAML")
    source = f"title: {yaml_text(text)}\nlicense: other\n"
    assert yaml.safe_load(source) == {"title": one_line(text), "license": "other"}


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_nothing_stays_nothing(text):
    assert markdown(text) == ""
    assert yaml_text(text) == '""'
