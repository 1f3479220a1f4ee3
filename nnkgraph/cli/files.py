"""Reading for commands: remarks are said once the whole file was read well."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph import formats
from nnkgraph.cli import mapped, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nnkgraph.data import Features, Graph
    from nnkgraph.formats._format import Sparse
    from nnkgraph.labels import Labels


def split_format(
    given: str | None, inputs: Sequence[str], output: str, *, kind: str = "graph"
) -> tuple[str | None, str | None]:
    """Return what --format says about the input and about the output.

    ``IN,OUT`` says both. One name belongs to the side that needs it: '-' or a file
    whose name says nothing; to the input where both do or neither does.
    """
    if given is None or "," in given:
        read, _, write = (given or "").partition(",")
        return read or None, write or None
    needed = not formats.is_known(output, f"write_{kind}")
    if needed and all(formats.is_known(one, "read_features") for one in inputs):
        return None, given
    return given, None


def folder_of(output: str) -> str | None:
    """Return the directory that a file is written to; a stream has none."""
    return None if formats.is_stream(output) else str(Path(output).absolute().parent)


def read_features(
    spec: str, *, sparse: Sparse = "", gaps: bool = False, **said: Any
) -> Features:
    """Read features with the options of the command line."""
    mapped.guard()
    with _remarks() as note:
        features = formats.read_features(
            spec, sparse=sparse, gaps=gaps, note=note, **said
        )
        mapped.remember(features)
    return features


def read_labels(spec: str, **said: Any) -> Labels:
    """Read labels with the options of the command line."""
    with _remarks() as note:
        return formats.read_labels(spec, note=note, **said)


def read_values(spec: str, **said: Any) -> Features:
    """Read one number per row with the options of the command line."""
    with _remarks() as note:
        return formats.read_values(spec, note=note, **said)


def read_graph(
    spec: str,
    *,
    format: str | None = None,  # noqa: A002 - the option's name
) -> Graph:
    """Read a graph."""
    with _remarks() as note:
        return formats.read_graph(spec, format=format, note=note)


def say_order(
    name: str,
    ids: tuple[str, ...] | None,
    *beside: Labels | Features | None,
    graph: bool = True,
) -> None:
    """Warn of names of rows that are of no use, because the nodes have none."""
    hint = "; a graph that is built with --id-column has names" if graph else ""
    for one in beside:
        if one is None or one.ids is None or ids is not None:
            continue
        if one.ids != tuple(map(str, range(len(one.ids)))):
            say.warning(
                f"{one.name}: {name} has no names of nodes: rows are taken in order"
                f"{hint}"
            )


@contextmanager
def _remarks() -> Iterator[Callable[[str], None]]:
    """Collect remarks, and say them where nothing went wrong."""
    remarks: list[str] = []
    yield remarks.append
    for remark in remarks:
        say.summary(remark)
