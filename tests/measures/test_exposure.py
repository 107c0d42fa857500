"""AWRF, EXP and TExFAIR by hand, and the laws that they keep.

f is a document of women alone, m of men alone, h names both once, x neither; w(r) = 1 / log2(r + 1), so that
w(1) = 1, w(2) = 0.63093, w(3) = 0.5.
"""

from math import log, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import askew
from askew.core.errors import ConfigError
from askew.measures.exposure import relative_entropy, shares_of

WORDS = {"female": ["she", "woman"], "male": ["he", "man"]}
SWAPPED = {"female": WORDS["male"], "male": WORDS["female"]}
THREE = {**WORDS, "child": ["kid"]}
DOCS = {"f": "she", "m": "he", "h": "she and he", "x": "rain falls", "ffm": "she woman he", "c": "kid"}
W2 = 1 / log2(3)
NAMES = ["AWRF", "AWRF(trec)", "AWRF(geometric,p=0.3)", "AWRF(uniform,distance=tv)", "AWRF(distance=js-nats)", "EXP",
         "EXP(difference)", "EXP(attention=geometric)", "TExFAIR", "Skew", "Skew(min)", "NDKL"]  # fmt: skip
BEST = {name: 0.0 if name in ("EXP(difference)", "Skew", "Skew(min)", "NDKL") else 1.0 for name in NAMES}
# Copies, so that a ranking can hold several documents of a kind.
MANY = {f"{kind}{copy}": text for kind, text in DOCS.items() for copy in range(6)}
rankings = st.lists(st.sampled_from(sorted(MANY)), min_size=1, max_size=12, unique=True)


def scores(texts, runs, docs=DOCS, groups=WORDS):
    run = {f"q{i:02}": {doc: -float(rank) for rank, doc in enumerate(ranking)} for i, ranking in enumerate(runs)}
    # A measure of nothing but undefined queries is an error; this one is always defined.
    run["zz"] = {"h": 1.0}
    report = askew.measure({"r": run}, {**docs, "h": DOCS["h"]}, measures=texts, groups=groups)
    return {text: report.runs[0].values[text][:-1].tolist() for text in texts}


def score(text, ranking, docs=DOCS, groups=WORDS):
    return scores([text], [ranking], docs, groups)[text][0]


def js(shares, targets):
    """Jensen-Shannon divergence in bits, term by term."""
    middle = [(a + b) / 2 for a, b in zip(shares, targets, strict=True)]
    half = lambda given: sum(a * log2(a / b) for a, b in zip(given, middle, strict=True) if a)  # noqa: E731
    return (half(shares) + half(targets)) / 2


def test_awrf_is_one_minus_the_divergence_of_the_attention_that_each_group_gets():
    # exposure: female w(1) = 1, male w(2) = 0.63093; shares 0.61315 and 0.38685. With m = (0.55657, 0.44343):
    # KL(shares, m) = 0.61315 log2(1.10165) + 0.38685 log2(0.87241) = 0.08563 - 0.07618 = 0.00945,
    # KL(targets, m) = 0.5 log2(0.89836) + 0.5 log2(1.12758) = -0.07731 + 0.08662 = 0.00930; JS = 0.00938.
    assert score("AWRF@2", ["f", "m"]) == pytest.approx(1 - 0.00938, abs=2e-5)
    share = 1 / (1 + W2)
    assert score("AWRF@2", ["f", "m"]) == pytest.approx(1 - js((share, 1 - share), (0.5, 0.5)), abs=1e-14)


def test_a_document_of_both_groups_belongs_to_each_by_its_share_of_the_mentions():
    # "she woman he": 2/3 female, 1/3 male.
    assert score("AWRF(distance=tv)@1", ["ffm"]) == pytest.approx(1 - (2 / 3 - 1 / 2))


