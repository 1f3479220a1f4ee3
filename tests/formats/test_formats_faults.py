"""Bad files and bad targets: one clear error, nothing left behind."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import pty
import random
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
import zipfile

import h5py
import numpy as np
import pytest
import scipy.sparse as sp

from nnkgraph import formats
from nnkgraph.data import Candidates, Graph
from nnkgraph.errors import InputError, NnkGraphError, OutputError, ParameterError
from nnkgraph.runtime.files import _PREFIX

X = np.arange(12, dtype=np.float64).reshape(4, 3)


def refused(spec, match="", **options):
    with pytest.raises(InputError, match=match) as caught:
        formats.read_features(spec, **options)
    assert "\n" not in str(caught.value)
    assert len(caught.value.args) == 1
    return str(caught.value)


def refused_text(tmp_path, text, match, name="x.csv", **options):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    message = refused(path, match, **options)
    assert message.startswith(f"{path}: ")


def graph(ids=None, **rest):
    a = sp.csr_array(np.array([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]]))
    return Graph(a, ids=ids, **rest)


def header(shape, descr="<f8"):
    stream = io.BytesIO()
    fields = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, fields)
    return stream.getvalue()


@contextlib.contextmanager
def ordinary_user():
    """Be somebody whom permissions concern."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


# Input files


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.npz", "x.h5", "x.h5::a", "x"])
def test_a01_a_missing_file_is_named(tmp_path, name):
    refused(tmp_path / name, "no such file")


@pytest.mark.parametrize("name", ["x.npy", "x.h5", "x"])
def test_a02_a_directory_is_no_file(tmp_path, name):
    (tmp_path / name).mkdir()
    refused(tmp_path / name, "is a directory")


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.npz", "x.h5"])
def test_a03_permission_denied_is_said(tmp_path, name):
    (tmp_path / name).write_bytes(b"1")
    (tmp_path / name).chmod(0)
    with ordinary_user():
        refused(tmp_path / name, "permission denied")


@pytest.mark.parametrize(
    "name", ["x.npy", "x.csv", "x.txt", "x.npz", "x.h5", "x.csv.gz"]
)
def test_a04_an_empty_file_is_said_to_be_empty(tmp_path, name):
    refused_text(tmp_path, "", "empty file", name)
    if name.endswith("csv"):
        refused_text(tmp_path, gzip.compress(b""), "empty file", name)


@pytest.mark.parametrize("cut", [1, 48, 90, 120])
def test_a05_a_truncated_npy_is_said(tmp_path, cut):
    np.save(tmp_path / "x.npy", X)
    data = (tmp_path / "x.npy").read_bytes()
    match = (
        "truncated: .* 224 bytes, the file has" if cut < 96 else "header is truncated"
    )
    refused_text(tmp_path, data[: len(data) - cut], match, "x.npy")


def test_a06_bytes_after_the_array_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", X)
    data = (tmp_path / "x.npy").read_bytes()
    refused_text(tmp_path, data + b"!", "followed by other bytes", "x.npy")


@pytest.mark.parametrize("shape", [(10**15, 1), (10**9, 10**6), (10**4000, 10**4000)])
def test_a07_a_header_that_claims_too_much_is_refused_at_once(tmp_path, shape):
    start = time.perf_counter()
    refused_text(tmp_path, header(shape) + b"\0" * 64, "truncated|claims", "x.npy")
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        ((-1, 3), "impossible shape"),
        ((2**63, 2**63), "claims more bytes"),
        ((1, 1, 1), "shape"),
        ((), "shape"),
        ((1,), "1-dimensional.*reshape"),
        ((0, 3), "no rows|truncated|followed"),
    ],
)
def test_a08_impossible_and_wrong_shapes_are_refused(tmp_path, shape, match):
    refused_text(tmp_path, header(shape) + b"\0" * 8, match, "x.npy")


def test_a08_matrices_without_rows_or_columns_are_refused(tmp_path):
    for shape in ((0, 3), (3, 0)):
        np.save(tmp_path / "x.npy", np.zeros(shape))
        np.savez(tmp_path / "x.npz", np.zeros(shape))
        for name in ("x.npy", "x.npz"):
            refused(tmp_path / name, "no rows|no columns")


def test_a09_text_is_no_npy(tmp_path):
    refused_text(tmp_path, "1,2\n3,4\n", "not a npy file.*text", "x.npy")


@pytest.mark.parametrize(
    "values",
    [
        np.array([["a"]]),
        np.array([[1 + 2j]]),
        np.zeros((2, 2), "M8[s]"),
        np.zeros((2, 2), [("a", "f8")]),
        np.zeros((2, 2), "V8"),
    ],
    ids=["string", "a11_complex", "datetime", "structured", "void"],
)
def test_a10_values_that_are_no_real_numbers_are_refused(tmp_path, values):
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", x=values)
    refused(tmp_path / "x.npy", "no real number")
    refused(f"{tmp_path}/x.npz::x", "no real number")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia"])
