"""Files of MATLAB and Octave, by version: read the right way round, or refused."""

from __future__ import annotations

import shutil
import struct
import subprocess

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from nnkgraph import formats
from nnkgraph.errors import InputError

N, D = 5, 3
X = np.random.default_rng(7).integers(-40, 40, (N, D)) / 8
NAMES = ["a", "bb", "c d", "été", "e"]
MANY = [f"n{i}" for i in range(12)]


def read(spec, **options):
    return formats.read_features(spec, **options)


def refused(spec, match, reader=formats.read_features):
    with pytest.raises(InputError, match=match) as caught:
        reader(spec)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Version 7.3


def put73(group, name, value, kind):
    """Write a variable as MATLAB does: what has columns there has rows here."""
    group[name] = value
    group[name].attrs["MATLAB_class"] = np.bytes_(kind)


def codes(text):
    return np.frombuffer(text.encode("utf-16-le"), "<u2").reshape(-1, 1)


def put_cells(group, name, texts):
    refs = group.file.require_group("#refs#")
    found = []
    for one in texts:
        put73(refs, key := f"{name}{len(refs)}", codes(one), "char")
        found.append(refs[key].ref)
    dtype = h5py.special_dtype(ref=h5py.Reference)
    group[name] = np.array([found], dtype)
    group[name].attrs["MATLAB_class"] = np.bytes_(b"cell")


@pytest.fixture
def mat73(tmp_path):
    """Make a file of version 7.3 by a function that gets its root."""

    def make(fill):
        path = tmp_path / "x.mat"
        with h5py.File(path, "w", userblock_size=512) as file:
            fill(file)
        with path.open("r+b") as stream:
            stream.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
        return path

    return make


def fill_struct(file):
    s = file.create_group("s")
    s.attrs["MATLAB_class"] = np.bytes_(b"struct")
    put73(s, "X", X.T, "double")
    put_cells(s, "names", NAMES)
    inner = s.create_group("in")
    inner.attrs["MATLAB_class"] = np.bytes_(b"struct")
    put73(inner, "y", np.arange(N, dtype=np.int8).reshape(1, N), "int8")
    csc = sp.csc_array(np.maximum(X, 0))
    sparse = inner.create_group("S")
    sparse.attrs["MATLAB_class"] = np.bytes_(b"double")
    sparse.attrs["MATLAB_sparse"] = np.uint64(N)
    sparse["data"], sparse["ir"], sparse["jc"] = csc.data, csc.indices, csc.indptr


def test_i07_fields_of_structs_are_read_by_name(mat73, run):
    path, said = mat73(fill_struct), []
    message = refused(path, "no matrix inside")
    assert f"s.X {N} x {D} number" in message
    assert "name a field as FILE::STRUCT.FIELD" in refused(f"{path}::s", "'struct'")
    found = read(f"{path}::s.X", note=said.append)
    assert np.array_equal(found.x, X)
    assert found.ids == tuple(NAMES)
    assert said == [f"{path}::s.X: 'names' names the rows"]
    assert np.array_equal(read(f"{path}::s.in.S").x.dense(), np.maximum(X, 0))
    labels = formats.read_labels(f"{path}::s.in.y")
    assert labels.codes.tolist() == list(range(N))
    for item, code in (("", 3), ("::s", 3), ("::s.X", 0), ("::s.nope", 3)):
        result = run("build", f"{path}{item}", "-k", 2, "-o", path.with_suffix(".npz"))
        assert result.code == code, result.err


def test_cells_of_text_are_read(mat73):
    def fill(file):
        put73(file, "X", X.T, "double")
        put_cells(file, "kinds", ["p", "", "q", "p", "q"])
        put_cells(file, "ids", NAMES)

    path = mat73(fill)
    assert read(path).ids == tuple(NAMES)
    labels = formats.read_labels(f"{path}::kinds")
    assert (labels.classes, labels.ids) == (("p", "q"), tuple(NAMES))
    assert labels.codes.tolist() == [0, -1, 1, 0, 1]
    assert read(path, ids=f"{path}::ids").ids == tuple(NAMES)


@pytest.mark.parametrize("kind", ["string", "table", "datetime", "categorical"])
def test_objects_of_matlab_are_not_taken_for_numbers(mat73, kind):
    path = mat73(lambda file: put73(file, "T", np.ones((4, 6), np.uint32), kind))
    refused(path, "no matrix inside")
    refused(f"{path}::T", "table2array and cellstr")


def test_cells_of_other_things_and_loops_are_refused(mat73):
    def fill(file):
        put73(file, "X", X.T, "double")
        put_cells(file, "names", NAMES)
        refs = file["#refs#"]
        refs.move(next(iter(refs)), "gone")
        file["names"][0, 0] = file["X"].ref

    path, said = mat73(fill), []
    assert read(path, note=said.append).ids is None
    assert said == [f"{path}: 'names' is no list of text, and names no rows"]
    refused(f"{path}::names", "no list of text", formats.read_labels)

    def loop(file):
        for one in "abcdefgh":
            file[one] = file["/"]

    refused(mat73(loop), "too many variables")


