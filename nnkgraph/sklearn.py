"""Estimators for scikit-learn: a graph, a classifier and a regressor.

They need the extra ``sklearn``: ``pip install 'nnkgraph[sklearn]'``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array, csr_matrix, get_index_dtype

try:
    from joblib import effective_n_jobs
    from sklearn import base
    from sklearn.utils import check_random_state, check_scalar, get_tags
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError:  # other packages bring scikit-learn, too: maybe an old one
    raise ImportError(
        "nnkgraph.sklearn needs scikit-learn 1.6 or newer: "
        "pip install 'nnkgraph[sklearn]'"
    ) from None

from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.build.query import check_settings, query
from nnkgraph.build.run import open_run, prepared_rows
from nnkgraph.build.settings import Running, Settings
from nnkgraph.data import Features, SparseRows
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.runtime import registry
from nnkgraph.search.exact import Exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from nnkgraph.data import Answers, Candidates, FloatArray, Graph, IndexArray
    from nnkgraph.kernels import Kernel

__all__ = ["KNNTransformer", "NNKClassifier", "NNKRegressor", "NNKTransformer"]

_DTYPES = (np.float64, np.float32)
"""What is taken as it is; everything else becomes float64."""

_SPARSE_KERNELS = {"cosine", "gaussian", "jaccard", "linear"}


_ANGLES = {"correlation", "cosine"}
"""Kernels of rows of length 1, and what scikit-learn calls 1 - cos of them."""


class _NeighborsBase(base.BaseEstimator):
    """Rows that are known, and the neighbors of points among them."""

    def __init__(
        self,
        *,
        n_neighbors: int | None = None,
        method: str = "nnk",
        kernel: str | Callable[..., Any] = "gaussian",
        sigma: str | float | None = None,
        scale: str = "none",
        pca: int | None = None,
        preset: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors, self.n_jobs = n_neighbors, n_jobs
        self.method, self.kernel = method, kernel
        self.sigma, self.preset = sigma, preset
        self.scale, self.pca = scale, pca

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        kernel, method = _name(self.kernel), _name(self.method)
        sparse = kernel in _SPARSE_KERNELS and method != "lle"
        tags.input_tags.sparse = sparse or self.pca is not None
        tags.input_tags.positive_only = kernel == "jaccard"
        return tags

    def _validated(self, *arrays: Any, **how: Any) -> Any:
        """Return rows, and targets where there are any, as scikit-learn checks them."""
        sparse = "csr" if get_tags(self).input_tags.sparse else False
        how = {"dtype": _DTYPES, "order": "C", "accept_sparse": sparse, **how}
        return validate_data(self, *arrays, **how)

    @property
    def _workers(self) -> int | str:
        if self.n_jobs == -1:
            return "auto"  # threads where processes would not pay off
        workers: int = effective_n_jobs(self.n_jobs)
        return workers

    def _learn(self, x: Any, *, stacklevel: int = 3, **settings: Any) -> Settings:
        """Check the parameters against the rows, and keep the rows."""
        n = x.shape[0]
        self._workers  # noqa: B018 - refused before anything is learned
        if self.n_neighbors is not None:
            check_scalar(self.n_neighbors, "n_neighbors", Integral, min_val=1)
            if self.n_neighbors >= n:
                warnings.warn(
                    f"n_neighbors is {self.n_neighbors}, but each of {n} rows has "
                    f"{n - 1} others: n_neighbors = {n - 1} is used",
                    stacklevel=stacklevel,
                )
        self._data = self._whole = Features.of(x, name="X")
        k = None if self.n_neighbors is None else min(self.n_neighbors, n - 1)
        plan = Settings.of(self._data, k=k, **self._settings(), **settings)
        check_settings(replace(plan, search=Exact()))
        rows, self._scaling = prepared_rows(self._data, plan)
        if self.pca is not None:  # learned once, not for every query
            seen = self._scaling.applied(self._data.x, "X")
            self._data = replace(self._data, x=seen)
        first = rows.first
        self._first: IndexArray = np.arange(n) if first is None else first
        self.n_neighbors_ = plan.k
        self.n_samples_fit_ = n
        self.effective_metric_ = _metric(plan.kernel)
        return plan

    def _learn_sigma(self, kernel: Kernel) -> None:
        """Keep the bandwidth that a rule finds in the rows: asked once, not again."""
        sigma = 1.0  # a single row, and its copies: any will do
        if kernel.needs_all_rows and self._first.any():
            one = replace(self._data, x=self._data.x[:1])
            known = self._running() | self._left()
            sigma = query(self._data, one, **known).report["sigma"]
        self._keep_kernel(kernel, sigma)

    def _keep_kernel(self, kernel: Any, sigma: float | None = None) -> None:
        """Keep the kernel; ``local`` stays, where every point has its own bandwidth."""
        if sigma is not None and kernel.needs_all_rows:
            kernel = replace(kernel, sigma=sigma)
        named = isinstance(self.kernel, str)
        self.kernel_: Any = registry.spec(kernel) if named else kernel

    def _settings(self) -> dict[str, Any]:
        names = ("method", "kernel", "sigma", "scale", "pca", "preset")
        return {name: getattr(self, name) for name in names}

    def _running(self) -> dict[str, Any]:
        """Return what queries and builds have in common."""
        return {"k": self.n_neighbors_, "workers": self._workers, **self._settings()}

    def _left(self) -> dict[str, Any]:
        """Return how the rows are still to be scaled: components are those of `fit`."""
        return {"scale": self.scale if self.pca is None else "none", "pca": None}

    def _points(self, X: Any) -> Features:
        """Return points in the form of the rows, dense or sparse."""
        x: Any = self._validated(X, reset=False)
        if isinstance(self._whole.x, SparseRows):
            x = csr_array(x)
        elif hasattr(x, "toarray"):
            x = x.toarray()
        points = Features.of(x, name="X")
        if self.pca is None:
            return points
        return replace(points, x=self._scaling.applied(points.x, "X"))

    def _ask(self, X: Any, *, exclude_identical: bool) -> Answers:
        """Return the neighborhoods of points."""
        check_is_fitted(self)
        data, points = _of_one_dtype(self._data, self._points(X))
        settings = self._running() | {"kernel": self.kernel_, "sigma": None}
        settings |= self._left()
        return query(data, points, exclude_identical=exclude_identical, **settings)

    def kneighbors(
        self,
        X: Any = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
    ) -> Any:
        """Find the nearest rows of points, exactly; ties go to the lower row number.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix, optional
            Points. By default the rows of ``fit``, each without itself.
        n_neighbors : int, optional
            How many; by default ``n_neighbors_``.
        return_distance : bool
            Whether distances are returned, too.

        Returns
        -------
        distances : (n, n_neighbors) array
            By ``effective_metric_``.
        indices : (n, n_neighbors) array of int
            Row numbers of ``fit``, nearest first.
        """
        check_is_fitted(self)
        if return_distance:
            self._check_distances()
        k = self.n_neighbors_ if n_neighbors is None else n_neighbors
        check_scalar(k, "n_neighbors", Integral, min_val=1)
        there = self.n_samples_fit_ - (X is None)
        if k > there:
            raise ValueError(f"n_neighbors is {k}, but only {there} rows are there")
        found = self._own(k) if X is None else self._nearest(self._points(X), k)
        index = found.index.astype(np.intp)
        if not return_distance:
            return index
        return self._lengths(found.distance), index

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """Return the nearest rows of points as a sparse matrix.

        Parameters
        ----------
        X, n_neighbors
            As for `kneighbors`.
        mode : {"connectivity", "distance"}
            Whether entries are ones or distances.

        Returns
        -------
        (n, n_samples_fit_) csr_matrix
            Every row has ``n_neighbors`` entries, nearest first.
        """
        _check_mode(mode, ("connectivity", "distance"))
        distance = mode == "distance"
        found = self.kneighbors(X, n_neighbors, return_distance=distance)
        values, index = found if distance else (np.ones(found.shape), found)
        return self._matrix(values, index)

    def _matrix(self, values: FloatArray, index: IndexArray) -> csr_matrix:
        """Return lists of neighbors as a matrix; -1 stands for none."""
        there = index >= 0
        ends = np.append(0, np.cumsum(there.sum(axis=1)))
        shape = len(index), self.n_samples_fit_
        return _output(csr_array((values[there], index[there], ends), shape))

    def _own(self, k: int, **settings: Any) -> Candidates:
        """Return the nearest other rows of the rows; identical ones are others."""
        return find_candidates(
            self._data,
            k=k,
            kernel=self.kernel_,
            duplicates="keep",
            **self._left(),
            workers=self._workers,
            **({"search": "exact"} | settings),
        )

    def _nearest(self, points: Features, k: int) -> Candidates:
        """Return the nearest rows of points; identical ones are among them."""
        data, points = _of_one_dtype(self._data, points)
        how: dict[str, Any] = {"search": "exact", "duplicates": "keep"}
        how |= self._left()
        settings = Settings.of(data, kernel=self.kernel_, **how)
        with open_run(data, settings, Running(self._workers)) as run:
            found = settings.search.query(run.wanted(k), run.prepared(points))
            # Files of worker processes end with the pool.
            index, distance = np.array(found.index), np.array(found.distance)
        return replace(found, index=index, distance=distance)

    def _check_distances(self) -> None:
        if self.effective_metric_ is None:
            raise ValueError(f"kernel {self.kernel!r} has no distances")

    def _lengths(self, distance: FloatArray) -> FloatArray:
        """Turn the distances of a search into those of the metric."""
        if self.effective_metric_ not in _ANGLES:
            return distance
        return distance**2 / 2  # of rows of unit length


def _name(plugin: Any) -> str:
    """Return the name of a plug-in that is given by its name or as an object."""
    if isinstance(plugin, str):
        return plugin.partition(":")[0]
    return type(plugin).__module__.rpartition(".")[2]


def _metric(kernel: Kernel) -> str | None:
    """Return what scikit-learn calls the distance that a kernel searches by."""
    name = _name(kernel)
    return name if name in _ANGLES else DISTANCES.get(kernel.nearness)


def _of_one_dtype(*some: Features) -> list[Features]:
    """Return features with the highest precision that one of them has."""
    if any(isinstance(one.x, SparseRows) for one in some):
        return list(some)
    dtype = np.result_type(*(one.x for one in some))
    return [replace(one, x=one.x.astype(dtype, copy=False)) for one in some]


class _Predictor(_NeighborsBase):
    """The mean target of a point's neighbors, by their weights."""

    def _remember(self, kernel: Kernel, targets: Any) -> None:
        """Keep bandwidth and (n, c) targets; identical rows share their mean."""
        self._learn_sigma(kernel)
        n = len(self._first)
        share = 1.0 / np.bincount(self._first, minlength=n)[self._first]
        means = csr_array((share, (self._first, np.arange(n))), (n, n))
        self._targets = means @ targets

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


