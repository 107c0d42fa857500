"""Levers: what can be done about results that lean. Each is written as a short text, and checked before any work.

bm25, qld, rm3, dense, ...      another ranker, over an index of its own
rerank:detconstsort             the base's documents, each group given its share of the first places
rerank:MODEL                    the base's documents, ordered by a cross-encoder (a folder or a hub id)
reformulate:METHOD              each query asked otherwise, chosen by what its results say of themselves
reformulate:METHOD:FOLDER       the same, chosen by a trained selector
reformulate:METHOD:oracle       the same, chosen by the judgements: an upper bound, no system
run:FILE                        a run of one's own
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, UnknownName
from askew.corpora.files import check_file
from askew.plugins.registry import names, settings_of

RANKER, RERANK, REFORMULATE, RUN = "ranker", "rerank", "reformulate", "run"
GROUPS, ORACLE = "detconstsort", "oracle"
# The file by which the folder of a trained selector is known.
SELECTOR = "selector.json"
# Levers that need no more than askew itself; the base is always there.
DEFAULTS = (
    "qld", "rm3", "rerank:detconstsort", "reformulate:reduce", "reformulate:fairfeedback", "reformulate:extract",
    "reformulate:extract:oracle",
)  # fmt: skip
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Lever:
    """A lever as read: ``name`` is the ranker, method, model or file; ``choice`` says who chooses among candidates."""

    text: str
    kind: str
    name: str
    choice: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def bound(self) -> bool:
        """Whether it reads judgements to choose: then it bounds what a system can do, and is none."""
        return self.choice == ORACLE

    @property
    def trained(self) -> bool:
        """Whether a trained selector chooses among candidates."""
        return bool(self.choice) and not self.bound


def read_levers(
    texts: Sequence[str], base: str = "bm25", settings: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[Lever, list[Lever]]:
    """The base ranker, and the levers in the order given; a base that is among them stays the base.

    ``settings`` are those of a lever, by its text.
    """
    given = dict(settings or {})
    twice = [text for text in texts if list(texts).count(text) > 1]
    if twice:
        raise ConfigError(f"--lever {twice[0]}: it is given twice; give each lever once")
    for owner in given:
        if owner not in (base, *texts):
            raise UnknownName("lever", owner, (base, *texts), "--set")
    if base not in rankers():
        raise UnknownName("base ranker", base, rankers())
    found = [read_lever(text, given.get(text)) for text in texts if text != base]
    return Lever(base, RANKER, base, settings=given.get(base, {})), found


def read_lever(text: str, settings: Mapping[str, Any] | None = None) -> Lever:
    """One lever from its text. Names, files and folders are checked; nothing is loaded."""
    kind, colon, rest = text.partition(":")
    given = dict(settings or {})
    if not colon and text in rankers():
        return Lever(text, RANKER, text, settings=given)
    if colon and rest and kind in _READ:
        name, choice = _READ[kind](rest)
        return Lever(text, kind, name, choice, given)
    known = [*rankers(), f"{RERANK}:{GROUPS}", f"{RERANK}:MODEL", f"{REFORMULATE}:METHOD", f"{RUN}:FILE"]
    raise UnknownName("lever", text, known)


def rankers() -> list[str]:
    """The rankers that search an index of their own."""
    return [name for name in names("ranker") if _needed(name) == ["index"]]


def _needed(ranker: str) -> list[str]:
    return [key for key, default in settings_of("ranker", ranker).items() if default == "needed"]


def _rerank(model: str) -> tuple[str, str]:
    place = Path(model)
    if model == GROUPS or place.is_dir():
        return model, ""
    if _HUB_ID.fullmatch(model) and not place.parent.is_dir():
        return model, ""
    if difflib.get_close_matches(model.lower(), [GROUPS], cutoff=0.6):
        raise UnknownName("reranker", model, [GROUPS, "MODEL"])
    raise DataError(
        f"--lever {RERANK}:{model}: expected {GROUPS}, the folder of a cross-encoder (askew train ranker makes one) or "
        "a hub id such as org/name; found no such folder"
    )


def _reformulate(rest: str) -> tuple[str, str]:
    method, _, choice = rest.partition(":")
    if method not in names("reformulator"):
        raise UnknownName("reformulator", method, names("reformulator"))
    if choice in ("", ORACLE) or (Path(choice) / SELECTOR).is_file():
        return method, choice
    if difflib.get_close_matches(choice.lower(), [ORACLE], cutoff=0.6):
        raise UnknownName("choice", choice, [ORACLE, "FOLDER"])
    raise DataError(
        f"--lever {REFORMULATE}:{rest}: expected {ORACLE} or the folder of a selector (askew train selector makes one) "
        f"after {method!r}; found no {SELECTOR} in {choice!r}"
    )


def _run(file: str) -> tuple[str, str]:
    return str(check_file(Path(file), "run")), ""


_READ = {RERANK: _rerank, REFORMULATE: _reformulate, RUN: _run}
