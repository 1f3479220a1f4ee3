"""Estimators for scikit-learn: a graph, a classifier and a regressor.

They need the extra ``sklearn``: ``pip install 'nnkgraph[sklearn]'``.
"""

from __future__ import annotations

try:
    import sklearn  # noqa: F401 - asked first, so that only its absence is caught
except ModuleNotFoundError:
    raise ImportError(
        "nnkgraph.sklearn needs scikit-learn: pip install 'nnkgraph[sklearn]'"
    ) from None

from nnkgraph.sklearn._predictors import NNKClassifier, NNKRegressor
from nnkgraph.sklearn._transformer import NNKTransformer

__all__ = ["NNKClassifier", "NNKRegressor", "NNKTransformer"]
