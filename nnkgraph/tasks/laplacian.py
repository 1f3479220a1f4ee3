"""What tasks on the Laplacian of a graph share: scaling, pieces, factorization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components, dijkstra

from nnkgraph.errors import InputError, ParameterError, ResourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray, Graph, IndexArray

SMALL = 2000  # up to so many nodes a factorization is cheap whatever the edges
_FILL = 25_000_000  # nonzeros of a factor that fit into about a gigabyte


def check_undirected(graph: Graph, name: str) -> None:
    """Refuse a directed graph, and weights that are no similarities."""
    if graph.directed:
        raise InputError(
            f"{name}: the graph is directed; build it with a rule "
            "(`symmetrize`) other than none"
        )
    if graph.adjacency.nnz and graph.adjacency.data.min() < 0:
        raise InputError(
            f"{name}: some edges have negative weights, where similarities are needed; "
            "drop or shift them"
        )


def check_choice(value: str, among: tuple[str, ...]) -> None:
    """Refuse a name that is not among those there are."""
    if value not in among:
        raise ParameterError(f"{value!r} is not one of {', '.join(among)}")


def check_solver(solver: str, among: tuple[str, ...]) -> None:
    """Refuse a solver that is not among those there are, or needs what is not here."""
    check_choice(solver, among)
    if solver == "amg":
        try:
            import pyamg  # noqa: F401
        except ImportError as error:
            raise ResourceError(
                "the solver amg needs pyamg: pip install 'nnkgraph[amg]'"
            ) from error


def one_thread() -> Any:
    """Keep sums in one order while this lasts: equal calls give equal bytes."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")


def scaled(adjacency: csr_array) -> tuple[csr_array, FloatArray]:
    """Return D^-1/2 W D^-1/2 and the square roots of the degrees.

    Self loops count for nothing; the row of a node without edges stays empty.
    """
    loops = adjacency.diagonal()
    if loops.any():
        adjacency = csr_array(adjacency - diags_array(loops))
        adjacency.eliminate_zeros()
    root = np.sqrt(np.asarray(adjacency.sum(axis=1), np.float64))
    inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
    rows = np.repeat(np.arange(len(root)), np.diff(adjacency.indptr))
    values = (adjacency.data * inverse[rows]) * inverse[adjacency.indices]
    shape = adjacency.shape
    return csr_array((values, adjacency.indices, adjacency.indptr), shape), root


def block(matrix: csr_array, rows: IndexArray, columns: IndexArray) -> csr_array:
    """Return some rows and columns of a matrix, both in growing order."""
    whole = len(rows) == matrix.shape[0] and len(columns) == matrix.shape[1]
    return matrix if whole else csr_array(matrix[rows][:, columns])


def pieces(matrix: csr_array) -> list[IndexArray]:
    """Return the nodes of every connected component, in the order of the nodes."""
    count, label = connected_components(matrix, directed=False)
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])


def can_factor(matrix: csr_array) -> bool:
    """Return whether the factor of a connected piece will fit into memory.

    Layers of a breadth-first search separate the graph. Those of sheets and threads
    are narrow, and so is the factor. In many dimensions one layer holds a third of
    all nodes, and its square is the size of the factor.
    """
    return matrix.shape[0] <= SMALL or fill(matrix) <= _FILL


def fill(matrix: csr_array) -> float:
    """Estimate the nonzeros of the factor of a connected piece, within about two."""
    start, width = 0, 0
    for _ in range(2):  # the second search starts at an end
        steps = dijkstra(matrix, indices=[start], unweighted=True)[0].astype(np.int64)
        start, width = int(steps.argmax()), int(np.bincount(steps).max())
    # Every edge beyond those of a tree can widen a cut by one node at most.
    width = min(width, matrix.nnz // 2 - matrix.shape[0] + 2)
    return 7.0 * width**2 + 3.0 * matrix.nnz


def factor(matrix: csr_array, shift: float = 0.0) -> Any:
    """Factor (1 + shift) I - matrix, which is positive definite."""
    from scipy.sparse.linalg import splu

    diagonal = diags_array(np.full(matrix.shape[0], 1.0 + shift))
    return splu(
        csc_array(diagonal - matrix),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )


def multigrid(
    matrix: csr_array, near: FloatArray, shift: float = 0.0
) -> Callable[[FloatArray], FloatArray]:
    """Return a product with nearly the inverse of (1 + shift) I - matrix.

    Levels of ever fewer nodes carry over what takes thousands of steps from node to
    node. `near` is close to what the matrix leaves as it is.
    """
    from pyamg import smoothed_aggregation_solver

    diagonal = diags_array(np.full(matrix.shape[0], 1.0 + shift))
    # It draws from the generator that all share: equal calls shall give equal bytes.
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002, TID251
    try:
        levels = smoothed_aggregation_solver(
            csr_array(diagonal - matrix), B=near[:, np.newaxis], symmetry="symmetric"
        )
    finally:
        np.random.set_state(before)  # noqa: NPY002
    cycle = levels.aspreconditioner()

    def apply(x: FloatArray) -> FloatArray:
        columns = x.reshape(len(x), -1)
        each = [cycle.matvec(columns[:, at]) for at in range(columns.shape[1])]
        return np.stack(each, axis=1).reshape(x.shape)

    return apply
