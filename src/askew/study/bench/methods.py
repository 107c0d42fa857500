"""Read and check mitigation methods, each of which is written as a short text.

bm25, qld, rm3, dense, ...          another ranker, with its own index
fusion:RANKER,RANKER                several rankers, fused by reciprocal ranks
greedy, mmr, detconstsort, ...      the base's documents, reordered by the groups that they name
FILE.py:CLASS                       a method of your own (see askew.core.protocols)
rerank:MODEL                        the base's documents, reordered by a cross-encoder, or a head of askew train adapter
reformulate:METHOD                  reformulated queries, selected by their results
reformulate:METHOD:one-search       only the reformulation with the highest probability that it asks for the same thing
reformulate:METHOD:FOLDER           reformulated queries, selected by a trained selector
reformulate:METHOD:oracle           reformulated queries, selected by the judgements: an upper bound, not a system
run:FILE                            your own run

FILE or FOLDER may be named NAME#SEED, a run also NAME@STRENGTH#SEED.run: the seeds of a method form one row.

METHOD@STRENGTH sets the strength of a method; METHOD@A,B,C runs it with several strengths. METHOD+greedy reorders the
results of METHOD.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from askew.core.errors import ConfigError, DataError, UnknownName, check_name, check_names
from askew.core.files import check_file
from askew.core.plugins import IN_FILE, build, load, load_from_file, names, settings_of

RANKER, FUSION, REORDER, RERANK, REFORMULATE, RUN = "ranker", "fusion", "reorder", "rerank", "reformulate", "run"
ORACLE, ONE_SEARCH = "oracle", "one-search"
# A folder with this file is a trained selector.
SELECTOR = "selector.json"
# The strengths of a reformulator in a sweep: the number of candidates that are searched.
SEARCHED = (1, 3, 5, 10)
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_STRENGTHS = re.compile(r"(.+)@(\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)*)")
_SEED = re.compile(r"(.+)#(\d+)")


@dataclass(frozen=True)
class MitigationMethod:
    """A parsed method.

    ``name`` is the ranker, plugin, reformulator, model or run. ``choice`` is how candidates are selected. ``first`` is
    the method that provides the results to reorder, None for the base. Runs and models with the same name and different
    ``seed`` (``NAME#SEED``) form one row.
    """

    text: str
    kind: str
    name: str
    choice: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    strength: float | None = None
    first: MitigationMethod | None = None
    seed: int | None = None

    @property
    def bound(self) -> bool:
        """Whether it selects by the judgements, so that it is an upper bound and not a system."""
        return any(one.choice == ORACLE for one in self.parts)

    @property
    def trained(self) -> bool:
        """Whether a trained selector selects a candidate."""
        return self.kind == REFORMULATE and self.choice not in ("", ORACLE, ONE_SEARCH)

    @property
    def by_results(self) -> bool:
        """Whether candidates are selected by the lean of their results."""
        return self.kind == REFORMULATE and self.choice == ""

    @property
    def parts(self) -> list[MitigationMethod]:
        """The method, and the chain of methods that provide its results."""
        return [self, *(self.first.parts if self.first else [])]

    @property
    def family(self) -> str:
        """The text without the strength; the rows of one family form a curve."""
        return self.row_text if self.strength is None else self.row_text.rpartition("@")[0]

    @property
    def row_text(self) -> str:
        """The text without the seed."""
        return self.text if self.seed is None else self.text.rpartition("#")[0]

    @property
    def counts_groups(self) -> bool:
        """Whether it is a reformulator that counts mentions of groups."""
        return self.kind == REFORMULATE and "groups" in settings_of("reformulator", self.name)


def read_methods(
    texts: Sequence[str],
    base: str,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    runs: Sequence[str] = (),
    sweep: bool = False,
) -> tuple[MitigationMethod, list[MitigationMethod]]:
    """Return the base ranker, and the other methods in the given order.

    ``settings`` has the settings of methods by text, for all strengths of a method. ``runs`` has the names of runs in
    memory. With ``sweep``, a method without a given strength is read with several strengths.
    """
    given = dict(settings or {})
    check_names("method", given, [base, *texts, *(f"{RUN}:{name}" for name in runs)], "⟨method_settings⟩")
    check_name("base ranker", base, rankers())
    held = [_held(name, given.get(f"{RUN}:{name}")) for name in runs]
    found = [one for text in texts if text != base for one in _expanded(text, given.get(text), sweep)]
    listed = [one.text for one in (*found, *held)]
    if twice := [text for text in listed if listed.count(text) > 1]:
        raise ConfigError(f"⟨methods⟩ {twice[0]}: this method is given twice; give each method once")
    return MitigationMethod(base, RANKER, base, settings=given.get(base, {})), [*found, *held]


def _expanded(text: str, settings: Mapping[str, Any] | None, sweep: bool) -> Iterator[MitigationMethod]:
    """Yield the method with each of its strengths."""
    several = _STRENGTHS.fullmatch(text)
    if several and "," in several[2]:
        yield from (read_method(f"{several[1]}@{one}", settings) for one in several[2].split(","))
        return
    method = read_method(text, settings)
    strengths: Sequence[float] = ()
    if sweep and method.strength is None and method.kind == REORDER:
        strengths = getattr(_plugin_of(method.name), "strengths", ())
    elif sweep and method.strength is None and method.by_results:
        strengths = SEARCHED
    yield from [read_method(f"{text}@{one:g}", settings) for one in strengths] or [method]


def read_method(text: str, settings: Mapping[str, Any] | None = None) -> MitigationMethod:
    """Parse one method; names, files, folders and settings are checked, no model is loaded."""
    given = dict(settings or {})
    if reorders := _reorders(text, given):
        return reorders
    if text in rankers():
        return MitigationMethod(text, RANKER, text, settings=given)
    kind, colon, rest = text.partition(":")
    if colon and rest and kind in _READ:
        name, choice, strength = _READ[kind](rest)
        # The extension of a file is not part of its strength or seed.
        named = kind == RUN and (strength is not None or _SEED.fullmatch(Path(rest).stem))
        shown = f"{RUN}:{Path(rest).with_suffix('')}" if named else text
        return _seeded(MitigationMethod(shown, kind, name, choice, given, strength))
    known = [*rankers(), *names("mitigation"), f"{FUSION}:RANKER,RANKER", f"{RERANK}:MODEL",
             f"{REFORMULATE}:METHOD", f"{RUN}:FILE", "FILE.py:CLASS"]  # fmt: skip
    raise UnknownName("method", text, known)


def _held(name: str, settings: Mapping[str, Any] | None) -> MitigationMethod:
    strength = _with_strength(_SEED.sub(r"\1", name))[1]
    return _seeded(MitigationMethod(f"{RUN}:{name}", RUN, name, "", dict(settings or {}), strength))


def _with_strength(text: str) -> tuple[str, float | None]:
    """Split a text into the method and its strength, if it has one."""
    found = _STRENGTHS.fullmatch(text)
    return (found[1], float(found[2])) if found and "," not in found[2] else (text, None)


def _seeded(method: MitigationMethod) -> MitigationMethod:
    seed = _SEED.fullmatch(method.text) if method.kind in (RUN, RERANK, REFORMULATE) else None
    return replace(method, seed=int(seed[2])) if seed else method


def _reorders(text: str, settings: dict[str, Any]) -> MitigationMethod | None:
    """Parse a method that reorders results, ``[METHOD+]NAME[@STRENGTH]``; None for any other method."""
    whole, strength = _with_strength(text)
    before, plus, name = whole.rpartition("+")
    if IN_FILE.fullmatch(whole) and not plus:
        before, name = "", whole
    if (name not in names("mitigation") and not IN_FILE.fullmatch(name)) or bool(plus) != bool(before):
        return None
    given = settings if strength is None else {**settings, "strength": int(strength) if strength % 1 == 0 else strength}
    first = read_method(before) if before else None
    method = MitigationMethod(text, REORDER, name, "", given, strength, first)
    make_plugin(method)  # refuses unknown settings
    return method


def _plugin_of(name: str) -> Any:
    """Return the class of a method that reorders results."""
    return load_from_file(name, "⟨methods⟩") if IN_FILE.fullmatch(name) else load("mitigation", name)


def make_plugin(method: MitigationMethod) -> Any:
    """Make a method that reorders results, with its settings."""
    settings = dict(method.settings)
    if method.strength is not None and "strength" not in inspect.signature(_plugin_of(method.name)).parameters:
        raise ConfigError(
            f"⟨methods⟩ {method.text}: the method {method.name} has no strength; leave out @{method.strength:g}"
        )
    if not IN_FILE.fullmatch(method.name):
        return build("mitigation", method.name, settings, f"method {method.text}")
    try:
        return _plugin_of(method.name)(**settings)
    except TypeError as error:
        raise ConfigError(f"method {method.text}: {error}") from None


def rankers() -> list[str]:
    """Return the rankers that search their own index."""
    needed = {
        name: [key for key, default in settings_of("ranker", name).items() if default == "needed"]
        for name in names("ranker")
    }
    return [name for name, settings in needed.items() if settings == ["index"]]


_Read = tuple[str, str, float | None]


def _fusion(rest: str) -> _Read:
    given = rest.split(",")
    for one in given:
        check_name("ranker", one, rankers())
    if len(set(given)) < 2:
        raise ConfigError(f"⟨methods⟩ {FUSION}:{rest}: expected two or more different rankers, as in {FUSION}:bm25,qld")
    return rest, "", None


def _rerank(model: str) -> _Read:
    place = Path(model)
    if place.is_dir() or (_HUB_ID.fullmatch(model) and not place.parent.is_dir()):
        return model, "", None
    if model in names("mitigation"):
        raise ConfigError(
            f"⟨methods⟩ {RERANK}:{model}: {model!r} is a method, not a model; write {model!r} instead of "
            f"'{RERANK}:{model}'"
        )
    raise DataError(
        f"method '{RERANK}:{model}': there is no folder {model!r}. Give a folder that 'askew train ranker' or 'askew "
        "train adapter' wrote, the folder of another cross-encoder, or the id of a model on the Hugging Face Hub, such "
        "as 'org/name'",
        code="no-model",
    )


def _reformulate(rest: str) -> _Read:
    whole, strength = _with_strength(rest)
    method, _, choice = whole.partition(":")
    check_name("reformulator", method, names("reformulator"))
    if strength is not None and (choice not in ("", ORACLE) or strength < 1 or strength % 1):
        raise ConfigError(
            f"method '{REFORMULATE}:{rest}': expected '{REFORMULATE}:{method}@N' or '{REFORMULATE}:{method}:{ORACLE}@N'"
            ", where N is the number of reformulations to search for each query. N is a whole number of 1 or more"
        )
    if choice in ("", ORACLE, ONE_SEARCH) or (Path(choice) / SELECTOR).is_file():
        return method, choice, strength
    if difflib.get_close_matches(choice.lower(), [ORACLE, ONE_SEARCH], cutoff=0.6):
        raise UnknownName("choice", choice, [ORACLE, ONE_SEARCH, "FOLDER"])
    raise DataError(
        f"method '{REFORMULATE}:{rest}': {choice!r} is not a folder with the file {SELECTOR!r}. After "
        f"'{REFORMULATE}:{method}:', write {ORACLE!r}, {ONE_SEARCH!r}, or a folder that 'askew train selector' wrote",
        code="no-selector",
    )


def _run(file: str) -> _Read:
    return str(check_file(Path(file), "run")), "", _with_strength(_SEED.sub(r"\1", Path(file).stem))[1]


_READ = {FUSION: _fusion, RERANK: _rerank, REFORMULATE: _reformulate, RUN: _run}
