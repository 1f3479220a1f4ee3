"""Which options to build with: the first that leave no node isolated, tried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnkgraph import registry
from nnkgraph.pairs import DISTANCES
from nnkgraph.tasks.doctor._figures import (
    SATURATED,
    distance_facts,
    overlap_facts,
    support_facts,
)

if TYPE_CHECKING:
    from nnkgraph.tasks.doctor._case import Case

SAME_GRAPH = 0.8
"""Share of common edges from which on two graphs are nearly the same."""

LOCAL = 4.0
"""How many times the 5 % quantile the 95 % quantile of the k-th distances may be."""

_MUTUAL: dict[str, Any] = {"method": "knn", "symmetrize": "mutual"}
_WAYS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "the default rule leaves no node isolated"),
    ({"min_degree": 3}, "the default rule isolates nodes, --min-degree 3 none"),
    (
        {"symmetrize": "error-union", "min_degree": 3},
        "only a rule that keeps one-sided edges leaves no node isolated",
    ),
    ({"method": "knn"}, "NNK leaves nodes isolated under every rule, kNN does not"),
)
"""What is tried in turn, and the reason where it is taken."""


@dataclass(frozen=True)
class Suggestion:
    """Options for ``build_graph`` that were tried out."""

    settings: dict[str, Any]
    """What differs from the options that the data was looked at with."""

    reasons: list[str]
    """Why, one line each."""

    facts: dict[str, Any]
    """What ``report.facts`` says about the graph."""


def better_scale(case: Case, scale: str, columns: dict[str, Any]) -> tuple[str, str]:
    """Return a scaling that should be tried and the reason, or nothing."""
    nearness = case.plan.kernel.nearness
    if scale != "none" or not columns:
        return "", ""
    if nearness in DISTANCES and columns["scale_apart"] and not columns["principal"]:
        return "standard", (
            f"{len(columns['narrow'])} of {columns['columns']} columns hardly count "
            "beside wider ones without scaling"
        )
    products = nearness == "inner-product" and not columns["zero_rows"]
    if products and case.facts()["isolated"] > 0.01 * len(case.rows.x):
        return "unit", "inner products favor long rows, which become hubs"
    return "", ""


def suggest(case: Case, *, free_sigma: bool) -> Suggestion | None:
    """Try options in turn and return the first without isolated nodes.

    Parameters
    ----------
    case : Case
        The rows, scaled as they should be.
    free_sigma : bool
        Whether the bandwidth was left to a rule, so that a better one may be taken.

    Returns
    -------
    Suggestion or None
        None where every graph has isolated nodes: of a single row, for instance.
    """
    local, why = _local(case) if free_sigma else ({}, "")
    for base, first in _bases(case, local, why):
        ways = [*_saturated_ways(case, base), *_WAYS]
        for way, reason in ways:
            settings = {**way, **base}
            facts = case.facts(**{k: v for k, v in settings.items() if k != "kernel"})
            bad = case.failed(settings.get("method", "nnk"), settings.get("sigma"))
            if not facts["isolated"] and not bad:
                reasons = [text for text in (first, reason) if text]
                return Suggestion(settings, reasons, facts)
    return None


def _local(case: Case) -> tuple[dict[str, Any], str]:
    """Say whether every node should have a bandwidth of its own."""
    distances = distance_facts(case)
    if not distances or not case.has_sigma or case.is_local:
        return {}, ""
    spread = distances["kth_spread"]
    if spread is not None and spread < LOCAL:
        return {}, ""
    apart = "without bound" if spread is None else f"by a factor of {spread:.1f}"
    return _with_local(case), (
        f"the distance to the last candidate varies {apart}: one bandwidth does not "
        "fit all nodes"
    )


def _with_local(case: Case) -> dict[str, Any]:
    """Return the options for local bandwidths; the kernel without its own sigma."""
    name = registry.spec(case.plan.kernel).partition(":")[0]
    return {"kernel": name, "sigma": "local"}


def _bases(
    case: Case, local: dict[str, Any], why: str
) -> list[tuple[dict[str, Any], str]]:
    """Return the bandwidths to try; a local one in the end, whatever the spread."""
    bases = [(local, why)]
    if case.has_sigma and not case.is_local and not local:
        forced = "with one bandwidth for all, nodes stay isolated"
        bases.append((_with_local(case), forced))
    return bases


def _saturated_ways(
    case: Case, base: dict[str, Any]
) -> list[tuple[dict[str, Any], str]]:
    """Return mutual kNN as the first choice where NNK gives nearly the same graph."""
    support = support_facts(case)
    if not support["saturated"]:
        return []
    same = overlap_facts(case, base.get("sigma"))["jaccard"]
    if same < SAME_GRAPH:
        return []
    reason = (
        f"NNK keeps more than {100 * SATURATED:.0f} % of the candidates and shares "
        f"{100 * same:.0f} % of the edges with mutual kNN, which is simpler and faster"
    )
    kept = f"{reason}; --min-degree 3 keeps nodes from being isolated"
    return [(_MUTUAL, reason), ({**_MUTUAL, "min_degree": 3}, kept)]
