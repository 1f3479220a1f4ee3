"""``python -m mutants``: break the package, run its tests, say what they miss."""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

from mutants import equivalent
from mutants.cover import measure
from mutants.sites import ROOT, TARGETS, drawn, every
from mutants.trial import BUILD, Copy, Job, holds_compiled, prepare, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutants.cover import Map
    from mutants.sites import Mutant

LAST = BUILD / "last.json"
MISSED = {"survived", "unreached"}


def in_plain_python(mutant: Mutant) -> str:
    """Return the target of a change that concerns the compiler, else nothing."""
    concerned = mutant.compiled and holds_compiled(ROOT / mutant.path)
    return mutant.target if concerned else ""


def jobs_of(
    mutants: list[Mutant], maps: dict[str, Map], most: float, found: dict
) -> Iterator[Job]:
    """Yield the tests of each change; what none reaches is noted at once."""
    for mutant in mutants:
        plain = in_plain_python(mutant)
        tests = maps[plain].tests(mutant, most)
        if not tests:
            found[mutant] = "unreached"
            continue
        seconds = [maps[plain].seconds[test] for test in tests]
        job = Job(tests, plain, 20 + 3 * sum(seconds), mutant=mutant)
        job.longest = 10 + round(6 * max(seconds))
        yield job


def table(found: dict[Mutant, str], seconds: float) -> list[str]:
    """Return what came of it, by target."""
    names = ("killed", "timeout", "survived", "unreached", "equivalent")
    lines = [f"{'':10} | mutants | {' | '.join(names)} | score"]
    rows = {t: Counter(v for m, v in found.items() if m.target == t) for t in TARGETS}
    rows["all"] = Counter(found.values())
    for target, counts in rows.items():
        if all_ := counts.total():
            cells = (f"{counts[name]:>{len(name)}}" for name in names)
            lines.append(
                f"{target:10} | {all_:7} | {' | '.join(cells)} | {score(counts):.3f}"
            )
    lines.append(f"{len(found)} mutants in {seconds:.0f} s")
    return lines


def score(counts: Counter[str]) -> float:
    """Return the share of mutants that tests notice, of those that can be noticed."""
    possible = counts.total() - counts["equivalent"]
    return (counts["killed"] + counts["timeout"]) / possible if possible else 1.0


def show(mutant: Mutant, verdict: str) -> str:
    """Return a change as two lines, below where it is."""
    place = f"{mutant.path}:{mutant.line} {mutant.inside or 'module'} ({verdict})"
    return f"{place}\n  - {mutant.was}\n  + {mutant.now}"


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="mutants [400]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    parser.add_argument("--only", choices=TARGETS, nargs="+", help="[all]")
    parser.add_argument("--jobs", type=int, default=2, help="at a time [2]")
    parser.add_argument(
        "--most", type=float, default=30, help="seconds of tests for each [30]"
    )
    parser.add_argument("--least", type=float, default=0.95, help="score [0.95]")
    parser.add_argument(
        "--again", action="store_true", help="only what was missed the last time"
    )
    parser.add_argument(
        "--explained", action="store_true", help="run those in the table as well"
    )
    options = parser.parse_args()
    if options.again:
        missed = {tuple(one) for one in json.loads(LAST.read_text())}
        some = (one for part in every(options.only).values() for one in part)
        mutants = [one for one in some if one.key in missed]
    else:
        mutants = drawn(options.count, options.seed, options.only)
    known = equivalent.read()
    explained = {one for one in mutants if known.keys() & equivalent.reasons(one)}
    found = dict.fromkeys(() if options.explained else explained, "equivalent")
    prepare()
    BUILD.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # children end, too
    folder = f"run-{os.getpid()}"
    copies = [Copy.make(f"{folder}/{number}") for number in range(options.jobs)]
    atexit.register(shutil.rmtree, BUILD / folder, ignore_errors=True)
    waiting = [one for one in mutants if one not in found]
    maps = {
        plain: measure(copies, plain)
        for plain in sorted({in_plain_python(one) for one in waiting})
    }
    start = time.monotonic()
    for job in run(jobs_of(waiting, maps, options.most, found), copies):
        mutant = job.mutant
        found[mutant] = job.result
        print(
            f"[{len(found)}/{len(mutants)}] {job.result:8} {job.seconds_taken:5.1f} s  "
            f"{mutant.path}:{mutant.line} {job.reason}",
            file=sys.stderr,
            flush=True,
        )
        if found[mutant] in MISSED:
            print(show(mutant, found[mutant]), file=sys.stderr, flush=True)
    missed = [one for one in mutants if found[one] in MISSED]
    LAST.write_text(json.dumps([one.key for one in missed], indent=1) + "\n")
    print("\n".join(show(mutant, found[mutant]) for mutant in missed))
    print("\n".join(table(found, time.monotonic() - start)))
    if options.explained:
        for one in sorted(explained - {*missed}, key=lambda one: one.key):
            print(show(one, "explained, but a test notices"))
    if score(Counter(found.values())) < options.least:
        sys.exit(f"the score is below {options.least}")


if __name__ == "__main__":
    main()
