"""What is said: data on stdout, all else on stderr, within 80 columns."""

import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from nnkgraph.errors import OutputError


@dataclass
class _State:
    verbosity: int = 0
    """-1 only errors and warnings, 0 a summary, 1 more, 2 tracebacks."""

    exit_code: int = 0
    """Of a call that went on after a failure: the first one counts."""

    command: str = ""
    resume: str = ""
    """The directory where finished work is kept, if any."""

    warned: tuple[str, ...] = ()
    """Warnings about inputs, which a report may repeat."""


state = _State()


def reset(verbosity: int) -> None:
    """Set how much is said."""
    state.verbosity, state.exit_code, state.warned = verbosity, 0, ()


def printable(text: str) -> str:
    """Escape control characters, which could otherwise drive the terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


_PARAMETER = re.compile(
    r"""`([a-z]\w*)(?:=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\w.,:()/ -]+))?`"""
)
"""How messages of the library name a parameter: `workers`, `sigma='local'`."""

_FLAGS = {
    "k": "-k",
    "digits": "--round",
}
"""What cannot be guessed from the parameter's name."""


def as_options(text: str) -> str:
    """Return a message of the library with options in the place of parameters."""
    return _PARAMETER.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    name, value = found.groups()
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if name == "format" and state.command == "convert":
        output = "standard output: " in found.string
        flag = "--to" if output else "--from (of the output: --to)"
    if value in {None, "True"}:
        return flag
    if value == "False":
        return flag.replace("--", "--no-")
    if value[0] in "'\"":
        # It was made printable before, so that only quotes and backslashes are escaped.
        text = re.sub(r"\\(.)", r"\1", value[1:-1])
        return f"{flag} {shlex.quote(text)}"
    return f"{flag} {value.strip('()').replace(', ', ',')}"


def error(message: str) -> None:
    """Say in one line what went wrong."""
    _say(f"nnkgraph: error: {message}")


def failed(message: str, code: int) -> int:
    """Say what went wrong, with its traceback where -vv was given; return the code."""
    error(message)
    if state.verbosity >= 2:
        _write(traceback.format_exc().rstrip())
    return code


def warning(*messages: str) -> None:
    """Say what the user should look at; not even --quiet hides it."""
    for message in messages:
        if not message.endswith(state.warned):
            _say(f"nnkgraph: warning: {message}")


def input_warning(*messages: str) -> None:
    """Warn of what an input is like; a report that has it, too, says it no more."""
    warning(*messages)
    state.warned += messages


def summary(*messages: str) -> None:
    """Say what was done, unless --quiet was given."""
    for message in messages if state.verbosity >= 0 else ():
        _say(message)


def detail(message: str) -> None:
    """Say more, where -v was given."""
    if state.verbosity >= 1:
        _say(message)


def listing(text: str) -> None:
    """Print what a file that was written holds as well, unless --quiet was given."""
    if state.verbosity >= 0:
        data(text)


def data(text: str) -> None:
    """Print what was asked for."""
    if sys.stdout is None:
        raise OutputError("standard output is closed")
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as failure:
        what = f"standard output: cannot be written: {failure.strerror}".lower()
        raise OutputError(what) from failure


def json_text(value: Any) -> str:
    """Return a value as JSON."""
    import json

    return json.dumps(value, indent=2, allow_nan=False)


_LONG = re.compile(r"\S{4200,}")
"""Words that are longer than any path."""


def _say(message: str) -> None:
    short = _LONG.sub(lambda one: f"{one[0][:80]}... ({len(one[0])} of it)", message)
    _write(printable(as_options(short)))


def _write(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        click.echo(text, err=True)
    except BrokenPipeError:
        raise
    except OSError:  # a log on a full disk: the graph is worth more than words on it
        sys.stderr = None


WIDTH = 80
_GLUE = "\xa0"
"""A space at which no line ends; text that was made printable has none."""


def hanging(start: str, text: str, *, indent: int = 0, room: int = 0) -> str:
    """Return text behind its start, further lines below the text or at an indent.

    Words that are longer than a line stay whole: they may be names of files.
    """
    import textwrap

    return textwrap.fill(
        text.replace(" %", f"{_GLUE}%"),
        WIDTH - room,
        initial_indent=start,
        subsequent_indent=" " * (indent or len(start)),
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_GLUE, " ")


def glued(text: str) -> str:
    """Return a text that :func:`hanging` does not take apart."""
    return text.replace(" ", _GLUE)


def shell_line(start: str, line: str) -> str:
    """Return a command in lines that a shell takes as one, with backslashes."""
    words = " ".join(glued(shlex.quote(word)) for word in shlex.split(line))
    lines = hanging(start, words, indent=len(start) + 2, room=2)
    return lines.replace("\n", " \\\n")


def aligned(cells: Sequence[Sequence[str]], *, left: int) -> str:
    """Return rows of cells as columns: so many to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def table(
    lines: Sequence[dict[str, Any]], columns: dict[str, tuple[str, str]], *, left: int
) -> str:
    """Return lines of values as a table; columns have a head and a format each."""
    cells = [[head for head, _ in columns.values()]]
    for line in lines:
        values = ((line.get(name), shape) for name, (_, shape) in columns.items())
        cells.append(
            ["-" if one is None else shape.format(one) for one, shape in values]
        )
    return aligned(cells, left=left)
