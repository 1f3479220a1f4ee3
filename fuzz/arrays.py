"""Damage to npy and npz files that keeps sizes and checksums right."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from random import Random

import numpy as np

from fuzz import blind

_SHAPES = [
    *(
        "()",
        "(0,)",
        "(1,)",
        "(12,)",
        "(13,)",
        "(12, 3)",
        "(3, 12)",
        "(12, 4)",
        "(0, 3)",
    ),
    *("(12, 0)", "(2, 2, 2)", "(-1, 3)", "(1000000000000000,)", "(0, 10**30)"),
    *("(4611686018427387904, 2)", "(0, 1000000000000000000000000000000)", "(True, 3)"),
    *("(1000000000, 1)", "(2.5,)", "(12, '3')", "[12, 3]", "(" + "1, " * 70 + ")"),
    *("(" * 200 + ")" * 200, "12", "None", "(1000000000000000000,)", "(300000000, 8)"),
]
_TYPES = [
    *(
        "<f8",
        "<f4",
        "<f2",
        ">f8",
        "<f16",
        "|b1",
        "|i1",
        "|u1",
        "<i4",
        ">i8",
        "<u8",
        "<c16",
    ),
    *("<U1", "<U8", ">U3", "<U0", "|S1", "|S5", "|S0", "|V0", "|V8", "|O", "<M8[ns]"),
    *(
        "<m8[D]",
        "x",
        "<f3",
        "<U1000000000",
        "|S2147483647",
        "<U536870912",
        ",",
        "(3,)<f8",
    ),
]
_SOUND = ["<f8", "<f4", "<f2", ">f8", "<f16", "|b1", "|i1", "<i4", ">i8", "<u8", "<U8"]
_SOUND += [">U3", "|S1", "|S5", "<i8", "<i4"]
_NAMES = [
    *("x", "ids", "y", "labels", "neighbors", "distances", "data", "indices", "indptr"),
    *(
        "format",
        "shape",
        "row",
        "col",
        "directed",
        "provenance",
        "errors",
        "candidates",
    ),
    *(
        "bridges",
        "sha256",
        "run",
        "about",
        "0",
        "1",
        "2",
        "../../x",
        "/etc/x",
        "\x1b[1m",
    ),
]
_VALUES = [
    *(np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0, -1, -2, 1, 7, 11, 12, 13),
    *(2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 0x110000, 0xD800),
]
_TEXTS = ["csr", "csc", "coo", "bsr", "{}", "[]", "1e999", '{"a": 1e999}', "[" * 9000]


def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
    """Damage an npy file, or members of an npz file."""
    if data[:6] == b"\x93NUMPY":
        return _array(data, chance)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(i.filename, archive.read(i)) for i in archive.infolist()]
    except (zipfile.BadZipFile, zlib.error, ValueError):
        return blind.mutate(data, other, chance)
    for _ in range(chance.choice([1, 1, 2, 3])):
        at = chance.randrange(len(members)) if members else 0
        roll = chance.random()
        if not members or roll < 0.1:
            members.append((f"{chance.choice(_NAMES)}.npy", _fresh(chance)))
        elif roll < 0.2:
            del members[at]
        elif roll < 0.3:
            members[at] = (f"{chance.choice(_NAMES)}.npy", members[at][1])
        else:
            members[at] = (members[at][0], _array(members[at][1], chance))
    written = _write(members, chance)
    return _lie(written, chance) if chance.random() < 0.2 else written


def header(kind: str, shape: str, *, fortran: bool = False) -> bytes:
    """Return the header of an npy file, whatever it claims."""
    text = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _fresh(chance: Random) -> bytes:
    """Return an array of any type and shape; half of them are what they claim."""
    kind, shape = chance.choice(_TYPES), chance.choice(_SHAPES)
    body = chance.randbytes(chance.choice([0, 12, 96, 288]))
    if chance.random() < 0.5:
        kind = chance.choice(_SOUND)
        width = np.dtype(kind).itemsize
        shape = chance.choice(["(12,)", "(12, 3)", "(12, 4)", "()", "(2,)", "(13,)"])
        count = {"()": 1, "(2,)": 2, "(13,)": 13, "(12,)": 12, "(12, 3)": 36}
        body = chance.randbytes(count.get(shape, 48) * width)
    return header(kind, shape, fortran=chance.random() < 0.2) + body


def _array(data: bytes, chance: Random) -> bytes:
    """Change the values, the header, or everything."""
    roll = chance.random()
    if roll < 0.25:
        return _fresh(chance)
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception:  # it was damaged before
        return _fresh(chance)
    if array.size > 10**5:  # of nothing each
        return _fresh(chance)
    if roll < 0.45:  # the values are right, what the header says of them is not
        size = array.nbytes
        return header(chance.choice(_TYPES), chance.choice(_SHAPES)) + data[-size:]
    if roll < 0.55:
        array = array.reshape(chance.choice([(-1,), (1, -1), (-1, 1), (1, -1, 1)]))
    elif roll < 0.65 and array.dtype.kind in "US":
        array = np.array(chance.choice(_TEXTS))
    elif roll < 0.75:
        array = np.concatenate([array.ravel(), array.ravel()])
    else:
        return _value(array, data, chance)
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _value(array: np.ndarray, data: bytes, chance: Random) -> bytes:
    """Put an extreme number into the array, by its bytes."""
    if not array.size:
        return data
    value = chance.choice(_VALUES)
    kind = {"U": "<u4", "S": "u1"}.get(array.dtype.kind, array.dtype)
    with np.errstate(all="ignore"):
        raw = np.array([value], np.float64).astype(np.dtype(kind))
        if isinstance(value, int) and np.dtype(kind).kind in "iu":
            wide = (value % 2**64).to_bytes(8, "little")
            raw = np.frombuffer(wide[: np.dtype(kind).itemsize], np.dtype(kind))
    width, start = raw.itemsize, len(data) - array.nbytes
    at = start + width * chance.randrange(max(1, array.nbytes // width))
    return data[:at] + raw.tobytes() + data[at + width :]


def _write(members: list[tuple[str, bytes]], chance: Random) -> bytes:
    stream = io.BytesIO()
    way = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    with zipfile.ZipFile(stream, "w", way) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names may stand there twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, way)
    return stream.getvalue()


def _lie(data: bytes, chance: Random) -> bytes:
    """Change a size, a place or a way of packing in the central directory."""
    content = bytearray(data)
    at = content.find(b"PK\x01\x02")
    if at < 0:
        return data
    place, width = chance.choice([(10, 2), (20, 4), (24, 4), (42, 4), (8, 2), (28, 2)])
    value = chance.choice([0, 1, 8, 12, 2**16 - 1, 2**31 - 1, 2**32 - 2, 2**32 - 1])
    start = at + place
    content[start : start + width] = (value % (1 << 8 * width)).to_bytes(
        width, "little"
    )
    return bytes(content)
