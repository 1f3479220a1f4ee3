"""Verification: passes what was built, names what was tampered with."""

import ast
import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy.sparse import csr_array

import nnkgraph
from nnkgraph import formats
from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.build.symmetrize import RULES
from nnkgraph.data import Features, Neighborhoods, SparseGram, SparseRows
from nnkgraph.errors import InputError
from nnkgraph.methods import qp
from nnkgraph.tasks.verify import verify
from nnkgraph.tasks.verify._slow import Space, nonnegative
from nnkgraph.tasks.verify.recipe import recipe_of

FORMATS = ("npz", "tsv", "csv.gz", "edgelist", "graphml", "mtx")


@pytest.fixture(scope="module")
def digits():
    with h5py.File(SAMPLES / "digits.h5") as file:
        return file["features"][:220]


@pytest.fixture(scope="module")
def copied(digits):
    """Few columns and few values: copies and ties everywhere."""
    coarse = digits[:, 18:46:5] // 4
    return np.concatenate([coarse, coarse[:25]])


@pytest.fixture(scope="module")
def graph(digits):
    return build_graph(digits, k=10, preset="paper")


def status(found):
    return {check.name: check.status for check in found.checks}


def failed(found):
    return [check.name for check in found.failed]


@pytest.mark.parametrize(
    "method", ["nnk", "omp", "mp", "l1:eta=0.2", "lle", "knn", "kstar:lc=0.1", "eps"]
)
@pytest.mark.parametrize("duplicates", ["merge", "keep"])
def test_methods_pass(digits, copied, method, duplicates):
    for x in (digits, copied):
        built = build_graph(x, k=8, method=method, duplicates=duplicates)
        found = verify(x, built)
        assert not found.failed, found.failed
        assert status(found)["weights"] == "ok"
        assert (status(found)["errors"] == "ok") == (built.errors is not None)


@pytest.mark.parametrize("rule", list(RULES))
@pytest.mark.parametrize(("min_degree", "min_weight"), [(0, 1e-8), (2, 1e-8), (2, 0.3)])
def test_rules_pass_in_full_and_by_sample(copied, rule, min_degree, min_weight):
    built = build_graph(
        copied, k=8, symmetrize=rule, min_degree=min_degree, min_weight=min_weight
    )
    assert not verify(copied, built).failed
    part = verify(copied, built, sample=60, seed=5)
    assert not part.failed
    assert part.looked == 60


@pytest.mark.parametrize("search", ["exact", "kdtree", "pynndescent", "precomputed"])
def test_searches_pass(copied, tmp_path, search):
    if search == "precomputed":
        path = tmp_path / "knn.npz"
        formats.write_candidates(path, find_candidates(copied, k=8), provenance={})
        search = f"precomputed:path={path}"
    built = build_graph(copied, k=8, search=search)
    found = verify(copied, built)
    assert not found.failed
    check = next(c for c in found.checks if c.name == "candidates")
    assert ("recall" in check.figures) == (built.candidates is not None)


@pytest.mark.parametrize(
    "sigma", ["auto", "kth-max", "kth-mean", "local", "matlab", 2.5]
)
def test_bandwidths_pass_and_are_missed_when_wrong(copied, sigma):
    for kernel in ("gaussian", "laplacian"):
        built = build_graph(copied, k=8, kernel=kernel, sigma=sigma)
        assert not verify(copied, built).failed
        assert not verify(copied, built, sample=80).failed
        wrong = {**built.provenance, "sigma": built.provenance["sigma"] * 1.0001}
        assert "sigma" in failed(verify(copied, replace(built, provenance=wrong)))


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [
        ("cosine", "none"),
        ("linear", "none"),
        ("polynomial:degree=3,gamma=0.1", "none"),
        ("polynomial", "unit"),
        ("lle", "none"),
        ("gaussian", "standard"),
        ("gaussian", "minmax"),
        ("gaussian", "unit"),
    ],
)
def test_kernels_and_scales_pass(digits, kernel, scale):
    x = digits[:200]
    assert not verify(x, build_graph(x, k=8, kernel=kernel, scale=scale)).failed


