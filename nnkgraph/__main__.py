"""The program: ``nnkgraph``, or ``python -m nnkgraph``."""

from __future__ import annotations

import atexit
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Listen to signals before all else is imported, and run the command line."""
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


if __name__ == "__main__":
    main()
