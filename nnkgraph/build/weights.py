"""What the edges of a graph weigh, once the rule has chosen them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data.pairs import DISTANCES, SQUARED
from nnkgraph.data.similarity import similarities
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from nnkgraph.data import Candidates, FloatArray, IndexArray
    from nnkgraph.kernels import Kernel
    from nnkgraph.methods import Method

WEIGHTS = {
    "regression": "what the method gives",
    "kernel": "the similarity of the two nodes",
    "one": "1",
}


def check_weights(kind: str, method: Method, kernel: Kernel) -> None:
    """Refuse similarities that do not follow from the distances of candidates."""
    if kind not in WEIGHTS:
        choices = ", ".join(WEIGHTS)
        raise ParameterError(f"unknown weights {kind!r}; choose from {choices}")
    if kind != "kernel":
        return
    if not (method.local and method.uses_kernel):
        name = registry.spec(method).partition(":")[0]
        raise ParameterError(
            f"method {name!r} does not go by the kernel's similarities, which "
            "therefore are no weights for its edges: use weights regression or one"
        )
    if not (kernel.form and kernel.nearness in DISTANCES):
        raise ParameterError(
            "the similarities of this kernel do not follow from distances: use weights "
            "regression or one"
        )


class Similar:
    """The similarity of the ends of edges, from the distances of candidates.

    It is the same from both sides: with local bandwidths the larger of the two.
    """

    def __init__(self, kernel: Kernel, candidates: Candidates, least: float) -> None:
        self._form, self._squared = kernel.form, kernel.nearness in SQUARED
        self._coefficients = kernel.coefficients(candidates.distance)
        # A similarity may vanish beside 1, and its edge is still one.
        self._least = max(least, float(np.finfo(np.float64).tiny))

    def __call__(
        self, i: IndexArray, j: IndexArray, distance: FloatArray
    ) -> FloatArray:
        """Return the (e,) weights of edges between i and j, which are so far apart."""
        values: Any = (distance**2 if self._squared else distance)[:, np.newaxis]
        found: FloatArray = np.full((len(i), 1), self._least)
        for end in (i, j):
            similar = similarities(self._form, self._coefficients[end], values.copy())
            found = np.maximum(found, similar)
        return found[:, 0]
