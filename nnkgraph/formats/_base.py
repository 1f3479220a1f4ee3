"""What a file format is, and what is asked of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal, TypeAlias

from nnkgraph.errors import OutputError, ParameterError
from nnkgraph.runtime.files import Source, show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from nnkgraph import data
    from nnkgraph.data import Candidates, FloatArray, Graph, IndexArray

Note: TypeAlias = "Callable[[str], None]"
Column: TypeAlias = "tuple[NDArray[Any], Sequence[str] | None]"
"""One value per row, and the rows' ids where there are any."""

Neighbors: TypeAlias = "tuple[IndexArray, FloatArray | None]"
"""Neighbors and, where there are any, their distances."""

About: TypeAlias = "tuple[tuple[str, ...] | None, dict[str, Any]]"
"""The ids of rows, where there are any, and what determines a result."""

Sparse = Literal["rows", "dense", "similarities"]
"""What a sparse matrix is: rows that stay sparse, dense rows, or similarities."""

SIDECAR = ".nnk.npz"
"""How the file ends that holds what a graph's own format has no room for."""

MADE = "build makes a graph of features"

EXTRAS = ("ids", "errors", "candidates", "bridges", "distances")
"""The fields of `Extras`."""


def ignore(remark: str, /) -> None:
    """Drop a remark that nobody wants to read."""


@dataclass(frozen=True, slots=True)
class TextOptions:
    """What the user said about a table; `read_features` says more about most of it."""

    header: bool | None = None
    id_column: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    drop: tuple[str, ...] = ()
    dropped_before: bool = False
    """Whether another file of the call had the columns to drop: these may lack some."""

    absent: Callable[[], None] | None = None
    """Called where there is no such id column; None makes that an error."""

    for_nodes: bool = False
    """Whether rows describe nodes that are known: a column called id names them."""

    known: AbstractSet[str] = frozenset()
    sparse: Sparse = "rows"
    gaps: bool = False
    named: bool = False
    """Whether the rows get names from another file: arrays inside are passed over."""

    note: Note = ignore


NAMES = ("ids", "id", "row_names", "obs_names", "names", "index")
"""What arrays are called that name the rows beside them; the first is our own."""

_MOST_WHOLE = 2**53


