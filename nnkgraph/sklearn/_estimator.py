"""What the estimators share: their parameters, what they learn, how they are asked."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.validation import check_is_fitted, validate_data

from nnkgraph import registry
from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.prepare import make_plan, prepared_rows
from nnkgraph.query import check_plan, query_neighborhoods

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.data import Answers, FloatArray, IndexArray
    from nnkgraph.kernels import Kernel

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
            plan = make_plan(
                features,
                k=None if self.k is None else min(int(self.k), n - 1),
                method=self.method,
                kernel=self.kernel,
                sigma=self.sigma,
                scale=self.scale,
            )
            check_plan(plan, self.method, "exact")
            rows = prepared_rows(features, plan)
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
            asked = query_neighborhoods(
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
            return query_neighborhoods(
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
