"""Which test reaches which line, and how long it takes: measured and kept."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from mutants.sites import ROOT
from mutants.trial import BUILD, Copy, Job, run

if TYPE_CHECKING:
    from pathlib import Path

    from mutants.sites import Mutant

_TESTS = {
    "": (
        *("build/*", "cli/test_growing", "data/test_[ps]*", "kernels/*"),
        "methods/test_[!u]*",
        *("search/*", "tasks/test_neighbors", "tasks/test_verify"),
    ),
    "connect": ("build/test_trust",),
    "search": ("search/*",),
    "solver": ("methods/test_methods", "methods/test_qp"),
}
"""Tests of what is broken here, below tests/; and those for compiled code of a target,
which are worth their time in plain Python."""

_LONGEST = 60, 10
"""Seconds that a test may take, and in plain Python; those that take longer are left
out."""

_FIRST = 4.0
"""Seconds of tests of the file that has most of them, which are run before others."""

LONGEST = {False: 60, True: 20}
"""Seconds that a test may take, by whether in plain Python; others are left out."""


class Map:
    """The tests that pass as the package is, by the lines that they reach."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.by_line: dict[tuple[str, int], list[str]] = defaultdict(list)

    def add(self, report: list[dict]) -> None:
        """Take what a run of tests has reported."""
        for one in report:
            if one["passed"]:
                self.seconds[one["test"]] = one["seconds"]
                for path, lines in one["lines"].items():
                    for line in lines:
                        self.by_line[path, line].append(one["test"])

    def tests(self, mutant: Mutant, most: float) -> list[str]:
        """Return tests that may notice, the quickest first, within a time."""
        lines = [(mutant.path, line) for line in mutant.lines]
        for name in mutant.names:
            lines += _used(name)
        found = {test for line in lines for test in self.by_line.get(line, ())}
        if mutant.inside == "" and not found:
            found = {
                test
                for (path, _), tests in self.by_line.items()
                if path == mutant.path
                for test in tests
            }
        quickest = sorted(found, key=lambda one: (self.seconds[one], one))
        files = Counter(one.partition("::")[0] for one in quickest)
        if not files:
            return []
        # One file to begin with: it takes time to read all of them.
        (own, _), *_ = sorted(files.items(), key=lambda one: (-one[1], one[0]))
        first = [one for one in quickest if one.startswith(f"{own}::")]
        first = self._within(first, min(most, _FIRST))
        rest = [one for one in quickest if one not in {*first}]
        return first + self._within(rest, most - self.total(first))

    def total(self, tests: list[str]) -> float:
        """Return the seconds that tests take together."""
        return sum(self.seconds[one] for one in tests)

    def _within(self, tests: list[str], most: float) -> list[str]:
        """Return as many tests as there is time for, one at least."""
        ends = itertools.accumulate(self.seconds[one] for one in tests)
        return [
            one
            for at, (one, end) in enumerate(zip(tests, ends, strict=True))
            if at == 0 or end <= most
        ]


@functools.cache
def _texts() -> dict[str, list[str]]:
    paths = sorted((ROOT / "nnkgraph").rglob("*.py"))
    return {
        path.relative_to(ROOT).as_posix(): path.read_text().splitlines()
        for path in paths
    }


@functools.cache
def _used(name: str) -> list[tuple[str, int]]:
    """Return every line of the package that has a name in it."""
    word = re.compile(rf"\b{re.escape(name)}\b")
    return [
        (path, number)
        for path, lines in _texts().items()
        for number, line in enumerate(lines, 1)
        if word.search(line)
    ]


def test_files(plain: str) -> list[Path]:
    """Return the test files for changes of compiled code of a target, or for others."""
    found = {
        path: None
        for pattern in _TESTS[plain]
        for path in sorted((ROOT / "tests").glob(f"{pattern}.py"))
        if path.name.startswith("test_")
    }
    return list(found)


def measure(copies: list[Copy], plain: str) -> Map:
    """Return the map; tests are run where they, or what they reach, have changed."""
    folder = BUILD / (plain or "compiled")
    folder.mkdir(parents=True, exist_ok=True)
    found, jobs = Map(), []
    for path in test_files(plain):
        name = path.relative_to(ROOT).as_posix()
        if (report := _kept(folder, name)) is None:
            longest = _LONGEST[bool(plain)]
            job = Job([name], plain, 1200, first=False, cover=True, longest=longest)
            jobs.append(job)
        else:
            found.add(report)
    for number, job in enumerate(run(jobs, copies), 1):
        report = job.report
        (name,) = job.tests
        passed = sum(bool(one["passed"]) for one in report)
        print(
            f"[{number}/{len(jobs)}] {name}: {passed} of {len(report)} tests pass"
            f"{f' with {plain} in plain Python' if plain else ''}",
            file=sys.stderr,
            flush=True,
        )
        if not report:
            sys.exit(f"{name} cannot be run:\n{job.told}")
        _keep(folder, name, report)
        found.add(report)
    return found


def _place(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '-')}.json"


def _digests(names: set[str]) -> dict[str, str]:
    paths = {name: ROOT / name for name in sorted(names)}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
        for name, path in paths.items()
    }


def _kept(folder: Path, name: str) -> list[dict] | None:
    """Return what the tests of a file reached, unless something is another now."""
    place = _place(folder, name)
    if not place.exists():
        return None
    known = json.loads(place.read_text())
    return known["report"] if known["of"] == _digests(set(known["of"])) else None


def _keep(folder: Path, name: str, report: list[dict]) -> None:
    reached = {name} | {path for one in report for path in one["lines"]}
    known = {"of": _digests(reached), "report": report}
    _place(folder, name).write_text(json.dumps(known))
