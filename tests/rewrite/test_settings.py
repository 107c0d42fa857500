"""Settings out of their limits: refused by name before a model or a file is read."""

import math

import pytest

from askew.core.errors import ConfigError
from askew.core.plugins import build

WRONG = {
    ("reformulator", "bertqe"): {"documents": 0, "chunks": 0, "chunk_words": 0, "batch_size": 0},
    ("reformulator", "rm3"): {"documents": 0, "terms": 0, "original": 1.5, "common": -0.1},
    ("reformulator", "rocchio"): {"alpha": -1.0, "beta": math.inf},
    ("reformulator", "relevancefeedback"): {"documents": -1},
    ("reformulator", "fairfeedback"): {"lambda_": math.nan},
    ("reformulator", "extract"): {"count": 0, "words": 0, "passages": 0},
    ("reformulator", "embedding"): {"topn": 0, "similarity": "dot", "minimum": math.nan},
    ("reformulator", "wordnet"): {"topn": 0},
    ("reformulator", "thesaurus"): {"topn": 0},
    ("reformulator", "reduce"): {"shortest": 0},
    ("reformulator", "swap"): {"mode": "both"},
    ("reformulator", "docquery"): {"preset": "t5", "count": 0, "passages": 0},
    ("reformulator", "fewshot"): {"passages": 0, "per_call": 0, "attempts": 0},
    ("reformulator", "backtranslate"): {"beams": 0},
    ("reformulator", "rewrite"): {"samples": 0, "count": 0},
    ("reformulator", "replay"): {"count": 0},
    ("filter", "rules"): {"max_ratio": math.inf, "certainty": 0.0},
    ("filter", "semantic"): {"similarity": "heavy", "threshold": 1.5, "batch_size": 0},
    ("filter", "equivalence"): {"same": 1.5, "natural": -0.1},
    ("classifier", "lexical"): {"ties": "female", "abstain_below": 1.5},
    ("classifier", "query-groups"): {"batch_size": 0, "abstain_below": -0.5},
    ("classifier", "together"): {"abstain_below": 2.0},
    ("classifier", "transformer"): {"batch_size": 0, "temperature": 0.0, "abstain_below": 2.0},
}


@pytest.mark.parametrize(
    ("kind", "name", "setting", "value"),
    [(kind, name, setting, value) for (kind, name), wrong in WRONG.items() for setting, value in wrong.items()],
)
def test_a_setting_out_of_its_limits_is_refused_by_name(kind, name, setting, value):
    with pytest.raises(ConfigError, match=f"{kind} '{name}': the setting '{setting}'"):
        build(kind, name, {setting: value})
