"""Shards: parts of a run as files, and how they are put together again."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from nnkgraph import __version__
from nnkgraph.build import report
from nnkgraph.build.graph import Solved, advice, assembled
from nnkgraph.build.report import Reach, provenance_of
from nnkgraph.build.run import ABOUT, open_run
from nnkgraph.build.settings import (
    GraphCall,
    SearchCall,
    Settings,
    check_digits,
    features_of,
    split,
)
from nnkgraph.build.symmetrize import check_rule
from nnkgraph.data import Candidates, Neighborhoods
from nnkgraph.data.duplicates import Rows, candidates_with_copies
from nnkgraph.errors import InputError, NnkGraphError, ParameterError
from nnkgraph.formats import parse_provenance
from nnkgraph.kernels import mean_bandwidth
from nnkgraph.runtime import registry
from nnkgraph.runtime.archive import Archive, open_archive
from nnkgraph.runtime.arrays import new_array, within_memory
from nnkgraph.runtime.checkpoint import (
    difference,
    fingerprint,
    read_rows,
    run_of,
    write_rows,
)
from nnkgraph.runtime.files import Outputs, is_temporary, open_source, show
from nnkgraph.search import check_by_rows, index_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from nnkgraph.build.run import Run
    from nnkgraph.data import Features, Graph, IndexArray
    from nnkgraph.runtime.progress import Stages

    AnyPath = str | os.PathLike[str]
    Arrays = dict[str, Any]

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

        Raises
        ------
        ParameterError
            For anything else, and where the environment does not tell.
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
    if name in _PBS:
        raise ParameterError(
            f"{name} says which task this is, but not of how many: write auto/N, with "
            "tasks from 1 to N"
        )
    low, high, step, count = (
        _number(environment, _SLURM + one) for one in ("MIN", "MAX", "STEP", "COUNT")
    )
    step = 1 if step is None else step
    if low is None or high is None or step < 1:
        raise ParameterError(
            f"{_SLURM}MIN and {_SLURM}MAX do not say how many tasks there are: write "
            "auto/N, with tasks from 1 to N"
        )
    place, rest = divmod(task - low, step)
    size = (high - low) // step + 1
    if rest or (count is not None and count != size) or not 0 <= place < size:
        raise ParameterError(
            f"tasks {low} to {high} of this array have gaps: write auto/N, with tasks "
            "from 1 to N"
        )
    return place + 1, size


WHOLE = {"connect": "none", "grow": None, "max_k": None, "k_check": False}
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


SCHEMA = 1

_LISTS = {"index", "distance", "weights"}
"""Arrays with a line of candidates for every row."""

_INPUT = {"first", "ids"}
"""Arrays about the rows of the input file, of which some may be copies."""

_NEEDED = {
    "search": {"index", "distance"},
    "graph": {"index", "weights", "near", "far"},
}
_ALLOWED = {
    "search": {"first"},
    "graph": {"errors", "certificate", "own", "sigma", "first", "ids"},
}
"""Arrays that shards hold, always or where there are such."""


@dataclass(frozen=True)
class Part:
    """A shard: what it is, and its arrays, which may be yet to be read."""

    kind: str
    """``search`` for candidates, ``graph`` for solved neighborhoods.
    """

    shard: Shard

    rows: range
    """Its rows among the distinct ones."""

    lines: range
    """Its rows in the input file."""

    common: dict[str, Any]
    """What all shards of a run have in common; plain JSON values."""

    said: dict[str, Any]
    """What users are told; it may differ between the shards of a run."""

    arrays: dict[str, NDArray[Any]]

    path: str = ""
    """The file it was read from."""

    width: int = 0
    """Candidates of a row."""

    notes: tuple[str, ...] = ()
    """What to tell who has just made it; never stored."""

    @property
    def name(self) -> str:
        """The file, safe to print."""
        return show(self.path)

    @property
    def run(self) -> str:
        """Fingerprint of all that the shards of a run have in common."""
        return fingerprint({"kind": self.kind, "of": self.shard.count, **self.common})


def write_part(path: str | os.PathLike[str], part: Part) -> None:
    """Write a shard, whole or not at all."""
    target = os.fspath(path)
    about = {
        "schema": SCHEMA,
        "kind": part.kind,
        "shard": [part.shard.number, part.shard.count],
        "rows": [part.rows.start, part.rows.stop],
        "lines": [part.lines.start, part.lines.stop],
        "common": part.common,
        "said": part.said,
    }
    with Outputs(target) as outputs:
        stream = outputs.open(target)
        text = json.dumps(about, sort_keys=True, allow_nan=False)
        write_rows(stream, part.run, text, part.arrays)


def read_part(path: str | os.PathLike[str]) -> Part:
    """Read what a shard is; its arrays are left where they are.

    Raises
    ------
    InputError
        Where it is no shard, or a damaged one.
    """
    spec = os.fspath(path)
    if is_temporary(spec):
        raise InputError(f"{show(spec)}: is being written; wait for the shard itself")
    source = open_source(spec)
    if source.path is None:
        raise InputError(f"{source.name}: a shard has to be a file: it is read twice")
    with open_archive(source) as archive:
        run = run_of(archive)
        if not run:
            raise InputError(f"{archive.name}: is no shard of a search or a build")
        about = parse_provenance(archive.text("about"), archive.name)
        try:
            part = _part(about, archive, spec)
        except NnkGraphError:
            raise  # a ValueError too, but it says more
        except (ValueError, TypeError, LookupError) as error:
            raise InputError(
                f"{archive.name}: is no shard of nnkgraph, or a damaged one"
            ) from error
        if part.run != run:
            raise InputError(
                f"{archive.name}: is damaged: it is not of the run it says"
            )
        return part


def _part(about: Any, archive: Archive, path: str) -> Part:
    if about["schema"] != SCHEMA or about["kind"] not in _NEEDED:
        raise InputError(f"{archive.name}: was written by another version of nnkgraph")
    rows, lines = (range(*_ends(about[key])) for key in ("rows", "lines"))
    common, said = about["common"], about["said"]
    if not (isinstance(common, dict) and isinstance(said, dict)):
        raise TypeError("objects are needed")
    _ends([rows.stop, common["distinct"]])
    _ends([lines.stop, common["shape"][0]])
    _ends([common["distinct"], common["shape"][0]], least=1)
    if not all(isinstance(common[key], dict) for key in ("facts", "settings")):
        raise TypeError("objects are needed")
    _check_search(common["search"])
    shape, kind = archive.headers["index"].shape, about["kind"]
    others = {*common["arrays"]} - _NEEDED[kind]
    whole = others | _NEEDED[kind] == {*common["arrays"]} and others <= _ALLOWED[kind]
    if not whole or len(shape) != 2 or shape[0] != len(rows):
        raise InputError(f"{archive.name}: is not the block it should be")
    shard = Shard(*_ends(about["shard"], least=1))
    return Part(kind, shard, rows, lines, common, said, {}, path, shape[1])


def _check_search(about: dict[str, Any]) -> None:
    kinds = {name: kind for name, kind in ABOUT.items() if name != "notes"}
    if about.keys() != kinds.keys():
        raise ValueError("other facts are needed")
    for name, kind in kinds.items():
        if not isinstance(about[name], kind):
            raise TypeError(f"{name} is no {kind}")


def _ends(pair: Any, least: int = 0) -> tuple[int, int]:
    """Return two whole numbers that are in order."""
    start, stop = pair
    if not (type(start) is type(stop) is int and least <= start <= stop < 2**62):
        raise ValueError("two numbers in order are needed")
    return start, stop


def read_arrays(part: Part) -> dict[str, Any]:
    """Read the arrays of a shard and check them."""
    n, rows, width = part.common["distinct"], len(part.rows), part.width
    small = np.int32 if n <= np.iinfo(np.int32).max else np.int64
    found: dict[str, Any] = {}
    with open_archive(open_source(part.path)) as archive:
        if run_of(archive) != part.run:
            raise InputError(f"{archive.name}: was changed while it was read")
        for key in part.common["arrays"]:
            if key == "ids":
                found[key] = archive.strings(key)
                if len(found[key]) != len(part.lines):
                    raise InputError(f"{archive.name}: is not the block it should be")
                continue
            length = len(part.lines) if key in _INPUT else rows
            shape = (length, width) if key in _LISTS else (length,)
            dtype = {"index": small, "first": np.int64}.get(key, np.float64)
            found[key] = read_rows(archive, key, shape, dtype)
    _check_index(found["index"], part.rows, n, part.name)
    for key in ("weights", "errors", "own", "sigma"):
        values = found.get(key)
        if values is not None and not np.isfinite(values).all():
            raise InputError(f"{part.name}: {key!r} has values that are no number")
    if "weights" in found and (found["weights"] < 0).any():
        raise InputError(f"{part.name}: has weights below zero")
    return found


def _check_index(index: NDArray[Any], rows: range, n: int, name: str) -> None:
    """Refuse row numbers that do not exist, are the row's own, or come twice."""
    if not index.size:
        return
    own = np.arange(rows.start, rows.stop)[:, np.newaxis]
    ordered = np.sort(index, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    outside = ordered[:, 0].min() < -1 or ordered[:, -1].max() >= n
    if outside or (index == own).any() or twice.any():
        raise InputError(f"{name}: its candidates are damaged")


def part_of(
    kind: str,
    run: Run,
    shard: Shard,
    candidates: Candidates,
    arrays: Arrays,
    settings: dict[str, Any],
    said: dict[str, Any],
) -> Part:
    """Return a shard: its rows of the input reach to where the next one's begin."""
    features, rows, total = run.features, run.rows, len(run.features.x)
    span = range(len(rows.x)) if run.span is None else run.span
    start, stop = span.start, span.stop
    if rows.origin is not None:
        ends = np.append(rows.origin, total)
        start, stop = int(ends[start]), int(ends[stop])
    lines = slice(start, stop)
    if rows.first is not None:
        arrays["first"] = rows.first[lines].astype(np.int64)
    if features.ids is not None and kind == "graph":
        arrays["ids"] = np.array(features.ids[lines], dtype=np.str_)
    kept = {name: one for name, one in arrays.items() if one is not None}
    kept["index"] = kept["index"].astype(index_dtype(len(rows.x)), copy=False)
    known = report.input_facts(features)
    common = {
        "facts": run.facts,
        "settings": settings,
        "search": {one: getattr(candidates, one) for one in ABOUT if one != "notes"},
        "shape": known["shape"],
        "sha256": known["sha256"],
        "distinct": len(rows.x),
        "arrays": sorted(kept),
    }
    said |= {"name": known["name"], "dtype": known["dtype"]}
    return Part(kind, shard, span, range(start, stop), common, said, kept)


def shard_report(
    run: Run, part: Part, candidates: Candidates, found: Neighborhoods
) -> dict[str, Any]:
    """Return what is known about the rows of a shard."""
    nodes = np.arange(len(run.rows.x)) if run.rows.origin is None else run.rows.origin
    proof = report.certificate(found, nodes[part.rows.start : part.rows.stop])
    return {
        "schema": 1,
        "shard": str(part.shard),
        "rows": [part.rows.start, part.rows.stop],
        **part.common["settings"],
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
    settings = Settings.of(features, **chosen)
    check_by_rows(settings.search)
    with open_run(features, settings, running, shard=shard) as run:
        found = run.find()
    stored = {
        "k": found.index.shape[1],
        "kernel": registry.spec(settings.kernel),
        "scale": settings.scale,
        "duplicates": settings.duplicates,
        "seed": settings.seed,
    }
    arrays: Arrays = {"index": found.index, "distance": found.distance}
    said = {"notes": (*found.notes, *run.warnings)}
    part = part_of("search", run, shard, found, arrays, stored, said)
    return replace(part, notes=(*found.notes, *run.warnings, *run.notes))


@within_memory
def build_shard(
    features: Features | ArrayLike, shard: Shard, /, **options: Unpack[GraphCall]
) -> tuple[Part, dict[str, Any]]:
    """Solve the neighborhoods of a part of the rows: `build_graph` for a shard.

    Returns
    -------
    part : Part
        What `nnkgraph.build.shards.merge_graph` makes a graph of.
    report : dict
        What is known about these rows.
    """
    chosen, running = split(options, GraphCall)
    features = features_of(features)
    settings = Settings.of(features, **chosen)
    check_shards(settings)
    with open_run(features, settings, running, shard=shard) as run:
        candidates, fitted, found = run.solve()
    start = run.span.start if run.span else 0
    known: Any = fitted
    local = getattr(known, "sigma", None) == "local"
    stored = settings.stored(
        sigma=None if local else fitted.bandwidth(candidates),
        search=candidates.backend,
    )
    reach, x = report.reach(candidates), run.rows.x
    arrays: Arrays = {
        "index": candidates.index,
        "weights": found.weights,
        "errors": found.errors,
        "certificate": found.certificate,
        "own": report.own_similarity(x, candidates, fitted, settings.method, start),
        "near": reach.near,
        "far": reach.far,
        "sigma": known.sigma_of_nodes(candidates.distance) if local else None,
    }
    said = {
        "notes": candidates.notes,
        "warnings": replace(run, checkpoint=None).warnings,
        "tips": advice(settings),
    }
    part = part_of("graph", run, shard, candidates, arrays, stored, said)
    return part, shard_report(run, part, candidates, found)


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
    found: list[Part], progress: Stages
) -> tuple[Candidates, dict[str, Any]]:
    """Return the candidates of all rows, and their provenance."""
    part = found[0]
    with progress("read", len(found), "shards") as on_shard:
        whole = _collected(found, on_shard)
    candidates = _candidates(whole["index"], whole["distance"], part)
    candidates = candidates_with_copies(candidates, _rows(whole.get("first"), part))
    settings = {**part.common["settings"], "search": candidates.backend}
    return candidates, provenance_of(part.common, settings)


def merge_graph(found: list[Part], progress: Stages) -> Graph:
    """Return the graph that ``build`` makes of all rows at once."""
    solved = read_solved(found, progress)
    with progress("symmetrize"):
        return assembled(solved)


def read_solved(found: list[Part], progress: Stages) -> Solved:
    """Read the solved neighborhoods of all rows."""
    part = found[0]
    settings = dict(part.common["settings"])
    _check_settings(settings, part)
    with progress("read", len(found), "shards") as on_shard:
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
