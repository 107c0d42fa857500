"""Lean beyond chance: expected values, p-values, articles and discoveries."""

import itertools

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError
from askew.core.protocols import DocMentions, Inputs
from askew.core.ranking import Rankings
from askew.measures import chance as chances
from askew.measures.articles import Articles
from askew.measures.catalogue import Catalogue
from askew.measures.chance import chance, discoveries
from askew.measures.headline import UNKNOWN, headlines

LEANS = ("ARaB(tf)@10", "ARaB(tc,sign=abs)@5", "RaB(bool)@10", "LexiconShare@10", "LexiconShare(sign=signed)@3")


def inputs_of(counts, lists, articles=None, tokens=50):
    counts = np.array(counts, np.int32)
    size = len(counts)
    mentions = DocMentions(("female", "male"), counts, np.full(size, tokens, np.int32), np.ones(size, np.bool_))
    offsets = np.cumsum([0, *map(len, lists)])
    docs = np.array([doc for ranked in lists for doc in ranked], np.int64)
    rankings = Rankings(pa.array([f"q{row}" for row in range(len(lists))]), offsets, docs)
    ids = pa.array([f"d{doc}" for doc in range(size)])
    found = None if articles is None else lambda docs: (np.array(articles, np.int64)[docs], True)
    return Inputs("run", ids, {"score": rankings}, lambda *_: mentions, find_articles=found)


def asked(text):
    (request,) = Catalogue().complete([text])
    return request


def by_chance(text, inputs, source="collection"):
    request = asked(text)
    return chance(request.family, request.measure, inputs, source)


COUNTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=4, max_size=9)


@given(COUNTS, st.sampled_from(LEANS), st.floats(0.1, 0.9))
@settings(max_examples=60, deadline=None)
def test_exact_expectations_and_p_values_equal_those_of_all_directions(counts, text, share):
    source = f"male:{share!r},female:{1 - share!r}"
    inputs = inputs_of(counts, [list(range(len(counts)))])
    found = by_chance(text, inputs, source)
    request, null = asked(text), chances.Null(asked(text).family, asked(text).measure, inputs, source)
    is_signed = dict(request.measure.params)["sign"] == "signed"
    signed = request.measure.with_params({**dict(request.measure.params), "sign": "signed"})
    (own,) = request.family.score(signed, inputs)
    values, sides, weights = [], [], []
    for drawn in itertools.product((0, 1), repeat=null.units):
        turned = np.array([new != own for new, own in zip(drawn, null.own, strict=True)], np.bool_)
        swapped = np.array(counts, np.int32)
        named = np.flatnonzero(null.unit[:-1] >= 0)
        flipped = named[turned[null.unit[named]]]
        swapped[flipped] = swapped[flipped][:, ::-1]
        turned_inputs = inputs_of(swapped, [list(range(len(counts)))])
        values.append(request.family.score(request.measure, turned_inputs)[0])
        sides.append(request.family.score(signed, turned_inputs)[0] * (-1 if own < 0 else 1))
        chance_of = np.where(turned, null_turn(null), 1 - null_turn(null))
        weights.append(chance_of.prod())
    values, sides, weights = np.array(values), np.array(sides), np.array(weights)
    assert weights.sum() == pytest.approx(1)
    assert found.expected[0] == pytest.approx((weights * values).sum(), abs=1e-9)
    if is_signed:
        as_large = np.abs(values - found.expected[0]) >= abs(found.values[0] - found.expected[0]) - 1e-9
        wanted = weights[as_large].sum()
    else:
        has_excess = found.values[0] > found.expected[0] + 1e-9
        wanted = min(1.0, 2 * weights[sides >= abs(own) - 1e-9].sum()) if has_excess else 1.0
    assert found.p[0] == pytest.approx(wanted, abs=1e-9)
    assert found.least[0] <= found.p[0] + 1e-12


def null_turn(null):
    return np.where(null.tied, 0.5, 1.0 - null.drawn_shares[null.own])


@given(COUNTS)
@settings(max_examples=30, deadline=None)
def test_swapping_the_groups_flips_the_sign_of_the_signed_excess(counts):
    lists = [list(range(len(counts))), [0, 1, 2]]
    source, mirrored = "male:0.7,female:0.3", "male:0.3,female:0.7"
    found = by_chance("ARaB(tf)@10", inputs_of(counts, lists), source)
    other = by_chance("ARaB(tf)@10", inputs_of([pair[::-1] for pair in counts], lists), mirrored)
    assert found.excess == pytest.approx(-other.excess, abs=1e-9)
    assert found.p == pytest.approx(other.p, abs=1e-9)


def test_resampled_expectations_agree_with_exact_ones_within_their_error():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (60, 2))
    inputs = inputs_of(counts, [rng.permutation(60)[:10].tolist() for _ in range(30)])
    request = asked("ARaB(tf,sign=abs)@10")
    exact = chance(request.family, request.measure, inputs)
    null = chances.Null(request.family, request.measure, inputs, "collection")
    drawn = chances._resampled(request.family, request.measure, inputs, null, exact.values)
    assert exact.error == 0 and drawn.error > 0
    assert abs(np.nanmean(drawn.expected - exact.expected)) < 4 * drawn.error
    signed = asked("ARaB(tf)@10")
    exact = chance(signed.family, signed.measure, inputs)
    drawn = chances._resampled(signed.family, signed.measure, inputs, null, exact.values)
    assert np.abs(drawn.p - exact.p).max() < 0.08


