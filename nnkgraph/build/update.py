"""A graph whose rows change: what a rebuild would give, at the cost of what changed.

Settings are those of the graph, with sigma and the scaling as numbers. A node's
neighborhood follows from its own candidates. So only rows whose candidates change are
searched and solved again, and then the directions are joined as in any build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph import __version__
from nnkgraph.build import graph as graphs
from nnkgraph.build import solve
from nnkgraph.build.run import Run, estimated_seconds, open_run
from nnkgraph.build.settings import (
    Running,
    RunningOptions,
    Settings,
    features_of,
)
from nnkgraph.data import Candidates, Features, Graph, Neighborhoods, Updatable
from nnkgraph.data.checks import mismatch
from nnkgraph.data.rows import below, taken
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry
from nnkgraph.runtime.arrays import new_array, row_slices, within_memory
from nnkgraph.search import index_dtype
from nnkgraph.search.auto import Costs, judged
from nnkgraph.search.exact import Exact
from nnkgraph.search.partition import estimated_again

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nnkgraph.data import IndexArray
    from nnkgraph.kernels import Kernel

DRIFT = 0.05
"""By how much a bandwidth may differ from that of all rows without a warning."""

_DOUBLED = 2
"""An approximate search begins anew when there are so many times the rows."""


@within_memory
def update(
    graph: Graph,
    features: Features | ArrayLike,
    /,
    *,
    add: Features | ArrayLike | None = None,
    remove: Sequence[str] | Sequence[int] | None = None,
    **options: Unpack[RunningOptions],
) -> Graph:
    """Add rows to a graph, remove others: what ``build_graph(..., like=graph)`` gives.

    The rows of the new graph are the old ones that stay, in their order, and then the
    new ones. A graph that was built with ``updatable=True`` is updated at the cost of
    what changed; any other is built again.

    Parameters
    ----------
    graph : Graph
        As it was built.
    features : (n, d) array, sparse matrix, DataFrame or Features
        What it was built from.
    add : the same, optional
        New rows. They have ids where the nodes of the graph have any.
    remove : sequence, optional
        Ids of rows, or their numbers.

    Raises
    ------
    InputError
        Where the features are not those of the graph, rows do not fit to them, or the
        graph is one that looks at all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x[:95], k=10, updatable=True)
    >>> nnkgraph.update(graph, x[:95], add=x[95:], remove=[0, 1])
    <Graph: 98 nodes, 231 edges>
    """
    for name in options:
        if name not in RunningOptions.__annotations__ or name == "resume":
            raise TypeError(f"there is no keyword {name!r}")
    old = features_of(features)
    new = None if add is None else features_of(add, name="new rows")
    kept = staying(graph.n_nodes, graph.ids, remove)
    check_origin(graph)
    check_features(graph, old)
    return updated(graph, Change.of(graph, old, kept, new), Running(**options))


@dataclass(frozen=True)
class Change:
    """Which rows a graph is to have."""

    together: Features
    """Those that stay, in their order, then the new ones."""

    kept: IndexArray
    """The numbers of those that stay."""

    added: int

    @classmethod
    def of(
        cls, graph: Graph, features: Features, kept: IndexArray, add: Features | None
    ) -> Change:
        """Put rows of features that stay and new ones together."""
        named = features.ids is not None or graph.ids is None
        known = features if named else replace(features, ids=graph.ids)
        stay = known if len(kept) == len(known.x) else taken(known, kept)
        parts = [one for one in (stay, add) if one is not None and len(one.x)]
        if not parts:
            raise InputError(f"{features.name}: no row would be left")
        return cls(below(parts, features.name), kept, 0 if add is None else len(add.x))


def staying(
    n: int,
    ids: Sequence[str] | None,
    remove: Sequence[Any] | None,
    name: str = "remove",
) -> IndexArray:
    """Return the numbers of the rows that stay of n, where others are removed.

    Raises
    ------
    InputError
        For ids or numbers that are not there, or there twice.
    """
    stays, remove = np.ones(n, np.bool_), [] if remove is None else list(remove)
    place = {one: i for i, one in enumerate(ids or ())} if remove else {}
    for one in remove:
        number = place.get(one, -1) if isinstance(one, str) else int(one)
        if not 0 <= number < len(stays):
            hint = ", which has no ids: give row numbers"
            hint = hint if isinstance(one, str) and ids is None else ""
            raise InputError(f"{name}: the graph has no row {one!r}{hint}")
        if not stays[number]:
            raise InputError(f"{name}: the row {one!r} is there twice")
        stays[number] = False
    return np.flatnonzero(stays)


def check_origin(graph: Graph, name: str = "the graph") -> None:
    """Refuse a graph that another version wrote: its numbers may not be ours."""
    known = graph.provenance.get("nnkgraph")
    if known != __version__ or graph.provenance.get("schema") != 1:
        by = f"nnkgraph {known}" if known else "another program"
        raise InputError(
            f"{name}: was built by {by}, and this is nnkgraph {__version__}: build a "
            "graph `like` it first"
        )


def check_features(graph: Graph, features: Features, name: str = "the graph") -> None:
    """Refuse features that a graph was not built from."""
    wrong = mismatch(graph, features)
    if wrong:
        raise InputError(f"{features.name}: not what {name} was built from: {wrong}")


def updated(
    graph: Graph, change: Change, running: Running, name: str = "the graph"
) -> Graph:
    """Return the graph of the changed rows."""
    settings, kept = Settings.like(graph, change.together, name), graph.updatable
    try:
        graphs.check_updatable(settings, lists=False)
    except ParameterError as error:
        raise InputError(f"{name}: {error}") from error
    x, touched = change.together.x, change.added + graph.n_nodes - len(change.kept)
    seconds = estimated_seconds(x, settings.k)
    if kept is not None:
        seconds *= min(1.0, 0.01 + 20.0 * touched / len(x))
    with open_run(change.together, settings, running, seconds=seconds) as run:
        work = _Work(run, kept, change) if kept is not None else None
        known: dict[str, Any] = {}
        why = work.why if work else "the graph does not keep what an update needs"
        if work and not why:
            solution, facts = work.solved()
        else:
            solution, known = graphs.grown(run, run.solve())
            every = len(run.rows.x)
            facts = {"searched_again": every, "solved_again": every}
    drift, warnings = _drift(run, *solution[:2])
    facts |= {"added": change.added, "removed": graph.n_nodes - len(change.kept)}
    facts |= {"built_anew": why, "drift": drift}
    since = 0 if why or not kept or kept.searched is None else int(kept.searched)
    made = graphs.whole(
        run,
        solution,
        warnings=warnings,
        updatable=kept is not None,
        searched=since,
        **{**known, "facts": {**known.get("facts", {}), "update": facts}},
    )
    graphs.warn_of_quality(made.report)
    return made


def _drift(
    run: Run, found: Candidates, kernel: Kernel
) -> tuple[dict[str, Any] | None, list[str]]:
    """Compare the bandwidth with what its rule would make of all rows."""
    known: Any = kernel
    rule, used = run.settings.sigma_rule, known.bandwidth(found)
    if not rule or not found.index.shape[1] or found.backend == "radius":
        return None, []
    k = run.settings.k
    best = replace(found, index=found.index[:, :k], distance=found.distance[:, :k])
    fresh = replace(known, sigma=rule).fit(best).sigma
    share = abs(fresh / used - 1.0)
    drift = {"sigma": used, "rule": rule, "of_all_rows": fresh, "share": share}
    if share <= DRIFT:
        return drift, []
    text = (
        f"sigma {used:.4g} is that of the rows there were first, and {rule!r} would "
        f"make {fresh:.4g} of all rows, {share:.0%} away: build the graph anew with "
        f"`sigma={rule!r}`"
    )
    return drift, [text]


class _Work:
    """Lists and solutions of a graph, carried over to its changed rows.

    Lists hold distinct rows. Old ones keep their order among each other, unless the
    first of several identical rows goes: the next one may come after others, which
    counts in ties. Lists with such a row are searched again as if it was gone.
    """

    def __init__(self, run: Run, kept: Updatable, change: Change) -> None:
        self.run, self.kept = run, kept
        self.n, self.k = len(run.rows.x), kept.index.shape[1]
        total, stays = len(change.together.x), len(change.kept)
        origin = np.arange(total) if run.rows.origin is None else run.rows.origin
        self.first = int(np.searchsorted(origin, stays))
        """The first distinct row that is a new one."""
        self.places, self.numbers = self._places(change)
        self.carried = np.flatnonzero(self.places >= 0)
        self.index, self.lost = self._lists()
        """Candidates by their numbers now, and the rows that lack any."""
        self.why = self._why()
        """Why all rows have to be searched and solved; nothing where they have not."""

    def _places(self, change: Change) -> tuple[IndexArray, IndexArray]:
        """Return where the old distinct rows are now, and their numbers in lists.

        Both are -1 for rows that are gone, the latter also for those that come later.
        """
        kept, rows, n = self.kept, self.run.rows, len(self.kept.index)
        total = n if kept.first is None else len(kept.first)
        before, origin = np.arange(total), np.arange(total)
        if kept.first is not None and n < total:
            origin = np.flatnonzero(kept.first == before)
            before = np.searchsorted(origin, kept.first)
        now = np.arange(len(change.together.x))
        if rows.origin is not None and rows.first is not None:
            now = np.searchsorted(rows.origin, rows.first)
        places = np.full(n, -1)
        places[before[change.kept]] = now[: len(change.kept)]
        stayed = np.zeros(total, np.bool_)
        stayed[change.kept] = True
        return places, np.where(stayed[origin], places, -1)

    def _lists(self) -> tuple[Any, IndexArray]:
        index, lost = new_array((self.n, self.k), index_dtype(self.n)), np.ones(self.n)
        for some in row_slices(len(self.carried), 32 * max(1, self.k)):
            rows = self.carried[some]
            known = self.numbers[self.kept.index[rows]]
            index[self.places[rows]] = known
            lost[self.places[rows]] = (known < 0).any(axis=1)
        return index, np.flatnonzero(lost)

    def _why(self) -> str:
        settings, n, lost = self.run.settings, self.n, len(self.lost)
        width, since = min(settings.width, n - 1), self.kept.searched
        if self.k != width or not graphs.gathers_nothing(settings.method):
            return f"rows have {width} candidates, and had {self.k}"
        costs = Costs.of(self.run.rows.x, max(1, width), settings.kernel.nearness)
        # Each of the rows is compared with all, and all with each that came.
        each = n * costs.pair * (lost + n - self.first)
        name = registry.spec(settings.search).partition(":")[0]
        if each > getattr(costs, name, costs.partition):
            return f"{lost} of {n} rows are new or lost candidates"
        if since is not None and n >= _DOUBLED * int(since):
            return f"there were {int(since)} rows when leaders were drawn"
        return ""

    def solved(self) -> tuple[Any, dict[str, Any]]:
        """Search and solve what changed; return the solution of all rows."""
        run, kept, settings, index = self.run, self.kept, self.run.settings, self.index
        distance, changed = self._carried(kept.distance), self.lost
        with run.progress("search", self.n) as on_rows:
            if self.k:
                wanted = run.wanted(self.k, on_rows)
                lists = index, distance, self.lost, self.first
                changed = Exact().renew(wanted, *lists)
        candidates = self._judged(Candidates(index, distance))
        kernel = settings.kernel.fit(candidates)
        with run.progress("solve", len(changed), "rows") as on_rows:
            fresh = solve.solve(
                run.pool,
                run.rows.x,
                replace(candidates, index=index[changed], distance=distance[changed]),
                kernel=kernel,
                method=settings.method,
                first=run.rows.kept_copies,
                rows=changed,
                k=settings.k,
                on_rows=on_rows,
            )
        names = ("weights", "errors", "certificate")
        every = {name: self._carried(getattr(kept, name)) for name in names}
        for name, values in every.items():
            if values is not None:
                values[changed] = getattr(fresh, name)
        facts = {"searched_again": len(self.lost), "solved_again": len(changed)}
        return (candidates, kernel, Neighborhoods(**every)), facts

    def _judged(self, found: Candidates) -> Candidates:
        """Say what search found the candidates, and how well."""
        search = self.run.settings.search
        found = replace(found, backend=registry.spec(search), exact=search.exact)
        if search.exact or not self.k:
            return found
        wanted = self.run.wanted(self.k)
        found = replace(found, **estimated_again(wanted, found.index))
        return judged(found, wanted, search)

    def _carried(self, values: Any) -> Any:
        """Return values of the old rows where these are now."""
        if values is None:
            return None
        made = new_array((self.n, *values.shape[1:]), np.float64)
        for some in row_slices(len(self.carried), 24 * max(1, self.k)):
            rows = self.carried[some]
            made[self.places[rows]] = values[rows]
        return made
