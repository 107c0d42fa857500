"""The rules that the subsets of a shipped selector obey. A dataset states them, and ``verify`` checks them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from askew.core.outcome import OUTCOMES
from askew.plugins.kinds import SelectorPlugin
from askew.publish.selection import MIXED, SIGNS
from askew.selectors.refairmulate_paper import paper_labels
from askew.selectors.refairmulate_repo import REPO_ACCEPT, repo_labels


def selection_rules(selector: SelectorPlugin) -> dict[str, Any]:
    """Return the rules that the subsets of a shipped selector obey, for verification; empty for other selectors."""
    promises: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "refairmulate": _less_lean, "refairmulate-paper": _paper, "refairmulate-repo": _repo, "boxes": _boxes,
        "pareto": _pareto, "epsilon": _epsilon,
    }  # fmt: skip
    promise = promises.get(selector.name)
    return {} if promise is None else promise(selector.settings())


def _paper(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rules of the Refairmulate paper: labels depend on the first measures of effectiveness and bias.

    Outcomes depend on all measures.
    """
    effectiveness, bias = given["effectiveness"], given["bias"]
    return {
        **_grouped(given),
        "accepted": dict.fromkeys(("optimal", "effective"), given["accept"]),
        "weights": {effectiveness[0]: given["weight_eff"], bias[0]: given["weight_bias"]},
        "labels": _labels(paper_labels),
        "labels_by": {"effectiveness": effectiveness[:1], "bias": bias[:1]},
    }


def _less_lean(given: Mapping[str, Any]) -> dict[str, Any]:
    """As ``_paper``, with two more rules for chosen pairs.

    A chosen pair is not worse by any measure, and its first bias measure falls by a given share.
    """
    measures = [*given["effectiveness"], *given["bias"]]
    return {
        **_paper(given),
        "at_least": {"fair": dict.fromkeys(measures, 0.0 - given["tolerance"])},
        "smaller_by": {"fair": {given["bias"][0]: given["least_effect"]}},
    }


def _repo(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rules of the public code: labels depend on all measures of effectiveness (and of bias), which must agree."""
    effectiveness, bias = given["effectiveness"], given["bias"]
    accepted = {str(group): sorted(labels) for group, labels in REPO_ACCEPT.items()}
    return {
        **_grouped(given),
        "accepted": dict.fromkeys(("optimal", "effective"), accepted),
        "weights": dict.fromkeys(effectiveness, given["weight_eff"]) | dict.fromkeys(bias, given["weight_bias"]),
        "labels": {**_labels(repo_labels), MIXED: _label(repo_labels, (2, 2))},
        "labels_by": {"effectiveness": effectiveness, "bias": bias},
    }


def _grouped(given: Mapping[str, Any]) -> dict[str, Any]:
    """Rules that the paper and the public code of Refairmulate share."""
    effectiveness, bias = given["effectiveness"], given["bias"]
    groups = {
        "effectiveness": dict.fromkeys(effectiveness, given["theta_eff"]),
        "bias": dict.fromkeys(bias, given["theta_bias"]),
    }
    stated = {**_outcomes(given, effectiveness, bias), "groups": groups}
    if given["theta_eff"] == 1.0 and given["theta_bias"] == 0.0:
        # A score that meets a threshold at the end of its scale has exactly this value.
        stated["optimal"] = dict.fromkeys(effectiveness, 1.0) | dict.fromkeys(bias, 0.0)
    return stated


def _boxes(given: Mapping[str, Any]) -> dict[str, Any]:
    stated = {name: given[name] for name in ("measure", "boxes", "every", "tolerance")}
    return stated | (_outcomes(given, [given["measure"]], given["bias"]) if given["bias"] else {})


def _pareto(given: Mapping[str, Any]) -> dict[str, Any]:
    measures = [given["effectiveness"], given["bias"]]
    front = {"measures": measures, "original": given["against_original"]}
    return {**_outcomes(given, measures[:1], measures[1:]), "fronts": {"front": front}}


def _epsilon(given: Mapping[str, Any]) -> dict[str, Any]:
    """Chosen pairs lose at most epsilon in effectiveness; with ``against_original`` they do not lean more."""
    effectiveness, bias = given["effectiveness"], given["bias"]
    least = {effectiveness: 0.0 - given["epsilon"]} | ({bias: 0.0} if given["against_original"] else {})
    return {**_outcomes(given, [effectiveness], [bias]), "single": ["is_best"], "at_least": {"is_best": least}}


def _outcomes(given: Mapping[str, Any], effectiveness: list[str], bias: list[str]) -> dict[str, Any]:
    return {
        "effectiveness": effectiveness, "bias": bias, "tolerance": given["tolerance"],
        "outcomes": {name: list(signs) for name, signs in zip(OUTCOMES, itertools.product(SIGNS, SIGNS), strict=True)},
    }  # fmt: skip


def _labels(rule: Callable[..., Any]) -> dict[str, int]:
    """Return the label of each outcome, by a rule on signs: 1 is better, 0 the same, -1 worse."""
    signs = itertools.product((1, 0, -1), (1, 0, -1))
    return {name: _label(rule, pair) for name, pair in zip(OUTCOMES, signs, strict=True)}


def _label(rule: Callable[..., Any], signs: tuple[int, int]) -> int:
    return int(rule(*signs))
