"""Estimators for scikit-learn: a graph, a classifier and a regressor.

They need the extra ``sklearn``: ``pip install 'nnkgraph[sklearn]'``.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array, get_index_dtype
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_scalar
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from nnkgraph.build.graph import build_graph
from nnkgraph.build.query import check_settings, query
from nnkgraph.build.run import prepared_rows
from nnkgraph.build.settings import Settings
from nnkgraph.data import Features
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from nnkgraph.data import Answers, FloatArray, IndexArray
    from nnkgraph.kernels import Kernel


__all__ = ["NNKClassifier", "NNKRegressor", "NNKTransformer"]

DTYPES = (np.float64, np.float32)
"""What is taken as it is; everything else becomes float64."""


@contextmanager
def value_errors() -> Iterator[None]:
    """Say what is wrong with parameters and values as scikit-learn does."""
    try:
        yield
    except (ParameterError, InputError) as error:
        raise ValueError(str(error)) from error


class NeighborhoodEstimator(BaseEstimator):
    """Neighborhoods of points among the rows it was fitted to."""

    def __init__(
        self,
        *,
        k: int | None = None,
        method: str = "nnk",
        kernel: str = "gaussian",
        sigma: str | float | None = None,
        scale: str = "none",
        workers: int | str = 1,
    ) -> None:
        self.k = k
        self.method = method
        self.kernel = kernel
        self.sigma = sigma
        self.scale = scale
        self.workers = workers

    def _learn(self, x: FloatArray) -> Kernel:
        """Check the parameters against the rows, and keep the rows.

        Returns
        -------
        Kernel
            Not yet fitted.
        """
        n = len(x)
        if self.k is not None:
            check_scalar(self.k, "k", Integral, min_val=1)
            if self.k >= n:
                warnings.warn(
                    f"k is {self.k}, but each of {n} rows has {n - 1} others: "
                    f"k = {n - 1} is used",
                    stacklevel=3,
                )
        with value_errors():
            features = Features.of(x, name="X")
            plan = Settings.of(
                features,
                k=None if self.k is None else min(int(self.k), n - 1),
                method=self.method,
                kernel=self.kernel,
                sigma=self.sigma,
                scale=self.scale,
            )
            check_settings(plan)
            rows, _ = prepared_rows(features, plan)
        self.k_ = plan.k
        self.n_samples_fit_ = n
        self._fit_x = features.x
        self._first: IndexArray = np.arange(n) if rows.first is None else rows.first
        return plan.kernel

    def _keep(self, kernel: Kernel, sigma: float | None) -> None:
        """Keep the kernel with the bandwidth that the rows set: asked once, not again.

        ``local`` stays: there, every point has a bandwidth of its own.
        """
        if _ruled(kernel):
            changed: Any = replace(kernel, sigma=sigma)  # type: ignore[type-var]
            kernel = changed
        self.kernel_ = registry.spec(kernel)

    def _learned_sigma(self, kernel: Kernel) -> float | None:
        """Return the bandwidth that the rows set, where a rule asks them."""
        if not _ruled(kernel):
            return None
        if not self._first.any():  # a single row, and its copies: any will do
            return 1.0
        with value_errors():
            asked = query(
                self._fit_x, self._fit_x[:1], **self._settings(registry.spec(kernel))
            )
        sigma: float = asked.report["sigma"]
        return sigma

    def _ask(self, X: Any, *, exclude_identical: bool) -> Answers:
        """Return the neighborhoods of points."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=DTYPES, order="C")
        dtype = np.result_type(x, self._fit_x)
        with value_errors():
            return query(
                self._fit_x.astype(dtype, copy=False),
                Features.of(x.astype(dtype, copy=False), name="X"),
                exclude_identical=exclude_identical,
                **self._settings(self.kernel_),
            )

    def _settings(self, kernel: str) -> dict[str, Any]:
        return {
            "k": self.k_,
            "method": self.method,
            "kernel": kernel,
            "scale": self.scale,
            "workers": self.workers,
        }


def _ruled(kernel: Kernel) -> bool:
    """Return whether the bandwidth is left to a rule over all rows."""
    sigma = getattr(kernel, "sigma", None)
    return isinstance(sigma, str) and sigma != "local"


