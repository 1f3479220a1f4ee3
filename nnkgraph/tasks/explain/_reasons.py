"""The arithmetic behind an explanation: terms, residuals and pairwise exclusions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nnkgraph.data import FloatArray, IndexArray
    from nnkgraph.problem import Local

_TIE = 1e-12
"""A candidate this close to a neighbor's plane lies on it, and counts as beyond it."""


@dataclass(frozen=True)
class Reasons:
    """What speaks for and against each of a node's m candidates."""

    similarity: FloatArray
    """(m,) K_qj."""

    terms: FloatArray
    """(m, m) theta_i K_ij: how much of candidate j neighbor i already covers."""

    residual: FloatArray
    """(m,) K_qj - sum of the terms: what the neighbors leave of candidate j."""

    kept: NDArray[np.bool_]
    """(m,) where the weight is positive."""

    hidden_by: IndexArray
    """(m,) the neighbor with the largest term, -1 where no term is positive."""

    excludes: NDArray[np.bool_]
    """(m, m) where neighbor i alone, without the others, leaves no room for j."""

    margin: FloatArray
    """(m, m) by how much it does: minus what would be left of j beside i alone."""

    unwanted: NDArray[np.bool_]
    """(m,) where not even a candidate on its own would get a weight."""

    far: bool
    """Whether all similarities are so small that they had to be scaled up."""


def reasons(local: Local, weights: FloatArray, penalty: float) -> Reasons:
    """Find out what each neighbor does to each candidate of one node.

    Parameters
    ----------
    local : Local
        The similarities of a block with this one node.
    weights : (m,) array
        The node's weights.
    penalty : float
        What method l1 takes from every K_qj; 0 for the others.

    Notes
    -----
    For two candidates i and j, j stays only if K_qi / K_qj < K_ii / K_ij: the upper
    end of the general kernel ratio interval (the paper's Appendix A). It is tested as
    K_qi K_ij / K_ii < K_qj, which also holds for similarities that are zero or
    negative, as long as i on its own would get a weight.
    """
    m = len(weights)
    gram = np.zeros((m, m))
    row, column = np.tril_indices(m)
    gram[row, column] = gram[column, row] = local.gram[0]
    scale = float(np.broadcast_to(local.scale, 1)[0])
    similarity = local.cross[0] * scale
    terms = weights[:, np.newaxis] * gram
    kept = weights > 0
    wanted = local.cross[0] - penalty
    if scale < 1.0 and penalty > 0:
        wanted = np.full(m, -1.0)  # the penalty is beyond all measure then
    if m == 0:
        hidden_by = np.empty(0, np.int64)
    else:
        hidden_by = np.where(terms.max(axis=0) > 0, terms.argmax(axis=0), -1)
    neighbor = kept & (wanted > 0)
    weight_alone = np.zeros(m)
    weight_alone[neighbor] = wanted[neighbor] / gram.diagonal()[neighbor]
    margin = weight_alone[:, np.newaxis] * gram - wanted
    excludes = neighbor[:, np.newaxis] & (margin >= -_TIE * np.abs(wanted))
    np.fill_diagonal(excludes, val=False)
    return Reasons(
        similarity,
        terms,
        similarity - terms.sum(axis=0),
        kept,
        hidden_by,
        excludes,
        margin,
        wanted <= 0,
        scale < 1.0,
    )
