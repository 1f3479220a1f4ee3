"""Counts of cells: Matrix Market files, and what Cell Ranger (10x Genomics) writes."""

import gzip
import io

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nnkgraph import formats
from nnkgraph.data import SparseRows
from nnkgraph.errors import InputError

CELLS, GENES = 30, 17
RANDOM = np.random.default_rng(5)
COUNTS = RANDOM.poisson(2.0, (CELLS, GENES)) * (RANDOM.random((CELLS, GENES)) < 0.3)
BARCODES = [f"ACGT-{i}" for i in range(CELLS)]
KINDS = ["Gene Expression"] * 14 + ["Antibody Capture"] * 3


def mtx(matrix, **how):
    """Return the text that scipy writes for a matrix."""
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, matrix, **how)
    return stream.getvalue()


def folder(path, *, packed=True, old=False, kinds=None, names=BARCODES):
    """Write a folder as Cell Ranger does: genes x cells, and two lists."""
    path.mkdir()
    kinds = kinds or ["Gene Expression"] * GENES
    genes = [
        f"ENSG{i}\tgene {i}" + f"\t{one}" * (not old) for i, one in enumerate(kinds)
    ]
    files = {
        "matrix.mtx": mtx(sp.coo_array(COUNTS.T)),
        "barcodes.tsv": "\n".join(names).encode() + b"\n",
        "genes.tsv" if old else "features.tsv": "\n".join(genes).encode() + b"\n",
    }
    for name, data in files.items():
        if packed:
            (path / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (path / name).write_bytes(data)
    return path


def cell_ranger(path, *, group="matrix", kinds=None, mode="w", **changed):
    """Write a file as Cell Ranger does: of version 3, or of version 2 for a genome."""
    stored = sp.csc_array(COUNTS.T.astype("i4"))
    parts = {name: getattr(stored, name) for name in ("data", "indices", "indptr")}
    parts |= {
        "shape": np.array(stored.shape, "i4"),
        "barcodes": np.array(BARCODES, "S"),
    }
    parts |= changed
    with h5py.File(path, mode) as file:
        for name, value in parts.items():
            file[f"{group}/{name}"] = value
        genes = np.array([f"ENSG{i}" for i in range(GENES)], "S")
        if group == "matrix":
            file["matrix/features/id"] = genes
            kinds = np.array(kinds or ["Gene Expression"] * GENES, "S")
            file["matrix/features/feature_type"] = kinds
        else:
            file[f"{group}/genes"] = genes
    return path


def assert_cells(found, counts=COUNTS):
    assert isinstance(found.x, SparseRows)
    assert np.array_equal(found.x.dense(), counts)
    assert found.ids == tuple(BARCODES)


# Matrix Market


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrices_are_what_scipy_reads(tmp_path, field, packed, monkeypatch):
    monkeypatch.setattr("nnkgraph.formats.mtx._BLOCK", 7)
    data = mtx(sp.coo_array(COUNTS), field=field, symmetry="general", comment="a\nb")
    path = tmp_path / ("x.mtx.gz" if packed else "x.mtx")
    path.write_bytes(gzip.compress(data) if packed else data)
    notes = []
    found = formats.read_features(path, note=notes.append)
    wanted = scipy.io.mmread(io.BytesIO(data)).toarray()
    assert isinstance(found.x, SparseRows)
    assert np.array_equal(found.x.dense(), wanted)
    assert found.ids is None
    assert "rows are taken as they stand, 30 x 17" in notes[0]


def test_arrays_are_what_scipy_reads(tmp_path):
    x = RANDOM.normal(size=(9, 4))
    (tmp_path / "x.mtx").write_bytes(mtx(x))
    found = formats.read_features(tmp_path / "x.mtx")
    assert np.array_equal(found.x, scipy.io.mmread(tmp_path / "x.mtx"))


def test_entries_that_repeat_are_added_up(tmp_path):
    text = (
        "%%MatrixMarket matrix coordinate real general\n3 2 3\n1 1 2\n\n1 1 3\n3 2 1\n"
    )
    (tmp_path / "x.mtx").write_text(text)
    found = formats.read_features(tmp_path / "x.mtx")
    assert found.x.dense().tolist() == [[5, 0], [0, 0], [0, 1]]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("coordinate complex general\n2 2 1\n1 1 1 0\n", "field 'complex' is not real"),
        ("coordinate real symmetric\n2 2 1\n2 1 1\n", "features is general"),
        ("array pattern general\n2 2\n", "field 'pattern'"),
        ("array real symmetric\n2 2\n1\n1\n1\n", "features is general"),
        ("vector real general\n2 2 1\n", "coordinate or array"),
        ("coordinate real general\n", "ends before the size"),
        ("coordinate real general\n2 2\n", "line 2: 3 sizes"),
        ("coordinate real general\n2 2 -1\n", "line 2: 3 sizes"),
        ("coordinate real general\n2 2 2\n1 1 1\n", "2 entries are announced"),
        ("coordinate real general\n2 2 1\n1 1 1\n1 2 1\n", "there are 2"),
        (
            "coordinate real general\n2 2 2\n1 1 1\n\n1 2 a\n",
            r"line 5: '1 2 a' is no entry",
        ),
        ("coordinate real general\n2 2 2\n1 1 1\n1 2\n", "line 4: '1 2' is no entry"),
        ("coordinate real general\n2 2 1\n3 1 1\n", "row 3, column 1"),
        ("coordinate real general\n2 2 1\n1 0 1\n", "row 1, column 0"),
        ("coordinate real general\n2 2 1\n1 1.5 1\n", "column 1.5"),
        ("coordinate real general\n2 2 1\n1 2 nan\n", "NaN at row 0, column 1"),
        ("coordinate real general\n2 2 1\n1 2 1e400\n", "infinity at row 0"),
        ("coordinate real general\n2 2 9999999999\n1 2 1\n", "do not fit into"),
        ("coordinate real general\n99999999999 2 1\n1 2 1\n", "not believed|memory"),
        ("coordinate real general\n0 2 0\n", "no values"),
        ("array real general\n2 2\n1\n2\n3\n", "4 entries are announced"),
    ],
)
def test_bad_matrices_are_refused(run, tmp_path, text, match):
    path = tmp_path / "x.mtx"
    path.write_text(f"%%MatrixMarket matrix {text}")
    with pytest.raises(InputError, match=match):
        formats.read_features(path)
    done = run("build", path, "-o", tmp_path / "g.npz")
    assert (done.code, len(done.lines)) == (3, 1)
    assert not (tmp_path / "g.npz").exists()


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_similarities_may_be_such_a_matrix(run, tmp_path, symmetry):
    x = RANDOM.normal(size=(20, 3))
    gram = np.exp(-((x[:, None] - x) ** 2).sum(axis=2))
    np.save(tmp_path / "gram.npy", gram)
    (tmp_path / "gram.mtx").write_bytes(mtx(sp.coo_array(gram), symmetry=symmetry))
    for name in ("gram.npy", "gram.mtx"):
        output = tmp_path / f"{name}.npz"
        how = ("--kernel", "precomputed", "-k", 5)
        assert run("build", tmp_path / name, "-o", output, *how).code == 0
    one, two = (formats.read_graph(p) for p in sorted(tmp_path.glob("*.npz")))
    assert (one.adjacency != two.adjacency).nnz == 0


