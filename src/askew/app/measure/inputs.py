"""Convert the arguments of a caller for a job: runs, measures, and the parts of a collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import TypeAlias

from askew.app.scoring.universe import QrelsLike, RunLike
from askew.core.errors import ConfigError
from askew.core.measure import Measure, split_measures
from askew.corpora.collection import Collection, open_collection
from askew.corpora.layout import folder_and_split
from askew.corpora.queries import read_queries

MeasuresLike: TypeAlias = str | Measure | Sequence[str | Measure]


def measure_texts(measures: MeasuresLike | None) -> list[str] | None:
    """The measures as texts; None if none are given."""
    if measures is None:
        return None
    if isinstance(measures, str):
        return split_measures(measures)
    each = [measures] if isinstance(measures, Measure) else measures
    return [one.text if isinstance(one, Measure) else one for one in each]


def as_runs(runs: RunLike | Sequence[RunLike] | Mapping[str, RunLike]) -> Sequence[RunLike] | Mapping[str, RunLike]:
    """Return a sequence or mapping of runs. ``{query: {document: score}}`` is one run, ``{name: run}`` several."""
    if isinstance(runs, Mapping):
        return [runs] if _is_run(runs) else runs
    if isinstance(runs, Sequence) and not isinstance(runs, str):
        return runs
    return [runs]


def _is_run(given: Mapping[str, object]) -> bool:
    found = next(iter(given.values()), None)
    return isinstance(found, Mapping) and all(isinstance(score, Real) for score in found.values())


def parts_of(collection: object, docs: object, qrels: QrelsLike | None) -> tuple[object, QrelsLike | None]:
    """The documents and judgements: those of the collection, but a given ``qrels`` overrides its judgements."""
    if collection is None:
        return docs, qrels
    if docs is not None:
        raise ConfigError("docs: the documents are given twice, as a collection and as docs=; give only one of them")
    opened = open_collection(collection) if _is_whole(collection) else collection
    if not isinstance(opened, Collection):
        return opened, qrels
    judged = opened.qrels_file().lines if qrels is None and opened.has_judgements else qrels
    # Keep the path of a folder, because it is the key of earlier counts in the store.
    return collection if isinstance(collection, str | Path) and Path(collection).is_dir() else opened, judged


def query_texts(collection: object, queries: str | Path | Sequence[str] | None) -> dict[str, str]:
    """The query texts by id, from a file or from the collection; empty if neither has them."""
    if isinstance(queries, str | Path):
        table = read_queries(Path(queries))
    else:
        opened = open_collection(collection) if _is_whole(collection) else collection
        if not isinstance(opened, Collection) or not opened.has_queries:
            return {}
        table = opened.queries
    return dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))


def _is_whole(collection: object) -> bool:
    """Whether the argument names a whole collection and not only a file of documents."""
    if isinstance(collection, str) and (collection == "demo" or collection.startswith("irds:")):
        return True
    if not isinstance(collection, str | Path):
        return False
    path = Path(collection)
    return path.is_dir() or (not path.exists() and folder_and_split(path) is not None)
