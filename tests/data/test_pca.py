"""Principal components: those of numpy.linalg.svd, stored, and used again."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

import nnkgraph
from nnkgraph import formats
from nnkgraph.data import Features, SparseRows, pca
from nnkgraph.data.pca import Projection
from nnkgraph.data.scaling import Scaling
from nnkgraph.errors import InputError, ParameterError

RANDOM = np.random.default_rng(2)


def table(n=150, d=20, *, seed=0):
    """Return rows of a few directions, with noise and an offset."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + 0.3 * rng.normal(
        size=(n, d)
    )
    return x * np.linspace(1, 3, d) + 50


def counts(n=150, d=40, *, seed=0):
    """Return sparse counts; rows 5 and 7 repeat row 3, column 2 is constant."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(2.0, (n, d)) * (rng.random((n, d)) < 0.3) * np.arange(1, d + 1)
    x[:, 0] += 1
    x[:, 2] = 4
    x[5] = x[7] = x[3]
    return sp.csr_array(x.astype(np.float64))


def scaled_by_numpy(x, how):
    if how == "unit":
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    low = {"standard": x.mean(axis=0), "minmax": x.min(axis=0)}.get(how, 0.0)
    width = {"standard": x.std(axis=0), "minmax": np.ptp(x, axis=0)}.get(how, 1.0)
    there = np.broadcast_to(np.ptp(x, axis=0) > 0, x.shape) | (how == "none")
    return np.where(there, (x - low) / np.where(np.equal(width, 0), 1, width), 0)


def components(x, count):
    """Return axes, coordinates and share of the variance, by numpy."""
    moved = x - x.mean(axis=0)
    _, size, axes = np.linalg.svd(moved, full_matrices=False)
    share = (size[:count] ** 2).sum() / (size**2).sum()
    return axes[:count], moved @ axes[:count].T, share


@pytest.fixture(params=["columns", "rows", "steps"])
def way(request, monkeypatch):
    """Have components found by each of the three ways."""
    if request.param == "steps":
        monkeypatch.setattr(pca, "_EXACT", 10)
        monkeypatch.setattr(pca, "_EXACT_SPARSE", 10)
    return request.param


@pytest.mark.parametrize("scale", ["none", "standard", "minmax", "unit"])
@pytest.mark.parametrize("form", [table, counts])
def test_components_are_those_of_numpy(way, form, scale):
    x = form(n=15 if way == "rows" else 150)
    plain = x.toarray() if sp.issparse(x) else x
    rows = SparseRows.of(x, "x") if sp.issparse(x) else x
    scaling = Scaling.of(rows, scale, 5)
    axes, seen, share = components(scaled_by_numpy(plain, scale), 5)
    found = scaling.applied(rows, "x")
    sign = np.sign((found * seen).sum(axis=0))
    assert np.allclose(scaling.projection.axes, axes * sign[:, np.newaxis], atol=1e-9)
    assert np.allclose(found, seen * sign, atol=1e-9 * np.abs(seen).max())
    assert scaling.projection.share == pytest.approx(share, abs=1e-12)
    largest = np.abs(scaling.projection.axes).argmax(axis=1)
    assert (scaling.projection.axes[np.arange(5), largest] > 0).all()
    # What was learned goes for the same rows in the other form.
    other = plain if sp.issparse(x) else SparseRows.of(sp.csr_array(x), "x")
    assert np.allclose(scaling.applied(other, "x"), found, atol=1e-8)


def test_wide_rows_with_a_far_offset_lose_no_digits():
    x = table() + 1e6
    found = Scaling.of(x, "none", 4).applied(x, "x")
    assert np.allclose(np.abs(found), np.abs(components(x, 4)[1]), atol=1e-7)


@pytest.mark.parametrize("form", [table, counts])
def test_a_row_does_not_depend_on_those_beside_it(monkeypatch, form):
    x = form()
    rows = SparseRows.of(x, "x") if sp.issparse(x) else x
    scaling = Scaling.of(rows, "none", 6)
    whole = scaling.applied(rows, "x")
    for row in range(0, 150, 13):
        assert np.array_equal(scaling.applied(rows[row : row + 1], "x"), whole[[row]])
    monkeypatch.setattr("nnkgraph.runtime.arrays._MOST_BLOCK", 4000)
    assert np.array_equal(scaling.applied(rows, "x"), whole)
    again = Scaling.of(rows, "none", 6)
    assert np.array_equal(again.projection.axes, scaling.projection.axes)


def test_what_has_no_variance_is_zero(way):
    n = 15 if way == "rows" else 150
    x = np.zeros((n, 30))
    x[:, :3] = RANDOM.normal(size=(n, 3)) * [5, 3, 2]
    scaling = Scaling.of(x, "none", 12)
    assert scaling.projection.share == pytest.approx(1.0)
    assert not scaling.projection.axes[3:].any()
    assert not scaling.applied(x, "x")[:, 3:].any()
    constant = Scaling.of(np.ones((9, 4)), "none", 2)
    assert (constant.projection.share, constant.projection.axes.any()) == (1.0, False)


def test_it_is_stored_to_the_bit():
    seen = Scaling.of(table(), "standard", 3)
    stored = {"scale": "standard", "pca": 3, **json.loads(json.dumps(seen.stored()))}
    again = Scaling.read(stored)
    for part in ("center", "axes", "share"):
        one, two = (getattr(own.projection, part) for own in (seen, again))
        assert np.array_equal(one, two)
    assert np.array_equal(again.applied(table(), "x"), seen.applied(table(), "x"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda both: both.pop("axes"),
        lambda both: both.update(axes=both["axes"][:-8]),
        lambda both: both.update(axes="not base64!"),
        lambda both: both.update(center=both["center"][:16]),
        lambda both: both.update(axes=both["center"]),
        lambda both: both.update(axes="////////" * (len(both["axes"]) // 8)),
    ],
)
def test_damaged_components_are_refused(run, tmp_path, damage):
    np.save(tmp_path / "x.npy", table())
    graph = nnkgraph.build_graph(table(), k=5, pca=3)
    damage(graph.provenance["projection"])
    formats.write_graph(tmp_path / "g.npz", graph)
    x, g, out = tmp_path / "x.npy", tmp_path / "g.npz", tmp_path / "o.npz"
    for line in (
        ("verify", x, g),
        ("query", x, x, "--graph", g, "-o", out),
        ("build", x, "--like", g, "-o", out),
        ("explain", x, "--graph", g, "--node", 3),
        ("update", g, "--features", x, "--add", x, "-o", out),
    ):
        done = run(*line)
        assert (done.code, len(done.lines)) == (3, 1), (line, done.err)
        assert not out.exists()


# Graphs


@pytest.fixture(params=["dense", "sparse"])
def files(request, tmp_path):
    """Write rows and new rows of either form."""
    if request.param == "dense":
        np.save(tmp_path / "x.npy", table()[:130])
        np.save(tmp_path / "new.npy", table()[130:])
        np.save(tmp_path / "both.npy", table())
        ending = "npy"
    else:
        sp.save_npz(tmp_path / "x.npz", counts()[:130])
        sp.save_npz(tmp_path / "new.npz", counts()[130:])
        sp.save_npz(tmp_path / "both.npz", counts())
        ending = "npz"
    return [tmp_path / f"{name}.{ending}" for name in ("x", "new", "both")]


def done(run, *words):
    found = run(*words)
    assert found.code == 0, found.err
    return found


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
def test_a_graph_of_components_all_its_life(run, tmp_path, files, scale):
    x, new, both = files
    g = tmp_path / "g.npz"
    how = ("--pca", 4, "--scale", scale, "-k", 7)
    said = done(run, "build", x, *how, "-o", g, "--updatable", "--report", "-")
    report = json.loads(said.out)
    assert report["pca"] == 4
    assert 0 < report["pca_share"] < 1
    assert "projection" not in report
    assert f"{100 * report['pca_share']:.1f} % of the variance" in said.err
    assert "pca 4" in said.err
    # The same as a graph of the coordinates, but for what it says of itself.
    features = formats.read_features(x)
    scaling = Scaling.of(features.x, scale, 4)
    seen = nnkgraph.build_graph(scaling.applied(features.x, "x"), k=7)
    graph = formats.read_graph(g)
    assert (seen.adjacency != graph.adjacency).nnz == 0
    for path in (g, tmp_path / "g.tsv", tmp_path / "g.graphml", tmp_path / "g.mtx"):
        if path != g:
            done(run, "convert", g, path)
        said = done(run, "verify", x, path)
        assert "ok           components" in said.out
    assert json.loads(done(run, "info", g, "--json").out)["provenance"]["pca"] == 4
    assert len(done(run, "info", g).out) < 4000
    done(run, "verify", x, g, "--sample", 20)
    # Queries and explanations by the graph are those by its options.
    done(run, "query", x, new, "--graph", g, "-o", tmp_path / "a.npz")
    given = ("--sigma", "local", "--search", "exact")
    done(run, "query", x, new, *how, *given, "-o", tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    one = done(run, "explain", x, "--node", 9, "--graph", g, "--json")
    two = done(run, "explain", x, "--node", 9, *how, "--json")
    assert json.loads(one.out)["candidates"] == json.loads(two.out)["candidates"]
    # Rows that come later have coordinates along the same axes.
    up, like = tmp_path / "up.npz", tmp_path / "like.npz"
    done(run, "update", g, "--features", x, "--add", new, "-o", up)
    done(run, "build", both, "--like", g, "--updatable", "-o", like)
    assert up.read_bytes() == like.read_bytes()
    assert "learned from other rows" in " ".join(
        done(run, "verify", both, up).out.split()
    )
    axes = formats.read_graph(up).provenance["projection"]
    assert axes == graph.provenance["projection"]


def test_workers_shards_and_checkpoints_change_nothing(run, tmp_path, files):
    x = files[0]
    how = ("--pca", 3, "-k", 6, "--sigma", 1.5, "--search", "exact")
    done(run, "build", x, *how, "-j", 1, "-o", tmp_path / "1.npz")
    done(run, "build", x, *how, "-j", 2, "-o", tmp_path / "2.npz")
    for number in (1, 2):
        part = tmp_path / f"part-{number}.npz"
        done(run, "build", x, *how, "--shard", f"{number}/2", "-o", part)
    parts = [tmp_path / f"part-{number}.npz" for number in (1, 2)]
    done(run, "merge", *parts, "-o", tmp_path / "3.npz")
    done(run, "build", x, *how, "--resume", tmp_path / "kept", "-o", tmp_path / "4.npz")
    known = ("--pca", 3, "-k", 6)
    done(run, "search", x, *known, "-o", tmp_path / "knn.npz")
    found = f"precomputed:path={tmp_path / 'knn.npz'}"
    done(
        run,
        "build",
        x,
        *known,
        "--sigma",
        1.5,
        "--search",
        found,
        "-o",
        tmp_path / "5.npz",
    )
    first = (tmp_path / "1.npz").read_bytes()
    assert all((tmp_path / f"{one}.npz").read_bytes() == first for one in (2, 3, 4))
    one, other = (formats.read_graph(tmp_path / f"{one}.npz") for one in (1, 5))
    assert (one.adjacency != other.adjacency).nnz == 0


@pytest.mark.parametrize("form", [table, counts])
def test_the_number_of_processors_changes_nothing(program, tmp_path, monkeypatch, form):
    x = sp.csr_array(form(400, 1200))
    sp.save_npz(tmp_path / "x.npz", x)
    np.save(tmp_path / "x.npy", x.toarray())
    for path in (tmp_path / "x.npz", tmp_path / "x.npy"):
        found = []
        for threads in ("1", "2"):
            monkeypatch.setenv("OPENBLAS_NUM_THREADS", threads)
            words = ("--pca", 20, "-k", 6, "-o", tmp_path / "g.npz")
            assert program("build", path, *words).code == 0
            found.append((tmp_path / "g.npz").read_bytes())
        assert found[0] == found[1]


def test_identical_rows_stay_identical(files):
    rows = formats.read_features(files[0])
    twice = nnkgraph.query(rows, rows, pca=4, k=5)
    assert (twice.identical >= 0).all()
    if isinstance(rows.x, SparseRows):
        graph = nnkgraph.build_graph(rows, pca=4, k=5)
        assert graph.report["duplicates"] == 2


@pytest.mark.parametrize("part", ["axes", "turned"])
def test_other_components_are_found_out(part):
    x = table()
    graph = nnkgraph.build_graph(x, k=6, pca=3)
    seen = Projection.read(graph.provenance)
    axes = seen.axes.copy()
    if part == "axes":
        axes[0] *= 1.001
    else:  # other axes of the same plane are not principal
        axes[:2] = [[0.8, 0.6], [0.6, -0.8]] @ axes[:2]
    graph.provenance.update(Projection(seen.center, axes, seen.share).stored())
    failed = {check.name for check in nnkgraph.verify(x, graph).failed}
    assert "components" in failed


@pytest.mark.parametrize("command", ["compare", "doctor", "audit", "classify"])
def test_other_commands_see_the_coordinates(run, tmp_path, files, command):
    x = files[0]
    features = formats.read_features(x)
    np.save(
        tmp_path / "seen.npy", Scaling.of(features.x, "none", 4).applied(features.x, "")
    )
    np.save(tmp_path / "y.npy", np.arange(130) % 2)
    labels = (
        ("--labels", tmp_path / "y.npy") if command in {"audit", "classify"} else ()
    )
    if command == "classify":  # components are those of the training rows alone
        split = np.arange(130) >= 130
        split[:2] = True
        np.save(tmp_path / "split.npy", split.astype(int))
        labels += ("--split", tmp_path / "split.npy")
        rows = features.x[np.flatnonzero(~split)]
        scaling = Scaling.of(rows, "none", 4)
        np.save(tmp_path / "seen.npy", scaling.applied(features.x, ""))
    k = ("-k", "5")
    one = json.loads(done(run, command, x, "--pca", 4, *k, *labels, "--json").out)
    two = json.loads(
        done(run, command, tmp_path / "seen.npy", *k, *labels, "--json").out
    )
    if command == "compare":
        for line in (*one["lines"], *two["lines"]):
            del line["seconds"]
        assert one["lines"] == two["lines"]
    elif command == "doctor":
        assert "--pca 4" in one["suggestion"]["command"]
        for part in ("support", "overlap", "graphs", "similarities"):
            assert one[part] == two[part]
    elif command == "audit":
        assert one["table"] == two["table"]
    else:
        for name in ("seconds", "features", "pca"):
            one.pop(name)
            two.pop(name, None)
        assert one == two


@pytest.mark.parametrize("kernel", ["laplacian", "polynomial", "lle"])
def test_sparse_rows_may_then_have_any_kernel_and_bridges(kernel):
    graph = nnkgraph.build_graph(counts(), k=6, pca=5, kernel=kernel, connect="mst")
    assert not nnkgraph.verify(counts(), graph).failed
    found = nnkgraph.build_graph(counts(), k=6, pca=5, method="lle")
    assert found.report["certificate"]["nodes_failed"] == 0
    assert nnkgraph.build_graph(counts(), k=6, pca=5, search="kdtree").n_edges


@pytest.mark.parametrize(
    ("kernel", "metric"), [("gaussian", "euclidean"), ("cosine", "chord")]
)
def test_lengths_are_those_of_the_coordinates(kernel, metric):
    graph = nnkgraph.build_graph(counts(), k=6, pca=5, scale="unit", kernel=kernel)
    assert graph.provenance["metric"] == metric


def test_options_may_stand_elsewhere(run, tmp_path, files, monkeypatch):
    g = tmp_path / "g.npz"
    (tmp_path / "c.toml").write_text("[build]\npca = 3\n")
    done(run, "build", files[0], "--config", tmp_path / "c.toml", "-o", g)
    assert formats.read_graph(g).provenance["pca"] == 3
    monkeypatch.setenv("NNKGRAPH_BUILD_PCA", "2")
    done(run, "build", files[0], "-o", g)
    assert formats.read_graph(g).provenance["pca"] == 2
    assert "pca 2" in done(run, "build", files[0], "-o", g, "--dry-run").err


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (["--pca", 0], 2, "at least 1"),
        (["--pca", "x"], 2, "--pca"),
        (["--pca", 21], 3, "at most 20"),
        (["--pca", 3, "--kernel", "precomputed"], 2, "leave pca out"),
        (["--pca", 3, "--like", "g.npz"], 2, "--pca and --like"),
    ],
)
def test_what_cannot_be_is_refused(run, tmp_path, monkeypatch, words, code, what):
    monkeypatch.chdir(tmp_path)
    x = np.abs(table()[:20] @ table()[:20].T) if "precomputed" in words else table()
    np.save("x.npy", x)
    formats.write_graph("g.npz", nnkgraph.build_graph(table(), k=5))
    found = run("build", "x.npy", *words, "-o", "o.npz")
    assert (found.code, len(found.lines)) == (code, 1), found.err
    assert what in found.lines[0]
    assert not (tmp_path / "o.npz").exists()


def test_few_rows_have_few_components(run, tmp_path):
    np.save(tmp_path / "x.npy", table(8))
    found = run(
        "classify", tmp_path / "x.npy", "--labels", tmp_path / "x.npy", "--pca", 9
    )
    assert found.code == 3
    with pytest.raises(InputError, match="8 rows of 20 columns have at most 8"):
        nnkgraph.build_graph(table(8), pca=9)
    with pytest.raises(ParameterError, match="at least 1"):
        nnkgraph.build_graph(table(8), pca=0)
    wide = Features.of(
        sp.csr_array(([1.0, 2.0], ([0, 9], [0, 1])), shape=(10, 2_000_000))
    )
    with pytest.raises(InputError, match="to be stored: 8 at most"):
        nnkgraph.build_graph(wide, pca=9)


@pytest.mark.parametrize("form", [table, counts])
def test_estimators_learn_components_once(form):
    sklearn = pytest.importorskip("nnkgraph.sklearn")
    x, y = form(), np.arange(150) % 3
    rows = SparseRows.of(x, "x") if sp.issparse(x) else x
    scaling = Scaling.of(rows[:120], "none", 4)
    plain = [scaling.applied(rows[part], "") for part in (slice(120), slice(120, 150))]
    one = sklearn.NNKClassifier(n_neighbors=6, pca=4).fit(x[:120], y[:120])
    two = sklearn.NNKClassifier(n_neighbors=6).fit(plain[0], y[:120])
    assert np.array_equal(one.predict_proba(x[120:]), two.predict_proba(plain[1]))
    assert np.array_equal(one.kneighbors(x[120:])[0], two.kneighbors(plain[1])[0])
    assert np.array_equal(one.kneighbors()[1], two.kneighbors()[1])
    graph = sklearn.NNKTransformer(n_neighbors=6, pca=4).fit(x[:120])
    other = sklearn.NNKTransformer(n_neighbors=6).fit(plain[0])
    assert (graph.transform(x[120:]) != other.transform(plain[1])).nnz == 0
    assert (graph.graph_ != other.graph_).nnz == 0
    assert graph.result_.provenance["pca"] == 4
    assert (graph.fit_transform(x[:120]) != other.fit_transform(plain[0])).nnz == 0
