"""Shards of the rows that are found, not of those that ask: ``--search sharded``.

Every one holds candidates of all rows; the best of all shards are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import registry
from nnkgraph.data import Candidates
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.find import notes_of, wanted_of
from nnkgraph.formats._memory import check_fits
from nnkgraph.pairs import DISTANCES
from nnkgraph.prepare import k_warnings
from nnkgraph.search import distance_of, index_dtype
from nnkgraph.search._combine import best_of
from nnkgraph.search._repair import repair
from nnkgraph.shards._part import part_of
from nnkgraph.shards.file import read_arrays

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import Features
    from nnkgraph.find import Run
    from nnkgraph.prepare import Plan
    from nnkgraph.shard import Shard
    from nnkgraph.shards.file import Part
    from nnkgraph.stages import Stages


def with_parts(plan: Plan, shard: Shard) -> Plan:
    """Let there be as many parts as shards."""
    search: Any = plan.search
    if search.parts not in {0, shard.count}:
        raise ParameterError(
            f"--shard {shard} is one of {shard.count} parts, and --search sharded has "
            f"{search.parts}: leave parts out, or use --shard I/{search.parts}"
        )
    return replace(plan, search=replace(search, parts=shard.count))


def search_part(
    features: Features,
    run: Run,
    shard: Shard,
    kernel: str,
    settings: dict[str, Any],
    stages: Stages,
) -> Part:
    """Find the candidates of all rows among the rows of one part."""
    plan, n = run.plan, len(run.rows.x)
    search: Any = plan.search
    k = min(plan.method.width(plan.k), n - 1)
    index, score = np.empty((n, 0), index_dtype(n)), np.empty((n, 0))
    with stages("search", n) as on_rows:
        if k > 0:
            wanted = wanted_of(plan, run.rows, k, run.pool, run.seed, on_rows)
            wanted = replace(wanted, checkpoint=run.checkpoint)
            index, score = search.find_part(wanted, shard.number - 1)
    found = Candidates(
        index, score, registry.spec(search), exact=False, threads=search.threads
    )
    said = {"notes": k_warnings(plan.k, run.rows)}
    part = part_of(
        "part",
        features,
        replace(run, span=None),
        shard,
        found,
        {"index": index, "score": score},
        {"k": k, "kernel": kernel, **settings},
        said,
    )
    common = {**part.common, "base": plan.kernel.nearness}
    return replace(part, common=common, notes=notes_of(run, found))


def check_all_rows(parts: list[Part]) -> None:
    """Refuse shards without candidates of all rows, or that say impossible things."""
    for part in parts:
        common, k = part.common, part.common["settings"].get("k")
        whole = (range(common["distinct"]), range(common["shape"][0]))
        sane = type(k) is int and 0 <= k < common["distinct"]
        known = common.get("base") in DISTANCES
        if (part.rows, part.lines) != whole or not sane or not known:
            raise InputError(f"{part.name}: is not the block it should be")


def combined(found: list[Part], on_shard: Callable[[int], object]) -> dict[str, Any]:
    """Return the arrays of a search of all parts, one shard in memory at a time."""
    common = found[0].common
    n, k = common["distinct"], common["settings"]["k"]
    check_fits(4 * n * k * 12, found[0].name, "all shards together")
    index, score = np.empty((n, 0), index_dtype(n)), np.empty((n, 0))
    whole: dict[str, Any] = {}
    for part in found:
        whole = read_arrays(part)
        pair = whole.pop("index"), whole.pop("score")
        index, score = best_of([(index, score), pair], k)
        on_shard(1)
    index, score = repair(index, score)
    distance = distance_of(score, common["base"])
    return {**whole, "index": index, "distance": distance}
