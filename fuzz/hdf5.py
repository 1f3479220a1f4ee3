"""Damage to HDF5 files by the library itself: other links, shapes, types, filters."""

from __future__ import annotations

import io
from random import Random

import h5py
import numpy as np

from fuzz import blind

CANARY = "canary.h5"
"""A file in the folder above, which nothing may open."""

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""What such a file begins with, perhaps behind something of another program's."""

_HUGE = [(10**9, 3), (12, 10**9), (10**12, 10), (10**15,), (10**8,), (300_000_000, 2)]


def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
    """Change one to three objects of a file."""
    stream = io.BytesIO(data)
    try:
        with h5py.File(stream, "r+") as file:
            for _ in range(chance.choice([1, 1, 2, 3])):
                names: list[str] = []
                file.visit(names.append)
                name = chance.choice(names or ["x"])
                chance.choice(_WAYS)(file, name, chance)
    except Exception:  # what the library cannot write is no case
        return blind.mutate(data, other, chance)
    changed = stream.getvalue()
    return blind.mutate(changed, other, chance) if chance.random() < 0.1 else changed


def _free(file: h5py.File, name: str) -> None:
    if name in file:
        del file[name]


def _link(file: h5py.File, name: str, chance: Random) -> None:
    _free(file, name)
    targets = [f"../{CANARY}", CANARY, "/etc/hostname", ""]
    file[name] = chance.choice(
        [
            h5py.ExternalLink(chance.choice(targets), "x"),
            h5py.ExternalLink(chance.choice(targets), "/"),
            h5py.SoftLink(
                chance.choice(["/", name, "nowhere", "/x", "../x", ".", "/ids"])
            ),
        ]
    )


def _outside(file: h5py.File, name: str, chance: Random) -> None:
    """Let a dataset keep its values in another file."""
    _free(file, name)
    shape = chance.choice([(12, 3), (12,), (12, 4)])
    if chance.random() < 0.5:
        place = chance.choice([f"../{CANARY}", "/etc/hostname"])
        external = [(place, 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(name, shape, "u1", external=external)
        return
    layout = h5py.VirtualLayout(shape, "f8")
    layout[...] = h5py.VirtualSource(f"../{CANARY}", "x", shape)
    file.create_virtual_dataset(name, layout)


def _shape(file: h5py.File, name: str, chance: Random) -> None:
    """Claim values that nobody wrote."""
    _free(file, name)
    shape = chance.choice(
        [*_HUGE, (), (0, 3), (12, 0), (0,), (2, 2, 2), (12, 3), (12,)]
    )
    kind = chance.choice(["f8", "f4", "i4", "u1", "S10", h5py.string_dtype()])
    chunks = None
    if shape and 0 not in shape and chance.random() < 0.6:
        chunks = tuple(min(extent, chance.choice([1, 7, 10**4])) for extent in shape)
    way = chance.choice([None, "gzip", "lzf"]) if chunks else None
    file.create_dataset(name, shape, kind, chunks=chunks, compression=way)


def _chunk(file: h5py.File, name: str, chance: Random) -> None:
    """Claim chunks much larger than the data."""
    _free(file, name)
    rows = chance.choice([10**3, 10**6, 10**8])
    file.create_dataset(
        name, (12, 3), "f8", chunks=(rows, 3), maxshape=(None, 3), compression="gzip"
    )
    if rows < 10**6:
        file[name][...] = 1.0


def _kind(file: h5py.File, name: str, chance: Random) -> None:
    """Use a type that is no number, or an unusual one."""
    _free(file, name)
    shape = chance.choice([(12, 3), (12,), (12, 4)])
    kind = chance.choice(
        [
            *(
                np.dtype([("a", "f8"), ("b", "i4")]),
                "c16",
                "f2",
                ">f8",
                "?",
                "i1",
                "u8",
            ),
            *("V8", "S4", "f16", h5py.string_dtype("ascii", 5), h5py.string_dtype()),
            *(h5py.ref_dtype, h5py.regionref_dtype, h5py.vlen_dtype("i4")),
            *(h5py.enum_dtype({"A": 1, "B": 2}), np.dtype(("f8", (2,)))),
            h5py.opaque_dtype(np.dtype("M8[s]")),
        ]
    )
    made = file.create_dataset(name, shape, kind)
    if made.dtype.kind in "fiu" and made.shape:
        with np.errstate(all="ignore"):
            made[0] = chance.choice([np.nan, np.inf, -1, 7, 1e300, 2**31])
    elif made.dtype.kind in "SO" and h5py.check_string_dtype(made.dtype):
        made[0] = chance.choice([b"\xff\xfe", b"a\0b", b"", b"nan", b"7" * 5000])


def _group(file: h5py.File, name: str, chance: Random) -> None:
    _free(file, name)
    if chance.random() < 0.3:
        file[name] = h5py.Empty("f8")
    elif chance.random() < 0.5:
        file[name] = np.dtype("f8")
    else:
        group = file.create_group(name)
        group["loop"] = group if chance.random() < 0.5 else h5py.SoftLink("loop")


def _more(file: h5py.File, _name: str, chance: Random) -> None:
    name = chance.choice(
        ["ids", "distances", "neighbors", "y", "x", "a/b/c", "\x1b[1m"]
    )
    if name not in file:
        text = np.array([b"a", b"\xff", b"c"] * 4, "S3")
        values = [
            np.ones((12, 3)),
            np.arange(12),
            np.ones((12, 4)),
            text,
            np.float64(3),
        ]
        file[name] = chance.choice(values)


def _filter(file: h5py.File, name: str, chance: Random) -> None:
    """Ask for a filter that is not there, or for one that cannot work."""
    _free(file, name)
    number = chance.choice([32000, 32015, 65000, 4, 5, 6])
    file.create_dataset(
        name,
        (12, 3),
        "f8",
        chunks=(4, 3),
        compression=number,
        allow_unknown_filter=True,
    )


_WAYS = [_link, _outside, _shape, _chunk, _kind, _group, _more, _filter]
