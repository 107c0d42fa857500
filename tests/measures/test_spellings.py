"""The same text composed (NFC) and decomposed (NFD) names the same groups, in the plain and in the compiled scan."""

from unicodedata import normalize

import pyarrow as pa
import pytest

import askew
from askew.core.lexicon import Lexicon
from askew.measures import mentions
from askew.measures.mentions import counter_for

TERMS = ("señora", "niña bonita", "việt*", "mère", "ệ")
TEXT = "La señora y la niña bonita ; MÈRE, Việtnam ệ sen\u0303or señor"


@pytest.mark.parametrize("tokens", ["unclipped", "word", "blank", "seyedsalehi"])
@pytest.mark.parametrize("least", [0, 1 << 30])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_both_forms_of_a_text_and_of_a_term_count_the_same(tokens, least, form, monkeypatch):
    monkeypatch.setattr(mentions, "SMALL_BYTES", least)
    # The published rule ``seyedsalehi`` splits words at marks, so that a prefix with a mark is no single token.
    terms = [normalize(form, term) for term in TERMS if tokens != "seyedsalehi" or "*" not in term]
    lexicon = Lexicon("l", {"a": tuple(terms), "b": ("he",)})
    texts = pa.array([normalize(to, TEXT) for to in ("NFC", "NFD")] + ["a sen\u0303ora and a señora"])
    counts = counter_for(lexicon, tokens, "all").count(texts).counts[:, 0].tolist()
    assert counts[0] == counts[1] > 0
    assert counts[2] == 2


def test_a_share_is_the_same_for_both_forms():
    groups = {"women": ("señora",), "men": ("señor",)}
    values = {
        askew.measure({"q": {"d": 1.0}}, {"d": normalize(form, "la señora habla con la gente")}, "LexiconShare@10",
                      groups=askew.Groups(groups))["LexiconShare@10"].mean
        for form in ("NFC", "NFD")
    }  # fmt: skip
    assert len(values) == 1 and values.pop() > 0
