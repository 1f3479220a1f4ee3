"""nnkgraph update: rows added to a graph, and rows removed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph import formats
from nnkgraph.cli import options, outcome, talk
from nnkgraph.cli.files import Files, folder_of, read_graph
from nnkgraph.errors import InputError, NnkGraphError, ParameterError, ResourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nnkgraph.build.update import Change
    from nnkgraph.data import Features, Graph
    from nnkgraph.runtime.files import Outputs

_RECORD = ".nnk.json"
"""How the file ends that says which update features were written by."""


@dataclass(frozen=True)
class _Asked:
    """What is to be done."""

    graph: str
    features: str
    add: str | None
    add_ids: str | None
    remove: str | None
    output: str
    write_features: str | None

    @property
    def in_place(self) -> bool:
        """Whether the features are replaced by those of the new graph."""
        path = self.write_features
        return path is not None and _same(formats.split_item(path)[0], self.features)

    @property
    def record(self) -> Path:
        """The file that says which update the features were written by."""
        path = formats.split_item(self.write_features or "")[0]
        return Path(os.path.realpath(path) + _RECORD)


@dataclass(frozen=True)
class _Inputs:
    """What was read."""

    graph: Graph
    features: Features
    add: Features | None
    removed: list[Any]


def _same(one: str, other: str) -> bool:
    """Return whether two names are those of one file."""
    return os.path.realpath(one) == os.path.realpath(formats.split_item(other)[0])


@options.command
@options.graph_arg
@options.file("--features", "What GRAPH was built from.", required=True)
@options.file("--add", "New rows.")
@options.file("--remove", "Ids of rows that go, or their numbers from 0, one a line.")
@options.output("Where the new graph goes; it may be GRAPH itself.", required=True)
@options.file(
    "--write-features",
    "Write the features of the new graph, .npy, .h5 or .parquet; it may be the file "
    "of --features.",
)
@options.shared("workers executor memory block_timeout")
@options.for_features
@options.ids_of("the rows of --add", "--add-ids")
@options.shared("no_clobber report")
def command(
    files: Files,
    report: str | None,
    memory: int | None,
    workers: Any,
    executor: str,
    block_timeout: float,
    **given: Any,
) -> None:
    """Add rows to GRAPH and remove others.

    It costs what changed. The result is what 'nnkgraph build --like GRAPH' makes of
    the rows together, to the byte where the search is exact: the old rows that stay,
    in their order, then the new ones. It takes little time for graphs that were built
    with --updatable; others are built again. Features are written before the graph
    is, and the same line goes on where it was ended: nothing is added twice.

    \b
    Examples:
      nnkgraph update graph.npz --features all.npy --add new.npy -o graph.npz \\
        --write-features all.npy
      nnkgraph update g.npz --features 'parts/*.npy' --add new.npy -o g.npz
      nnkgraph update old.npz --features old.h5 --remove gone.txt -o new.npz
    """
    from nnkgraph.build.settings import Running
    from nnkgraph.build.update import updated

    asked, run = _Asked(**given), outcome.Measured()
    _check_names(asked, files, report)
    how = Running(
        workers,
        executor,
        block_timeout=block_timeout,
        shared_dir=folder_of(asked.output),
        progress=run,
    )
    with run.within(memory), _alone(asked) as check:
        with run("read"):
            inputs = _read(asked, files)
        change, written = _planned(asked, inputs)
        if change is None:
            talk.summary(f"{asked.output}: these rows were added and removed already")
            return
        _check_room(asked, inputs, change)
        made = updated(inputs.graph, change, how, asked.graph)
        write = None
        if asked.write_features is not None and not written:
            write = _writer(asked, inputs, change)

        def first(outputs: Outputs) -> None:
            if write is not None:
                write(outputs)
            check()

        with run("write"):
            formats.write_graph(asked.output, made, first=first)
    full = outcome.write_report(report, made.report.as_dict(), run)
    outcome.say_result(asked.graph, asked.output, {**full, "notes": []})
    _say(asked, full["update"], made)
    outcome.check_quality(asked.output, full)


@contextmanager
def _alone(asked: _Asked) -> Iterator[Callable[[], None]]:
    """Let no other run replace the graph meanwhile: what it added would be lost.

    Gives a function that looks once more, for those that know of no lock.
    """
    if not _same(asked.output, asked.graph) or formats.is_stream(asked.graph):
        yield lambda: None
        return
    try:
        handle = os.open(asked.graph, os.O_RDONLY)
    except (OSError, ValueError):  # which is said where it is read
        yield lambda: None
        return
    try:
        with suppress(OSError):  # not every file system has locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ResourceError(
                    f"{asked.graph}: another run is updating it; wait for that, and "
                    "run this again"
                ) from error
        known = _identity(os.fstat(handle))

        def check() -> None:
            with suppress(FileNotFoundError):
                if _identity(os.stat(asked.graph)) != known:  # noqa: PTH116
                    raise InputError(
                        f"{asked.graph}: was changed while it was updated, and stays "
                        "as it is now; run this again"
                    )

        check()  # it may have been replaced just before it was locked
        yield check
    finally:
        os.close(handle)


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _check_names(asked: _Asked, files: Files, report: str | None) -> None:
    """Check before any reading that results can be written."""
    if asked.add is None and asked.remove is None:
        raise ParameterError("nothing to do: name rows with --add or --remove")
    if asked.add_ids and asked.add is None:
        raise ParameterError("--add-ids names the rows of --add: give both")
    if files.ids and asked.in_place:
        raise ParameterError(
            f"{asked.features}: --ids has no names for the rows that are added to it; "
            "let --write-features make another file, which has all names inside"
        )
    files.expect(asked.features, asked.add, others=[asked.remove, asked.add_ids])
    formats.check_output(
        asked.output,
        no_clobber=files.no_clobber,
        inputs=files.inputs,
    )
    if asked.write_features is not None:
        formats.check_features(asked.write_features, no_clobber=files.no_clobber)
        path = formats.split_item(asked.write_features)[0]
        others = (asked.graph, asked.output, *files.inputs[1:])
        for one in others:
            if one and _same(path, one):
                raise ParameterError(f"{path}: features and {one} need different names")
    outcome.check_report(report, asked.output, files)


def _read(asked: _Asked, files: Files) -> _Inputs:
    graph = read_graph(asked.graph)
    features = files.features(asked.features)
    add = None if asked.add is None else files.more_rows(asked.add, asked.add_ids)
    removed = [] if asked.remove is None else _names(asked.remove, graph)
    return _Inputs(graph, features, add, removed)


def _names(path: str, graph: Graph) -> list[Any]:
    """Read the ids or numbers of rows."""
    names = formats.read_names(path)
    if graph.ids is not None:
        return names
    numbers = []
    for line, name in enumerate(names, 1):
        try:
            numbers.append(int(name))
        except ValueError:
            raise InputError(
                f"{path}: line {line}: {name!r} is no row number, and the graph has no "
                "ids"
            ) from None
    return numbers


def _request(inputs: _Inputs) -> str:
    """Return a hash of what is added and removed."""
    add = inputs.add
    rows = None if add is None else [add.sha256, list(add.x.shape), add.ids]
    return hashlib.sha256(json.dumps([rows, inputs.removed]).encode()).hexdigest()


def _planned(asked: _Asked, inputs: _Inputs) -> tuple[Change | None, bool]:
    """Return the change to make, and whether its features are written already.

    No change is left where all was done before, which hashes of features tell: a run
    may have ended when the features were in place, or the graph as well.
    """
    from nnkgraph.build.update import Change, check_features, check_origin, staying

    graph, features, name = inputs.graph, inputs.features, asked.graph
    check_origin(graph, name)
    stored, record = str(graph.provenance.get("sha256")), _read_record(asked)
    told = inputs.removed, asked.remove or ""
    if (record.get("request"), record.get("after")) == (
        _request(inputs),
        features.sha256,
    ):
        if stored == record["after"]:
            return None, True
        if stored == record.get("before"):
            added = 0 if inputs.add is None else len(inputs.add.x)
            kept = staying(graph.n_nodes, graph.ids, *told)
            return Change(features, kept, added), True
    if stored != features.sha256 and _same(asked.output, asked.graph):
        with suppress(NnkGraphError):  # what is wrong is said below
            kept = staying(len(features.x), features.ids, *told)
            whole = Change.of(graph, features, kept, inputs.add).together
            if whole.sha256 == stored:
                return None, True
    check_features(graph, features, name)
    kept = staying(graph.n_nodes, graph.ids, *told)
    return Change.of(graph, features, kept, inputs.add), False


def _read_record(asked: _Asked) -> dict[str, Any]:
    """Read which update has written the features that are to be replaced."""
    if not asked.in_place:
        return {}
    with suppress(OSError, ValueError):
        known = json.loads(asked.record.read_text())
        if isinstance(known, dict):
            return known
    return {}


def _writer(
    asked: _Asked, inputs: _Inputs, change: Change
) -> Callable[[Outputs], object]:
    """Return what writes the features, and before these who has written them."""

    def write(outputs: Outputs) -> None:
        formats.write_features(asked.write_features or "", change.together, outputs)
        if asked.in_place:
            record = {
                "before": inputs.graph.provenance["sha256"],
                "after": change.together.sha256,
                "request": _request(inputs),
            }
            outputs.open(str(asked.record)).write(json.dumps(record).encode())

    return write


def _check_room(asked: _Asked, inputs: _Inputs, change: Change) -> None:
    """Check before any computing that results can be kept, and say their size."""
    from nnkgraph.build.budget import check_output_room
    from nnkgraph.data import Updatable
    from nnkgraph.runtime.limits import in_words

    if asked.write_features is not None:
        formats.check_features(asked.write_features, change.together)
    (n, d), kept, more = change.together.x.shape, inputs.graph.updatable, 0
    k = int(inputs.graph.provenance.get("k", 1))
    if kept is not None and _is_npz(asked):
        more = Updatable.size(n, k)
        talk.summary(
            f"{asked.output}: about {in_words(more)} of it will be for updates"
        )
    if asked.write_features is not None:
        more += n * d * change.together.x.dtype.itemsize
    check_output_room(asked.output, n, k, more)


def _is_npz(asked: _Asked) -> bool:
    """Return whether the new graph's file has room for what updates need."""
    return asked.output.lower().endswith(".npz")


def _say(asked: _Asked, known: dict[str, Any], graph: Graph) -> None:
    """Say what changed, and what else there is to know."""
    n = len(graph.updatable.index) if graph.updatable else graph.n_nodes
    searched, solved = known["searched_again"], known["solved_again"]
    talk.summary(
        f"{asked.output}: {known['added']} rows added, {known['removed']} removed; "
        f"{searched} of {n} rows were searched again and {solved} solved again"
    )
    if known["built_anew"]:
        talk.summary(f"all rows were searched and solved: {known['built_anew']}")
    if graph.updatable is None and _is_npz(asked):
        talk.summary(
            "to update it at the cost of what changed, build it once with "
            f"--like {asked.output} --updatable"
        )
    elif graph.updatable is not None and not _is_npz(asked):
        talk.warning(
            f"{asked.output}: has no room for what updates need, so that the next one "
            "builds it again: write .npz"
        )
    if drift := known["drift"]:
        talk.summary(
            f"sigma {drift['sigma']:.6g} is in use; {drift['rule']!r} would make "
            f"{drift['of_all_rows']:.6g} of all rows ({drift['share']:.2%} away)"
        )
