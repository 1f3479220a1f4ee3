"""Shards: parts of a run as files, and how they are put together again.

A shard holds the blocks of its rows as a checkpoint keeps them: candidates, solutions
where it is one of a build, and what is known about its rows of the input.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph import __version__
from nnkgraph.build import report
from nnkgraph.build import run as runs
from nnkgraph.build.graph import Solved, advice, assembled
from nnkgraph.build.settings import (
    GraphCall,
    SearchCall,
    Settings,
    features_of,
    settings_of,
    split,
)
from nnkgraph.build.symmetrize import check_rule
from nnkgraph.data import SCHEMA, Candidates, Features, Graph, Neighborhoods
from nnkgraph.data.duplicates import Rows, candidates_with_copies
from nnkgraph.errors import InputError, NnkGraphError, ParameterError
from nnkgraph.kernels import mean_bandwidth
from nnkgraph.runtime import checkpoint, registry
from nnkgraph.runtime.archive import open_archive
from nnkgraph.runtime.arrays import IndexArray, new_array, within_memory
from nnkgraph.runtime.files import Outputs, is_temporary, open_source, show
from nnkgraph.search import check_by_rows, index_dtype
from nnkgraph.search.auto import judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from nnkgraph.build.settings import Running
    from nnkgraph.runtime.progress import Stages

_WRITTEN = re.compile(r"(auto|[0-9]{1,9})(?:/([0-9]{1,9}))?")
_SLURM = "SLURM_ARRAY_TASK_"
_PBS = ("PBS_ARRAY_INDEX", "PBS_ARRAYID")


@dataclass(frozen=True)
class Shard:
    """Part ``number`` of ``count``, counted from 1."""

    number: int
    count: int

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.count:
            raise ParameterError(
                f"there is no shard {self.number} of {self.count}: they are counted "
                "from 1"
            )

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def rows(self, n: int, grain: int = 1) -> range:
        """Return its part of n rows; parts begin at multiples of ``grain``.

        All parts together are all rows, each once. Where there are more parts than
        rows, some have none.
        """
        units = -(-n // grain)
        start, stop = (
            units * at // self.count for at in (self.number - 1, self.number)
        )
        return range(min(start * grain, n), min(stop * grain, n))

    @classmethod
    def of(cls, text: str, environment: Mapping[str, str] = os.environ) -> Shard:
        """Read ``I/N``, or ``auto`` or ``auto/N`` in a task of a job array.

        ``auto`` is the task's place among those of its Slurm array. With ``auto/N``
        the number of the task is that of the shard.
        """
        found = _WRITTEN.fullmatch(text)
        if found is None or (found[1] != "auto" and found[2] is None):
            raise ParameterError(
                f"{text!r} is no shard: write I/N with I from 1 to N, or auto or "
                "auto/N in a job array"
            )
        first, count = found.groups()
        if first != "auto":
            return cls(int(first), int(count))
        if count is None:
            return cls(*_place_in_slurm(environment))
        return cls(_task(environment)[1], int(count))


def _number(environment: Mapping[str, str], name: str) -> int | None:
    """Return the whole number that a variable holds; None where it is not set."""
    text = environment.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise ParameterError(f"{name} is {text!r}, which is no number") from error


def _task(environment: Mapping[str, str]) -> tuple[str, int]:
    """Return the variable with the number of this task, and the number."""
    for name in (f"{_SLURM}ID", *_PBS):
        number = _number(environment, name)
        if number is not None:
            return name, number
    raise ParameterError(
        f"auto is for the tasks of a job array, and neither {_SLURM}ID nor "
        f"{' nor '.join(_PBS)} is set; write I/N"
    )


def _place_in_slurm(environment: Mapping[str, str]) -> tuple[int, int]:
    """Return the place of a task in its array, from 1, and the size of the array."""
    name, task = _task(environment)
    advice = "write auto/N, with tasks from 1 to N"
    if name in _PBS:
        what = f"{name} says which task this is, but not of how many"
        raise ParameterError(f"{what}: {advice}")
    low, high, step, count = (
        _number(environment, _SLURM + one) for one in ("MIN", "MAX", "STEP", "COUNT")
    )
    step = 1 if step is None else step
    if low is None or high is None or step < 1:
        what = f"{_SLURM}MIN and {_SLURM}MAX do not say how many tasks there are"
        raise ParameterError(f"{what}: {advice}")
    place, rest = divmod(task - low, step)
    size = (high - low) // step + 1
    if rest or (count is not None and count != size) or not 0 <= place < size:
        what = f"tasks {low} to {high} of this array have gaps"
        raise ParameterError(f"{what}: {advice}")
    return place + 1, size


WHOLE = {
    "connect": "none",
    "grow": None,
    "max_k": None,
    "k_check": False,
    "updatable": False,
}
"""Options of build that look at all rows at once, and the values without effect."""


def check_shards(settings: Settings) -> None:
    """Refuse what a part of the rows cannot be solved with."""
    if not settings.method.local:
        raise ParameterError(
            f"method {registry.spec(settings.method)!r} looks at all rows at once: it "
            "cannot work by shards"
        )
    if settings.search.reads:
        return
    if settings.kernel.needs_all_rows:
        raise ParameterError(
            f"sigma {getattr(settings.kernel, 'sigma', '')!r} needs the candidates of "
            "all rows: search and merge shards of candidates first, then build with "
            "`search='precomputed:path=FILE'`; or use `sigma='local'` or a number"
        )
    check_by_rows(settings.search)


def check_alone(**settings: Any) -> None:
    """Refuse options of build that need all rows or all solutions."""
    for option, unused in WHOLE.items():
        if settings[option] not in {unused, None}:
            raise ParameterError(f"`{option}` needs all rows: it cannot work by shards")


_FILL = {"index": -1, "distance": np.inf, "weights": 0.0}
"""Arrays with a line of candidates for every row, and what shorter lines end with."""

_NEEDED = {
    "search": {"index", "distance"},
    "groups": {"row", "index", "distance"},
    "graph": set(_FILL),
}
_ALLOWED = {
    "search": {"first"},
    "groups": set(),
    "graph": {"first", "errors", "certificate", "own", "sigma"},
}
"""Arrays that shards hold, always or where there are such."""


@dataclass(frozen=True)
class Part:
    """A shard: the blocks of its rows, whose arrays may be yet to be read."""

    shard: Shard
    facts: dict[str, Any]
    """All that determines the blocks: see `Settings.facts`."""

    candidates: checkpoint.Block
    input: checkpoint.Block
    """What is known about its rows in the input file: copies and ids."""

    solve: checkpoint.Block | None = None
    path: str = ""
    notes: tuple[str, ...] = ()
    """What to tell who has just made it; never stored."""

    @property
    def name(self) -> str:
        """The file, safe to print."""
        return show(self.path)

    @property
    def kind(self) -> str:
        """``search`` for candidates, ``graph`` for solved neighborhoods.

        ``groups`` for what some groups of a search by partition found, of any rows.
        """
        if self.candidates.stage == "groups":
            return "groups"
        return "search" if self.solve is None else "graph"

    @property
    def rows(self) -> range:
        """Its rows among the distinct ones."""
        return self.candidates.rows

    @property
    def width(self) -> int:
        """Candidates of a row."""
        return int(self.candidates.arrays["index"].shape[1])

    @property
    def blocks(self) -> list[checkpoint.Block]:
        """All that there are."""
        return [one for one in (self.candidates, self.solve, self.input) if one]

    @property
    def settings(self) -> dict[str, Any]:
        """What the graph is to store."""
        return self.solve.about["settings"] if self.solve else {}

    @property
    def arrays(self) -> set[str]:
        """Names of all arrays."""
        return {name for one in self.blocks for name in one.arrays}

    def common(self) -> Iterator[dict[str, Any]]:
        """Yield what all shards of a run have in common."""
        named = self.input.about["ids"] is not None
        yield {**self.facts, "shard": ""}
        yield self.settings
        yield {**self.candidates.about, "notes": ""}
        yield {"arrays": sorted(self.arrays), "ids": named}


def write_part(path: str | os.PathLike[str], part: Part) -> None:
    """Write a shard, whole or not at all."""
    target = os.fspath(path)
    with Outputs(target) as outputs:
        checkpoint.write_blocks(outputs.open(target), part.facts, part.blocks)


def read_part(path: str | os.PathLike[str]) -> Part:
    """Read what a shard is; its arrays are left where they are."""
    spec = os.fspath(path)
    if is_temporary(spec):
        raise InputError(f"{show(spec)}: is being written; wait for the shard itself")
    source = open_source(spec)
    if source.path is None:
        raise InputError(f"{source.name}: a shard has to be a file: it is read twice")
    with open_archive(source) as archive:
        facts, blocks = checkpoint.read_contents(archive)
    stages = {one.stage: one for one in blocks}
    known = facts.get("nnkgraph")
    if known != __version__:
        raise InputError(
            f"{source.name}: was written by nnkgraph {known}, and this is {__version__}"
        )
    try:
        shard = Shard.of(facts["shard"], {})
        found = stages["groups"] if "groups" in stages else stages["candidates"]
        needed = found, stages["input"], stages.get("solve")
        part = Part(shard, facts, *needed, spec)
        _check_part(part, blocks)
    except (NnkGraphError, ValueError, TypeError, LookupError) as error:
        what = "is no shard of nnkgraph, or a damaged one"
        raise InputError(f"{source.name}: {what}") from error
    return part


def _check_part(part: Part, blocks: list[checkpoint.Block]) -> None:
    """Refuse what no run writes; arrays are looked at once they are read."""
    (n, columns), rows, lines = part.facts["shape"], part.rows, part.input.rows
    if not (type(n) is type(columns) is int and 0 < n < 2**62):
        raise ValueError("two numbers are needed")
    if not (rows.start <= rows.stop <= n and lines.start <= lines.stop <= n):
        raise ValueError("rows are out of order")
    if part.solve and (part.solve.rows != rows or not isinstance(part.settings, dict)):
        raise ValueError("solutions and candidates do not belong together")
    needed = _NEEDED[part.kind]
    sane = needed <= part.arrays <= needed | _ALLOWED[part.kind]
    if not sane or part.width < 0 or len(blocks) != len(part.blocks):
        raise ValueError("other arrays are needed")
    ids = part.input.about["ids"]
    if ids is not None and [type(one) for one in ids] != [str] * len(lines):
        raise ValueError("every row needs an id")


def _read_arrays(part: Part, n: int) -> dict[str, Any]:
    """Read the arrays of a shard of n rows and check them."""
    dtypes = {"index": index_dtype(n), "row": index_dtype(n), "first": np.int64}
    found: dict[str, Any] = {}
    with open_archive(open_source(part.path)) as archive:
        for block in part.blocks:
            like = {}
            for name in block.arrays:
                shape = (0, part.width) if name in _FILL else (0,)
                like[name] = np.empty(shape, dtypes.get(name, np.float64))
            place = block.stage, block.rows
            read = checkpoint.read_block(archive, part.facts, *place, like)
            if block.stage == "candidates":
                runs.check_candidates(read, n)
            elif block.stage == "groups":
                _check_groups(read, n)
            found |= read.arrays
    for key in ("weights", "errors", "own", "sigma"):
        if key in found and not np.isfinite(found[key]).all():
            raise InputError(f"{part.name}: {key!r} has values that are no number")
    if "weights" in found and (found["weights"] < 0).any():
        raise InputError(f"{part.name}: has weights below zero")
    return found


def _check_groups(block: checkpoint.Block, n: int) -> None:
    """Refuse lists of rows that there are not, or that hold themselves."""
    row, index = block.arrays["row"], block.arrays["index"]
    sane = row.size == 0 or (row[0] >= 0 and row[-1] < n and (np.diff(row) > 0).all())
    sane = sane and bool(((index >= -1) & (index < n)).all())
    if not sane or (index == row[:, np.newaxis]).any():
        raise InputError(f"{block.name}: its candidates are damaged")


def _part_of(
    run: runs.Run,
    shard: Shard,
    candidates: Candidates,
    arrays: dict[str, Any] | None = None,
    about: dict[str, Any] | None = None,
) -> Part:
    """Return a shard: its rows of the input reach to where the next one's begin."""
    features, rows, n = run.features, run.rows, len(run.rows.x)
    span = range(n) if run.span is None else run.span
    start, stop = span.start, span.stop
    if rows.origin is not None:
        ends = np.append(rows.origin, len(features.x))
        start, stop = int(ends[start]), int(ends[stop])
    lines = slice(start, stop)
    first = None if rows.first is None else rows.first[lines].astype(np.int64)
    ids = None if features.ids is None else features.ids[lines]
    known = {"name": features.name, "dtype": features.dtype, "ids": ids}
    return Part(
        shard,
        run.facts,
        runs.candidates_block(candidates, span, n),
        checkpoint.Block("input", range(start, stop), {"first": first}, known),
        None
        if arrays is None
        else checkpoint.Block("solve", span, arrays, about or {}),
    )


