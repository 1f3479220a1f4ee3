"""Kernel ``correlation``: similarities by Pearson's r, and what has none."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.runtime import registry
from nnkgraph.tasks.verify import verify


def draw():
    """Return rows of very different means and spreads."""
    rng = np.random.default_rng(0)
    shift, size = rng.normal(size=(2, 220, 1))
    return np.exp(3 * size) * rng.normal(size=(220, 7)) + 50 * shift


@pytest.mark.parametrize("search", ["exact", "kdtree", "partition"])
def test_candidates_are_those_that_correlate_most(search):
    x = draw()
    apart = cdist(x, x, "correlation")
    np.fill_diagonal(apart, np.inf)
    best = np.argsort(apart, axis=1, kind="stable")[:, :9]
    found = find_candidates(x, k=9, kernel="correlation", search=search)
    assert np.array_equal(found.index, best)
    known = np.take_along_axis(apart, best, 1)
    assert found.distance**2 / 2 == pytest.approx(known, abs=1e-12)


def test_the_graph_is_that_of_its_similarities():
    x = draw()
    graph = build_graph(x, k=9, kernel="correlation", weights="regression")
    assert graph.report["certificate"]["kkt_max"] < 1e-12
    assert not verify(x, graph).failed
    similar = (1 + np.corrcoef(x)) / 2
    assert np.linalg.eigvalsh(similar).min() > -1e-12
    known = build_graph(
        (similar + similar.T) / 2, k=9, kernel="precomputed", min_degree=3
    )
    assert abs(graph.adjacency - known.adjacency).max() < 1e-7


def test_neither_offset_nor_factor_of_a_row_counts():
    x = draw()
    moved = x * np.linspace(0.5, 20, 220)[:, None] + np.linspace(-9, 9, 220)[:, None]
    one, two = (build_graph(of, k=9, kernel="correlation") for of in (x, moved))
    assert abs(one.adjacency - two.adjacency).max() < 1e-9


def test_a_common_offset_does_not_drown_differences():
    x = np.random.default_rng(0).normal(size=(50, 6))
    rows = registry.create("kernels", "correlation").prepare(x + 1e7, "x")
    assert rows @ rows.T == pytest.approx(np.corrcoef(x), abs=1e-7)


def test_constant_rows_are_refused_with_their_place(run, tmp_path):
    x = draw()
    x[[7, 30]] = 0.1  # whose mean is not exactly that
    np.save(tmp_path / "x.npy", x)
    build = ("build", tmp_path / "x.npy", "-o", tmp_path / "g.npz")
    done = run(*build, "--kernel", "correlation")
    assert done.code == 3
    assert "row 7 (counted from 0) has the same value in all columns" in done.err
    assert "2 such rows" in done.err
    assert len(done.lines) == 1
    assert not (tmp_path / "g.npz").exists()
