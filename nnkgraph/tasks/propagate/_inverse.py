"""Many labelings of one small graph: invert its Laplacian once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from nnkgraph.data import FloatArray, IndexArray

MOST = 5000
"""More nodes than this are not inverted: a labeling is solved as fast without."""


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
            raise ParameterError(
                f"solver inverse is for graphs of up to {MOST} nodes, not {n}"
            )
        self._component = component
        kernel = np.zeros((n, int(component.max(initial=0)) + 1))
        kernel[np.arange(n), component] = np.where(root > 0, root, 1.0)
        self._kernel = kernel / np.linalg.norm(kernel, axis=0)
        matrix = np.eye(n) - s.toarray() + self._kernel @ self._kernel.T
        inverse = np.linalg.inv(matrix)
        self._inverse = (inverse + inverse.T) / 2

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
        rows = self._inverse[labelled]  # of a symmetric matrix: columns too
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
        everywhere = np.zeros(len(self._inverse))
        everywhere[asked] = root
        y[:, -1] += (self._inverse @ everywhere)[asked]
        return y
