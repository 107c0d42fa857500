"""Build a ranker from settings: by name, with an index, on top of another ranker, or from a run file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from askew.core.errors import ConfigError, check_name
from askew.corpora.queries import read_queries
from askew.corpora.runs import read_run
from askew.plugins.kinds import RankerPlugin
from askew.plugins.registry import build, made_type, names
from askew.rankers.disk import read_header
from askew.rankers.engines.ranker import EngineRanker

Spec = Mapping[str, Any]


def make_ranker(spec: Spec, queries: pa.Table | None = None) -> RankerPlugin:
    """Build a ranker from ``{"ranker": name, setting: value, ...}``. Inner rankers have the same form.

    ``queries`` has the query texts for a replayed run if the spec gives no file of queries.
    """
    settings = dict(spec)
    name = settings.pop("ranker", None)
    if not isinstance(name, str):
        raise ConfigError(f'a ranker is given by its name, as in ranker = "bm25"; found {dict(spec)!r}')
    check_name("ranker", name, names("ranker"))
    if name == "replay":
        settings |= _replayed(settings, queries)
    if "first" in settings:
        settings["first"] = make_ranker(settings["first"], queries)
    if "rankers" in settings:
        settings["rankers"] = [make_ranker(inner, queries) for inner in settings["rankers"]]
    ranker = build("ranker", name, settings)
    assert isinstance(ranker, RankerPlugin)
    return ranker


def is_engine(name: str) -> bool:
    """Whether a ranker searches with a live engine, and needs no index."""
    return name in names("ranker") and made_type("ranker", name) is EngineRanker


def _replayed(settings: Spec, queries: pa.Table | None) -> dict[str, Any]:
    """The settings of a replay: the run of a file, and the texts of its queries."""
    path = settings.get("run")
    if not isinstance(path, str | Path):
        return {}
    table = read_queries(Path(settings["queries"])) if "queries" in settings else queries
    if table is None:
        raise ConfigError(
            f"replay {path}: a run has only the ids of its queries; give a file with the texts of the queries "
            "(queries=)"
        )
    run: dict[str, dict[str, float]] = {}
    for query, doc, score in read_run(Path(path)).lines.select("query_id", "doc_id", "score").iter_rows():
        run.setdefault(query, {})[doc] = score
    texts = dict(zip(table["query_id"].to_pylist(), table["text"].to_pylist(), strict=True))
    return {"run": run, "queries": texts, "name": Path(path).name}


def compose(ranker: str | None, indexes: Sequence[Path], runs: Sequence[Path], settings: Spec) -> Spec:
    """The ranker spec for the arguments of a command line.

    Each index records the ranker that it was made for. Several indexes and runs are fused. A reranker reranks the
    documents of a given run, or else of the first index that is not its own.
    """
    if ranker is not None and is_engine(ranker):
        if indexes or runs:
            raise ConfigError(f"the ranker {ranker!r} searches a live engine: leave out index= and run=")
        return {"ranker": ranker, **settings}
    own = [{"ranker": read_header(index)["kind"], "index": str(index)} for index in indexes]
    given = [*own, *({"ranker": "replay", "run": str(run)} for run in runs)]
    if not given:
        raise ConfigError("a ranker needs an index or a run: give index= or run=")
    name = ranker or ("fusion" if len(given) > 1 else given[0]["ranker"])
    if name == "fusion":
        return {"ranker": name, "rankers": given, **settings}
    if name == "crossencoder":
        if not own:
            raise ConfigError(
                "the ranker 'crossencoder' reads the texts of documents; give an index with stored texts (index=)"
            )
        return {"ranker": name, "first": (given[len(own) :] or own)[0], "index": own[0]["index"], **settings}
    needs = f"the ranker {name!r} needs"
    told = f"Number of runs given with run=: {len(runs)}. Number of indexes given with index=: {len(own)}"
    if name == "replay":
        return {**_only(given[len(own) :], f"{needs} exactly one run. {told}"), **settings}
    if name == "lateinteraction" and len(given) == 2:
        mine = [one for one in own if one["ranker"] == name]
        first = [one for one in given if one not in mine]
        index = _only(mine, f"{needs} exactly one index that was made for this ranker. {told}")
        ranked = _only(first, f"{needs} exactly one run or index of another ranker. {told}")
        return {"ranker": name, **index, "first": ranked, **settings}
    index = _only(own if len(own) == len(given) else [], f"{needs} exactly one index and no run. {told}")
    return {**index, "ranker": name, **settings}


def _only(found: Sequence[Spec], problem: str) -> Spec:
    if len(found) != 1:
        raise ConfigError(problem)
    return found[0]
