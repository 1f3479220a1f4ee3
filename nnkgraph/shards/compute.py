"""One shard of a search or of a build, as one task of a job array computes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nnkgraph import report
from nnkgraph.advice import advice
from nnkgraph.build import settings_of, solve_all
from nnkgraph.data import Features
from nnkgraph.executors import PATIENCE
from nnkgraph.find import find, notes_of, started
from nnkgraph.prepare import k_warnings, make_plan
from nnkgraph.rounding import check_digits
from nnkgraph.search import check_by_rows
from nnkgraph.search.sharded import Sharded
from nnkgraph.shards import check_shards
from nnkgraph.shards._part import part_of, shard_report, span_of
from nnkgraph.shards.parts import search_part, with_parts
from nnkgraph.stages import Stages

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from nnkgraph.shard import Shard
    from nnkgraph.shards._part import Arrays
    from nnkgraph.shards.file import Part


def search_shard(
    features: Features | ArrayLike,
    shard: Shard,
    /,
    *,
    k: int | None = None,
    kernel: str = "gaussian",
    search: str = "auto",
    scale: str = "none",
    duplicates: str = "merge",
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    resume: str | Path | None = None,
    patience: float = PATIENCE,
    beside: str | None = None,
    stages: Stages | None = None,
) -> Part:
    """Find the candidates of a part of the rows: `find_candidates` for a shard."""
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    settings: dict[str, Any] = {"scale": scale, "duplicates": duplicates, "seed": seed}
    plan = make_plan(
        features,
        k=k,
        kernel=kernel,
        search=search,
        scale=scale,
        duplicates=duplicates,
        executor=executor,
    )
    by_parts = isinstance(plan.search, Sharded)
    if by_parts:
        plan = with_parts(plan, shard)
    else:
        check_by_rows(plan.search, search)
    with started(
        features,
        plan,
        stages,
        seed=seed,
        workers=workers,
        resume=resume,
        patience=patience,
        beside=beside,
        shard=shard,
    ) as run:
        if by_parts:
            return search_part(features, run, shard, kernel, settings, stages)
        found = find(run, stages)
    arrays: Arrays = {"index": found.index, "distance": found.distance}
    notes = notes_of(run, found)
    said = {"notes": (*found.notes, *k_warnings(plan.k, run.rows))}
    settings = {"k": found.index.shape[1], "kernel": kernel, **settings}
    part = part_of("search", features, run, shard, found, arrays, settings, said)
    return replace(part, notes=notes)


def build_shard(
    features: Features | ArrayLike,
    shard: Shard,
    /,
    *,
    min_weight: float = 1e-8,
    min_degree: int = 0,
    scale: str = "none",
    duplicates: str = "merge",
    digits: int = 0,
    seed: int = 0,
    workers: int | str = 1,
    executor: str = "processes",
    resume: str | Path | None = None,
    patience: float = PATIENCE,
    beside: str | None = None,
    stages: Stages | None = None,
    **chosen: Any,
) -> tuple[Part, dict[str, Any]]:
    """Solve the neighborhoods of a part of the rows: `build_graph` for a shard.

    ``chosen`` are k, method, kernel, sigma, search and symmetrize, as for
    `build_graph`.

    Returns
    -------
    part : Part
        What `nnkgraph.shards.merge.merge_graph` makes a graph of.
    report : dict
        What is known about these rows.
    """
    stages = stages or Stages()
    features = features if isinstance(features, Features) else Features.of(features)
    common: dict[str, Any] = {"scale": scale, "duplicates": duplicates}
    weighing: dict[str, Any] = {"min_weight": min_weight, "min_degree": min_degree}
    chosen = {"k": None, **chosen}
    plan = make_plan(features, executor=executor, **common, **weighing, **chosen)
    check_shards(plan)
    check_digits(digits)
    with started(
        features,
        plan,
        stages,
        seed=seed,
        workers=workers,
        resume=resume,
        patience=patience,
        beside=beside,
        shard=shard,
    ) as run:
        candidates, fitted, found = solve_all(run, stages)
    span = span_of(run)
    known: Any = fitted
    local = getattr(known, "sigma", None) == "local"
    settings = settings_of(
        plan,
        candidates,
        sigma=None if local else fitted.bandwidth(candidates),
        **weighing,
        **common,
        seed=seed,
        **({"digits": digits} if digits else {}),
    )
    reach = report.reach(candidates)
    own = report.own_similarity(run.rows.x, candidates, fitted, plan.method, span.start)
    arrays: Arrays = {
        "index": candidates.index,
        "weights": found.weights,
        "errors": found.errors,
        "certificate": found.certificate,
        "own": own,
        "near": reach.near,
        "far": reach.far,
        "sigma": known.sigma_of_nodes(candidates.distance) if local else None,
    }
    said = {
        "notes": candidates.notes,
        "warnings": (*features.warnings, *k_warnings(plan.k, run.rows)),
        "tips": advice(plan, settings, duplicates),
    }
    part = part_of("graph", features, run, shard, candidates, arrays, settings, said)
    return part, shard_report(features, run, part, candidates, found, workers)