def _shard_report(
    run: runs.Run, part: Part, candidates: Candidates, found: Neighborhoods
) -> dict[str, Any]:
    """Return what is known about the rows of a shard."""
    nodes = np.arange(len(run.rows.x)) if run.rows.origin is None else run.rows.origin
    proof = report.certificate(found, nodes[part.rows.start : part.rows.stop])
    return {
        "schema": SCHEMA,
        "shard": str(part.shard),
        "rows": [part.rows.start, part.rows.stop],
        **part.settings,
        "certificate": proof.as_dict() if proof else None,
        "failure": found.failure,
        "error": report.error_facts(found.errors),
        "search": report.search_facts(candidates),
        "workers": run.pool.workers,
        "input": report.input_facts(run.features),
        "warnings": run.warnings,
        "notes": [*candidates.notes, *run.notes],
    }


@within_memory
def search_shard(
    features: Features | ArrayLike, shard: Shard, /, **options: Unpack[SearchCall]
) -> Part:
    """Find the candidates of a part of the rows: `find_candidates` for a shard."""
    chosen, running = split(options, SearchCall)
    features = features_of(features)
    settings = Settings.of(features, preset="paper", **chosen)
    if not settings.search.by_groups:
        check_by_rows(settings.search)
    with runs.open_run(features, settings, running, shard=shard) as run:
        by_rows = run
        if settings.search.by_groups:
            part = _searched_groups(run, shard)
            if part is not None:
                return replace(part, notes=tuple(run.warnings))
            # An exact search costs less, which every shard finds out for itself.
            exact = registry.create("search", "exact")
            by_rows = replace(run, settings=replace(settings, search=exact))
        found = by_rows.find()
    notes = (*found.notes, *run.warnings)
    part = _part_of(run, shard, replace(found, notes=notes))
    return replace(part, notes=(*notes, *run.notes))


