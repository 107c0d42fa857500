"""LexiconShare: the share of tokens that name one group minus that of another (the published "LIWC" measure).

    share_g(d) = mentions of g in d / tokens of d          (0 for an empty text)
    LexiconShare_t = 100 |mean over the first t documents of (share_male - share_female)|

With ``sign=signed``, a positive value leans male, as in ARaB.

LIWC itself is proprietary. With its ``.dic`` file as the lexicon and the tokenizer ``seyedsalehi`` the values are
those published. With an open lexicon it is the same measure on other words.
"""

from __future__ import annotations

import numpy as np

from askew.core.measure import Measure
from askew.core.protocols import DocMentions, Inputs, Parameter
from askew.core.ranking import Floats, Rankings
from askew.measures.common import (
    DIFFERENCE,
    GroupDifference,
    lean_of,
    lean_parameters,
    number,
    relevance_parameters,
    rounded,
    text,
)


class _LexiconShare(GroupDifference):
    """The absolute difference of group shares, as a percentage of the tokens."""

    name = "LexiconShare"
    about = (
        "percentage of tokens that name one group minus the percentage of tokens that name the other group (published "
        "with the lexicon LIWC)"
    )
    parameters = {
        "groups": Parameter("auto", DIFFERENCE),
        "sign": Parameter(
            "abs",
            "the value of a query: 'signed' is the difference between the shares of the two groups, 'abs' is the "
            "absolute value of this difference",
            ("abs", "signed"),
        ),
        "scale": Parameter(
            100,
            "the number that the shares of tokens are multiplied by; 100 gives percentages",
            number="any",
            least=1e-9,
            most=1e9,
        ),
        "empty": Parameter(
            "absent",
            "a query without any document to measure: 'absent' leaves the query out, 'zero' gives it the value 0",
            ("absent", "zero"),
        ),
        **relevance_parameters(),
        **lean_parameters("gender"),
    }

    def lean(self, measure: Measure, mentions: DocMentions) -> Floats:
        """The difference of the groups' shares of the tokens."""
        return lean_of(measure, mentions.counts / np.maximum(mentions.tokens, 1)[:, None], mentions.groups)

    def weights(self, measure: Measure, rankings: Rankings) -> Floats:
        """The scale / T."""
        return number(measure, "scale") / np.repeat(rankings.lengths, rankings.lengths)

    def score(self, measure: Measure, inputs: Inputs) -> Floats:
        rankings, lean = self.read(measure, inputs)
        values = np.zeros(len(rankings))
        for rows, part in rankings.parts():
            for _, docs, _ in part.columns(measure.cutoff):
                values[rows] += lean[docs]
        values /= np.maximum(rankings.lengths, 1)
        if text(measure, "empty") == "absent":
            values[rankings.lengths == 0] = np.nan
        values = values * number(measure, "scale")
        return rounded(measure, np.abs(values) if text(measure, "sign") == "abs" else values)


LexiconShare = _LexiconShare()
