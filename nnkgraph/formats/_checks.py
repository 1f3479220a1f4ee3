"""Whether an output can be written, asked before anything is computed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nnkgraph.errors import OutputError, ParameterError
from nnkgraph.formats._choose import choose, is_binary, split_item
from nnkgraph.formats._format import Target
from nnkgraph.formats._output import is_special, is_stdout
from nnkgraph.formats._sidecar import SUFFIX
from nnkgraph.formats._source import reason, show

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def check_output(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    no_clobber: bool = False,
    inputs: Iterable[str] = (),
    kind: Literal["graph", "candidates", "answers"] = "graph",
) -> None:
    """Check before any computing that an output can be written.

    Raises
    ------
    ParameterError
        For an unknown format, binary data to a terminal, or an output that is an
        input.
    OutputError
        Where the target cannot be created or must not be replaced.
    """
    target = os.fspath(path)
    _check_not_an_input(target, (split_item(one)[0] for one in inputs))
    if target.endswith("/") or os.path.isdir(target):  # noqa: PTH112 - any string
        _check_target(target, no_clobber=no_clobber, longest_ending="")
    plugin, suffix = choose(f"write_{kind}", target, format)
    if is_stdout(target):
        _check_stdout(show(target), binary=is_binary(plugin, suffix))
        return
    ending = SUFFIX if plugin.beside else ""
    _check_target(target, no_clobber=no_clobber, longest_ending=ending)


def check_file(
    path: str | os.PathLike[str],
    *,
    suffixes: Sequence[str] = (),
    no_clobber: bool = False,
    inputs: Iterable[str] = (),
) -> None:
    """Check like `check_output` for a file that is no graph: a picture or a report."""
    target = os.fspath(path)
    _check_not_an_input(target, (split_item(one)[0] for one in inputs))
    if suffixes and not target.lower().endswith(tuple(suffixes)):
        raise ParameterError(
            f"{show(target)}: the file name ends in none of {', '.join(suffixes)}"
        )
    if not is_stdout(target):
        _check_target(target, no_clobber=no_clobber, longest_ending="")


def check_ids(
    path: str | os.PathLike[str],
    ids: Sequence[str] | None,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Check before any computing that a graph's format can carry the row ids.

    Raises
    ------
    OutputError
        For an id that the format would garble; the message names it.
    """
    target = os.fspath(path)
    plugin, suffix = choose("write_graph", target, format)
    plugin.check_ids(ids or (), Target(show(target), suffix))


def check_classes(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
) -> None:
    """Check before anything is read that a graph's format can carry classes."""
    target = os.fspath(path)
    if not choose("write_graph", target, format)[0].has_classes:
        raise ParameterError(
            f"{show(target)}: this format has no room for classes; write .gexf or "
            ".graphml, or leave the labels out"
        )


def _check_stdout(name: str, *, binary: bool) -> None:
    """Refuse bytes that would garble a terminal."""
    stream: object = sys.stdout
    if stream is None:
        raise OutputError(f"{name}: standard output is closed")
    if binary and sys.stdout.isatty():
        raise ParameterError(
            f"{name}: a binary format would garble the terminal; send it to a file or "
            "a pipe, or choose a text format"
        )


def _check_not_an_input(path: str, inputs: Iterable[str]) -> None:
    """Refuse to replace what is read, also through a link."""
    if is_stdout(path) or is_special(path):
        return
    for one in inputs:
        try:
            same = os.path.samefile(path, one)  # noqa: PTH121 - either may be missing
        except (OSError, ValueError):
            same = False
        if same:
            raise ParameterError(
                f"{show(path)}: the output is also an input; choose another name"
            )


def _check_target(path: str, *, no_clobber: bool, longest_ending: str) -> None:
    """Refuse a target that cannot be created or replaced."""
    name = show(path)
    if not path or path.endswith("/"):
        raise OutputError(f"{name}: a file name is needed, not a directory")
    if is_special(path):
        if not os.access(path, os.W_OK, effective_ids=True):
            raise OutputError(f"{name}: permission denied")
        return
    try:
        # The longest name that will be made, so that nothing is computed in vain.
        os.lstat(path + longest_ending)
    except FileNotFoundError:
        pass  # The usual case: it is yet to be made.
    except (OSError, ValueError) as error:
        raise OutputError(f"{name}: {reason(error)}") from error
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OutputError(f"{name}: is a directory; a file name is needed")
    if no_clobber and os.path.lexists(path):
        raise OutputError(f"{name}: exists already, and --no-clobber keeps it")
    if not target.parent.is_dir():
        raise OutputError(f"{name}: there is no directory {show(str(target.parent))}")
    if not os.access(target.parent, os.W_OK | os.X_OK, effective_ids=True):
        raise OutputError(f"{name}: the directory cannot be written to")
