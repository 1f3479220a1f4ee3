"""What the fuzzer found, each in as few bytes as it takes."""

import io
import json
import struct
import time
import warnings
import zipfile

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array

from fuzz.cells import anndata
from nnkgraph import formats
from nnkgraph.build.run import found_once
from nnkgraph.data import Candidates
from nnkgraph.errors import InputError
from nnkgraph.formats.parquet import count_values
from nnkgraph.runtime.checkpoint import Block, Checkpoint, open_checkpoint


def header(kind, shape):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def npz(**members):
    stream = io.BytesIO()
    np.savez(stream, **members)
    return stream.getvalue()


def refused(path, data, match, read):
    path.write_bytes(data)
    with pytest.raises(InputError, match=match):
        read(path)


def test_old_names_of_dtypes_are_read_without_a_warning(tmp_path):
    data = header("|a1", "(2,)") + b"ab"
    (tmp_path / "y.npy").write_bytes(data)
    assert formats.read_labels(tmp_path / "y.npy").classes == ("a", "b")


@pytest.mark.parametrize("read", [formats.read_labels, formats.read_values])
def test_numbers_that_are_no_characters_are_refused(tmp_path, read):
    bad = struct.pack("<2I", 0x110000, 0x41)
    data = header("<U2", "(1,)") + bad
    refused(tmp_path / "y.npy", data, "characters that do not exist", read)
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("y.npy", data)
    data = (tmp_path / "y.npz").read_bytes()
    refused(tmp_path / "y.npz", data, "characters that do not exist", read)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("|S0", "(1000000000000000,)"),
        ("<f8", "(0, 1000000000000000000000000000000)"),
        ("<f8", f"({'0, ' * 70})"),
    ],
)
def test_headers_that_claim_nothing_of_everything_are_refused(tmp_path, kind, shape):
    data = header(kind, shape)
    refused(tmp_path / "y.npy", data, "claims more", formats.read_labels)


def test_bytes_that_are_no_ascii_are_no_numbers(tmp_path):
    data = header("|S1", "(2,)") + b"1\xff"
    refused(tmp_path / "y.npy", data, "is no number", formats.read_values)


def test_whole_numbers_of_any_length_are_labels(tmp_path):
    (tmp_path / "y.txt").write_text(f"1\n{'9' * 5000}\n2\n")
    assert len(formats.read_labels(tmp_path / "y.txt").classes) == 3


@pytest.mark.parametrize("value", ["inf", "1e4900"])
def test_labels_beyond_all_numbers_are_refused_without_a_warning(tmp_path, value):
    stream = io.BytesIO()
    np.save(stream, np.array([np.longdouble(1), np.longdouble(value)]))
    data = stream.getvalue()
    refused(tmp_path / "y.npy", data, "whole numbers or text", formats.read_labels)


def test_long_doubles_beyond_float64_are_refused_without_a_warning(tmp_path):
    stream = io.BytesIO()
    np.save(stream, np.full((2, 2), np.longdouble("1e4900")))
    refused(tmp_path / "x.npy", stream.getvalue(), "infinity", formats.read_features)


def test_signaling_nan_is_no_label_without_a_warning(tmp_path):
    values = struct.pack("<2d", 1, 2) + bytes.fromhex("010000000000f07f")
    (tmp_path / "y.npy").write_bytes(header("<f8", "(3,)") + values)
    labels = formats.read_labels(tmp_path / "y.npy")
    assert labels.codes.tolist() == [0, 1, -1]


def test_many_digits_take_no_more_time_than_they_are_long(tmp_path):
    data = b"1,2\n3," + b"7" * 200_000 + b"x\n"
    start = time.process_time()
    refused(tmp_path / "x.csv", data, "is not a number", formats.read_features)
    assert time.process_time() - start < 2


def test_short_floats_are_neighbors_without_a_warning(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((3, 2), np.float16))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index, _ = formats.read_candidates(tmp_path / "x.npy")
    assert (index == 1).all()


def test_a_table_of_nothing_but_ids_is_refused_without_a_warning(tmp_path):
    (tmp_path / "x.txt").write_text("a b\nc\nd\n")
    with pytest.raises(InputError, match=r"line 2 has 1 .* where 2 are expected"):
        formats.read_features(tmp_path / "x.txt", id_column="0", header=True)


def test_one_long_label_does_not_take_its_length_times_all_rows(tmp_path):
    data = b"z" * 100_000 + b"\nx" * 300
    refused(tmp_path / "y.txt", data, "100,000 characters", formats.read_labels)
    (tmp_path / "y.txt").write_bytes(b"z" * 100_000 + b"\nx" * 3)
    assert formats.read_labels(tmp_path / "y.txt").counts().tolist() == [3, 1]


def test_quoted_fields_may_be_long(tmp_path):
    (tmp_path / "y.csv").write_text(f'id,label\n"{"a" * 140_000}",x\n"b",y\n')
    labels = formats.read_labels(tmp_path / "y.csv::label", id_column="id")
    assert labels.classes == ("x", "y")


