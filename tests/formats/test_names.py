"""Names of rows: from another file, or from an array beside the matrix."""

from __future__ import annotations

import csv
import json

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp

from nnkgraph import formats
from nnkgraph.errors import InputError, ParameterError

N = 12
X = np.random.default_rng(3).normal(size=(N, 3))
NAMES = [f"row {i}, é" for i in range(N)]
NUMBERS = [str(7 * i + 1) for i in range(N)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A matrix without names, and the same names in files of all kinds."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    np.save("q.npy", X[:2] + 0.1)
    text = "\n".join(NAMES)
    (tmp_path / "n.txt").write_text(f"{text}\n\n")
    (tmp_path / "crlf.txt").write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    with (tmp_path / "t.csv").open("w", newline="") as file:
        rows = zip(NAMES, NUMBERS, strict=True)
        csv.writer(file).writerows([("who", "n"), *rows])
    np.save("n.npy", np.array(NAMES))
    np.save("s.npy", np.array([one.encode() for one in NAMES]))
    np.save("w.npy", np.array(NUMBERS, np.int32))
    np.savez("n.npz", who=np.array(NAMES), x=X)
    with h5py.File("n.h5", "w") as file:
        file["deep/who"], file["n"] = NAMES, np.array(NUMBERS, "u8")
    columns = {"who": NAMES, "n": np.array(NUMBERS, int), "y": X[:, 0]}
    pq.write_table(pa.table(columns), "n.parquet")
    numbers = np.array(NUMBERS, float)
    scipy.io.savemat("n.mat", {"who": np.array(NAMES, object), "n": numbers})
    return tmp_path


@pytest.mark.parametrize(
    "spec",
    [
        *("n.txt", "crlf.txt", "t.csv::who", "n.npy", "s.npy", "n.npz::who"),
        *("n.h5::deep/who", "n.parquet::who", "n.mat::who"),
    ],
)
def test_a_file_names_the_rows(folder, spec):
    features = formats.read_features("x.npy", ids=spec)
    assert features.ids == tuple(NAMES)
    assert np.array_equal(features.x, X)


@pytest.mark.parametrize(
    "spec", ["t.csv::n", "w.npy", "n.h5::n", "n.parquet::n", "n.mat::n"]
)
def test_whole_numbers_name_the_rows(folder, spec):
    assert formats.read_features("x.npy", ids=spec).ids == tuple(NUMBERS)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_floats_name_the_rows_where_all_are_whole(folder, kind):
    np.save("f.npy", np.arange(N, 0, -1, dtype=kind))
    found = formats.read_features("x.npy", ids="f.npy").ids
    assert found == tuple(map(str, range(N, 0, -1)))
    for odd in (0.5, np.nan, np.inf, np.finfo(kind).max):
        np.save("f.npy", np.array([*range(N - 1), odd], kind))
        if odd == np.finfo(np.float16).max == 65504:
            continue  # which is whole
        with pytest.raises(InputError, match="no list of names"):
            formats.read_features("x.npy", ids="f.npy")


def test_names_from_a_file_stand_above_those_inside(folder):
    np.savez("both.npz", x=X, ids=np.array(NUMBERS), names=np.array(NUMBERS))
    said = []
    found = formats.read_features("both.npz", ids="n.txt", note=said.append)
    assert (found.ids, said) == (tuple(NAMES), [])
    (folder / "i.csv").write_text("id,a\n" + "".join(f"n{i},{i}\n" for i in range(N)))
    found = formats.read_features("i.csv", ids="n.txt")
    assert (found.ids, found.columns) == (tuple(NAMES), ("a",))


def test_parts_and_sparse_rows_are_named_together(folder):
    for at in range(3):
        np.save(f"part-{at}.npy", X[4 * at : 4 * at + 4])
    found = formats.read_features("part-*.npy", ids="n.txt")
    assert found.ids == tuple(NAMES)
    assert np.array_equal(found.x, X)
    sp.save_npz("s.npz", sp.csr_array(np.maximum(X, 0)))
    for kind in ("", "rows"):
        plain = formats.read_features("s.npz", sparse=kind)
        found = formats.read_features("s.npz", ids="n.txt", sparse=kind)
        assert (found.ids, found.sha256) == (tuple(NAMES), plain.sha256)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("\n".join(NAMES[:-1]), r"11 names for the 12 rows of x.npy$"),
        ("who\n" + "\n".join(NAMES), "13 names .* is a header, name the column as"),
        ("a\nb\n\n" + "\n".join(NAMES[3:]), r"row 2 \(counted from 0\) has no name"),
        ("\n".join(["b", "a", "c", "a", *NAMES[4:]]), "row 3 .* 'a', as row 1 is"),
        ("", "0 names for the 12 rows"),
        (b"\xff\xfea\0", "UTF-16"),
    ],
)
def test_names_that_do_not_fit_are_refused(folder, run, text, match):
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "bad.txt").write_bytes(data)
    with pytest.raises(InputError, match=match):
        formats.read_features("x.npy", ids="bad.txt")
    result = run("build", "x.npy", "--ids", "bad.txt", "-o", "g.npz")
    assert (result.code, len(result.lines)) == (3, 1)
    assert result.err.startswith("nnkgraph: error: bad.txt: ")
    assert not (folder / "g.npz").exists()


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("x.npy", "no list of names or of whole numbers"),
        ("n.npz", "say which item holds the names: FILE::ITEM"),
        ("n.parquet", "say which item holds the names: FILE::ITEM"),
        ("n.npz::x", "no list"),
        ("n.npz::nope", "no array 'nope'"),
        ("n.parquet::y", "no list of names or of whole numbers"),
        ("t.csv", "say which column holds the names: FILE::NAME"),
        ("t.csv::nope", "no single column 'nope'"),
        ("nope.txt", "no such file"),
    ],
)
def test_files_without_a_list_of_names_are_refused(folder, spec, match):
    with pytest.raises(InputError, match=match):
        formats.read_features("x.npy", ids=spec)


