"""Reading feature matrices: what is accepted, and that it means what it says."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
import zipfile

import h5py
import numpy as np
import pytest

from nnkgraph import formats
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.formats._choose import suffixes
from nnkgraph.runtime import registry

X = np.arange(12, dtype=np.float64).reshape(4, 3) / 8 - 0.5
CSV = "".join(",".join(map(repr, row)) + "\n" for row in X.tolist())


def write(path, content):
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(data)
    return str(path)


def stdin(monkeypatch, data):
    """Replace standard input by a pipe, which cannot seek."""
    read, write_end = os.pipe()
    sender = threading.Thread(
        target=lambda: (os.write(write_end, data), os.close(write_end))
    )
    sender.start()
    stream = io.TextIOWrapper(io.BufferedReader(io.FileIO(read)))
    monkeypatch.setattr(sys, "stdin", stream)
    return stream, sender


@pytest.mark.parametrize("name", registry.names("formats"))
def test_every_format_is_documented_and_has_suffixes_and_a_role(name):
    plugin = registry.load("formats", name)
    assert plugin.__doc__
    assert plugin.suffixes
    assert any(plugin.can(role) for role in ("read_features", "read_graph"))


def test_the_package_is_imported_without_numpy():
    script = "import sys, nnkgraph.formats; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_formats_are_named_by_suffix():
    assert {".csv", ".tsv", ".txt", ".npy", ".npz", ".h5", ".hdf5", ".h5ad"} <= set(
        suffixes("read_features")
    )
    assert {".npz", ".tsv", ".csv", ".edgelist", ".graphml", ".mtx", ".tsv.gz"} <= set(
        suffixes("write_graph")
    )


def test_an_item_is_split_off_unless_the_whole_path_exists(tmp_path):
    odd = tmp_path / "a::b.npy"
    np.save(odd, X)
    assert formats.split_item(str(odd)) == (str(odd), None)
    assert formats.split_item("x.h5::group/data") == ("x.h5", "group/data")
    assert formats.split_item("x.npy") == ("x.npy", None)
    whole = tmp_path / "d::x.h5"
    with h5py.File(whole, "w") as file:
        file["p::q"] = X
    assert formats.split_item(f"{whole}::p::q") == (str(whole), "p::q")
    assert np.array_equal(formats.read_features(f"{whole}::p::q").x, X)


def test_all_formats_give_the_same_features(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", x=X)
    np.savez_compressed(tmp_path / "y.npz", x=X)
    np.savetxt(tmp_path / "x.txt", X)
    write(tmp_path / "x.csv", CSV)
    write(tmp_path / "x.tsv", CSV.replace(",", "\t"))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = X
    hashes = {formats.read_features(p).sha256 for p in tmp_path.iterdir()}
    assert len(hashes) == 1


def test_npy_is_mapped_and_cannot_be_written(tmp_path):
    np.save(tmp_path / "x.npy", X)
    x = formats.read_features(tmp_path / "x.npy").x
    assert isinstance(x, np.memmap)
    assert not x.flags.writeable


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u8", "f2", "g", ">f8", ">i4", "<f4", "u2"]
)
def test_a12_real_dtypes_are_accepted(tmp_path, dtype):
    values = np.array([[0, 1], [1, 1], [1, 0]]).astype(dtype)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", values)
    for path in tmp_path.iterdir():
        assert np.array_equal(formats.read_features(path).x, values.astype(np.float64))


@pytest.mark.parametrize(
    ("value", "count"), [(2**53 - 1, 0), (2**53 + 1, 1), (-(2**60), 1)]
)
def test_a12_integers_that_float64_rounds_are_said(tmp_path, value, count):
    np.save(tmp_path / "x.npy", np.array([[value, 1]], np.int64))
    assert len(formats.read_features(tmp_path / "x.npy").warnings) == count


def test_a13_fortran_order_gives_the_same_values(tmp_path):
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.savez(tmp_path / "f.npz", np.asfortranarray(X))
    hashes = {formats.read_features(p).sha256 for p in tmp_path.iterdir()}
    assert len(hashes) == 1


def test_a14_several_arrays_need_a_name(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=X, b=X + 1, labels=np.arange(4))
    with pytest.raises(InputError, match=r"several.*a \(shape \(4, 3\).*labels"):
        formats.read_features(path)
    assert np.array_equal(formats.read_features(f"{path}::b").x, X + 1)
    with pytest.raises(InputError, match="no array 'c'"):
        formats.read_features(f"{path}::c")
    np.savez(path, a=X, labels=np.arange(4))
    assert np.array_equal(formats.read_features(path).x, X)
    np.savez(path, labels=np.arange(4))
    with pytest.raises(InputError, match="no matrix"):
        formats.read_features(path)
    np.savez(path)
    with pytest.raises(InputError, match="no matrix"):
        formats.read_features(path)


def test_ids_of_an_archive_name_the_rows(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, x=X, ids=np.array(["a", "b", "ü", "d"]))
    assert formats.read_features(path).ids == ("a", "b", "ü", "d")
    notes = []
    np.savez(path, x=X, ids=np.array(["a", "b"]))
    assert formats.read_features(path, note=notes.append).ids is None
    assert "no row names" in notes[0]


def test_ids_of_an_hdf5_group_name_the_rows(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["g/x"] = X
        file["g/ids"] = ["a", "b", "ü", "d"]
    assert formats.read_features(path).ids == ("a", "b", "ü", "d")
    assert formats.read_features(f"{path}::g/x").ids == ("a", "b", "ü", "d")
    assert formats.read_features(f"{path}::/g/x").name == f"{path}::/g/x"


def test_a16_a_header_is_found_and_said(tmp_path):
    path = write(tmp_path / "x.csv", "a,b,c\n" + CSV)
    notes = []
    assert np.array_equal(formats.read_features(path, note=notes.append).x, X)
    assert notes == [f"{path}: a header row was found in line 1: a, b, c"]
    assert np.array_equal(formats.read_features(path, header=True).x, X)
    with pytest.raises(InputError, match=r"line 1, column 1 .*`header=True`"):
        formats.read_features(path, header=False)
    path = write(tmp_path / "y.csv", CSV)
    assert len(formats.read_features(path, header=True).x) == 3


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + CSV,
        CSV.replace("\n", "\r\n"),
        CSV.rstrip("\n"),
        CSV + "\n\n \r\n",
        '"' + CSV.replace(",", '","').replace("\n", '"\n"')[:-1],
        CSV.replace(",", " , "),
    ],
    ids=["bom", "crlf", "no-newline", "blank-end", "quoted", "blanks"],
)
def test_a19_usual_variants_of_csv_read_the_same(tmp_path, text):
    path = write(tmp_path / "x.csv", text)
    assert np.array_equal(formats.read_features(path).x, X)


def test_a22_leading_comments_are_skipped_and_said(tmp_path):
    notes = []
    path = tmp_path / "x.txt"
    np.savetxt(path, X, header="first\nsecond")
    assert np.array_equal(formats.read_features(path, note=notes.append).x, X)
    assert "2 leading line(s)" in notes[0]
    for bad in ("1,2#3\n", "1,2\n#3,4\n5,6\n"):
        with pytest.raises(InputError, match=r"line \d, column \d is not a number"):
            formats.read_features(write(tmp_path / "y.csv", bad))


def test_a23_single_columns_and_rows_keep_their_shape(tmp_path):
    assert formats.read_features(write(tmp_path / "a.csv", "1\n2\n3\n")).x.shape == (
        3,
        1,
    )
    assert formats.read_features(write(tmp_path / "b.csv", "1,2,3\n")).x.shape == (1, 3)
    assert formats.read_features(write(tmp_path / "c.txt", "1\n2\n")).x.shape == (2, 1)


@pytest.mark.parametrize("column", ["name", "1"])
def test_a25_an_id_column_names_the_rows(tmp_path, column):
    text = 'x,name,y\n1,a,2\n3,"b,""c",4\n'
    features = formats.read_features(write(tmp_path / "x.csv", text), id_column=column)
    assert features.ids == ("a", 'b,"c')
    assert np.array_equal(features.x, [[1, 2], [3, 4]])


def test_a25_an_id_column_may_be_first_or_last_and_needs_no_header(tmp_path):
    first = write(tmp_path / "a.csv", "a,1,2\nb,3,4\n")
    last = write(tmp_path / "b.csv", "1,2,a\r\n3,4,b")
    blank = write(tmp_path / "c.txt", "a   1 2\nb 3   4\n")
    for path, column in ((first, "0"), (last, "2"), (blank, "0")):
        features = formats.read_features(path, id_column=column)
        assert features.ids == ("a", "b")
        assert np.array_equal(features.x, [[1, 2], [3, 4]])


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv", "x.txt"])
def test_a26_compressed_text_is_known_by_its_first_bytes(tmp_path, name):
    path = write(tmp_path / name, gzip.compress(CSV.encode()))
    assert np.array_equal(formats.read_features(path).x, X)
    plain = write(tmp_path / "plain.csv.gz", CSV)
    assert np.array_equal(formats.read_features(plain).x, X)


@pytest.mark.parametrize(
    ("name", "text", "delimiter"),
    [
        ("x.csv", "1;2\n3;4\n", ";"),
        ("x.csv", "1\t2\n3\t4\n", "\\t"),
        ("x.csv", "1 2\n3  4\n", " "),
        ("x.txt", "1,2\n3,4\n", None),
        ("x.txt", "1;2\n3;4\n", None),
        ("x.txt", "1\t2\n3 4\n", None),
        ("x.tsv", "1\t2\n3\t4\n", None),
    ],
)
def test_a20_delimiters_are_told_or_found(tmp_path, name, text, delimiter):
    path = write(tmp_path / name, text)
    if text == "1\t2\n3 4\n":
        with pytest.raises(InputError, match="line 2"):
            formats.read_features(path)
        return
    x = formats.read_features(path, delimiter=delimiter).x
    assert np.array_equal(x, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "options",
    [
        {"chunks": (3, 2), "compression": "gzip"},
        {"chunks": (1, 7), "shuffle": True},
        {"chunks": (64, 7), "fletcher32": True},
    ],
)
def test_a31_chunked_datasets_equal_contiguous_ones(tmp_path, monkeypatch, options):
    monkeypatch.setattr("nnkgraph.runtime.arrays._MOST_BLOCK", 1000)
    x = np.random.default_rng(0).normal(size=(101, 7))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["plain"] = x
        file.create_dataset("odd", data=x, **options)
    for item in ("plain", "odd"):
        assert np.array_equal(formats.read_features(f"{tmp_path}/x.h5::{item}").x, x)


def test_hdf5_links_inside_the_file_are_followed(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/b/x"] = X
        file["soft"] = h5py.SoftLink("/a/b")
        file["a/rel"] = h5py.SoftLink("b/x")
    for item in ("soft/x", "a/rel"):
        assert np.array_equal(formats.read_features(f"{tmp_path}/x.h5::{item}").x, X)


def test_hdf5_with_a_user_block_is_read(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", userblock_size=512) as file:
        file["x"] = X
    assert np.array_equal(formats.read_features(tmp_path / "x.h5").x, X)


@pytest.mark.parametrize("kind", ["npy", "csv", "npz", "h5"])
def test_a34_formats_are_read_from_a_pipe(tmp_path, monkeypatch, kind):
    path = tmp_path / f"x.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "csv":
        write(path, CSV)
    elif kind == "npz":
        np.savez(path, X)
    else:
        with h5py.File(path, "w") as file:
            file["x"] = X
    stream, sender = stdin(monkeypatch, path.read_bytes())
    with stream:
        assert np.array_equal(formats.read_features("-", format=kind).x, X)
    sender.join()


def test_a34_a_named_pipe_is_read_like_standard_input(tmp_path):
    np.save(tmp_path / "x.npy", X)
    fifo = tmp_path / "fifo.npy"
    os.mkfifo(fifo)
    data = (tmp_path / "x.npy").read_bytes()
    sender = threading.Thread(target=lambda: fifo.write_bytes(data))
    sender.start()
    assert np.array_equal(formats.read_features(fifo).x, X)
    sender.join()


@pytest.mark.parametrize("name", ["-dash.npy", "ü ö.npy", "a\nb.npy", "A.NPY"])
def test_a36_odd_paths_work(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with open(name, "wb") as file:  # noqa: PTH123
        np.save(file, X)
    assert np.array_equal(formats.read_features(name).x, X)


def test_a_format_can_be_named_where_the_suffix_says_nothing(tmp_path):
    path = write(tmp_path / "table", CSV)
    assert np.array_equal(formats.read_features(path, format="csv").x, X)
    with pytest.raises(ParameterError, match=r"ends in none of .*\.npy"):
        formats.read_features(path)
    with pytest.raises(ParameterError, match=r"unknown format 'xls'; choose from"):
        formats.read_features(path, format="xls")
    with pytest.raises(ParameterError, match="`format`"):
        formats.check_output("-")


def test_items_and_text_options_are_refused_where_they_mean_nothing(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ParameterError, match="single array"):
        formats.read_features(f"{tmp_path}/x.npy::x")
    with pytest.raises(ParameterError, match="text tables only"):
        formats.read_features(f"{tmp_path}/x.npy", delimiter=";")


@pytest.mark.parametrize("suffix", ["npz", "h5", "hdf5"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_candidates_survive_writing_and_reading(tmp_path, suffix, dtype):
    from nnkgraph.data import Candidates

    index = np.array([[1, 2], [0, -1], [1, 0]], dtype)
    distance = np.array([[0.1, 5e-324], [1.0, np.inf], [0.2, 1e300]])
    path = tmp_path / f"knn.{suffix}"
    contents = set()
    for _ in range(2):
        formats.write_candidates(path, Candidates(index, distance), provenance={"k": 2})
        contents.add(path.read_bytes())
    assert len(contents) == 1
    neighbors, distances = formats.read_candidates(path)
    assert neighbors.dtype == dtype
    assert np.array_equal(neighbors, index)
    assert np.array_equal(distances, distance)
    bare, nothing = formats.read_candidates(f"{path}::neighbors")
    assert np.array_equal(bare, index)
    assert nothing is None
    if suffix == "h5":
        with h5py.File(path) as file:
            assert file.attrs["provenance"] == '{"k": 2}'


def test_candidates_may_be_a_bare_array_of_whole_numbers(tmp_path):
    path = tmp_path / "knn.npy"
    np.save(path, np.array([[1.0, 2.0], [0.0, -1.0]]))
    assert formats.read_candidates(path)[0].tolist() == [[1, 2], [0, -1]]
    for bad in (
        np.array([[0.5]]),
        np.array([1, 2]),
        np.array([[np.nan]]),
        np.array([["a"]]),
    ):
        np.save(path, bad)
        with pytest.raises(InputError, match=r"neighbors|dtype"):
            formats.read_candidates(path)
    np.savez(
        tmp_path / "knn.npz", neighbors=np.zeros((2, 2), int), distances=np.ones(3)
    )
    with pytest.raises(InputError, match="distances have shape"):
        formats.read_candidates(tmp_path / "knn.npz")
    np.savez(tmp_path / "knn.npz", other=np.zeros((2, 2), int))
    with pytest.raises(InputError, match="no array 'neighbors'"):
        formats.read_candidates(tmp_path / "knn.npz")


@pytest.mark.parametrize(
    ("name", "text", "drop"),
    [
        ("x.csv", "u,a,v,b\nx,1,p,2\ny,3,q,4\n", ["u,v"]),
        ("x.csv", "u,a,v,b\nx,1,p,2\ny,3,q,4\n", ["u", "2"]),
        ("x.csv", "x,1,p,2\ny,3,q,4\n", ["0, 2"]),
        ("x.csv", '"u,v",a,b\n"x,y",1,2\n"",3,4\n', ["u,v"]),
        ("x.txt", "a  u b\n1 x  2\n3  y 4\n", ["u"]),
        ("x.csv", "2024,a,b\n9,1,2\n9,3,4\n", ["2024"]),
        ("x.csv", "id,a,b\nx,1,2\nx,3,4\n", ["id"]),
    ],
)
def test_columns_are_left_out(tmp_path, name, text, drop):
    found = formats.read_features(write(tmp_path / name, text), drop=drop)
    assert np.array_equal(found.x, [[1, 2], [3, 4]])
    assert found.ids is None
    assert found.columns == (None if text[0] == "x" else ("a", "b"))


def test_columns_are_left_out_beside_the_ids(tmp_path):
    path = write(tmp_path / "x.csv", 'a,u,n,b\n1,"x,",p,2\n3,y,"q,r",4\n')
    found = formats.read_features(path, drop=["u"], id_column="n")
    assert found.ids == ("p", "q,r")
    assert np.array_equal(found.x, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("spend,b\n1,2\n", {"drop": ["spned"]}, "'spned' to drop .*mean 'spend'"),
        ("1,2\n3,4\n", {"drop": ["7"]}, "no single column '7' to drop"),
        ("a,a,b\n1,2,3\n", {"drop": ["a"]}, "no single column 'a' to drop"),
        ("a,b\n1,2\n", {"drop": ["a,b"]}, "every column is dropped"),
        ("n,a,b\nx,1,2\n", {"drop": ["n"], "id_column": "n"}, "leave out `id_column`"),
        ("id,a\nx,1\nx,2\n", {}, "'x' stands .* more than once.*`drop='id'`"),
        ("n,a,b\nx,1,2\ny,3\n", {"drop": ["b"]}, "line 3 has 2 field.* where 3 are"),
        ("n,a,b\nx,1,2\ny,nan,3\n", {"drop": ["n"]}, "line 3, column 2 is NaN"),
        ("n,a,b\nx,1,2\ny,o,3\n", {"drop": ["n"]}, "line 3, column 2 is not a number"),
    ],
)
def test_columns_that_cannot_be_left_out_are_refused(tmp_path, text, options, match):
    with pytest.raises((InputError, ParameterError), match=match):
        formats.read_features(write(tmp_path / "x.csv", text), **options)


def test_a_column_called_id_names_rows_only_where_it_can_be_no_feature(tmp_path):
    said = []
    path = write(tmp_path / "x.csv", "id,a\np,1\nq,2\n")
    assert formats.read_features(path, note=said.append).ids == ("p", "q")
    assert said[-1] == f"{path}: the column 'id' names the rows"
    path = write(tmp_path / "y.csv", "a,cust_id\n1,17\n2,4\n")
    found = formats.read_features(path, note=said.append)
    assert (found.ids, found.x.shape) == (None, (2, 2))
    assert "`id_column='cust_id'`, or leave it out with `drop='cust_id'`" in said[-1]
    path = write(tmp_path / "z.csv", "id,e1,e2\n17,1,2\n4,3,4\n")
    assert formats.read_features(path).x.shape == (2, 3)
    assert formats.read_features(path, for_nodes=True).ids == ("17", "4")


def test_a_file_beside_others_may_lack_the_columns_that_they_have(tmp_path):
    options = {"id_column": "who", "drop": ["note"], "dropped_before": True}
    cases = {
        "id,a\np,1\nq,2\n": (("p", "q"), 0),
        "id,a\n17,1\n4,2\n": (("17", "4"), 0),
        "who,a\np,1\nq,2\n": (("p", "q"), 1),
        "1\n2\n": (None, 0),
        "who,a,note\np,1,x\nq,2,y\n": (("p", "q"), 1),
    }
    for text, (ids, found) in cases.items():
        absent = iter([None])
        path = write(tmp_path / "x.csv", text)
        read = formats.read_features(path, absent=absent.__next__, **options)
        assert (read.ids, read.x.tolist()) == (ids, [[1.0], [2.0]])
        assert len(list(absent)) == found


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_npy_is_read(tmp_path, version):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=version)
    assert np.array_equal(formats.read_features(tmp_path / "x.npy").x, X)
    with (tmp_path / "x.npz").open("wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("x.npy", (tmp_path / "x.npy").read_bytes())
    assert np.array_equal(formats.read_features(tmp_path / "x.npz").x, X)
    fields = np.zeros(3, [("été", "f8")])
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, fields, version=max(version, (2, 0)))
    with pytest.raises(InputError, match="no real number"):
        formats.read_features(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x04\x00" + bytes(200))
    with pytest.raises(InputError, match=r"npy"):
        formats.read_features(tmp_path / "x.npy")
