"""Estimators for scikit-learn: a graph, a classifier and a regressor.

They need the extra ``sklearn``: ``pip install 'nnkgraph[sklearn]'``.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        "nnkgraph.sklearn needs scikit-learn: pip install 'nnkgraph[sklearn]'"
    )

from nnkgraph.sklearn._predictors import NNKClassifier, NNKRegressor
from nnkgraph.sklearn._transformer import NNKTransformer

__all__ = ["NNKClassifier", "NNKRegressor", "NNKTransformer"]
