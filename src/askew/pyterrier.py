"""askew inside PyTerrier: transformers that retrieve, reformulate and rerank, and measures for ``pt.Experiment``.

    bm25 = askew.Ranker("bm25").index("demo")
    retrieve = Retrieve(bm25)
    pipeline = Reformulate("extract", bm25) >> retrieve >> Rerank("detconstsort", docs="demo")
    pt.Experiment([retrieve, pipeline], topics, qrels, ["RR@10", *measures(["ARaB(tf)@10"], docs="demo")])

Frames have PyTerrier's columns: qid, query, docno, score and rank from 0. Java is not needed.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from askew.core import defaults
from askew.core.errors import ConfigError, MissingExtra, check_name
from askew.core.groups import Groups, GroupsLike
from askew.core.plugins import names
from askew.data.collection import open_collection
from askew.irm import measures
from askew.rewrite.facade import Ranker, Reformulator
from askew.search.rerank import reorder

try:
    import pyterrier as pt
except ModuleNotFoundError as error:
    if error.name != "pyterrier":
        raise
    raise MissingExtra("askew.pyterrier", "pyterrier") from None

__all__ = ["Fuse", "Reformulate", "Rerank", "Retrieve", "measures"]

# Data frames of pandas, which askew itself never imports.
Frame = Any
_TO_PYTERRIER = {"query_id": "qid", "doc_id": "docno"}
CANDIDATES = ("first", "all")


class Retrieve(pt.Transformer):  # type: ignore[misc]
    """Retrieve the ``k`` best documents of each query with a ``Ranker``. A query without results has no row.

    The columns of the queries are kept. ``Retrieve(ranker) % 10`` requests only 10 documents from the ranker.
    """

    def __init__(self, ranker: Ranker, k: int = defaults.RESULTS) -> None:
        self.ranker, self.k = ranker, k

    def transform(self, inp: Frame) -> Frame:
        """Return one row for each query and document: the columns of the queries, docno, score and rank."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        queries = _with_text_ids(inp).drop(columns=["score", "rank"], errors="ignore")
        if not len(queries):
            return _with_ranks(queries.assign(docno=queries["qid"], score=0.0))
        found = self.ranker.search(_as_queries(queries), self.k).to_polars().rename(_TO_PYTERRIER)
        return _with_ranks(queries.merge(found.to_pandas(), on="qid"))

    def fuse_rank_cutoff(self, k: int) -> Retrieve:
        """Return this transformer with at most ``k`` documents; PyTerrier's compiler calls this."""
        return self if k >= self.k else Retrieve(self.ranker, k)

    def __repr__(self) -> str:
        return f"Retrieve({self.ranker!r}, k={self.k})"


