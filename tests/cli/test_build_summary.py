"""What a build prints of its subsets."""

from askew.cli.build import show_summary


def row(subset, pairs, new):
    return {
        "subset": subset, "pairs": pairs, "queries": pairs, "measure": "RR@10", "of": "value", "old_mean": 0.5,
        "new_mean": new, "change": 10.0, "low": 5.0, "high": 15.0, "improved_pairs": 3, "worsened_pairs": 0,
    }  # fmt: skip


def test_a_subset_with_the_figures_of_another_is_told_and_not_shown_again(capsys):
    show_summary([row("optimal", 0, 0.0), row("effective", 7, 0.6), row("fair", 7, 0.6), row("negative", 7, 0.4)])
    said = capsys.readouterr().out
    assert "optimal: 0 pairs of 0 queries\n" in said
    assert "fair: 7 pairs of 7 queries; the same figures as effective\n" in said
    assert said.count("RR@10") == 2