def test_links_out_of_the_file_are_not_followed(mat73, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = X.T

    def fill(file):
        file["X"] = h5py.ExternalLink(tmp_path / "other.h5", "/x")

    refused(mat73(fill), "no matrix inside")


# Version 4, and what scipy writes


@pytest.mark.parametrize("version", ["4", "5"])
def test_i08_versions_4_and_5_are_read_alike(tmp_path, version):
    path = tmp_path / "x.mat"
    members = {"S": sp.csc_array(np.maximum(X, 0)), "y": np.arange(N), "t": "text"}
    members |= {"names": np.array(["a", "bb", "c d", "dd", "e"])}
    scipy.io.savemat(path, {"X": X, **members}, format=version)
    assert np.array_equal(read(f"{path}::X").x, X)
    assert read(f"{path}::X").ids == ("a", "bb", "c d", "dd", "e")
    assert np.array_equal(read(f"{path}::S").x.dense(), np.maximum(X, 0))
    assert formats.read_labels(f"{path}::y").codes.tolist() == list(range(N))
    assert formats.read_labels(f"{path}::names").classes[1] == "bb"
    assert "X 5 x 3 number" in refused(path, "several matrices")
    refused(f"{path}::nope", "no variable 'nope'")
    refused(f"{path}::t", "'text'")


KINDS_4 = ["f8", "f4", "i4", "i2", "u2", "u1"]


@pytest.mark.parametrize("kind", KINDS_4)
@pytest.mark.parametrize("order", "<>")
def test_all_numbers_of_version_4_are_read(tmp_path, kind, order):
    x = np.abs(X.round()).astype(order + kind)
    mopt = 1000 * (order == ">") + 10 * KINDS_4.index(kind)
    head = struct.pack(f"{order}5i", mopt, N, D, 0, 2) + b"X\0"
    (tmp_path / "x.mat").write_bytes(head + x.tobytes(order="F"))
    assert np.array_equal(read(tmp_path / "x.mat").x, x)


def test_graphs_of_version_4_are_read(tmp_path):
    a = sp.csc_array(np.array([[0, 0.5, 0], [0.5, 0, 0.25], [0, 0.25, 0]]))
    scipy.io.savemat(tmp_path / "g.mat", {"W": a}, format="4")
    graph = formats.read_graph(tmp_path / "g.mat")
    assert (graph.adjacency != sp.csr_array(a)).nnz == 0


def head4(mopt=0, rows=N, columns=D, imaginary=0, name=b"X\0", length=None):
    length = len(name) if length is None else length
    return struct.pack("<5i", mopt, rows, columns, imaginary, length) + name


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (head4() + bytes(8 * N * D - 1), "truncated"),
        (head4(rows=2**31 - 1, columns=2**31 - 1), "truncated"),
        (head4() + bytes(8 * N * D) + b"abc", "damaged at byte 142"),
        ((head4() + bytes(8 * N * D)) * 2, "has 'X' twice"),
        (head4(imaginary=1) + bytes(16 * N * D), "'complex'|no matrix"),
        (head4(mopt=2, rows=2) + bytes(48), "no matrix|leaves its extents"),
        (head4(mopt=2000) + bytes(8 * N * D), "unknown bytes"),
        (head4(name=b"1\0") + bytes(8 * N * D), "unknown bytes"),
        (head4(rows=-1), "unknown bytes"),
    ],
)
def test_damage_of_version_4_is_refused(tmp_path, data, match):
    (tmp_path / "x.mat").write_bytes(data)
    refused(tmp_path / "x.mat", match)
    refused(f"{tmp_path}/x.mat::X", match)


def test_sparse_matrices_of_version_4_that_leave_their_extents_are_refused(tmp_path):
    for row, column, height in ((1, 9, 4), (9, 1, 4), (0, 1, 4), (1, 1, np.nan)):
        triples = np.array([[row, column, 2.5], [height, 4, 0]])
        data = head4(mopt=2, rows=2) + triples.tobytes(order="F")
        (tmp_path / "x.mat").write_bytes(data)
        refused(f"{tmp_path}/x.mat::X", "damaged|leaves its extents|impossible extents")


# Octave


def put_octave(group, name, kind, value, *, empty=False):
    """Write a variable as Octave's save -hdf5 does."""
    made = group.create_group(name)
    made.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
    made["type"] = np.bytes_(kind)
    if empty:
        made.attrs["OCTAVE_EMPTY_MATRIX"] = np.uint8(1)
    if value is not None:
        made["value"] = value
    return made


def octave_text(text):
    data = np.frombuffer(text.encode(), np.int8).reshape(-1, 1)
    return data if text else np.array([0, 0])