def test_i14_columns_cannot_name_the_rows_of_arrays(folder, run):
    np.savez("x.npz", x=X)
    with h5py.File("x.h5", "w") as file:
        file["x"] = X
    scipy.io.savemat("x.mat", {"x": X})
    for name in ("x.npy", "x.npz", "x.h5", "x.mat"):
        result = run("build", name, "--id-column", "who", "-o", "g.npz")
        assert (result.code, len(result.lines)) == (2, 1)
        assert "--ids takes names of rows from a file" in result.err
    result = run("build", "t.csv", "--id-column", "who", "--ids", "n.txt", "-o-")
    assert (result.code, len(result.lines)) == (2, 1)
    assert "--ids and --id-column" in result.err
    with pytest.raises(ParameterError, match=r"`ids`, .* `id_column`, not both"):
        formats.read_features("t.csv", ids="n.txt", id_column="who")


# Arrays beside the matrix


def put(kind, folder, **arrays):
    """Write arrays to a file of a kind, the matrix ``x`` among them."""
    path = folder / f"f.{kind}"
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "h5":
        with h5py.File(path, "w") as file:
            for key, value in arrays.items():
                text = value.dtype.kind == "U"
                file[f"in/{key}"] = value.tolist() if text else value
    else:
        kinds = {
            one: object if arrays[one].dtype.kind == "U" else None for one in arrays
        }
        scipy.io.savemat(path, {k: np.asarray(v, kinds[k]) for k, v in arrays.items()})
    return path


KINDS = pytest.mark.parametrize("kind", ["npz", "h5", "mat"])


@KINDS
@pytest.mark.parametrize("key", ["ids", "id", "row_names", "obs_names", "names"])
def test_an_array_called_so_names_the_rows(tmp_path, kind, key):
    for names in (np.array(NAMES), np.array(NUMBERS, int)):
        path, said = put(kind, tmp_path, x=X, y=np.arange(N) % 3, **{key: names}), []
        found = formats.read_features(path, note=said.append)
        assert found.ids == tuple(map(str, names.tolist()))
        ours = key == "ids" and names.dtype.kind == "U"
        assert said == [] if ours else said == [f"{path}: {key!r} names the rows"]
        item = "in/y" if kind == "h5" else "y"
        assert tuple(formats.read_labels(f"{path}::{item}").ids) == found.ids


@KINDS
@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"index": np.arange(N)}, None),
        ({"id": np.arange(N) // 2}, "'id' has values that repeat or are empty"),
        ({"names": np.array(["", *NAMES[1:]])}, "'names' has values that repeat"),
        ({"id": np.array(NUMBERS, int), "names": np.array(NAMES)}, "'id' and 'names'"),
        ({"names": np.array(NAMES[:-1])}, None),
        ({"who": np.array(NAMES)}, None),
        ({"x": X @ X.T, "names": np.array(NAMES)}, "'names' could name .* columns"),
    ],
)
def test_arrays_that_may_be_something_else_are_left_alone(tmp_path, kind, arrays, said):
    path, remarks = put(kind, tmp_path, **{"x": X, **arrays}), []
    assert formats.read_features(path, note=remarks.append).ids is None
    if said is None:
        assert remarks == []
    else:
        (remark,) = remarks
        assert said.partition(" .*")[0] in remark
        assert "not used; `ids` says what names the rows" in remark