@pytest.mark.parametrize("codec", ["utf-7", "punycode", "unicode_escape", "rot13"])
def test_codecs_that_are_no_encodings_of_xml_are_refused(tmp_path, codec):
    text = f'<?xml version="1.0" encoding="{codec}"?>\n<graphml>\\x</graphml>'
    read = formats.read_graph
    refused(tmp_path / "g.graphml", text.encode(), "the encoding", read)


@pytest.mark.parametrize("codec", ["UTF-8", "ISO-8859-1", "windows-1252"])
def test_encodings_of_xml_are_read(tmp_path, codec):
    text = f'<?xml version="1.0" encoding="{codec}"?>\n<graphml><graph>'
    text += (
        '<node id="é"/><node id="b"/><edge source="é" target="b"/></graph></graphml>'
    )
    (tmp_path / "g.graphml").write_bytes(text.encode(codec))
    assert formats.read_graph(tmp_path / "g.graphml").ids == ("é", "b")


def test_members_that_claim_more_than_the_archive_are_refused(tmp_path):
    content = bytearray(npz(x=np.ones((3, 2))))
    at = content.find(b"PK\x01\x02")
    for place in (20, 24):
        content[at + place : at + place + 4] = struct.pack("<I", 2**31)
    data = bytes(content)
    refused(tmp_path / "x.npz", data, "claims more bytes", formats.read_features)


@pytest.mark.parametrize(
    ("key", "value", "match"),
    [
        ("errors", [np.nan], "no finite number"),
        ("errors", [np.inf], "no finite number"),
        ("directed", np.nan, "no truth value"),
    ],
)
def test_extras_of_graphs_are_what_they_should_be(tmp_path, key, value, match):
    none = np.array([], np.int32)
    parts = {"format": b"csr", "shape": [1, 1], "data": [], "indices": none}
    data = npz(**parts, indptr=[0, 0], **{key: value})
    refused(tmp_path / "g.npz", data, match, formats.read_graph)


def test_numbers_of_provenance_are_finite(tmp_path):
    text = b'# nnkgraph graph\n# nodes: 2\n# provenance: {"a": 1e999}\n0\t1\t1\n'
    refused(tmp_path / "g.tsv", text, "provenance is damaged", formats.read_graph)


def test_names_that_are_no_utf8_are_shown(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file[b"\xff"] = np.arange(3)
    data = (tmp_path / "x.h5").read_bytes()
    refused(tmp_path / "x.h5", data, "no matrix", formats.read_features)


def test_nodes_that_no_edge_speaks_for_are_not_believed(tmp_path):
    text = b"%%MatrixMarket matrix coordinate real general\n500000000 500000000 0\n"
    refused(tmp_path / "g.mtx", text, "500,000,000 nodes", formats.read_graph)


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (10**9, 2)},
        {"shape": (10**9, 2), "chunks": (1000, 2), "compression": "gzip"},
        {"shape": (4, 2), "chunks": (10**8, 2), "maxshape": (None, 2)},
    ],
)
def test_values_that_were_never_written_are_refused(tmp_path, options):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", dtype="f4", **options)
    data = (tmp_path / "x.h5").read_bytes()
    refused(tmp_path / "x.h5", data, "stored bytes", formats.read_features)


def texts_in_hdf5():
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        file["y"] = ["ant", "bee", "cow"]
        place = file["y"].id.get_offset()
    return bytearray(stream.getvalue()), place


def test_heaps_without_an_end_are_refused(tmp_path):
    # The HDF5 library walks over this one for ever.
    content, _ = texts_in_hdf5()
    at = content.find(b"GCOL") + 16
    content[at : at + 16] = bytes(16)
    data = bytes(content)
    refused(tmp_path / "y.h5", data, "heap of text is broken", formats.read_labels)


def test_texts_without_an_end_are_refused(tmp_path):
    # The HDF5 library makes room for four gigabytes here.
    content, place = texts_in_hdf5()
    content[place : place + 4] = struct.pack("<I", 2**32 - 1)
    data = bytes(content)
    refused(tmp_path / "y.h5", data, "has no end", formats.read_labels)


def test_sound_texts_of_hdf5_are_read(tmp_path):
    (tmp_path / "y.h5").write_bytes(bytes(texts_in_hdf5()[0]))
    assert formats.read_labels(tmp_path / "y.h5").classes == ("ant", "bee", "cow")


ABOUT = {"backend": "exact", "exact": True, "threads": 1, "recall": None, "notes": []}