def test_mentions_may_count_one_by_one():
    # Documents: (2/3 + 0) female of 2. Mentions: 2 female of 4.
    assert score("AWRF(uniform,distance=tv)@2", ["ffm", "m"]) == pytest.approx(1 - abs(1 / 3 - 1 / 2))
    assert score("AWRF(uniform,distance=tv,member=mentions)@2", ["ffm", "m"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("attention", "weights"),
    [("log", (1, W2, 0.5)), ("trec", (1, 1, W2)), ("geometric,p=0.2", (0.2, 0.16, 0.128)), ("uniform", (1, 1, 1))],
)
def test_each_model_of_attention_weighs_the_ranks_in_its_way(attention, weights):
    # f at rank 1, x at rank 2 takes its rank and no share, m at rank 3: share of women w(1) / (w(1) + w(3)).
    share = weights[0] / (weights[0] + weights[2])
    assert score(f"AWRF({attention},distance=tv)@3", ["f", "x", "m"]) == pytest.approx(1 - abs(share - 0.5))


def test_nats_give_the_divergence_of_the_evaluation_code_of_trec():
    # Women alone: JS((1, 0), (1/2, 1/2)) = 1/2 ln(4/3) + 1/2 (1/2 ln(2/3) + 1/2 ln 2) = 0.21576 nats, 0.31128 bits.
    assert score("AWRF(trec,distance=js-nats)@3", ["f"]) == pytest.approx(1 - 0.21576, abs=1e-5)
    assert score("AWRF@3", ["f"]) == pytest.approx(1 - 0.31128, abs=1e-5)


def test_targets_may_be_unequal():
    assert score("AWRF(uniform,targets='female:0.75,male:0.25')@4", ["f0", "f1", "f2", "m0"], MANY) == pytest.approx(1)
    assert score("AWRF(targets='female:1,male:0')@1", ["f"]) == 1
    assert score("AWRF(targets='female:1,male:0')@1", ["m"]) == 0


def test_documents_that_name_no_group_may_be_a_group_of_their_own():
    # Three groups with equal targets: 1/4, 1/4, 1/2 are 1/12 + 1/12 + 1/6, halved, away.
    ranking = ["f0", "m0", "x0", "x1"]
    assert score("AWRF(uniform,distance=tv,neutral=group)@4", ranking, MANY) == pytest.approx(1 - 1 / 6)
    named = "AWRF(uniform,neutral=group,targets='female:0.25,male:0.25,neutral:0.5')@4"
    assert score(named, ranking, MANY) == pytest.approx(1)
    assert score("AWRF(uniform,distance=tv)@4", ranking, MANY) == 1


def test_exp_divides_the_mean_exposure_of_the_least_exposed_group_by_that_of_the_most():
    # f f m m: women (1 + 0.63093) / 2 = 0.81546, men (0.5 + 0.43068) / 2 = 0.46534.
    ranking = ["f0", "f1", "m0", "m1"]
    assert score("EXP@4", ranking, MANY) == pytest.approx(0.46534 / 0.81546, abs=1e-5)
    assert score("EXP(difference)@4", ranking, MANY) == pytest.approx(0.81546 - 0.46534, abs=1e-5)
    # With h at rank 1 half of it is of each group: women (0.5 + 0.63093) / 1.5, men 0.5 / 0.5.
    assert score("EXP@2", ["h", "f"]) == pytest.approx((0.5 + W2) / 1.5)


def test_a_group_without_any_document_in_the_list_has_no_exposure():
    assert score("EXP@3", ["f"]) == 0
    assert score("EXP(difference)@3", ["f"]) == 1


def test_texfair_weighs_terms_by_their_share_of_the_text_and_discounts_neutral_documents():
    # "she woman he" at 1, "rain falls" at 2, "he" at 3. Term exposure: female 2/3, male 1/3 + 0.5 = 5/6;
    # shares 4/9 and 5/9, bias 1/18 + 1/18 = 1/9. Attention of naming documents 1.5 of 1.5 + 0.63093 = 2.13093.
    assert score("TExFAIR@3", ["ffm", "x", "m"]) == pytest.approx(1 - 1 / 9 * 1.5 / 2.13093, abs=1e-6)


def test_texfair_of_a_list_that_names_no_group_is_one_and_of_one_group_alone_zero():
    assert score("TExFAIR@3", ["x"]) == 1
    assert score("TExFAIR@3", ["f"]) == 0
    assert score("TExFAIR@3", ["f"], groups=THREE) == pytest.approx(0)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "TExFAIR"])
