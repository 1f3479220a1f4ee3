"""Shards of one run, put together: candidates, or a graph as ``build`` makes it."""

from __future__ import annotations

import math
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph import __version__, registry
from nnkgraph.assemble import Solved, assembled
from nnkgraph.bounded import new_array
from nnkgraph.data import Candidates, Neighborhoods
from nnkgraph.duplicates import Rows, candidates_with_copies
from nnkgraph.errors import InputError, ParameterError
from nnkgraph.fingerprint import difference
from nnkgraph.kernels._bandwidth import mean_bandwidth
from nnkgraph.report import Reach, provenance_of
from nnkgraph.rounding import check_digits
from nnkgraph.shards.file import read_arrays, read_part
from nnkgraph.shards.parts import check_all_rows, combined
from nnkgraph.symmetrize import check_rule

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from nnkgraph.data import Graph, IndexArray
    from nnkgraph.shards.file import Part
    from nnkgraph.stages import Stages

    AnyPath = str | os.PathLike[str]

_SHOWN = 10


def read_parts(paths: Sequence[AnyPath]) -> list[Part]:
    """Read what some shards are, in the order of their rows; all have to be there.

    Raises
    ------
    InputError
        Where a shard is damaged, missing, there twice or of another run; the message
        names it.
    """
    found = [read_part(path) for path in paths]
    first = found[0]
    if first.common["facts"].get("nnkgraph") != __version__:
        raise InputError(
            f"{first.name}: was written by nnkgraph "
            f"{first.common['facts'].get('nnkgraph')}, and this is {__version__}"
        )
    for part in found:
        _check_same_run(first, part)
    found.sort(key=lambda part: part.shard.number)
    for one, other in pairwise(found):
        if one.shard == other.shard:
            raise InputError(f"{one.name} and {other.name} are both shard {one.shard}")
    missing = first.shard.count - len(found)
    if missing:
        numbers = ", ".join(map(str, islice(_missing(found), _SHOWN)))
        more = f" and {missing - _SHOWN} more" if missing > _SHOWN else ""
        noun = "shard is" if missing == 1 else "shards are"
        raise InputError(
            f"{missing} {noun} missing of {first.shard.count}: {numbers}{more}"
        )
    if first.kind == "part":
        check_all_rows(found)
    else:
        _check_rows(found)
    return found


def _missing(found: list[Part]) -> Iterator[int]:
    there = {part.shard.number for part in found}
    count = found[0].shard.count
    return (number for number in range(1, count + 1) if number not in there)


def _check_same_run(first: Part, other: Part) -> None:
    """Refuse a shard that does not belong to another, and say why."""
    if first.run == other.run:
        return
    names = f"{first.name} and {other.name} do not belong together"
    if first.kind != other.kind:
        raise InputError(f"{names}: a {first.kind} shard and a {other.kind} shard")
    if first.shard.count != other.shard.count:
        raise InputError(f"{names}: they are shards {first.shard} and {other.shard}")
    for key in ("facts", "settings", "search"):
        what, one, two = difference(first.common[key], other.common[key])
        if what:
            raise InputError(f"{names}: {what} is {one} and {two}")
    what, one, two = difference(first.common, other.common)
    raise InputError(f"{names}: {what} is {one} and {two}")


def _check_rows(parts: list[Part]) -> None:
    """Refuse rows that are missing or in two shards."""
    ends = (parts[0].common["distinct"], parts[0].common["shape"][0])
    for what, end in zip(("rows", "lines"), ends, strict=True):
        at = 0
        for part in parts:
            own = getattr(part, what)
            if own.start != at:
                state = "in two shards" if own.start < at else "missing"
                low, high = sorted((own.start, at))
                raise InputError(f"{part.name}: rows {low} to {high - 1} are {state}")
            at = own.stop
        if at != end:
            raise InputError(f"{parts[-1].name}: rows {at} to {end - 1} are missing")