def fill_octave(file):
    put_octave(file, "X", "matrix", X.T)
    put_octave(file, "b", "bool matrix", (X.T > 0).astype("u1"))
    put_octave(file, "one", "scalar", 3.5)
    put_octave(file, "z", "complex matrix", X.T.astype(complex))
    put_octave(file, "e", "matrix", np.array([0, 3]), empty=True)
    cells = put_octave(file, "kinds", "cell", None).create_group("value")
    cells["dims"] = np.array([1, N])
    for at, one in enumerate(["p", "", "q", "p", "été"]):
        text = octave_text(one)
        put_octave(cells, f"_{at:03}", "sq_string", text, empty=not one)
    sparse = put_octave(file, "S", "sparse matrix", None).create_group("value")
    csc = sp.csc_array(np.maximum(X, 0))
    sparse["nr"], sparse["nc"], sparse["nz"] = N, D, csc.nnz
    parts = {"ridx": csc.indices, "cidx": csc.indptr, "data": csc.data}
    for key, value in parts.items():
        sparse[key] = value.reshape(-1, 1)
    struct_ = put_octave(file, "s", "scalar struct", None).create_group("value")
    put_octave(struct_, "Y", "float matrix", X.T.astype("f4"))


@pytest.mark.parametrize("name", ["x.h5", "x.hdf5", "x.mat"])
def test_i08_matrices_of_octave_are_the_right_way_round(tmp_path, name):
    path = tmp_path / name
    with h5py.File(path, "w") as file:
        fill_octave(file)
    for item in ("X", "s.Y"):
        assert np.array_equal(read(f"{path}::{item}").x, X)
    assert np.array_equal(read(f"{path}::b").x, X > 0)
    assert np.array_equal(read(f"{path}::S").x.dense(), np.maximum(X, 0))
    labels = formats.read_labels(f"{path}::kinds")
    assert labels.classes == ("p", "q", "été")
    assert labels.codes.tolist() == [0, -1, 1, 0, 2]
    refused(path, "several matrices inside.* X 5 x 3 number")
    refused(f"{path}::z", "'complex'")
    refused(f"{path}::e", "'empty'")
    with h5py.File(path, "a") as file:
        cell = file["kinds/value"]
        del cell["_003"]
        cell["_003"] = h5py.SoftLink("/X")
        file["f"] = h5py.SoftLink("/X")
    refused(f"{path}::kinds", "no list of text", formats.read_labels)
    refused(f"{path}::f", "no variable 'f'")
    refused(f"{path}::X/value", "no variable 'X/value' inside; it holds")
    with h5py.File(path, "w") as file:
        put_octave(file, "X", "matrix", X.T)
    assert np.array_equal(read(path).x, X)


@pytest.mark.parametrize(
    "head", [b"# Created by Octave 9.2.0\n# name: X\n", b"# name: X\n", b"Octave-1-L"]
)
def test_i08_formats_of_octaves_own_are_refused_with_advice(tmp_path, run, head):
    path = tmp_path / "x.mat"
    path.write_bytes(head + b"# type: matrix\n# rows: 1\n# columns: 2\n 1 2\n")
    refused(path, r"save -v7")
    result = run("build", path, "-o", tmp_path / "g.npz")
    assert (result.code, len(result.lines)) == (3, 1)


OCTAVE = """
many = {{{many}}};
X = {x}; ids = {{{names}}}; S = sparse(max(X, 0)); s.X = X; y = int8(1:{n})';
save -hdf5 h.h5 X ids S s y many
save -v4 v4.mat X
save -v6 v6.mat X ids S s y
save -v7 v7.mat X ids S s y
save -text t.mat X
save -binary b.mat X
"""


@pytest.mark.skipif(shutil.which("octave-cli") is None, reason="there is no Octave")
def test_what_octave_writes_is_read(tmp_path):
    rows = ";".join(",".join(map(repr, row)) for row in X.tolist())
    names = ";".join(f"'{one}'" for one in NAMES)
    many = ";".join(map(repr, MANY))
    script = OCTAVE.format(x=f"[{rows}]", names=names, n=N, many=many)
    call = ["octave-cli", "--no-gui", "--eval", script]
    subprocess.run(call, cwd=tmp_path, check=False, capture_output=True)
    for name in ("h.h5", "v4.mat", "v6.mat", "v7.mat"):
        found = read(f"{tmp_path / name}::X")
        assert np.array_equal(found.x, X)
        if name == "v4.mat":
            continue
        assert found.ids == tuple(NAMES)
        assert np.array_equal(read(f"{tmp_path / name}::s.X").x, X)
        assert np.array_equal(read(f"{tmp_path / name}::S").x.dense(), np.maximum(X, 0))
        assert len(formats.read_labels(f"{tmp_path / name}::y").classes) == N
    assert formats.read_names(f"{tmp_path}/h.h5::many") == MANY
    for name in ("t.mat", "b.mat"):
        refused(tmp_path / name, "save -v7")
