"""Presets: which defaults a graph gets where nothing else is said."""

import numpy as np
import pytest

from nnkgraph import build_graph, classify, compare, doctor, explain, kernels, query
from nnkgraph.build.presets import DEFAULT, PRESETS, Preset
from nnkgraph.build.settings import Settings
from nnkgraph.data import Features
from nnkgraph.errors import ParameterError
from nnkgraph.sklearn import NNKTransformer

PAPER = {"sigma": "auto", "min_degree": 0, "weights": "regression"}
X = np.random.default_rng(0).normal(size=(120, 3))
ROWS = Features.of(X)
METHODS = ("nnk", "omp", "mp", "l1")


def settings(**given):
    made = Settings.of(ROWS, k=10, **given)
    sigma = getattr(made.kernel, "sigma", None)
    return sigma, made.min_degree, made.weights, made.rule


def values(preset, rule="error"):
    least = preset.min_degree if rule.startswith("error") else 0
    return preset.sigma, least, preset.weights, preset.symmetrize or rule


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_fills_in_what_is_not_given(method, name):
    assert settings(method=method, preset=name) == values(PRESETS[name])


@pytest.mark.parametrize("method", METHODS)
def test_without_a_preset_there_is_a_default(method):
    assert settings(method=method) == values(DEFAULT)


@pytest.mark.parametrize("method", ["knn", "kstar", "eps", "lle", "aew", "kalofolias"])
@pytest.mark.parametrize("name", [None, *PRESETS])
def test_methods_without_an_error_are_as_ever(method, name):
    own = settings(method=method, preset=name)
    assert own == settings(method=method, **PAPER)


@pytest.mark.parametrize("name", [None, *PRESETS])
def test_what_is_given_goes_before_a_preset(name):
    given = {"sigma": 0.5, "min_degree": 2, "weights": "one", "symmetrize": "max"}
    assert settings(**given, preset=name) == (0.5, 2, "one", "max")
    assert settings(kernel="gaussian:sigma=local", preset=name)[0] == "local"
    assert settings(kernel=kernels.Gaussian(), preset=name)[0] == "auto"
    assert settings(kernel="cosine", preset=name)[0] is None


def test_other_rules_than_those_of_errors_protect_no_edges():
    for rule in ("max", "mean", "min", "mutual", "none"):
        assert settings(symmetrize=rule, preset="cluster")[1] == 0
    least = PRESETS["cluster"].min_degree
    assert settings(symmetrize="error-union", preset="cluster")[1] == least


def test_a_preset_asks_no_kernel_for_what_it_lacks(monkeypatch):
    monkeypatch.setitem(PRESETS, "cluster", Preset(weights="kernel"))
    for kernel in ("gaussian", "laplacian", "cosine"):
        assert settings(kernel=kernel, preset="cluster")[2] == "kernel"
    for kernel in ("linear", "polynomial", "lle"):
        assert settings(kernel=kernel, preset="cluster")[2] == "regression"


def test_an_unknown_preset_is_refused():
    with pytest.raises(ParameterError, match="preset 'best'; choose from paper"):
        build_graph(X, preset="best")


@pytest.mark.parametrize("suffix", ["npz", "tsv", "graphml"])
def test_the_papers_preset_is_the_papers_options_to_the_byte(run, tmp_path, suffix):
    np.save(tmp_path / "x.npy", X)
    one, two = (tmp_path / f"{name}.{suffix}" for name in ("one", "two"))
    run("build", tmp_path / "x.npy", "-o", one, "--preset", "paper")
    plain = ("--sigma", "auto", "--min-degree", "0", "--weights", "regression")
    run("build", tmp_path / "x.npy", "-o", two, *plain, "--symmetrize", "error")
    assert one.read_bytes() == two.read_bytes()


