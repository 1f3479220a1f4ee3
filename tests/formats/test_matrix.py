"""Files as other programs write them: each is read, or refused with what to do.

``python tests/formats/test_matrix.py`` prints the table of all of them. X is the same
everywhere, so that a file that is read the wrong way round is seen.
"""

from __future__ import annotations

import gzip
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from scipy.io import mmwrite, savemat
from scipy.sparse import coo_array, csc_array, csr_array, save_npz

from nnkgraph import formats
from nnkgraph.errors import NnkGraphError

N, D = 12, 3
X = np.round(np.random.default_rng(5).normal(2.0, 1.0, size=(N, D)), 4)
NAMES = [f"cell {chr(97 + i)}" for i in range(N)]
COLUMNS = ["width", "height", "depth"]
FRAME = pd.DataFrame(X, columns=COLUMNS, index=pd.Index(NAMES, name="id"))
COUNTS = np.random.default_rng(6).poisson(0.8, size=(N, 9)) + np.eye(N, 9, dtype=int)
CASES = {}
"""What writes a file, by what the table says about it; and what is to come of it."""


def case(title, expected="read", *, options=None, names=None, values=X):
    """Note a case: a function that writes files, and returns which is to be read."""

    def add(write):
        CASES[title] = (write, expected, options or {}, names, values)
        return write

    return add


def text(title, content, expected="read", *, suffix=".csv", **more):
    """Note a case of a text file."""

    @case(title, expected, **more)
    def _(folder):
        made = content() if callable(content) else content
        path = folder / f"x{suffix}"
        path.write_bytes(made if isinstance(made, bytes) else made.encode())
        return path


def lines(sep=",", head=None, ids=None, number="{:.4f}", quote="", end="\n"):
    """Return the text of a table."""
    rows = [] if head is None else [sep.join(head)]
    for i, row in enumerate(X):
        cells = [number.format(value) for value in row]
        if ids is not None:
            cells.insert(0, f"{quote}{ids[i]}{quote}")
        rows.append(sep.join(cells))
    return end.join(rows) + end


# pandas and polars
text("pandas to_csv", FRAME.to_csv, names=NAMES)
text("pandas to_csv(index=False)", lambda: FRAME.to_csv(index=False))
text(
    "pandas to_csv, plain index",
    lambda: FRAME.reset_index(drop=True).to_csv(),
    "read: counts",
    values=np.column_stack([np.arange(N), X]),
)
text(
    "pandas to_csv, plain index left out",
    lambda: FRAME.reset_index(drop=True).to_csv(),
    options={"drop": ("0",)},
)
text(
    "pandas to_csv(sep=';', decimal=',')",
    lambda: FRAME.to_csv(sep=";", decimal=","),
    options={"decimal": ","},
    names=NAMES,
)
text(
    "pandas to_csv(sep=tab)", lambda: FRAME.to_csv(sep="\t"), suffix=".tsv", names=NAMES
)
text("pandas to_csv(sep=tab) called .csv", lambda: FRAME.to_csv(sep="\t"), names=NAMES)
text("pandas to_csv, gaps", lambda: FRAME.mask(FRAME > 3.4).to_csv(), "missing")
text(
    "pandas to_csv, gaps dropped",
    lambda: FRAME.assign(width=[np.nan, *X[1:, 0]]).to_csv(),
    options={"missing": "drop-rows"},
    names=NAMES[1:],
    values=X[1:],
)
text("pandas to_csv, text column", lambda: FRAME.assign(kind="a").to_csv(), "kind")
text("polars write_csv", lambda: pl.DataFrame(X, schema=COLUMNS).write_csv())
text(
    "polars write_csv(separator=';')",
    lambda: pl.DataFrame(X, schema=COLUMNS).write_csv(separator=";"),
)
text(
    "csv in gzip",
    lambda: gzip.compress(FRAME.to_csv().encode()),
    suffix=".csv.gz",
    names=NAMES,
)


@case("pandas to_parquet", names=NAMES)
def _(folder):
    FRAME.to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


@case("pandas to_parquet(index=False)")
def _(folder):
    FRAME.to_parquet(folder / "x.parquet", index=False)
    return folder / "x.parquet"