def test_a_list_of_the_rarer_group_is_less_probable_than_one_of_the_other():
    lists, share = [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]], "male:0.7,female:0.3"
    found = by_chance("ARaB(tf,sign=abs)@5", inputs_of([(2, 0)] * 5 + [(0, 2)] * 5, lists), share)
    assert found.p == pytest.approx([2 * 0.3**5, 2 * 0.7**5])


@pytest.mark.parametrize(
    "text", ["AWRF@10", "EXP@10", "TExFAIR@10", "Skew@10", "NDKL@10", "ARaB(tf,sign=running-abs)@5"]
)
def test_measures_that_are_no_sums_are_resampled(text):
    rng = np.random.default_rng(1)
    counts = rng.poisson(1.0, (40, 2)) + np.array([0, 1])
    found = by_chance(
        text, inputs_of(counts, [rng.permutation(40)[:10].tolist() for _ in range(5)]), "male:0.5,female:0.5"
    )
    assert np.isfinite(found.expected).all() and ((found.p > 0) & (found.p <= 1)).all()
    assert 0 < found.run_p <= 1 and found.error > 0


def test_passages_of_one_article_have_one_direction():
    counts = [(0, 3)] * 8
    apart = by_chance("ARaB(tf,sign=abs)@10", inputs_of(counts, [list(range(8))]), "male:0.5,female:0.5")
    together = by_chance("ARaB(tf,sign=abs)@10", inputs_of(counts, [list(range(8))], [0] * 8), "male:0.5,female:0.5")
    assert apart.p[0] == pytest.approx(2 / 2**8)
    assert together.p[0] == 1 and together.excess[0] == pytest.approx(0)
    assert (apart.reachable, together.reachable) == (1, 0)


def test_a_document_in_two_lists_has_one_direction_in_both():
    counts = [(0, 3)] * 6
    twice = by_chance("ARaB(tf)@10", inputs_of(counts, [list(range(6))] * 2), "male:0.5,female:0.5")
    once = by_chance("ARaB(tf)@10", inputs_of(counts, [list(range(6))]), "male:0.5,female:0.5")
    assert twice.run_p == once.run_p


def test_runs_without_lean_are_rarely_flagged():
    rng = np.random.default_rng(7)
    flagged, discovered, repetitions = 0, 0, 150
    for _ in range(repetitions):
        article = np.repeat(np.arange(60), 3)
        male = rng.random(60) < 0.65
        amounts = rng.poisson(1.5, 180)
        counts = np.zeros((180, 2), np.int32)
        counts[np.arange(180), male[article].astype(int)] = amounts
        # Topical lists: three articles each, shared between queries.
        lists = [
            np.concatenate([np.flatnonzero(article == a) for a in rng.choice(60, 3, replace=False)]).tolist()
            for _ in range(40)
        ]
        found = by_chance("ARaB(tf,sign=abs)@10", inputs_of(counts, lists, article))
        flagged += found.run_p < 0.05
        discovered += bool(found.beyond().any())
    # 5% and three standard errors.
    assert flagged / repetitions <= 0.05 + 3 * (0.05 * 0.95 / repetitions) ** 0.5
    assert discovered / repetitions <= 0.05 + 3 * (0.05 * 0.95 / repetitions) ** 0.5


def test_a_planted_lean_is_found():
    rng = np.random.default_rng(8)
    male = rng.random(2000) < 0.5
    counts = np.zeros((2000, 2), np.int32)
    counts[np.arange(2000), male.astype(int)] = 2
    men, women = np.flatnonzero(male), np.flatnonzero(~male)
    lists = [rng.choice(men, 10, replace=False).tolist() for _ in range(10)]
    lists += [np.concatenate([rng.choice(side, 5, replace=False) for side in (men, women)]).tolist() for _ in range(30)]
    found = by_chance("ARaB(tf,sign=abs)@10", inputs_of(counts, lists))
    assert set(np.flatnonzero(found.beyond())) == set(range(10))


def test_discoveries_of_benjamini_hochberg_and_yekutieli():
    p = np.array([0.01, 0.02, 0.03, 0.04, 0.9, np.nan])
    assert discoveries(p, 0.05).tolist() == [True, True, True, True, False, False]
    assert discoveries(p, 0.05, dependent=True).tolist() == [False] * 6
    assert discoveries(np.array([np.nan]), 0.05).tolist() == [False]


DOCS = {
    "a:1": "he and his father", "a:2": "he said", "b:1": "she and her mother", "b:2": "she said", "c:1": "rain fell",
    "d:1": "the king and his son", "e:1": "he went", "f:1": "the boy ran to him",
}  # fmt: skip
RUN = {"q1": {"a:1": 3.0, "a:2": 2.0, "c:1": 1.0}, "q2": {"d:1": 3.0, "e:1": 2.0, "f:1": 1.0}}