def test_a_list_that_names_no_group_is_left_out(name):
    assert np.isnan(score(f"{name}@3", ["x"]))
    run = {"q": {"x": 1.0}, "r": {"h": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=[f"{name}@3"], groups=WORDS)
    assert any(f"r: {name}@3 " in note and "1 of 2" in note for note in report.notes)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_without_any_known_document_is_left_out(name):
    run = {"q": {"ghost": 1.0}, "r": {"h": 1.0}}
    report = askew.measure({"r": run}, DOCS, measures=[f"{name}@3"], groups=WORDS, missing="drop")
    assert np.isnan(report.runs[0].values[f"{name}@3"]).tolist() == [True, False]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("groups", [WORDS, THREE])
def test_perfect_balance_gives_the_best_value(name, groups):
    docs = {"a": "she he", "b": "woman man", "h": "she he"}
    if groups is THREE:
        docs = {doc: f"{text} kid" for doc, text in docs.items()}
    report = askew.measure({"r": {"q": {"a": 2.0, "b": 1.0}}}, docs, measures=[f"{name}@5"], groups=groups)
    assert report.runs[0].values[f"{name}@5"].tolist() == pytest.approx([BEST[name]], abs=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AWRF(groups=female)@3", "two groups or more"),
        ("AWRF(targets='female:0.5,male:0.6')@3", "sum to 1"),
        ("AWRF(neutral=group,targets='female:0.5,male:0.5')@3", "female, male, neutral"),
        ("AWRF(neutral=group,member=mentions)@3", "use member='share'"),
        ("AWRF(geometric,p=0)@3", "p must be a finite number"),
        ("Skew(targets='female:1,male:0')@3", "above 0"),
        ("NDKL(targets='female:1,male:0')@3", "above 0"),
        ("Skew(femal)@3", "did you mean 'female'"),
    ],
)
def test_what_can_never_be_computed_is_refused_before_anything_is_read(text, message):
    with pytest.raises(ConfigError, match=message):
        score(text, ["f"])


def test_a_lexicon_with_a_neutral_group_of_its_own_is_refused_as_one_more():
    with pytest.raises(ConfigError, match="use neutral='drop'"):
        score("AWRF(neutral=group)@3", ["f"], groups={**WORDS, "neutral": ["they"]})


def test_the_parameter_of_the_geometric_model_is_in_the_signature_of_no_other():
    plain, geometric = askew.measure(
        {"r": {"q": {"f": 1.0}}}, DOCS, measures=["AWRF@3", "AWRF(geometric)@3"], groups=WORDS
    ).asked
    assert "p=" not in plain.signature.replace("overlap=", "")
    assert "p=0.5" in geometric.signature


@given(st.lists(rankings, min_size=1, max_size=6), st.integers(1, 5))
def test_values_stay_within_their_bounds_and_swapping_the_groups_changes_nothing(runs, k):
    texts = [f"{name}@{k}" for name in NAMES]
    found, swapped = scores(texts, runs, MANY), scores(texts, runs, MANY, SWAPPED)
    report = askew.measure({"r": {"q": {"h0": 1.0}}}, MANY, measures=texts, groups=WORDS)
    for asked in report.asked:
        low, high = asked.bounds
        values = [value for value in found[asked.text] if not np.isnan(value)]
        assert all(low <= value <= high for value in values)
        assert swapped[asked.text] == pytest.approx(found[asked.text], abs=1e-9, nan_ok=True)


@given(rankings, st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_order_below_the_cutoff_changes_nothing(ranking, k, random):
    below = ranking[k:]
    random.shuffle(below)
    texts = [f"{name}@{k}" for name in NAMES]
    first, second = scores(texts, [ranking], MANY), scores(texts, [ranking[:k] + below], MANY)
    assert {text: repr(value) for text, value in first.items()} == {text: repr(value) for text, value in second.items()}


@given(rankings, rankings, st.integers(1, 5))
def test_a_query_has_the_same_value_alone_and_among_others(one, other, k):
    texts = [f"{name}@{k}" for name in NAMES]
    together, alone = scores(texts, [one, other], MANY), scores(texts, [one], MANY)
    for text in texts:
        assert repr(together[text][0]) == repr(alone[text][0])


def test_shares_without_any_amount_are_not_numbers_and_a_share_of_zero_adds_nothing():
    assert shares_of(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist() == [
        [0.25, 0.75],
        pytest.approx([np.nan] * 2, nan_ok=True),
    ]
    halves = np.array([[0.5, 0.5]])
    assert relative_entropy(np.array([[1.0, 0.0]]), halves).tolist() == [1.0]
    assert relative_entropy(halves, np.array([[0.25, 0.75]]))[0] * log(2) == pytest.approx(
        0.5 * log(2) + 0.5 * log(2 / 3)
    )
