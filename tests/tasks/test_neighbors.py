"""Neighbors of cells, and scanpy's tools on them; those skip where it is missing."""

import json
import warnings
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import nnkgraph
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.sklearn import KNNTransformer

RNG = np.random.default_rng(2)
N = 90
PCA = RNG.normal(size=(N, 6)) + 4 * (np.arange(N) % 3)[:, np.newaxis]
X = np.abs(PCA @ RNG.normal(size=(6, 60)))


class Cells(SimpleNamespace):
    """As much of AnnData as is asked for: we never import it."""

    def __init__(self, x=X, **obsm):
        super().__init__(X=x, obsm=obsm, obsp={}, uns={})
        self.n_obs, self.n_vars = x.shape

    def copy(self):
        twin = Cells(self.X, **self.obsm)
        twin.obsp, twin.uns = dict(self.obsp), dict(self.uns)
        return twin


def lists(matrix):
    """Return the columns and values of a matrix with as many in every row."""
    (width,) = set(matrix.getnnz(axis=1))
    return (part.reshape(-1, width) for part in (matrix.indices, matrix.data))


def nearest(x, count):
    """Return the nearest others by brute force."""
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)
    np.fill_diagonal(distance, -1)
    order = np.argsort(distance, axis=1, kind="stable")[:, 1 : count + 1]
    return order, np.take_along_axis(distance, order, axis=1)


def test_cells_get_what_scanpy_would_give_them():
    cells = Cells(X_pca=PCA)
    assert nnkgraph.neighbors(cells, 12) is None
    found = cells.uns["neighbors"]
    assert found["params"] == {
        "n_neighbors": 12,
        "method": "nnk",
        "random_state": 0,
        "metric": "euclidean",
    }
    assert found["connectivities_key"] == "connectivities"
    weights, distances = cells.obsp["connectivities"], cells.obsp["distances"]
    assert type(weights) is type(distances) is csr_matrix
    index, distance = lists(distances)
    wanted, true = nearest(PCA, 11)
    assert (index == wanted).all()
    np.testing.assert_allclose(distance, true, rtol=1e-12)
    graph = nnkgraph.build_graph(PCA, k=24, min_degree=5)
    assert (weights != graph.adjacency).nnz == 0
    assert json.loads(found["nnkgraph"]) == graph.provenance


@pytest.mark.parametrize(
    ("how", "x", "metric"),
    [
        ({"n_pcs": 3}, PCA[:, :3], "euclidean"),
        ({"n_pcs": 0}, X, "euclidean"),
        ({"use_rep": "X"}, X, "euclidean"),
        ({"use_rep": "other"}, PCA[::-1], "euclidean"),
        ({"use_rep": "other", "n_pcs": 2}, PCA[::-1, :2], "euclidean"),
        ({"metric": "cosine"}, PCA, "cosine"),
        ({"metric": "cityblock"}, PCA, "manhattan"),
    ],
)
def test_the_representation_is_chosen_as_scanpy_does(how, x, metric):
    cells = Cells(X_pca=PCA, other=PCA[::-1])
    nnkgraph.neighbors(cells, 9, **how)
    params = cells.uns["neighbors"]["params"]
    assert params["metric"] == metric
    named = {"n_pcs", "use_rep"}
    assert {n: params[n] for n in named & params.keys()} == {
        n: how[n] for n in named & how.keys()
    }
    unit = x / np.linalg.norm(x, axis=1)[:, np.newaxis]
    true = {
        "euclidean": lambda: nearest(x, 8)[1],
        "cosine": lambda: nearest(unit, 8)[1] ** 2 / 2,
        "manhattan": lambda: np.sort(np.abs(x[:, None] - x).sum(axis=2))[:, 1:9],
    }[metric]()
    _, distance = lists(cells.obsp["distances"])
    np.testing.assert_allclose(distance, true, atol=1e-7)


def test_few_genes_are_taken_as_they_are():
    cells = Cells(PCA, X_pca=PCA[:, :2])
    nnkgraph.neighbors(cells, 9)
    _, distance = lists(cells.obsp["distances"])
    np.testing.assert_allclose(distance, nearest(PCA, 8)[1])


def test_a_key_keeps_other_graphs_and_a_copy_the_cells():
    cells = Cells(X_pca=PCA)
    nnkgraph.neighbors(cells, 9)
    before = cells.obsp["distances"]
    twin = nnkgraph.neighbors(cells, 20, key_added="wide", copy=True)
    assert set(cells.obsp) == {"connectivities", "distances"}
    names = {"wide_connectivities", "wide_distances"}
    assert set(twin.obsp) == set(cells.obsp) | names
    assert twin.obsp["distances"] is before
    assert twin.uns["wide"]["distances_key"] == "wide_distances"
    assert set(twin.obsp["wide_distances"].getnnz(axis=1)) == {19}


@pytest.mark.parametrize("how", [{}, {"k": 4}, {"search": "kdtree"}, {"method": "knn"}])
def test_identical_cells_are_neighbors_and_rows_stay_as_long(how):
    x = np.concatenate([PCA, PCA[:20], PCA[:20]])
    cells = Cells(X_pca=x, x=np.concatenate([X, X[:20], X[:20]]))
    nnkgraph.neighbors(cells, 10, **how)
    index, distance = lists(cells.obsp["distances"])
    np.testing.assert_allclose(distance, nearest(x, 9)[1], atol=1e-12)
    assert set(index[0, :2]) == {N, N + 20}
    assert (distance[:20, :2] == 0).all()
    assert (cells.obsp["connectivities"].getnnz(axis=1) > 0).all()


