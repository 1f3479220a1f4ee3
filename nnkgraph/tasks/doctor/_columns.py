"""What the columns of a feature matrix say about scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import registry
from nnkgraph.checks import row_blocks
from nnkgraph.tasks.doctor._keys import key_facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import Features, FloatArray

_FEW = 10
"""One column in so many may hold most of the variance before that is remarkable."""

_APART = 10.0
"""Scales differ by orders of magnitude where the widest is so many times the usual."""

_TABLE, _PART = 50, 0.25
"""Up to so many columns are a table of all sorts of things: of those, no quarter may be
so narrow; of more, such as pixels, many may be."""

_UNCORRELATED = 1e-3
"""Principal components have correlations below this, measured columns hardly ever."""

_LOOKED_AT = 50
"""Columns that are tested for being principal components."""


def describe_columns(features: Features, kernel: str) -> dict[str, Any]:
    """Describe the columns; empty where they are nodes and no features."""
    if registry.create("kernels", kernel).base == "gram":
        return {}
    names = features.columns
    facts = column_facts(features.x)
    return {
        "columns": int(features.x.shape[1]),
        "names": None if names is None else list(names),
        "keys": key_facts(features),
        **facts,
        "largest_name": None if names is None else names[facts["largest"]],
    }


def column_facts(x: NDArray[Any]) -> dict[str, Any]:
    """Describe the columns; ``scale_apart`` says that a few drown the others.

    Parameters
    ----------
    x : (n, d) array
        The features as they were read; they may be a memory map.

    Returns
    -------
    dict
        ``constant`` columns and which, ``zero_rows``, ``largest`` column and its
        ``largest_share`` of the variance, ``columns_90`` that hold 90 % of it,
        ``scale_ratio`` of the widest to the usual column, the columns that are
        ``narrow`` beside the widest, narrowest first, and what follows.
    """
    n, d = x.shape
    mean = sum(block.sum(axis=0, dtype=np.float64) for block in row_blocks(x)) / n
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    square, zero = np.zeros(d), 0
    for block in row_blocks(x):
        low = np.minimum(low, block.min(axis=0))
        high = np.maximum(high, block.max(axis=0))
        square += np.square(block - mean).sum(axis=0)
        zero += int((~block.any(axis=1)).sum())
    # The computed spread of a constant column may be a rounding error, not 0.
    variance = np.where(low == high, 0.0, square / n)
    return {
        "constant": int((low == high).sum()),
        "constant_columns": np.flatnonzero(low == high).tolist(),
        "zero_rows": zero,
        **_shares(x, mean, variance),
    }


def _shares(x: NDArray[Any], mean: Any, variance: FloatArray) -> dict[str, Any]:
    order = np.argsort(-variance, kind="stable")
    total = float(variance.sum())
    held = np.cumsum(variance[order]) / total if total > 0 else np.ones(len(order))
    some = int(np.searchsorted(held, 0.9 - 1e-12)) + 1
    spread = np.sqrt(np.sort(variance[variance > 0]))
    # The lower median: of two columns it is the narrow one.
    ratio = float(spread[-1] / spread[(len(spread) - 1) // 2]) if len(spread) else 1.0
    narrow = [at for at in order[::-1].tolist() if _is_narrow(variance, at)]
    few = max(1, len(variance) // _FEW)
    apart = len(spread) > 1 and some <= few and ratio >= _APART
    if len(variance) <= _TABLE:
        apart = len(narrow) >= _PART * len(spread) > 0
    return {
        "largest": int(order[0]),
        "largest_share": float(held[0]) if total > 0 else 0.0,
        "columns_90": min(some, len(order)),
        "scale_ratio": ratio,
        "narrow": narrow,
        "scale_apart": apart,
        "principal": apart and _principal(x, mean, variance, order),
    }


def _is_narrow(variance: FloatArray, at: int) -> bool:
    """Return whether a column varies, but next to nothing beside the widest."""
    return bool(0 < variance[at] * _APART**2 <= variance.max())


def _principal(
    x: NDArray[Any], mean: Any, variance: FloatArray, order: NDArray[Any]
) -> bool:
    """Whether columns look like principal components: their scales are wanted then.

    Those come in falling order and are uncorrelated.
    """
    first = order[: min(_LOOKED_AT, int((variance > 0).sum()))]
    if (np.diff(first) < 0).any():
        return False
    products = np.zeros((len(first), len(first)))
    for block in row_blocks(x):
        part = (block[:, first] - mean[first]) / np.sqrt(variance[first])
        products += part.T @ part
    np.fill_diagonal(products, 0.0)
    return bool(np.abs(products).max(initial=0.0) < _UNCORRELATED * len(x))
