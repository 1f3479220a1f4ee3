"""Data frames in HDF5 files, as pandas writes them."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pytest

from nnkgraph import formats
from nnkgraph.errors import InputError

N = 6
X = np.random.default_rng(2).normal(size=(N, 3))
NAMES = ["w 1", "é", "x", "y", "z", "ä"]
KINDS = {"integer": [30, 10, 20, 60, 50, 40], "string": NAMES}


def said(text):
    return np.bytes_(text.encode())


def put_axis(group, name, values):
    text = isinstance(values[0], str)
    group[name] = np.array([one.encode() for one in values] if text else values)
    group[name].attrs["kind"] = said("string" if text else "integer")


def put_frame(file, path, index, blocks):
    """Write a frame as format="fixed" does, without PyTables."""
    group = file.create_group(path)
    group.attrs["pandas_type"] = said("frame")
    put_axis(group, "axis0", sorted(name for names, _ in blocks for name in names))
    put_axis(group, "axis1", index)
    for at, (names, values) in enumerate(blocks):
        put_axis(group, f"block{at}_items", names)
        group[f"block{at}_values"] = values
    return group


def put_table(file, index, dtype="float64", **fields):
    """Write a frame as format="table" does."""
    index = np.array([one.encode() for one in index])
    columns = {"index": index, **fields}
    kinds = [(key, one.dtype, one.shape[1:]) for key, one in columns.items()]
    rows = np.empty(len(index), kinds)
    for key, one in columns.items():
        rows[key] = one
    group = file.create_group("df")
    group.attrs["pandas_type"] = said("frame_table")
    group["table"] = rows
    group["table"].attrs["index_kind"] = said("string")
    group["table"].attrs["values_block_0_dtype"] = said(dtype)
    group.create_group("_i_table/index")["bounds"] = np.zeros((4, 127))


@pytest.mark.parametrize("index", KINDS.values(), ids=KINDS)
def test_a_frame_has_names_of_rows_and_columns(tmp_path, index):
    path, remarks = tmp_path / "x.h5", []
    with h5py.File(path, "w") as file:
        put_frame(file, "deep/df", index, [(["a", "b", "c"], X)])
    for spec in (path, f"{path}::deep/df"):
        found = formats.read_features(spec, note=remarks.append)
        assert np.array_equal(found.x, X)
        assert found.columns == ("a", "b", "c")
        assert found.ids == tuple(map(str, index))
    assert remarks[0] == f"{path}: the index of pandas names the rows"
    plain = formats.read_features(f"{path}::deep/df/block0_values")
    assert (plain.ids, plain.columns) == (None, None)
    np.save(tmp_path / "n.npy", np.array(list("fedcba")))
    named = formats.read_features(path, ids=tmp_path / "n.npy", note=remarks.append)
    assert named.ids == tuple("fedcba")
    assert len(remarks) == 2


@pytest.mark.parametrize(
    ("index", "remark"),
    [(list(range(N)), ""), (["a"] * N, "has values that repeat: it names no rows")],
)
def test_an_index_that_counts_or_repeats_names_no_rows(tmp_path, index, remark):
    path, remarks = tmp_path / "x.h5", []
    with h5py.File(path, "w") as file:
        put_frame(file, "df", index, [(["a", "b", "c"], X)])
    assert formats.read_features(path, note=remarks.append).ids is None
    assert [one.rpartition(" pandas ")[2] for one in remarks] == [remark][: len(remark)]


def test_blocks_are_put_together_in_the_order_of_the_columns(tmp_path):
    path, whole = tmp_path / "x.h5", np.arange(N).reshape(N, 1) * 7
    with h5py.File(path, "w") as file:
        put_frame(
            file, "df", NAMES, [(["b"], whole), (["d", "a", "c"], X[:, [2, 0, 1]])]
        )
    found = formats.read_features(path)
    assert found.columns == ("a", "b", "c", "d")
    assert np.array_equal(found.x, np.insert(X, 1, whole.ravel(), axis=1))


def test_a_table_of_one_kind_is_read(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        put_table(file, NAMES, values_block_0=X)
    found = formats.read_features(tmp_path / "x.h5")
    assert np.array_equal(found.x, X)
    assert found.ids == tuple(NAMES)


@pytest.mark.parametrize(
    ("dtype", "fields"),
    [
        ("float64", {"values_block_0": X, "values_block_1": X[:, :1].astype("f4")}),
        ("float64", {"values_block_0": X, "k": np.arange(N)}),
        ("datetime64", {"values_block_0": np.arange(N).reshape(N, 1)}),
        ("string40", {"values_block_0": np.array([[b"a"]] * N)}),
    ],
)
def test_i09_other_tables_are_refused_with_advice(tmp_path, run, dtype, fields):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        put_table(file, NAMES, dtype, **fields)
    result = run("build", path, "-o", tmp_path / "g.npz")
    assert (result.code, len(result.lines)) == (3, 1)
    assert 'read_hdf(...).to_parquet(...), or to_hdf(format="fixed")' in result.err
    assert "_i_table" not in result.err


def test_frames_with_damage_or_without_numbers_are_refused(tmp_path):
    path = tmp_path / "x.h5"

    def refused(change, match):
        with h5py.File(path, "w") as file:
            blocks = [(["b"], np.arange(N).reshape(N, 1)), (["a", "c"], X[:, :2])]
            change(put_frame(file, "df", NAMES, blocks))
        with pytest.raises(InputError, match=match) as caught:
            formats.read_features(path)
        assert "\n" not in str(caught.value)

    def dates(group):
        group["block0_values"].attrs["value_type"] = said("datetime64")

    def replaced(name, values):
        def change(group):
            del group[name]
            if values is not None:
                group[name] = values

        return change

    refused(dates, r'the columns b hold no numbers: .*select_dtypes\("number"\)')
    refused(replaced("block0_values", np.array([b"a"] * N)), "b hold no numbers")
    refused(replaced("block0_values", np.ones((N, 2))), "b hold no numbers")
    refused(replaced("block0_values", np.ones((N - 1, 1))), "differ in rows")
    refused(replaced("block0_items", np.array([b"a"])), "cannot be read")
    refused(replaced("block0_items", np.ones((1, 1))), "cannot be read")
    refused(replaced("block1_values", None), "cannot be read: write it anew")
    refused(replaced("axis0", None), "no dataset '/df/axis0'")


def test_several_frames_are_named_and_no_part_of_one(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        put_frame(file, "p/q", NAMES, [(["a", "b", "c"], X)])
        put_frame(file, "r", NAMES, [(["a", "b", "c"], -X)])
    with pytest.raises(InputError, match=r"data frames; name one as FILE::p/q: p/q, r"):
        formats.read_features(path)
    assert np.array_equal(formats.read_features(f"{path}::r").x, -X)


# What pandas itself writes


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
MIXED = FRAME.assign(k=np.arange(N), s=X[:, 0].astype("f4"), t=X[:, 1] > 0)


@pytest.mark.parametrize("form", ["fixed", "table"])
def test_what_pandas_writes_is_read(tmp_path, form):
    pytest.importorskip("tables")
    for name, index in {"count": range(N), **KINDS}.items():
        path = tmp_path / f"{name}.h5"
        FRAME.set_axis(index).to_hdf(path, key="df", format=form)
        found = formats.read_features(path)
        assert np.array_equal(found.x, X)
        wanted = None if name == "count" else tuple(map(str, index))
        assert found.ids == wanted
    MIXED[["k", "c", "s", "a", "t"]].to_hdf(path := tmp_path / "m.h5", key="df")
    found = formats.read_features(path)
    assert found.columns == ("k", "c", "s", "a", "t")
    assert np.array_equal(found.x, MIXED[list(found.columns)].to_numpy(float))
    MIXED.to_hdf(tmp_path / "t.h5", key="df", format="table")
    with pytest.raises(InputError, match="to_hdf"):
        formats.read_features(tmp_path / "t.h5")
    FRAME["a"].to_hdf(tmp_path / "s.h5", key="s")
    assert np.array_equal(formats.read_values(tmp_path / "s.h5").x[:, 0], X[:, 0])
