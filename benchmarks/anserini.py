"""Anserini as a reference for rankers: its indexer, its searcher and its feedback, all with default settings.

Needs the extra ``lucene``. Documents are numbered from 0 and their ids have leading zeros: Anserini orders documents of
equal score by their ids, which then is the order of the collection. Term vectors are stored, since feedback reads them.
Anserini does not index a document whose text is blank.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import UnknownName
from askew.core.ranking import Hits
from askew.search.lucene import java_classes

RANKERS = ("bm25", "qld", "rm3", "rocchio")


class Anserini:
    """An index of texts in a folder, searched by Anserini's own code."""

    def __init__(self, folder: Path, texts: Iterable[str]) -> None:
        self._java, self._folder = java_classes(), str(folder.resolve())
        level = self._java("org.apache.logging.log4j.Level")
        # Otherwise Anserini writes a line to standard output for every blank text.
        self._java("org.apache.logging.log4j.core.config.Configurator").setRootLevel(level.FATAL)
        arguments = ["-collection", "JsonCollection", "-input", "-", "-index", self._folder, "-storeDocvectors"]
        indexer = self._java("io.anserini.index.SimpleIndexer")(arguments)
        for number, text in enumerate(texts):
            indexer.addRawDocument(json.dumps({"id": f"{number:09}", "contents": text}))
        indexer.close(True)

    def search(self, ranker: str, queries: Sequence[str], k: int = 10) -> Hits:
        """The k best documents of each query; ``ranker`` is bm25, qld, rm3 or rocchio."""
        searcher = self._searcher(ranker)
        lists = [list(searcher.search(query, k)) for query in queries]
        searcher.close()
        return Hits(
            np.concatenate([[0], np.cumsum([len(hits) for hits in lists])]).astype(np.int64),
            np.array([int(hit.docid) for hits in lists for hit in hits], np.int32),
            np.array([hit.score for hits in lists for hit in hits], np.float32),
        )

    def _searcher(self, ranker: str) -> Any:
        searcher = self._java("io.anserini.search.SimpleSearcher")(self._folder)
        if ranker == "qld":
            searcher.set_qld(1000.0)
        elif ranker == "rm3":
            searcher.set_rm3()
        elif ranker == "rocchio":
            searcher.set_rocchio()
        elif ranker != "bm25":  # which is the default, with k1 = 0.9 and b = 0.4
            raise UnknownName("ranker", ranker, RANKERS)
        return searcher
