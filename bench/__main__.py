"""``python -m bench``: print ratios, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench.ratio import Line

SUITES = ("solve", "solvers", "search", "command", "auto", "stages", "growth", "update")
PAGE, CLUSTERS = "neighbors", "clusters"
"""What is no ratio: time over recall of many searches, and agreement of clusters with
classes, for pages of docs/."""

QUICK = ("solve", "solvers", "search", "command")


def lines(options: argparse.Namespace) -> Iterator[Line]:
    """Run the suites that were asked for."""
    from bench import commands, growing, growth, search, solver

    threads, repeat, folder = options.threads, options.repeat, options.data
    runs = {
        "solve": lambda: solver.against_bound(folder, threads, repeat),
        "solvers": lambda: solver.against_solvers(folder, repeat),
        "search": lambda: search.suite(threads, repeat),
        "command": lambda: commands.against_sklearn(folder, threads, repeat),
        "auto": commands.auto_against_best,
        "stages": lambda: growth.progress(repeat),
        "growth": growth.slopes,
        "update": lambda: growing.against_rebuild(folder, repeat),
    }
    for name in options.suite or QUICK:
        yield from runs[name]()


def show(line: Line) -> str:
    """Return a line of the table."""
    aim = "" if line.met is None else f"<= {line.aim:.3g} {'ok' if line.met else 'NO'}"
    return (
        f"{line.suite:<15} | {line.case:<42} | {line.other:<26} | {line.ratio:7.3f} | "
        f"{line.lowest:.3f} - {line.highest:.3f} | {line.our_seconds:9.3g} | "
        f"{line.other_seconds:9.3g} | {aim}"
    )


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "suite",
        nargs="*",
        help=f"{', '.join(SUITES)}, {PAGE} or {CLUSTERS} [the first 4]",
    )
    parser.add_argument("--data", type=Path, help="a folder of .npz files with X")
    parser.add_argument("--threads", type=int, default=2, help="for both sides [2]")
    parser.add_argument("--repeat", type=int, default=5, help="measurements [5]")
    parser.add_argument("--json", action="store_true", help="one object per line")
    parser.add_argument("--only", default="", help=f"sets of {PAGE} with this name")
    options = parser.parse_args()
    if options.suite == [PAGE]:
        from bench import neighbors

        neighbors.page(options.data, options.threads, options.only)
        return
    if options.suite == [CLUSTERS]:
        from bench import clusters

        clusters.page(options.data)
        return
    if unknown := set(options.suite) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    if not options.json:
        print(f"{platform.machine()}, Python {platform.python_version()}, ", end="")
        print(f"{options.threads} threads, median and range of {options.repeat}")
        print("suite | case | against | ratio | range | seconds | its seconds | aim")
    missed = 0
    for line in lines(options):
        missed += line.met is False
        text = json.dumps({**asdict(line), "met": line.met})
        print(text if options.json else show(line), flush=True)
    if missed:
        sys.exit(f"{missed} ratios are not what we aim at")


if __name__ == "__main__":
    main()
