"""From rows to a sparse graph, as ``KNeighborsTransformer`` makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array, get_index_dtype
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import validate_data

from nnkgraph.build import build_graph
from nnkgraph.pairs import DISTANCES
from nnkgraph.sklearn._estimator import DTYPES, NeighborhoodEstimator, value_errors

if TYPE_CHECKING:
    from nnkgraph.data import Answers, IndexArray

MODES = ("weights", "distance")


class NNKTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, NeighborhoodEstimator
):
    """Turn rows into a sparse graph of their NNK neighborhoods.

    Row i of the result is the neighborhood of point i among the rows of ``fit``, found
    exactly. Rows that equal a point are passed over, so that ``fit_transform(X)`` is
    ``fit(X).transform(X)``, and of identical rows only the first is a neighbor. That
    graph is directed; the symmetrized one of the rows is ``graph_``. Spectral methods
    that get the directed one in a pipeline average it with its transpose, and warn.

    Parameters
    ----------
    mode : {"weights", "distance"}
        What an entry is. "weights" are similarities, for spectral methods.
        "distance" are the distances of the same neighbors, for estimators with
        ``metric="precomputed"``: rows are sorted by distance, and a point has an
        explicit zero at itself (at every row that equals it), as scikit-learn expects.
        Points have different numbers of neighbors; a radius takes all of them, as in
        ``Isomap(n_neighbors=None, radius=numpy.inf, metric="precomputed")``.
    k : int, optional
        Candidates per point; by default 30. At most one less than there are rows.
    method : str
        How neighbors are chosen and weighed: ``nnkgraph list methods``, of those that
        look at one point at a time.
    kernel : str
        How similar rows are: ``nnkgraph list kernels``.
    sigma : float or {"auto", "kth-max", "local", "matlab"}, optional
        Bandwidth of the kernel, where it has one; by default "auto".
    scale : {"none", "standard", "minmax", "unit"}
        Scaling of the features; it is learned by ``fit``.
    search : str
        How candidates are found for ``graph_``; ``transform`` always searches exactly.
    symmetrize : str, optional
        Rule that joins the two directions of an edge of ``graph_``.
    min_degree : int
        Every node of ``graph_`` keeps its own so many heaviest edges.
    workers : int or "auto"
        Processes. The result does not depend on their number.

    Attributes
    ----------
    graph_ : (n_samples_fit_, n_samples_fit_) csr_array
        The symmetrized graph of the rows, for ``affinity="precomputed"``.
    result_ : nnkgraph.Graph
        The same with errors, provenance and a report, warnings among it.
    k_ : int
        Candidates that were used.
    kernel_ : str
        The kernel with the bandwidth that was found.
    n_samples_fit_, n_features_in_ : int
        Rows and columns of ``fit``.
    feature_names_in_ : array of str
        Column names, where there were any.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nnkgraph.sklearn import NNKTransformer
    >>> graph = NNKTransformer(k=10).fit_transform(load_iris().data)
    >>> graph.shape
    (150, 150)
    """

    def __init__(
        self,
        *,
        mode: str = "weights",
        k: int | None = None,
        method: str = "nnk",
        kernel: str = "gaussian",
        sigma: str | float | None = None,
        scale: str = "none",
        search: str = "auto",
        symmetrize: str | None = None,
        min_degree: int = 0,
        workers: int | str = 1,
    ) -> None:
        super().__init__(
            k=k,
            method=method,
            kernel=kernel,
            sigma=sigma,
            scale=scale,
            workers=workers,
        )
        self.mode = mode
        self.search = search
        self.symmetrize = symmetrize
        self.min_degree = min_degree

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows, find the bandwidth, and build ``graph_``.

        Parameters
        ----------
        X : (n, d) array-like
            At least two rows.
        y : ignored
            It is here because pipelines pass it.
        """
        del y
        if self.mode not in MODES:
            raise ValueError(f"mode must be one of {MODES}, not {self.mode!r}")
        x = validate_data(self, X, dtype=DTYPES, order="C", ensure_min_samples=2)
        kernel = self._learn(x)
        if self.mode == "distance" and kernel.nearness not in DISTANCES:
            raise ValueError(
                f"kernel {self.kernel!r} has no distances: use mode='weights'"
            )
        with value_errors():
            self.result_ = build_graph(
                self._fit_x,
                k=self.k_,
                method=self.method,
                kernel=self.kernel,
                sigma=self.sigma,
                search=self.search,
                symmetrize=self.symmetrize,
                min_degree=self.min_degree,
                scale=self.scale,
                workers=self.workers,
            )
        self._keep(kernel, self.result_.provenance["sigma"])
        self.graph_ = _compact(self.result_.adjacency)
        self._n_features_out = self.n_samples_fit_
        return self

    def transform(self, X: Any) -> csr_array:
        """Find the neighborhoods of points among the rows of ``fit``.

        Parameters
        ----------
        X : (n, d) array-like
            Points, with the columns of ``fit``.

        Returns
        -------
        (n, n_samples_fit_) csr_array
            Weights, or distances.
        """
        answers = self._ask(X, exclude_identical=True)
        weighed = self.mode == "weights"
        return _compact(
            answers.weights if weighed else _distances(answers, self._first)
        )


def _compact(graph: csr_array) -> csr_array:
    """Return a graph with 32-bit numbers, where they do: many estimators want them."""
    indices, indptr = (
        one.astype(get_index_dtype(maxval=max(graph.nnz, *graph.shape)), copy=False)
        for one in (graph.indices, graph.indptr)
    )
    return csr_array((graph.data, indices, indptr), graph.shape)


def _distances(answers: Answers, first: IndexArray) -> csr_array:
    """Return distances, nearest first, with a zero at every row that is the point."""
    if answers.distances is None or answers.identical is None:
        raise ValueError("this kernel has no distances: fit again with mode='distance'")
    found, shape = answers.distances.tocoo(), answers.distances.shape
    point, copy = _copies(answers.identical, first)
    row, column = np.append(found.row, point), np.append(found.col, copy)
    distance = np.append(found.data, np.zeros(len(copy)))
    order = np.lexsort((column, distance, row))
    indptr = np.zeros(shape[0] + 1, answers.distances.indptr.dtype)
    np.cumsum(np.bincount(row, minlength=shape[0]), out=indptr[1:])
    return csr_array((distance[order], column[order], indptr), shape)


def _copies(identical: IndexArray, first: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Return pairs of points and all rows that equal them."""
    points = np.flatnonzero(identical >= 0)
    twin = identical[points]
    groups = np.argsort(first, kind="stable")
    count = np.bincount(first, minlength=len(first))
    start = np.searchsorted(first[groups], twin)
    ends = np.cumsum(count[twin])
    within = np.arange(ends[-1] if len(ends) else 0)
    within -= np.repeat(ends - count[twin], count[twin])
    return np.repeat(points, count[twin]), groups[
        np.repeat(start, count[twin]) + within
    ]