def _searched_groups(run: runs.Run, shard: Shard) -> Part | None:
    """Search a shard's part of the groups, where there are to be groups."""
    search: Any = run.settings.search
    n = len(run.rows.x)
    with run.progress("search", n) as on_rows:
        wanted = run.wanted(min(run.settings.width, n - 1), on_rows)
        wanted = replace(wanted, checkpoint=run.checkpoint)
        found = search.find_part(wanted, shard.number - 1, shard.count)
    if found is None:
        return None
    arrays = dict(zip(("row", "index", "distance"), found, strict=True))
    about = {"backend": registry.spec(search), "recall": None}
    known = {"name": run.features.name, "dtype": run.features.dtype, "ids": None}
    return Part(
        shard,
        run.facts,
        checkpoint.Block("groups", range(len(found[0])), arrays, about),
        checkpoint.Block("input", range(0), {}, known),
    )


STORED = ("kernel", "metric", "scale", "pca", "duplicates", "seed")
"""What a file of candidates says besides k and the search."""


def merge_groups(
    found: list[Part], features: Features, running: Running
) -> tuple[Candidates, dict[str, Any]]:
    """Finish a search by partition whose groups were searched in shards.

    The features are needed again: the neighbors of neighbors are still to be compared.
    """
    facts = {**found[0].facts}
    del facts["shard"]
    names = ("k", "kernel", "search", "scale", "pca", "duplicates", "seed")
    given = {name: facts[name] for name in names if name in facts}
    settings = Settings.of(features, preset="paper", **given)
    what, one, two = checkpoint.difference(facts, settings.facts(features))
    if what:
        raise InputError(f"{features.name}: {what} is {two}, and the shards have {one}")
    search: Any = settings.search
    with runs.open_run(features, settings, running) as run:
        n = len(run.rows.x)
        with run.progress("search", n) as on_rows:
            wanted = run.wanted(min(settings.width, n - 1), on_rows)
            read = (_read_arrays(part, n) for part in found)
            lists = ((one["row"], one["index"], one["distance"]) for one in read)
            candidates = judged(search.finish(wanted, lists), wanted, search)
    candidates = candidates_with_copies(candidates, run.rows)
    candidates = replace(candidates, ids=features.ids)
    stored = {name: facts[name] for name in STORED if name in facts}
    stored |= {"k": candidates.index.shape[1], "search": candidates.backend}
    return candidates, report.provenance(features, stored)


