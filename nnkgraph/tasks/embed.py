"""Laplacian eigenmaps: coordinates in which joined nodes are close."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.runtime.progress import Stages
from nnkgraph.tasks import laplacian

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, Graph, IndexArray

SOLVERS = ("auto", "dense", "factor", "lanczos", "amg")

_DENSE = 500  # up to so many nodes all eigenvectors are as cheap as a few
_SHIFT = 1e-7  # keeps I - S from being singular; far below most second eigenvalues
_SPARE = 2  # eigenvectors more than asked for: equal eigenvalues come along
_TOLERANCE = 1e-13
_WORST = 1e-9
_RESTARTS = 1000
_DESCENTS = 200


def smallest(
    s: csr_array, root: FloatArray, p: int, solver: str
) -> tuple[FloatArray, FloatArray, float]:
    """Return the p smallest eigenvalues of I - S but the zero, and eigenvectors.

    The third value is the largest residual. The eigenvector of zero is the root of
    the degrees, and is known beforehand.
    """
    n = s.shape[0]
    constant = root / np.linalg.norm(root)
    wanted = min(p + _SPARE, n - 1)
    if solver == "auto":
        solver = _chosen(s, wanted)
    if solver == "dense" or wanted >= n - 2 or (solver == "amg" and n <= _DENSE):
        vectors = _dense(s, constant)[:, :wanted]
    elif solver == "amg":
        vectors = _descended(s, constant, wanted)
    else:
        apply = _inverse(s, constant) if solver == "factor" else _direct(s, constant)
        vectors = _iterated(apply, constant, wanted)
    values, vectors = _refined(s, constant, vectors)
    left = vectors - s @ vectors - vectors * values
    residual = float(np.linalg.norm(left[:, :p], axis=0).max())
    if not residual <= _WORST:
        raise _hopeless()
    return values[:p], vectors[:, :p], residual


def _chosen(s: csr_array, wanted: int) -> str:
    if s.shape[0] <= max(_DENSE, 2 * wanted):
        return "dense"
    return "factor" if laplacian.can_factor(s) else "lanczos"


def _dense(s: csr_array, constant: FloatArray) -> FloatArray:
    """Return all eigenvectors; the known one is sent to the end of the list."""
    matrix = np.eye(len(constant)) - s.toarray() + 3 * np.outer(constant, constant)
    return np.linalg.eigh(matrix)[1][:, :-1]


def _inverse(s: csr_array, constant: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the product with the inverse: small eigenvalues are far apart there."""
    lu = laplacian.factor(s, _SHIFT)

    def apply(x: FloatArray) -> Any:
        x = lu.solve(x - constant * (constant @ x))
        return x - constant * (constant @ x)

    return apply


