"""What edges weigh: what the regression gives, the similarity of their ends, or 1."""

import numpy as np
import pytest

from nnkgraph import build_graph, find_candidates, formats, verify
from nnkgraph.build.shards import (
    Shard,
    build_shard,
    merge_graph,
    read_parts,
    write_part,
)
from nnkgraph.errors import ParameterError
from nnkgraph.runtime.progress import Stages

X = np.random.default_rng(5).normal(size=(150, 3))
X[140:] = X[:10]
DISTINCT = X[:140]


def similarity(kernel, sigma, i, j):
    """Return it by its definition, without any code of ours."""
    if kernel == "cosine":
        cosine = X[i] @ X[j] / np.linalg.norm(X[i]) / np.linalg.norm(X[j])
        return (1 + cosine) / 2
    if kernel == "laplacian":
        return np.exp(-np.abs(X[i] - X[j]).sum() / sigma)
    return np.exp(-np.square(X[i] - X[j]).sum() / (2 * sigma**2))


def kth(kernel, k):
    order = 1 if kernel == "laplacian" else 2
    far = np.linalg.norm(DISTINCT[:, None] - DISTINCT[None], ord=order, axis=2)
    return np.sort(far, axis=1)[:, k]


@pytest.mark.parametrize("rule", ["error", "error-union", "mean", "none"])
@pytest.mark.parametrize("sigma", ["auto", "local", 0.7])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_kernel_weights_are_similarities_of_chosen_edges(kernel, sigma, rule):
    how = {"k": 9, "kernel": kernel, "sigma": sigma, "symmetrize": rule}
    how["min_degree"] = 0
    plain = build_graph(X, **how, weights="regression")
    graph = build_graph(X, **how, weights="kernel")
    assert (graph.adjacency.indices == plain.adjacency.indices).all()
    assert (graph.adjacency.indptr == plain.adjacency.indptr).all()
    widths = np.full(len(X), plain.provenance["sigma"])
    if sigma == "local":
        widths[:140] = kth(kernel, 9) / 3
    edges = graph.adjacency.tocoo()
    for i, j, weight in zip(edges.row, edges.col, edges.data, strict=True):
        wanted = similarity(kernel, max(widths[i], widths[j]), i, j)
        assert weight == pytest.approx(1.0 if max(i, j) >= 140 else wanted, rel=1e-12)
    assert rule == "none" or abs(graph.adjacency - graph.adjacency.T).nnz == 0
    assert "weights" not in plain.provenance
    assert graph.provenance == plain.provenance | {"weights": "kernel"}


def test_the_cosine_is_a_weight_too():
    graph = build_graph(X, k=9, kernel="cosine", weights="kernel")
    edges = graph.adjacency.tocoo()
    for i, j, weight in zip(edges.row, edges.col, edges.data, strict=True):
        assert weight == pytest.approx(similarity("cosine", None, i, j), rel=1e-12)


@pytest.mark.parametrize("method", ["nnk", "knn", "kstar", "aew", "kalofolias"])
def test_ones_are_ones_whatever_the_method(method):
    plain = build_graph(X, k=9, method=method, weights="regression")
    graph = build_graph(X, k=9, method=method, weights="one")
    assert (graph.adjacency.indices == plain.adjacency.indices).all()
    assert (graph.adjacency.data == 1.0).all()
    assert not verify(X, graph).failed


def test_knn_has_the_similarity_anyway():
    one, two = (build_graph(X, k=9, method="knn", weights=w) for w in (None, "kernel"))
    np.testing.assert_allclose(one.adjacency.data, two.adjacency.data, rtol=1e-13)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "aew"}, "does not go by the kernel's similarities"),
        ({"method": "kstar"}, "does not go by the kernel's similarities"),
        ({"kernel": "linear"}, "follow from distances"),
        ({"kernel": "lle"}, "follow from distances"),
    ],
)
def test_similarities_that_do_not_follow_from_distances_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        build_graph(X, weights="kernel", **options)
    with pytest.raises(ParameterError, match="unknown weights 'heavy'"):
        build_graph(X, weights="heavy")


@pytest.mark.parametrize("weights", ["kernel", "one"])
def test_bridges_weigh_as_other_edges_do(weights):
    apart = np.concatenate([X, X + 60.0])
    graph = build_graph(apart, k=5, connect="mst", weights=weights)
    (bridge,) = graph.bridges
    assert graph.adjacency[*bridge] == (1.0 if weights == "one" else 1e-8)
    assert not verify(apart, graph).failed


@pytest.mark.parametrize("weights", ["kernel", "one"])
@pytest.mark.parametrize(
    ("sigma", "options"),
    [
        ("auto", {"grow": 0.5}),
        *((sigma, {"digits": 3}) for sigma in ("auto", "local")),
        *((sigma, {"min_degree": 4}) for sigma in ("auto", "local")),
    ],
)
def test_verify_derives_the_weights_again(weights, sigma, options):
    graph = build_graph(X, k=9, weights=weights, sigma=sigma, **options)
    assert not verify(X, graph).failed
    assert not verify(X, graph, sample=30).failed
    graph.adjacency.data[:] *= 0.9
    assert "weights" in [check.name for check in verify(X, graph).failed]
    told = verify(X, build_graph(X, k=9, weights="regression", sigma=sigma, **options))
    assert not told.failed


def test_weights_that_were_stored_as_others_are_found_out():
    graph = build_graph(X, k=9, weights="regression")
    graph.provenance["weights"] = "kernel"
    assert [check.name for check in verify(X, graph).failed] == ["weights"]


@pytest.mark.parametrize("sigma", ["auto", "local"])
@pytest.mark.parametrize("weights", ["kernel", "one"])
def test_shards_need_no_features_to_weigh(tmp_path, weights, sigma):
    how = {"k": 9, "sigma": sigma, "weights": weights}
    found, knn = find_candidates(X, k=9), tmp_path / "knn.npz"
    formats.write_candidates(knn, found, provenance={})
    how["search"] = f"precomputed:path={knn}"
    paths = [tmp_path / f"{number}.npz" for number in (1, 2, 3)]
    for number, path in enumerate(paths, 1):
        write_part(path, build_shard(X, Shard(number, 3), **how)[0])
    whole, merged = tmp_path / "whole.npz", tmp_path / "merged.npz"
    formats.write_graph(whole, build_graph(X, **how))
    formats.write_graph(merged, merge_graph(read_parts(paths), Stages()))
    assert whole.read_bytes() == merged.read_bytes()


def test_the_mean_distance_to_the_last_candidate_is_three_times_auto():
    for kernel in ("gaussian", "laplacian"):
        wide, auto = (
            build_graph(X, k=9, kernel=kernel, sigma=rule).provenance["sigma"]
            for rule in ("kth-mean", "auto")
        )
        assert wide == pytest.approx(kth(kernel, 9).mean(), rel=1e-12)
        assert wide == pytest.approx(3 * auto, rel=1e-12)
    graph = build_graph(X, k=9, sigma="kth-mean")
    assert not verify(X, graph).failed
    assert not verify(X, graph, sample=40).failed