@pytest.mark.parametrize(
    ("index", "about"),
    [
        (99, ABOUT),
        (-2, ABOUT),
        (0, ABOUT),
        (1, ABOUT),
        (2, {}),
        (2, [1]),
        (2, {**ABOUT, "notes": 3}),
        (2, {**ABOUT, "more": 3}),
    ],
)
def test_damaged_candidates_of_a_checkpoint_are_searched_again(tmp_path, index, about):
    point = Checkpoint(tmp_path, {"k": 2})
    others = np.array([[1, 2], [0, 2], [0, 1]], np.int32)
    others[1, 1] = index
    arrays = {"index": others, "distance": np.ones((3, 2))}
    point.save(Block("candidates", range(3), arrays, about))
    fresh = Candidates(np.zeros((3, 2), np.int32), np.ones((3, 2)))
    assert found_once(point, 3, 2, lambda: fresh) is fresh
    assert "computed again" in point.warnings[-1]


def test_facts_of_a_checkpoint_may_not_be_nested_without_an_end(tmp_path):
    (tmp_path / "checkpoint.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="is damaged"), open_checkpoint(tmp_path, {}):
        pass


def test_foreign_facts_of_a_checkpoint_are_shown_in_one_line(tmp_path):
    (tmp_path / "checkpoint.json").write_text(
        json.dumps({"k": 3, "\u2028\x1b[2J": "\n"})
    )
    with (
        pytest.raises(InputError) as caught,
        open_checkpoint(tmp_path, {"k": 3}),
    ):
        pass
    assert str(caught.value).isprintable()
    assert "2028" in str(caught.value)


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("column", "mark", "damage"),
    [([1, None], b"<)\x06", b"<)F"), ([[1.0], [2.0]], b"<)&", b"<)F")],
)
def test_parquet_counts_that_end_pyarrow_are_refused(tmp_path, column, mark, damage):
    data = parquet(y=column)
    assert data.count(mark) == 1  # the histogram of how often lists go on
    spec = f"{tmp_path}/y.parquet::y"
    refused(
        tmp_path / "y.parquet",
        data.replace(mark, damage),
        "damaged Parquet file",
        lambda _: formats.read_features(spec),
    )


def test_parquet_types_are_named_in_printable_text(tmp_path):
    data = parquet(x=[[1.0]], y=[1]).replace(b"element", b"e\x00\x1b[1mt")
    refused(tmp_path / "x.parquet", data, r"\(list<e\\x00\\x1b", formats.read_features)


@pytest.mark.parametrize(
    "footer",
    [
        b"",
        b"\x49",  # a list that does not come
        b"\x19\xfc" + b"\xff" * 12,  # a number of too many bytes
        b"\x1b\x00",  # a map
        b"\x1c" * 100,  # too deep
        b"\x18\x7fa",  # text that is cut off
        b"\x45\x02\x00",  # a number where row groups should be
    ],
)
def test_footers_that_no_library_has_read_are_refused(footer):
    stream = io.BytesIO(footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(ValueError, match="footer"):
        count_values(stream)


def test_values_of_lists_are_counted_as_pyarrow_does():
    lists = [[1.0, 2.0], [], None, [3.0, 4.0, 5.0]] * 25
    kept = {"x": lists, "é": ["a"] * 100, "flag": [True] * 100}
    data = parquet(**kept, pair=[{"a": 1, "b": [2]}] * 100)
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    theirs = dict.fromkeys(("x", "é", "flag", "pair"), 0)
    for one in chunks:
        theirs[one.path_in_schema.partition(".")[0]] += one.num_values
    assert count_values(io.BytesIO(data)) == theirs


def test_rows_of_text_that_do_not_come_are_refused(tmp_path):
    stream = io.BytesIO()
    savemat(stream, {"y": np.array(["ab", "cd"])})
    extents = struct.pack("<ii", 2, 2)
    data = stream.getvalue().replace(extents, struct.pack("<ii", 10**9, 2))
    refused(tmp_path / "y.mat", data, "rows of text are announced", formats.read_labels)


@pytest.mark.parametrize("where", ["obs/_index", "obsm/X_pca", "obs", "obsm", "X"])
def test_types_that_have_a_name_are_no_values(tmp_path, where):
    path = tmp_path / "c.h5ad"
    path.write_bytes(anndata(np.ones((4, 2))))
    with h5py.File(path, "r+") as file:
        del file[where]
        file[where] = np.dtype([("X_pca", "f8")])
    item = "X" if where == "X" else "obsm/X_pca"
    with pytest.raises(InputError, match=r"holds no values|no dataset"):
        formats.read_features(f"{path}::{item}")


@pytest.mark.parametrize("value", [np.nan, 1.5, 1e300])
def test_places_of_version_4_that_are_no_whole_numbers_are_refused(tmp_path, value):
    stream = io.BytesIO()
    savemat(stream, {"S": csc_array(np.diag([7.0, 8.0, 9.0]))}, format="4")
    data = stream.getvalue()
    three = struct.pack("<d", 3.0)
    assert three in data
    data = data.replace(three, struct.pack("<d", value), 1)
    refused(tmp_path / "x.mat", data, "damaged", formats.read_features)
