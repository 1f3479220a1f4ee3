"""The header of a NumPy array file, read without trusting it."""

from __future__ import annotations

import math
import tokenize
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.lib import format as npy_format

from nnkgraph.blockwise import converted
from nnkgraph.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.data import FloatArray, IndexArray

REAL = "biuf"
"""The kinds of dtype that are real numbers."""

_INT32_END = 2**31 - 1
_MOST_EXTENTS = 32
_MOST_WITHOUT = 1 << 20
_LAST_CHARACTER = 0x10FFFF

# What NumPy's parser raises for headers that are not what it wrote.
_DAMAGE = (
    ValueError,
    SyntaxError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    MemoryError,
    tokenize.TokenError,
)


@dataclass(frozen=True, slots=True)
class Header:
    """What the first bytes of a NumPy array say about the rest."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    offset: int
    """Bytes before the values."""

    @property
    def order(self) -> Literal["C", "F"]:
        """How the values follow each other."""
        return "F" if self.fortran else "C"

    @property
    def size(self) -> int:
        """Bytes in all, header included; exact however large."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"shape {self.shape}, dtype {self.dtype}"


def read_header(stream: BinaryIO, name: str) -> Header:
    """Read the header; the stream then stands at the first value.

    Raises
    ------
    InputError
        Where it is malformed, or belongs to an array of Python objects.
    """
    try:
        with warnings.catch_warnings():
            # Files of Python 2 need a second look, and old names of dtypes are
            # going away: both are nobody's concern.
            warnings.simplefilter("ignore")
            shape, fortran, dtype = _parse(stream, name)
    except _DAMAGE as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise InputError(
            f"{name}: the npy header is truncated or damaged: {first}"
        ) from error
    if any(extent < 0 for extent in shape):
        raise InputError(f"{name}: the npy header claims the impossible shape {shape}")
    # Extents of zero, and text without characters, must not hide all the others.
    claimed = math.prod(max(1, extent) for extent in shape) * max(1, dtype.itemsize)
    without = 0 if dtype.itemsize else math.prod(shape)
    if claimed >= 2**63 or without > _MOST_WITHOUT or len(shape) > _MOST_EXTENTS:
        raise InputError(f"{name}: the npy header claims more bytes than there can be")
    if dtype.hasobject:
        raise InputError(
            f"{name}: holds Python objects, which are never loaded; convert the values "
            "to float32 or float64"
        )
    return Header(tuple(map(int, shape)), bool(fortran), dtype, stream.tell())


def _parse(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy_format.read_magic(stream)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(stream)
    if version == (2, 0):
        return npy_format.read_array_header_2_0(stream)
    raise InputError(f"{name}: npy version {version} is for structured arrays")


def check_real(dtype: np.dtype[Any], name: str) -> None:
    """Refuse values that are no real numbers."""
    if dtype.kind not in REAL:
        raise InputError(
            f"{name}: the values have dtype {dtype}, which is no real number; convert "
            "them to float32 or float64"
        )


def check_text(values: NDArray[Any], name: str) -> None:
    """Refuse numbers that are no characters: Python would make broken text of them."""
    if values.dtype.kind != "U" or not values.size:
        return
    native = values.dtype.newbyteorder("=")
    codes = np.ascontiguousarray(values, native).reshape(-1).view(np.uint32)
    if codes.max() > _LAST_CHARACTER:
        raise InputError(f"{name}: holds text with characters that do not exist")


def as_neighbors(array: ArrayLike, name: str) -> IndexArray:
    """Return a 2-D array of whole numbers as indices."""
    values = np.asarray(array)
    if values.ndim != 2:
        raise InputError(
            f"{name}: the neighbors have shape {values.shape}; one row per node and "
            "one column per neighbor are needed"
        )
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"{name}: the neighbors have dtype {values.dtype}, not integer"
        )
    if values.dtype.kind == "f":
        with np.errstate(over="ignore"):  # 2**53 is infinity for short ones
            whole = np.isfinite(values) & (np.abs(values) < 2**53)
        if not (whole.all() and (values == np.trunc(values)).all()):
            raise InputError(f"{name}: the neighbors are not whole numbers")
    wanted = np.int32 if values.dtype == np.int32 else np.int64
    return converted(values, wanted)


def as_distances(array: ArrayLike, neighbors: IndexArray, name: str) -> FloatArray:
    """Return the distances that belong to some neighbors."""
    values = np.asarray(array)
    check_real(values.dtype, name)
    if values.shape != neighbors.shape:
        raise InputError(
            f"{name}: distances have shape {values.shape}, neighbors {neighbors.shape}"
        )
    with np.errstate(over="ignore", invalid="ignore"):
        return converted(values, np.float64)


def index_dtype(*largest: int) -> type[np.int32 | np.int64]:
    """Return the smallest dtype that holds some counts, the same on every machine."""
    return np.int32 if max(largest, default=0) <= _INT32_END else np.int64
