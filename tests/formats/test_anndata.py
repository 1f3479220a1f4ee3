"""AnnData files: matrices of cells in, and graphs into them where scanpy looks."""

import json
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import PROGRAM
from scipy.sparse import csc_matrix, csr_matrix
from scipy.spatial.distance import cdist

from nnkgraph import formats
from nnkgraph.data import Features, SparseRows
from nnkgraph.errors import InputError, OutputError
from nnkgraph.formats import find_place

anndata = pytest.importorskip("anndata")
pandas = pytest.importorskip("pandas")

N = 40
RANDOM = np.random.default_rng(3)
X = np.where(RANDOM.random((N, 12)) < 0.4, RANDOM.random((N, 12)), 0).astype("f4")
PCA = RANDOM.normal(size=(N, 5)).astype("f4")
NAMES = [f"cell-{number:02}" for number in range(N)]


def make(path, x=X, pca=PCA, names=NAMES):
    """Write a small AnnData file as users have them."""
    kind = pandas.Categorical(["B", "T", None, "NK"] * (len(names) // 4))
    obs = pandas.DataFrame({"kind": kind, "depth": np.arange(len(names))}, names)
    cells = anndata.AnnData(x, obs=obs)
    if pca is not None:
        cells.obsm["X_pca"] = pca
    cells.uns["pca"] = {"variance": np.arange(3.0)}
    cells.uns["neighbors"] = {"params": {"n_neighbors": 2}, "old": np.arange(5)}
    cells.write_h5ad(path)
    return path


@pytest.fixture
def cells(tmp_path):
    return make(tmp_path / "cells.h5ad")


def everything(path, leave_out=()):
    """All values and attributes of a file, as bytes."""
    found = {}

    def visit(name, node):
        if name.startswith(tuple(leave_out)):
            return
        values = node[()] if isinstance(node, h5py.Dataset) else ""
        attributes = {key: str(value) for key, value in sorted(node.attrs.items())}
        found[name] = (np.asarray(values).astype(object).tolist(), attributes)

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


# Reading


def test_features_are_the_components_where_nobody_says(cells):
    notes = []
    found = formats.read_features(cells, note=notes.append)
    assert np.array_equal(found.x, PCA)
    assert found.ids == tuple(NAMES)
    assert notes == [f"{cells}: features are in obsm/X_pca"]


def test_features_are_the_counts_where_there_are_no_components(tmp_path):
    path = make(tmp_path / "x.h5ad", pca=None)
    assert np.array_equal(formats.read_features(path).x, X)


@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1"])
def test_sparse_matrices_stay_sparse(tmp_path, monkeypatch, kind, dtype):
    monkeypatch.setattr("nnkgraph.runtime.arrays._MOST_BLOCK", 300)
    x = (X * 9).astype(dtype)
    path = make(tmp_path / "x.h5ad", kind(x))
    found = formats.read_features(f"{path}::X")
    assert isinstance(found.x, SparseRows)
    assert np.array_equal(found.x.dense(), x)
    assert found.ids == tuple(NAMES)
    assert found.sha256 == Features.of(x).sha256
    dense = formats.read_features(f"{path}::X", sparse="dense")
    assert np.array_equal(dense.x, x)


@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix])
@pytest.mark.parametrize("item", ["X", "layers/counts", "raw/X", "obsm/more"])
def test_sparse_matrices_are_read_wherever_they_are(tmp_path, kind, item):
    cells = anndata.AnnData(kind(X * 0 + 1), pandas.DataFrame(index=NAMES))
    cells.raw = anndata.AnnData(kind(X * 2), cells.obs)
    cells.layers["counts"], cells.obsm["more"] = kind(X * 3), kind(X[:, :4])
    cells.write_h5ad(tmp_path / "x.h5ad")
    again = anndata.read_h5ad(tmp_path / "x.h5ad")
    where = {
        "X": again.X,
        "raw/X": again.raw.X,
        "layers/counts": again.layers["counts"],
    }
    wanted = where.get(item, again.obsm["more"])
    found = formats.read_features(f"{tmp_path}/x.h5ad::{item}")
    assert np.array_equal(found.x.dense(), wanted.toarray())
    assert found.ids == tuple(NAMES)


