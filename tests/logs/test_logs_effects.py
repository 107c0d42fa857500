"""Clicks, ranks, exposure, pages, topics, association and discovery, on logs small enough to count by hand."""

import math

import numpy as np
import polars as pl
import pytest

from askew.core.errors import ConfigError, DataError
from askew.core.lexicon import Lexicon, load_lexicon
from askew.logs.association import (
    Association,
    Decision,
    WordPairs,
    grown,
    load_pairs,
    read_review,
    review_rows,
    review_text,
    score_keyphrases,
)
from askew.logs.definition import build_vocabulary
from askew.logs.effect import kinds_of
from askew.logs.pairs import split_keyphrases
from askew.logs.topics import SeedWords, load_topics

A, B, C, D = (f"https://www.{name}.example/page" for name in "abcd")


def event(user, second, **more):
    """Two searches of a user, ten seconds apart; ``more`` has a value for each."""
    rows = [{"user": user, "time": 0, "query": "boots"}, {"user": user, "time": 10, "query": second}]
    return [row | {name: values[i] for name, values in more.items()} for i, row in enumerate(rows)]


def columns(*events):
    rows = [row for one in events for row in one]
    return {name: [row.get(name) for row in rows] for name in {key: None for row in rows for key in row}}


def found(table, value, **where):
    return table.filter(**where)[value][0]


def test_the_clicked_result_was_absent_lower_same_or_higher(analyzed):
    pages = [[A, B, C], [C, B, D]]
    report = analyzed(
        columns(
            event("u1", "boots men", results=pages, click_doc=[[], [D]], click_rank=[[], [3]]),
            event("u2", "boots men", results=pages, click_doc=[[], [C]], click_rank=[[], [1]]),
            event("u3", "women boots", results=pages, click_doc=[[A], [B, C]], click_rank=[[1], [2, 1]]),
            event("u4", "boots men", results=[[D, A], [A, C]], click_doc=[[], [A]], click_rank=[[], [1]]),
            event("u5", "boots men", results=[[C, D], [A, C]], click_doc=[[], [C]], click_rank=[[], [2]]),
            event("u6", "boots men", results=pages, click_doc=[[], []], click_rank=[[], []]),
            event("u7", "boots men", results=[[], [A]], click_doc=[[], [A]], click_rank=[[], [1]]),
        )
    )
    ranks = report.tables["ranks"]
    assert [found(ranks, "hits", group="all", change=c) for c in ("absent", "lower", "same", "higher")] == [1, 2, 1, 1]
    assert found(ranks, "n", group="all", change="absent") == 5
    assert found(ranks, "hits", group="female", change="same") == 1


def test_a_click_without_a_document_is_the_result_at_its_rank_and_the_other_way_round(analyzed):
    by_rank = analyzed(columns(event("u", "boots men", results=[[A, B], [B, A]], click_rank=[[], [1]])))
    by_doc = analyzed(columns(event("u", "boots men", results=[[A, B], [B, A]], click_doc=[[], [B]])))
    for report in (by_rank, by_doc):
        assert found(report.tables["ranks"], "hits", group="all", change="lower") == 1


def test_click_through_counts_pages_with_a_click(analyzed):
    clicks = [[[], [1]], [[2], [1, 2]], [[], []], [[], [1]]]
    entries = ["edited", "recommended", "edited", "recommended"]
    rows = columns(
        *(
            event(f"u{i}", "boots men" if i else "women boots", click_rank=click, entry=["", entries[i]])
            for i, click in enumerate(clicks)
        )
    )
    table = analyzed(rows).tables["clicks"]
    assert table.filter(group="all", entry="all").select("n", "before", "after", "ratio").row(0) == (4, 0.25, 0.75, 3.0)
    assert found(table, "ratio", group="all", entry="recommended") == 2.0
    assert found(table, "n", group="female", entry="edited") == 1


