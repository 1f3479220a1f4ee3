"""``python -m claims``: measure what the pages claim, and print figures and verdicts."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from claims import page
from claims.claim import ALL, FAILS, HOLDS, NOT_RUN, Claim, Place, Verdict, judged
from claims.parts import PARTS


def chosen(names: list[str]) -> list[Claim]:
    """Return the claims of parts and keys; without any, all of them."""
    known = {*PARTS, *ALL}
    if unknown := [name for name in names if name not in known]:
        raise KeyError(", ".join(unknown))
    wanted = {*names}
    return [one for one in ALL.values() if not wanted or wanted & {one.part, one.key}]


def verdicts(
    some: list[Claim], data: Path | None, names: list[str]
) -> Iterator[Verdict]:
    """Measure claims, each in a folder of its own."""
    for one in some:
        if one.long and one.key not in names:
            reason = f"takes {one.long}: make claims CLAIMS={one.key}"
            yield Verdict(one, NOT_RUN, reason)
            continue
        with tempfile.TemporaryDirectory(prefix="nnkgraph-claims-") as scratch:
            yield judged(one, Place(Path(scratch), data))


def show(found: Verdict) -> str:
    """Return the line of a claim: key, figure, limit, verdict."""
    limit = found.claim.limit or "-"
    took = f" [{found.seconds:.0f} s]" if found.seconds >= 1 else ""
    key, verdict = found.claim.key, found.verdict
    return f"{verdict:<10} | {key:<20} | {limit:<9} | {found.figure}{took}"


def as_dict(found: Verdict) -> dict[str, object]:
    """Return a verdict for scripts."""
    one = found.claim
    said = {"key": one.key, "part": one.part, "claim": one.text, "limit": one.limit}
    more = {"figure": found.figure, "verdict": found.verdict}
    return {**said, **more, "seconds": round(found.seconds, 2)}


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m claims", description=__doc__)
    about = f"{', '.join(PARTS)}, or single claims [all that take no long time]"
    parser.add_argument("names", nargs="*", help=about)
    parser.add_argument("--data", type=Path, help="a folder with real data")
    parser.add_argument("--json", action="store_true", help="one object per line")
    parser.add_argument("--page", action="store_true", help="write docs/claims.md anew")
    parser.add_argument(
        "--record", action="store_true", help="put the figures into docs/claims.md"
    )
    options = parser.parse_args(arguments)
    if options.page:
        page.write()
        return
    try:
        some = chosen(options.names)
    except KeyError as unknown:
        parser.error(f"no such part or claim: {unknown.args[0]}")
    if not options.json:
        print(f"{platform.machine()}, Python {platform.python_version()}")
        print("verdict    | claim                | must be   | figure", flush=True)
    counts: Counter[str] = Counter()
    lines = []
    for found in verdicts(some, options.data, options.names):
        counts[found.verdict] += 1
        lines.append(found)
        print(json.dumps(as_dict(found)) if options.json else show(found), flush=True)
        if options.record:
            page.write(lines)
    if not options.json:
        rest = ", ".join(f"{n} {name}" for name, n in counts.items() if name != HOLDS)
        print(f"{counts[HOLDS]} hold" + f"; {rest}" * bool(rest))
    if counts[FAILS]:
        sys.exit(f"{counts[FAILS]} claims do not hold")


if __name__ == "__main__":
    main()