def test_similarities_and_functions_pass(digits, tmp_path, monkeypatch):
    x = digits[:150].astype(float)
    gram = np.exp(-np.square(x[:, np.newaxis] - x).sum(axis=2) / 800)
    assert not verify(gram, build_graph(gram, k=8, kernel="precomputed")).failed
    sparse = Features(SparseGram.of(csr_array(np.where(gram > 0.2, gram, 0.0))))
    assert not verify(sparse, build_graph(sparse, k=8, kernel="precomputed")).failed
    (tmp_path / "near.py").write_text("def near(a, b):\n    return (a @ b.T) ** 2\n")
    monkeypatch.chdir(tmp_path)
    assert not verify(x, build_graph(x, k=8, kernel="near:near")).failed


def test_ties_that_rounding_decides_pass():
    side = np.linspace(0, 1, 9)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for method in ("nnk", "mp", "knn"):
        found = verify(grid, build_graph(grid, k=6, method=method))
        assert not found.failed
        check = next(c for c in found.checks if c.name == "candidates")
        assert check.figures["tied"] > 0


@pytest.mark.parametrize("options", [{"connect": "mst"}, {"digits": 4}, {"grow": 1e-3}])
def test_what_comes_after_the_rule_passes(copied, options):
    built = build_graph(copied, k=5, **options, preset="paper")
    assert not verify(copied, built).failed
    if "connect" in options:
        assert len(built.bridges)
        lost = verify(copied, replace(built, bridges=None))
        assert not lost.failed
        assert status(lost)["bridges"] == "not checked"
        changed = built.adjacency.copy()
        one, two = built.bridges[0]
        changed[one, two] = changed[two, one] = 0.5
        assert failed(verify(copied, replace(built, adjacency=changed))) == ["bridges"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_formats_pass_and_say_what_they_lost(run, digits, tmp_path, suffix):
    np.save(tmp_path / "x.npy", digits)
    out = tmp_path / f"g.{suffix}"
    assert run("build", tmp_path / "x.npy", "-o", out, "-k", 8).code == 0
    result = run("verify", tmp_path / "x.npy", out)
    assert result.code == 0, result.err
    assert "FAILED" not in result.out
    assert "not checked" not in result.out
    beside = Path(f"{out}.nnk.npz")
    if beside.exists():
        beside.unlink()
        result = run("verify", tmp_path / "x.npy", out)
        assert result.code == 0
        assert "not checked  errors" in result.out
        assert "ok           weights" in result.out


def test_lost_candidates_are_said(copied):
    built = build_graph(copied, k=8, search="pynndescent")
    found = verify(copied, replace(built, candidates=None))
    assert not found.failed
    for name in ("sigma", "candidates", "edges", "weights"):
        assert status(found)[name] == "not checked"


def edited(graph, change):
    matrix = graph.adjacency.tolil(copy=True)
    change(matrix)
    rest = matrix.tocsr()
    rest.eliminate_zeros()
    return replace(graph, adjacency=rest, distances=None)


def test_distances_that_are_off_fail(digits, copied):
    for x, options in (
        (digits, {}),
        (copied, {"kernel": "laplacian", "connect": "mst"}),
        (copied, {"scale": "unit", "duplicates": "keep", "symmetrize": "none"}),
        (digits, {"kernel": "cosine", "digits": 6}),
        (digits, {"scale": "standard"}),
    ):
        built = build_graph(x, k=8, **options)
        assert status(verify(x, built))["distances"] == "ok"
        assert status(verify(x, built, sample=50))["distances"] == "ok"
        wrong = built.distances.copy()
        wrong[-1] += 1e-3
        assert failed(verify(x, replace(built, distances=wrong))) == ["distances"]
    linear = build_graph(digits, k=8, kernel="linear")
    assert linear.distances is None
    assert status(verify(digits, linear))["distances"] == "not checked"
    made_up = replace(linear, distances=np.ones(linear.adjacency.nnz))
    assert "distances" in failed(verify(digits, made_up))


def test_a_weight_that_is_a_millionth_off_fails(digits, graph):
    one, two = (int(ends[7]) for ends in graph.adjacency.nonzero())

    def change(matrix):
        matrix[one, two] = matrix[two, one] = matrix[one, two] * (1 + 1e-6)

    assert failed(verify(digits, edited(graph, change))) == ["weights"]
    loop = edited(graph, lambda matrix: matrix.__setitem__((one, two), 0.5))
    assert "rule" in failed(verify(digits, loop))


def test_an_edge_too_few_or_too_many_fails(digits, graph):
    one, two = (int(ends[7]) for ends in graph.adjacency.nonzero())
    far = int(np.square(digits - digits[one].astype(float)).sum(axis=1).argmax())
    for other, weight, names in (
        (two, 0.0, ["edges"]),
        (far, 0.1, ["candidates", "edges"]),
    ):

        def change(matrix, other=other, weight=weight):
            matrix[one, other] = matrix[other, one] = weight

        found = verify(digits, edited(graph, change))
        assert failed(found) == names
        ends = sorted((one, other))
        assert f"nodes {ends[0]} and {ends[1]}" in found.failed[-1].text


def test_an_edge_that_is_hardly_too_light_fails(digits):
    """Rounding may decide about an edge at the threshold, but not about its weight."""
    light = build_graph(digits, k=10, min_weight=0.0, preset="paper")
    weight = float(light.adjacency.data.min())
    assert 1e-8 < weight < 1e-3
    for least, right in ((weight, True), (weight + 5e-10, False)):
        told = replace(light, provenance={**light.provenance, "min_weight": least})
        assert (not failed(verify(digits, told))) == right


def test_other_features_fail(digits, graph):
    other = digits.copy()
    other[5] += 1
    assert "features" in failed(verify(other, graph))
    assert failed(verify(digits[:-1], graph)) == ["features"]
    named = replace(graph, ids=tuple(f"n{i}" for i in range(len(digits))))
    turned = Features.of(digits, ids=named.ids[::-1])
    assert failed(verify(turned, named)) == ["features"]


@pytest.mark.parametrize(
    ("key", "value", "names"),
    [
        ("kernel", "gaussian:sigma=kth-max", {"sigma"}),
        ("kernel", "gaussian:sigma=matlab", {"sigma"}),
        ("rule", "max", {"edges", "weights"}),
        ("rule", "error-union", {"edges"}),
        ("rule", "none", {"rule"}),
        ("k", 9, {"sigma", "errors"}),
        ("method", "mp", {"errors"}),
        ("scale", "standard", {"sigma", "errors"}),
        ("min_weight", 0.1, {"edges"}),
        ("min_degree", 3, {"edges"}),
    ],
)
def test_tampered_parameters_fail(digits, graph, key, value, names):
    wrong = {**graph.provenance, key: value}
    assert names <= set(failed(verify(digits, replace(graph, provenance=wrong))))


def test_errors_and_copies_are_compared(copied):
    built = build_graph(copied, k=8)
    errors = built.errors.copy()
    errors[3] += 1e-8
    assert "errors" in failed(verify(copied, replace(built, errors=errors)))
    last = len(copied) - 1
    loose = edited(built, lambda m: m.__setitem__((last, slice(None)), 0.0))
    loose = edited(loose, lambda m: m.__setitem__((slice(None), last), 0.0))
    assert "copies" in failed(verify(copied, loose))


def pruned(problem, *, less=0.0):
    """Solve as published code does: drop negative weights, never take one back."""
    local = problem.local()
    b, m = problem.index.shape
    low = np.tril_indices(m)
    weights, errors = np.zeros((b, m)), np.zeros(b)
    for q in range(b):
        gram = np.zeros((m, m))
        gram[low] = local.gram[q]
        gram = gram + np.tril(gram, -1).T
        kept = np.arange(m)
        theta = np.linalg.solve(gram, local.cross[q] - less)
        while (theta <= 0).any():
            kept = kept[theta > 0]
            theta = np.linalg.solve(gram[np.ix_(kept, kept)], local.cross[q, kept])
        weights[q, kept] = theta
        errors[q] = 0.5 * (local.own[q] - local.cross[q, kept] @ theta)
    return Neighborhoods(weights, errors, np.zeros(b))


def test_a_solver_that_only_prunes_fails(monkeypatch):
    rng = np.random.default_rng(0)
    t = 1.5 * np.pi * (1 + 2 * rng.random(1500))
    roll = np.column_stack([t * np.cos(t), 21 * rng.random(1500), t * np.sin(t)])
    roll += 0.5 * rng.normal(size=roll.shape)
    assert not verify(roll, build_graph(roll, k=10), sample=300).failed
    monkeypatch.setattr("nnkgraph.methods.nnk.regressed", pruned)
    found = verify(roll, build_graph(roll, k=10), sample=300)
    assert "errors" in failed(found)
    check = next(c for c in found.checks if c.name == "errors")
    assert check.figures["wrong"] > 15  # methods say 13 % of the nodes
    assert failed(verify(roll, replace(build_graph(roll, k=10), errors=None)))


def test_own_solver_is_optimal_where_nnls_stops_early():
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.normal(size=(12, 2))
        gram = np.exp(-np.square(x[:, np.newaxis] - x).sum(axis=2) / 50)
        cross = np.exp(-np.square(x - 0.1).sum(axis=1) / 50)
        theta, residual = nonnegative(gram, cross)
        left = cross - gram @ theta
        assert residual < 1e-10
        assert (theta >= 0).all()
        assert np.where(theta > 0, np.abs(left), left).max() < 1e-10


SHARED = {f"nnkgraph.{name}" for name in ("data", "errors", "runtime")}
SHARED |= {"nnkgraph.runtime.progress"}
"""What both ways to a graph may have in common: values, errors, names."""


def test_the_slow_path_shares_no_search_and_no_solver():
    files = list((Path(nnkgraph.__file__).parent / "tasks" / "verify").glob("*.py"))
    assert len(files) > 4
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("nnkgraph"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                rooms = {name.split(".")[1] for name in names}
                assert rooms <= {"data", "errors", "runtime", "tasks"}
                allowed = ("nnkgraph.runtime.registry", "nnkgraph.runtime.progress.")
                for name in names:
                    if name.startswith("nnkgraph.runtime"):
                        assert name.startswith(allowed)
                    if name.startswith("nnkgraph.tasks"):
                        assert name.startswith("nnkgraph.tasks.verify.")


def test_command_blames_other_features_first(run, digits, graph, tmp_path):
    np.save(tmp_path / "x.npy", digits[::-1])
    formats.write_graph(tmp_path / "g.npz", graph)
    result = run("verify", tmp_path / "x.npy", tmp_path / "g.npz", "--sample", 9, "-q")
    assert result.code == 6
    assert "features: other values, or rows in another order" in result.err
    np.save(tmp_path / "x.npy", digits[:, 1:])
    result = run("verify", tmp_path / "x.npy", tmp_path / "g.npz", "-q")
    assert "give the same --drop and --id-column as to build" in result.err


def test_command_names_the_check_and_exits_with_6(run, digits, graph, tmp_path):
    np.save(tmp_path / "x.npy", digits)
    wrong = {**graph.provenance, "rule": "max"}
    formats.write_graph(tmp_path / "g.npz", replace(graph, provenance=wrong))
    result = run("verify", tmp_path / "x.npy", tmp_path / "g.npz", "--json", "-q")
    assert result.code == 6
    assert len(result.lines) == 1
    assert "verification failed: edges" in result.err
    found = json.loads(result.out)
    assert found["ok"] is False
    assert found["looked_at"] == len(digits)
    assert {c["name"]: c["status"] for c in found["checks"]}["sigma"] == "ok"
    again = run("verify", tmp_path / "x.npy", tmp_path / "g.npz", "--sample", 50, "-q")
    assert again.code == 6


@pytest.mark.parametrize(
    ("provenance", "words"),
    [({}, "does not say how"), ({"method": "forest"}, "method 'forest', which cannot")],
)
def test_foreign_graphs_are_refused(run, digits, graph, tmp_path, provenance, words):
    known = {**graph.provenance, **provenance} if provenance else {}
    with pytest.raises(InputError, match=words):
        verify(digits, replace(graph, provenance=known))
    np.save(tmp_path / "x.npy", digits)
    formats.write_graph(tmp_path / "g.npz", replace(graph, provenance=known))
    result = run("verify", tmp_path / "x.npy", tmp_path / "g.npz")
    assert result.code == 3
    assert words in result.err
    assert result.out == ""


@pytest.mark.parametrize("seed", range(8))
def test_the_slow_solver_proves_singular_problems_too(seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(4, 12)) + 2 * rng.normal(size=(4, 1))
    gram, cross = a.T @ a, a.T @ rng.normal(size=4)  # of rank 4
    theta, residual = nonnegative(gram, cross)
    assert (theta >= 0).all()
    assert residual <= 1e-10
    packed = gram[np.tril_indices(12)][np.newaxis]
    gain = qp.solve(packed, cross[np.newaxis], np.ones((1, 12), bool))[2][0]
    assert cross @ theta - theta @ gram @ theta / 2 == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize("sigma", ["auto", "local", 9.0])
@pytest.mark.parametrize("factor", [1 - 1e-6, 1 + 1e-6])
def test_weights_of_the_kernel_that_are_a_millionth_off_fail(digits, sigma, factor):
    built = build_graph(digits, k=8, weights="kernel", sigma=sigma)
    assert not verify(digits, built).failed
    one, two = (int(ends[7]) for ends in built.adjacency.nonzero())

    def change(matrix):
        matrix[one, two] = matrix[two, one] = matrix[one, two] * factor

    found = verify(digits, edited(built, change))
    assert failed(found) == ["weights"]
    assert found.failed[0].figures["wrong"] == 1
    assert f"nodes {min(one, two)} and {max(one, two)}" in found.failed[0].text


def test_what_was_compared_is_counted(digits, graph):
    found = {check.name: check for check in verify(digits, graph).checks}
    edges, n = graph.n_edges, len(digits)
    assert found["weights"].figures["edges"] == edges
    assert f"{edges} edges, largest difference" in found["weights"].text
    assert found["edges"].figures["pairs"] >= edges
    assert (found["edges"].figures["extra"], found["edges"].figures["missing"]) == (
        0,
        0,
    )
    assert found["errors"].figures["nodes"] == n
    assert found["distances"].figures["entries"] == graph.adjacency.nnz == 2 * edges
    for name in ("errors", "distances", "weights"):
        assert found[name].figures["wrong"] == 0
        assert 0 <= found[name].figures["largest_difference"] < 1e-6
    wrong = graph.errors.copy()
    wrong[[4, 9]] += [0.25, -0.5]
    (check,) = verify(digits, replace(graph, errors=wrong)).failed
    assert check.figures["wrong"] == 2
    assert check.figures["largest_difference"] == pytest.approx(0.5)
    assert "first at node 4: " in check.text


def test_weights_of_all_nodes_at_once_are_said_to_be_unchecked(digits):
    x = digits[:90]
    built = build_graph(x, k=8, method="kalofolias")
    found = {check.name: check for check in verify(x, built).checks}
    assert found["weights"].status == "not checked"
    assert found["edges"].status == "ok"
    assert found["edges"].text.startswith(f"{built.n_edges} edges, ")


def test_candidates_that_are_there_twice_or_are_the_node_itself_fail(copied):
    built = build_graph(copied, k=8, search="pynndescent", duplicates="keep")
    listed = np.array(built.candidates)
    for node, other in ((3, listed[3, 0]), (8, 8)):
        listed[node, 5] = other
    found = verify(copied, replace(built, candidates=listed))
    check = next(c for c in found.checks if c.name == "candidates")
    assert check.status == "FAILED"
    assert check.figures["wrong"] == 2


def test_a_sample_decides_about_edges_of_which_it_has_both_ends(digits):
    built = build_graph(digits, k=8, symmetrize="mean")
    drawn = np.random.default_rng(5).choice(len(digits), 60, replace=False)
    inside = built.adjacency[drawn][:, drawn].nnz // 2
    checks = {c.name: c for c in verify(digits, built, sample=60, seed=5).checks}
    assert 0 < inside == checks["weights"].figures["edges"]
    assert checks["weights"].figures["largest_difference"] < 1e-6


def test_the_largest_difference_of_distances_is_told(digits, graph):
    wrong = graph.distances.copy()
    wrong[[3, 8]] += [0.5, -0.25]
    (check,) = verify(digits, replace(graph, distances=wrong)).failed
    assert check.figures["largest_difference"] == pytest.approx(0.5)
    assert check.figures["wrong"] == 2


def test_where_all_candidates_are_copies_the_bandwidth_is_one():
    x = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 8, axis=0)
    built = build_graph(x, k=4, sigma="auto", duplicates="keep")
    assert built.report["sigma"] == 1.0
    assert status(verify(x, built))["sigma"] == "ok"


def test_a_sample_tells_how_far_off_a_bandwidth_may_be(digits):
    x, m = digits.astype(float), 40
    n = len(x)
    built = build_graph(x, k=6, sigma="auto")
    found = verify(x, built, sample=m, seed=2)
    (check,) = (one for one in found.checks if one.name == "sigma")
    drawn = np.random.default_rng(2).choice(n, m, replace=False)
    far = np.sort(np.square(x[drawn][:, None] - x).sum(axis=2), axis=1)[:, 6]
    each = np.sqrt(far) / 3
    assert check.figures["derived"] == pytest.approx(each.mean(), rel=1e-12)
    # Drawn without replacement: of all rows, the mean is known.
    error = each.std(ddof=1) / np.sqrt(m) * np.sqrt((n - m) / (n - 1))
    assert check.figures["standard_error"] == pytest.approx(error, rel=1e-9)
    assert check.figures["nodes"] == m


def space_of(x, **options):
    recipe = recipe_of(build_graph(x, k=4, **options), "graph")
    return Space.of(Features.of(x).x, recipe)


@pytest.mark.parametrize("d", [2, 30])
def test_only_whole_numbers_that_are_small_have_no_rounding(d):
    whole = np.random.default_rng(0).integers(-9, 9, (30, d)).astype(float)
    assert space_of(whole).rounding == 0.0
    for x in (whole / 3, whole * 2.0**26):
        assert d * 2.0**-52 <= space_of(x).rounding <= 40 * d * 2.0**-52


def test_the_longest_row_is_what_errors_are_measured_by():
    x = np.random.default_rng(0).normal(size=(30, 5)) + 4
    product = space_of(x, kernel="linear")
    assert product._longest == pytest.approx(np.square(x).sum(axis=1).max())
    moved = np.square(x - x.mean(axis=0)).sum(axis=1)
    assert space_of(x)._longest == pytest.approx(moved.max())
    thin = np.where(x > 4.2, x, 0.0)
    kept = Features(SparseRows.of(csr_array(thin), ""))
    recipe = recipe_of(build_graph(kept, k=4, kernel="linear"), "graph")
    longest = Space.of(kept.x, recipe)._longest
    assert longest == pytest.approx(np.square(thin).sum(axis=1).max())


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("c", [0.0, 0.3])
def test_products_of_either_sign_pass(degree, c):
    x = np.random.default_rng(degree).normal(size=(90, 4))
    built = build_graph(x, k=6, kernel=f"polynomial:degree={degree},c={c}")
    found = verify(x, built)
    assert not found.failed
    assert status(found)["candidates"] == status(found)["weights"] == "ok"


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_scales_that_a_graph_does_not_tell_are_taken_of_the_rows(digits, scale):
    x = digits[:120]
    built = build_graph(x, k=6, scale=scale)
    told = {k: v for k, v in built.provenance.items() if k != "scaling"}
    assert "scaling" in built.provenance
    assert not verify(x, replace(built, provenance=told)).failed


def test_tiny_rows_are_no_copies(copied):
    x = copied * 1e-20
    assert not verify(x, build_graph(x, k=6)).failed