def test_a15_a_symmetric_sparse_matrix_is_no_feature_matrix(tmp_path, kind):
    sp.save_npz(tmp_path / "x.npz", sp.eye_array(3, format=kind))
    refused(tmp_path / "x.npz", "sparse (matrix|format)")
    refused(f"{tmp_path}/x.npz::data", "sparse matrix")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1,2\n3\n", r"line 2 has 1 field.* 2 are expected"),
        ("1,2\n3,4,5\n", r"line 2 has 3 field.* 2 are expected"),
        ("a,b\n1,2\n3,4\n5,6,7\n", r"line 4 has 3"),
        ("a,b,c\n1,2\n3,4\n", r"line 1 names 3 columns, but line 2 has 2"),
        ("a,b,c\n", "no rows of numbers"),
        ("# only\n", "no rows of numbers"),
        ("1,2\n\n3,4\n", "line 2 is blank"),
        ("\n1,2\n", "line 1 is blank"),
    ],
)
def test_a17_ragged_rows_are_told_with_their_line(tmp_path, text, match):
    refused_text(tmp_path, text, match)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1,2\n3,\n", "line 2, column 2 is an empty field"),
        ("1,2,\n3,4,\n", "line 1, column 3 is an empty field"),
        ("1,NA\n3,4\n", r"line 1, column 2 is missing \('NA'\)"),
        ("1,2\n3,null\n", "line 2, column 2 is missing"),
        ("1,2\n3,4x\n", "line 2, column 2 is not a number: '4x'"),
        ("1,2\n3,1_0\n", "line 2, column 2 is not a number"),
        ("1,2\n3,\x1b[31m\n", r"not a number: '\\x1b\[31m'"),
        ('1,2\n3,"4\n5,6\n', "line 2 has a quotation mark"),
    ],
)
def test_a18_bad_fields_are_told_with_line_and_column(tmp_path, text, match):
    refused_text(tmp_path, text, match)


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("x.csv", "1 2\n3 4\n", "`delimiter=' '`"),
        ("x.csv", "1|2\n3|4\n", "line 1, column 1 is not a number: '1|2'"),
        ("x.csv", "1,2\n3;4\n", "line 2, column 1 .*`delimiter=';'`"),
        ("x.csv", "1,5;2,5\n3,5;4,5\n", "'1,5'; say `decimal=','`"),
        ("x.csv", "a;b\n1;2\n3;4,5\n", "line 3, column 2 .*`decimal=','`"),
        ("x.tsv", "1,5\t2,5\n", "`decimal=','`"),
        ("x.csv", '"1,5","2,5"\n', "`decimal=','`"),
    ],
)
def test_a20_other_delimiters_are_suggested(tmp_path, name, text, match):
    refused_text(tmp_path, text, match, name)


def test_a20_quoted_decimal_commas_stay_one_field_beside_an_id_column(tmp_path):
    refused_text(tmp_path, 'a,"1,5","2,5"\n', "column 2.*decimal", id_column="0")


@pytest.mark.parametrize("delimiter", ["", "ab", "1", ".", '"', "\n"])
def test_a20_impossible_delimiters_are_refused(tmp_path, delimiter):
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(ParameterError, match="delimiter"):
        formats.read_features(tmp_path / "x.csv", delimiter=delimiter)


@pytest.mark.parametrize("value", ["nan", "inf", "-Infinity", "1e400", "NaN"])
def test_a21_values_that_are_not_finite_are_told_with_line_and_column(tmp_path, value):
    match = "line 3, column 2 is .*1 such value in all"
    refused_text(tmp_path, f"a,b\n1,2\n3,{value}\n", match)
    refused_text(tmp_path, f"id,b\nr,2\ns,{value}\n", match, id_column="id")


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"1,2\n3,\0004\n", "line 2 has a NUL byte"),
        (b"1,2\n3,\xff4\n", r"line 2 is not UTF-8; .* iconv -f cp1252 -t utf-8"),
        ("1,2\n".encode("utf-16"), "UTF-16"),
        ("1,2\n".encode("utf-16-le"), "NUL"),
        ("1,2\n".encode("utf-32"), "UTF-16 or UTF-32"),
    ],
)
def test_a24_what_is_no_utf8_text_is_refused(tmp_path, data, match):
    refused_text(tmp_path, data, match)
    refused_text(tmp_path, gzip.compress(data), match)


def test_a25_a_column_of_ids_is_suspected(tmp_path):
    refused_text(
        tmp_path, "n,a,b\nx,1,2\ny,3,4\n", "line 2, column 1 .*`id_column='n'`"
    )
    known = {"id_column": "n"}
    message = "column 2 is not a number: 'u'; leave it out with `drop='a'`"
    refused_text(tmp_path, "n,a,b\nx,u,2\ny,v,4\n", message, **known)
    message = "`id_column='n'`, and leave others out with `drop='a b,c'`"
    refused_text(tmp_path, "n,1st,a b,c\nx,1,u,v\ny,2,w,z\n", message)
    message = "`drop='x'`; if line 1 holds no names, say `header=False` and numbers"
    refused_text(tmp_path, "x,1,2\ny,3,4\n", message)
    message = "line 3, column 2 .*: 'o'; correct it, or .* with `drop='a'`"
    refused_text(tmp_path, "n,a\n1,2\n3,o\n", message)
    refused_text(tmp_path, "n,a\nx,1\n", "no single column 'q'", id_column="q")
    refused_text(tmp_path, "n,a\nx,1\n", "no single column '7'", id_column="7")
    refused_text(tmp_path, "n,a\nx,1\nx,2\n", "'x' stands in more", id_column="n")
    refused_text(tmp_path, "n\nx\n", "the only one", id_column="n")
    refused_text(tmp_path, "1,a\n2\n", "line 2 has 1 field", id_column="1")


