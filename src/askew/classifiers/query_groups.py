"""Which gender a query asks about, by a trained model that askew ships. It needs no training and no network.

The model is all-MiniLM-L6-v2 with the adapter ``minilm-query-groups``; its card reports its training data and accuracy.
Its input is the text and four counts: words for women, words for men, and first names of each. It distinguishes the
groups female and male. For other groups use ``lexical``.
"""

from __future__ import annotations

from collections.abc import Sequence

from askew.classifiers.lexical import LABEL
from askew.classifiers.temperature import read_temperature
from askew.classifiers.transformer import LogitsClassifier
from askew.classifiers.word_counts import GROUPS, counted_id, log_counts
from askew.core.errors import ConfigError
from askew.core.groups import Groups, GroupsLike
from askew.core.lexicon import load_lexicon, shipped_lexicons
from askew.core.ranking import Floats
from askew.models.find import MINILM, identify, need

ADAPTER = "minilm-query-groups"
# The labels, in the order of the logits.
CLASSES = (LABEL, *GROUPS)
_LIBRARIES = ("torch", "transformers")


def takes_groups(groups: Groups | None) -> bool:
    """Whether the model may replace the counting of words: for no groups, or a shipped lexicon with female and male.

    Words that a user gives are always counted, whatever the names of their groups.
    """
    if groups is None:
        return True
    shipped = groups.lexicon.name in shipped_lexicons() and load_lexicon(groups.lexicon.name).id == groups.lexicon.id
    return shipped and set(groups.names) == set(GROUPS)


class QueryGroupsClassifier(LogitsClassifier):
    """Predicts with a trained model which gender a query asks about: neutral, female or male, calibrated.

    ``groups``         female and male, or none; other groups are refused.
    ``abstain_below``  abstain if the probability of the label is lower; 0: never.
    ``adapter``        the name of the adapter that askew ships, or a folder with an adapter of the same shape.
    """

    name = "query-groups"

    def __init__(
        self, groups: GroupsLike | None = None, abstain_below: float = 0.0, adapter: str = ADAPTER,
        batch_size: int = 64, device: str | None = None,
    ) -> None:  # fmt: skip
        _refuse_other(groups)
        if batch_size < 1:
            raise ConfigError(f"{self.name}: expected batch_size >= 1, found {batch_size}")
        for library in _LIBRARIES:
            need(library, f"the classifier {self.name!r}")
        from askew.models.adapted import find_encoder_adapter

        self._folder, self._batch, self._device = find_encoder_adapter(adapter, ADAPTER), batch_size, device
        identity = {"model": f"{identify(MINILM)}+{identify(str(self._folder))}", "words": counted_id()}
        super().__init__(self.logits, CLASSES, read_temperature(self._folder), abstain_below, identity)

    def logits(self, texts: Sequence[str]) -> Floats:
        """Return a row of logits for each text, before the temperature. The model is loaded here, at first use."""
        from askew.models.query_network import load_query_network, query_logits

        network, tokenizer = load_query_network(MINILM, self._folder, self._device)
        return query_logits(network, tokenizer, texts, log_counts(texts), self._batch)


def _refuse_other(groups: GroupsLike | None) -> None:
    found = GROUPS if groups is None else Groups.of(groups).names
    if set(found) != set(GROUPS):
        raise ConfigError(
            f"query-groups: expected the groups 'female' and 'male', found {', '.join(found)}; "
            "use the classifier 'lexical', which works with any groups"
        )