def test_extents_that_nobody_believes_are_refused(tmp_path):
    path = make(tmp_path / "x.h5ad", csr_matrix(X))
    with h5py.File(path, "r+") as file:
        file["X"].attrs["shape"] = np.array([N, 2**34])
    with pytest.raises(InputError, match=r"not believed|memory"):
        formats.read_features(f"{path}::X")


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indptr", np.arange(N)),
        ("indptr", np.append(np.arange(N, 0, -1), 0)),
        ("indices", None),
        ("shape", np.array([-1, 5])),
        ("shape", np.array([3])),
    ],
)
def test_damaged_sparse_matrices_are_refused(tmp_path, part, values):
    path = make(tmp_path / "x.h5ad", csr_matrix(X))
    with h5py.File(path, "r+") as file:
        if part == "shape":
            file["X"].attrs["shape"] = values
        else:
            old = file["X"][part][()]
            del file["X"][part]
            file["X"][part] = old + 12 if values is None else values
    with pytest.raises(InputError):
        formats.read_features(f"{path}::X")


@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix])
def test_a_sparse_matrix_that_begins_behind_its_first_value_is_refused(tmp_path, kind):
    path = make(tmp_path / "x.h5ad", kind(X))
    with h5py.File(path, "r+") as file:
        file["X/indptr"][0] = 1  # all else fits: none decreases, the last is right
    with pytest.raises(InputError, match="'indptr' of the sparse matrix is damaged"):
        formats.read_features(f"{path}::X")


def test_links_out_of_the_file_are_not_followed(cells, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = X
    with h5py.File(cells, "r+") as file:
        file["obsm/out"] = h5py.ExternalLink("other.h5", "x")
        sparse = file.create_group("layers/sparse")
        sparse.attrs["encoding-type"], sparse.attrs["shape"] = "csr_matrix", X.shape
        sparse["data"] = h5py.ExternalLink("other.h5", "x")
    for item in ("obsm/out", "layers/sparse"):
        with pytest.raises(InputError, match="another file"):
            formats.read_features(f"{cells}::{item}")


def test_repeated_names_of_cells_are_left_out(tmp_path):
    notes = []
    with pytest.warns(UserWarning, match="not unique"):
        path = make(tmp_path / "x.h5ad", names=["same"] * N)
    assert formats.read_features(f"{path}::X", note=notes.append).ids is None
    assert "names of cells repeat" in notes[0]


def test_columns_of_cells_are_labels(cells):
    labels = formats.read_labels(f"{cells}::obs/kind")
    assert labels.classes == ("B", "NK", "T")
    assert labels.codes[:4].tolist() == [0, 2, -1, 1]
    assert labels.ids == tuple(NAMES)
    assert formats.read_values(f"{cells}::obs/depth").x[:3, 0].tolist() == [0, 1, 2]
    with pytest.raises(InputError, match="obs/kind"):
        formats.read_labels(cells)


def old_file(path):
    """Write a file as anndata did before 0.7: obs and obsm are compound datasets."""
    with h5py.File(path, "w") as file:
        obs = np.zeros(N, [("index", "S7"), ("kind", "i1"), ("depth", "f4")])
        obs["index"], obs["kind"], obs["depth"] = NAMES, np.arange(N) % 3, 0.5
        obsm = np.zeros(N, [("X_pca", "f4", (5,))])
        obsm["X_pca"] = PCA
        file["obs"], file["obsm"], file["var"] = obs, obsm, obs[:12]
        file["uns/kind_categories"] = np.array([b"B", b"T", b"NK"])
        sparse = csr_matrix(X)
        group = file.create_group("X")
        group.attrs["h5sparse_format"] = "csr"
        group.attrs["h5sparse_shape"] = sparse.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(sparse, part)
    return path


def test_old_files_are_read_and_take_graphs(run, tmp_path):
    path = old_file(tmp_path / "old.h5ad")
    found = formats.read_features(path)
    assert np.array_equal(found.x, PCA)
    assert found.ids == tuple(NAMES)
    assert np.array_equal(formats.read_features(f"{path}::X").x.dense(), X)
    labels = formats.read_labels(f"{path}::obs/kind")
    assert [labels.classes[code] for code in labels.codes[:3]] == ["B", "T", "NK"]
    assert formats.read_values(f"{path}::obs/depth").x[0, 0] == 0.5
    assert run("build", path, "--into", path).code == 0
    with h5py.File(path) as file:
        assert file["uns/neighbors/params/use_rep"].asstr()[()] == "X_pca"
        assert file["obsp/connectivities"].attrs["shape"].tolist() == [N, N]


def test_a_group_that_is_no_matrix_is_refused(cells):
    with pytest.raises(InputError, match="no sparse matrix"):
        formats.read_features(f"{cells}::obs")


def test_other_hdf5_files_may_have_the_name(tmp_path):
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        file["only"] = X
    assert np.array_equal(formats.read_features(tmp_path / "x.h5ad").x, X)


# Writing


def test_a_graph_goes_into_its_own_file_and_all_else_stays(run, cells):
    before = everything(cells, ["obsp", "uns/neighbors"])
    cells.chmod(0o640)
    done = run("build", f"{cells}::obsm/X_pca", "--into", cells, "-k", 10)
    assert done.code == 0, done.err
    assert "--min-degree 3 and --sigma local by default" in done.err
    assert "obsp/connectivities, obsp/distances and uns/neighbors" in done.err
    assert everything(cells, ["obsp", "uns/neighbors"]) == before
    assert cells.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in cells.parent.iterdir()] == [cells.name]
    found = anndata.read_h5ad(cells)
    weights, lengths = found.obsp["connectivities"], found.obsp["distances"]
    assert (weights != weights.T).nnz == 0
    assert (lengths != lengths.T).nnz == 0
    assert np.array_equal(weights.indices, lengths.indices)
    rows, columns = lengths.nonzero()
    wanted = cdist(PCA.astype("f8"), PCA.astype("f8"))[rows, columns]
    assert np.allclose(lengths.data, wanted, rtol=1e-12)
    assert np.diff(weights.indptr).min() > 0
    about = found.uns["neighbors"]
    facts = json.loads(about.pop("nnkgraph"))
    assert about == {
        "connectivities_key": "connectivities",
        "distances_key": "distances",
        "params": {
            "n_neighbors": 10,
            "method": "nnk",
            "metric": "euclidean",
            "random_state": 0,
            "use_rep": "X_pca",
        },
    }
    assert (facts["kernel"], facts["min_degree"]) == ("gaussian:sigma=local", 3)
    built = run("build", f"{cells}::obsm/X_pca", "-o", cells.parent / "g.npz", "-k", 10)
    other = run(
        *("build", f"{cells}::obsm/X_pca", "-o", cells.parent / "g.npz", "-k", 10),
        *("--sigma", "local", "--min-degree", 3),
    )
    assert (built.code, other.code) == (0, 0)
    graph = formats.read_graph(cells.parent / "g.npz")
    assert np.array_equal(graph.adjacency.data, weights.data)
    assert graph.ids == tuple(NAMES)