@pytest.mark.parametrize("cut", [5, 20])
def test_a26_damaged_compressed_text_is_said(tmp_path, cut):
    data = gzip.compress(b"1,2\n3,4\n" * 9)
    refused_text(tmp_path, data[:-cut], "gzip-compressed data is damaged", "x.csv.gz")
    broken = data[:-8] + bytes([data[-8] ^ 255]) + data[-7:]
    refused_text(tmp_path, broken, "gzip-compressed data is damaged", "x.csv.gz")


def test_a27_damaged_hdf5_files_are_said(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["x"] = X
    data = path.read_bytes()
    refused_text(tmp_path, data[:-50], "truncated", "x.h5")
    refused_text(tmp_path, data[:8], "damaged|truncated", "x.h5")
    refused_text(tmp_path, "text", "not an h5 file.*text", "x.h5")


def test_a27_an_hdf5_file_that_was_not_closed_names_h5clear(tmp_path):
    path = tmp_path / "x.h5"
    script = (
        "import h5py, os, sys; f = h5py.File(sys.argv[1], 'w', libver='latest');"
        "f['x'] = [[1.0]]; f.swmr_mode = True; f.flush(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    refused(path, "h5clear")


@pytest.mark.parametrize(
    ("item", "match"),
    [
        ("none", "no dataset 'none'"),
        ("g", "is a group"),
        ("scalar", "single value"),
        ("empty", "is empty"),
        ("compound", "compound"),
        ("a/deeper", "no dataset"),
        (None, "several matrices"),
    ],
)
def test_a28_the_datasets_are_listed_where_none_fits(tmp_path, item, match):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["g/b"], file["scalar"] = X, X, 1.0
        file["empty"] = h5py.Empty("f8")
        file["compound"] = np.zeros((2, 2), [("p", "f8")])
    spec = f"{tmp_path}/x.h5" + (f"::{item}" if item else "")
    message = refused(spec, match)
    assert "a (4, 3) float64" in message
    assert "g/b (4, 3)" in message


def test_a28_an_hdf5_file_without_a_matrix_is_said(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = [1.0]
    refused(tmp_path / "x.h5", "no matrix")
    refused(f"{tmp_path}/x.h5::a", "1-dimensional")


def test_a29_links_that_lead_nowhere_are_said(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"] = h5py.SoftLink("/nowhere")
        file["b"], file["c"] = h5py.SoftLink("/c"), h5py.SoftLink("/b")
    refused(f"{tmp_path}/x.h5::a", "no dataset 'a'")
    refused(f"{tmp_path}/x.h5::b", "have no end")


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.ENOLCK])
def test_a30_a_lock_names_the_variable_that_helps(tmp_path, monkeypatch, code):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X

    def locked(*_, **__):
        raise BlockingIOError(code, "Unable to synchronously open file")

    monkeypatch.setattr(h5py, "File", locked)
    refused(tmp_path / "x.h5", "HDF5_USE_FILE_LOCKING")


def test_a32_an_unknown_filter_is_named(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        space = h5py.h5s.create_simple((4, 3))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((4, 3))
        plist.set_filter(32099, h5py.h5z.FLAG_OPTIONAL, (1,))
        h5py.h5d.create(file.id, b"x", h5py.h5t.IEEE_F64LE, space, plist)
    refused(tmp_path / "x.h5", "filter .*32099")


def contents(tmp_path):
    """Return one valid file of every kind, by format name."""
    np.save(tmp_path / "s.npy", X)
    np.savez(tmp_path / "s.npz", X)
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file["x"] = X
    for suffix in ("edgelist", "graphml", "mtx"):
        formats.write_graph(tmp_path / f"s.{suffix}", graph())
    return {p.suffix[1:]: p.read_bytes() for p in tmp_path.iterdir()}


def test_a33_what_the_content_looks_like_is_said_for_every_pair(tmp_path):
    valid = contents(tmp_path)
    for kind, data in valid.items():
        for name in ("npy", "npz", "h5", "csv", "txt"):
            if kind != name:
                match = rf"the content looks like .*\({kind}\); .* its `format`, {kind}"
                if kind in {"edgelist", "graphml", "mtx"}:
                    match = "a graph that nnkgraph wrote, not features: .*read graphs"
                refused_text(tmp_path, data, match, f"x.{name}")
        for name in ("npz", "mtx", "graphml", "tsv"):
            if kind != name and (kind, name) != ("edgelist", "tsv"):
                (tmp_path / f"y.{name}").write_bytes(data)
                with pytest.raises(InputError, match="the content looks like"):
                    formats.read_graph(tmp_path / f"y.{name}")


def test_a34_closed_and_empty_standard_input_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    refused("-", "standard input is closed", format="npy")
    stream = io.TextIOWrapper(io.BytesIO(b""))
    monkeypatch.setattr(sys, "stdin", stream)
    refused("-", "empty file", format="csv")
    stream.close()
    refused("-", "closed", format="npy")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1")))
    with pytest.raises(ParameterError, match="`format`"):
        formats.read_features("-")


def test_a35_a_file_that_grows_while_it_is_read_is_said(tmp_path, monkeypatch):
    from nnkgraph.data import Features

    path, original = tmp_path / "x.npy", Features.of
    np.save(path, X)

    def grow(*args, **options):
        path.write_bytes(path.read_bytes() + b"more")
        return original(*args, **options)

    monkeypatch.setattr("nnkgraph.formats.npy.Features.of", grow)
    refused(path, "changed while it was read")


# Outputs


def assert_untouched(folder, *names):
    assert sorted(p.name for p in folder.iterdir()) == sorted(names)


def test_e01_no_clobber_keeps_what_is_there(tmp_path):
    path = tmp_path / "g.npz"
    formats.check_output(path, no_clobber=True)
    path.write_text("old")
    formats.check_output(path)
    with pytest.raises(OutputError, match="`no_clobber`"):
        formats.check_output(path, no_clobber=True)
    formats.check_output("/dev/null", format="tsv", no_clobber=True)


def test_e02_a_directory_that_is_missing_or_read_only_is_said(tmp_path):
    with pytest.raises(OutputError, match="no directory"):
        formats.check_output(tmp_path / "no" / "g.npz")
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="not a directory"):
        formats.check_output(tmp_path / "file" / "g.npz")
    for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    with (
        ordinary_user(),
        pytest.raises(OutputError, match=r"cannot be written|permission"),
    ):
        formats.check_output(closed / "g.npz")


@pytest.mark.parametrize("suffix", ["npz", "tsv", "graphml", "mtx", "csv.gz"])
def test_e03_a_full_disk_is_said(suffix):
    with pytest.raises(OutputError, match="/dev/full: cannot be written: no space"):
        formats.write_graph("/dev/full", graph(), format=suffix)


@pytest.mark.parametrize("suffix", ["npz", "tsv", "h5"])
def test_e04_a_limit_on_file_sizes_leaves_the_old_file(tmp_path, suffix):
    path = tmp_path / f"g.{suffix}"
    path.write_text("old")
    n, big = 5000, np.zeros((500, 50), np.int64)
    large = Graph(
        sp.csr_array((n, n)), ids=tuple(map(str, range(n))), errors=np.ones(n)
    )

    def write():
        if suffix == "h5":
            formats.write_candidates(path, Candidates(big, big * 1.0), provenance={})
        else:
            formats.write_graph(path, large)

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OutputError, match="cannot be written"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert_untouched(tmp_path, path.name)
    assert path.read_text() == "old"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("suffix", ["npz", "tsv"])
@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()]
)
def test_e05_a_failure_at_the_end_leaves_the_old_file(
    tmp_path, monkeypatch, failing, suffix, error
):
    path = tmp_path / f"g.{suffix}"
    path.write_text("old")

    def fail(*_):
        raise error

    monkeypatch.setattr(os, failing, fail)
    wanted = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(wanted):
        formats.write_graph(path, graph(errors=np.ones(3)))
    assert_untouched(tmp_path, path.name)
    assert path.read_text() == "old"


