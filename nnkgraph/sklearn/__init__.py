"""Estimators for scikit-learn: a graph, a classifier and a regressor.

They need the extra ``sklearn``: ``pip install 'nnkgraph[sklearn]'``.
"""

from __future__ import annotations

try:
    # Other packages bring scikit-learn, too, but maybe one that is too old for this.
    from sklearn.utils.validation import validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(
        "nnkgraph.sklearn needs scikit-learn 1.6 or newer: "
        "pip install 'nnkgraph[sklearn]'"
    ) from (None if isinstance(error, ModuleNotFoundError) else error)

from nnkgraph.sklearn._predictors import NNKClassifier, NNKRegressor
from nnkgraph.sklearn._transformer import NNKTransformer

__all__ = ["NNKClassifier", "NNKRegressor", "NNKTransformer"]