def _direct(s: csr_array, constant: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the product with I + S, where the known eigenvector has eigenvalue 0."""

    def apply(x: FloatArray) -> Any:
        return x + s @ x - constant * (2 * (constant @ x))

    return apply


def _descended(s: csr_array, constant: FloatArray, wanted: int) -> FloatArray:
    """Find eigenvectors by conjugate gradients, all at once, on ever coarser graphs."""
    from scipy.sparse.linalg import LinearOperator, lobpcg

    n = len(constant)
    inverse = laplacian.multigrid(s, constant, _SHIFT)
    products = ((lambda x: x - s @ x), inverse)
    ours, near = (
        LinearOperator((n, n), matvec=one, matmat=one, dtype=np.float64)
        for one in products
    )
    start = np.random.default_rng(0).normal(size=(n, wanted + _SPARE))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the residual is looked at by the caller
        found: Any = lobpcg(
            ours,
            start,
            M=near,
            Y=constant[:, np.newaxis],
            tol=_WORST / 100,
            maxiter=_DESCENTS,
            largest=False,
        )
    return np.asarray(found[1], np.float64)


def _iterated(
    apply: Callable[[FloatArray], FloatArray], constant: FloatArray, wanted: int
) -> FloatArray:
    """Find the largest eigenvalues of an operator by restarted Lanczos steps."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    n = len(constant)
    start = np.random.default_rng(0).normal(size=n)
    start -= constant * (constant @ start)
    operator: Any = LinearOperator(
        (n, n), matvec=lambda x: apply(x.ravel()), dtype=np.float64
    )
    try:
        found: FloatArray = eigsh(
            operator,
            k=wanted,
            which="LA",
            v0=start,
            ncv=min(n - 1, max(40, 2 * wanted + 10)),
            maxiter=_RESTARTS,
            tol=_TOLERANCE,
        )[1]
    except ArpackNoConvergence as error:
        raise _hopeless() from error
    return found


def _refined(
    s: csr_array, constant: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the best eigenvectors in the space of those found, smallest first."""
    vectors = vectors - np.outer(constant, constant @ vectors)
    basis = np.linalg.qr(vectors)[0]
    inside = basis.T @ (basis - s @ basis)
    values, turn = np.linalg.eigh((inside + inside.T) / 2)
    return values, basis @ turn


def _hopeless() -> ResourceError:
    return ResourceError(
        "the eigenvectors did not converge: the smallest eigenvalues are too close to "
        "each other; ask for fewer dimensions, or build the graph with a larger "
        "`min_weight`"
    )


COMPONENTS = ("largest", "each")

_TIED = 1 - 1e-6  # entries of this share of the largest count as equally large


@dataclass(frozen=True)
class Embedding:
    """Coordinates of the nodes of a graph."""

    coordinates: FloatArray  # (n, p); NaN where left out, 0 in too small components
    eigenvalues: FloatArray  # (components, p), smallest first; NaN where too small
    component: IndexArray  # (n,) a node's row of the eigenvalues, -1 where left out
    facts: dict[str, Any]  # counts and the largest residual; plain JSON values


def embed(
    graph: Graph,
    *,
    dimensions: int = 2,
    component: str = "largest",
    solver: str = "auto",
    name: str = "graph",
    progress: Stages | None = None,
) -> Embedding:
    """Solve L f = lambda D f and keep the smallest eigenvalues but the zero.

    Vectors have f^T D f = 1, and their largest entry in size is positive.

    Parameters
    ----------
    component : str
        ``largest`` leaves all other nodes out; ``each`` embeds every component on its
        own, so that coordinates of different components must not be compared.
    solver : str
        ``dense``, ``factor`` (shift and invert), ``lanczos`` (products only), or
        ``auto``: by the size of a component and of its factor. ``amg`` (multigrid, the
        extra ``amg``) is several times faster than ``lanczos`` for large graphs of few
        dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> import nnkgraph
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> graph = nnkgraph.build_graph(x, k=10)
    >>> nnkgraph.embed(graph, dimensions=2).coordinates.shape
    (100, 2)
    """
    if dimensions < 1:
        raise ParameterError(f"{dimensions} dimensions: at least 1 is needed")
    laplacian.check_choice(component, COMPONENTS)
    laplacian.check_solver(solver, SOLVERS)
    laplacian.check_undirected(graph, name)
    progress = progress or Stages()
    s, root = laplacian.scaled(graph.adjacency)
    parts = sorted(laplacian.pieces(s), key=len, reverse=True)
    taken = parts[:1] if component == "largest" else parts
    _check_size(len(parts[0]), dimensions, name, alone=component == "largest")
    coordinates = np.full((graph.n_nodes, dimensions), np.nan)
    eigenvalues = np.full((len(taken), dimensions), np.nan)
    place = np.full(graph.n_nodes, -1)
    worst = 0.0
    with progress("solve", sum(map(len, taken))) as on_rows, laplacian.one_thread():
        for at, part in enumerate(taken):
            place[part] = at
            coordinates[part] = 0.0
            p = min(dimensions, len(part) - 1)
            if p:
                inner = laplacian.block(s, part, part)
                found = smallest(inner, root[part], p, solver)
                eigenvalues[at, :p] = found[0]
                worst = max(worst, found[2])
                coordinates[part, :p] = _signed(found[1] / root[part, np.newaxis])
            on_rows(len(part))
    facts = {
        "nodes": graph.n_nodes,
        "components": len(parts),
        "embedded_components": len(taken),
        "embedded_nodes": int((place >= 0).sum()),
        "padded_nodes": sum(len(one) for one in taken if len(one) <= dimensions),
        "dimensions": dimensions,
        "eigenvalues": [float(one) for one in eigenvalues[0] if one == one],  # noqa: PLR0124
        "residual": worst,
    }
    return Embedding(coordinates, eigenvalues, place, facts)


def _check_size(largest: int, dimensions: int, name: str, *, alone: bool) -> None:
    if largest < 2:
        raise InputError(f"{name}: the graph has no edge, and no coordinates follow")
    if alone and dimensions >= largest:
        raise InputError(
            f"{name}: the largest component has {largest} nodes, and at most "
            f"{largest - 1} coordinates; {dimensions} were asked for"
        )


def _signed(vectors: FloatArray) -> FloatArray:
    """Turn every vector so that its largest entry in size, the first, is positive."""
    size = np.abs(vectors)
    first: IndexArray = (size >= _TIED * size.max(axis=0)).argmax(axis=0)
    return vectors * np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1, 1)
