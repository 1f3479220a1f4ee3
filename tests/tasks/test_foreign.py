"""Graphs that other programs made: verified by parameters that are given."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import io, sparse
from scipy.optimize import nnls
from scipy.spatial.distance import cdist

from nnkgraph import Graph, build_graph
from nnkgraph.data import Features
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats import write_graph
from nnkgraph.tasks.verify import verify

K, SIGMA = 8, 0.6
X = np.random.default_rng(5).normal(size=(150, 3))
FAR = cdist(X, X)
NEAR = np.argsort(FAR, axis=1)[:, 1 : K + 1]
OPTIONS = ("-k", K, "--method", "knn")


def lists(values):
    """The (n, n) matrix with values at the nearest neighbors."""
    row = np.repeat(np.arange(len(X)), K)
    return sparse.csr_array((values.ravel(), (row, NEAR.ravel())), FAR.shape)


LENGTHS = lists(np.take_along_axis(FAR, NEAR, 1))
ONES = lists(np.ones(NEAR.shape))
HEAT = lists(np.exp(-(np.take_along_axis(FAR, NEAR, 1) ** 2) / (2 * SIGMA**2)))
UNION = HEAT.maximum(HEAT.T).tocsr()
MEAN = ((ONES + ONES.T) / 2).tocsr()


def status(found):
    return {check.name: check.status for check in found.checks}


def failed(found):
    return [check.name for check in found.failed]


def changed(matrix, value):
    """The same with another weight at one edge, both directions."""
    matrix = matrix.copy().tolil()
    i, j = 3, int(NEAR[3, 0])
    matrix[i, j] = value
    if matrix[j, i]:
        matrix[j, i] = value
    made = matrix.tocsr()
    made.eliminate_zeros()
    return made


FOREIGN = {
    "lengths": (LENGTHS, {"weights": "distance"}),
    "ones": (ONES, {"weights": "one"}),
    "means": (MEAN, {"weights": "one", "symmetrize": "mean"}),
    "heat": (UNION, {"sigma": SIGMA}),
    "kernel": (UNION, {"kernel": f"gaussian:sigma={SIGMA}", "symmetrize": "max"}),
}


@pytest.mark.parametrize("sample", [None, 40])
@pytest.mark.parametrize("name", list(FOREIGN))
def test_neighbors_of_other_programs_pass_and_are_missed_when_wrong(name, sample):
    matrix, options = FOREIGN[name]
    options = {"k": K, "method": "knn", "sample": sample, **options}
    found = verify(X, matrix, **options)
    assert not found.failed, found.failed
    assert status(found)["edges"] == status(found)["weights"] == "ok"
    assert status(found)["features"] == status(found)["sigma"] == "not checked"
    assert found.parameters["method"] == "knn"
    assert found.looked == (sample or len(X))
    more = verify(X, matrix, **{**options, "k": K + 1})
    assert "edges" in failed(more)
    shifted = verify(X[::-1].copy(), matrix, **options)
    assert "edges" in failed(shifted)
    if sample is None:
        assert failed(verify(X, changed(matrix, 0.7654), **options)) == ["weights"]
        assert "edges" in failed(verify(X, changed(matrix, 0.0), **options))


def test_a_sample_decides_about_all_edges_of_its_nodes():
    found = verify(X, UNION, k=K, method="knn", sigma=SIGMA, sample=40, seed=1)
    looked = np.random.default_rng(1).choice(len(X), 40, replace=False)
    rows = sparse.coo_array(UNION)
    seen = np.isin(rows.row, looked) | np.isin(rows.col, looked)
    weights = next(check for check in found.checks if check.name == "weights")
    assert weights.figures["edges"] == seen.sum() // 2


def regressions(*, exact):
    """Non-negative kernel regression by scipy, or by a solver that only prunes."""
    gram = np.exp(-(FAR**2) / (2 * SIGMA**2))
    weights, errors = np.zeros(FAR.shape), np.zeros(FAR.shape)
    for i, near in enumerate(NEAR):
        inner, cross = gram[np.ix_(near, near)], gram[i, near]
        lower = np.linalg.cholesky(inner)
        theta = nnls(lower.T, np.linalg.solve(lower, cross))[0]
        if not exact:
            theta, kept = np.linalg.solve(inner, cross), np.arange(K)
            while (theta <= 0).any():
                kept = kept[theta > 0]
                theta = np.linalg.solve(inner[np.ix_(kept, kept)], cross[kept])
            theta = np.bincount(kept, theta, K)
        weights[i, near] = theta
        errors[i, near] = 0.5 - theta @ cross + theta @ inner @ theta / 2
    mutual = (errors > 0) & (errors.T > 0)
    kept = np.where(mutual & (errors < errors.T), weights, 0.0)
    return sparse.csr_array(np.maximum(kept, kept.T))


def test_regressions_by_scipy_pass_and_those_that_prune_do_not():
    options = {"k": K, "method": "nnk", "sigma": SIGMA}
    assert not verify(X, regressions(exact=True), **options).failed
    found = verify(X, regressions(exact=False), **options)
    assert {"edges", "weights"} <= set(failed(found))


@pytest.mark.parametrize("sample", [None, 30])
@pytest.mark.parametrize("rule", ["auto", "kth-mean", "kth-max", "local"])
def test_rules_for_bandwidths_are_derived(rule, sample):
    built = build_graph(X, k=K, sigma=rule, duplicates="keep", preset="paper")
    bare = Graph(built.adjacency)
    options = {"k": K, "method": "nnk", "sample": sample, "min_weight": 1e-8}
    found = verify(X, bare, sigma=rule, **options)
    assert not found.failed
    sigma = next(check for check in found.checks if check.name == "sigma")
    if rule != "local" or sample is None:
        assert sigma.figures["derived"] == pytest.approx(built.provenance["sigma"])
    assert failed(verify(X, bare, sigma=3.0, **options))


def test_other_weights_are_left_out():
    odd = UNION.copy()
    odd.data = np.sqrt(odd.data)
    options = {"k": K, "method": "knn"}
    assert failed(verify(X, odd, sigma=SIGMA, **options)) == ["weights"]
    found = verify(X, odd, weights="any", **options)
    assert not found.failed
    assert status(found)["weights"] == "not checked"
    cut = verify(X, changed(odd, 0.0), weights="any", **options)
    assert "there is no edge" in cut.failed[-1].text


def test_ties_may_be_broken_by_any_rule():
    grid = np.stack(np.divmod(np.arange(36.0), 6), axis=1)
    far = cdist(grid, grid)
    rng = np.random.default_rng(0)
    order = np.lexsort((rng.random(far.shape), far), axis=1)[:, 1:6]
    row = np.repeat(np.arange(36), 5)
    theirs = sparse.csr_array((np.ones(180), (row, order.ravel())), far.shape)
    options = {"k": 5, "method": "knn", "weights": "one"}
    assert not verify(grid, theirs, **options).failed
    corner = theirs.tolil()
    corner[0, order[0, 0]], corner[0, 35] = 0.0, 1.0
    wrong = corner.tocsr()
    wrong.eliminate_zeros()
    assert "edges" in failed(verify(grid, wrong, **options))


def test_of_identical_rows_any_may_be_neighbors():
    many = np.concatenate([X, np.tile(X[:4], (8, 1))])  # more copies than neighbors
    far = cdist(many, many)
    np.fill_diagonal(far, -1.0)
    draw = np.random.default_rng(0).random(far.shape)
    near = np.lexsort((draw, far), axis=1)[:, 1:6]
    row = np.repeat(np.arange(len(many)), 5)
    theirs = sparse.csr_array((np.ones(row.size), (row, near.ravel())), far.shape)
    options = {"k": 5, "method": "knn", "weights": "one"}
    assert not verify(many, theirs, **options).failed


def test_identical_rows_are_nodes_unless_told():
    twice = np.concatenate([X, X[:20]])
    far = cdist(twice, twice)
    np.fill_diagonal(far, -1.0)
    near = np.argsort(far, axis=1, kind="stable")[:, 1:6]
    row = np.repeat(np.arange(len(twice)), 5)
    theirs = sparse.csr_array((np.ones(row.size), (row, near.ravel())), far.shape)
    options = {"k": 5, "method": "knn", "weights": "one"}
    assert not verify(twice, theirs, **options).failed
    assert "copies" in failed(verify(twice, theirs, duplicates="merge", **options))
    merged = build_graph(twice, k=5, sigma=1.0, method="knn")
    options = {"k": 5, "method": "knn", "sigma": 1.0, "min_weight": 1e-8}
    bare = Graph(merged.adjacency)
    assert not verify(twice, bare, duplicates="merge", **options).failed
    assert failed(verify(twice, bare, **options))


def test_candidates_of_an_approximate_search_are_given(run, tmp_path):
    missed = NEAR.copy()
    missed[::3, 2] = np.argsort(FAR, axis=1)[::3, K + 3]
    row = np.repeat(np.arange(len(X)), K)
    theirs = sparse.csr_array((np.ones(row.size), (row, missed.ravel())), FAR.shape)
    options = {"k": K, "method": "knn", "weights": "one"}
    assert "edges" in failed(verify(X, theirs, **options))
    own = np.column_stack([np.arange(len(X)), missed])  # with the nodes themselves
    for given in (missed, own, (missed, np.zeros(missed.shape))):
        found = verify(X, theirs, candidates=given, **options)
        assert not found.failed, found.failed
    listed = next(check for check in found.checks if check.name == "candidates")
    assert listed.figures["recall"] == pytest.approx(1 - 50 / (150 * K))
    np.save(tmp_path / "x.npy", X)
    sparse.save_npz(tmp_path / "w.npz", theirs)
    np.savez(tmp_path / "knn.npz", neighbors=own)
    search = f"precomputed:path={tmp_path / 'knn.npz'}"
    call = ("verify", tmp_path / "x.npy", tmp_path / "w.npz", *OPTIONS)
    call += ("--weights", "one", "--search")
    assert run(*call, search).code == 0
    assert run(*call, "precomputed").code == 2
    assert run(*call, "pynndescent").code == 2
    lost = run(*call, f"precomputed:path={tmp_path / 'no.npz'}")
    assert (lost.code, len(lost.lines)) == (3, 1)


def test_directions_that_differ_by_rounding_are_one_edge():
    skew = UNION.copy()
    skew.data = skew.data * (1 + 1e-12 * np.random.default_rng(1).random(skew.nnz))
    options = {"k": K, "method": "knn", "sigma": SIGMA, "symmetrize": "max"}
    assert not verify(X, skew, **options).failed
    found = verify(X, HEAT, **options)
    assert "rule" in failed(found)
    assert not verify(X, HEAT, k=K, method="knn", sigma=SIGMA).failed  # directed


def edge_list(path, names):
    half = sparse.coo_array(sparse.triu(UNION))
    order = np.random.default_rng(2).permutation(half.nnz)
    with path.open("w") as file:
        for e in order:
            i, j = half.row[e], half.col[e]
            file.write(f"{names[i]}\t{names[j]}\t{float(half.data[e])!r}\n")


@pytest.mark.parametrize("suffix", ["npz", "coo.npz", "mtx", "tsv", "names"])
def test_files_of_other_programs(run, tmp_path, suffix):
    path, features = tmp_path / f"w.{suffix}", tmp_path / "x.npy"
    np.save(features, X)
    names = [f"r{i}" for i in range(len(X))]
    if suffix.endswith("npz"):
        sparse.save_npz(path, UNION.tocoo() if "coo" in suffix else UNION)
    elif suffix == "mtx":
        io.mmwrite(path, UNION)
    else:
        path = tmp_path / "w.tsv"
        edge_list(path, range(len(X)) if suffix == "tsv" else names)
    call = ("verify", features, path, *OPTIONS, "--sigma", SIGMA)
    if suffix == "names":
        refused = run(*call)
        assert (refused.code, len(refused.lines)) == (3, 1)
        assert "name them, --ids or --id-column" in refused.err
        (tmp_path / "ids.txt").write_text("\n".join(names))
        call += ("--ids", tmp_path / "ids.txt")
    result = run(*call)
    assert result.code == 0, result.err
    assert "ok           weights" in result.out
    assert "taken as k 8, method knn" in result.err
    sampled = run(*call, "--sample", 20, "--json")
    assert sampled.code == 0
    told = json.loads(sampled.out)
    assert told["parameters"]["rule"] == "max"
    assert told["looked_at"] == 20
    wrong = run(*call[:-1], call[-1], "-k", K - 1, "-q")
    assert (wrong.code, len(wrong.lines)) == (6, 1)


def test_a_list_of_edges_has_an_order_of_its_own_and_lacks_lonely_nodes():
    rows = Features.of(X, ids=[f"r{i}" for i in range(len(X))])
    built = build_graph(X, k=K, method="eps:radius=0.5").adjacency
    there = np.flatnonzero(np.diff(built.indptr))
    assert 50 < len(there) < len(X)
    order = np.random.default_rng(0).permutation(there)
    inner, names = built[order][:, order].tocsr(), tuple(f"r{i}" for i in order)
    options = {"method": "eps:radius=0.5", "weights": "one"}
    inner.data[:] = 1.0
    found = verify(rows, Graph(inner, ids=names), **options)
    assert not found.failed
    assert found.nodes == len(X)
    with pytest.raises(InputError, match="node 'zz' is no row"):
        verify(rows, Graph(inner, ids=("zz", *names[1:])), **options)
    turned = Graph(inner, ids=names[::-1])
    assert "edges" in failed(verify(rows, turned, **options))


GIVEN = {"k": K, "method": "knn", "sigma": SIGMA}


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"k": None, "method": None, "sigma": None}, InputError, "does not say how"),
        ({"method": None}, ParameterError, "name `method`"),
        ({"k": None}, ParameterError, "name `k`"),
        ({"sigma": None}, ParameterError, "name `sigma`"),
        ({"k": 150}, InputError, "at most 149"),
        ({"k": 0}, ParameterError, "at least 1"),
        ({"sigma": -1.0}, ParameterError, "sigma"),
        ({"sigma": "wide"}, ParameterError, "sigma 'wide'"),
        ({"method": "forest"}, ParameterError, "unknown method 'forest'"),
        ({"kernel": "cosine"}, ParameterError, "has no bandwidth"),
        ({"kernel": "gaussian:sigma=1"}, ParameterError, "has its own"),
        ({"symmetrize": "error"}, ParameterError, "method 'knn' has none"),
        ({"symmetrize": "both"}, ParameterError, "unknown rule 'both'"),
        ({"weights": "heavy"}, ParameterError, "unknown weights 'heavy'"),
        ({"weights": "distance", "method": "nnk"}, ParameterError, "knn and eps"),
        ({"search": "pynndescent"}, ParameterError, "cannot be repeated"),
        ({"kernel": "distance", "scale": "unit"}, ParameterError, "cannot be scaled"),
        ({"candidates": NEAR[:5]}, InputError, "one row for each of 150"),
        ({"candidates": NEAR + 100}, InputError, "numbered from 0 to 149"),
        ({"sample": 0}, ParameterError, "at least 1 node"),
    ],
)
def test_what_cannot_be_is_refused(change, error, words):
    with pytest.raises(error, match=words):
        verify(X, UNION, **{**GIVEN, **change})


@pytest.mark.parametrize("bad", ["loops", "shape", "nan", "text"])
def test_matrices_that_are_no_graphs_are_refused(bad):
    matrix = {
        "loops": UNION + sparse.eye_array(len(X)),
        "shape": UNION[:5],
        "nan": changed(UNION, np.nan),
        "text": "graph",
    }[bad]
    with pytest.raises(InputError, match="graph"):
        verify(X, matrix, **GIVEN)


def test_other_rows_than_nodes_fail():
    found = verify(X[:-1], UNION, **GIVEN)
    assert failed(found) == ["features"]
    assert found.looked == 0


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 3, "does not say how it was built"),
        (("-k", 8), 2, "name --method"),
        (("--method", "knn", "--sigma", 1), 2, "name -k"),
        (OPTIONS, 2, "name --sigma"),
        ((*OPTIONS, "--sigma", "wide"), 2, "--sigma"),
        ((*OPTIONS, "--weights", "much"), 2, "--weights"),
        (("-k", 150, "--method", "knn", "--sigma", 1), 3, "at most 149"),
        ((*OPTIONS, "--sigma", 0.5, "-q"), 6, "verification failed: weights"),
    ],
)
def test_the_command_says_what_to_give(run, tmp_path, options, code, words):
    np.save(tmp_path / "x.npy", X)
    sparse.save_npz(tmp_path / "w.npz", UNION)
    result = run("verify", tmp_path / "x.npy", tmp_path / "w.npz", *options)
    assert result.code == code
    assert words in result.lines[-1]
    if code < 6:
        assert (len(result.lines), result.out) == (1, "")


def test_options_beside_a_graph_that_says_them(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    write_graph("g.npz", build_graph(X, k=K, sigma=SIGMA))
    agree = ("-k", K, "--method", "nnk", "--symmetrize", "error", "--sigma", SIGMA)
    assert run("verify", "x.npy", "g.npz", *agree, "--scale", "none").code == 0
    for options, words in (
        (("-k", 9), "-k 9 contradicts g.npz, which says 8"),
        (("--symmetrize", "max"), "which says error"),
        (("--round", 3), "--round 3 contradicts g.npz, which says 0"),
        (("--weights", "one"), "contradicts g.npz"),
    ):
        result = run("verify", "x.npy", "g.npz", *options)
        assert (result.code, len(result.lines)) == (2, 1)
        assert words in result.err
    # What a file says for all graphs gives way to what a graph says itself.
    text = "k = 9\nsigma = 2\nsearch = 'precomputed:path=no.npz'\n"
    (tmp_path / "c.toml").write_text(text)
    assert run("verify", "x.npy", "g.npz", "--config", "c.toml").code == 0
    sparse.save_npz("w.npz", UNION)
    (tmp_path / "c.toml").write_text(f"k = {K}\nmethod = 'knn'\nsigma = {SIGMA}\n")
    assert run("verify", "x.npy", "w.npz", "--config", "c.toml").code == 0
    with pytest.raises(ParameterError, match="give none"):
        verify(X, build_graph(X, k=K), candidates=NEAR)


def test_lost_candidates_can_be_given():
    built = build_graph(X, k=K, candidates=NEAR)
    lost = replace(built, candidates=None)
    assert status(verify(X, lost))["edges"] == "not checked"
    found = verify(X, lost, candidates=NEAR)
    assert not found.failed
    assert status(found)["edges"] == "ok"
