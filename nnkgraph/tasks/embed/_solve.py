"""The smallest eigenvalues of a connected graph: dense, factored, or by products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ResourceError
from nnkgraph.tasks.laplacian import can_factor, factor

if TYPE_CHECKING:
    from collections.abc import Callable

    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray

SOLVERS = ("auto", "dense", "factor", "lanczos")

_DENSE = 500
"""Up to so many nodes all eigenvectors are as cheap as a few."""

_SHIFT = 1e-7
"""Keeps I - S from being singular; far below the second eigenvalue of most graphs."""

_SPARE = 2
"""Eigenvectors beyond those asked for: equal eigenvalues at the end come along."""

_TOLERANCE = 1e-13
_WORST = 1e-9
_RESTARTS = 1000


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
    if solver == "dense" or wanted >= n - 2:
        vectors = _dense(s, constant)[:, :wanted]
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
    return "factor" if can_factor(s) else "lanczos"


def _dense(s: csr_array, constant: FloatArray) -> FloatArray:
    """Return all eigenvectors; the known one is sent to the end of the list."""
    matrix = np.eye(len(constant)) - s.toarray() + 3 * np.outer(constant, constant)
    return np.linalg.eigh(matrix)[1][:, :-1]


def _inverse(s: csr_array, constant: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the product with the inverse: small eigenvalues are far apart there."""
    lu = factor(s, _SHIFT)

    def apply(x: FloatArray) -> Any:
        x = lu.solve(x - constant * (constant @ x))
        return x - constant * (constant @ x)

    return apply


def _direct(s: csr_array, constant: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the product with I + S, where the known eigenvector has eigenvalue 0."""

    def apply(x: FloatArray) -> Any:
        return x + s @ x - constant * (2 * (constant @ x))

    return apply


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
        "--min-weight"
    )