def test_graphs_are_still_refused(run, tmp_path):
    np.save(tmp_path / "x.npy", COUNTS)
    assert run("build", tmp_path / "x.npy", "-o", tmp_path / "g.mtx").code == 0
    with pytest.raises(InputError, match="a graph that nnkgraph wrote"):
        formats.read_features(tmp_path / "g.mtx")


# Cell Ranger


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_folders_have_cells_as_rows(tmp_path, packed, old):
    path = folder(tmp_path / "counts", packed=packed, old=old)
    assert_cells(formats.read_features(path))
    assert_cells(formats.read_features(f"{path}/"))


@pytest.mark.parametrize("group", ["matrix", "GRCh38"])
@pytest.mark.parametrize("named", [False, True])
def test_files_have_cells_as_rows(tmp_path, group, named):
    path = cell_ranger(tmp_path / "counts.h5", group=group)
    assert_cells(formats.read_features(f"{path}::{group}" if named else path))


def test_genes_are_kept_of_several_kinds(tmp_path):
    paths = (
        folder(tmp_path / "counts", kinds=KINDS),
        cell_ranger(tmp_path / "counts.h5", kinds=KINDS),
    )
    for path in paths:
        notes = []
        found = formats.read_features(path, note=notes.append)
        assert_cells(found, COUNTS[:, :14])
        assert notes == [
            f"{path}: 14 genes are kept, and others left out: Antibody Capture"
        ]