class _Predictor(NeighborhoodEstimator):
    """The mean target of a point's neighbors, by their weights."""

    def _remember(self, kernel: Kernel, targets: Any) -> None:
        """Keep bandwidth and (n, c) targets; identical rows share their mean."""
        self._keep(kernel, self._learned_sigma(kernel))
        self._targets = _means_of_copies(self._first) @ targets

    def _means(self, X: Any) -> FloatArray:
        """Return the (n, c) means; the nearest row counts where none has a weight."""
        answers = self._ask(X, exclude_identical=False)
        weights = answers.weights
        lost = np.flatnonzero(np.diff(weights.indptr) == 0)
        if len(lost) and answers.nearest is not None:
            spot = lost, answers.nearest[lost]
            weights = weights + csr_array((np.ones(len(lost)), spot), weights.shape)
        total: Any = weights @ self._targets
        dense: FloatArray = total.toarray() if isinstance(total, csr_array) else total
        return dense / weights.sum(axis=1)[:, np.newaxis]


class NNKClassifier(ClassifierMixin, _Predictor):
    """Classify points by the weights of their NNK neighbors.

    The weights of a point's neighbors are votes for their classes. A row that equals
    the point has all of them (methods without an error, as ``knn``, go on to
    ask the others), identical rows share theirs, and where no row has a weight, because
    all similarities vanish, the nearest one decides. Equal votes go to the first class.

    Parameters
    ----------
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
    workers : int or "auto"
        Processes. The result does not depend on their number.

    Attributes
    ----------
    classes_ : array
        The classes, in order.
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
    >>> from nnkgraph.sklearn import NNKClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> NNKClassifier(k=10).fit(X[::2], y[::2]).predict(X[1:4:2])
    array([0, 0])
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows with their classes, and find the bandwidth.

        Parameters
        ----------
        X : (n, d) array-like
            At least two rows.
        y : (n,) array-like
            Their classes.
        """
        x, y = validate_data(self, X, y, dtype=DTYPES, order="C", ensure_min_samples=2)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        kernel = self._learn(x)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n = len(codes)
        one_hot = (np.ones(n), codes, np.arange(n + 1))
        self._remember(kernel, csr_array(one_hot, (n, len(self.classes_))))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return every class's share of the votes.

        Parameters
        ----------
        X : (n, d) array-like
            Points, with the columns of ``fit``.

        Returns
        -------
        (n, classes) array
            Columns are in the order of ``classes_``.
        """
        return self._means(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that most votes are for.

        Parameters
        ----------
        X : (n, d) array-like
            Points, with the columns of ``fit``.
        """
        winners = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[winners]
        return classes


class NNKRegressor(RegressorMixin, _Predictor):
    """Predict values as the weighted means of the NNK neighbors'.

    A row that equals the point says its value alone (methods without an error,
    as ``knn``, go on to ask the others), identical rows count as one with the mean of
    their values, and where no row has a weight, because all similarities vanish, the
    value is that of the nearest one.

    Parameters
    ----------
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
    workers : int or "auto"
        Processes. The result does not depend on their number.

    Attributes
    ----------
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
    >>> from sklearn.datasets import load_diabetes
    >>> from nnkgraph.sklearn import NNKRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> NNKRegressor().fit(X[::2], y[::2]).predict(X[1::2]).shape
    (221,)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows with their values, and find the bandwidth.

        Parameters
        ----------
        X : (n, d) array-like
            At least two rows.
        y : (n,) or (n, outputs) array-like
            Their values.
        """
        x, y = validate_data(
            self,
            X,
            y,
            dtype=DTYPES,
            order="C",
            ensure_min_samples=2,
            multi_output=True,
            y_numeric=True,
        )
        kernel = self._learn(x)
        self._flat = y.ndim == 1
        self._remember(kernel, y.reshape(len(x), -1).astype(np.float64))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the weighted mean of the neighbors' values.

        Parameters
        ----------
        X : (n, d) array-like
            Points, with the columns of ``fit``.

        Returns
        -------
        (n,) or (n, outputs) array
            As the values of ``fit`` were given.
        """
        means = self._means(X)
        return means[:, 0] if self._flat else means

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _means_of_copies(first: IndexArray) -> csr_array:
    """Return the matrix that gives the first of identical rows the mean of them all."""
    n = len(first)
    share = 1.0 / np.bincount(first, minlength=n)[first]
    return csr_array((share, (first, np.arange(n))), (n, n))


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


try:
    # Other packages bring scikit-learn, too, but maybe one that is too old for this.
    from sklearn.utils.validation import validate_data
except ImportError as error:
    raise ImportError(
        "nnkgraph.sklearn needs scikit-learn 1.6 or newer: "
        "pip install 'nnkgraph[sklearn]'"
    ) from (None if isinstance(error, ModuleNotFoundError) else error)
