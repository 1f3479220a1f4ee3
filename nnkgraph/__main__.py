"""The program: ``nnkgraph``, or ``python -m nnkgraph``."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Listen to signals before all else is imported, and run the command line."""
    _open_standard_files()
    try:
        from nnkgraph import runtime  # noqa: F401 - it refuses other systems
    except ImportError as error:
        print(f"nnkgraph: error: {error}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(5)
    from nnkgraph.cli import signals

    try:
        signals.install()
        from nnkgraph.cli.main import main

        main()
    except signals.Stopped:
        signals.end()
        message, code = signals.outcome()
        print(f"nnkgraph: error: {message}", file=sys.stderr, flush=True)  # noqa: T201
        atexit._run_exitfuncs()
        os._exit(code)


def _open_standard_files() -> None:
    """Fill the places of standard files that are closed, before others get there.

    A graph or a pipe would, and whatever is printed by a library, too.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest number that is free is taken
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


if __name__ == "__main__":
    main()
