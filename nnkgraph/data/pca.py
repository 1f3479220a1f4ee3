"""Principal components: learned from some rows, applied to them or to others.

Rows are centered while they are looked at, a block at a time: sparse ones stay sparse.
Covariances and products with vectors are BLAS's, on one thread, so that the axes do not
depend on the number of processors; another BLAS may give other last digits. Coordinates
of a row do not depend on the rows beside it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nnkgraph.data import SparseRows
from nnkgraph.data.rows import dense_rows
from nnkgraph.errors import InputError, ResourceError
from nnkgraph.runtime.arrays import check_fits, new_array, row_slices
from nnkgraph.runtime.limits import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nnkgraph.data import FloatArray

_EXACT, _EXACT_SPARSE = 4000, 1000
"""Up to so many columns, or rows, or sparse rows, they are those of a small matrix."""

_MOST = 1 << 24
"""Numbers that a graph stores of a projection at most."""

_BLOCK = 1024
"""Rows or columns that are centered at once."""

_RESTARTS = 1000
_TIED = 1 - 1e-6  # entries of this share of the largest count as equally large


@dataclass(frozen=True, eq=False)
class Projection:
    """Where the principal components of some rows are, and what they hold."""

    center: FloatArray
    """(d,) the mean of the rows."""

    axes: FloatArray
    """(p, d) of length 1, the widest first; zeros where no variance was left."""

    share: float
    """Of the variance that the components hold."""

    @classmethod
    def of(cls, x: Any, count: int, name: str, shift: Any = 0.0) -> Projection:
        """Learn so many components of dense or sparse rows, less a shift.

        The entry of an axis that is largest in size is positive, the first of equals.

        Raises
        ------
        InputError
            For more components than rows or columns.
        """
        # SciPy's BLAS has to be there when it is told about threads.
        import scipy.linalg
        import scipy.sparse.linalg  # noqa: F401
        from threadpoolctl import threadpool_limits

        check_count(count, x.shape, name)
        center = _mean(x)
        with threadpool_limits(limits=1, user_api="blas"):
            values, axes, total = _eigenvectors(x, center, count, name)
        axes = np.array(axes, order="C")
        lost = values <= values[0] * np.finfo(np.float64).eps * max(x.shape)
        axes[lost] = 0.0
        size = np.abs(axes)
        first = (size >= _TIED * size.max(axis=1, keepdims=True)).argmax(axis=1)
        axes *= np.sign(axes[np.arange(count), first])[:, np.newaxis]
        share = float(values[~lost].sum()) / total if total > 0 else 1.0
        return cls(center - shift, axes, min(1.0, share))

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Projection:
        """Return what `stored` wrote; a `ValueError` says that it is damaged."""
        both = stored["projection"]
        center, axes = (
            np.frombuffer(base64.b64decode(both[one], validate=True), "<f8")
            for one in ("center", "axes")
        )
        if len(axes) != len(center) * int(stored["pca"]) or not len(axes):
            raise ValueError("the principal components are incomplete")
        if not (np.isfinite(center).all() and np.isfinite(axes).all()):
            raise ValueError("the principal components are no numbers")
        share = float(stored["pca_share"])
        return cls(center, axes.reshape(-1, len(center)), share)

    def stored(self) -> dict[str, Any]:
        """Return it as graphs store it: little-endian float64 in base64."""
        both = {"center": self.center, "axes": self.axes}
        packed = {
            name: base64.b64encode(np.asarray(one, "<f8").tobytes()).decode()
            for name, one in both.items()
        }
        return {"projection": packed, "pca_share": self.share}

    def applied(self, x: Any, shift: Any = 0.0) -> FloatArray:
        """Return the coordinates of rows; of sparse ones a shift is still to be taken.

        Every row is added up by itself, column by column.
        """
        turned = np.ascontiguousarray(self.axes.T)
        offset = _by_rows((self.center + shift)[np.newaxis]) @ turned
        result: FloatArray = new_array((len(x), len(self.axes)), np.float64)
        for rows in row_slices(len(x), 32 * x.shape[1]):
            if isinstance(x, SparseRows):
                result[rows] = x[rows].matrix() @ turned - offset
            else:
                result[rows] = _by_rows(x[rows] - self.center) @ turned
        return result

    def in_words(self, columns: int) -> str:
        """Return what it holds, in a few words."""
        size = in_words(self.axes.nbytes + self.center.nbytes)
        return (
            f"pca: {len(self.axes)} principal components of {columns:,} columns hold "
            f"{100 * self.share:.1f} % of the variance; they take {size}"
        )


def check_count(count: int, shape: tuple[int, int], name: str) -> None:
    """Refuse more components than there can be, or than are stored."""
    n, d = shape
    if count > min(n, d):
        raise InputError(
            f"{name}: {count} principal components are wanted, but {n} rows of {d} "
            f"columns have at most {min(n, d)}"
        )
    if count * d > _MOST:
        raise InputError(
            f"{name}: {count} principal components of {d:,} columns are too many "
            f"numbers to be stored: {_MOST // d} at most"
        )


def memory_of(x: Any, count: int) -> int:
    """Estimate the bytes that it takes to learn so many components of rows."""
    n, d = map(int, x.shape)
    found = 24 * min(n, d) ** 2 if _is_exact(x) else 16 * d * (count + 20)
    return found + 16 * d * count


def _is_exact(x: Any) -> bool:
    """Return whether all components are found at once, by rows or by columns."""
    n, d = map(int, x.shape)
    few = _EXACT_SPARSE if isinstance(x, SparseRows) else _EXACT
    return d <= _EXACT or n <= few


def _mean(x: Any) -> FloatArray:
    mean: FloatArray
    if isinstance(x, SparseRows):
        mean = np.bincount(x.indices, x.data, x.columns) / len(x)
    else:
        mean = x.mean(axis=0, dtype=np.float64)
    return mean


def _by_rows(block: FloatArray) -> Any:
    """Return an array as a matrix of scipy, whose products are summed row by row.

    BLAS would sum a row in another order where it has others beside it.
    """
    from scipy.sparse import csr_array

    b, d = block.shape
    places = np.tile(np.arange(d, dtype=np.int32), b)
    ends = np.arange(0, b * d + 1, d)
    return csr_array((block.ravel(), places, ends.astype(np.int32)), (b, d))


def _slices(count: int) -> Iterator[slice]:
    """Cut rows, or columns, into blocks that do not depend on the memory there is."""
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


def _centered(x: Any, center: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of rows less the center."""
    for rows in _slices(len(x)):
        yield rows, dense_rows(x[rows]) - center