def test_a_graph_stores_what_was_resolved_and_is_read_as_it_was_built():
    for name in (None, *PRESETS):
        graph = build_graph(X, k=10, preset=name)
        assert "preset" not in graph.provenance
        made, again = (
            Settings.of(ROWS, k=10, preset=name),
            Settings.read(graph.provenance, ROWS),
        )
        assert again.min_degree == made.min_degree == graph.provenance["min_degree"]
        local = made.kernel.sigma == "local"
        assert again.kernel.sigma == ("local" if local else graph.provenance["sigma"])
        assert again.weights == made.weights


def test_a_graph_from_before_there_were_presets_is_read_as_it_was():
    old = build_graph(X, k=10, preset="paper").provenance
    assert old["kernel"] == "gaussian"
    assert "weights" not in old
    again = Settings.read(old, ROWS)
    assert (again.min_degree, again.weights) == (0, "regression")
    assert again.kernel.sigma == old["sigma"]


def test_the_file_of_options_stands_above_a_preset(run, tmp_path):
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "o.toml").write_text('preset = "classify"\nmin-degree = 2\n')
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    run("build", tmp_path / "x.npy", "-o", one, "--config", tmp_path / "o.toml")
    wanted = ("--sigma", str(PRESETS["classify"].sigma), "--min-degree", "2")
    run("build", tmp_path / "x.npy", "-o", two, *wanted)
    assert one.read_bytes() == two.read_bytes()


def test_all_tasks_have_the_same_bandwidth():
    """Query, explain, compare, doctor, classify and estimators do as build does."""
    for name in ("paper", "classify", "cluster"):
        how = {"k": 10, "preset": name}
        sigma = build_graph(X, **how).provenance["sigma"]
        assert query(X, X[:2] + 0.1, **how).report["sigma"] == sigma
        assert explain(X, 3, **how).facts["sigma"] == sigma
        assert compare(X, methods=["knn", "nnk"], **{**how, "k": [10]}).sigma == sigma
        found = doctor(X, **how).figures
        assert found["distances"]["sigma"] == sigma
        first = found["graphs"][0]
        assert first["edges_per_node"] * len(X) == build_graph(X, **how).n_edges
        lines = classify(X, X[:, 0] > 0, X[:5], X[:5, 0] > 0, methods=["nnk"], **how)
        assert lines.lines[0]["sigma"] == sigma
        made = NNKTransformer(n_neighbors=10, preset=name).fit(X)
        assert made.result_.provenance["sigma"] == sigma
        assert made.kernel_ == f"gaussian:sigma={sigma}"


def test_a_comparison_builds_what_build_does():
    for line in compare(X, methods=["knn", "nnk", "mp"], k=[10]).lines:
        how = {"method": line["method"], "symmetrize": line["rule"]}
        assert line["edges"] == build_graph(X, k=10, **how).n_edges


def test_every_node_has_its_own_bandwidth_by_default():
    assert Settings.of(ROWS, k=10).kernel.sigma == "local"
    found = query(X, X[:2] + 0.1, k=10)
    assert (
        found.report["sigma"]
        == query(X, X[:2] + 0.1, k=10, sigma="local").report["sigma"]
    )
    assert NNKTransformer(n_neighbors=10).fit(X).kernel_ == "gaussian:sigma=local"


def test_candidates_grow_with_one_bandwidth_for_all():
    plain, grown = build_graph(X, k=5, sigma="auto"), build_graph(X, k=5, grow=0.1)
    assert grown.provenance["sigma"] == plain.provenance["sigma"]
    with pytest.raises(ParameterError, match="another sigma"):
        build_graph(X, k=5, sigma="local", grow=0.1)


def test_a_shard_of_the_default_needs_no_other_rows(run, tmp_path):
    np.save(tmp_path / "x.npy", X)
    call = ("build", tmp_path / "x.npy", "--shard", "1/2", "-o", tmp_path / "1.npz")
    assert run(*call).code == 0
    told = run(*call, "--preset", "paper")
    assert told.code == 2
    assert "needs the candidates of all rows" in told.err