def test_exposure_is_the_share_of_discounted_ranks(analyzed):
    rows = columns(
        event("u1", "boots men", results=[[A, B], [B, C]]),
        event("u2", "boots men", results=[[A, "ftp://user@A.EXAMPLE:21/x", "no site"], [B, B]]),
        event("u3", "boots men", results=[[A], None]),
    )
    sites = analyzed(rows).tables["sites"]
    second = 1 / math.log2(3)
    before = {"a": 2 + second, "b": second}
    after = {"b": 2 + second, "c": second}
    total = 2 + 2 * second
    b = sites.filter(site="b.example").row(0, named=True)
    assert (b["n"], b["users"]) == (2, 2)
    assert b["before"] == pytest.approx(before["b"] / total)
    assert b["after"] == pytest.approx(after["b"] / total)
    assert b["ratio"] == pytest.approx(after["b"] / before["b"])
    assert found(sites, "before", site="a.example") == pytest.approx(before["a"] / total)
    assert found(sites, "ratio", site="a.example") == 0.0
    assert found(sites, "ratio", site="c.example") is None


def test_sites_that_few_saw_are_left_out(analyzed):
    rows = columns(*(event(f"u{i}", "boots men", results=[[A, B][: 1 + i % 2], [A]]) for i in range(4)))
    assert analyzed(rows, min_events=3).tables["sites"]["site"].to_list() == ["a.example"]
    assert analyzed(rows, min_users=5).tables["sites"].height == 0


def test_kinds_follow_from_what_the_first_page_says(analyzed):
    pages = {
        "seeks-specific": "boots and more",
        "corrects": "men men men women",
        "intensifies": "men women",
        "reinforces": "women women women men",
    }
    rows = columns(
        *(event(kind, "boots women", texts=[[text], ["women", "shoes"]]) for kind, text in pages.items()),
        event("unknown", "boots women", texts=[[], ["women"]]),
    )
    report = analyzed(rows)
    kinds = report.tables["kinds"].filter(group="all")
    assert dict(kinds.select("kind", "hits").iter_rows()) == dict.fromkeys(pages, 1)
    assert kinds["n"].to_list() == [4] * 4
    lean = report.tables["lean"].filter(group="female").row(0, named=True)
    assert (lean["n"], lean["before"], lean["after"]) == (3, pytest.approx(0.5), 1.0)
    assert lean["change_low"] < lean["change"] < lean["change_high"]


def test_the_even_part_of_several_groups_is_one_of_them():
    shares = np.array([np.nan, 0.0, 0.25, 0.3, 0.6])
    assert kinds_of(shares, 4, margin=0.2).tolist() == [0, 1, 2, 2, 3]


def test_pages_may_be_read_with_a_broader_lexicon(analyzed):
    rows = columns(event("u", "boots women", texts=[["mother and son and father"], ["wife"]]))
    assert found(analyzed(rows).tables["kinds"], "hits", group="all", kind="seeks-specific") == 1
    assert found(analyzed(rows, page_lexicon="gender").tables["kinds"], "hits", group="all", kind="corrects") == 1
    with pytest.raises(ConfigError, match="has no group 'female'"):
        analyzed(rows, page_lexicon=Lexicon("x", {"other": ("a",)}))


def test_topics_are_rated_against_the_log(analyzed):
    rows = columns(
        event("u1", "boots men", topic=["shop", "shop"], entry=["", "recommended"]),
        event("u2", "boots women", topic=["shop", "shop"], entry=["", "edited"]),
        event("u3", "golf", topic=["sport", "sport"]),
        event("u4", "men boots", topic=["sport", "sport"], entry=["", "edited"]),
    )
    table = analyzed(rows, topics="column").tables["topics"]
    shop = table.filter(topic="shop").row(0, named=True)
    # Two of three events and four of eight searches.
    assert (shop["searches"], shop["n"], shop["rate"]) == (4, 2, pytest.approx(4 / 3))
    assert (shop["recommended"], shop["share_female"]) == (0.5, 0.5)
    assert found(table, "rate", topic="sport") == pytest.approx(2 / 3)