@pytest.mark.parametrize("suffix", ["npz", "tsv"])
def test_e06_the_file_that_a_link_points_to_is_replaced(tmp_path, suffix):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "g", tmp_path / f"link.{suffix}"
    target.write_text("old")
    link.symlink_to(target)
    formats.write_graph(link, graph())
    assert link.is_symlink()
    assert formats.read_graph(target, format=suffix).n_nodes == 3
    target.unlink()
    formats.check_output(link)
    formats.write_graph(link, graph())
    assert target.exists()


@pytest.mark.parametrize("suffix", ["npz", "tsv"])
def test_e06_pipes_and_devices_are_written_directly(tmp_path, suffix):
    formats.check_output("/dev/null", format=suffix)
    formats.write_graph("/dev/null", graph(errors=np.ones(3)), format=suffix)
    assert not os.path.isfile("/dev/null")  # noqa: PTH113
    fifo = tmp_path / f"fifo.{suffix}"
    os.mkfifo(fifo)
    received = []
    reader = threading.Thread(target=lambda: received.append(fifo.read_bytes()))
    reader.start()
    formats.write_graph(fifo, graph(errors=np.ones(3)))
    reader.join()
    (tmp_path / f"copy.{suffix}").write_bytes(received[0])
    assert formats.read_graph(tmp_path / f"copy.{suffix}").n_nodes == 3
    assert_untouched(tmp_path, f"fifo.{suffix}", f"copy.{suffix}")


def test_e06_a_directory_is_no_target(tmp_path):
    (tmp_path / "g.npz").mkdir()
    for target in (tmp_path, tmp_path / "g.npz"):
        with pytest.raises(OutputError, match="directory"):
            formats.check_output(target)
    with pytest.raises(OutputError):
        formats.write_graph(tmp_path / "g.npz", graph())
    assert_untouched(tmp_path, "g.npz")


