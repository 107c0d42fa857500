"""Search: the picture of the lean, reformulations with what they gain and lose, words that say why they are marked."""

import html
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from askew.core.groups import WHO
from askew.measures.mentions import Mark
from askew.pairs.recipe import Recipe, read_recipe
from askew.ui.explorer.answers import ASKED, NOT_ENGLISH, OFF_TOPIC, Reasons, Variant, is_english
from askew.ui.explorer.explorer import Explorer
from askew.ui.explorer.leaning import LEAST_LEAN
from askew.ui.explorer.opening import Sources, open_sources, suggesting_recipe, usual_recipe
from askew.ui.explorer.plan import RecordedPlan
from askew.ui.web.markup import address
from conftest import JUDGED

TYPED = "women nursing school"


def text_of(page):
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


def test_the_running_value_ends_at_the_value_of_the_page(explorer):
    for query in (JUDGED, TYPED, "symptoms of heart attack"):
        found = explorer.search(query)
        value = next(one.value for one in found.values if one.measure == explorer.lean)
        assert found.lean.value == value == found.lean.running[-1]
        assert len(found.lean.running) == 10


def test_a_running_value_is_the_measure_with_so_many_results(explorer):
    steps = explorer.search(JUDGED).lean.running
    for rank in (1, 4, 9):
        text = explorer.lean.replace("@10", f"@{rank}")
        other = Explorer(explorer.searched, replace(explorer.counting, measures=(text,), lean=text, effectiveness=None))
        assert other.search(JUDGED).values[0].value == steps[rank - 1]


def test_every_query_is_drawn_on_the_same_scale_before_the_same_range(explorer):
    pictures = [explorer.search(query).lean for query in (JUDGED, TYPED, "what does a judge do")]
    assert len({one.scale for one in pictures}) == len({one.typical for one in pictures}) == 1
    low, *_, high = pictures[0].typical.quantiles
    assert pictures[0].scale[0] <= low < high <= pictures[0].scale[1]


def test_the_range_of_a_store_is_that_of_its_original_queries(store, explorer):
    found = open_sources(Sources(store=store.root)).explorer
    kept = found.searched.known.texts
    assert found.leaning.typical().queries <= len(kept) and found.leaning.known.tolist()
    values = sorted(value for query in kept.values()
                    if math.isfinite(value := found.search(query, 1).lean.value or math.nan))  # fmt: skip
    assert set(found.leaning.known.tolist()) <= set(values) | {0.0}


def test_a_picture_has_the_sentence_of_the_headline_and_its_own_threshold(explorer):
    first = SimpleNamespace(toward="male", sentence="a sentence")

    def draw(value):
        return explorer.leaning.picture(value, (), first)

    assert (draw(0.5).meaning, draw(0.5).toward, draw(0.5).leans) == ("a sentence", "male", True)
    assert draw(LEAST_LEAN).leans is False and draw(None).leans is None


def test_the_title_of_the_results_does_not_say_that_there_are_three(client):
    page = client.get("/", params={"q": JUDGED}).text
    assert re.findall(r"<h2[^>]*>(Results[^<]*)</h2>", page) == ["Results", "Results 4 to 10"]


def test_results_come_at_once_and_reformulations_are_loaded(client):
    page = client.get("/", params={"q": JUDGED}).text
    assert f'data-load="{address("/reformulations", {"q": JUDGED})}"' in page and "suggestions" not in page
    link = re.search(r'href="(/\?q=[^"]*reformulations=now)#reformulations"', page)[1]
    part = client.get("/reformulations", params={"q": JUDGED}).text
    assert "<html" not in part and part in client.get(html.unescape(link)).text


