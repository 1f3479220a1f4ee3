"""Running the command, the tests, and taking memory and digests."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np

from bench.commands import nnkgraph as program
from claims.claim import Figure, NotRunError, Place

HOME = Path(__file__).parent.parent


def run(place: Place, *words: object, **environment: str) -> str:
    """Run a command of nnkgraph that has to end well; return what it says."""
    done = subprocess.run(
        program(*map(str, words)),
        cwd=place.scratch,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise RuntimeError(f"nnkgraph {words[0]} ended with {done.returncode}: {last}")
    return done.stdout + done.stderr


def digest(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def saved(place: Place, name: str, x: np.ndarray) -> Path:
    """Write rows to a file of the scratch folder."""
    path = place.scratch / name
    np.save(path, x)
    return path


_PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=2)
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A small process in between: a child begins with the peak of who started it."""


def peak(place: Place, *words: object) -> tuple[float, float]:
    """Run a command; return the peak of its memory as the system counted it.

    Beside it stands the time in seconds. Only a process of its own is counted: use -j 1.
    """
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, *program(*map(str, words))],
        cwd=place.scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    code, most = map(int, done.stdout.split()[-2:])
    if code:
        raise RuntimeError(f"nnkgraph {words[0]} ended with {code}")
    scale = 1 if sys.platform == "darwin" else 1024
    return most * scale, time.monotonic() - start


def outcomes_of(
    place: Place, *words: str, workers: int = 0
) -> list[tuple[str, str, str]]:
    """Run tests; return name, outcome (passed, failed, skipped) and message of each."""
    report = place.scratch / "tests.xml"
    report.unlink(missing_ok=True)
    line = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(workers)]
    subprocess.run(
        [sys.executable, *line, f"--junitxml={report}", *words],
        cwd=HOME,
        capture_output=True,
        check=False,
    )
    if not report.exists():
        raise NotRunError("pytest with pytest-xdist is needed: make install")
    found = []
    for case in ET.parse(report).iter("testcase"):
        outcome, message = "passed", ""
        for child in case:
            if child.tag in {"failure", "error", "skipped"}:
                outcome = "skipped" if child.tag == "skipped" else "failed"
                message = child.get("message") or ""
        found.append((case.get("name") or "", outcome, message))
    if not found:
        raise RuntimeError("no test was run")
    return found


def failures(place: Place, *words: str, workers: int = 0) -> Figure:
    """Run tests and count those that failed."""
    found = outcomes_of(place, *words, workers=workers)
    counts = Counter(outcome for _, outcome, _ in found)
    if not counts["passed"] and not counts["failed"]:
        reason = re.sub(r"\s+", " ", found[0][2])
        raise NotRunError(reason.removeprefix("Skipped: "))
    said = f"{counts['passed']} tests passed"
    said += f", {counts['skipped']} skipped" * bool(counts["skipped"])
    return Figure(counts["failed"], said)
