"""Kernels: their values, their candidates, and neighborhoods that follow the theory."""

import h5py
import numpy as np
import pytest
from conftest import SAMPLES
from scipy import sparse

from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.kernels import Problem, packed_diagonal
from nnkgraph.runtime import registry


def of_points(x, kernel, k=8):
    """Return the fitted kernel, the candidates and the local similarities."""
    candidates = find_candidates(x, k=k, kernel=kernel)
    fitted = registry.create("kernels", kernel).fit(candidates)
    rows = fitted.prepare(x, "x")
    problem = Problem(
        rows,
        rows,
        candidates.index,
        candidates.distance,
        fitted,
        rows=np.arange(len(x)),
    )
    return fitted, candidates, problem


def full(gram, m):
    matrix = np.zeros((len(gram), m, m))
    matrix[:, *np.tril_indices(m)] = gram
    return matrix + np.tril(matrix, -1).transpose(0, 2, 1)


VALUES = {
    "gaussian:sigma=2": lambda a, b: np.exp(-np.square(a - b).sum(-1) / 8),
    "laplacian:sigma=2": lambda a, b: np.exp(-np.abs(a - b).sum(-1) / 2),
    "linear": lambda a, b: (a * b).sum(-1),
    "polynomial:degree=2": lambda a, b: ((a * b).sum(-1) + 1) ** 2,
    "polynomial:degree=3,gamma=0.5,c=2": lambda a, b: (0.5 * (a * b).sum(-1) + 2) ** 3,
}


@pytest.mark.parametrize("kernel", VALUES)
@pytest.mark.parametrize("d", [3, 20])
def test_similarities_are_the_kernels_formula(kernel, d):
    x = np.random.default_rng(0).normal(size=(50, d))
    _, candidates, problem = of_points(x, kernel)
    local, value = problem.local(), VALUES[kernel]
    near = x[candidates.index]
    expected = value(near[:, :, None], near[:, None])
    ridge = problem.kernel.ridge * np.einsum("qii->qi", expected).max(1)
    expected[:, range(8), range(8)] += ridge[:, None]
    assert full(local.gram, 8) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert local.cross == pytest.approx(value(near, x[:, None]), rel=1e-12, abs=1e-12)
    assert local.own == pytest.approx(value(x, x), rel=1e-12)


@pytest.mark.parametrize("kernel", VALUES)
def test_candidates_are_the_most_similar_rows(kernel):
    x = np.random.default_rng(3).normal(size=(200, 5))
    value = VALUES[kernel](x[:, None], x[None])
    np.fill_diagonal(value, -np.inf)
    best = np.argsort(-value, axis=1, kind="stable")[:, :8]
    assert np.array_equal(find_candidates(x, k=8, kernel=kernel).index, best)


def test_l1_candidates_are_the_nearest_by_every_search():
    x = np.random.default_rng(3).integers(0, 4, (300, 5)).astype(float)
    x += np.arange(300)[:, None] * 1e-3
    found = [
        find_candidates(x, k=8, kernel="laplacian", search=search)
        for search in ("exact", "kdtree")
    ]
    distance = np.abs(x[:, None] - x[None]).sum(-1)
    np.fill_diagonal(distance, np.inf)
    kth = np.sort(distance, axis=1)[:, :8]
    for one in found:
        assert one.distance == pytest.approx(kth, abs=1e-12)
    assert np.array_equal(found[0].index, found[1].index)


def test_the_lle_kernel_is_equation_seven():
    x = np.random.default_rng(0).normal(size=(60, 4))
    _, candidates, problem = of_points(x, "lle")
    local = problem.local()
    for q in (0, 17, 59):
        u = x[candidates.index[q]] - x[q]
        u /= np.linalg.norm(u, axis=1)[:, None]
        expected = 0.5 + 0.5 * u @ u.T + 1e-8 * np.eye(8)
        assert full(local.gram, 8)[q] == pytest.approx(expected, abs=1e-12)
    assert (local.cross == 1).all()
    assert (local.own == 2).all()
    graph = build_graph(x, k=8, kernel="lle")
    assert (graph.errors >= 0).all()