def _collected(found: list[Part], on_shard: Callable[[int], object]) -> dict[str, Any]:
    """Put the arrays of all shards into one of each; shorter lists are filled up."""
    common = found[0].common
    width = max(part.width for part in found)
    whole: dict[str, Any] = {}
    for part in found:
        for key, values in read_arrays(part).items():
            if key == "ids":
                whole.setdefault(key, []).extend(values)
                continue
            rows = part.lines if key == "first" else part.rows
            if key not in whole:
                total = common["shape"][0] if key == "first" else common["distinct"]
                shape = (total, width) if values.ndim == 2 else (total,)
                whole[key] = new_array(shape, values.dtype)
            place = whole[key][rows.start : rows.stop]
            if values.ndim == 2:
                place[:, values.shape[1] :] = -1 if key == "index" else 0
                place = place[:, : values.shape[1]]
            place[...] = values
        on_shard(1)
    return whole


def _rows(first: IndexArray | None, part: Part) -> Rows:
    """Return which rows are copies, once they can be."""
    every = np.arange(part.common["shape"][0])
    origin = every
    if first is not None:
        known = (first >= 0) & (first <= every)
        if not known.all() or (first[first] != first).any():
            raise InputError(f"{part.name}: what it says about copies is damaged")
        if part.common["settings"].get("duplicates") != "keep":
            origin = np.flatnonzero(first == every)
    if len(origin) != part.common["distinct"]:
        raise InputError(f"{part.name}: what it says about copies is damaged")
    return Rows(None, first, None if len(origin) == len(every) else origin)


def _candidates(index: Any, distance: Any, part: Part) -> Candidates:
    about = part.common["search"]
    return Candidates(index, distance, notes=_texts(part, "notes"), **about)


def _texts(part: Part, key: str) -> tuple[str, ...]:
    return tuple(map(str, part.said.get(key, ())))


def merge_candidates(
    found: list[Part], stages: Stages
) -> tuple[Candidates, dict[str, Any]]:
    """Return the candidates of all rows, and their provenance."""
    part = found[0]
    with stages("read", len(found), "shards") as on_shard:
        collect = combined if part.kind == "part" else _collected
        whole = collect(found, on_shard)
    candidates = _candidates(whole["index"], whole["distance"], part)
    candidates = candidates_with_copies(candidates, _rows(whole.get("first"), part))
    settings = {**part.common["settings"], "search": candidates.backend}
    return candidates, provenance_of(part.common, settings)


def merge_graph(found: list[Part], stages: Stages) -> Graph:
    """Return the graph that ``build`` makes of all rows at once."""
    solved = read_solved(found, stages)
    with stages("symmetrize"):
        return assembled(solved)


def read_solved(found: list[Part], stages: Stages) -> Solved:
    """Read the solved neighborhoods of all rows."""
    part = found[0]
    settings = dict(part.common["settings"])
    _check_settings(settings, part)
    with stages("read", len(found), "shards") as on_shard:
        whole = _collected(found, on_shard)
    ids = tuple(whole["ids"]) if "ids" in whole else None
    if ids is not None and len(set(ids)) != len(ids):
        raise InputError(f"{part.name}: two nodes have the same id")
    if "sigma" in whole:
        settings["sigma"] = mean_bandwidth(whole["sigma"])
    index = whole["index"]
    return Solved(
        _candidates(index, np.empty((len(index), 0)), part),
        Neighborhoods(whole["weights"], whole.get("errors"), whole.get("certificate")),
        _rows(whole.get("first"), part),
        whole.get("own"),
        Reach(whole["near"], whole["far"]),
        settings,
        {
            "name": str(part.said.get("name", "")),
            "shape": part.common["shape"],
            "dtype": str(part.said.get("dtype", "")),
            "sha256": part.common["sha256"],
        },
        ids,
        facts={"shards": len(found)},
        tips=str(part.said.get("tips", "")),
        warnings=_texts(part, "warnings"),
        notes=_texts(part, "notes"),
    )


def _check_settings(settings: dict[str, Any], part: Part) -> None:
    """Refuse settings that no build has."""
    try:
        method = registry.create("methods", settings["method"])
        check_rule(settings["rule"], has_error=method.has_error, method="")
        check_digits(settings.get("digits", 0))
        sane = (
            settings["min_degree"] >= 0
            and 0 <= settings["min_weight"] < math.inf
            and isinstance(settings["sigma"], int | float | None)
            and method.has_error == ("errors" in part.common["arrays"])
        )
    except (ParameterError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{part.name}: its settings are damaged: {error}") from error
    if not sane:
        raise InputError(f"{part.name}: its settings are damaged")
