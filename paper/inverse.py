"""Many labelings of one small graph: invert its Laplacian once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.tasks.laplacian import block
from nnkgraph.tasks.propagate import Propagator, Solved, error_bound, residual

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, Graph, IndexArray

MOST = 5000
"""More nodes than this are not inverted: a labeling is solved as fast without."""

_GOOD = 1e-9
"""Bound on the relative error up to which a quick solution is taken."""


class Inverse:
    """The inverse G of I - S + Q Q^T, where Q spans the kernel of I - S.

    A harmonic function is G a + Q b with a zero but at the labels, and Q^T a = 0. A
    labeling therefore needs a dense solve no larger than the number of its labels.

    Parameters
    ----------
    s : csr_array
        D^-1/2 W D^-1/2 of the whole graph.
    root : array
        Roots of the degrees.
    component : array
        The component of every node.
    """

    def __init__(self, s: csr_array, root: FloatArray, component: IndexArray) -> None:
        n = len(root)
        if n > MOST:
            raise ParameterError(f"graphs of up to {MOST} nodes are inverted, not {n}")
        self._component = component
        kernel = np.zeros((n, int(component.max(initial=0)) + 1))
        kernel[np.arange(n), component] = np.where(root > 0, root, 1.0)
        self._kernel = kernel / np.linalg.norm(kernel, axis=0)
        matrix = np.eye(n) - s.toarray() + self._kernel @ self._kernel.T
        inverse = np.linalg.inv(matrix)
        self.matrix = (inverse + inverse.T) / 2

    def solve(
        self,
        asked: IndexArray,
        labelled: IndexArray,
        values: FloatArray,
        root: FloatArray,
    ) -> Any:
        """Return the functions at the nodes asked for, and the walk to a label.

        The last column solves (I - S) y = root with zeros at the labels.
        """
        kernel = self._kernel[:, np.unique(self._component[labelled])]
        count = len(labelled)
        rows = self.matrix[labelled]  # of a symmetric matrix: columns too
        from_labels = rows[:, asked]
        own = rows[:, labelled]
        size = count + kernel.shape[1]
        system = np.zeros((size, size))
        system[:count, :count] = own
        system[:count, count:] = kernel[labelled]
        system[count:, :count] = kernel[labelled].T
        sides = np.zeros((size, values.shape[1] + 1))
        sides[:count, :-1] = values
        sides[:count, -1] = -(from_labels @ root)
        sides[count:, -1] = -(root @ kernel[asked])
        found = np.linalg.solve(system, sides)
        y = from_labels.T @ found[:count] + kernel[asked] @ found[count:]
        everywhere = np.zeros(len(self.matrix))
        everywhere[asked] = root
        y[:, -1] += (self.matrix @ everywhere)[asked]
        return y


class InversePropagator(Propagator):
    """A small graph that labels are propagated on very often: it is inverted once."""

    def __init__(self, graph: Graph, name: str = "graph") -> None:
        super().__init__(graph, name)
        self._inverse = Inverse(self.scaled, self.root, self.component)

    @property
    def inverted(self) -> FloatArray:
        """The inverse of I - S, with 1 for its kernel."""
        return self._inverse.matrix

    def solved(
        self, asked: IndexArray, labelled: IndexArray, values: FloatArray, solver: str
    ) -> Solved:
        """Solve with the inverse, or with ``solver`` where that is not accurate."""
        if len(asked):
            root = self.root[asked]
            y = self._inverse.solve(asked, labelled, values, root)
            towards: Any = block(self.scaled, asked, labelled)
            sides = np.column_stack([towards @ values, root])
            left = residual(block(self.scaled, asked, asked), sides, y)
            error = error_bound(left, y, root)
            if error <= _GOOD:
                return Solved(y[:, :-1], error, len(asked), 0)
        # Nothing to solve, or digits were lost where the graph barely hangs together.
        return super().solved(asked, labelled, values, solver)