def _turned(x: Any, center: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of columns less the center, each a row."""
    columns = x.transposed() if isinstance(x, SparseRows) else x.T
    for some in _slices(x.shape[1]):
        yield some, dense_rows(columns[some]) - center[some, np.newaxis]


def _eigenvectors(
    x: Any, center: FloatArray, count: int, name: str
) -> tuple[FloatArray, FloatArray, float]:
    """Return sums of squares along axes, the widest first, the axes, and their total.

    The total is over all axes there are.
    """
    if not _is_exact(x):
        return _iterated(x, center, count)
    n, d = x.shape
    by_rows = n < d
    check_fits(24 * min(n, d) ** 2, name, "a matrix of covariances")
    squares = np.zeros((min(n, d),) * 2)
    for _, block in (_turned if by_rows else _centered)(x, center):
        squares += block.T @ block
    total = float(np.trace(squares))
    values, vectors = _largest(squares, count)
    if not by_rows:
        return values, vectors.T, total
    axes = np.empty((count, d))
    for some, block in _turned(x, center):
        axes[:, some] = (block @ vectors).T
    # Narrow ones are not quite at right angles to those before them.
    return values, np.linalg.qr(axes.T)[0].T, total


def _largest(squares: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues and their vectors, as columns."""
    from scipy.linalg import eigh

    last = len(squares) - 1
    some = [last - count + 1, last]
    values, vectors = eigh(squares, overwrite_a=True, subset_by_index=some)
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def _iterated(
    x: Any, center: FloatArray, count: int
) -> tuple[FloatArray, FloatArray, float]:
    """Find them by Lanczos steps, which begin at a vector that is always the same."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    d = x.shape[1]
    product, total = (_sparse if isinstance(x, SparseRows) else _dense)(x, center)
    operator: Any = LinearOperator((d, d), matvec=product, dtype=np.float64)
    try:
        values, vectors = eigsh(
            operator,
            k=count,
            which="LA",
            v0=np.random.default_rng(0).normal(size=d),
            ncv=min(d - 1, max(40, 2 * count + 10)),
            maxiter=_RESTARTS,
        )
    except ArpackNoConvergence as error:
        raise ResourceError(
            f"{count} principal components did not converge: ask for fewer"
        ) from error
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1].T, total


Product: TypeAlias = "Callable[[FloatArray], FloatArray]"


def _sparse(x: SparseRows, center: FloatArray) -> tuple[Product, float]:
    """Return the product with the matrix of covariances, and the sum of variances."""
    rows = x.matrix()

    def product(vector: FloatArray) -> FloatArray:
        vector = vector.ravel()
        along = rows @ vector - center @ vector
        found: FloatArray = rows.T @ along - center * along.sum()
        return found

    return product, float(x.moments()[3].sum())


def _dense(x: FloatArray, center: FloatArray) -> tuple[Product, float]:
    """Return the same of dense rows, which are read for every product."""

    def product(vector: FloatArray) -> FloatArray:
        found = np.zeros(len(center))
        for _, block in _centered(x, center):
            found += (block @ vector.ravel()) @ block
        return found

    total = sum(float(np.square(block).sum()) for _, block in _centered(x, center))
    return product, total