def test_fewer_cells_than_neighbors_are_said():
    cells = Cells(X[:7], X_pca=PCA[:7])
    with pytest.warns(UserWarning, match="only 7 cells: n_neighbors = 7") as caught:
        nnkgraph.neighbors(cells)
    assert caught[0].filename == __file__
    assert cells.uns["neighbors"]["params"]["n_neighbors"] == 7
    assert set(cells.obsp["distances"].getnnz(axis=1)) == {6}


@pytest.mark.parametrize(
    ("how", "kind", "told"),
    [
        ({"use_rep": "X_scvi"}, InputError, "no 'X_scvi'; there are X_pca"),
        ({"n_pcs": 7}, InputError, "7 of 6 columns"),
        ({"n_neighbors": 1}, ParameterError, "2 are the fewest"),
        ({"metric": "jaccard"}, ParameterError, "unknown metric 'jaccard'; choose"),
        ({"method": "umap"}, ParameterError, "scanpy's own"),
        ({"kernel": "linear"}, ParameterError, "has no distances"),
        ({"symmetrize": "none"}, ParameterError, "undirected"),
        ({"knn": True}, TypeError, "'knn'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(how, kind, told):
    cells = Cells(X_pca=PCA)
    with pytest.raises(kind, match=told):
        nnkgraph.neighbors(cells, **how)
    assert not cells.obsp
    assert not cells.uns


def test_components_that_are_missing_are_asked_for():
    with pytest.raises(InputError, match=r"'X_pca' \(scanpy.pp.pca makes it\).*none"):
        nnkgraph.neighbors(Cells())


def test_a_view_becomes_cells_of_its_own():
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(X, obsm={"X_pca": PCA})
    part = cells[: N // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata says that it makes a copy
        nnkgraph.neighbors(part, 9)
    assert not part.is_view
    assert part.obsp["distances"].nnz == N // 2 * 8
    assert "neighbors" not in cells.uns


@pytest.fixture(scope="module")
def scanpy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("scanpy")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
class TestScanpy:
    """Needs the extra ``handover``."""

    def cells(self, scanpy):
        return scanpy.datasets.pbmc68k_reduced()

    @pytest.mark.parametrize("method", ["knn", "nnk"])
    def test_a_transformer_gives_what_its_own_search_does(self, scanpy, method):
        ours, own = self.cells(scanpy), self.cells(scanpy)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # rows of other lengths
            scanpy.pp.neighbors(ours, transformer=KNNTransformer(method=method))
        scanpy.pp.neighbors(own)
        assert ours.uns["neighbors"]["params"]["n_neighbors"] == 15
        apart = abs(ours.obsp["connectivities"] - own.obsp["connectivities"]).max()
        assert (apart < 1e-4) == (method == "knn")

    def test_labels_of_known_cells_go_to_new_ones(self, scanpy):
        if tuple(map(int, version("pynndescent").split(".")[:2])) >= (0, 7):
            pytest.skip("scanpy's ingest does not run with this pynndescent")
        cells, new = self.cells(scanpy), np.arange(700) % 4 == 0
        known, rest = cells[~new].copy(), cells[new].copy()
        known.uns, truth = {}, rest.obs["bulk_labels"].astype(str)
        del rest.obs["bulk_labels"]
        scanpy.pp.pca(known)
        nnkgraph.neighbors(known)
        scanpy.tl.umap(known)
        scanpy.tl.ingest(rest, known, obs="bulk_labels")
        assert (rest.obs["bulk_labels"].astype(str) == truth).mean() > 0.7

    def test_its_tools_run_on_our_graph_and_clusters_are_as_good(
        self, scanpy, tmp_path
    ):
        from sklearn.manifold import TSNE
        from sklearn.metrics import adjusted_rand_score

        agreement = []
        for put in (scanpy.pp.neighbors, nnkgraph.neighbors):
            cells, found = self.cells(scanpy), []
            put(cells)
            for resolution in (0.25, 0.5, 1, 1.5, 2):
                scanpy.tl.leiden(cells, resolution=resolution)
                kinds = cells.obs["bulk_labels"], cells.obs["leiden"]
                found.append(adjusted_rand_score(*kinds))
            agreement.append(np.mean(found))
        assert agreement[1] > agreement[0] - 0.02
        scanpy.tl.paga(cells, groups="bulk_labels")
        scanpy.tl.diffmap(cells)
        cells.uns["iroot"] = 0
        scanpy.tl.dpt(cells)
        assert np.isfinite(cells.obs["dpt_pseudotime"]).all()
        scanpy.tl.umap(cells)
        assert np.isfinite(cells.obsm["X_umap"]).all()
        few = TSNE(metric="precomputed", init="random", perplexity=4, max_iter=250)
        assert few.fit_transform(cells.obsp["distances"]).shape == (700, 2)
        cells.write_h5ad(tmp_path / "cells.h5ad")
        again = scanpy.read_h5ad(tmp_path / "cells.h5ad")
        assert "nnkgraph" in again.uns["neighbors"]