@pytest.mark.parametrize("suffix", ["npz", "tsv", "tsv.gz", "graphml"])
def test_e07_a_closed_pipe_stays_a_broken_pipe(tmp_path, suffix):
    fifo = tmp_path / f"fifo.{suffix}"
    os.mkfifo(fifo)
    large = Graph(
        sp.csr_array((200_000, 200_000)),
        errors=np.random.default_rng(0).random(200_000),
    )
    if suffix.startswith("tsv"):
        n = 100_000
        rows = np.arange(n)
        a = sp.csr_array((np.ones(n), (rows, rows + 1)), shape=(n + 1, n + 1))
        large = Graph(a, directed=True)

    def read_a_little():
        with fifo.open("rb") as stream:
            stream.read(10)

    reader = threading.Thread(target=read_a_little)
    reader.start()
    with pytest.raises(BrokenPipeError):
        formats.write_graph(fifo, large)
    reader.join()


def test_e08_binary_formats_do_not_go_to_a_terminal(monkeypatch):
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        for kind in ("npz", "tsv.gz"):
            with pytest.raises(ParameterError, match="terminal"):
                formats.check_output("-", format=kind)
        formats.check_output("-", format="tsv")
        monkeypatch.undo()
    os.close(leader)


def test_e09_a_name_without_a_suffix_is_kept(tmp_path):
    formats.write_graph(tmp_path / "graph", graph(), format="npz")
    assert_untouched(tmp_path, "graph")
    assert sp.load_npz(tmp_path / "graph").nnz == 2


def test_e10_an_output_that_is_an_input_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=X)
    (tmp_path / "link.npz").symlink_to(path)
    for target in (path, tmp_path / "link.npz", f"{tmp_path}/../{tmp_path.name}/x.npz"):
        for spec in (str(path), f"{path}::x"):
            with pytest.raises(ParameterError, match="also an input"):
                formats.check_output(target, inputs=[spec])
    formats.check_output(tmp_path / "y.npz", inputs=[str(path), "-"])


