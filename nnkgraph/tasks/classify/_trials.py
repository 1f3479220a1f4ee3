"""What is tried: methods with every k and every bandwidth or L/C."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nnkgraph import registry
from nnkgraph.errors import ParameterError
from nnkgraph.prepare import make_plan
from nnkgraph.query import check_plan
from nnkgraph.search.precomputed import Precomputed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import Features
    from nnkgraph.prepare import Plan

    Sigma = str | float


@dataclass(frozen=True)
class Trial:
    """One method with one k and one bandwidth or L/C."""

    name: str
    """The method as it was asked for."""

    plan: Plan
    """Its plug-ins and k."""

    sigma: Sigma | None = None
    """The bandwidth or its rule, as it was asked for."""

    lc: float | None = None

    @property
    def k(self) -> int:
        """Candidates."""
        return self.plan.k


def make_trials(
    train: Features,
    methods: Sequence[str],
    k: Sequence[int],
    sigma: Sequence[Sigma] | None,
    lc: Sequence[float] | None,
    shared: dict[str, Any],
) -> list[Trial]:
    """Return all trials: by method, then k and bandwidth or L/C, smallest first."""
    if not methods:
        raise ParameterError("there is no method to classify with")
    if len(set(methods)) < len(methods):
        raise ParameterError("a method is named twice")
    sigmas = [None] if sigma is None else _ordered(sigma)
    trials, used = [], False
    for name in methods:
        kind = registry.create("methods", name)
        values: list[dict[str, Any]]
        if hasattr(kind, "lc"):
            used = True
            values = [{"lc": one} for one in _costs(name, kind, lc)]
        elif kind.uses_kernel:
            values = [{"sigma": one} for one in sigmas]
        else:
            values = [{}]
        plans = [_plan(train, name, value, shared) for value in values]
        trials += [
            Trial(name, replace(plan, k=number), **value)
            for number in sorted(set(k))
            for plan, value in zip(plans, values, strict=True)
        ]
    if lc is not None and not used:
        raise ParameterError("lc is for method kstar, which is not asked for")
    return trials


def _costs(name: str, kind: Any, lc: Sequence[float] | None) -> list[float]:
    """Return the values of L/C, from the list or the method itself."""
    if lc is None:
        return [kind.lc]
    if "lc=" in name:
        raise ParameterError(f"lc is given twice, by itself and in method {name!r}")
    return sorted(set(lc))


def _ordered(sigma: Sequence[Sigma]) -> list[Sigma | None]:
    """Return rules as they come, then numbers from the smallest."""
    rules: list[Sigma | None] = []
    numbers: set[float] = set()
    for one in sigma:
        with suppress(ValueError):
            numbers.add(float(one))
            continue
        rules.append(one)
    return [*dict.fromkeys(rules), *sorted(numbers)]


def _plan(
    train: Features, name: str, value: dict[str, Any], shared: dict[str, Any]
) -> Plan:
    plan = make_plan(train, k=None, method=name, sigma=value.get("sigma"), **shared)
    check_plan(plan, name, shared["search"])
    if isinstance(plan.search, Precomputed):
        raise ParameterError(
            "classify searches in every part of the rows anew: use search exact"
        )
    if "lc" in value:
        method: Any = replace(plan.method, lc=value["lc"])  # type: ignore[type-var]
        plan = replace(plan, method=method)
    return plan


def chosen(trials: Sequence[Trial], wrong: Sequence[int]) -> dict[str, int]:
    """Return for every method the place of the trial with the fewest mistakes.

    The first of equals wins: the smallest k, then the smallest bandwidth or L/C.
    """
    best: dict[str, int] = {}
    for place, trial in enumerate(trials):
        if trial.name not in best or wrong[place] < wrong[best[trial.name]]:
            best[trial.name] = place
    return best