def test_names_far_from_the_matrix_are_not_used(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a/x"], file["names"] = X, NAMES
    assert formats.read_features(tmp_path / "x.h5").ids is None
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["a/names"] = h5py.ExternalLink("other.h5", "/names")
    assert formats.read_features(tmp_path / "x.h5").ids is None


# Commands


def test_every_command_that_reads_features_takes_names(folder, run):
    (folder / "y.csv").write_text("label\n" + "a\nb\n" * (N // 2))
    named = ("x.npy", "--ids", "n.txt", "-k", 4)
    for name in ("k.npz", "k.h5"):
        assert run("search", *named, "-o", name).code == 0
        assert formats.candidate_ids(name) == tuple(NAMES)
        search = f"precomputed:path={name}"
        result = run("build", *named, "--search", search, "-o", "g.npz")
        assert result.code == 0, result.err
        assert formats.read_graph("g.npz").ids == tuple(NAMES)
    (folder / "other.txt").write_text("\n".join(reversed(NAMES)))
    other = ("x.npy", "--ids", "other.txt")
    assert run("build", *other, "-k", 4, "--search", search, "-o", "h.npz").code == 3
    assert run("verify", "x.npy", "g.npz", "--ids", "n.txt").code == 0
    assert run("verify", "x.npy", "g.npz", "--ids", "other.txt").code == 6
    found = run("explain", *named, "--node", NAMES[5], "--json")
    assert json.loads(found.out)["candidates"][0]["id"] in NAMES
    assert run("audit", *named, "-o", "a.csv", "--duplicate", 1).code == 0
    with (folder / "a.csv").open(newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} <= {*NAMES}
    assert run("compare", *named).code == 0
    assert "--ids n.txt" in run("doctor", *named).out.replace("\\\n", "")
    labels = ("--labels", "y.csv::label")
    assert run("classify", "x.npy", *labels, *named[1:], "--cv", 3).code == 0


def test_queries_tests_and_new_rows_have_names_of_their_own(folder, run):
    (folder / "q.txt").write_text("one\ntwo\n")
    (folder / "y.csv").write_text("label\n" + "a\nb\n" * (N // 2))
    data = ("x.npy", "q.npy", "--ids", "n.txt", "-k", 4)
    assert run("query", *data, "--query-ids", "q.txt", "-o", "near.npz").code == 0
    found = formats.read_answers("near.npz")
    assert (tuple(found.query_ids), tuple(found.ids)) == (("one", "two"), tuple(NAMES))
    test = ("--test", "q.npy", "--test-ids", "q.txt", "-k", 4, "-o", "p.csv")
    assert run("classify", "x.npy", "--labels", "y.csv::label", *test).code == 0
    assert "\none," in (folder / "p.csv").read_text()
    assert run("build", *data[:1], *data[2:], "-o", "g.npz").code == 0
    added = ("--add", "q.npy", "--add-ids", "q.txt", "--ids", "n.txt")
    call = ("update", "g.npz", "--features", "x.npy", *added)
    assert run(*call, "-o", "h.npz", "--write-features", "all.h5").code == 0
    assert formats.read_graph("h.npz").ids == (*NAMES, "one", "two")
    assert formats.read_features("all.h5").ids == (*NAMES, "one", "two")


def test_coordinates_with_names_are_put_where_they_belong(folder, run):
    order = np.random.default_rng(0).permutation(N)
    np.save("moved.npy", X[order, :2])
    (folder / "moved.txt").write_text("\n".join(NAMES[at] for at in order))
    assert run("build", "x.npy", "--ids", "n.txt", "-k", 4, "-o", "g.npz").code == 0
    np.save("there.npy", X[:, :2])
    call = ("plot", "g.npz", "-o")
    assert run(*call, "a.svg", "--coords", "there.npy").code == 0
    words = ("--coords", "moved.npy", "--ids", "moved.txt")
    assert run(*call, "b.svg", *words).code == 0
    assert (folder / "a.svg").read_bytes() == (folder / "b.svg").read_bytes()


@pytest.mark.parametrize(
    "call",
    [
        "plot g.npz --ids n.txt -o a.svg",
        "report g.npz --ids n.txt -o a.html",
        "classify x.npy --labels y.csv --test-ids q.txt",
        "update g.npz --features x.npy --remove r.txt --add-ids q.txt -o h.npz",
        "update g.npz --features x --ids n.txt --add q -o h.npz --write-features x",
        "build - --format npy --ids - -o g.npz",
        "build x.npy --ids n.txt --format tsv -o n.txt",
    ],
)
def test_names_without_their_rows_are_refused(folder, run, call):
    before = (folder / "n.txt").read_bytes()
    result = run(*call.split())
    assert (result.code, len(result.lines)) == (2, 1), result.err
    assert (folder / "n.txt").read_bytes() == before