def as_whole(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats that are whole numbers, as all are in MATLAB, as such."""
    if values.dtype.kind != "f":
        return values
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):  # infinity and NaN are none
        wide = values.astype(np.float64)
    if not (abs(wide) < _MOST_WHOLE).all() or (wide % 1).any():
        return values
    return wide.astype(np.int64)


_MAY_NAME_COLUMNS = {"names", "index"}


def _counts(values: Sequence[Any]) -> bool:
    """Return whether numbers do no more than count from 0."""
    return not isinstance(values[0], str) and all(
        one == at for at, one in enumerate(values)
    )


def row_names(
    found: Mapping[str, Callable[[], Sequence[Any]]],
    shape: Sequence[int],
    name: str,
    options: TextOptions,
) -> tuple[str, ...] | None:
    """Return the names of rows from the only array of a file that can be them.

    Arrays are `found` by what they are called, with what reads them: as many texts or
    whole numbers as there are rows. Our own is taken as it is. One that repeats a name,
    that could name columns, or that only counts the rows is left alone, and so are
    several.
    """
    usable, remarks = dict[str, tuple[str, ...]](), []
    for key in () if options.named else (one for one in NAMES if one in found):
        values = found[key]()
        if _counts(values):  # as is most likely where there are millions
            continue
        names = tuple(map(str, values))
        if key == NAMES[0] and isinstance(values[0], str):
            return names
        if len(set(names)) < len(names) or "" in names:
            remarks.append(f"{key!r} has values that repeat or are empty")
        elif key in _MAY_NAME_COLUMNS and shape[0] == shape[-1] and len(shape) > 1:
            remarks.append(f"{key!r} could name the rows or the columns")
        else:
            usable[key] = names
    if len(usable) == 1:
        options.note(f"{name}: {next(iter(usable))!r} names the rows")
        return next(iter(usable.values()))
    if usable:
        remarks = [f"{' and '.join(map(repr, usable))} could name the rows"]
    for remark in remarks:
        options.note(f"{name}: {remark}: not used; `ids` says what names the rows")
    return None


@dataclass(frozen=True, slots=True)
class Target:
    """Where a graph goes."""

    name: str
    """What the user typed, safe to print."""

    suffix: str
    """The file name ending that chose the format."""

    classes: Sequence[str] | None = None
    """The class of every node, empty where it has none, for programs that color."""

    item: str | None = None
    """The dataset inside the file that features go to."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a graph carries besides its edges."""

    ids: tuple[str, ...] | None = None
    errors: FloatArray | None = None
    candidates: IndexArray | None = None
    bridges: IndexArray | None = None
    distances: FloatArray | None = None


def unfit(one: str, target: Target, why: str) -> OutputError:
    """Return the error for an id that a format cannot carry."""
    return OutputError(f"{target.name}: the id '{show(one)}' {why}")


def check_unicode(ids: Sequence[str], target: Target) -> None:
    """Refuse ids that cannot be written as UTF-8."""
    for one in ids:
        if not one.isascii() and any("\ud800" <= c <= "\udfff" for c in one):
            raise unfit(one, target, "is no valid text; write .npz instead")


class Format:
    """A file format; a subclass defines those of the methods that make sense for it."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The file name endings that choose this format."""

    binary: ClassVar[bool] = False
    """Whether its bytes would garble a terminal."""

    has_items: ClassVar[bool] = False
    """Whether ``FILE::ITEM`` names one of several arrays inside."""

    has_columns: ClassVar[bool] = False
    """Whether a binary table names its columns, so that one can be that of the ids."""

    has_classes: ClassVar[bool] = False
    """Whether the nodes of its graphs can carry a class."""

    sidecar: ClassVar[tuple[str, ...]] = ()
    """The fields of `Extras` that its graphs need a second file for."""

    def read_features(self, source: Source, options: TextOptions, /) -> data.Features:
        """Read a feature matrix."""
        raise self._unable("read_features")

    def write_features(
        self, stream: BinaryIO, features: data.Features, target: Target, /
    ) -> None:
        """Write a dense matrix, with the names of rows where there are any."""
        raise self._unable("write_features")

    def check_features(self, features: data.Features, target: Target, /) -> None:
        """Refuse features that the format cannot carry."""
        if not hasattr(features.x, "strides"):
            raise ParameterError(
                f"{target.name}: sparse rows cannot be written so; keep them in files "
                "of their own, and name all of them by a pattern"
            )

    def read_column(self, source: Source, options: TextOptions, /) -> Column:
        """Read one value per row, and the rows' ids where there are any."""
        raise self._unable("read_column")

    def read_graph(self, source: Source, extras: Extras, note: Note, /) -> Graph:
        """Read and check a graph; `extras` is what a second file added."""
        raise self._unable("read_graph")

    def write_graph(self, stream: BinaryIO, graph: Graph, target: Target, /) -> None:
        """Write a graph to an open file."""
        raise self._unable("write_graph")

    def check_ids(self, ids: Sequence[str], target: Target, /) -> None:
        """Refuse ids that the format, or the file beside it, cannot carry."""
        for one in ids:
            # Arrays of text drop NULs from the end of their elements.
            if one.endswith("\0"):
                raise unfit(one, target, "ends in a NUL character; rename it")

    def holds(self, source: Source, /) -> str:
        """Return what is in a file: a ``graph``, ``candidates`` or ``answers``."""
        del source
        return "graph"

    def read_candidates(self, source: Source, /) -> Neighbors:
        """Read neighbors and, where there are any, their distances."""
        raise self._unable("read_candidates")

    def write_candidates(
        self, stream: BinaryIO, candidates: Candidates, provenance: dict[str, Any], /
    ) -> None:
        """Write neighbors and distances to an open file."""
        raise self._unable("write_candidates")

    def describe_candidates(self, source: Source, /) -> About:
        """Read what a file of candidates says besides them."""
        del source
        return None, {}

    def read_answers(self, source: Source, /) -> data.Answers:
        """Read neighborhoods of queries."""
        raise self._unable("read_answers")

    def write_answers(
        self, stream: BinaryIO, answers: data.Answers, target: Target, /
    ) -> None:
        """Write neighborhoods of queries to an open file."""
        raise self._unable("write_answers")

    def _unable(self, role: str) -> ParameterError:
        """Return the error for a role that the format does not have."""
        return ParameterError(f"format {type(self).__name__} does not {role}")

    @classmethod
    def can(cls, role: str) -> bool:
        """Return whether the format defines a method."""
        return getattr(cls, role) is not getattr(Format, role)
