"""Classes and values of points, from the neighbors that NNK chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from nnkgraph.sklearn._estimator import DTYPES, NeighborhoodEstimator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.kernels import Kernel


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
