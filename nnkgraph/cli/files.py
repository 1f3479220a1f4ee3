"""The files of a command, with what its options say about them."""

from __future__ import annotations

import ctypes
import mmap
import os
import shlex
import signal
import sys
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph import formats
from nnkgraph.cli import talk
from nnkgraph.errors import (
    InputError,
    MissingValuesError,
    NnkGraphError,
    ParameterError,
    ResourceError,
)
from nnkgraph.runtime import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nnkgraph.data import Features, Graph
    from nnkgraph.data.labels import Labels
    from nnkgraph.formats import Sparse
    from nnkgraph.tasks.findings import Findings


@dataclass(frozen=True)
class _Input:
    """A matrix that is mapped; it counts for as long as somebody uses it."""

    features: weakref.ref[Features]
    name: str
    path: str
    identity: tuple[int, int, int]
    """Which file it is, how long, and when it was changed."""
    start: int
    stop: int


_inputs: list[_Input] = []
_lost: list[int] = []
"""Addresses whose pages were gone."""


def _guard() -> None:
    """Be ready for an input that shrinks, from before it is read."""
    _lost.clear()
    _inputs[:] = [one for one in _inputs if one.features() is not None]
    if sys.platform == "linux" and sys.maxsize > 2**32:
        ctypes.CDLL(None).sigaction(signal.SIGBUS, ctypes.byref(_action), None)


def _remember(features: Features) -> None:
    """Note where the values are mapped, and how long their file has to be."""
    import numpy as np

    x = features.x
    if isinstance(x, np.memmap) and x.filename is not None:
        path, start = os.fspath(x.filename), x.ctypes.data
        place = (_identity(path), start, start + x.nbytes)
        _inputs.append(_Input(weakref.ref(features), features.name, path, *place))


def check() -> None:
    """Refuse to go on with an input that has changed."""
    if error := _changed():
        raise error


def check_pages() -> None:
    """Refuse to go on where pages were lost; cheap enough for every block."""
    if _lost:
        check()
        raise ResourceError(
            "memory that was mapped from a file is gone: its disk may be full"
        )


def blamed(error: NnkGraphError) -> NnkGraphError:
    """Return the error that is behind one: an input that has changed, perhaps.

    Workers that lose pages die, and all that is known here is that they died.
    """
    return _changed() or error if isinstance(error, ResourceError) else error


def _identity(path: str) -> tuple[int, int, int]:
    found = os.stat(path)  # noqa: PTH116 - any string
    return found.st_ino, found.st_size, found.st_mtime_ns


def _changed() -> InputError | None:
    for one in list(_inputs):
        if one.features() is None:
            continue
        try:
            now = _identity(one.path)
        except OSError:
            continue  # Removed, which leaves what is mapped as it is.
        if now != one.identity:
            _inputs.remove(one)  # Said once: other inputs may go on.
            shorter = now[0] == one.identity[0] and now[1] < one.identity[1]
            what = "became shorter" if shorter else "was changed"
            return InputError(f"{one.name}: the file {what} while it was read")
    return None


def _replace(_number: int, info: int, _context: int) -> None:
    """Put zeros where pages are gone, and note it."""
    address = ctypes.c_uint64.from_address(info + _ADDRESS).value
    start = address - address % mmap.PAGESIZE
    ends = [one.stop for one in _inputs if one.start <= address < one.stop]
    length = max([*ends, start + mmap.PAGESIZE]) - start
    _mmap(start, length, mmap.PROT_READ, _FLAGS, -1, 0)
    _lost.append(address)


_ADDRESS = 16  # where siginfo_t has the address, on 64-bit Linux
_SIGINFO = 4  # SA_SIGINFO
_FLAGS = 0x10 | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # MAP_FIXED has no name in Python
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_mmap = ctypes.CDLL(None).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


