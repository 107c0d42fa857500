"""Mitigation methods: ways to reduce the lean of results. Each is written as a short text and checked before any work.

bm25, qld, rm3, dense, ...      another ranker, with its own index
rerank:detconstsort             the base's documents, reordered so that each group gets its share of the top ranks
rerank:MODEL                    the base's documents, reordered by a cross-encoder (a folder or a hub id)
reformulate:METHOD              reformulated queries, chosen by their results
reformulate:METHOD:FOLDER       reformulated queries, chosen by a trained selector
reformulate:METHOD:oracle       reformulated queries, chosen by the judgements: an upper bound, not a system
run:FILE                        your own run
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, UnknownName, check_name, check_names
from askew.corpora.files import check_file
from askew.plugins.registry import names, settings_of

RANKER, RERANK, REFORMULATE, RUN = "ranker", "rerank", "reformulate", "run"
DETCONSTSORT, ORACLE = "detconstsort", "oracle"
# A folder with this file holds a trained selector.
SELECTOR = "selector.json"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class MitigationMethod:
    """A method as read: ``name`` is the ranker, reformulator, model or run; ``choice`` says what chooses candidates."""

    text: str
    kind: str
    name: str
    choice: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def bound(self) -> bool:
        """Whether it chooses by the judgements: then it is an upper bound and not a system."""
        return self.choice == ORACLE

    @property
    def trained(self) -> bool:
        """Whether a trained selector chooses among candidates."""
        return bool(self.choice) and not self.bound

    @property
    def reranks_groups(self) -> bool:
        """Whether it reorders documents by their groups."""
        return self.kind == RERANK and self.name == DETCONSTSORT

    @property
    def counts_groups(self) -> bool:
        """Whether it counts mentions of groups."""
        return self.reranks_groups or (self.kind == REFORMULATE and "groups" in settings_of("reformulator", self.name))


def read_methods(
    texts: Sequence[str],
    base: str,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    runs: Sequence[str] = (),
) -> tuple[MitigationMethod, list[MitigationMethod]]:
    """The base ranker, and the methods in the order given; the base is not repeated among them.

    ``settings`` are those of a method, by its text; ``runs`` names runs that the caller holds.
    """
    given = dict(settings or {})
    held = [MitigationMethod(f"{RUN}:{name}", RUN, name) for name in runs]
    known = [base, *texts, *(one.text for one in held)]
    twice = [text for text in known[1:] if known[1:].count(text) > 1]
    if twice:
        raise ConfigError(f"methods= {twice[0]}: it is given twice; give each method once")
    check_names("method", given, known, "method_settings=")
    check_name("base ranker", base, rankers())
    found = [read_method(text, given.get(text)) for text in texts if text != base]
    return MitigationMethod(base, RANKER, base, settings=given.get(base, {})), [*found, *held]


def read_method(text: str, settings: Mapping[str, Any] | None = None) -> MitigationMethod:
    """One method from its text. Names, files and folders are checked; nothing is loaded."""
    kind, colon, rest = text.partition(":")
    given = dict(settings or {})
    if not colon and text in rankers():
        return MitigationMethod(text, RANKER, text, settings=given)
    if colon and rest and kind in _READ:
        name, choice = _READ[kind](rest)
        return MitigationMethod(text, kind, name, choice, given)
    known = [*rankers(), f"{RERANK}:{DETCONSTSORT}", f"{RERANK}:MODEL", f"{REFORMULATE}:METHOD", f"{RUN}:FILE"]
    raise UnknownName("method", text, known)


def rankers() -> list[str]:
    """The rankers that search their own index."""
    return [name for name in names("ranker") if _needed(name) == ["index"]]


def _needed(ranker: str) -> list[str]:
    return [key for key, default in settings_of("ranker", ranker).items() if default == "needed"]


def _rerank(model: str) -> tuple[str, str]:
    place = Path(model)
    if model == DETCONSTSORT or place.is_dir():
        return model, ""
    if _HUB_ID.fullmatch(model) and not place.parent.is_dir():
        return model, ""
    if difflib.get_close_matches(model.lower(), [DETCONSTSORT], cutoff=0.6):
        raise UnknownName("reranker", model, [DETCONSTSORT, "MODEL"])
    raise DataError(
        f"methods= {RERANK}:{model}: expected {DETCONSTSORT}, the folder of a cross-encoder (from askew train ranker) "
        "or a hub id such as org/name; found no such folder"
    )


def _reformulate(rest: str) -> tuple[str, str]:
    method, _, choice = rest.partition(":")
    check_name("reformulator", method, names("reformulator"))
    if choice in ("", ORACLE) or (Path(choice) / SELECTOR).is_file():
        return method, choice
    if difflib.get_close_matches(choice.lower(), [ORACLE], cutoff=0.6):
        raise UnknownName("choice", choice, [ORACLE, "FOLDER"])
    raise DataError(
        f"methods= {REFORMULATE}:{rest}: expected {ORACLE} or the folder of a selector (from askew train selector) "
        f"after {method!r}; found no {SELECTOR} in {choice!r}"
    )


def _run(file: str) -> tuple[str, str]:
    return str(check_file(Path(file), "run")), ""


_READ = {RERANK: _rerank, REFORMULATE: _reformulate, RUN: _run}