def test_what_the_user_sets_is_kept(run, cells):
    options = ("--sigma", "auto", "--min-degree", 0)
    done = run("build", cells, "--into", cells, *options)
    assert done.code == 0
    assert "by default" not in done.err
    facts = json.loads(anndata.read_h5ad(cells).uns["neighbors"]["nnkgraph"])
    assert (facts["kernel"], facts["min_degree"]) == ("gaussian", 0)


def test_a_name_of_its_own_keeps_graphs_apart(run, cells):
    assert run("build", cells, "--into", cells, "-k", 5).code == 0
    done = run("build", f"{cells}::X", "--into", cells, "--key-added", "genes")
    assert done.code == 0, done.err
    found = anndata.read_h5ad(cells)
    assert set(found.obsp) == {
        *("connectivities", "distances", "genes_connectivities", "genes_distances")
    }
    assert found.uns["genes"]["connectivities_key"] == "genes_connectivities"
    assert found.uns["genes"]["params"]["use_rep"] == "X"
    assert found.uns["neighbors"]["params"]["n_neighbors"] == 5


def test_the_same_again_gives_the_same_values_in_much_the_same_room(run, cells):
    sizes = [cells.stat().st_size]
    found = []
    for _ in range(3):
        assert run("build", cells, "--into", cells).code == 0
        sizes.append(cells.stat().st_size)
        found.append(everything(cells))
    assert found[1:] == found[:-1]
    first, *again = np.diff(sizes)
    assert max(again) < 0.7 * first  # room of the old graph is used again


@pytest.mark.parametrize(
    ("kernel", "metric"), [("cosine", "cosine"), ("laplacian", "cityblock")]
)
def test_distances_are_those_of_the_kernel(run, cells, kernel, metric):
    assert run("build", cells, "--into", cells, "--kernel", kernel).code == 0
    found = anndata.read_h5ad(cells)
    lengths = found.obsp["distances"]
    rows, columns = lengths.nonzero()
    wanted = cdist(PCA.astype("f8"), PCA.astype("f8"), metric)[rows, columns]
    assert np.allclose(lengths.data, wanted, rtol=1e-6)
    scanpys = "manhattan" if metric == "cityblock" else metric
    assert found.uns["neighbors"]["params"]["metric"] == scanpys