def test_the_best_three_come_first_with_meaning_gains_and_losses(client, explorer):
    part = client.get("/reformulations", params={"q": JUDGED}).text
    first, *_ = part.partition("<details>")
    found = explorer.reformulate(JUDGED)
    assert first.count("<li>") == 3 and f"{len(found.candidates) - 3} more" in part
    words = text_of(first)
    assert words.count("same meaning") == words.count("Gains") == words.count("Loses") == 3
    assert "in the dataset" in words
    shown = re.findall(r'<bdi dir="auto">([^<]+)</bdi>', first)
    assert shown == [one.text for one in found.ordered()[:3]]


def test_nothing_lost_comes_first_then_lean(explorer):
    found = explorer.reformulate(JUDGED)
    lean = found.lean

    def made(text, outcome, gain):
        second = outcome.partition("-")[2]
        return Variant(text, text, "m", None, {}, {lean: gain}, outcome, second, ())

    some = (made("a", "worse-less", 0.9), made("b", "same-less", 0.1), made("c", "better-more", -0.2),
            made("d", "better-less", 0.3), made("e", "same-same", 0.0))  # fmt: skip
    assert [one.text for one in replace(found, candidates=some).ordered()] == ["d", "b", "a", "e", "c"]


def test_pairs_of_the_store_come_first_and_spare_the_methods(explorer):
    found = explorer.reformulate(JUDGED)
    assert found.candidates and all(one.stored for one in found.candidates) and found.methods == ()
    typed = explorer.reformulate(TYPED)
    assert typed.methods and not any(one.stored for one in typed.candidates)


def test_no_reformulation_is_offered_where_nothing_leans(client, explorer):
    query = next(text for text in explorer.searched.known.texts.values() if explorer.search(text).lean.leans is False)
    page = text_of(client.get("/", params={"q": query}).text)
    assert "No reformulation needed." in page
    assert "data-load" not in client.get("/", params={"q": query}).text
    assert "Show reformulations anyway" in page and "Your own reformulation" in page
    assert "No reformulation needed." in text_of(client.get("/reformulations", params={"q": query}).text)


def test_a_typed_reformulation_has_the_verdict_of_compare(client):
    given = {"q": JUDGED, "to": "nurse training"}
    part = client.get("/verdict", params=given).text
    assert part in client.get("/compare", params=given).text and "same meaning" in part
    assert client.get("/verdict", params={"q": JUDGED, "to": " "}).status_code == 422


def test_the_usual_methods_keep_the_meaning_and_need_no_model_where_there_is_none(monkeypatch):
    assert [one["method"] for one in usual_recipe().tables("reformulate")][-1] == "reduce"
    assert "equivalence" in [one["filter"] for one in usual_recipe().tables("filter")]
    monkeypatch.setattr("askew.ui.explorer.opening.has_smollm", lambda: False)
    assert [one["method"] for one in usual_recipe().tables("reformulate")] == ["reduce"]


def test_the_methods_of_a_store_win_unless_they_know_only_their_own_queries():
    own = read_recipe("refairmulate-paper")
    assert suggesting_recipe(None, RecordedPlan(own, "demo", None, {})).tables("reformulate") == own.tables(
        "reformulate"
    )
    replayed = Recipe("own", {**own.sections, "reformulate": [{"method": "replay", "file": "demo"}]})
    assert suggesting_recipe(None, RecordedPlan(replayed, "demo", None, {})).name == "refairmulate"
    assert suggesting_recipe("reque", RecordedPlan(own, "demo", None, {})).name == "reque"


def test_a_marked_word_says_who_it_points_to_and_why_on_hover_and_on_focus(client, explorer):
    marks = [mark for one in explorer.search(TYPED).results for mark in one.marks]
    assert all(mark.who in WHO and 0 <= mark.who_p <= 1 and mark.why_p >= 0.5 for mark in marks)
    # The query names women: what is on topic there is asked for.
    assert {mark.why for mark in marks if mark.groups == ("female",)} <= {ASKED, OFF_TOPIC}
    counted = {mark.who for mark in marks if mark.counted}
    assert counted <= {"generic"} and any(not mark.counted for mark in marks)
    page = client.get("/", params={"q": TYPED}).text
    for tag in re.findall("<mark [^>]*data-why[^>]*>", page):
        assert 'tabindex="0"' in tag and re.search('title="(?:female|male); refers to: ', tag)