@pytest.mark.parametrize("kernel", ["polynomial", "gaussian"])
def test_two_candidates_follow_the_interval(kernel):
    # Appendix A: of two candidates both stay if and only if the ratio of their
    # similarities with the node lies strictly between K_ij / K_jj and K_ii / K_ij.
    rng = np.random.default_rng(0)
    kept = 0
    for _ in range(250):
        x = rng.normal(size=(3, 2)) * rng.choice([0.3, 1.0, 2.0])
        graph = build_graph(
            x,
            k=2,
            kernel=kernel,
            sigma=1.0 if kernel == "gaussian" else None,
            symmetrize="none",
            min_weight=0,
        )
        if kernel == "gaussian":
            gram = np.exp(-np.square(x[:, None] - x).sum(-1) / 2)
        else:
            gram = (x @ x.T + 1) ** 2
            gram += 1e-8 * np.diag(np.diag(gram).max() * np.ones(3))
        q, i, j = 0, 1, 2
        ratio, across = gram[q, i] / gram[q, j], gram[i, j]
        low, high = across / gram[j, j], gram[i, i] / across
        inside = low < ratio < high
        if min(abs(ratio / low - 1), abs(ratio / high - 1)) < 1e-6:
            continue  # rounding decides
        if not 1e-10 < ratio < 1e10:
            continue  # a weight below what is told from zero
        weights = graph.adjacency.toarray()[q]
        assert (weights[[i, j]] > 0).all() == inside
        assert weights[i if ratio >= high else j] > 0
        kept += inside
    assert 25 < kept < 240


@pytest.mark.parametrize("kernel", ["polynomial", "laplacian", "lle"])
def test_every_node_is_proven_optimal(kernel):
    with h5py.File(SAMPLES / "digits.h5") as file:
        x = file["features"][:700].astype(float) / 16
    proof = build_graph(x, k=25, kernel=kernel).report["certificate"]
    assert proof["nodes_failed"] == 0
    assert proof["kkt_max"] < 1e-9


def gaussian_gram(x, sigma):
    return np.exp(-np.square(x[:, None] - x[None]).sum(-1) / (2 * sigma**2))


def same(a, b):
    assert np.array_equal(a.adjacency.indices, b.adjacency.indices)
    assert abs(a.adjacency - b.adjacency).max() <= 1e-9


@pytest.mark.parametrize("method", ["nnk", "omp", "mp", "knn", "l1"])
def test_a_precomputed_gram_matrix_is_as_good_as_features(method):
    x = np.random.default_rng(0).normal(size=(300, 4))
    features = build_graph(x, k=12, sigma=1.0, method=method, weights="regression")
    gram = gaussian_gram(x, 1.0)
    same(build_graph(gram, k=12, kernel="precomputed", method=method), features)


@pytest.mark.parametrize("duplicates", ["merge", "keep"])
def test_a_gram_matrix_with_copies(duplicates):
    x = np.random.default_rng(0).normal(size=(40, 3))
    x = np.concatenate([x, x[:10]])
    gram = gaussian_gram(x, 1.0)
    options = {"k": 6, "duplicates": duplicates}
    features = build_graph(x, sigma=1.0, **options, weights="regression")
    dense = build_graph(gram, kernel="precomputed", **options)
    same(dense, features)
    assert dense.report["duplicates"] == 10


def test_a_sparse_gram_matrix(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 2))
    gram = gaussian_gram(x, 0.3)
    gram[gram < 1e-3] = 0
    sparse.save_npz(tmp_path / "gram.npz", sparse.csr_matrix(gram))
    np.save(tmp_path / "gram.npy", gram)
    for name in ("gram.npz", "gram.npy"):
        for workers in (1, 2):
            out = tmp_path / f"{name}-{workers}.tsv"
            build = ("build", tmp_path / name, "-o", out, "--kernel", "precomputed")
            assert run(*build, "-k", 5, "-j", workers).code == 0
    texts = {
        path.name: [
            line for line in path.read_text().splitlines() if not line.startswith("#")
        ]
        for path in tmp_path.glob("*.tsv")
    }
    assert len(texts) == 4
    assert len({tuple(lines) for lines in texts.values()}) == 1
    assert len(texts["gram.npy-1.tsv"]) > 200


def test_a_sparse_row_with_few_entries_has_few_candidates(run, tmp_path):
    gram = sparse.csr_matrix(np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1.0]]))
    sparse.save_npz(tmp_path / "gram.npz", gram)
    call = ("build", tmp_path / "gram.npz", "-o", tmp_path / "g.tsv", "--kernel")
    assert run(*call, "precomputed").code == 0
    edges = (tmp_path / "g.tsv").read_text().splitlines()[-1]
    assert edges == "0\t1\t0.5"


def test_a_mapped_gram_matrix_is_not_copied(tmp_path):
    x = np.random.default_rng(0).normal(size=(400, 3))
    np.save(tmp_path / "gram.npy", gaussian_gram(x, 1.0))
    mapped = np.load(tmp_path / "gram.npy", mmap_mode="r")
    kernel = registry.create("kernels", "precomputed")
    assert kernel.prepare(mapped, "gram") is mapped


