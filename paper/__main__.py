"""``python -m paper``: run the paper's experiments, write tables and figures."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

from nnkgraph.errors import NnkGraphError
from paper.setting import Setting, say

EXPERIMENTS = {
    "example": "example",
    "eigenmaps": "eigenmaps",
    "sparsity": "sparsity",
    "angles": "angles",
    "runtime": "runtime",
    "table1": "classification",
    "table2": "many",
    "propagation": "propagation",
}
"""Names that users type, and the modules behind them; what takes longest is last."""

STUDY = {"study": "study", "noise": "noise", "node": "node", "audit": "audit"}
"""Beyond the paper: run only where they are asked for by name."""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        help=f"{', '.join(EXPERIMENTS)} [all of them], {', '.join(STUDY)}",
    )
    parser.add_argument("--data", type=Path, help="a folder of .npz files with X and y")
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="for tables and figures"
    )
    parser.add_argument("--quick", action="store_true", help="a few minutes must do")
    parser.add_argument(
        "--download", action="store_true", help="fetch from OpenML what --data lacks"
    )
    parser.add_argument("-j", "--workers", default="1", help="processes, or auto [1]")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(EXPERIMENTS | STUDY):
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}")
    if options.download and options.data is None:
        parser.error("--download needs --data, a folder to put the files in")
    return options


def main(arguments: list[str] | None = None) -> None:
    """Run what is asked for; rows that are there are not computed again."""
    options = parse(arguments)
    count = options.workers
    setting = Setting(
        options.out,
        options.data,
        options.quick,
        workers=int(count) if count.isdecimal() else count,
    )
    try:
        if options.download:
            from paper.data import download

            download(options.data)
        for name in options.names or EXPERIMENTS:
            start = time.monotonic()
            importlib.import_module(f"paper.{(EXPERIMENTS | STUDY)[name]}").run(setting)
            say(f"{name}: done in {time.monotonic() - start:.0f} s")
    except NnkGraphError as error:
        say(f"error: {error}")
        sys.exit(error.exit_code)
    say(f"tables and figures are in {setting.out}")


if __name__ == "__main__":
    main()