def test_words_of_other_groups_are_marked_and_not_explained():
    found = Reasons(("old", "young")).explain("query", (), ["an old text"], [[Mark(3, 6, ("old",))]], [False])
    assert found[0][0].who is None and found[0][0].why is None and found[0][0].words == "old"


def test_the_parts_of_the_lean_add_up_and_say_what_they_cannot_tell(client, explorer):
    found = explorer.search(JUDGED)
    assert sum(one.share for one in found.parts) == pytest.approx(1) and found.parts_of == "ARaB(tf)@10"
    value = next(one.value for one in found.values if one.measure == found.parts_of)
    assert sum(one.net for one in found.parts) == pytest.approx(value)
    assert "off topic" in text_of(client.get("/", params={"q": JUDGED}).text)


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (JUDGED, True), ("best man speech", True), ("machu picchu altitude", True), ("Was ist ein Arzt", False),
        ("wie viel verdient man als Arzt", False), ("man muss viel lernen", False), ("что делает врач", False),
    ],
)  # fmt: skip
def test_a_text_of_another_language_is_told_from_english(text, english):
    assert is_english(text) is english


def test_german_man_is_not_read_as_male_and_that_is_told(client, explorer):
    query = "wie viel verdient man als nurse"
    found = explorer.search(query)
    assert not found.warrant.english and found.warrant.words == ()
    assert NOT_ENGLISH in text_of(client.get("/", params={"q": query}).text)
    assert explorer.reformulate(query).notes == (NOT_ENGLISH,) and explorer.reformulate(query).methods == ()


def test_results_in_another_language_are_told(tmp_path):
    (tmp_path / "docs.tsv").write_text(
        "d1\tman muss viel lernen, wenn man Arzt werden will\nd2\the is a doctor, an Arzt\n"
    )
    (tmp_path / "queries.tsv").write_text("q1\tarzt\n")
    (tmp_path / "store").mkdir()
    found = open_sources(Sources(store=tmp_path / "store", collection=str(tmp_path))).explorer.search("arzt")
    assert {one.doc_id: one.english for one in found.results} == {"d1": False, "d2": True}
    (note,) = found.notes
    assert note.code == "not-english" and note.values == {"count": 1, "of": 2, "lexicon": "rekabsaz2020"}
    assert found.parts == ()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("the and of", "only stop words"),
        ("zzqqx", "none of its words is in this collection"),
        ("?!", "no letters and no digits"),
    ],
)
def test_a_query_that_finds_nothing_is_told_why_and_what_there_is(client, query, says):
    page = client.get("/", params={"q": query}).text
    assert says in text_of(page) and 'class="chips"' in page
    assert f'value="{html.escape(query)}"' in page


def test_an_error_keeps_the_query_in_its_box(client):
    reply = client.get("/", params={"q": "x" * 501})
    assert reply.status_code == 422 and f'value="{"x" * 500}"' in reply.text and 'role="alert"' in reply.text
    reply = client.get("/", params={"q": '"><b>nurse', "k": 0})
    assert reply.status_code == 422 and 'value="&quot;&gt;&lt;b&gt;nurse"' in reply.text
    assert 'name="q"' in client.get("/compare", params={"q": "nurse"}).text


def test_bars_have_the_same_scale_on_every_page(client):
    drawn = re.compile(r'aria-label="(\d+) female, \d+ male words"><.*?class="fill-g1"[^>]*width="([\d.]+)"')
    widths = [found for query in (JUDGED, TYPED) for found in drawn.findall(client.get("/", params={"q": query}).text)]
    assert len(widths) == 20
    for words, width in widths:
        assert float(width) == pytest.approx(min(int(words), 10) * 10)
