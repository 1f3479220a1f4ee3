"""Identical rows: which they are, what is left of them, and where they come back."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nnkgraph.data import Candidates, Graph, SparseGram, SparseRows
from nnkgraph.data.duplicates import (
    Rows,
    candidates_with_copies,
    distinct_rows,
    first_at_no_distance,
    first_equal,
    with_copies,
)
from nnkgraph.errors import InputError

X = np.array([[1.0, 0], [2, 0], [1, 0], [0, 3], [2, 0], [1, 0], [0, 0]])
FIRST = [0, 1, 0, 3, 1, 0, 6]


def kinds(x):
    return [x, SparseRows.of(csr_array(x), "")]


@pytest.mark.parametrize("x", kinds(X))
def test_the_first_of_equal_rows_is_found(x):
    assert first_equal(x).tolist() == FIRST


@pytest.mark.parametrize("x", kinds(X))
def test_copies_are_counted_and_left_out_or_kept(x):
    merged, kept = (distinct_rows(x, policy, "x") for policy in ("merge", "keep"))
    assert merged.copies == kept.copies == 3
    assert merged.origin.tolist() == [0, 1, 3, 6]
    assert len(merged.x) == 4
    assert merged.kept_copies is None
    assert kept.origin is None
    assert kept.kept_copies.tolist() == FIRST
    with pytest.raises(InputError, match=r"x: row 2 repeats row 0 .* 3 rows repeat"):
        distinct_rows(x, "error", "x")


@pytest.mark.parametrize("x", kinds(X[[0, 1, 3]]))
@pytest.mark.parametrize("policy", ["merge", "keep", "error"])
def test_rows_that_all_differ_stay_as_they_are(x, policy):
    rows = distinct_rows(x, policy, "x")
    assert (rows.x is x, rows.first, rows.origin) == (True, None, None)
    assert rows.copies == 0
    assert rows.kept_copies is None


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_at_no_distance_are_one_with_all_they_lead_to(sparse):
    # 4 is one with 3, and that with 1; 0 and 2 are alone.
    far = 1.0 + np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    np.fill_diagonal(far, 0)
    for i, j in ((1, 3), (3, 4)):
        far[i, j] = far[j, i] = 0
    given = far
    if sparse:
        i, j = np.indices((5, 5)).reshape(2, -1)
        given = SparseGram.of(csr_array((far.ravel(), (i, j)), (5, 5)))
    assert first_at_no_distance(given).tolist() == [0, 1, 2, 1, 1]


@pytest.mark.parametrize("base", ["gram", "distance-matrix"])
def test_columns_of_a_matrix_go_with_the_rows(base):
    points = np.array([0.0, 2, 0, 5])
    far = np.abs(np.subtract.outer(points, points))
    x = far if base == "distance-matrix" else np.exp(-far)
    rows = distinct_rows(x, "merge", "x", base=base)
    assert rows.origin.tolist() == [0, 1, 3]
    assert rows.x.tolist() == x[np.ix_([0, 1, 3], [0, 1, 3])].tolist()


def test_copies_have_the_candidates_of_their_first_row():
    index = np.array([[1, 2], [0, -1], [3, 1], [2, 0]])
    distance = np.arange(8.0).reshape(4, 2)
    rows = distinct_rows(X, "merge", "x")
    found = candidates_with_copies(Candidates(index, distance), rows)
    known = [[1, 3], [0, -1], [1, 3], [6, 1], [0, -1], [1, 3], [3, 0]]
    assert found.index.tolist() == known
    assert found.distance.tolist() == distance[[0, 1, 0, 2, 1, 0, 3]].tolist()
    alone = Candidates(index, distance)
    assert candidates_with_copies(alone, Rows(X)) is alone


@pytest.mark.parametrize("directed", [False, True])
def test_copies_hang_on_their_first_row(directed):
    adjacency = csr_array(
        np.array([[0, 0.5, 0, 0], [0.5, 0, 0, 0.25], [0] * 4, [0] * 4])
    )
    graph = Graph(
        adjacency,
        {},
        directed=directed,
        errors=np.array([0.1, 0.2, 0.3, 0.4]),
        candidates=np.array([[1, 3], [0, 2], [1, -1], [0, 1]]),
        bridges=np.array([[1, 3]]),
        distances=np.array([1.0, 2.0, 3.0]),
    )
    made = with_copies(graph, distinct_rows(X, "merge", "x"))
    weights, far = np.zeros((7, 7)), np.zeros((7, 7))
    weights[0, 1], weights[1, 0], weights[1, 6] = 0.5, 0.5, 0.25
    far[0, 1], far[1, 0], far[1, 6] = 1, 2, 3
    for copy, first in ((2, 0), (4, 1), (5, 0)):
        weights[copy, first] = 1
        weights[first, copy] = 0 if directed else 1
    assert made.adjacency.toarray().tolist() == weights.tolist()
    row, column = made.adjacency.nonzero()
    assert made.distances.tolist() == far[row, column].tolist()
    assert made.errors.tolist() == [0.1, 0.2, 0, 0.3, 0, 0, 0.4]
    known = [[1, 6], [0, 3], [0, -1], [1, -1], [1, -1], [0, -1], [0, 1]]
    assert made.candidates.tolist() == known
    assert made.bridges.tolist() == [[1, 6]]
    assert with_copies(graph, Rows(X)) is graph