def test_kernels_without_distances_leave_them_out(run, cells):
    assert run("build", cells, "--into", cells).code == 0
    done = run("build", cells, "--into", cells, "--kernel", "linear")
    assert done.code == 0
    assert "obsp/connectivities and uns/neighbors" in done.err
    found = anndata.read_h5ad(cells)
    assert set(found.obsp) == {"connectivities"}
    assert "distances_key" not in found.uns["neighbors"]
    assert "metric" not in found.uns["neighbors"]["params"]


def test_features_of_another_file_may_go_in(run, cells, tmp_path):
    np.save(tmp_path / "x.npy", PCA)
    assert run("build", tmp_path / "x.npy", "--into", cells).code == 0
    assert "use_rep" not in anndata.read_h5ad(cells).uns["neighbors"]["params"]


def test_a_link_to_the_file_stays_a_link(run, cells, tmp_path):
    (tmp_path / "link.h5ad").symlink_to(cells)
    assert run("build", cells, "--into", tmp_path / "link.h5ad").code == 0
    assert (tmp_path / "link.h5ad").is_symlink()
    assert "connectivities" in anndata.read_h5ad(cells).obsp


def test_scanpy_goes_on_with_the_graph(run, cells):
    scanpy = pytest.importorskip("scanpy")
    assert run("build", cells, "--into", cells).code == 0
    found = anndata.read_h5ad(cells)
    scanpy.tl.leiden(found, flavor="igraph", n_iterations=2, directed=False)
    scanpy.tl.umap(found)
    assert found.obsm["X_umap"].shape == (N, 2)


# Refusing


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        ([], 2, "--into"),
        (["--into", "cells.h5ad", "-o", "g.npz"], 2, "one place"),
        (["-o", "g.npz", "--key-added", "a"], 2, "--into only"),
        (["--into", "cells.h5ad", "--key-added", "a/b"], 2, "cannot name"),
        (["--into", "cells.h5ad", "--symmetrize", "none"], 2, "undirected"),
        (["--into", "cells.h5ad", "--format", "npy,npz"], 2, "--format"),
        (["--into", "-"], 2, "files only"),
        (["--into", "none.h5ad"], 3, "no such file"),
        (["--into", "plain.h5ad"], 3, "not an AnnData file"),
        (["--into", "text.h5ad"], 3, "plain text"),
        (["--into", "few.h5ad"], 3, "has 20 cells"),
        (["--into", "turned.h5ad"], 3, "the order of obs"),
        (["--into", "cells.h5ad", "--no-clobber"], 4, "uns/neighbors already"),
        (["--into", "cells.h5ad", "--key-added", "pca"], 4, "another --key-added"),
        (["--into", "closed.h5ad"], 4, "read-only"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    run, cells, monkeypatch, options, code, what
):
    monkeypatch.chdir(cells.parent)
    make("few.h5ad", X[:20], PCA[:20], NAMES[:20])
    make("turned.h5ad", names=NAMES[::-1])
    shutil.copy(cells, "closed.h5ad")
    Path("closed.h5ad").chmod(0o444)
    with h5py.File("plain.h5ad", "w") as file:
        file["x"] = PCA
    Path("text.h5ad").write_text("cells")
    before = {one.name: one.read_bytes() for one in cells.parent.iterdir()}
    done = run("build", "cells.h5ad::obsm/X_pca", *options)
    assert done.code == code, done.err
    assert what in done.lines[-1]
    assert {one.name: one.read_bytes() for one in cells.parent.iterdir()} == before


def test_several_inputs_need_several_calls(run, cells):
    assert run("build", cells, cells, "--into", cells).code == 2


def test_a_file_that_another_program_writes_to_is_left_alone(program, cells):
    with h5py.File(cells, "r+", locking=True):
        done = program("build", cells, "--into", cells)
    assert done.code == 3
    assert "HDF5_USE_FILE_LOCKING" in done.lines[-1]


def test_a_file_that_changes_meanwhile_is_left_alone(cells):
    from nnkgraph.build.graph import build_graph

    features = formats.read_features(cells)
    place = find_place(str(cells), None, str(cells), no_clobber=False)
    graph = build_graph(features, k=5)
    with h5py.File(cells, "r+") as file:
        file["new"] = 1
    changed = cells.read_bytes()
    with pytest.raises(OutputError, match="was changed"):
        place.write(graph)
    assert cells.read_bytes() == changed
    assert [one.name for one in cells.parent.iterdir()] == [cells.name]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path):
    path = make(tmp_path / "cells.h5ad", np.zeros((N, 20_000), "f4"))
    before = path.read_bytes()
    limit = len(before) // 1024 - 100  # of files, in kB: the copy does not fit
    line = f"ulimit -f {limit}; {PROGRAM} build {path} --into {path} -j 1"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done.stderr
    assert "cannot be written: file too large" in done.stderr
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
