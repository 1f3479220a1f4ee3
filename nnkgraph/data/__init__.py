"""The values that cross the stages: nothing else does.

``Features`` are read, ``Candidates`` are found, ``Neighborhoods`` are solved,
a ``Graph`` is written, or ``Answers`` to queries.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nnkgraph.data.checks import as_float, check_finite, check_ids, check_shape
from nnkgraph.data.objects import Convertible, frame_values
from nnkgraph.data.sparse import SparseGram, SparseRows
from nnkgraph.errors import ParameterError
from nnkgraph.runtime.arrays import row_slices

__all__ = [
    "SCHEMA",
    "Answers",
    "Candidates",
    "Features",
    "Graph",
    "Neighborhoods",
    "SparseGram",
    "SparseRows",
    "Updatable",
]

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from scipy.sparse import csr_array

    from nnkgraph.data.missing import Dropped
    from nnkgraph.data.report import Report

FloatArray: TypeAlias = "NDArray[np.floating[Any]]"
IndexArray: TypeAlias = "NDArray[np.integer[Any]]"

SCHEMA = 1
"""The number of the layout of files and reports: see formats/schema.json."""


@dataclass(frozen=True, eq=False)
class Features:
    """A feature matrix whose values were checked.

    Make one with :meth:`of`, which checks and converts; the constructor trusts.
    """

    x: Any
    """(n, d), float32 or float64, C order, finite; may be a read-only memory map.

    For kernels ``precomputed`` and ``distance`` it is (n, n), and may be a
    ``SparseGram``; for ``cosine``, ``gaussian``, ``jaccard`` and ``linear`` it may be
    ``SparseRows``.
    """

    ids: tuple[str, ...] | None = None
    """Row names, unique, or None where rows are known by their number."""

    name: str = "array"
    """Where the values came from, for messages and reports."""

    dtype: str = "float64"
    """The dtype the values had before they were converted."""

    warnings: tuple[str, ...] = ()
    """What was lost when they were converted."""

    columns: tuple[str, ...] | None = None
    """Names of the columns, where a table has them."""

    dropped: Dropped | None = None
    """Rows of the file that were left out because values were missing."""

    def __repr__(self) -> str:
        n, d = self.x.shape
        return f"<Features: {n} x {d}, {self.name}>"

    @classmethod
    def of(
        cls,
        x: ArrayLike,
        /,
        *,
        ids: Sequence[str] | None = None,
        name: str = "array",
        gaps: bool = False,
    ) -> Features:
        """Check a matrix and return it as features.

        float32 and float64 in C order are taken as they are, without a copy.
        Every other real dtype is converted without loss (long double and 64-bit
        integers: to the nearest float64). Sparse matrices of scipy stay sparse. Data
        frames of pandas and polars are taken by their values; an index of pandas that
        is no plain count gives the ids.

        Parameters
        ----------
        gaps : bool
            Whether NaN may stand for values that are not there: only for pictures.

        Raises
        ------
        InputError
            For values that are no real numbers, shapes that are no matrix, NaN and
            infinity (with row, column and count), and repeated ids.
        """
        columns = None
        if hasattr(x, "columns") and hasattr(x, "to_numpy"):  # pandas or polars
            x, frame_ids, columns = frame_values(x, name)
            ids = frame_ids if ids is None else ids
        if hasattr(x, "tocsr"):  # a sparse matrix of scipy
            matrix: Any = x
            rows: Any = SparseRows.of(matrix, name)
            named = None if ids is None else check_ids(ids, rows, name)
            return cls(rows, named, name, str(matrix.dtype))
        array = np.asanyarray(x)
        dtype = str(array.dtype)
        check_shape(array, name)
        wide = array.dtype.kind in "iu" and array.dtype.itemsize == 8
        array = as_float(array)
        check_finite(array, name, gaps=gaps)
        warnings: tuple[str, ...] = ()
        if wide and max(float(array.max()), -float(array.min())) >= 2**53:
            warnings = (f"{name}: integers beyond 2**53 were rounded to float64",)
        checked = None if ids is None else check_ids(ids, array, name)
        return cls(array, checked, name, dtype, warnings, columns)

    @cached_property
    def sha256(self) -> str:
        """Hash of the values in C order as float64, whatever the dtype."""
        if isinstance(self.x, SparseRows):
            return self.x.sha256()
        digest = hashlib.sha256()
        if isinstance(self.x, SparseGram):
            digest.update(np.ascontiguousarray(self.x.indptr, dtype="<i8").data)
            digest.update(np.ascontiguousarray(self.x.indices, dtype="<i8").data)
            digest.update(np.ascontiguousarray(self.x.data, dtype="<f8").data)
            return digest.hexdigest()
        for rows in row_slices(len(self.x), 8 * self.x.shape[1]):
            digest.update(np.ascontiguousarray(self.x[rows], dtype="<f8").data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Candidates:
    """For every node, the nodes it may be joined to, nearest first."""

    index: IndexArray
    """(n, m) row numbers, -1 where a candidate is missing."""

    distance: FloatArray
    """(n, m) float64 distances, inf where a candidate is missing."""

    backend: str = "exact"
    """The search that found them, as ``name:key=value,...``."""

    exact: bool = True
    """Whether these are by definition the nearest ones."""

    threads: int = 1
    """Threads that influenced the result; 1 where none could."""

    recall: float | None = None
    """Share of the true nearest nodes that were found, estimated on a sample."""

    recall_interval: tuple[float, float] | None = None
    """Where that share is with 95 % confidence, where somebody knows."""

    notes: tuple[str, ...] = ()
    """What the user should know about how they were found."""

    warnings: tuple[str, ...] = ()
    """What the user should do something about."""

    ids: tuple[str, ...] | None = None
    """Names of the rows, or None where they are known by their number."""

    def __repr__(self) -> str:
        n, k = self.index.shape
        return f"<Candidates: {n} x {k}, {self.backend}>"


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """The weight of every candidate edge, and how well it explains its node."""

    weights: FloatArray
    """(n, m) float64, aligned with the candidates; zero means no edge."""

    errors: FloatArray | None = None
    """(n,) the objective J at the solution, where the method has one."""

    certificate: FloatArray | None = None
    """(n,) relative violation of the optimality conditions, where there are any."""

    facts: dict[str, Any] = field(default_factory=dict)
    """What a method says about its work as a whole: iterations, its own certificate."""

    failure: str = ""
    """Why the result is not what was asked for, where a method did not get there."""

    def __repr__(self) -> str:
        n, k = self.weights.shape
        return f"<Neighborhoods: {n} x {k}>"


@dataclass(frozen=True, eq=False)
class Updatable:
    """What a graph keeps of its build, so that rows can be added and removed.

    All but ``first`` is about the distinct rows, which may be fewer than the nodes.
    """

    index: IndexArray
    """(n, k) candidates."""

    distance: FloatArray
    """(n, k) their distances."""

    weights: FloatArray
    """(n, k) directed weights, before any rule and any rounding."""

    errors: FloatArray | None = None
    """(n,) J, where the method has one."""

    certificate: FloatArray | None = None
    """(n,) certificates, where the method has any."""

    first: IndexArray | None = None
    """(N,) the lowest row with the same values; None where all rows differ."""

    searched: IndexArray | None = None
    """How many rows there were when an approximate search began anew; else None."""

    def __repr__(self) -> str:
        n, k = self.index.shape
        return f"<Updatable: {n} x {k}>"

    @staticmethod
    def size(n: int, k: int) -> int:
        """Return how many bytes it takes for n rows with k candidates."""
        return n * (20 * k + 16)


@dataclass(frozen=True, eq=False)
class Graph(Convertible):
    """A weighted graph and what is known about how it came to be."""

    adjacency: csr_array
    """(n, n) float64, canonical CSR: sorted, no duplicates, no zeros, no diagonal."""

    ids: tuple[str, ...] | None = None
    """Node names, or None where nodes are known by their number."""

    directed: bool = False
    """False promises an adjacency that is symmetric to the bit."""

    errors: FloatArray | None = None
    """(n,) J of every node, where the method has one."""

    candidates: IndexArray | None = None
    """(n, m) int32 candidates, kept when the search was approximate or they grew."""

    bridges: IndexArray | None = None
    """(m, 2) edges that only connect components, lower node first, or None."""

    provenance: dict[str, Any] = field(default_factory=dict)
    """Parameters and fingerprints that determine the result; plain JSON values."""

    updatable: Updatable | None = None
    """What an update needs, where it was to be kept."""

    report: Report = None  # type: ignore[assignment]
    """What happened while it was built; None for a graph that was read from a file."""

    distances: FloatArray | None = None
    """(nnz,) float64, how far apart the ends of each entry of ``adjacency.data`` are.

    In the unit of the search: Euclidean, or Manhattan for kernel ``laplacian``, between
    the scaled rows; for kernels ``cosine`` and ``correlation`` and ``scale="unit"`` the
    length of the chord between rows of length 1, c, so that 1 - cos is c ** 2 / 2; for
    ``jaccard`` 1 minus the similarity; for ``distance`` as given. Identical rows have
    0. None for kernels that know similarities only: ``linear``, ``polynomial``,
    ``precomputed`` and functions.
    """

    def __post_init__(self) -> None:
        """Refuse distances that belong to another adjacency."""
        if self.distances is not None and len(self.distances) != self.adjacency.nnz:
            raise ParameterError(
                f"{len(self.distances)} distances for {self.adjacency.nnz} entries of "
                "the adjacency: replace both, or give distances=None"
            )

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return int(self.adjacency.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of edges: each undirected one counts once."""
        return self.adjacency.nnz if self.directed else self.adjacency.nnz // 2

    def __repr__(self) -> str:
        kind = "directed edges" if self.directed else "edges"
        return f"<Graph: {self.n_nodes} nodes, {self.n_edges} {kind}>"


@dataclass(frozen=True, eq=False)
class Answers:
    """The neighborhoods of queries among rows that are known."""

    weights: csr_array
    """(queries, rows) float64, canonical CSR: row i is the neighborhood of query i."""

    errors: FloatArray | None = None
    """(queries,) J, where the method has one."""

    query_ids: tuple[str, ...] | None = None
    """Names of the queries, or None where they are known by their number."""

    ids: tuple[str, ...] | None = None
    """Names of the rows, or None."""

    provenance: dict[str, Any] = field(default_factory=dict)
    """What determines the result; plain JSON values."""

    report: dict[str, Any] = field(default_factory=dict)
    """What happened; never stored."""

    distances: csr_array | None = None
    """Distances at the places of the weights, where the kernel has any."""

    nearest: IndexArray | None = None
    """(queries,) the best candidate of each, whatever its weight; -1 for none."""

    identical: IndexArray | None = None
    """(queries,) the first row with the same values as the query, or -1."""

    def __repr__(self) -> str:
        queries, rows = self.weights.shape
        return f"<Answers: {queries} queries among {rows} rows>"