def test_e17_the_umask_decides_about_the_mode(tmp_path):
    old = os.umask(0o027)
    try:
        formats.write_graph(tmp_path / "g.tsv", graph(errors=np.ones(3)))
    finally:
        os.umask(old)
    for name in ("g.tsv", "g.tsv.nnk.npz"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o640


def test_e18_provenance_never_holds_nan(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        formats.write_graph(tmp_path / "g.npz", graph(provenance={"x": float("nan")}))
    assert_untouched(tmp_path)


def test_e19_names_that_cannot_be_are_refused(tmp_path):
    for name in ("a" * 300 + ".npz", "a" * 245 + ".tsv", "g.npz/", "a\0b.npz"):
        with pytest.raises(OutputError):
            formats.check_output(f"{tmp_path}/{name}")
    formats.check_output(f"{tmp_path}/{'a' * 245}.npz")
    with pytest.raises(OutputError):
        formats.write_graph(f"{tmp_path}/{'a' * 300}.npz", graph())
    assert_untouched(tmp_path)


@pytest.mark.parametrize("kind", ["graph", "candidates"])
def test_unknown_suffixes_say_which_there_are(tmp_path, kind):
    with pytest.raises(ParameterError, match=r"none of .*\.npz"):
        formats.check_output(tmp_path / "g.xyz", kind=kind)
    assert formats.check_output(tmp_path / "g.npz", kind=kind) is None


# Security


class Payload:
    def __init__(self, canary):
        self.canary = str(canary)

    def __reduce__(self):
        return (open, (self.canary, "w"))


def test_h01_pickles_are_never_loaded(tmp_path):
    canary = tmp_path / "canary"
    values = np.array([[Payload(canary)]], dtype=object)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", x=values)
    np.savez(tmp_path / "g.npz", format=values, shape=values, data=values)
    np.savez(tmp_path / "i.npz", x=X, ids=np.array([Payload(canary)] * 4))
    for spec in ("x.npy", "x.npz", "x.npz::x", "i.npz"):
        refused(f"{tmp_path}/{spec}", "objects, which are never loaded")
    with pytest.raises(InputError, match="never loaded"):
        formats.read_graph(tmp_path / "g.npz")
    for name in ("x.npy", "x.npz"):
        with pytest.raises(InputError, match="never loaded"):
            formats.read_candidates(tmp_path / name)
    assert not canary.exists()


def test_h02_links_to_other_files_are_not_followed(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["g/x"] = X
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["direct"] = h5py.ExternalLink("other.h5", "/g/x")
        file["group"] = h5py.ExternalLink("other.h5", "/g")
        file["soft"] = h5py.SoftLink("/direct")
        file["deep"] = h5py.SoftLink("/group/x")
    for item in ("direct", "group/x", "soft", "deep", "group"):
        refused(f"{tmp_path}/x.h5::{item}", "link to another file")
        with pytest.raises(InputError, match="link to another file"):
            formats.read_candidates(f"{tmp_path}/x.h5::{item}")
    refused(f"{tmp_path}/x.h5", "no matrix")
    with h5py.File(tmp_path / "ids.h5", "w") as file:
        file["x"] = X
        file["ids"] = h5py.ExternalLink("other.h5", "/g/x")
    assert formats.read_features(tmp_path / "ids.h5").ids is None


def test_h03_values_in_other_files_are_not_read(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("raw", (2, 2), "u1", external=[("/etc/passwd", 0, 4)])
        layout = h5py.VirtualLayout((4, 3), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "x", (4, 3))
        file.create_virtual_dataset("virtual", layout)
    for item in ("raw", "virtual"):
        refused(f"{tmp_path}/x.h5::{item}", "in other files")


def bomb(path, shape, *, claimed=None):
    """Write an archive whose member claims more than it holds."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header(shape) + b"\0" * 1000)
    if claimed is not None:
        data = bytearray(path.read_bytes())
        place = data.rindex(b"PK\x01\x02") + 24
        data[place : place + 4] = struct.pack("<I", claimed)
        path.write_bytes(data)


def test_h04_archives_that_claim_too_much_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.npz"
    bomb(path, (10**9, 10**5))
    refused(path, "makes .* bytes, the archive says")
    bomb(path, (2**19, 1000), claimed=2**32 - 2)
    refused(path, "more than its .* compressed bytes can hold")
    np.savez_compressed(path, x=np.zeros((1000, 1000)))
    monkeypatch.setattr("nnkgraph.runtime.arrays.available_memory", lambda: 10**6)
    refused(path, "claims 8,000,128 bytes, more than the 1,000,000")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (10**7, 10**7), "f8", chunks=(100, 100))
    refused(tmp_path / "x.h5", "claims .* bytes, more than")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x.npy", header((1, 1)) + b"\0" * 8)
    refused(path, "never uses")


@pytest.mark.parametrize("nodes", [10**9, 10**15])
def test_h04_graphs_that_claim_too_many_nodes_are_refused(tmp_path, monkeypatch, nodes):
    monkeypatch.setattr("nnkgraph.runtime.arrays.available_memory", lambda: 10**8)
    (tmp_path / "g.tsv").write_text(f"# nnkgraph graph\n# nodes: {nodes}\n0\t1\t1\n")
    (tmp_path / "h.tsv").write_text(f"0\t{nodes}\t1\n")
    (tmp_path / "g.mtx").write_text(
        f"%%MatrixMarket matrix coordinate real general\n{nodes} {nodes} 0\n"
    )
    sp.save_npz(tmp_path / "g.npz", sp.coo_array((nodes, nodes)))
    for name in ("g.tsv", "h.tsv", "g.mtx", "g.npz"):
        with pytest.raises(InputError, match=r"claims .* bytes"):
            formats.read_graph(tmp_path / name)


def test_h05_member_names_cannot_write_files(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = inside / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../../x", "/tmp/x", "\x1b[31m"):
            archive.writestr(f"{name}.npy", header((1, 1)) + b"\0" * 8)
    message = refused(path, "several")
    assert "\x1b" not in message
    assert formats.read_features(f"{path}::../../x").x.shape == (1, 1)
    assert_untouched(inside, "x.npz")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header((1, 1)) + b"\0" * 8)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("x.npy", header((1, 1)) + b"\1" * 8)
    refused(path, "two members are called 'x'")


@pytest.mark.parametrize("suffix", ["npz", "tsv"])
def test_h06_a_planted_link_is_not_written_through(tmp_path, monkeypatch, suffix):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("secrets.token_hex", lambda _: "guess")
    planted = tmp_path / f"{_PREFIX}guess.tmp"
    planted.symlink_to(victim)
    with pytest.raises(OutputError, match="exists"):
        formats.write_graph(tmp_path / f"g.{suffix}", graph())
    assert victim.read_text() == "precious"
    assert_untouched(tmp_path, "victim", planted.name)


ODD = [
    "<&\">'",
    "=cmd()",
    "a\tb",
    "a,b",
    "a b",
    "a\nb",
    "#a",
    "a#b",
    '"',
    "",
    " a",
    "\u2028",
]


@pytest.mark.parametrize(
    "odd", [*ODD, "\x00a", "\x1b[31m", "a\0", "\ud800", "\x85", "\ufffe"]
)
@pytest.mark.parametrize("suffix", ["npz", "tsv", "csv", "edgelist", "graphml"])
def test_h09_odd_ids_survive_or_are_refused(tmp_path, suffix, odd):
    path = tmp_path / f"g.{suffix}"
    try:
        formats.write_graph(path, graph((odd, "b", "c")))
    except OutputError as error:
        assert suffix in {"tsv", "edgelist"} or odd not in ODD
        assert str(error).startswith(f"{path}: the id '")  # noqa: PT017
        assert str(error).isprintable()  # noqa: PT017
        assert_untouched(tmp_path)
        with pytest.raises(OutputError, match="the id"):
            formats.check_ids(path, ["a", odd])
        return
    formats.check_ids(path, (odd, "b", "c"))
    read = formats.read_graph(path)
    assert read.ids == (odd, "b", "c")
    assert read.adjacency[0, 1] == 0.5
    if suffix in {"tsv", "edgelist"}:
        last = path.read_text().split("\n")[-2]
        assert len(last.split("\t" if suffix == "tsv" else None)) == 3


def sparse(path, **changes):
    parts = {
        "format": b"csr",
        "shape": [3, 3],
        "data": [0.5, 0.5],
        "indices": [1, 0],
        "indptr": [0, 1, 2, 2],
    }
    np.savez(
        path, **{k: np.array(v) for k, v in (parts | changes).items() if v is not None}
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": [3, 0]},
        {"indices": [-1, 0]},
        {"indices": [2**62, 0]},
        {"indices": np.array([2**64 - 1, 0], np.uint64)},
        {"indices": [1.0, 0.0]},
        {"indices": [1]},
        {"indices": [[1, 0]]},
        {"indptr": [0, 2, 1, 2]},
        {"indptr": [1, 1, 2, 2]},
        {"indptr": [0, 1, 2, 3]},
        {"indptr": [0, 1, 2]},
        {"indptr": []},
        {"indptr": [0, -5, 2, 2]},
        {"indptr": None},
        {"data": [np.nan, np.nan]},
        {"data": [np.inf, np.inf]},
        {"data": [0.0, 0.0]},
        {"data": [1j, 1j]},
        {"data": [0.5]},
        {"data": [["a"]]},
        {"indices": [0, 1]},
        {"indptr": [0, 2, 2, 2], "indices": [1, 1]},
        {"shape": [3, 4]},
        {"shape": [0, 0]},
        {"shape": [-3, -3]},
        {"shape": [3]},
        {"shape": ["a", "b"]},
        {"format": b"xyz"},
        {"format": b"\xff"},
        {"format": [b"csr"]},
        {"format": None},
        {"directed": False, "data": [0.5, 0.25]},
        {"ids": ["a", "b"]},
        {"ids": ["a", "b", "b"]},
        {"ids": [1, 2, 3]},
        {"errors": [1.0]},
        {"errors": ["a", "b", "c"]},
        {"candidates": [[1], [2], [3]]},
        {"candidates": [[1], [2], [-2]]},
        {"candidates": [1, 2, 0]},
        {"provenance": "{"},
        {"provenance": "[1]"},
        {"provenance": 1},
        {"provenance": '{"x": NaN}'},
    ],
)
def test_h10_malformed_sparse_matrices_are_refused(tmp_path, changes):
    sparse(tmp_path / "g.npz")
    assert formats.read_graph(tmp_path / "g.npz").n_edges == 1
    sparse(tmp_path / "g.npz", **changes)
    with pytest.raises(InputError, match=r"g\.npz: "):
        formats.read_graph(tmp_path / "g.npz")


EDGES = "# nnkgraph graph\n# nodes: 3\n"
MTX = "%%MatrixMarket matrix coordinate real symmetric\n"
XML = '<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>'


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("g.tsv", EDGES + "0\t1\t1\n1\t0\t1\n", "line 4: the edge from 1 to 0 stands"),
        ("g.tsv", EDGES + "0\t3\t1\n", "line 3: .* does not exist"),
        ("g.tsv", EDGES + "1\t1\t1\n", "line 3: .* is a loop"),
        ("g.tsv", EDGES + "0\t1\tnan\n", "line 3: .* no finite number"),
        ("g.tsv", EDGES + "0\t1\t0\n", "line 3: .* weight zero"),
        ("g.tsv", EDGES + "0\t1\tx\n", "line 3: the weight 'x' is not a number"),
        ("g.tsv", EDGES + "0\t1\t1\t1\n", r"line 3: 4 field\(s\)"),
        ("g.tsv", EDGES + "0 1 1\n", r"line 3: 1 field\(s\)"),
        ("g.tsv", EDGES + "0\tb\t1\n", "'b' is no number of a node"),
        ("g.tsv", "# nnkgraph graph\n# nodes: x\n", "line 2: 'x' is no number"),
        ("g.tsv", "# nnkgraph graph\n# directed: x\n", "line 2"),
        ("g.tsv", "# nnkgraph graph\n# provenance: x\n", "line 2: the provenance"),
        ("g.tsv", "# nothing\n", "no nodes"),
        ("g.csv", EDGES + '0,"1,1\n', "line 3"),
        ("g.csv", b"a,b\xff,1\n", "line 1 is not UTF-8"),
        ("g.mtx", MTX + "3 3 2\n2 1 1\n", "2 entries are announced, but there are 1"),
        ("g.mtx", MTX + "3 3 1\n2 1\n", "line 3: '2 1' is no entry"),
        ("g.mtx", MTX + "3 3 1\n2 1 x\n", "line 3"),
        ("g.mtx", MTX + "3 3 1\n0 1 1\n", "does not exist"),
        ("g.mtx", MTX + "3 3 1\n4 1 1\n", "does not exist"),
        ("g.mtx", MTX + "3 3 2\n2 1 1\n1 2 1\n", "more than once"),
        ("g.mtx", MTX + "3 4 0\n", "square"),
        ("g.mtx", MTX + "3 3\n", "three sizes"),
        ("g.mtx", MTX, "ends before"),
        ("g.mtx", MTX.replace("real", "complex"), "not real"),
        ("g.mtx", MTX.replace("symmetric", "hermitian"), "symmetry"),
        ("g.mtx", MTX.replace("coordinate", "array"), "coordinate"),
        ("g.graphml", XML, "not well-formed"),
        ("g.graphml", XML + '<edge source="a"/></graph></graphml>', "lacks the attr"),
        ("g.graphml", XML + '<edge source="a" target="z"/></graph></graphml>', "'z'"),
        ("g.graphml", XML + '<node id="a"/></graph></graphml>', "'a' .* twice"),
        ("g.graphml", XML + '<edge source="a" target="a"/></graph></graphml>', "loop"),
        ("g.graphml", XML + "</graph><graph/></graphml>", "more than one graph"),
        ("g.graphml", "<graphml/>", "no <graph>"),
        ("g.graphml", '<?xml version="1.0" encoding="nope"?><graphml/>', "XML"),
        (
            "g.graphml",
            XML + '<edge directed="true" source="a" target="b"/></graph></graphml>',
            "mixed",
        ),
    ],
)
def test_h10_malformed_graphs_are_refused(tmp_path, name, text, match):
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError, match=match) as caught:
        formats.read_graph(tmp_path / name)
    assert str(caught.value).isprintable()


def test_h10_xml_entities_are_refused(tmp_path):
    path = tmp_path / "g.graphml"
    for declaration in (
        '<!DOCTYPE g [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE g SYSTEM "file:///etc/passwd">',
    ):
        path.write_text(f'<?xml version="1.0"?>{declaration}<graphml>&b;</graphml>')
        with pytest.raises(InputError, match="declarations are refused"):
            formats.read_graph(path)


def test_h11_random_damage_gives_documented_errors_only(tmp_path):
    seeds = contents(tmp_path)
    seeds["csv"] = b'a,b\n1,"2"\n3,4e5\n'
    stream = io.BytesIO()
    np.savez_compressed(stream, x=X, ids=np.array(list("abcd")))
    seeds["npz"] = stream.getvalue()
    formats.write_graph(tmp_path / "g.npz", graph(("a", "b", "c"), errors=np.ones(3)))
    seeds["graph.npz"] = (tmp_path / "g.npz").read_bytes()
    seeds["tsv.gz"] = gzip.compress(seeds["edgelist"].replace(b" ", b"\t"))
    chance = random.Random(0)
    for kind, seed in seeds.items():
        path = tmp_path / f"fuzz.{kind}"
        for _ in range(120):
            data = bytearray(seed)
            for _ in range(chance.choice([1, 2, 8])):
                place = chance.randrange(len(data))
                data[place : place + chance.randrange(2)] = chance.randbytes(
                    chance.randrange(3)
                )
            path.write_bytes(data)
            for reader in (
                formats.read_features,
                formats.read_graph,
                formats.read_candidates,
            ):
                with contextlib.suppress(NnkGraphError):
                    reader(path)


def test_h12_terminal_escapes_in_names_are_harmless(tmp_path):
    name = "\x1b[31mred\n.npy"
    message = refused(tmp_path / name, "no such file")
    assert r"\x1b[31mred\n.npy" in message
    (tmp_path / name).write_bytes(b"")
    assert refused(tmp_path / name, "empty file").isprintable()
    with pytest.raises(NnkGraphError) as caught:
        formats.check_output(tmp_path / "\x1b[31m" / "x.npz")
    assert str(caught.value).isprintable()


def test_a08_a_single_number_beside_ids_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=np.float64(3), ids=np.array(["a", "b"]))
    with pytest.raises(InputError, match="a matrix with one row"):
        formats.read_features(f"{path}::x")


@pytest.mark.parametrize("name", ["x.npz", "x.pyg.npz", "x.parquet", "x.npy"])
def test_features_where_a_graph_is_asked_for_are_said_to_be_built_from(tmp_path, name):
    path = tmp_path / name
    if name == "x.parquet":
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"u": [1.0, 2.0], "v": [3.0, 4.0]}), path)
    else:
        with path.open("wb") as file:
            (np.save if name == "x.npy" else np.savez)(file, np.eye(3))
    with pytest.raises((InputError, ParameterError), match="build makes a graph"):
        formats.read_graph(path)


def test_near_names_are_looked_for_in_a_part_of_a_huge_folder(tmp_path, monkeypatch):
    (tmp_path / "customers.csv").write_text("1,2\n")
    (tmp_path / "data\x1b[2J.csv").write_text("1,2\n")
    with pytest.raises(InputError, match=r"customers\.csv\?$"):
        formats.read_features(tmp_path / "customer.csv")
    with pytest.raises(InputError, match=r"data\\x1b\[2J\.csv\?$"):
        formats.read_features(tmp_path / "data\x1b[2.csv")
    (tmp_path / "gone.csv").symlink_to("nowhere")
    with pytest.raises(InputError, match=r"no such file$"):
        formats.read_features(tmp_path / "gone.csv")
    monkeypatch.setattr("nnkgraph.runtime.files._LOOKED_AT", 0)
    with pytest.raises(InputError, match=r"no such file$"):
        formats.read_features(tmp_path / "customer.csv")
