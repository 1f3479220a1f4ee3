"""Communities of a graph by Leiden: how good they are, and who stands for them."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks.laplacian import check_undirected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, Graph, IndexArray
    from nnkgraph.data.labels import Labels

_ITERATIONS = 4
"""Cycles of Leiden, each from the result of the one before; more change little."""

_SLOW, _EDGES_A_SECOND = 1_000_000, 60_000
"""From so many edges on it is said how long it may take, by so many in a second."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Clusters at one resolution, the largest first."""

    resolution: float
    clusters: NDArray[np.int64]  # (n,) numbers from 0, -1 where a node has no edge
    sizes: IndexArray  # (c,) nodes; of equally large clusters the first node decides
    medoids: IndexArray  # (c,) the node with the most weight inside, first of equals
    modularity: float  # at resolution 1, so that several can be compared
    agreement: Agreement | None = None  # with labels, where there are any

    @property
    def facts(self) -> dict[str, Any]:
        """Counts and measures, as plain JSON values."""
        facts = {
            "resolution": self.resolution,
            "clusters": len(self.sizes),
            "modularity": self.modularity,
            "largest": int(self.sizes[0]),
            "smallest": int(self.sizes[-1]),
        }
        if self.agreement is not None:
            facts |= {"ami": self.agreement.ami, "ari": self.agreement.ari}
        return facts


@dataclass(frozen=True, eq=False)
class Clustered:
    """Clusters of the nodes of a graph."""

    partitions: list[Partition]  # one for every resolution, in the order asked for
    facts: dict[str, Any] = field(default_factory=dict)  # plain JSON values

    @property
    def clusters(self) -> NDArray[np.int64]:
        """(n,) clusters at the first resolution, -1 where a node has no edge."""
        return self.partitions[0].clusters


def cluster(
    graph: Graph,
    labels: Labels | None = None,
    /,
    *,
    resolution: float | Sequence[float] = 1.0,
    seed: int = 0,
    name: str = "graph",
    progress: Stages | None = None,
) -> Clustered:
    """Find communities by Leiden: nodes with more weight among them than by chance.

    The graph is undirected. Nodes without an edge belong to no cluster. Equal graphs
    have equal clusters. Needs graspologic-native: ``pip install 'nnkgraph[cluster]'``.

    Parameters
    ----------
    labels : Labels, optional
        Classes to compare with; brought into the order of the nodes by their ids.
    resolution : float or sequence of float
        A larger one gives more and smaller clusters.
    seed : int
        Clusters of another seed differ a little.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> draw = np.random.default_rng(0)
    >>> x = np.vstack([draw.normal(at, 0.1, size=(40, 2)) for at in range(3)])
    >>> found = nnkgraph.cluster(nnkgraph.build_graph(x, k=10), resolution=0.05)
    >>> found.partitions[0].sizes
    array([40, 40, 40])
    """
    values = [resolution] if isinstance(resolution, int | float) else list(resolution)
    if not values or not all(0 < one < math.inf for one in values):
        raise ParameterError(f"`resolution` is above 0, not {resolution}")
    if len(set(values)) < len(values):
        raise ParameterError("a `resolution` is named twice")
    if not 0 <= seed < 2**64:
        raise ParameterError(f"`seed` is a whole number from 0 on, not {seed}")
    check_undirected(graph, name)
    if not graph.n_edges:
        raise InputError(
            f"{name}: the graph has no edges, and so no clusters; build it with a "
            "larger `k` or `min_degree`"
        )
    if labels is not None:
        labels = _checked(labels.for_rows(graph.n_nodes, graph.ids, name))
    leiden, progress = _native(), progress or Stages()
    about = graph.n_edges / _EDGES_A_SECOND * len(values)
    if graph.n_edges >= _SLOW:
        progress.say(f"leiden: {graph.n_edges} edges, about {math.ceil(about)} s")
    partitions = []
    with progress("leiden", len(values) * (len(values) > 1), "resolutions") as on_done:
        for one in values:
            found = _leiden(leiden, graph.adjacency, float(one), seed)
            partitions.append(_described(graph, found, float(one), labels))
            on_done(1)
    isolated = int((graph.adjacency.indptr[1:] == graph.adjacency.indptr[:-1]).sum())
    facts = {
        "schema": 1,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "isolated": isolated,
        "seed": seed,
    }
    if labels is not None:
        facts["labelled"] = int(labels.known.sum())
        facts["classes"] = len(np.unique(labels.codes[labels.known]))
    return Clustered(partitions, facts)


