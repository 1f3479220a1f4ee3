"""The library as its user sees it: every public function, by its own example."""

import doctest
import importlib
import inspect
import warnings

import numpy as np
import pytest

import nnkgraph
from nnkgraph.errors import InputError, ParameterError, QualityWarning

FUNCTIONS = sorted(
    name for name in nnkgraph.__all__ if inspect.isfunction(getattr(nnkgraph, name))
)


@pytest.fixture
def x():
    return np.random.default_rng(3).normal(size=(120, 4))


def same(a, b):
    parts = ("indptr", "indices", "data")
    arrays = [[getattr(g.adjacency, part) for part in parts] for g in (a, b)]
    return all(np.array_equal(*pair) for pair in zip(*arrays, strict=True))


def test_every_command_has_a_function_of_its_name():
    assert {"build_graph", "find_candidates", "query", "verify", "explain"} <= set(
        FUNCTIONS
    )
    names = {"cluster", "compare", "classify", "propagate", "embed", "doctor"}
    assert names <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_public_function_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(nnkgraph, name)
    module = importlib.import_module(function.__module__)
    tests = doctest.DocTestFinder(recurse=False).find(function, name, module)
    assert sum(len(test.examples) for test in tests) > 0, f"{name} has no example"
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for test in tests:
        failed, _ = doctest.DocTestRunner(optionflags=options).run(test)
        assert not failed


def test_names_objects_and_functions_are_taken_for_plug_ins(x):
    kernels, methods = nnkgraph.kernels, nnkgraph.methods
    named = nnkgraph.build_graph(x, k=8, kernel="gaussian", sigma=2.0, method="nnk")
    given = nnkgraph.build_graph(
        x, k=8, kernel=kernels.Gaussian(sigma=2.0), method=methods.NNK()
    )
    assert same(named, given)

    def similar(a, b):
        return np.exp(-((a[:, None] - b) ** 2).sum(-1) / 8.0)

    function = nnkgraph.build_graph(x, k=8, kernel=similar)
    plain = nnkgraph.build_graph(x, k=8, sigma=2.0, weights="regression")
    assert abs(function.adjacency - plain.adjacency).max() < 1e-9


@pytest.mark.parametrize("form", ["candidates", "tuple", "squared", "itself", "alone"])
def test_candidates_may_be_given_as_other_programs_return_them(x, tmp_path, form):
    found = nnkgraph.find_candidates(x, k=9)
    index, distance = found.index.astype(np.int64), found.distance
    nnkgraph.write_candidates(tmp_path / "knn.npz", found, provenance={})
    path = f"precomputed:path={tmp_path / 'knn.npz'}"
    wanted = nnkgraph.build_graph(x, k=9, search=path)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(9), (120, 1)), axis=1)
    shuffled = [np.take_along_axis(one, order, axis=1) for one in (index, distance)]
    own = np.arange(120)[:, None]
    given = {
        "candidates": found,
        "tuple": tuple(shuffled),
        "squared": (index, distance**2),
        "itself": (np.hstack([own, index]), np.hstack([0.0 * own, distance])),
        "alone": np.hstack([index, np.full((120, 2), -1)]),
    }[form]
    graph = nnkgraph.build_graph(x, k=9, candidates=given)
    assert same(graph, wanted)
    assert graph.provenance == wanted.provenance


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((120, 9)), "row numbers"),
        (np.full((120, 9), 120), "no row number"),
        (np.zeros((60, 9), int), "60 rows"),
        (np.zeros(120, int), "matrix"),
    ],
)
def test_candidates_that_are_none_are_refused(x, given, words):
    with pytest.raises(InputError, match=words):
        nnkgraph.build_graph(x, k=9, candidates=given)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_data_frame_gives_the_bytes_of_its_csv(x, tmp_path, kind):
    package = pytest.importorskip(kind)
    frame = package.DataFrame({f"c{i}": x[:, i] for i in range(4)})
    if kind == "pandas":
        frame.to_csv(tmp_path / "x.csv", index=False)
    else:
        frame.write_csv(tmp_path / "x.csv")
    files = []
    for at, given in enumerate([frame, nnkgraph.read_features(tmp_path / "x.csv")]):
        files.append(tmp_path / f"{at}.npz")
        nnkgraph.write_graph(files[-1], nnkgraph.build_graph(given, k=8))
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_named_index_gives_the_ids_and_text_is_refused(x):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(x, index=[f"cell {i}" for i in range(120)])
    assert nnkgraph.build_graph(frame, k=5).ids[7] == "cell 7"
    frame["city"] = "Bonn"
    with pytest.raises(InputError, match="'city'"):
        nnkgraph.build_graph(frame, k=5)


def test_ids_may_be_given_apart(x):
    names = [f"n{i}" for i in range(120)]
    assert nnkgraph.build_graph(x, k=5, ids=names).ids == tuple(names)
    with pytest.raises(InputError, match="3 ids"):
        nnkgraph.build_graph(x, k=5, ids=names[:3])


def test_errors_are_value_errors_and_unknown_keywords_type_errors(x):
    with pytest.raises(ValueError, match="unknown method"):
        nnkgraph.build_graph(x, method="nn")
    with pytest.raises(ParameterError, match="not both"):
        nnkgraph.build_graph(x, candidates=(x, x), search="exact")
    with pytest.raises(TypeError, match="'neighbors'"):
        nnkgraph.build_graph(x, neighbors=3)
    with pytest.raises(TypeError, match="'min_degree'"):
        nnkgraph.find_candidates(x, min_degree=3)


def test_what_is_worth_a_second_look_is_a_warning(x):
    wrong = np.random.default_rng(0).integers(0, 119, (120, 9))
    with pytest.warns(QualityWarning, match="nearest neighbors"):
        nnkgraph.build_graph(x, k=9, candidates=wrong)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nnkgraph.build_graph(x, k=9)


def test_values_show_themselves_shortly(x):
    graph = nnkgraph.build_graph(x, k=8)
    found = nnkgraph.find_candidates(x, k=8)
    shown = [repr(one) for one in (graph, found, graph.report)]
    assert max(map(len, shown)) < 80
    assert "120 nodes" in shown[0]
    assert graph != nnkgraph.build_graph(x, k=8)  # by identity: they hold arrays


def test_a_report_has_types_and_the_keys_of_its_json(x):
    report = nnkgraph.build_graph(x, k=8).report
    assert report.certificate.max == report["certificate"]["kkt_max"] < 1e-9
    assert (report.edges, report.sigma) == (report["edges"], report["sigma"])
    assert report.recall == 1.0
    assert set(report) >= {"schema", "nodes", "components", "search", "warnings"}
