"""The study of graphs: what it compares is what it says, and it goes on."""

import csv

import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.manifold import trustworthiness
from sklearn.neighbors import kneighbors_graph

from nnkgraph.data import Graph
from paper import study
from paper.data import Set
from paper.inverse import InversePropagator
from paper.setting import Setting
from paper.study_graphs import PAPER, Kind, Prepared, graph_of, kinds
from paper.study_tasks import TASKS, _eigenvectors, _kept_near, judged


@pytest.fixture(scope="module")
def blobs():
    draw = np.random.default_rng(0)
    y = np.arange(240) % 3
    x = 12.0 * np.eye(3, 5)[y] + draw.normal(size=(240, 5))
    return Set("blobs", x, y)


@pytest.fixture
def ready(blobs):
    return Prepared.of(blobs, 1000)


def test_neighbors_are_joined_by_union_or_where_both_agree(ready):
    own = kneighbors_graph(ready.x, 5).toarray()
    union, directed, _ = graph_of(ready, Kind("knn", 5, rule="max"))
    assert np.array_equal(directed.toarray(), own)
    assert np.array_equal(union.toarray(), np.maximum(own, own.T))
    mutual, _, _ = graph_of(ready, Kind("knn", 5, rule="mutual"))
    assert np.array_equal(mutual.toarray(), np.minimum(own, own.T))
    kept, _, _ = graph_of(ready, Kind("knn", 5, rule="mutual", min_degree=1))
    nearest = kneighbors_graph(ready.x, 1).toarray()
    assert np.array_equal(
        kept.toarray(), np.maximum(mutual.toarray(), np.maximum(nearest, nearest.T))
    )


def test_memberships_are_those_of_umap(ready):
    graph, _, _ = graph_of(ready, Kind("umap", 15))
    dense = np.linalg.norm(ready.x[:, None] - ready.x, axis=2)
    np.fill_diagonal(dense, np.inf)
    a = np.zeros(dense.shape)
    for i, row in enumerate(dense):
        near = np.argsort(row)[:14]
        above = row[near] - row[near].min()
        width = brentq(
            lambda s, above=above: np.exp(-above / s).sum() - np.log2(15), 1e-6, 1e3
        )
        a[i, near] = np.exp(-above / width)
    assert np.allclose(graph.toarray(), a + a.T - a * a.T, atol=1e-6)


def test_weights_of_scanpy_are_symmetric_and_follow_both_bandwidths(ready):
    graph, _, _ = graph_of(ready, Kind("scanpy", 15))
    dense = np.linalg.norm(ready.x[:, None] - ready.x, axis=2)
    near = np.sort(dense, axis=1)[:, 1:15]
    square = np.median(near, axis=1) ** 2 / 2
    i, j = graph.nonzero()
    total = square[i] + square[j]
    wanted = np.sqrt(2 * np.sqrt(square[i] * square[j]) / total)
    wanted *= np.exp(-(dense[i, j] ** 2) / total)
    assert np.allclose(graph[i, j], wanted)


@pytest.mark.parametrize("weights", ["one", "kernel"])
def test_other_weights_keep_the_edges(ready, weights):
    plain, _, sigma = graph_of(ready, Kind(sigma=1.0, min_degree=3))
    other, _, _ = graph_of(ready, Kind(sigma=1.0, min_degree=3, weights=weights))
    assert np.array_equal(plain.indices, other.indices)
    assert (other.data >= plain.data - 1e-12).all()  # weights are at most similarities
    gap = np.linalg.norm(ready.x[other.nonzero()[0]] - ready.x[other.indices], axis=1)
    known = np.exp(-0.5 * (gap / sigma) ** 2) if weights == "kernel" else 1.0
    assert np.allclose(other.data, known)


def test_what_is_kept_near_is_what_scikit_learn_says(ready):
    graph, _, _ = graph_of(ready, Kind(min_degree=3, rule="max", sigma=3.0))
    component = np.zeros(240, int)
    inverse = InversePropagator(Graph(graph))
    vectors = _eigenvectors(inverse, component, 3)
    found = _kept_near(ready, vectors, component)
    near = vectors[:, :10]
    assert found["trustworthiness"] == pytest.approx(
        trustworthiness(ready.x, near, n_neighbors=15), abs=1e-4
    )
    assert found["continuity"] == pytest.approx(
        trustworthiness(near, ready.x, n_neighbors=15), abs=1e-4
    )


def test_clear_clusters_are_found_by_every_task(ready):
    row = judged(ready, *graph_of(ready, Kind(min_degree=3)))
    assert row["isolated"] == 0
    assert row["components"] <= 3
    assert row["loo"] < 0.02
    assert row["leiden"] > 0.6
    assert all(row[task] is not None for task in TASKS)


def test_columns_of_different_kinds_are_standardized(blobs):
    x = blobs.x * [1, 1e4, 1, 1, 1]
    ready = Prepared.of(Set("mixed", x, blobs.y), 100)
    assert len(ready.x) == 100
    assert np.allclose(ready.x.std(axis=0), 1.0)


def test_no_two_graphs_have_one_name_and_the_quick_ones_are_among_all():
    every = kinds()
    assert len({kind.name for kind in every}) == len(every)
    assert {kind.name for kind in kinds(quick=True)} <= {kind.name for kind in every}
    assert PAPER in {kind.name for kind in every}


@pytest.mark.slow
def test_the_study_runs_and_goes_on(tmp_path, blobs):
    home = tmp_path / "data"
    home.mkdir()
    draw = np.random.default_rng(1)
    for name in ("first", "second"):
        x = blobs.x + draw.normal(size=blobs.x.shape)
        np.savez(home / f"{name}.npz", X=x, y=blobs.y)
    setting = Setting(tmp_path / "out", home, quick=True, scale=0.2, workers=1)
    study.run(setting)
    path = setting.out / "study.csv"
    rows = path.read_text().splitlines()
    assert len(rows) == 1 + 2 * len(kinds(quick=True))
    path.write_text("\n".join([*rows[:-1], ""]))
    study.run(setting)
    assert path.read_text().splitlines() == rows
    with (setting.out / "study_means.csv").open() as file:
        means = {row["graph"]: row for row in csv.DictReader(file)}
    assert float(means[PAPER]["leiden_gain"]) == 0.0
    assert (setting.out / "study.png").stat().st_size > 10_000
    assert (setting.out / "study_sigma.png").stat().st_size > 10_000
