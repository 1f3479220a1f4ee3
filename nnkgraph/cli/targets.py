"""Where ``build`` puts a graph: a file of its own, or an AnnData file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from nnkgraph import formats, registry
from nnkgraph.budget import check_output_room
from nnkgraph.cli import say
from nnkgraph.cli.files import split_format
from nnkgraph.cli.names import check_shard_file
from nnkgraph.errors import ParameterError
from nnkgraph.into import Place, check_distances, find_place
from nnkgraph.prepare import create_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.data import Features, Graph
    from nnkgraph.methods import Method
    from nnkgraph.shard import Shard

_MIN_DEGREE = 3
"""With --into: isolated cells are no use to anyone."""


@dataclass(frozen=True)
class GraphFile:
    """A file that holds nothing but the graph."""

    path: str
    format: str | None
    no_clobber: bool

    def check(self, inputs: Sequence[str]) -> None:
        """Check the name."""
        formats.check_output(
            self.path, format=self.format, no_clobber=self.no_clobber, inputs=inputs
        )

    def check_rows(self, features: Features) -> None:
        """Check the ids."""
        formats.check_ids(self.path, features.ids, format=self.format)

    def check_room(self, n: int, k: int) -> None:
        """Check the disk."""
        check_output_room(self.path, n, k)

    def write(self, graph: Graph, features: Features, settings: dict[str, Any]) -> None:
        """Write the graph."""
        del features, settings
        formats.write_graph(self.path, graph, format=self.format)


@dataclass(frozen=True)
class ShardFile:
    """A file that holds a part of the rows, for ``merge``."""

    path: str
    shard: Shard
    format: str | None
    no_clobber: bool

    def check(self, inputs: Sequence[str]) -> None:
        """Check the name."""
        check_shard_file(
            self.path, self.format, no_clobber=self.no_clobber, inputs=inputs
        )

    def check_rows(self, features: Features) -> None:
        """Take any rows: ids are checked when the graph is written."""

    def check_room(self, n: int, k: int) -> None:
        """Check the disk: all weights are kept, which takes more than a graph."""
        check_output_room(self.path, 6 * n // self.shard.count, k)


@dataclass(frozen=True)
class CellFile:
    """An AnnData file that takes the graph in; it may be what features come from."""

    path: str
    key: str | None
    features: str
    no_clobber: bool

    @cached_property
    def place(self) -> Place:
        """The file as it was before anything was computed."""
        return find_place(
            self.path, self.key, self.features, no_clobber=self.no_clobber
        )

    def check(self, inputs: Sequence[str]) -> None:
        """Look at the file."""
        del inputs
        say.detail(f"{self.path}: {self.place.cells} cells")

    def check_rows(self, features: Features) -> None:
        """Check that rows are the file's cells."""
        self.place.check(features)

    def check_room(self, n: int, k: int) -> None:
        """Check that there is room for a second copy."""
        check_output_room(self.path, n, k, self.place.identity[1])

    def write(self, graph: Graph, features: Features, settings: dict[str, Any]) -> None:
        """Put the graph in, and say where."""
        kernel = create_kernel(settings["kernel"], settings["sigma"])
        self.place.write(graph, features, kernel, settings["scale"])
        *matrices, about = self.place.keys.paths
        say.summary(f"{self.path}: holds {', '.join(matrices)} and {about} now")


Target = GraphFile | ShardFile | CellFile
"""One result's place: checked before anything is read, computed or written."""


@dataclass(frozen=True)
class Goal:
    """What the user said about the place of all graphs."""

    path: str
    into: bool
    key: str | None
    shard: Shard | None = None

    def split_format(
        self, given: str | None, features: tuple[str, ...]
    ) -> tuple[str | None, str | None]:
        """Return what --format says about the input and about the output."""
        if not self.into:
            return split_format(given, features, self.path)
        read, comma, _ = (given or "").partition(",")
        if comma:
            raise ParameterError("--format: --into has one format; name the input's")
        return read or None, None

    def target(
        self,
        features: str,
        path: str,
        format: str | None,  # noqa: A002 - the option's name
        no_clobber: bool,
    ) -> Target:
        """Return the place of one graph."""
        if self.into:
            return CellFile(path, self.key, features, no_clobber)
        if self.shard:
            return ShardFile(path, self.shard, format, no_clobber)
        return GraphFile(path, format, no_clobber)


def goal_of(
    features: tuple[str, ...],
    output: str | None,
    into: str | None,
    key: str | None,
    shard: Shard | None,
) -> Goal:
    """Return where graphs go; there is one way."""
    if output is not None and into is not None:
        raise ParameterError("--into and --output: a graph goes to one place; use one")
    if into is not None:
        if shard is not None:
            raise ParameterError("--into takes whole graphs: merge shards to a file")
        if len(features) > 1:
            raise ParameterError("--into takes one input at a time")
        return Goal(into, into=True, key=key)
    if output is None:
        raise ParameterError("Missing option '-o' / '--output' (or --into FILE.h5ad)")
    if key is not None:
        raise ParameterError("--key-added is of use with --into only")
    return Goal(output, into=False, key=None, shard=shard)


def defaults(goal: Goal, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that nobody has made, which differ for AnnData files."""
    if not goal.into:
        return {"min_degree": settings["min_degree"] or 0}
    if settings["symmetrize"] == "none":
        raise ParameterError("--into needs an undirected graph: use another rule")
    method = registry.create("methods", settings["method"])
    kernel = registry.create("kernels", settings["kernel"])
    check_distances(kernel)
    made: dict[str, Any] = {}
    if settings["min_degree"] is None:
        made["min_degree"] = _MIN_DEGREE
    # A bandwidth may be in the kernel's own words, and methods may need a single one.
    bare = kernel == type(kernel)() and hasattr(kernel, "sigma")
    if settings["sigma"] is None and bare and _takes_local(method, kernel):
        made["sigma"] = "local"
    if made:
        words = " and ".join(
            f"--{name.replace('_', '-')} {value}" for name, value in made.items()
        )
        say.summary(f"{goal.path}: {words} by default, so that no cell stays alone")
    return made


def _takes_local(method: Method, kernel: Any) -> bool:
    try:
        method.check(dataclasses.replace(kernel, sigma="local"))
    except ParameterError:
        return False
    return True
