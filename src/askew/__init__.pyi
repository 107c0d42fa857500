# ruff: noqa: I001
"""The public names of askew: the only list of them. ``__init__.py`` reads it; type checkers do too."""

from askew.core.version import __version__ as __version__
from askew.core.errors import (
    AskewError as AskewError,
    ConfigError as ConfigError,
    DataError as DataError,
    MissingExtra as MissingExtra,
    StageError as StageError,
    StoreError as StoreError,
    UnknownName as UnknownName,
)
from askew.core.groups import Groups as Groups
from askew.core.lexicon import Lexicon as Lexicon
from askew.core.measure import Direction as Direction, Measure as Measure
from askew.data.collection import Collection as Collection
from askew.data.runs import Run as Run
from askew.logs.analyze import logs as logs
from askew.logs.report import LogReport as LogReport
from askew.logs.settings import LogSettings as LogSettings
from askew.measures.catalogue import (
    AP as AP,
    AWRF as AWRF,
    ERR as ERR,
    EXP as EXP,
    NDKL as NDKL,
    RBP as RBP,
    RR as RR,
    ARaB as ARaB,
    Bpref as Bpref,
    FaiRR as FaiRR,
    Judged as Judged,
    LexiconShare as LexiconShare,
    NFaiRR as NFaiRR,
    P as P,
    R as R,
    RaB as RaB,
    Rprec as Rprec,
    Skew as Skew,
    Success as Success,
    TExFAIR as TExFAIR,
    nDCG as nDCG,
)
from askew.measures.measure import MeasureReport as MeasureReport, measure as measure
from askew.measures.resolver import resolve_mentions as resolve_mentions
from askew.measures.counts import Annotate as Annotate, annotate as annotate
from askew.pairs.build import Pairs as Pairs, build as build, plan as plan
from askew.pairs.verify import verify as verify
from askew.rewrite.classifiers import Classification as Classification, classify as classify
from askew.rewrite.facade import Filter as Filter, Ranker as Ranker, Reformulator as Reformulator
from askew.rewrite.filters import calibrate as calibrate
from askew.search.rerank import RerankSettings as RerankSettings, rerank as rerank
from askew.study.audit.audit import AuditReport as AuditReport, AuditSettings as AuditSettings, audit as audit
from askew.study.bench.bench import (
    BenchReport as BenchReport,
    BenchSettings as BenchSettings,
    bench as bench,
    show_bench as show_bench,
)
from askew.study.check import CheckReport as CheckReport, check as check
from askew.study.compare import CompareReport as CompareReport, compare as compare
from askew.study.sensitivity import SensitivityReport as SensitivityReport, sensitivity as sensitivity
from askew.train.common import Trained as Trained
from askew.train.negatives import NegativesJob as NegativesJob, RankerData as RankerData, negatives as negatives
from askew.train.facade import Classifier as Classifier, Selector as Selector, Trainer as Trainer
from askew.train.shipped import ShippedModel as ShippedModel, shipped_models as shipped_models