def test_words_point_to_topics_and_none_to_other():
    seeds = SeedWords({"art": ("painting", "Civil War"), "war": ("war", "civil"), "both": ("painting",)})
    queries = ["the painting", "civil war", "war painting war", "paintings", "civil the war", ""]
    assert seeds.topics(pl.Series(queries)).to_list() == ["art", "art", "war", "other", "war", "other"]
    assert load_topics().topics(pl.Series(["men hiking boots", "zzz"])).to_list() == ["shopping and fashion", "other"]


def test_topics_may_come_from_a_file_a_classifier_or_not_at_all(analyzed, tmp_path):
    rows = columns(event("u", "boots men"))
    own = tmp_path / "own.toml"
    own.write_text('name = "mine"\n[topics]\nshoes = ["boots"]\n')
    assert analyzed(rows, topics=str(own)).tables["topics"]["topic"].to_list() == ["shoes"]
    by_classifier = analyzed(rows, topics="lexical")
    assert set(by_classifier.tables["topics"]["topic"]) == {"neutral", "male"}
    assert "topics" not in analyzed(rows, topics="none").tables
    with pytest.raises(ConfigError) as error:
        analyzed(rows, topics="column")
    assert error.value.code == "no-topic-column"
    with pytest.raises(ConfigError, match="expected one of: column, words"):
        analyzed(rows, topics="wrds")
    own.write_text("[topics]\n")
    with pytest.raises(DataError) as error:
        analyzed(rows, topics=str(own))
    assert error.value.code == "no-topics"


WORDS = ["she", "he", "woman", "man", "nurse", "engineer", "tie"]
VECTORS = np.array(
    [[1, 0, 0.1], [-1, 0, 0.1], [0.9, 0.1, 0.5], [-0.9, 0.1, 0.5], [0.6, 0.8, 0], [-0.6, 0.8, 0], [0, 1, 0]], np.float32
)


def test_association_is_the_cosine_with_the_direction_and_points_to_the_first_group():
    pairs = WordPairs(("female", "male"), (("she", "he"), ("woman", "man"), ("absent", "words")))
    made = Association(WORDS, VECTORS, pairs)
    found = made.of(pl.Series(["nurse", "engineer", "nurse engineer", "nurse unknown", "unknown", "nurse tie"]))
    mean = np.array([0.3, 0.9, 0])
    expected = [0.6, -0.6, 0.0, 0.6, None, mean[0] / np.linalg.norm(mean)]
    assert [None if v is None else pytest.approx(v, abs=1e-6) for v in expected] == found.to_list()
    assert made.pairs_known == 2


def test_the_published_pairs_are_ten_and_other_pairs_come_from_a_file(tmp_path):
    assert (len(load_pairs().pairs), load_pairs().groups) == (10, ("female", "male"))
    path = tmp_path / "pairs.toml"
    path.write_text('groups = ["old", "young"]\npairs = [["senior", "kid"]]\n')
    assert load_pairs(path).groups == ("old", "young")
    path.write_text("pairs = 3")
    with pytest.raises(DataError, match="expected groups"):
        load_pairs(path)
    with pytest.raises(DataError, match="none of the 1 word pairs"):
        Association(WORDS, VECTORS, WordPairs(("a", "b"), (("x", "y"),)))


def test_a_direction_between_groups_that_the_lexicon_lacks_is_refused(analyzed, tmp_path):
    lexicon = Lexicon("age", {"old": ("seniors",), "young": ("kids",)})
    with pytest.raises(ConfigError, match="pairs=") as error:
        analyzed(columns(event("u", "boots kids")), groups=lexicon, vectors=tmp_path / "any.npy")
    assert (error.value.code, error.value.values) == ("no-pairs", {"groups": ("old", "young")})


def test_a_block_is_prepositions_around_a_keyphrase():
    vocabulary = build_vocabulary(load_lexicon("gsqr2023"))
    blocks = ["for women over 50", "men's", "women in", "according to men", "for", "in to", "for hiking in", "format"]
    parts = split_keyphrases(pl.Series(blocks), vocabulary)
    assert parts["phrase"].to_list() == ["women over 50", "men's", "women", "men", "", "", "hiking", "format"]
    assert (parts["lead"][0], parts["trail"][2]) == ("for", "in")