class NNKClassifier(base.ClassifierMixin, _Predictor):
    """Classify points by the weights of their NNK neighbors.

    The weights of a point's neighbors are votes for their classes. A row that equals
    the point has all of them (methods without an error, as ``knn``, go on to
    ask the others), identical rows share theirs, and where no row has a weight, because
    all similarities vanish, the nearest one decides. Equal votes go to the first class.

    Parameters
    ----------
    n_neighbors : int, optional
        Candidates per point; by default 30, or all others where there are fewer.
    method : str
        How neighbors are chosen and weighed: ``nnkgraph list methods``, of those that
        look at one point at a time.
    kernel : str or callable
        How similar rows are: ``nnkgraph list kernels``, or a function of (n, d) and
        (m, d) rows that returns n x m similarities, for instance one of
        ``sklearn.metrics.pairwise``.
    sigma : float or {"auto", "kth-max", "kth-mean", "local", "matlab"}, optional
        Bandwidth of the kernel, where it has one; by default as the preset says.
    scale : {"none", "standard", "minmax", "unit"}
        Scaling of the features; it is learned by ``fit``.
    pca : int, optional
        So many principal components of the scaled features take their place; they are
        learned by ``fit``, from sparse rows as well, for any kernel.
    preset : {"paper", "classify", "cluster", "propagate"}, optional
        As for `nnkgraph.build_graph`: defaults of what is not given.
    n_jobs : int, optional
        Processes; -1 takes all processors. The result does not depend on it.

    Attributes
    ----------
    classes_ : array
        The classes, in order.
    n_neighbors_ : int
        Candidates that were used.
    kernel_ : str or callable
        The kernel with the bandwidth that was found.
    effective_metric_ : str or None
        Distance that ``kneighbors`` goes by, in scikit-learn's words: ``"euclidean"``,
        ``"cosine"``, ``"correlation"``, ``"manhattan"`` or ``"jaccard"``; None for
        kernels that have none.
    n_samples_fit_, n_features_in_ : int
        Rows and columns of ``fit``.
    feature_names_in_ : array of str
        Column names, where there were any.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nnkgraph.sklearn import NNKClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = NNKClassifier(n_neighbors=10).fit(X[::2], y[::2])
    >>> classifier.predict(X[[1, 51, 101]])
    array([0, 1, 2])
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the rows with their classes, and find the bandwidth.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            At least two rows. Sparse ones work with kernels cosine, gaussian, jaccard
            and linear, or with ``pca``.
        y : (n,) array-like
            Their classes.
        """
        x, y = self._validated(X, y, ensure_min_samples=2)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        plan = self._learn(x)
        self.classes_, codes = np.unique(y, return_inverse=True)
        n = len(codes)
        one_hot = (np.ones(n), codes, np.arange(n + 1))
        self._remember(plan.kernel, csr_array(one_hot, (n, len(self.classes_))))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return every class's share of the votes.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Points, with the columns of ``fit``.

        Returns
        -------
        (n, classes) array
            Columns are in the order of ``classes_``.
        """
        return self._means(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that most votes are for, of points as in `predict_proba`."""
        winners = self._means(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[winners]
        return classes


class NNKRegressor(base.RegressorMixin, _Predictor):
    """Predict values as the weighted means of the NNK neighbors'.

    A row that equals the point says its value alone (methods without an error,
    as ``knn``, go on to ask the others), identical rows count as one with the mean of
    their values, and where no row has a weight, because all similarities vanish, the
    value is that of the nearest one.

    Parameters
    ----------
    n_neighbors, method, kernel, sigma, scale, pca, preset, n_jobs
        As those of `NNKClassifier`.

    Attributes
    ----------
    n_neighbors_, kernel_, effective_metric_, n_samples_fit_, n_features_in_, \
feature_names_in_
        As those of `NNKClassifier`.

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
        X : (n, d) array-like or sparse matrix
            As for `NNKClassifier.fit`.
        y : (n,) or (n, outputs) array-like
            Their values.
        """
        how = {"ensure_min_samples": 2, "multi_output": True, "y_numeric": True}
        x, y = self._validated(X, y, **how)
        plan = self._learn(x)
        self._flat = y.ndim == 1
        self._remember(plan.kernel, y.reshape(len(y), -1).astype(np.float64))
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return the weighted mean of the neighbors' values.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
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


class NNKTransformer(
    base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin, _NeighborsBase
):
    """Turn rows into a sparse graph of their NNK neighborhoods.

    Row i of the result is the neighborhood of point i among the rows of ``fit``. Rows
    that equal a point are passed over, so that ``fit_transform(X)`` is
    ``fit(X).transform(X)``, and of identical rows only the first is a neighbor. That
    graph is directed; the symmetrized one of the rows is ``graph_``. Spectral methods
    that get the directed one in a pipeline average it with its transpose, and warn.

    With ``method="knn"`` and a mode other than "weights" it does what
    ``sklearn.neighbors.KNeighborsTransformer`` does, and can take its place: a row is
    its own nearest neighbor, and identical rows are neighbors like others.

    Parameters
    ----------
    mode : {"weights", "connectivity", "distance"}
        What an entry is. "weights" are similarities, for spectral methods;
        "connectivity" has ones in their place.
        "distance" are the distances of the same neighbors, for estimators with
        ``metric="precomputed"``: rows are sorted by distance, and a point has an
        explicit zero at itself (at every row that equals it), as scikit-learn expects.
        Points have different numbers of neighbors; a radius takes all of them, as in
        ``Isomap(n_neighbors=None, radius=numpy.inf, metric="precomputed")``.
    n_neighbors, method, kernel, sigma, scale, pca, preset, n_jobs
        As those of `NNKClassifier`.
    search : str
        How candidates of the rows of ``fit`` are found: ``nnkgraph list search``. New
        points are always searched exactly.
    duplicates : {"merge", "keep", "error"}
        What to do with identical rows of ``fit``.
    symmetrize : str, optional
        Rule that joins the two directions of an edge of ``graph_``.
    min_degree : int, optional
        Every node of ``graph_`` keeps its own so many heaviest edges.
    weights : {"regression", "kernel", "one"}, optional
        What edges of ``graph_`` weigh.
    random_state : int or RandomState, optional
        For searches that draw at random. None is 0: the same rows give the same graph.

    Attributes
    ----------
    graph_ : (n_samples_fit_, n_samples_fit_) csr_array
        The symmetrized graph of the rows, for ``affinity="precomputed"``; it is built
        when it is first asked for.
    result_ : nnkgraph.Graph
        The same with errors, provenance and a report, warnings among it.
    n_neighbors_, kernel_, effective_metric_, n_samples_fit_, n_features_in_, \
feature_names_in_
        As those of `NNKClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nnkgraph.sklearn import NNKTransformer
    >>> X = load_iris().data
    >>> transformer = NNKTransformer(n_neighbors=10).fit(X[:100])
    >>> transformer.transform(X[100:]).shape
    (50, 100)
    >>> abs(transformer.graph_ - transformer.graph_.T).max()
    np.float64(0.0)
    >>> transformer.kneighbors(X[[3]], n_neighbors=3, return_distance=False)
    array([[ 3, 47, 29]])
    """

    def __init__(
        self,
        *,
        mode: str = "weights",
        n_neighbors: int | None = None,
        method: str = "nnk",
        kernel: str | Callable[..., Any] = "gaussian",
        sigma: str | float | None = None,
        scale: str = "none",
        pca: int | None = None,
        search: str = "auto",
        duplicates: str = "merge",
        symmetrize: str | None = None,
        min_degree: int | None = None,
        weights: str | None = None,
        preset: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            method=method,
            kernel=kernel,
            sigma=sigma,
            scale=scale,
            pca=pca,
            preset=preset,
            n_jobs=n_jobs,
        )
        self.mode, self.random_state = mode, random_state
        self.search, self.duplicates = search, duplicates
        self.symmetrize, self.min_degree = symmetrize, min_degree
        self.weights = weights

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the rows, and find the bandwidth.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            As for `NNKClassifier.fit`.
        y : ignored
            It is here because pipelines pass it.
        """
        del y
        kernel = self._start(X).kernel
        # Nearest neighbors need no bandwidth.
        keep = self._keep_kernel if self._plain else self._learn_sigma
        keep(kernel)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """Find the neighborhoods of the rows among each other: one search does it.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        (n, n) csr_matrix
            Weights, ones or distances.
        """
        del y
        plan = self._start(X)
        if self._plain:
            self._keep_kernel(plan.kernel)
            return self._own_lists()
        own = self._build(symmetrize="none", weights="regression", min_weight=0.0)
        self._keep_kernel(plan.kernel, own.provenance["sigma"])
        weights = own.adjacency
        if self.mode == "distance" and own.distances is not None:
            weights.data = self._lengths(own.distances)
        if self.duplicates == "merge":
            weights = weights[self._first]  # a copy has the neighbors of its first row
        return self._entries(weights, self._first)

    def transform(self, X: Any) -> csr_matrix:
        """Find the neighborhoods of points among the rows of ``fit``.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Points, with the columns of ``fit``.

        Returns
        -------
        (n, n_samples_fit_) csr_matrix
            Weights, ones or distances.
        """
        check_is_fitted(self)
        if self._plain:
            k = self.n_neighbors_ + (self.mode == "distance")
            return self.kneighbors_graph(X, k, self.mode)
        answers = self._ask(X, exclude_identical=True)
        found = answers.weights
        if self.mode == "distance" and answers.distances is not None:
            found = answers.distances
            found.data = self._lengths(found.data)
        return self._entries(found, answers.identical)

    @cached_property
    def result_(self) -> Graph:
        """The symmetrized graph of the rows."""
        check_is_fitted(self)
        return self._build(**self._edges())

    @property
    def graph_(self) -> csr_array:
        """Its adjacency matrix."""
        return _compact(self.result_.adjacency)

    def _start(self, X: Any, *, stacklevel: int = 4) -> Settings:
        """Check parameters and rows."""
        _check_mode(self.mode, ("weights", "connectivity", "distance"))
        self.__dict__.pop("result_", None)
        x = self._validated(X, ensure_min_samples=2)
        own = {"duplicates": self.duplicates, "search": self.search}
        plan = self._learn(x, stacklevel=stacklevel, **own, **self._edges())
        if self.mode == "distance":
            self._check_distances()
        self._plain = self.mode != "weights" and _name(plan.method) == "knn"
        state = self.random_state
        if state is not None and not isinstance(state, Integral):
            state = check_random_state(state).randint(2**31)
        self._seed = int(state or 0)
        self._n_features_out = self.n_samples_fit_
        return plan

    def _edges(self) -> dict[str, Any]:
        names = ("symmetrize", "min_degree", "weights")
        return {name: getattr(self, name) for name in names}

    def _build(self, **settings: Any) -> Graph:
        """Build a graph of the rows."""
        return build_graph(
            self._whole,
            search=self.search,
            duplicates=self.duplicates,
            seed=self._seed,
            **self._running(),
            **settings,
        )

    def _own_lists(self) -> csr_matrix:
        """Return every row with itself and its nearest others."""
        others = self.n_neighbors_ - (self.mode == "connectivity")
        index = np.arange(self.n_samples_fit_)[:, np.newaxis]
        values = np.zeros(index.shape)
        if others:
            found = self._own(others, search=self.search, seed=self._seed)
            index = np.hstack([index, found.index])
            values = np.hstack([values, self._lengths(found.distance)])
        if self.mode == "connectivity":
            values = np.ones(index.shape)
        return self._matrix(values, index)

    def _entries(self, found: csr_array, identical: Any) -> csr_matrix:
        """Return neighbors in the form that the mode asks for."""
        if self.mode == "weights":
            return _output(found)
        if self.mode == "connectivity":
            parts = np.ones(found.nnz), found.indices, found.indptr
            return _output(csr_array(parts, found.shape))
        return _output(_with_zeros(found, identical, self._first))


class KNNTransformer(NNKTransformer):
    """Turn rows into distances to a fixed number of neighbors, as others expect them.

    It takes the place of ``sklearn.neighbors.KNeighborsTransformer``: in pipelines, and
    as ``scanpy.pp.neighbors(adata, transformer=KNNTransformer(n_neighbors=15))``. Every
    row of the result has ``n_neighbors`` + 1 entries, nearest first, and the point
    itself, at distance 0, is the first.

    Parameters
    ----------
    n_neighbors : int
        Neighbors per point. scanpy counts the cell itself among them.
    method : str
        "knn" gives the nearest rows. Others, as "nnk", choose among ``n_candidates``
        first, and the nearest of the rest fill up.
    n_candidates : int, optional
        How many such a method chooses from; by default twice ``n_neighbors``.
    kernel, sigma, scale, preset, n_jobs
        As those of `NNKClassifier`.
    search, random_state
        As those of `NNKTransformer`.

    Attributes
    ----------
    n_neighbors_, kernel_, effective_metric_, n_samples_fit_, n_features_in_, \
feature_names_in_
        As those of `NNKClassifier`.
    n_candidates_ : int
        Candidates that were used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nnkgraph.sklearn import KNNTransformer
    >>> found = KNNTransformer(n_neighbors=10).fit_transform(load_iris().data)
    >>> found.getnnz(axis=1).min(), found.getnnz(axis=1).max()
    (np.int32(11), np.int32(11))
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 15,
        method: str = "knn",
        n_candidates: int | None = None,
        kernel: str | Callable[..., Any] = "gaussian",
        sigma: str | float | None = None,
        scale: str = "none",
        search: str = "auto",
        preset: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            mode="distance",
            n_neighbors=n_neighbors,
            method=method,
            kernel=kernel,
            sigma=sigma,
            scale=scale,
            search=search,
            duplicates="keep",
            preset=preset,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_candidates = n_candidates

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """Find the neighbors of the rows among each other: one search does it.

        Parameters
        ----------
        X, y
            As for `fit`.

        Returns
        -------
        (n, n) csr_matrix
            Distances.
        """
        del y
        plan = self._start(X)
        if self._plain:
            self._keep_kernel(plan.kernel)
            return self._own_lists()
        plan = replace(plan, k=self.n_candidates_, seed=self._seed)
        with open_run(self._data, plan, Running(self._workers)) as run:
            found, kernel, solved = run.solve()
            chosen = np.array(solved.weights > 0)
            # Files of worker processes end with the pool.
            index, distance = np.array(found.index), np.array(found.distance)
            self._keep_kernel(plan.kernel, kernel.bandwidth(found))
        own = np.arange(len(index))[:, np.newaxis]
        index = np.hstack([own, index])
        distance = np.hstack([np.zeros(own.shape), distance])
        chosen = np.hstack([own >= 0, chosen])
        return self._fixed(index, distance, chosen)

    def transform(self, X: Any) -> csr_matrix:
        """Find the neighbors of points among the rows of ``fit``.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Points, with the columns of ``fit``.

        Returns
        -------
        (n, n_samples_fit_) csr_matrix
            Distances.
        """
        check_is_fitted(self)
        if self._plain:
            return super().transform(X)
        found = self._nearest(self._points(X), self.n_candidates_ + 1)
        weights = self._ask(X, exclude_identical=True).weights
        rows = np.arange(len(found.index))[:, np.newaxis]
        weight: Any = weights[rows, found.index]
        chosen = (weight.toarray() > 0) | (found.distance == 0)
        return self._fixed(found.index, found.distance, chosen)

    def _fixed(
        self, index: IndexArray, distance: FloatArray, chosen: NDArray[np.bool_]
    ) -> csr_matrix:
        """Return as many of each row as there are to be: the chosen ones first."""
        order = np.argsort(~chosen, axis=1, kind="stable")[:, : self.n_neighbors_ + 1]
        order.sort(axis=1)  # nearest first again
        distance = self._lengths(np.take_along_axis(distance, order, axis=1))
        return self._matrix(distance, np.take_along_axis(index, order, axis=1))

    def _start(self, X: Any, *, stacklevel: int = 4) -> Settings:
        plan = super()._start(X, stacklevel=stacklevel + 1)
        wide = self.n_candidates
        if wide is None:
            wide = 2 * self.n_neighbors_
        else:
            check_scalar(wide, "n_candidates", Integral, min_val=self.n_neighbors_)
        self.n_candidates_ = min(wide, self.n_samples_fit_ - 1)
        return plan

    def _running(self) -> dict[str, Any]:
        """Return what queries and builds have in common."""
        return super()._running() | {"k": self.n_candidates_}


def _check_mode(mode: str, modes: tuple[str, ...]) -> None:
    if mode not in modes:
        raise ValueError(f"mode must be one of {modes}, not {mode!r}")


def _compact(graph: csr_array) -> csr_array:
    """Return a graph with 32-bit numbers, where they do: many estimators want them."""
    kind = get_index_dtype(maxval=max(graph.nnz, *graph.shape))
    indices, ends = (a.astype(kind, copy=False) for a in (graph.indices, graph.indptr))
    return csr_array((graph.data, indices, ends), graph.shape)


def _output(graph: csr_array) -> csr_matrix:
    """Return a graph as scikit-learn's own do: others count on the older kind."""
    return csr_matrix(_compact(graph))


def _with_zeros(
    distances: csr_array, identical: IndexArray, first: IndexArray
) -> csr_array:
    """Return distances, nearest first, with a zero at every row that is the point."""
    n = distances.shape[0]
    known = np.flatnonzero(identical >= 0)
    members = csr_array((np.ones(len(first)), (first, np.arange(len(first)))))
    twins = members[identical[known]].tocoo()
    found = distances.tocoo()
    other = identical[found.row] != first[found.col]
    row = np.append(found.row[other], known[twins.row])
    column = np.append(found.col[other], twins.col)
    distance = np.append(found.data[other], np.zeros(len(twins.col)))
    order = np.lexsort((column, distance, row))
    indptr = np.append(0, np.cumsum(np.bincount(row, minlength=n)))
    return csr_array((distance[order], column[order], indptr), distances.shape)