@within_memory
def build_shard(
    features: Features | ArrayLike, shard: Shard, /, **options: Unpack[GraphCall]
) -> tuple[Part, dict[str, Any]]:
    """Solve the neighborhoods of a part of the rows: `build_graph` for a shard.

    Returns the shard, and a report of what is known about these rows.
    """
    chosen, running = split(options, GraphCall)
    features = features_of(features)
    settings = settings_of(features, chosen)
    check_shards(settings)
    with runs.open_run(features, settings, running, shard=shard) as run:
        candidates, fitted, found = run.solve()
    start = run.span.start if run.span else 0
    known: Any = fitted
    local = getattr(known, "sigma", None) == "local"
    arrays = {
        "weights": found.weights,
        "errors": found.errors,
        "certificate": found.certificate,
        "own": report.own_similarity(
            run.rows.x, candidates, fitted, settings.method, start
        ),
        "sigma": known.sigma_of_nodes(candidates.distance) if local else None,
    }
    about = {
        "settings": settings.stored(
            sigma=None if local else fitted.bandwidth(candidates),
            search=candidates.backend,
            scaling=run.scaling,
        ),
        "warnings": replace(run, checkpoint=None).warnings,
        "tips": advice(settings),
    }
    part = _part_of(run, shard, candidates, arrays, about)
    return part, _shard_report(run, part, candidates, found)