WRONG = {
    "not square": (np.ones((4, 3)), "as many columns as rows"),
    "not symmetric": (np.array([[1, 0.5], [0.4, 1]]), "row 0, column 1 is 0.5"),
    "negative": (np.array([[-1, 0.5], [0.5, 1]]), "with itself is -1"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_matrices_that_cannot_be_similarities(run, tmp_path, wrong, form):
    matrix, words = WRONG[wrong]
    path = tmp_path / ("gram.npy" if form == "dense" else "gram.npz")
    if form == "dense":
        np.save(path, matrix)
    else:
        sparse.save_npz(path, sparse.csr_matrix(matrix))
        words = words.replace("as many columns as rows", "square")
    result = run("build", path, "-o", tmp_path / "g.npz", "--kernel", "precomputed")
    assert result.code == 3
    assert words in result.err
    assert len(result.lines) == 1
    assert not (tmp_path / "g.npz").exists()


@pytest.mark.parametrize(("row", "column"), [(3, 590), (590, 3), (599, 560)])
def test_asymmetry_is_seen_in_every_block_of_rows(row, column):
    gram = np.eye(600)
    gram[row, column] = 0.5
    kernel = registry.create("kernels", "precomputed")
    low, high = sorted((row, column))
    with pytest.raises(InputError, match=f"row {low}, column {high} is "):
        kernel.prepare(gram, "gram.npy")


FUNCTIONS = """
import numpy as np

def gaussian(a, b):
    return np.exp(-np.square(a[:, None] - b[None]).sum(-1) / 2)

def raises(a, b):
    raise ValueError("no\\nsuch luck")

def narrow(a, b):
    return np.ones(len(a))

def infinite(a, b):
    return np.full((len(a), len(b)), np.inf)

def negative(a, b):
    return -a @ b.T

def lopsided(a, b):
    return np.arange(len(a))[:, None] + np.zeros(len(b))

number = 5
"""


@pytest.fixture
def functions(tmp_path):
    (tmp_path / "mykernels.py").write_text(FUNCTIONS)
    x = np.random.default_rng(0).normal(size=(300, 4))
    np.save(tmp_path / "x.npy", x)
    return tmp_path


@pytest.mark.parametrize("workers", [1, 2])
def test_a_function_of_the_users_own(program, functions, workers):
    common = ("-k", 12, "-j", workers)
    own, plain = ("--kernel", "mykernels:gaussian"), ("--weights", "regression")
    done = program("build", "x.npy", "-o", "own.npz", *own, *common)
    assert done.code == 0, done.err
    program("build", "x.npy", "-o", "gaussian.npz", "--sigma", 1, *common, *plain)
    a, b = (sparse.load_npz(functions / f"{name}.npz") for name in ("own", "gaussian"))
    assert np.array_equal(a.indices, b.indices)
    assert abs(a - b).max() <= 1e-9


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mykernels:raises", "raised ValueError: no"),
        ("mykernels:narrow", "returned shape (8,)"),
        ("mykernels:infinite", "not finite"),
        ("mykernels:lopsided", "not symmetric"),
        ("mykernels:negative", "not positive definite"),
        ("mykernels:number", "no function"),
        ("mykernels:missing", "cannot be imported"),
        ("nowhere:f", "cannot be imported"),
    ],
)
def test_functions_that_cannot_be_kernels(program, functions, name, words):
    done = program("build", "x.npy", "-o", "g.npz", "--kernel", name)
    assert done.code == 2
    assert words in done.err
    assert len(done.lines) == 1
    assert not (functions / "g.npz").exists()


@pytest.mark.parametrize(
    "spec",
    [
        "polynomial:degree=0",
        "polynomial:gamma=0",
        "polynomial:c=-1",
        "precomputed:ridge=2",
        "function:path=nocolon",
        "laplacian:sigma=-1",
    ],
)
def test_parameters_are_checked(spec):
    with pytest.raises(ParameterError):
        registry.create("kernels", spec)


def test_a_polynomial_that_would_overflow_is_refused():
    with pytest.raises(InputError, match="too large"):
        build_graph(np.full((5, 2), 1e40) * np.arange(5)[:, None], kernel="polynomial")


def test_similarities_are_not_scaled():
    with pytest.raises(ParameterError, match="cannot be scaled"):
        build_graph(np.eye(4), kernel="precomputed", scale="standard")


@pytest.mark.parametrize("sigma", [1e-4, 1e-2, 1.0, 100.0])
def test_laplacian_weights_survive_extreme_bandwidths(sigma):
    x = np.random.default_rng(0).normal(size=(100, 3))
    graph = build_graph(x, k=8, kernel="laplacian", sigma=sigma, min_weight=0)
    assert np.isfinite(graph.adjacency.data).all()
    assert graph.report["certificate"]["nodes_failed"] == 0


def test_the_packed_diagonal_is_where_it_is():
    row, column = np.tril_indices(5)
    assert np.array_equal(packed_diagonal(5), np.flatnonzero(row == column))
