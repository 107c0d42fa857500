"""askew: measure demographic bias in search results, and find query reformulations that lean less.

The names below are the public interface. Each is imported when it is first used, so that ``import askew`` stays fast
and light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from askew.core.version import __version__

if TYPE_CHECKING:
    from askew.app.audit.audit import AuditReport, AuditSettings, audit
    from askew.app.bench.bench import BenchReport, BenchSettings, bench, show_bench
    from askew.app.build.facade import Pairs, build
    from askew.app.logs.analyze import analyze_log
    from askew.app.logs.report import LogReport
    from askew.app.logs.settings import LogSettings
    from askew.app.measure.check import CheckReport, check
    from askew.app.measure.compare import CompareReport, compare
    from askew.app.measure.measure import MeasureReport, measure
    from askew.app.measure.sensitivity import SensitivityReport, sensitivity
    from askew.app.search.classify import Classification, classify
    from askew.app.search.facade import Filter, Ranker, Reformulator
    from askew.app.shipped.models import ShippedModel, shipped_models
    from askew.app.train.facade import Classifier, Selector, Trainer
    from askew.app.train.trained import Trained
    from askew.core.errors import (
        AskewError,
        ConfigError,
        DataError,
        MissingExtra,
        StageError,
        StoreError,
        UnknownName,
    )
    from askew.core.groups import Groups
    from askew.core.lexicon import Lexicon
    from askew.core.measure import Direction, Measure
    from askew.corpora.collection import Collection
    from askew.corpora.runs import Run
    from askew.measures.names import (
        AP,
        AWRF,
        ERR,
        EXP,
        NDKL,
        RBP,
        RR,
        ARaB,
        Bpref,
        FaiRR,
        Judged,
        LexiconShare,
        NFaiRR,
        P,
        R,
        RaB,
        Rprec,
        Skew,
        Success,
        TExFAIR,
        nDCG,
    )
    from askew.mentions.resolve import resolve_mentions


_PLACES = {
    "askew.core.errors": (
        "AskewError", "ConfigError", "DataError", "MissingExtra", "StageError", "StoreError", "UnknownName",
    ),
    "askew.core.groups": ("Groups",),
    "askew.core.lexicon": ("Lexicon",),
    "askew.core.measure": ("Direction", "Measure"),
    "askew.corpora.collection": ("Collection",),
    "askew.corpora.runs": ("Run",),
    "askew.measures.names": (
        "AP", "ARaB", "AWRF", "Bpref", "ERR", "EXP", "FaiRR", "Judged", "LexiconShare", "NDKL", "NFaiRR", "P", "R",
        "RBP", "RR", "RaB", "Rprec", "Skew", "Success", "TExFAIR", "nDCG",
    ),
    "askew.mentions.resolve": ("resolve_mentions",),
    "askew.app.audit.audit": ("AuditReport", "AuditSettings", "audit"),
    "askew.app.bench.bench": ("BenchReport", "BenchSettings", "bench", "show_bench"),
    "askew.app.build.facade": ("Pairs", "build"),
    "askew.app.logs.analyze": ("analyze_log",),
    "askew.app.logs.report": ("LogReport",),
    "askew.app.logs.settings": ("LogSettings",),
    "askew.app.measure.check": ("CheckReport", "check"),
    "askew.app.measure.compare": ("CompareReport", "compare"),
    "askew.app.measure.measure": ("MeasureReport", "measure"),
    "askew.app.measure.sensitivity": ("SensitivityReport", "sensitivity"),
    "askew.app.shipped.models": ("ShippedModel", "shipped_models"),
    "askew.app.train.facade": ("Classifier", "Selector", "Trainer"),
    "askew.app.train.trained": ("Trained",),
    "askew.app.search.classify": ("Classification", "classify"),
    "askew.app.search.facade": ("Filter", "Ranker", "Reformulator"),
}  # fmt: skip
_PUBLIC = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "AP",
    "AWRF",
    "ERR",
    "EXP",
    "NDKL",
    "RBP",
    "RR",
    "ARaB",
    "AskewError",
    "AuditReport",
    "AuditSettings",
    "BenchReport",
    "BenchSettings",
    "Bpref",
    "CheckReport",
    "Classification",
    "Classifier",
    "Collection",
    "CompareReport",
    "ConfigError",
    "DataError",
    "Direction",
    "FaiRR",
    "Filter",
    "Groups",
    "Judged",
    "Lexicon",
    "LexiconShare",
    "LogReport",
    "LogSettings",
    "Measure",
    "MeasureReport",
    "MissingExtra",
    "NFaiRR",
    "P",
    "Pairs",
    "R",
    "RaB",
    "Ranker",
    "Reformulator",
    "Rprec",
    "Run",
    "Selector",
    "SensitivityReport",
    "ShippedModel",
    "Skew",
    "StageError",
    "StoreError",
    "Success",
    "TExFAIR",
    "Trained",
    "Trainer",
    "UnknownName",
    "__version__",
    "analyze_log",
    "audit",
    "bench",
    "build",
    "check",
    "classify",
    "compare",
    "measure",
    "nDCG",
    "resolve_mentions",
    "sensitivity",
    "shipped_models",
    "show_bench",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'askew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