@case("polars write_parquet")
def _(folder):
    pl.DataFrame(X, schema=COLUMNS).write_parquet(folder / "x.parquet")
    return folder / "x.parquet"


@case("polars write_parquet, an Array column")
def _(folder):
    rows = pl.Series("embedding", X, dtype=pl.Array(pl.Float64, D))
    pl.DataFrame([rows]).write_parquet(folder / "x.parquet")
    return folder / "x.parquet"


@case("Parquet, lists of one length")
def _(folder):
    table = pa.table({"embedding": pa.array(X.tolist())})
    pa.parquet.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


@case("Parquet, lists of different lengths", "are expected")
def _(folder):
    table = pa.table({"embedding": pa.array([*X.tolist()[1:], [1.0]])})
    pa.parquet.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


@case("Parquet, decimals", values=np.round(X, 2))
def _(folder):
    columns = {
        name: pa.array(np.round(X[:, j], 2)).cast(pa.decimal128(8, 2))
        for j, name in enumerate(COLUMNS)
    }
    pa.parquet.write_table(pa.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


@case("Parquet, a column of nulls", "null")
def _(folder):
    columns = {"a": X[:, 0], "b": X[:, 1], "none": pa.nulls(N)}
    pa.parquet.write_table(pa.table(columns), folder / "x.parquet")
    return folder / "x.parquet"


@case("Feather", "arquet")
def _(folder):
    pa.feather.write_feather(FRAME.reset_index(), folder / "x.feather")
    return folder / "x.feather"


@case("pandas to_pickle", "pickles are never read")
def _(folder):
    FRAME.to_pickle(folder / "x.pkl")
    return folder / "x.pkl"


# R, Excel and others, as they write text
text(
    "R write.table",
    lambda: (
        '"width" "height" "depth"\n'
        + "".join(
            f'"r{i}" {" ".join(map(repr, map(float, r)))}\n' for i, r in enumerate(X)
        )
    ),
    suffix=".txt",
    names=[f"r{i}" for i in range(N)],
)
text(
    "R write.csv",
    lambda: '"","width","height","depth"\n' + lines(ids=NAMES, quote='"'),
    names=NAMES,
)
text(
    "R write.csv2",
    lambda: (
        '"";"width";"height";"depth"\n'
        + lines(";", ids=NAMES, quote='"').replace(".", ",")
    ),
    options={"decimal": ","},
    names=NAMES,
)
text(
    "R write.csv, numbers of rows",
    lambda: '"","a","b","c"\n' + lines(ids=[str(i + 1) for i in range(N)], quote='"'),
    names=[str(i + 1) for i in range(N)],
)
text("Excel, sep=; in line 1", lambda: "sep=;\r\n" + lines(";", COLUMNS, end="\r\n"))
text("Excel, a byte order mark", lambda: b"\xef\xbb\xbf" + lines(",", COLUMNS).encode())
text(
    "Excel, decimal commas not asked for",
    lambda: lines(";", COLUMNS).replace(".", ","),
    "decimal",
)
text(
    "Excel, empty columns at the end",
    lambda: lines(",", COLUMNS).replace("\n", ",,\n"),
    "empty|drop",
)
text(
    "Excel, empty rows at the end",
    lambda: lines(",", COLUMNS) + ",,\n,,\n",
    "empty|missing",
)
text("UTF-16", lambda: lines(",", COLUMNS).encode("utf-16"), "UTF-16|UTF-8|NUL")


@case("an .xlsx called .csv", "spreadsheet")
def _(folder):
    with zipfile.ZipFile(folder / "x.csv", "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return folder / "x.csv"


text("numpy savetxt", lambda: lines(" "), suffix=".txt")
text("numpy savetxt, with '#' header", lambda: "# a b c\n" + lines(" "), suffix=".txt")
text("MATLAB writematrix", lambda: lines(","))
text("MATLAB writetable", lambda: lines(",", COLUMNS))
text("one row short", lambda: lines(",", COLUMNS) + "1,2\n", "line 14")
text("fixed widths", lambda: lines("  ", number="{:8.4f}"), suffix=".txt")


# numpy and scipy
@case("npy")
def _(folder):
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


@case("npy, Fortran order, float32", values=X.astype(np.float32))
def _(folder):
    np.save(folder / "x.npy", np.asfortranarray(X.astype(np.float32)))
    return folder / "x.npy"


@case("npy, version 3")
def _(folder):
    with (folder / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=(3, 0))
    return folder / "x.npy"


@case("npy of objects", "object|pickle")
def _(folder):
    np.save(folder / "x.npy", X.astype(object), allow_pickle=True)
    return folder / "x.npy"


@case("npz with ids", names=NAMES)
def _(folder):
    np.savez(folder / "x.npz", X=X, ids=np.array(NAMES))
    return folder / "x.npz"


@case("npz, compressed, with labels")
def _(folder):
    np.savez_compressed(folder / "x.npz", X=X, y=np.arange(N))
    return folder / "x.npz"


@case("npz, two matrices", "FILE::a")
def _(folder):
    np.savez(folder / "x.npz", a=X, b=X)
    return folder / "x.npz"


@case("scipy save_npz", values=COUNTS)
def _(folder):
    save_npz(folder / "x.npz", csr_array(COUNTS))
    return folder / "x.npz"


@case("scipy mmwrite, sparse", values=COUNTS)
def _(folder):
    mmwrite(folder / "x.mtx", coo_array(COUNTS))
    return folder / "x.mtx"


@case("scipy mmwrite, dense")
def _(folder):
    mmwrite(folder / "x.mtx", X)
    return folder / "x.mtx"


@case("scipy mmwrite in gzip", values=COUNTS)
def _(folder):
    mmwrite(folder / "x.mtx", coo_array(COUNTS))
    (folder / "x.mtx.gz").write_bytes(gzip.compress((folder / "x.mtx").read_bytes()))
    return folder / "x.mtx.gz"


# MATLAB and Octave
@case("MATLAB 4")
def _(folder):
    savemat(folder / "x.mat", {"X": X}, format="4")
    return folder / "x.mat"


@case("MATLAB 5, with other variables")
def _(folder):
    savemat(folder / "x.mat", {"X": X, "note": "text", "y": np.arange(N)})
    return folder / "x.mat"


@case("MATLAB 5, a struct")
def _(folder):
    savemat(folder / "x.mat", {"data": {"X": X, "y": np.arange(float(N))}})
    return f"{folder / 'x.mat'}::data.X"


@case("MATLAB 5, sparse", values=COUNTS)
def _(folder):
    savemat(folder / "x.mat", {"X": csc_array(COUNTS.astype(float))})
    return folder / "x.mat"


def mat73(path, *, struct=False):
    with h5py.File(path, "w", userblock_size=512) as file:
        place = file.create_group("data") if struct else file
        place["X"] = X.T
        place["X"].attrs["MATLAB_class"] = np.bytes_("double")
        if struct:
            place.attrs["MATLAB_class"] = np.bytes_("struct")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return path


@case("MATLAB 7.3")
def _(folder):
    return mat73(folder / "x.mat")


@case("MATLAB 7.3, a struct")
def _(folder):
    return f"{mat73(folder / 'x.mat', struct=True)}::data.X"


@case("Octave save -hdf5")
def _(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file.attrs["OCTAVE"] = 1
        one = file.create_group("X")
        one.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
        one["type"] = np.bytes_("matrix")
        one["value"] = X.T
    return folder / "x.h5"


text(
    "Octave save -text",
    lambda: (
        "# Created by Octave 7.3.0\n# name: X\n# type: matrix\n"
        f"# rows: {N}\n# columns: {D}\n" + lines(" ")
    ),
    "Octave",
    suffix=".mat",
)


# HDF5
@case("h5py, one dataset")
def _(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file["features"] = X
    return folder / "x.h5"


@case("h5py, gzip and chunks")
def _(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("features", data=X, chunks=(5, 2), compression="gzip")
    return folder / "x.h5"


@case("h5py, with names", names=NAMES)
def _(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file["features"] = X
        file["names"] = [one.encode() for one in NAMES]
    return folder / "x.h5"


@case("h5py, an external link", "link")
def _(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = h5py.ExternalLink("/etc/passwd", "x")
    return f"{folder / 'x.h5'}::x"


@case("h5py, a structured dataset", "fields as one matrix")
def _(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = FRAME.to_records(index=False)
    return folder / "x.h5"


# Single cells
def adata(values, **more):
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame(index=NAMES)
    return anndata.AnnData(values, obs=obs, **more)


@case("anndata, dense X", names=NAMES)
def _(folder):
    adata(X).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


@case("anndata, sparse rows", names=NAMES, values=COUNTS)
def _(folder):
    adata(csr_array(COUNTS.astype(np.float32))).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


@case("anndata, sparse columns", names=NAMES, values=COUNTS)
def _(folder):
    adata(csc_array(COUNTS.astype(np.float32))).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


@case("anndata, a layer", names=NAMES, values=COUNTS)
def _(folder):
    more = {"layers": {"counts": csr_array(COUNTS.astype(np.float32))}}
    adata(np.zeros(COUNTS.shape) + 1, **more).write_h5ad(folder / "x.h5ad")
    return f"{folder / 'x.h5ad'}::layers/counts"


@case("anndata, X_pca", names=NAMES)
def _(folder):
    adata(COUNTS.astype(np.float32), obsm={"X_pca": X}).write_h5ad(folder / "x.h5ad")
    return folder / "x.h5ad"


@case("10x folder", names=NAMES, values=COUNTS)
def _(folder):
    mmwrite(folder / "matrix.mtx", coo_array(COUNTS.T))
    (folder / "barcodes.tsv").write_text("\n".join(NAMES) + "\n")
    genes = (f"G{j}\tgene{j}\tGene Expression\n" for j in range(COUNTS.shape[1]))
    (folder / "features.tsv").write_text("".join(genes))
    for name in "matrix.mtx", "barcodes.tsv", "features.tsv":
        path = folder / name
        (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    return folder


@case("10x .h5, version 3", names=NAMES, values=COUNTS)
def _(folder):
    turned = csc_array(COUNTS.T)
    count = COUNTS.shape[1]
    with h5py.File(folder / "x.h5", "w") as file:
        one = file.create_group("matrix")
        one["data"], one["indices"] = turned.data, turned.indices
        one["indptr"], one["shape"] = turned.indptr, np.array(turned.shape)
        one["barcodes"] = [name.encode() for name in NAMES]
        genes = one.create_group("features")
        for key in "id", "name":
            genes[key] = [f"{key}{j}".encode() for j in range(count)]
        genes["feature_type"] = [b"Gene Expression"] * count
        genes["genome"] = [b"GRCh38"] * count
    return folder / "x.h5"


def outcome(title, folder):
    """Write a file, read it, and return what came of it, in a line."""
    write, _, options, _, _ = CASES[title]
    spec, notes = write(folder), []
    options = {**options, "sparse": "rows"}
    try:
        features = formats.read_features(spec, note=notes.append, **options)
    except NnkGraphError as error:
        return None, str(error).replace(f"{folder}/", "")
    said = [*notes, *features.warnings]
    return features, "; ".join(one.replace(f"{folder}/", "") for one in said)


@pytest.mark.parametrize("title", CASES)
def test_a_file_of_another_program_is_read_or_refused_with_advice(title, tmp_path):
    _, expected, _, names, values = CASES[title]
    features, said = outcome(title, tmp_path)
    if not expected.startswith("read"):
        assert features is None
        assert any(one in said for one in expected.split("|")), said
        return
    assert features is not None, said
    assert expected.partition(": ")[2] in said
    x = features.x.matrix().toarray() if hasattr(features.x, "matrix") else features.x
    np.testing.assert_array_equal(np.asarray(x, np.float64), values)
    assert features.ids == (None if names is None else tuple(names))


def table():
    """Print a line for each case."""
    print("| file | outcome |\n|---|---|")
    for title in CASES:
        with tempfile.TemporaryDirectory() as folder:
            features, said = outcome(title, Path(folder))
        read = "refused: " if features is None else "read" + ("; " if said else "")
        shown = f"{read}{said}".replace("|", "\\|")
        print(f"| {title} | {shown} |")


if __name__ == "__main__":
    table()
