"""Vector instructions on the factor L and on V, the rows after K in the workspace.

``L`` and ``V`` are the numbers of their first rows.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from nnkgraph.qp import _workspace as ws
from nnkgraph.qp._vectors import Rows, instructions

_INFINITY = float("inf")


@intrinsic  # type: ignore[untyped-decorator]
def extend(
    typingctx: Any,
    w: Any,
    L: Any,
    p: Any,
    j: Any,
    inverse: Any,
    z: Any,
) -> Any:
    """Make row p of L from row j of K, and bring R, REST and GATE up to date.

    ``L[p] = inverse * (K[j] - sum of L[i, j] L[i])``, over the i below p.
    """

    def write(rows: Rows, L: Any, p: Any, j: Any, inverse: Any, z: Any) -> None:
        builder = rows.builder
        row = builder.add(rows.number(ws.K), j)
        last = builder.add(L, p)
        with rows.vectors(rows.width) as (at, _):
            value = rows.subtract(
                L,
                last,
                lambda i: builder.fmul(rows.spread(rows.one(i, j)), rows.load(i, at)),
                rows.load(row, at),
            )
            value = builder.fmul(value, rows.spread(inverse))
            rows.store(value, last, at)
            explained = builder.fmul(value, rows.spread(z))
            rows.store(builder.fsub(rows.load(ws.R, at), explained), ws.R, at)
            rest = builder.fsub(rows.load(ws.REST, at), builder.fmul(value, value))
            rows.store(rest, ws.REST, at)
            own = builder.icmp_signed("==", rows.columns(at), rows.spread(j))
            # A product, because a choice becomes a masked store, which is slow.
            keep = builder.select(own, rows.constant(0.0), rows.constant(1.0))
            rows.store(builder.fmul(rows.load(ws.GATE, at), keep), ws.GATE, at)

    return instructions(write, w, 3, 2, types.void)


@intrinsic  # type: ignore[untyped-decorator]
def stretch(
    typingctx: Any,
    w: Any,
    L: Any,
    p: Any,
    j: Any,
    inverse: Any,
    z: Any,
) -> Any:
    """Make row p of V, add z times it to TARGET, and return the smallest of that.

    ``V[p] = inverse * (e_p - sum of L[i, j] V[i])``, over the i below p.
    """

    def write(rows: Rows, L: Any, p: Any, j: Any, inverse: Any, z: Any) -> Any:
        builder = rows.builder
        V = builder.add(L, rows.width)
        best = cgutils.alloca_once_value(builder, rows.constant(_INFINITY))
        with rows.vectors(builder.add(p, rows.number(1))) as (at, _):
            own = builder.icmp_signed("==", rows.columns(at), rows.spread(p))
            value = rows.subtract(
                at,  # rows of V above this have only zeros here
                p,
                lambda i: builder.fmul(
                    rows.spread(rows.one(builder.add(L, i), j)),
                    rows.load(builder.add(V, i), at),
                ),
                builder.select(own, rows.constant(1.0), rows.constant(0.0)),
            )
            value = builder.fmul(value, rows.spread(inverse))
            rows.store(value, builder.add(V, p), at)
            target = builder.fadd(
                rows.load(ws.TARGET, at), builder.fmul(value, rows.spread(z))
            )
            rows.store(target, ws.TARGET, at)
            rows.keep_lowest(target, at, p, best)
        return rows.lowest(builder.load(best))

    return instructions(write, w, 3, 2, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def combine(typingctx: Any, w: Any, row: Any, p: Any, V: Any) -> Any:
    """Set TARGET to the sum of ``w[row, i] V[i]`` below p; return its smallest."""

    def write(rows: Rows, row: Any, p: Any, V: Any) -> Any:
        builder = rows.builder
        best = cgutils.alloca_once_value(builder, rows.constant(_INFINITY))
        last = builder.sub(p, rows.number(1))
        with rows.vectors(p) as (at, _):
            value = rows.subtract(
                at,
                p,
                lambda i: builder.fmul(
                    rows.spread(builder.fneg(rows.one(row, i))),
                    rows.load(builder.add(V, i), at),
                ),
                rows.constant(0.0),
            )
            rows.store(value, ws.TARGET, at)
            rows.keep_lowest(value, at, last, best)
        return rows.lowest(builder.load(best))

    return instructions(write, w, 3, 0, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def rotate(
    typingctx: Any,
    w: Any,
    row: Any,
    stop: Any,
    cosine: Any,
    sine: Any,
) -> Any:
    """Rotate a row and the next one, up to a column."""

    def write(rows: Rows, row: Any, stop: Any, cosine: Any, sine: Any) -> None:
        builder = rows.builder
        below = builder.add(row, rows.number(1))
        cosine, sine = rows.spread(cosine), rows.spread(sine)
        with rows.vectors(stop) as (at, _):
            a, b = rows.load(row, at), rows.load(below, at)
            first = builder.fadd(builder.fmul(cosine, a), builder.fmul(sine, b))
            second = builder.fsub(builder.fmul(cosine, b), builder.fmul(sine, a))
            rows.store(first, row, at)
            rows.store(second, below, at)

    return instructions(write, w, 2, 2, types.void)


@intrinsic  # type: ignore[untyped-decorator]
def release(typingctx: Any, w: Any, row: Any, z: Any) -> Any:
    """Give back to R and REST what a row of L has explained."""

    def write(rows: Rows, row: Any, z: Any) -> None:
        builder = rows.builder
        with rows.vectors(rows.width) as (at, _):
            value = rows.load(row, at)
            given = builder.fmul(value, rows.spread(z))
            rows.store(builder.fadd(rows.load(ws.R, at), given), ws.R, at)
            rest = builder.fadd(rows.load(ws.REST, at), builder.fmul(value, value))
            rows.store(rest, ws.REST, at)

    return instructions(write, w, 1, 1, types.void)


@intrinsic  # type: ignore[untyped-decorator]
def copy_row(typingctx: Any, w: Any, source: Any, row: Any, stop: Any) -> Any:
    """Copy a row up to a column."""

    def write(rows: Rows, source: Any, row: Any, stop: Any) -> None:
        with rows.vectors(stop) as (at, _):
            rows.store(rows.load(source, at), row, at)

    return instructions(write, w, 3, 0, types.void)
