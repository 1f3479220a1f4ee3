"""The contract: every plug-in, also one that was added since."""

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse

from nnkgraph import testing
from nnkgraph.build.catalog import catalog
from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.errors import ParameterError
from nnkgraph.runtime import registry

FOLDERS = ("methods", "kernels", "search", "executors", "formats")
PLUGINS = [(folder, name) for folder in FOLDERS for name in registry.names(folder)]
SPECS = {
    ("search", "precomputed"): "precomputed:path=knn.npz",
    ("kernels", "function"): "function:path=test_plugins:gaussian",
}


def gaussian(a, b):
    return np.exp(-np.square(a[:, None] - b[None]).sum(-1) / 8)


def kernel_and_rows(kernel):
    x = np.random.default_rng(0).normal(size=(80, 6))
    if kernel == "precomputed":
        x = gaussian(x, x)
    if kernel == "distance":
        x = np.linalg.norm(x[:, None] - x, axis=-1)
    if kernel == "jaccard":
        x = np.abs(x)
    return SPECS.get(("kernels", kernel), kernel), x


@pytest.mark.parametrize("name", registry.names("methods"))
def test_methods_keep_their_contract(name):
    testing.check_method(name)


@pytest.mark.parametrize("name", registry.names("kernels"))
def test_kernels_keep_their_contract(name):
    testing.check_kernel(SPECS.get(("kernels", name), name))


@pytest.mark.parametrize("kernel", ["gaussian:sigma=local", "polynomial:degree=3"])
def test_kernels_keep_it_with_other_parameters(kernel):
    testing.check_kernel(kernel)


# pynndescent says so of data as small as this.
@pytest.mark.filterwarnings("ignore:Failed to correctly find n_neighbors")
@pytest.mark.parametrize("name", registry.names("search"))
def test_searches_keep_their_contract(name, tmp_path):
    x, spec = None, name
    if name == "precomputed":
        x = np.random.default_rng(4).normal(size=(90, 5))
        np.savez(tmp_path / "knn.npz", neighbors=find_candidates(x, k=6).index)
        spec = f"precomputed:path={tmp_path / 'knn.npz'}"
    testing.check_search(spec, x=x)


@pytest.mark.parametrize("name", registry.names("executors"))
def test_executors_keep_their_contract(name):
    testing.check_executor(name)


def write_features(path):
    """Write a matrix as other programs do, where nnkgraph reads such files."""
    x = np.random.default_rng(0).normal(size=(12, 3))
    ending = path.suffix
    if ending == ".npy":
        np.save(path, x)
    elif ending == ".npz":
        np.savez(path, x=x, ids=[f"row {i}" for i in range(12)])
    elif ending == ".csv":
        np.savetxt(path, x, delimiter=",", header="a,b,c", comments="")
    elif ending == ".h5":
        with h5py.File(path, "w") as file:
            file["x"] = x
    elif ending == ".mtx":
        scipy.io.mmwrite(path, scipy.sparse.coo_array(x))
    elif ending == ".mat":
        scipy.io.savemat(path, {"x": x})
    elif ending == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        table = arrow.table({name: x[:, at] for at, name in enumerate("abc")})
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        pytest.importorskip("anndata").AnnData(x).write_h5ad(path)
    return path


@pytest.mark.parametrize("name", registry.names("formats"))
def test_formats_keep_their_contract(name, tmp_path):
    plugin = registry.load("formats", name)
    reads = plugin.can("read_features")
    path = tmp_path / f"x{plugin.suffixes[0]}"
    testing.check_format(name, features=write_features(path) if reads else None)


@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_spec_makes_the_same_plugin_again(folder, name):
    plugin = registry.create(folder, SPECS.get((folder, name), name))
    assert registry.create(folder, registry.spec(plugin)) == plugin


def test_specs_name_what_differs_from_the_default():
    made = registry.create("search", "pynndescent:threads=3,n_trees=0")
    assert registry.spec(made) == "pynndescent:threads=3"


@pytest.mark.parametrize("method", registry.names("methods"))
@pytest.mark.parametrize("kernel", registry.names("kernels"))
def test_methods_and_kernels_work_together(method, kernel):
    kernel, x = kernel_and_rows(kernel)
    weigher = registry.create("methods", method)
    try:
        weigher.check(registry.create("kernels", kernel))
    except ParameterError:
        with pytest.raises(ParameterError, match=f"method '{method}' "):
            build_graph(x, k=7, method=method, kernel=kernel)
        return
    graph = build_graph(x, k=7, method=method, kernel=kernel)
    again = build_graph(x, k=7, method=method, kernel=kernel)
    assert np.array_equal(graph.adjacency.data, again.adjacency.data)
    assert (graph.adjacency != graph.adjacency.T).nnz == 0
    assert (graph.adjacency.data > 0).all()
    if graph.report["certificate"]:
        assert graph.report["certificate"]["nodes_failed"] == 0


def test_the_catalog_lists_everything():
    listed = catalog([*FOLDERS, "rules"])
    assert {n for _, n in PLUGINS} <= {e["name"] for f in FOLDERS for e in listed[f]}
    assert len(listed["rules"]) == 7


def test_an_unknown_name_lists_the_choices():
    with pytest.raises(ParameterError, match="choose from aew, eps"):
        registry.load("methods", "forest")