def _checked(labels: Labels) -> Labels:
    if not labels.known.any():
        raise InputError(
            f"{labels.name}: all {len(labels.codes)} labels are missing: there is "
            "nothing to compare with"
        )
    return labels


def _native() -> Callable[..., tuple[float, dict[int, int]]]:
    try:
        from graspologic_native import leiden_csr
    except ImportError as error:
        raise ResourceError(
            "clusters need graspologic-native 1.3 or newer: "
            "pip install 'nnkgraph[cluster]'"
        ) from error
    found: Callable[..., tuple[float, dict[int, int]]] = leiden_csr
    return found


def _leiden(
    leiden: Callable[..., tuple[float, dict[int, int]]],
    w: csr_array,
    resolution: float,
    seed: int,
) -> IndexArray:
    """Return any number for the community of every node."""
    n = w.shape[0]
    how = {"resolution": resolution, "seed": seed, "iterations": _ITERATIONS}
    arrays = w.indptr.astype(np.int64), w.indices.astype(np.int32), w.data
    community = _interruptibly(lambda: leiden(*arrays, n, **how)[1])
    return np.fromiter(map(community.__getitem__, range(n)), np.int64, n)


def _interruptibly(work: Callable[[], Any]) -> Any:
    """Return what a long call into native code returns; signals are heard meanwhile."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


def _described(
    graph: Graph, community: IndexArray, resolution: float, labels: Labels | None
) -> Partition:
    """Return the clusters, numbered by size, with what is said of them."""
    w = graph.adjacency
    degrees = np.diff(w.indptr)
    joined = np.flatnonzero(degrees)
    _, first, place, sizes = np.unique(
        community[joined], return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -sizes))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    clusters = np.full(graph.n_nodes, -1)
    clusters[joined] = number[place]
    row = np.repeat(np.arange(graph.n_nodes), degrees)
    kept = np.where(clusters[row] == clusters[w.indices], w.data, 0.0)
    inside = np.bincount(row, kept, graph.n_nodes)
    best = joined[np.lexsort((joined, -inside[joined], clusters[joined]))]
    starts = np.cumsum(sizes[order]) - sizes[order]
    return Partition(
        resolution,
        clusters,
        sizes[order],
        best[starts],
        _modularity(w, clusters, row, inside),
        None if labels is None else Agreement.of(clusters, labels),
    )


def _modularity(
    w: csr_array, clusters: IndexArray, row: IndexArray, inside: Any
) -> float:
    """Return the share of weight inside clusters, less what chance would put there."""
    degree = np.bincount(row, w.data, len(clusters))
    mine = clusters + 1  # nodes without an edge weigh nothing
    volume = np.bincount(mine, degree)
    total = math.fsum(volume)
    chance = math.fsum((volume / total) ** 2)
    return math.fsum(np.bincount(mine, inside)) / total - chance


@dataclass(frozen=True, eq=False)
class Agreement:
    """How clusters and classes agree, on nodes with a label.

    A node in no cluster is one of its own.
    """

    ami: float  # adjusted mutual information: 1 the same, 0 by chance
    ari: float  # adjusted Rand index: 1 the same, 0 by chance
    commonest: IndexArray  # (c,) the class most nodes of a cluster have, -1 where none
    purity: FloatArray  # (c,) its share of the labelled nodes, NaN where there are none

    @classmethod
    def of(cls, clusters: IndexArray, labels: Labels) -> Agreement:
        """Compare clusters with labels in the same order."""
        known = labels.known
        count = int(clusters.max()) + 1
        alone = known & (clusters < 0)
        mine = clusters.copy()
        mine[alone] = count + np.arange(int(alone.sum()))
        a, b = labels.codes[known], mine[known]
        cells, n_ab = np.unique(np.stack([b, a]), axis=1, return_counts=True)
        commonest, purity = np.full(count, -1), np.full(count, np.nan)
        total = np.bincount(b, minlength=count)
        # The last of a cluster's cells, in this order, is its largest one.
        order = np.lexsort((-cells[1], n_ab, cells[0]))
        which, codes = cells[:, order]
        last = np.append(which[1:] != which[:-1], True) & (which < count)
        commonest[which[last]] = codes[last]
        purity[which[last]] = n_ab[order][last] / total[which[last]]
        return cls(mutual_information(a, b), rand_index(a, b), commonest, purity)


def _counts(a: IndexArray, b: IndexArray) -> tuple[IndexArray, ...]:
    """Return sizes of the parts of both, and those of cells with their parts."""
    _, a, n_a = np.unique(a, return_inverse=True, return_counts=True)
    _, b, n_b = np.unique(b, return_inverse=True, return_counts=True)
    cells, n_ab = np.unique(a * len(n_b) + b, return_counts=True)
    return n_a, n_b, n_ab, cells // len(n_b), cells % len(n_b)


def rand_index(a: IndexArray, b: IndexArray) -> float:
    """Return the adjusted Rand index of two partitions (Hubert and Arabie)."""
    n_a, n_b, n_ab, _, _ = _counts(a, b)
    n = len(a)
    # Whole numbers of any size: pairs of many nodes are more than 64 bits hold.
    together, in_a, in_b = (
        sum(one * (one - 1) // 2 for one in sizes.tolist())
        for sizes in (n_ab, n_a, n_b)
    )
    pairs = n * (n - 1) // 2
    excess = together * pairs - in_a * in_b
    most = (in_a + in_b) * pairs - 2 * in_a * in_b
    return 2 * excess / most if most else 1.0


def mutual_information(a: IndexArray, b: IndexArray) -> float:
    """Return the adjusted mutual information of two partitions (Vinh, Epps, Bailey).

    It is adjusted by the mean over all partitions of the same sizes, and divided by the
    mean of the entropies.
    """
    n_a, n_b, n_ab, i, j = _counts(a, b)
    n = len(a)
    if max(len(n_a), len(n_b)) == 1 or min(len(n_a), len(n_b)) == n:
        return 1.0
    share = n_ab / n
    found = float((share * np.log(n_ab * n / (n_a[i] * n_b[j]))).sum())
    entropy = [-float((one / n * np.log(one / n)).sum()) for one in (n_a, n_b)]
    expected = _expected(n_a, n_b, n)
    most = sum(entropy) / 2 - expected
    tiny = float(np.finfo(np.float64).eps)
    return (found - expected) / math.copysign(max(abs(most), tiny), most)


def _expected(n_a: IndexArray, n_b: IndexArray, n: int) -> float:
    """Return the mean mutual information of all partitions of these sizes."""
    from scipy.special import gammaln

    # Logarithms of factorials; parts of the same size have the same mean.
    log = gammaln(np.arange(n + 1) + 1.0)
    found = 0.0
    for a, times_a in zip(*np.unique(n_a, return_counts=True), strict=True):
        for b, times_b in zip(*np.unique(n_b, return_counts=True), strict=True):
            cell = np.arange(max(1, a + b - n), min(a, b) + 1)
            chance = log[a] + log[n - a] + log[b] + log[n - b] - log[n] - log[cell]
            chance -= log[a - cell] + log[b - cell] + log[n - a - b + cell]
            terms = cell / n * np.log(cell / a * (n / b)) * np.exp(chance)
            found += float(terms.sum()) * int(times_a) * int(times_b)
    return found
