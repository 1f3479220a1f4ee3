"""The neighborhood of a node as a graph has it: its parameters and candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.build.settings import Settings
from nnkgraph.data import Candidates
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.search import distance_of, index_dtype, ranked
from nnkgraph.search.exact import GRAIN
from nnkgraph.tasks.verify.recipe import features_check, recipe_of

if TYPE_CHECKING:
    from nnkgraph.build.run import Run
    from nnkgraph.data import Features, Graph, IndexArray
    from nnkgraph.kernels import Kernel

_SAME = 1e-6  # errors J that differ by less, as a share, are the same
_FOLDERS = {"method": "methods", "kernel": "kernels", "search": "search"}


@dataclass(frozen=True)
class Built:
    """What a graph says about its neighborhoods."""

    settings: Settings
    listed: IndexArray | None  # candidates of all nodes, where stored
    search: str  # who found them

    def find(self, run: Run, place: int) -> tuple[Candidates, Kernel]:
        """Return the candidates that a row had, and the kernel with its bandwidth."""
        kernel = run.settings.kernel
        if self.listed is not None:
            return self._stored(run, self.listed, place), kernel
        # What a function says may depend on which rows it is asked about together.
        grain = GRAIN if kernel.nearness == "similarity" else 1
        start = place - place % grain
        span = range(start, min(start + grain, len(run.rows.x)))
        return one_row(replace(run, span=span).find(), place - start), kernel

    def _stored(self, run: Run, listed: IndexArray, place: int) -> Candidates:
        rows, base = run.rows, run.settings.kernel.nearness
        line = listed[place if rows.origin is None else rows.origin[place]]
        line = line[line >= 0]
        if rows.origin is not None:
            line = np.searchsorted(rows.origin, line)
        index = line[np.newaxis].astype(index_dtype(len(rows.x)))
        index, score = ranked(rows.x, rows.x[place : place + 1], index, base)
        return Candidates(index, distance_of(score, base), self.search, exact=False)


def built_of(graph: Graph, features: Features, name: str) -> Built:
    """Return what a graph says, once it is clear that these are its features."""
    recipe = recipe_of(graph, name)
    known = graph.provenance
    check_method(known["method"], has_error=recipe.weigher.has_error)
    same = features_check(features, graph, recipe)
    if same.status != "ok":
        said = f"not what {name} was built from: {same.text}"
        raise InputError(f"{features.name}: {said}")
    if graph.candidates is None and not recipe.exact:
        raise InputError(
            f"{name}: the file does not hold the candidates that {recipe.search} "
            "found; use the .npz graph, or keep the .nnk.npz file beside this one"
        )
    search = known["search"] if recipe.exact else "exact"
    settings = Settings.read({**known, "search": search}, features)
    return Built(settings, graph.candidates, recipe.search)


def contradictions(
    given: dict[str, Any], graph: Graph, name: str
) -> list[tuple[str, object, object]]:
    """Return which parameters are not those of a graph, with both values."""
    recipe, known = recipe_of(graph, name), graph.provenance
    found: list[tuple[str, object, object]] = []
    for option, value in given.items():
        theirs = known.get(option)
        if option == "sigma":
            theirs = recipe.sigma_rule
            agree = _number(value) in {_number(theirs), recipe.sigma}
        elif option in _FOLDERS:
            agree = _same_plugin(_FOLDERS[option], value, str(theirs))
        else:
            agree = value == theirs
        if not agree:
            found.append((option, value, theirs))
    return found


def _number(value: object) -> object:
    """Return a bandwidth as a number, or the name of its rule."""
    try:
        return float(str(value))
    except ValueError:
        return value


def _same_plugin(folder: str, ours: str, theirs: str) -> bool:
    """Return whether a plug-in is the other; the name alone agrees with any such."""
    ours = registry.full_spec(folder, ours)
    if ours.partition(":")[0] != theirs.partition(":")[0]:
        return folder == "search" and ours == "auto"
    # A graph does not say which file its candidates came from.
    if ":" not in ours or theirs == "precomputed":
        return True
    return registry.spec(registry.create(folder, ours)) == theirs


def remark_on_error(found: float, graph: Graph, node: int) -> list[str]:
    """Say so where a graph holds another error J than its parameters give."""
    if graph.errors is None:
        return []
    stored = float(graph.errors[node])
    digits = int(graph.provenance.get("digits", 0))
    room = max(_SAME, 10.0 ** (1 - digits) if digits else 0.0)
    if math.isclose(found, stored, rel_tol=room, abs_tol=_SAME**2):
        return []
    return [f"the graph holds J = {stored:.6g} for this node: verify says more"]


def check_method(method: str, *, has_error: bool) -> None:
    """Refuse a method whose candidates are not kept or dropped for a reason."""
    if not has_error:
        raise ParameterError(
            f"method {method!r} has no error J to explain: use nnk, omp, mp or l1"
        )


def one_row(candidates: Candidates, place: int) -> Candidates:
    """Return the candidates of a single row."""
    index, distance = candidates.index[[place]], candidates.distance[[place]]
    return replace(candidates, index=index, distance=distance)
