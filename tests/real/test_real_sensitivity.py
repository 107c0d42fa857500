"""Ten public systems under every usual choice: each mean is that of ``measure``, and the tables hold together."""

import random

import numpy as np
import pytest

import askew


@pytest.fixture(scope="module")
def runs(data):
    return sorted((data / "cpjku_dl19_runs").glob("*.run"))


def test_means_of_real_runs_are_those_of_measure_and_every_pair_is_counted(data, runs):
    docs = data / "msmarco_dl1920" / "docs.tsv"
    report = askew.sensitivity(runs, docs, "ARaB(tf) NFaiRR", tokens="word,blank", cutoffs=[5, 10])
    assert report.values("missing") == ("zero", "drop", "skip")
    assert len(report.combinations) == 4 * 2 * 2 * 3 * (3 + 1) * 2
    chosen = random.Random(3).sample(report.combinations, 6)
    alone = askew.measure(runs, docs, [one.signature for one in chosen])
    for one in chosen:
        assert one.means == pytest.approx([alone[run.name, one.signature].mean for run in runs])
    assert np.array_equal(report.tau, report.tau.T, equal_nan=True)
    assert len(report.pairs) == 45
    assert all(p.first_less + p.second_less + p.equal == len(report.combinations) for p in report.pairs)
    # The word list changes the order of real systems, the rule for missing texts hardly does.
    taus = {one.axis: one.mean_tau for one in report.axes}
    assert taus["lexicon"] < taus["missing"]
