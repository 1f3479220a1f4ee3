"""Parts of the rows, computed by the tasks of a job array and put together again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph import registry
from nnkgraph.errors import ParameterError
from nnkgraph.search import check_by_rows
from nnkgraph.search.precomputed import Precomputed

if TYPE_CHECKING:
    from nnkgraph.prepare import Plan

WHOLE = {"connect": "none", "grow": None, "max_k": None, "k_check": False}
"""Options of build that look at all rows at once, and the values without effect."""

_TWO_PHASES = (
    "nnkgraph search --shard I/N and nnkgraph merge find candidates of all rows; build "
    "with --search precomputed:path=FILE then"
)


def check_shards(plan: Plan) -> None:
    """Refuse what a part of the rows cannot be solved with."""
    if not plan.method.local:
        raise ParameterError(
            f"method {registry.spec(plan.method)!r} looks at all rows at once: leave "
            "--shard out"
        )
    if isinstance(plan.search, Precomputed):
        return
    name = registry.spec(plan.search)
    if plan.kernel.needs_all_rows:
        raise ParameterError(
            f"sigma {getattr(plan.kernel, 'sigma', '')!r} needs the candidates of all "
            f"rows: {_TWO_PHASES}; or use --sigma local or a number"
        )
    check_by_rows(plan.search, name)


def check_alone(**settings: Any) -> None:
    """Refuse options of build that need all rows or all solutions."""
    for option, unused in WHOLE.items():
        if settings[option] not in {unused, None}:
            name = option.replace("_", "-")
            raise ParameterError(f"--{name} needs all rows: leave it or --shard out")