def test_keyphrases_are_scored_by_the_templates_of_the_seeds(walked):
    vocabulary = build_vocabulary(load_lexicon("gsqr2023"))
    pairs = [
        ("boots", "boots for women"), ("boots", "boots for women"), ("boots", "boots for kids"), ("boots", "boots red"),
        ("games", "games for men"), ("games", "games for kids"), ("games", "games for kids"), ("games", "games red"),
    ]  # fmt: skip
    rows = [(i, 10 * side, text) for i, pair in enumerate(pairs) for side, text in enumerate(pair)]
    counts = walked(rows, vocabulary, templates=True).templates
    assert sorted(counts.filter(keyphrase="kids").select("template", "n").rows()) == [
        ("boots for [KEYPHRASE]", 1),
        ("games for [KEYPHRASE]", 2),
    ]
    scored = score_keyphrases(counts.lazy(), ["women", "men"])
    scores = dict(scored.select("keyphrase", "score").iter_rows())
    # Of the seed's three, two are with boots and one with games: kids is 1/3 of the first and 2/3 of the second.
    assert scores == {
        "women": pytest.approx(2 / 3 * 2 / 3),
        "kids": pytest.approx(2 / 3 * 1 / 3 + 1 / 3 * 2 / 3),
        "men": pytest.approx(1 / 3 * 1 / 3),
    }


def test_scores_of_keyphrases_do_not_depend_on_the_order_of_the_counts():
    rng = np.random.default_rng(1)
    names = {name: [f"{name}{i}" for i in rng.integers(0, 40, 2000)] for name in ("template", "keyphrase")}
    counts = pl.DataFrame(names | {"n": rng.integers(1, 9, 2000)}).unique(["template", "keyphrase"])
    orders = [counts.sample(fraction=1.0, shuffle=True, seed=seed).lazy() for seed in range(9)]
    found = [score_keyphrases(order, ["keyphrase1"]) for order in orders]
    assert all(table.equals(found[0]) for table in found)


def test_a_review_grows_the_lexicon_and_keeps_what_was_decided(tmp_path):
    path = tmp_path / "review.tsv"
    candidates = pl.DataFrame(
        {"keyphrase": ["kids", "hiking", "men"], "score": [0.2, 0.1, 0.05], "n": [9, 8, 7], "users": [6, 6, 6],
         "seed": [False, False, True]}
    )  # fmt: skip
    path.write_text(review_text(review_rows(candidates, [])))
    assert [one.keyphrase for one in read_review(path)] == ["kids", "hiking"]
    edited = path.read_text().replace("6\t\n", "6\tyoung\n", 1).replace("6\t\n", "6\tno\n", 1)
    path.write_text(edited)
    decided = read_review(path)
    lexicon = grown(load_lexicon("gsqr2023"), decided)
    assert lexicon.group_names == ("female", "male", "young")
    assert lexicon.groups["young"] == ("kids",)
    assert [one.decision for one in review_rows(candidates, decided)] == ["young", "no"]
    assert grown(load_lexicon("gsqr2023"), [Decision("x", "no")]) is not None
    assert grown(load_lexicon("gsqr2023"), [Decision("x", "no")]).name == "gsqr2023"


@pytest.mark.parametrize("word", ["no", "No", "NO", "-", "n"])
def test_a_refusal_may_be_written_in_several_ways(word):
    assert grown(load_lexicon("gsqr2023"), [Decision("x", word)]).name == "gsqr2023"


@pytest.mark.parametrize("group", ["all", "several"])
def test_groups_may_not_be_called_as_the_tables_call_their_own_rows(group):
    with pytest.raises(ConfigError, match=f"{group!r}, which is reserved"):
        build_vocabulary(Lexicon("x", {group: ("a",)}))


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "do not change"), ("a\tb\n", "do not change"), ("keyphrase\tdecision\nx\n", ":2: expected 2")],
)
def test_a_review_that_lost_its_columns_is_refused(tmp_path, text, words):
    path = tmp_path / "review.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        read_review(path)
