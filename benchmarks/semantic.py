"""The semantic filter on labeled query variations: area under the precision/recall curve, light and neural.

``--data`` is a folder with variations_antique_labeled.csv and variations_trec2019_labeled.csv. The thresholds that
askew ships were chosen on reworded ANTIQUE variations; DL19 had no part in the parameters of the light similarity.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from askew.measures.statistics.curves import calibrate
from askew.rewrite.filters import SemanticFilter, read_labeled

FILES = ("variations_antique_labeled.csv", "variations_trec2019_labeled.csv")
REWORDED = {"transformation_type": ("paraphrase", "synonym", "naturality")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    for file in FILES:
        for kind, only in (("all", None), ("reworded", REWORDED)):
            pairs = read_labeled(options.data / file, only=only)
            print(f"{file}, {kind}: {len(pairs):,} pairs of {len(set(pairs.queries)):,} queries")
            for similarity in ("light", "neural"):
                chosen = SemanticFilter(similarity=similarity)
                scores = chosen.score_pairs(pairs.originals, pairs.candidates)
                found = calibrate(scores, pairs.labels, pairs.queries)
                area = found.average_precision
                kept, labels = scores >= chosen.threshold, np.asarray(pairs.labels, np.int64)
                right = int(labels[kept].sum())
                shipped = f"shipped threshold {chosen.threshold}: precision {right / kept.sum():.3f}"
                print(
                    f"  {similarity:7} average precision {area.value:.3f} [{area.low:.3f}, {area.high:.3f}] "
                    f"(base rate {found.curve.base_rate:.3f}); {shipped}, recall {right / labels.sum():.3f}"
                )


if __name__ == "__main__":
    main()
