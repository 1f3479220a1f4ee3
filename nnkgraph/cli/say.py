"""What the user reads: talk goes to stderr, data that was asked for to stdout."""

from __future__ import annotations

import sys
import traceback as tracebacks
from dataclasses import dataclass

import click

from nnkgraph.errors import OutputError


@dataclass
class _Level:
    verbosity: int = 0


@dataclass
class _Failures:
    """Exit code of a call that went on after a failure: the first one counts."""

    exit_code: int = 0

    def add(self, code: int) -> None:
        self.exit_code = self.exit_code or code


level = _Level()
failures = _Failures()


def reset(verbosity: int) -> None:
    """Set how much is said: -1 only errors and warnings, 0 a summary, 1 more."""
    level.verbosity = verbosity
    failures.exit_code = 0


def printable(text: str) -> str:
    """Escape control characters, which could otherwise drive the terminal."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


def error(message: str) -> None:
    """Say in one line what went wrong."""
    _write(f"nnkgraph: error: {printable(message)}")


def warning(message: str) -> None:
    """Say what the user should look at; not even --quiet hides it."""
    _write(f"nnkgraph: warning: {printable(message)}")


def summary(message: str) -> None:
    """Say what was done, unless --quiet was given."""
    if level.verbosity >= 0:
        _write(printable(message))


def detail(message: str) -> None:
    """Say more, where -v was given."""
    if level.verbosity >= 1:
        _write(printable(message))


def data(text: str) -> None:
    """Print what was asked for."""
    try:
        click.echo(text)
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise OutputError(
            f"standard output: cannot be written: {failure.strerror}".lower()
        ) from failure


def traceback() -> None:
    """Show the traceback of the current error, where -vv was given."""
    if level.verbosity >= 2:
        _write(tracebacks.format_exc().rstrip())


def _write(text: str) -> None:
    if sys.stderr is not None:
        click.echo(text, err=True)
