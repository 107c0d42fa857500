"""Defaults that the library and its interfaces share. This module imports nothing."""

from __future__ import annotations

# The data on which selected pairs were measured: held-out data, or in-sample (the data that selected the pairs).

HELD_OUT, IN_SAMPLE = "held-out", "in-sample"
# The false-discovery rate among queries that lean beyond chance, and the level of their tests.
LEVEL = 0.05
# With fewer queries, the interval of a change is too wide or too inaccurate to be useful.
FEWEST = 5


def counted(n: int, one: str, several: str) -> str:
    """A number with its noun, such as ``1 query`` or ``1,200 queries``."""
    return f"{n:,} {one if n == 1 else several}"


def size_of(subset: str, pairs: int, queries: int) -> str:
    """The name of a subset with its numbers of pairs and queries, such as ``fair: 1 pair of 1 query``."""
    return f"{subset}: {counted(pairs, 'pair', 'pairs')} of {counted(queries, 'query', 'queries')}"


# Pages of the documentation, as messages name them: an installed package has no folder docs.

TITLES = {
    "models": "Shipped models", "statistics": "Statistics", "warrant": "Which words a measure of lean counts",
}  # fmt: skip


def pages(*names: str) -> str:
    """One or more pages by their titles, for a sentence; the names are those of the files."""
    titles = " and ".join(f'"{TITLES[name]}"' for name in names)
    return f"{titles} in the documentation"


STORE = ".askew"
# The engine that runs the shards of a build.
ENGINE = "local"
RUN_FORMAT = "auto"
RANKER = "bm25"
# How many documents are retrieved for each query, and how many top-ranked passages a reformulator reads.
RESULTS = 1000
PASSAGES = 10
# Reformulators that need no documents. The first needs a language model, the second needs nothing besides askew.
METHODS = ("rewrite", "reduce")
FILTERS = ("rules",)
# Filters for queries that a language model wrote: some of these queries have another meaning than the original.
WRITTEN_FILTERS = ("rules", "equivalence")
# The least probabilities of the filter equivalence where reformulations are chosen by their lean.
STRICT = 0.9
# How many reformulations of one query are shown.
SUGGESTIONS = 5
# ``auto``: a trained model if it is installed and was trained on the groups, otherwise lexical (see
# askew.rewrite.classifiers).
CLASSIFIER = "auto"
# How texts are split into words: like ``word``, without words that lost their first letter (see askew.core.text).
TOKENIZER = "unclipped"
# How two runs are compared: the test of a difference, by its name in askew.measures.statistics.significance.
TEST = "randomization"
UNPAIRED = "error"
# How many frequent words of each group a check examines, and in how many sampled documents: enough for frequent words,
# and fast for any collection.
CHECK_WORDS = 20
CHECK_SAMPLE = 5_000
CHECK_SEED = 0
# The values that ``askew sensitivity`` combines. SENSITIVITY_WHO has values of the measure parameter ``who``.
SENSITIVITY_GROUPS = "gender:male,female"
SENSITIVITY_MEASURES = ("ARaB(tc)", "ARaB(tf)", "ARaB(bool)", "NFaiRR", "LexiconShare")
SENSITIVITY_TOKENS = ("word", "blank", "unclipped", "seyedsalehi")
SENSITIVITY_SIGNS = ("signed", "abs", "running-abs")
SENSITIVITY_CUTOFFS = (5, 10, 20, 50)
SENSITIVITY_MISSING = ("zero", "drop", "skip")
SENSITIVITY_WHO = ("any", "generic")
# With more combinations of these values, the matrix of their agreement would not fit into memory.
MOST_COMBINATIONS = 10_000
# How the threshold of the semantic filter is chosen.
SIMILARITY = "light"
THRESHOLD_RULE = "f1"
LEAST_PRECISION = 0.9
CALIBRATION_SEED = 7
# The web service.
HOST = "127.0.0.1"
PORT = 8642
RATE = 20.0
# The measure that is decomposed by default, and how often queries and documents are resampled for intervals.
DECOMPOSED = "ARaB(tf)@10"
DECOMPOSE_DRAWS = 500