_SHOWN = 10


def read_parts(paths: Sequence[str | os.PathLike[str]]) -> list[Part]:
    """Read what some shards are, in the order of their rows; all have to be there."""
    found = [read_part(path) for path in paths]
    first = found[0]
    for part in found:
        _check_same_run(first, part)
    found.sort(key=lambda part: part.shard.number)
    for one, other in pairwise(found):
        if one.shard == other.shard:
            raise InputError(f"{one.name} and {other.name} are both shard {one.shard}")
    count = first.shard.count
    missing = count - len(found)
    if missing:
        there = {part.shard.number for part in found}
        numbers = (number for number in range(1, count + 1) if number not in there)
        shown = ", ".join(map(str, islice(numbers, _SHOWN)))
        more = f" and {missing - _SHOWN} more" if missing > _SHOWN else ""
        noun = "shard is" if missing == 1 else "shards are"
        raise InputError(f"{missing} {noun} missing of {count}: {shown}{more}")
    if first.kind != "groups":
        _check_rows(found)
    return found


def _check_same_run(first: Part, other: Part) -> None:
    """Refuse a shard that does not belong to another, and say why."""
    names = f"{first.name} and {other.name} do not belong together"
    if first.kind != other.kind:
        raise InputError(f"{names}: a {first.kind} shard and a {other.kind} shard")
    if first.shard.count != other.shard.count:
        raise InputError(f"{names}: they are shards {first.shard} and {other.shard}")
    for known, facts in zip(first.common(), other.common(), strict=True):
        what, one, two = checkpoint.difference(known, facts)
        if what:
            raise InputError(f"{names}: {what} is {one} and {two}")


def _check_rows(parts: list[Part]) -> None:
    """Refuse rows that are missing or in two shards."""
    ends = {"candidates": parts[-1].rows.stop, "input": parts[0].facts["shape"][0]}
    for stage, end in ends.items():
        at = 0
        for part in parts:
            own: range = getattr(part, stage).rows
            if own.start != at:
                state = "in two shards" if own.start < at else "missing"
                low, high = sorted((own.start, at))
                raise InputError(f"{part.name}: rows {low} to {high - 1} are {state}")
            at = own.stop
        if at != end:
            raise InputError(f"{parts[-1].name}: rows {at} to {end - 1} are missing")


def _collected(found: list[Part], progress: Stages) -> dict[str, Any]:
    """Put the arrays of all shards into one of each; shorter lines are filled up."""
    n, total = found[-1].rows.stop, found[-1].input.rows.stop
    width = max(part.width for part in found)
    whole: dict[str, Any] = {}
    with progress("read", len(found), "shards") as on_shard:
        for part in found:
            for key, values in _read_arrays(part, n).items():
                length, rows = n, part.rows
                if key == "first":
                    length, rows = total, part.input.rows
                if key not in whole:
                    shape = (length, width) if key in _FILL else (length,)
                    whole[key] = new_array(shape, values.dtype)
                place = whole[key][rows.start : rows.stop]
                if key in _FILL:
                    place[:, part.width :] = _FILL[key]
                    place = place[:, : part.width]
                place[...] = values
            on_shard(1)
    return whole


