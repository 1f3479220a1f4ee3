"""``python -m fuzz``: damage files, kill commands, and say what came of it."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from fuzz.files import FOUND, Tally, fuzz_files


def show_files(tally: Tally, seconds: float) -> list[str]:
    """Return the table of all readers."""
    lines = [
        "reader       |  files | accepted | refused | findings | slowest | largest"
    ]
    for role in sorted(tally.slowest):
        accepted, refused = tally.accepted[role], tally.refused[role]
        bad = sum(one[1] == role for one in tally.findings)
        lines.append(
            f"{role:<12} | {accepted + refused + bad:6} | {accepted:8} | {refused:7} | "
            f"{bad:8} | {tally.slowest[role][0]:5.2f} s | "
            f"{tally.largest[role][0]:4.0f} MB"
        )
    rate = tally.count / max(seconds, 1e-9)
    lines.append(f"{tally.count} files in {seconds:.0f} s, {rate:.0f} a second")
    return lines


def again(seed: int, number: int) -> None:
    """Read one mutated file in this process, for a debugger or a traceback."""
    from fuzz.cases import draw, put, run

    with tempfile.TemporaryDirectory(prefix="nnkgraph-fuzz-") as name:
        case = draw(seed, number)
        path = put(case, Path(name))
        print(f"{case.seed.role}: {case.seed.name}, {len(case.data)} bytes", flush=True)
        print(run(case, path) or "accepted")


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="in all [600]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--files", type=int, help="so many files, whatever the time")
    parser.add_argument("--first", type=int, default=0, help="number of the first [0]")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one file again")
    parser.add_argument("--part", choices=["files", "commands"], help="[both]")
    options = parser.parse_args()
    if options.only is not None:
        again(options.seed, options.only)
        return
    findings = 0
    share = options.seconds if options.part else options.seconds / 2
    if options.part != "commands":
        limit = float("inf") if options.files else share
        start = time.monotonic()
        tally = fuzz_files(
            options.seed, seconds=limit, files=options.files, first=options.first
        )
        findings += len(tally.findings)
        print("\n".join(show_files(tally, time.monotonic() - start)), flush=True)
    if options.part != "files":
        from fuzz.commands import fuzz_commands

        runs = fuzz_commands(options.seed, seconds=share)
        findings += len(runs.findings)
        print("\n".join(runs.table()), flush=True)
    if findings:
        sys.exit(f"{findings} findings, kept in {FOUND}")


if __name__ == "__main__":
    main()
