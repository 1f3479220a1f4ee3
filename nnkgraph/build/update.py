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
from nnkgraph.build import solve
from nnkgraph.build.graph import (
    check_updatable,
    gathers_nothing,
    warn_of_quality,
    whole,
)
from nnkgraph.build.run import Run, open_run
from nnkgraph.build.settings import Running, RunningOptions, Settings, features_of
from nnkgraph.data import (
    Candidates,
    Features,
    Graph,
    Neighborhoods,
    SparseRows,
    Updatable,
)
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime.arrays import new_array, row_slices, taken_rows, within_memory
from nnkgraph.runtime import registry
from nnkgraph.search import index_dtype
from nnkgraph.search.auto import judged
from nnkgraph.search.partition import estimated_again
from nnkgraph.search.renew import renew

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from nnkgraph.data import IndexArray
    from nnkgraph.kernels import Kernel

DRIFT = 0.05
"""By how much a bandwidth may differ from that of all rows without a warning."""

_MOST_LOST = 0.5
"""Beyond this share of rows to be searched again, it costs less to search all."""


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
        Ids of rows, or their numbers where they have no ids.

    Raises
    ------
    InputError
        Where the features are not those of the graph, or rows do not fit to them.
    ParameterError
        Where a method, kernel or search of the graph looks at all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x[:95], k=10, updatable=True)
    >>> nnkgraph.update(graph, x[:95], add=x[95:], remove=[0, 1])
    <Graph: 98 nodes, 211 edges>
    """
    old = features_of(features)
    new = None if add is None else features_of(add, name="new rows")
    change = Change.of(graph, old, new, remove)
    return updated(graph, change, Running(**options))


@dataclass(frozen=True)
class Change:
    """Which rows a graph is to have."""

    together: Features
    """Those that stay, in their order, then the new ones."""

    kept: IndexArray
    """The numbers of those that stay."""

    added: int
    removed: int
    name: str = "the graph"

    @classmethod
    def of(
        cls,
        graph: Graph,
        features: Features,
        add: Features | None,
        remove: Sequence[Any] | None,
        name: str = "the graph",
    ) -> Change:
        """Check that everything belongs together, and put the rows together."""
        check_origin(graph, name)
        check_features(graph, features, name)
        kept = _kept(graph, remove, "rows to remove")
        stay = _taken(features, kept, graph.ids)
        return cls.made(graph, stay, kept, add, name)

    @classmethod
    def made(
        cls,
        graph: Graph,
        stay: Features,
        kept: IndexArray,
        add: Features | None,
        name: str,
    ) -> Change:
        """Return the change by which some rows stay and others are added."""
        together = stay if add is None else joined(stay, add, name)
        if not len(together.x):
            raise InputError(f"{name}: no row would be left")
        added = 0 if add is None else len(add.x)
        return cls(together, kept, added, graph.n_nodes - len(kept), name)


def check_origin(graph: Graph, name: str) -> None:
    """Refuse a graph that another version wrote: its numbers may not be ours."""
    known = graph.provenance.get("nnkgraph")
    if known != __version__ or graph.provenance.get("schema") != 1:
        by = f"nnkgraph {known}" if known else "another program"
        raise InputError(
            f"{name}: was built by {by}, and this is {__version__}: build it again, "
            "with the `like` of it, to update it then"
        )


def check_features(graph: Graph, features: Features, name: str) -> None:
    """Refuse features that a graph was not built from."""
    shape, known = list(features.x.shape), graph.provenance
    what = ""
    if shape != known.get("shape") or shape[0] != graph.n_nodes:
        what = f"{shape[0]} x {shape[1]}, and the graph is of {known.get('shape')}"
    elif features.sha256 != known.get("sha256"):
        what = "other values, or rows in another order: sha256 differs"
    elif features.ids and graph.ids and features.ids != graph.ids:
        what = "other row names, or another order"
    if what:
        raise InputError(f"{features.name}: not what {name} was built from: {what}")


def _kept(graph: Graph, remove: Sequence[Any] | None, name: str) -> IndexArray:
    """Return the numbers of the rows that stay."""
    stays = np.ones(graph.n_nodes, np.bool_)
    place = {one: i for i, one in enumerate(graph.ids or ())}
    for one in () if remove is None else remove:
        what = f"{one!r}" if isinstance(one, str) else f"{one}"
        if isinstance(one, str):
            if graph.ids is None:
                raise InputError(
                    f"{name}: {what}, but the graph has no names of rows: give numbers"
                )
            number = place.get(one, -1)
        else:
            number = int(one)
        if not 0 <= number < graph.n_nodes:
            raise InputError(f"{name}: there is no row {what} in the graph")
        if not stays[number]:
            raise InputError(f"{name}: row {what} is there twice")
        stays[number] = False
    return np.flatnonzero(stays)


def _taken(features: Features, kept: IndexArray, ids: Any) -> Features:
    """Return some rows of the features, under the names that the graph has for them."""
    x, n = features.x, len(features.x)
    if len(kept) < n:
        x = x[kept] if isinstance(x, SparseRows) else taken_rows(x, kept)
        ids = None if ids is None else tuple(ids[i] for i in kept)
    return replace(features, x=x, ids=ids)


def joined(stay: Features, add: Features, graph: str) -> Features:
    """Return rows with others below them."""
    if stay.x.shape[1] != add.x.shape[1]:
        raise InputError(
            f"{add.name}: {add.x.shape[1]} columns, but {graph} is of {stay.x.shape[1]}"
        )
    if stay.columns and add.columns and stay.columns != add.columns:
        raise InputError(f"{add.name}: other columns, or another order of them")
    ids = None
    if (stay.ids is None) != (add.ids is None):
        who, lacks = (graph, add.name) if stay.ids else (add.name, graph)
        raise InputError(f"{add.name}: {who} has names of rows, and {lacks} has none")
    if stay.ids is not None and add.ids is not None:
        again = set(stay.ids) & set(add.ids)
        if again:
            first = next(one for one in add.ids if one in again)
            raise InputError(
                f"{add.name}: {len(again)} of its ids are in {graph} already, the "
                f"first is {first!r}; remove those rows, or rename these"
            )
        ids = stay.ids + add.ids
    warnings = tuple(dict.fromkeys((*stay.warnings, *add.warnings)))
    return replace(stay, x=_below(stay.x, add.x), ids=ids, warnings=warnings)


def _below(x: Any, more: Any) -> Any:
    """Return rows with others below them, sparse where the first are."""
    sparse = isinstance(x, SparseRows)
    if sparse != isinstance(more, SparseRows):
        if sparse:
            from scipy.sparse import csr_array

            more = SparseRows.of(csr_array(more), "new rows")
        else:
            more = more.dense()
    if sparse:
        return x.stacked(more)
    (n, d), m = x.shape, len(more)
    both = new_array((n + m, d), np.result_type(x.dtype, more.dtype))
    for rows in row_slices(n, 8 * d):
        both[rows] = x[rows]
    both[n:] = more
    return both


def updated(graph: Graph, change: Change, running: Running) -> Graph:
    """Return the graph of the changed rows."""
    together = change.together
    try:
        settings = Settings.like(graph, together, change.name)
        check_updatable(settings, lists=False)
    except ParameterError as error:
        raise InputError(f"{change.name}: {error}") from error
    kept = graph.updatable
    able = kept is not None and gathers_nothing(settings.method) and not settings.grow
    with open_run(together, settings, running) as run:
        work = _Work(run, kept, change) if kept is not None and able else None
        found = work.solved() if work else None
        if found is None:
            why = work.why if work else "it does not keep what an update needs"
            solution = run.solve()
            counts, searched = (len(run.rows.x),) * 2, 0
        else:
            solution, counts, searched = found
            why = ""
        drift, warnings = _drift(run, solution[0], solution[1])
        facts = {
            "added": change.added,
            "removed": change.removed,
            "searched_again": counts[0],
            "solved_again": counts[1],
            "built_anew": why,
            "drift": drift,
        }
        made = whole(
            run,
            solution,
            warnings=warnings,
            facts={"update": facts},
            updatable=kept is not None,
            searched=searched,
        )
    warn_of_quality(made.report)
    return made


def _drift(
    run: Run, found: Candidates, kernel: Kernel
) -> tuple[dict[str, Any] | None, list[str]]:
    """Compare the bandwidth with what its rule would make of all rows."""
    known: Any = kernel
    rule, used = run.settings.sigma_rule, known.bandwidth(found)
    if not rule or not found.index.shape[1]:
        return None, []
    k = run.settings.k
    best = replace(found, index=found.index[:, :k], distance=found.distance[:, :k])
    fresh = replace(known, sigma=rule).fit(best).sigma
    share = abs(fresh / used - 1.0)
    drift = {"sigma": used, "rule": rule, "of_all_rows": fresh, "share": share}
    if share <= DRIFT:
        return drift, []
    return drift, [
        f"sigma {used:.4g} is that of the rows there were first, and {rule!r} would "
        f"make {fresh:.4g} of all rows, {share:.0%} away: build the graph anew with "
        f"`sigma={rule!r}`"
    ]


def _silent(_: int) -> None:
    """Count nothing."""


class _Work:
    """Lists and solutions of a graph, carried over to its changed rows."""

    def __init__(self, run: Run, kept: Updatable, change: Change) -> None:
        self.run, self.kept, self.change = run, kept, change
        self.why = ""
        """Why all rows have to be searched and solved."""
        origin = run.rows.origin
        total = len(run.features.x)
        every = np.arange(total) if origin is None else origin
        self.first = int(np.searchsorted(every, len(change.kept)))
        """The first of the distinct rows that is not an old one."""

    def _places(self) -> tuple[IndexArray, Any]:
        """Return where the old distinct rows are now, -1 for gone, and if they stayed.

        One whose first copy is gone comes later now: it stayed not.
        """
        kept, change, rows = self.kept, self.change, self.run.rows
        n, total = len(kept.index), len(change.kept) + change.removed
        before = np.arange(total)
        first = before if kept.first is None else kept.first
        now = np.arange(len(self.run.features.x))
        origin = before
        if n < total:
            origin = np.flatnonzero(first == before)
            before = np.searchsorted(origin, first)
        if rows.origin is not None and rows.first is not None:
            now = np.searchsorted(rows.origin, rows.first)
        places = np.full(n, -1)
        places[before[change.kept]] = now[: len(change.kept)]
        stayed = np.zeros(total, np.bool_)
        stayed[change.kept] = True
        return places, stayed[origin]

    def _check(self, lost: int) -> None:
        """Find out whether it is worth while to carry anything over."""
        run, kept, n = self.run, self.kept, len(self.run.rows.x)
        width = min(run.settings.width, n - 1)
        if kept.index.shape[1] != width:
            self.why = f"every row has {width} candidates now"
        elif lost > _MOST_LOST * n:
            self.why = f"{lost} of {n} rows lost candidates or are new"
        elif kept.searched is not None and n >= 2 * int(kept.searched):
            self.why = "rows have doubled since leaders were drawn"

    def solved(self) -> Any:
        """Return the solution, how many rows were searched and solved, and since when.

        None where all rows have to be.
        """
        run, kept = self.run, self.kept
        n, k = len(run.rows.x), kept.index.shape[1]
        places, stayed = self._places()
        carried = np.flatnonzero(places >= 0)
        now = np.where(stayed, places, -1)
        lost = np.ones(n, np.bool_)
        index = new_array((n, k), index_dtype(n))
        for some in row_slices(len(carried), 32 * max(1, k)):
            rows = carried[some]
            known = now[kept.index[rows]]
            index[places[rows]] = known
            lost[places[rows]] = (known < 0).any(axis=1)
        missing = np.flatnonzero(lost)
        self._check(len(missing))
        if self.why:
            return None
        distance, weights, errors, certificate = (
            self._carried(values, carried, places)
            for values in (kept.distance, kept.weights, kept.errors, kept.certificate)
        )
        changed = missing
        with run.progress("search", 2 * n) as on_rows:
            wanted = run.wanted(k, on_rows)
            if k:
                changed = renew(wanted, index, distance, missing, self.first)
            search = run.settings.search
            about: dict[str, Any] = {"exact": search.exact}
            if not search.exact:
                about |= estimated_again(replace(wanted, on_rows=_silent), index)
            name = registry.spec(search)
            candidates = Candidates(index, distance, backend=name, **about)
            candidates = judged(candidates, wanted, search)
        kernel = run.settings.kernel.fit(candidates)
        with run.progress("solve", len(changed)) as on_rows:
            part = replace(candidates, index=index[changed], distance=distance[changed])
            found = solve.solve(
                run.pool,
                run.rows.x,
                part,
                kernel=kernel,
                method=run.settings.method,
                first=run.rows.kept_copies,
                rows=changed,
                k=run.settings.k,
                on_rows=on_rows,
            )
        weights[changed] = found.weights
        for values, fresh in ((errors, found.errors), (certificate, found.certificate)):
            if values is not None:
                values[changed] = fresh
        whole_found = Neighborhoods(weights, errors, certificate)
        searched = 0 if kept.searched is None else int(kept.searched)
        return (candidates, kernel, whole_found), (len(missing), len(changed)), searched

    def _carried(self, values: Any, carried: IndexArray, places: IndexArray) -> Any:
        """Return values of the old rows where these are now."""
        if values is None:
            return None
        n = len(self.run.rows.x)
        made = new_array((n, *values.shape[1:]), np.float64)
        width = max(1, values[:1].size)
        for some in row_slices(len(carried), 24 * width):
            rows = carried[some]
            made[places[rows]] = values[rows]
        return made