def _rows(first: IndexArray | None, part: Part, n: int) -> Rows:
    """Return which rows are copies, so that n are left, once they can be."""
    known = np.arange(n) if first is None else first
    every = np.arange(len(known))
    sane = ((known >= 0) & (known <= every)).all() and (known[known] == known).all()
    keep = part.facts["duplicates"] == "keep"
    origin = every if keep else np.flatnonzero(known == every)
    if not sane or (len(every), len(origin)) != (part.facts["shape"][0], n):
        raise InputError(f"{part.name}: what it says about copies is damaged")
    return Rows(None, first, None if len(origin) == len(every) else origin)


def _merged(found: list[Part], progress: Stages) -> tuple[Any, Candidates, Rows]:
    """Return all arrays, and of them the candidates and what is known of copies."""
    whole = _collected(found, progress)
    block = replace(found[0].candidates, arrays=whole)
    rows = _rows(whole.get("first"), found[0], len(whole["index"]))
    ids = tuple(one for part in found for one in part.input.about["ids"] or ())
    if len(set(ids)) != len(ids):
        raise InputError(f"{found[0].name}: two nodes have the same id")
    return whole, replace(runs.kept_candidates(block), ids=ids or None), rows


def merge_candidates(
    found: list[Part], progress: Stages
) -> tuple[Candidates, dict[str, Any]]:
    """Return the candidates of all rows, and their provenance."""
    _, candidates, rows = _merged(found, progress)
    candidates = candidates_with_copies(candidates, rows)
    facts = found[0].facts
    settings = {name: facts[name] for name in STORED if name in facts}
    settings |= {"k": candidates.index.shape[1], "search": candidates.backend}
    return candidates, report.provenance_of(_input(found[0]), settings)


def merge_graph(found: list[Part], progress: Stages) -> Graph:
    """Return the graph that ``build`` makes of all rows at once."""
    solved = read_solved(found, progress)
    with progress("symmetrize"):
        return assembled(solved)


def read_solved(found: list[Part], progress: Stages) -> Solved:
    """Read the solved neighborhoods of all rows."""
    part, settings = found[0], dict(found[0].settings)
    _check_settings(settings, part)
    whole, candidates, rows = _merged(found, progress)
    if "sigma" in whole:
        settings["sigma"] = mean_bandwidth(whole["sigma"])
    about = part.solve.about if part.solve else {}
    kernel: Any = None
    if settings.get("weights") == "kernel":
        kernel = registry.create("kernels", settings["kernel"])
        if kernel.needs_all_rows:
            kernel = replace(kernel, sigma=settings["sigma"])
    return Solved(
        candidates,
        Neighborhoods(whole["weights"], whole.get("errors"), whole.get("certificate")),
        rows,
        whole.get("own"),
        settings,
        _input(part),
        candidates.ids,
        facts={"shards": len(found)},
        tips=str(about.get("tips", "")),
        kernel=kernel,
        warnings=tuple(map(str, about.get("warnings", ()))),
        notes=candidates.notes,
    )


def _input(part: Part) -> dict[str, Any]:
    """Return what `report.input_facts` says about the features."""
    return {
        "name": str(part.input.about.get("name", "")),
        "shape": part.facts["shape"],
        "dtype": str(part.input.about.get("dtype", "")),
        "sha256": part.facts["sha256 of the features"],
    }


def _check_settings(settings: dict[str, Any], part: Part) -> None:
    """Refuse settings that no build has."""
    try:
        method = registry.create("methods", settings["method"])
        check_rule(settings["rule"], has_error=method.has_error, method="")
        Settings.check_digits(settings.get("digits", 0))
        if "weights" in settings:
            from nnkgraph.build.weights import check_weights

            kernel = registry.create("kernels", settings["kernel"])
            check_weights(settings["weights"], method, kernel)
        sane = (
            settings["min_degree"] >= 0
            and 0 <= settings["min_weight"] < math.inf
            and isinstance(settings["sigma"], int | float | None)
            and method.has_error == ("errors" in part.arrays)
        )
    except (ParameterError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{part.name}: its settings are damaged: {error}") from error
    if not sane:
        raise InputError(f"{part.name}: its settings are damaged")