class _Action(ctypes.Structure):
    """``struct sigaction`` of the C library."""

    _fields_ = (
        ("handler", _HANDLER),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_action = _Action(_HANDLER(_replace), flags=_SIGINFO)


_TEXT = (".csv", ".tsv", ".txt", ".gz")
_MATRIX = (".mtx", ".mtx.gz")
_COLUMNS = (".parquet",)
_TEXT_OPTIONS = ("delimiter", "decimal", "header")


class Files:
    """The files of a command, with what its options say about them.

    Options for tables are meant for the tables among the files that are read. FEATURES,
    which come first, must have the columns that are spoken of. Other tables may lack
    them: their rows go by a column called id, or by their order. One table must have
    the id column, though.
    """

    def __init__(
        self,
        *,
        format: str | None = None,  # noqa: A002 - the option's name
        no_clobber: bool = False,
        ids: str | None = None,
        **table: Any,
    ) -> None:
        self.format, self.no_clobber, self.table = format, no_clobber, table
        self.ids = ids
        if ids is not None and table["id_column"] is not None:
            raise ParameterError(
                "--ids and --id-column: rows are named by a file or by a column; "
                "leave one out"
            )
        self.expect()

    def expect(self, *tables: str | None, others: Iterable[str | None] = ()) -> None:
        """Say what is going to be read: what may be a table, and others."""
        known = [one for one in tables if one]
        self.inputs = [*known, *(one for one in (self.ids, *others) if one)]
        if self.inputs.count("-") > 1:
            raise ParameterError("standard input can be read once only: name a file")
        self._kinds = [_kind(one) for one in known]
        self._left, self._named, self._before = sum(map(bool, self._kinds)), 0, False

    def split_format(self, output: str, kind: str = "graph") -> str | None:
        """Keep what --format says about the input; return what it says about OUTPUT.

        ``IN,OUT`` says both. One name belongs to the side that needs it: '-' or a file
        whose name says nothing; to the input where both do or neither does.
        """
        given = self.format
        if given is None or "," in given:
            read, _, write = (given or "").partition(",")
            self.format = read or None
            return write or None
        if formats.is_known(output, f"write_{kind}"):
            return None
        if not all(formats.is_known(one, "read_features") for one in self.inputs):
            return None
        self.format = None
        return given

    def check_output(self, output: str, **how: Any) -> None:
        """Check before any work that a graph, or the like, can be written."""
        told: Any = {"no_clobber": self.no_clobber, "inputs": self.inputs}
        if output == "-" and self.format and how.get("format") is None:
            raise ParameterError(
                f"-: standard output: --format {self.format} is the input's; name "
                f"both, as --format {self.format},tsv"
            )
        formats.check_output(output, **told, **how)

    def check_file(
        self, output: str, suffixes: Iterable[str] = (), *, stdout: bool = False
    ) -> None:
        """Check the same for any other file; standard output has no suffix."""
        formats.check_file(
            output,
            suffixes=() if stdout and output == "-" else tuple(suffixes),
            no_clobber=self.no_clobber,
            inputs=self.inputs,
        )

    def check_table(self, output: str, suffixes: Iterable[str], *, json: bool) -> None:
        """Check the same for a table that may go to standard output, as JSON may."""
        if output == "-" and json:
            raise ParameterError("stdout takes -o - or --json, not both: name a file")
        self.check_file(output, suffixes, stdout=True)

    def write(self, output: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        formats.write_file(output, content)

    def features(self, spec: str, *, kernel: str = "") -> Features:
        """Read the file that has to have the columns.

        A sparse matrix has rows that stay sparse, or the similarities or distances that
        a `kernel` may be about.
        """
        from nnkgraph.data.pairs import MATRICES

        sparse: Sparse = "rows"
        if kernel and registry.create("kernels", kernel).base in MATRICES:
            sparse = "similarities"
        told = {"ids": self.ids, **self.told(spec, self.format, strict=True)}
        told["missing"] = self.table.get("missing")
        return _read_features(spec, format=self.format, sparse=sparse, **told)

    def more_rows(self, spec: str, ids: str | None = None) -> Features:
        """Read further rows with the same columns, which another file may name."""
        told = {"dropped_before": self._before, **self.told(spec, self.format)}
        if ids is not None:
            told |= {"ids": ids, "id_column": None}
        missing = self.table.get("missing")
        told["missing"] = missing if missing == "drop-rows" else None
        try:
            return _read_features(spec, format=self.format, **told)
        except MissingValuesError as error:
            if missing is None:
                raise
            said = str(error).partition(", or say ")[0]
            what = f"--missing {missing} is for the first file"
            raise InputError(f"{said}; {what}, rows can be left out here") from error

    def coordinates(
        self,
        spec: str,
        known: tuple[str, ...] | None,
        *,
        format: str | None = None,  # noqa: A002 - the option's name
        ids: str | None = None,
        gaps: bool = True,
    ) -> Features:
        """Read places of nodes that have these ids."""
        told = {"dropped_before": self._before, **self.told(spec, format)}
        own: dict[str, Any] = {"for_nodes": True, "known": known, "gaps": gaps}
        own["sparse"] = "dense"
        return _read_features(spec, format=format, ids=ids, **told, **own)

    def labels(self, spec: str, of: Features | None = None, **how: Any) -> Labels:
        """Read labels, which are one column: those of rows that features still have."""
        try:
            with _remarks() as note:
                told = self._column(spec)
                found = formats.read_labels(spec, note=note, **told, **how)
        except InputError as error:
            raise self._with_file(spec, error) from error
        if len(found.classes) == len(found.codes) > 2:
            talk.warning(
                f"{found.name}: no two rows have the same label: are they names?"
            )
        dropped = None if of is None else of.dropped
        return found if dropped is None else found.without(dropped)

    def _with_file(self, spec: str, error: InputError) -> InputError:
        """Offer the column of a table that is called like a file that is not there."""
        missing = isinstance(error.__cause__, FileNotFoundError)
        for table in self.inputs if missing else ():
            if table in {spec, "-"} or not _kind(table):
                continue
            with suppress(NnkGraphError):
                formats.read_labels(f"{table}::{spec}", **self._column(spec))
                item = shlex.quote(f"{table}::{spec}")
                return InputError(f"{error}; the column of that name is {item}")
        return error

    def named_labels(self, spec: str, of: Features | None = None, **how: Any) -> Labels:
        """Read labels for people: an .npz may name its numbers in ``class_names``."""
        found = self.labels(spec, of, **how)
        names = _class_names(spec)
        every = {str(at): name for at, name in enumerate(names)}
        # Names count from 0 and differ; anything else is a list of something else.
        wrong = len({*names} - {""}) < len(names)
        if not names or wrong or not every.keys() >= {*found.classes}:
            return found
        talk.summary(f"{found.name}: class_names beside them name the classes")
        return replace(found, classes=tuple(every[one] for one in found.classes))

    def clusters(self, spec: str, known: tuple[str, ...] | None) -> Labels:
        """Read clusters of nodes, a number for each, -1 for those in none."""
        return self.labels(spec, known=known, missing="-1")

    def findings(self, spec: str, graph: Graph) -> Findings:
        """Read what an audit found out about the nodes of a graph."""
        from nnkgraph.tasks.findings import Findings

        columns, name = formats.read_table(spec)
        return Findings.of(columns, graph.n_nodes, graph.ids, name)

    def values(self, spec: str, known: tuple[str, ...] | None) -> Features:
        """Read one number per node."""
        with _remarks() as note:
            told = self._column(spec)
            return formats.read_values(spec, note=note, known=known, **told)

    def _column(self, spec: str) -> dict[str, Any]:
        told = self.told(spec)
        del told["drop"]
        return told

    def told(
        self,
        spec: str,
        format: str | None = None,  # noqa: A002 - the option's name
        *,
        strict: bool = False,
    ) -> dict[str, Any]:
        """Return the options for the next file; a strict one must have the columns."""
        kind = _kind(spec, format)
        self._left -= kind != ""
        last = self._left <= 0 and not self._named
        absent = None if strict or last else self._absent
        self._named += kind != ""
        self._before = self._before or bool(kind)
        text = {name: self.table.get(name) for name in _TEXT_OPTIONS}
        columns = {"id_column": self.table["id_column"]}
        columns["drop"] = self.table.get("drop", ())
        # Where no file is a table, all is handed out to be refused by name.
        if kind != "text" and "text" in self._kinds:
            text = dict.fromkeys(text)
        if kind == "" and any(self._kinds):
            text, columns = dict.fromkeys(text), {"id_column": None, "drop": ()}
        return {**text, **columns, "absent": absent}

    def _absent(self) -> None:
        """Count a table that has no such id column."""
        self._named -= 1


def _class_names(spec: str) -> list[str]:
    """Return what an .npz of labels calls its classes; nothing where it does not."""
    from zipfile import ZipFile

    path, item = formats.split_item(spec)
    if not path.lower().endswith(".npz") or item == "class_names":
        return []
    with ZipFile(path) as archive:
        if "class_names.npy" not in archive.namelist():
            return []
    try:
        return formats.read_labels(f"{path}::class_names").names()
    except InputError as error:  # the labels do without it
        talk.detail(str(error))
        return []


def _kind(spec: str, format_: str | None = None) -> str:
    """Return whether a file is text, has columns without being text, or neither."""
    name = formats.split_item(spec)[0] if format_ is None else f".{format_}"
    if name.lower().endswith(_COLUMNS):
        return "columns"
    text = name.lower().endswith(_TEXT) and not name.lower().endswith(_MATRIX)
    known = formats.is_known(name, "read_features") and not text
    return "" if known else "text"


def _read_features(spec: str, **how: Any) -> Features:
    _guard()
    with _remarks() as note:
        features = formats.read_features(spec, note=note, **how)
        _remember(features)
    talk.input_warning(*features.warnings)
    return features


def read_graph(spec: str, format: str | None = None) -> Graph:  # noqa: A002
    """Read a graph."""
    with _remarks() as note:
        return formats.read_graph(spec, format=format, note=note)


def read_result(spec: str, format: str | None = None) -> tuple[Any, dict[str, Any]]:  # noqa: A002
    """Read a graph, candidates or answers to queries, and the provenance."""
    with _remarks() as note:
        return formats.read_result(spec, format=format, note=note)


@contextmanager
def _remarks() -> Iterator[Callable[[str], None]]:
    """Collect remarks, and say them where nothing went wrong."""
    remarks: list[str] = []
    yield remarks.append
    talk.summary(*remarks)


def folder_of(output: str) -> str | None:
    """Return the directory that a file is written to; a stream has none."""
    return None if formats.is_stream(output) else str(Path(output).absolute().parent)


def say_order(
    name: str, ids: tuple[str, ...] | None, *others: Any, graph: bool = True
) -> None:
    """Warn of names of rows that are of no use, because the nodes have none."""
    hint = "; a graph that is built with --id-column has names, or with --ids" * graph
    for one in others:
        if one is None or one.ids is None or ids is not None:
            continue
        if one.ids != tuple(map(str, range(len(one.ids)))):
            talk.warning(
                f"{one.name}: {name} has no names of nodes: rows are taken in order"
                f"{hint}"
            )


def label_columns(train: str, *others: str | None) -> list[str]:
    """Return the columns of a table that are no features: labels are in them."""
    table, _ = formats.split_item(train)
    found = []
    for path, item in (formats.split_item(one) for one in others if one):
        if path == "-" or path != table or not _kind(path):
            continue
        if item is None:
            raise ParameterError(
                f"{path}: features and labels are in one table: say which column the "
                "labels are, as FILE::NAME, so that it is not taken for a feature"
            )
        found.append(item)
    return found
