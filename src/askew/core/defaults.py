"""Defaults that the library and its interfaces share: each stands here once. Importing it costs nothing."""

from __future__ import annotations

STORE = ".askew"
# Where shards of a build run.
ENGINE = "local"
RUN_FORMAT = "auto"
RANKER = "bm25"
# How many documents of each query are found, and how many top-ranked passages a reformulator reads.
RESULTS = 1000
PASSAGES = 10
# Reformulators that need no documents: the first needs a language model, the second nothing but askew.
METHODS = ("rewrite", "reduce")
FILTERS = ("rules",)
# What texts of a language model pass besides: some ask for something else.
WRITTEN_FILTERS = ("rules", "equivalence")
# How many reformulations of one query are shown.
SUGGESTIONS = 5
# A trained model where it is installed and knows the groups, otherwise lexical (askew.app.search.classify).
CLASSIFIER = "auto"
# How words are found in texts: as ``word``, without words that lost their first letter (askew.core.text).
TOKENIZER = "unclipped"
# How two runs are compared.
TEST = "mean"
UNPAIRED = "error"
# What ``sensitivity`` varies. Who is named: a parameter that a measure may have.
SENSITIVITY_GROUPS = "gender:male,female"
SENSITIVITY_MEASURES = ("ARaB(tc)", "ARaB(tf)", "ARaB(bool)", "NFaiRR", "LexiconShare")
SENSITIVITY_TOKENS = ("word", "blank", "unclipped", "seyedsalehi")
SENSITIVITY_SIGNS = ("signed", "abs", "running-abs")
SENSITIVITY_CUTOFFS = (5, 10, 20, 50)
SENSITIVITY_MISSING = ("zero", "drop", "skip")
SENSITIVITY_WHO = ("any", "generic")
# More combinations would make a matrix of agreement that fills the memory.
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
# What tells who a mention points to: ``neural`` is more accurate, and takes minutes where this takes seconds.
RESOLVER = "light"
# What is decomposed unless another measure is named, and how often queries and documents are drawn for intervals.
DECOMPOSED = "ARaB(tf)@10"
DECOMPOSE_DRAWS = 500