class Reformulate(pt.Transformer):  # type: ignore[misc]
    """Reformulate queries: ``query`` is the reformulation, ``query_0`` the original (``pt.model.push_queries``).

    ``candidates="first"`` takes the first candidate (reformulation) that passes filters, or else the original query.
    ``candidates="all"`` gives a row for the original query and one for each candidate that passes. The column ``qid_0``
    then has the qid of the original query. The original keeps its qid; a candidate has its own (``q1:reduce.2``).
    ``Fuse`` merges the results of all candidates. ``ranker``, ``groups`` and ``settings`` are those of
    ``askew.Reformulator``, including ``filters`` and ``depth``.
    """

    def __init__(
        self,
        name: str,
        ranker: Ranker | None = None,
        groups: GroupsLike | None = None,
        candidates: str = "first",
        **settings: Any,
    ) -> None:
        if candidates not in CANDIDATES:
            raise ConfigError(f"⟨candidates⟩: expected one of {', '.join(CANDIDATES)}; found {candidates!r}")
        self.name, self.ranker, self.candidates, self.settings = name, ranker, candidates, settings
        self.reformulator = Reformulator(name, groups=groups, **settings)

    def transform(self, inp: Frame) -> Frame:
        """Return the queries with their reformulations."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        queries = pt.model.push_queries(_with_text_ids(inp), keep_original=True)
        if self.candidates == "all":
            if "qid_0" in queries.columns:
                raise ConfigError(
                    "⟨candidates=all⟩: an earlier step already made several reformulations of each query (the input "
                    "has the column 'qid_0'); fuse their results with Fuse before this step"
                )
            queries = queries.assign(qid_0=queries["qid"])
        if not len(queries):
            return queries
        made = self.reformulator.reformulate(_as_queries(queries), self.ranker)
        if self.candidates == "first":
            chosen = dict(made.unique("query_id", keep="first").select("query_id", "text").iter_rows())
            texts = [chosen.get(qid, text) for qid, text in zip(queries["qid"], queries["query"], strict=True)]
            return queries.assign(query=texts)
        originals = pl.DataFrame({"qid_0": queries["qid"].tolist(), "qid": queries["qid"].tolist()})
        originals = originals.with_columns(query=pl.Series(queries["query"].tolist(), dtype=pl.String))
        others = made.select(qid_0="query_id", qid="variant_id", query="text")
        rows = pl.concat([originals, others]).to_pandas()
        found = queries.drop(columns=["qid", "query"]).merge(rows, on="qid_0")
        return found[list(queries.columns)]

    def __repr__(self) -> str:
        given = "".join(f", {key}={value!r}" for key, value in self.settings.items())
        return f"Reformulate({self.name!r}, candidates={self.candidates!r}{given})"


class Fuse(pt.Transformer):  # type: ignore[misc]
    """Fuse the results of all candidates of a query by reciprocal rank fusion, the sum of 1 / (constant + rank).

    The input is the output of ``Reformulate(..., candidates="all") >> Retrieve(...)``. Ranks in the sum count from 1.
    The fused results have the qid and text of the original query.
    """

    def __init__(self, constant: float = 60.0) -> None:
        if not constant > 0:
            raise ConfigError(f"⟨constant⟩: expected a number above 0, found {constant}")
        self.constant = constant

    def transform(self, inp: Frame) -> Frame:
        """Return one row for each original query and document, best first."""
        pt.validate.result_frame(inp, extra_columns=["qid_0", "query", "query_0"], context=self)
        gains = inp.assign(score=1.0 / (self.constant + inp["rank"] + 1 - pt.model.FIRST_RANK), qid=inp["qid_0"])
        gains = gains.assign(query=inp["query_0"])
        summed = gains.groupby(["qid", "query", "docno"], sort=False, as_index=False)["score"].sum()
        best = summed.sort_values("score", ascending=False, kind="stable").sort_values("qid", kind="stable")
        return _with_ranks(best.reset_index(drop=True))

    def __repr__(self) -> str:
        return f"Fuse(constant={self.constant})"


class Rerank(pt.Transformer):  # type: ignore[misc]
    """Rerank results with a mitigation method (``detconstsort``, ``greedy``, ``mmr``, ...); scores and ranks are new.

    Texts come from the column that ``text`` names, or from ``docs``: documents or a collection. ``groups`` are male and
    female by default. ``targets`` is ``even`` or shares such as ``"neutral:0.5,male:0.25,female:0.25"``. All documents
    of a result list are reordered; ``Retrieve(...) % 100 >> Rerank(...)`` limits them to 100.
    """

    def __init__(
        self,
        method: str = "detconstsort",
        groups: GroupsLike | None = None,
        docs: object = None,
        text: str = "text",
        targets: str = "even",
        strength: float | None = None,
    ) -> None:
        check_name("method", method, names("mitigation"))
        self.method, self.text, self.targets, self.strength = method, text, targets, strength
        self.groups = None if groups is None else Groups.of(groups)
        self.docs = None if docs is None else open_collection(docs)

    def transform(self, inp: Frame) -> Frame:
        """Return the same rows in the new order."""
        pt.validate.result_frame(inp, extra_columns=[self.text] if self.docs is None else [], context=self)
        if not len(inp):
            return inp
        results = _with_text_ids(inp)
        # Ranks give the order even if scores are equal.
        run = {"query_id": results["qid"].tolist(), "doc_id": results["docno"].tolist(), "score": -results["rank"]}
        docs = dict(zip(results["docno"], results[self.text], strict=True)) if self.docs is None else self.docs
        lines = reorder(pl.DataFrame(run), docs, self.groups, self.targets, self.method, self.strength).rename(
            _TO_PYTERRIER
        )
        lines = lines.with_columns(rank=pl.col("rank") - 1 + pt.model.FIRST_RANK)
        made = lines.to_pandas().merge(results.drop(columns=["score", "rank"]), on=["qid", "docno"])
        return made[list(inp.columns)]

    def __repr__(self) -> str:
        return f"Rerank({self.method!r}, groups={self.groups!r}, targets={self.targets!r})"


def _with_text_ids(frame: Frame) -> Frame:
    """Convert ids to strings, as PyTerrier compares them. Topics read from files often have numbers."""
    ids = [name for name in ("qid", "docno") if name in frame.columns]
    return frame.assign(**{name: frame[name].astype(str) for name in ids})


def _with_ranks(frame: Frame) -> Frame:
    """Add ranks by the order of the rows. ``pt.model.add_ranks`` uses features that pandas 3.1 deprecates."""
    return frame.assign(rank=frame.groupby("qid", sort=False).cumcount() + pt.model.FIRST_RANK)


def _as_queries(frame: Frame) -> pl.DataFrame:
    return pl.DataFrame({"query_id": frame["qid"].tolist(), "text": frame["query"].tolist()})
