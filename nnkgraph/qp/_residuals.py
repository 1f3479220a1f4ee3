"""Vector instructions that look at all atoms: values, residuals, the most wanted."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from nnkgraph.qp import _workspace as ws
from nnkgraph.qp._vectors import Rows, instructions

_INFINITY = float("inf")


@intrinsic  # type: ignore[untyped-decorator]
def most_wanted(typingctx: Any, w: Any, tolerance: Any) -> Any:
    """Return the atom with the largest ``R * GATE`` above a tolerance, or -1."""

    def write(rows: Rows, tolerance: Any) -> Any:
        builder = rows.builder
        best = cgutils.alloca_once_value(builder, rows.spread(tolerance))
        place = cgutils.alloca_once_value(builder, rows.spread(rows.number(-1)))
        with rows.vectors(rows.width) as (at, _):
            score = builder.fmul(rows.load(ws.R, at), rows.load(ws.GATE, at))
            better = builder.fcmp_ordered(">", score, builder.load(best))
            builder.store(builder.select(better, score, builder.load(best)), best)
            column = builder.select(better, rows.columns(at), builder.load(place))
            builder.store(column, place)
        return rows.place_of_highest(builder.load(best), builder.load(place))

    return instructions(write, w, 0, 1, types.int64)


@intrinsic  # type: ignore[untyped-decorator]
def largest_residual(typingctx: Any, w: Any) -> Any:
    """Return the largest ``R * UNIT``."""

    def write(rows: Rows) -> Any:
        builder = rows.builder
        best = cgutils.alloca_once_value(builder, rows.constant(_INFINITY))
        with rows.vectors(rows.width) as (at, _):
            score = builder.fmul(rows.load(ws.R, at), rows.load(ws.UNIT, at))
            value = builder.fneg(score)
            lower = builder.fcmp_ordered("<", value, builder.load(best))
            builder.store(builder.select(lower, value, builder.load(best)), best)
        return builder.fneg(rows.lowest(builder.load(best)))

    return instructions(write, w, 0, 0, types.float64)


@intrinsic  # type: ignore[untyped-decorator]
def exact_residual(typingctx: Any, w: Any, n: Any, p: Any) -> Any:
    """Set R to B minus THETA times the rows of K of the p chosen atoms."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = Rows(context, builder, signature.args[0], args[0])
        integers = Rows(context, builder, signature.args[1], args[1])

        def term(i: Any, at: Any) -> Any:
            chosen = integers.one(ws.CHOSEN, i)
            row = rows.load(builder.add(rows.number(ws.K), chosen), at)
            return builder.fmul(rows.spread(rows.one(ws.THETA, i)), row)

        with rows.vectors(rows.width) as (at, _):
            b = rows.load(ws.B, at)
            r = rows.subtract(rows.number(0), args[2], lambda i: term(i, at), b)
            rows.store(r, ws.R, at)
        return context.get_dummy_value()

    return types.void(w, n, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def narrow_values(typingctx: Any, w: Any, row: Any, d: Any, base: Any) -> Any:
    """Fill a row with the values of POINT and all atoms, from d rows of FEATURES."""

    def write(rows: Rows, row: Any, d: Any, base: Any) -> None:
        builder = rows.builder
        products = builder.icmp_signed("==", base, rows.number(1))

        def term(t: Any, at: Any) -> Any:
            point = rows.spread(rows.one(ws.POINT, t))
            own = rows.load(builder.add(rows.number(ws.FEATURES), t), at)
            difference = builder.fsub(point, own)
            with_base = builder.select(
                products,
                builder.fmul(point, own),
                builder.fmul(difference, difference),
            )
            return builder.fneg(with_base)

        with rows.vectors(rows.width) as (at, _):
            zero = rows.number(0)
            start = rows.constant(0.0)
            value = rows.subtract(zero, d, lambda t: term(t, at), start)
            rows.store(value, row, at)

    return instructions(write, w, 3, 0, types.void)
