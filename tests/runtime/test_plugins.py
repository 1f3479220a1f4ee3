"""The contract: every plug-in, also one that was added since."""

import dataclasses
import pickle

import numpy as np
import pytest

from nnkgraph.build.catalog import catalog
from nnkgraph.build.graph import build_graph
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
    x = gaussian(x, x) if kernel == "precomputed" else x
    return SPECS.get(("kernels", kernel), kernel), x


@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_plugin_is_documented_and_pickles(folder, name):
    cls = registry.load(folder, name)
    about = (cls.__doc__ or "").partition("\n")[0]
    assert 10 < len(about) < 100
    plugin = registry.create(folder, SPECS.get((folder, name), name))
    assert pickle.loads(pickle.dumps(plugin)) == plugin
    assert dataclasses.is_dataclass(plugin)
    assert plugin.__dataclass_params__.frozen


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