def test_excess_is_a_parameter_of_measures_with_its_signature():
    report = askew.measure(RUN, docs=DOCS, measures=["ARaB(tf,sign=abs)@10", "ARaB(tf,sign=abs,excess=collection)@10"])
    plain, excess = report.asked
    assert "excess" not in plain.signature and "excess='collection'" in excess.signature
    assert report[excess.text].mean < report[plain.text].mean
    given_shares = askew.measure(RUN, docs=DOCS, measures="ARaB(tf,excess='male:1.0,female:0.0')@10")
    # Without chance, every article names men: q1 and q2 do already.
    assert given_shares.runs[0].values[given_shares.asked[0].text] == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize("shares", ["colection", "male:0.5", "male:0.7,female:0.7"])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(ConfigError):
        askew.measure(RUN, docs=DOCS, measures=[f"ARaB(tf,excess='{shares}')@10"])


def test_the_excess_of_neutrality_is_refused():
    with pytest.raises(ConfigError):
        askew.measure(RUN, docs=DOCS, measures=["NFaiRR(excess=collection)@10"])


def test_articles_by_ids_headings_and_words():
    def numbers(ids, texts):
        found, known = Articles(pa.array(ids), lambda docs: [texts[doc] for doc in docs]).of(np.arange(len(ids)))
        return found.tolist(), known

    assert numbers(["x:1", "x:2", "y:1"], ["", "", ""]) == ([0, 0, 1], True)
    assert numbers(["1", "2", "3"], ["Ada -- he", "Ada -- she", "Bob -- he"]) == ([0, 0, 1], True)
    text = "Marie Curie discovered polonium and radium in Paris laboratories"
    others = ["Frost covered every northern harbour before Christmas", "Volcanic ash delayed flights across Iceland"]
    assert numbers(["1", "2", "3", "4"], [text, f"{text} again", *others]) == ([0, 0, 1, 2], False)
    assert numbers([], []) == ([], True)


def test_words_of_very_many_documents_are_not_compared(monkeypatch):
    monkeypatch.setattr("askew.measures.articles.MOST_COMPARED", 2)
    texts = ["radium polonium paris"] * 5

    def articles(ids, read):
        shown = lambda docs: [read.append(doc) or texts[doc] for doc in docs.tolist()]  # noqa: E731
        return Articles(pa.array(ids), shown).of(np.arange(5))

    found, known = articles(list("abcde"), read := [])
    assert found.tolist() == [0, 1, -3, -4, -5] and not known and len(read) == 2
    found, known = articles([f"x:{row}" for row in range(5)], read := [])
    assert found.tolist() == [0] * 5 and known and not read


@pytest.mark.usefixtures("all_mentions")
def test_without_known_articles_nothing_is_tested():
    texts = {name.replace(":", "-"): text for name, text in DOCS.items()}
    run = pl.DataFrame(rows()).with_columns(pl.col("doc_id").str.replace(":", "-"))
    (headline,) = headlines(run, docs=texts, labels={}, classifier="given")
    part = headline.deciding
    assert (part.lists, part.p, part.signed_p, part.beyond, part.reachable) == (2, None, None, (), 0)
    assert (part.is_beyond, headline.toward, part.excess.low) == (False, None, None)
    assert UNKNOWN in headline.notes and headline.table() and headline.chart() and "not known" in headline.sentence
    (known,) = headlines(pl.DataFrame(rows()), docs=DOCS, labels={}, classifier="given")
    assert known.deciding.p is not None and known.deciding.observed == part.observed
    assert known.deciding.expected >= part.expected


def test_a_document_joins_the_article_of_its_nearest_neighbour_not_only_of_the_first_document():
    chain = [" ".join(f"w{'abcdefghijklmnopqrstuvwxyz'[at]}x" for at in range(first, first + 6)) for first in (0, 3, 6)]
    noise = [f"frost{'abcdefghij'[row]} covered{'abcdefghij'[row]} harbour" for row in range(10)]
    texts = [*chain, *noise]
    articles = Articles(pa.array([str(row) for row in range(13)]), lambda docs: [texts[doc] for doc in docs])
    assert articles.of(np.arange(13))[0][:3].tolist() == [0, 0, 0]


@pytest.mark.usefixtures("all_mentions")
def test_the_headline_counts_neutral_queries_and_names_no_contradicted_side():
    labels = {"q1": "neutral", "q2": "male"}
    (headline,) = headlines(pl.DataFrame(rows()), docs=DOCS, labels=labels, classifier="given")
    assert headline.labels == {"neutral": 1, "male": 1}
    part = headline.deciding
    assert part.words == {"male": 4, "female": 0} and headline.toward == "male"
    assert part.lists == 1 and part.p == 1.0
    assert headline.to_dict()["toward"] == "male"


def rows():
    return [
        {"query_id": query, "doc_id": doc, "score": score} for query, docs in RUN.items() for doc, score in docs.items()
    ]