def test_several_genomes_are_named_one_by_one(tmp_path):
    path = cell_ranger(tmp_path / "counts.h5", group="GRCh38")
    cell_ranger(path, group="mm10", mode="a")
    with pytest.raises(InputError, match=r"several genomes.* GRCh38, mm10"):
        formats.read_features(path)
    assert_cells(formats.read_features(f"{path}::mm10"))


def test_scanpy_reads_the_same(tmp_path):
    scanpy = pytest.importorskip("scanpy")
    path = cell_ranger(tmp_path / "counts.h5", genome=np.array([b"x"]))
    assert np.array_equal(scanpy.read_10x_h5(path).X.toarray(), COUNTS)


def test_every_command_takes_a_folder(run, tmp_path):
    path, graph = folder(tmp_path / "counts"), tmp_path / "g.npz"
    assert run("build", path, "-o", graph, "-k", 5).code == 0
    assert formats.read_graph(graph).ids == tuple(BARCODES)
    assert run("verify", path, graph).code == 0
    done = run("explain", path, "--graph", graph, "--node", "ACGT-3")
    assert "ACGT-3" in done.out
    assert run("query", path, path, "-o", tmp_path / "a.npz").code == 0
    assert run("build", path, "-o", tmp_path / "{name}.npz").code == 0


def test_repeated_barcodes_are_left_out(tmp_path):
    notes = []
    path = folder(tmp_path / "counts", names=["same"] * CELLS)
    assert formats.read_features(path, note=notes.append).ids is None
    assert "names of cells repeat" in notes[0]


def test_lists_that_do_not_fit_are_refused(tmp_path):
    path = folder(tmp_path / "few", names=BARCODES[:-1])
    with pytest.raises(InputError, match="17 features and 29 barcodes"):
        formats.read_features(path)
    path = folder(tmp_path / "none", packed=False)
    (path / "barcodes.tsv").unlink()
    with pytest.raises(InputError, match="0 barcodes"):
        formats.read_features(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        formats.read_features(tmp_path / "empty")


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"barcodes": np.array(BARCODES[:-1], "S")}, "29 barcodes|two extents|damaged"),
        ({"barcodes": np.arange(CELLS)}, "holds no names"),
        ({"shape": np.array([GENES])}, "no two extents"),
        ({"shape": np.array([GENES, -1])}, "no two extents"),
        ({"shape": np.array([GENES - 1, CELLS])}, "leave its shape"),
        ({"shape": np.array([GENES, CELLS + 1])}, "'indptr'"),
        ({"indptr": np.zeros(CELLS + 1, "i8")}, "'indptr'"),
        ({"data": np.ones(3)}, "do not fit together"),
        ({"data": np.array(["a"], "S")}, "real"),
    ],
)
def test_damaged_files_are_refused(run, tmp_path, changed, match):
    path = cell_ranger(tmp_path / "counts.h5", **changed)
    with pytest.raises(InputError, match=match):
        formats.read_features(path)
    assert run("build", path, "-o", tmp_path / "g.npz").code == 3
