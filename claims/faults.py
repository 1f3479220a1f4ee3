"""The catalogue of faults, and how much of the code the tests reach."""

from __future__ import annotations

import importlib.util

from claims.claim import Figure, Place, claim, stated
from claims.runs import HOME, failures, outcomes_of


@claim(
    "fault-rows",
    "Every row of the catalogue of faults ends as it should: one line, the right exit "
    "code, no partial file.",
    ("README.md", "One line on stderr and a fitting [exit code]"),
    ("docs/batch_jobs.md", "ends with a table of faults and how they end"),
    limit="== 1",
    unit="of the rows passed",
    long="four minutes",
)
def _faults(place: Place) -> Figure:
    spec = importlib.util.spec_from_file_location("faults", HOME / "tests/faults.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("tests/faults.py cannot be read")
    catalogue = importlib.util.module_from_spec(spec)
    __import__("sys").modules["faults"] = catalogue
    spec.loader.exec_module(catalogue)
    names = " or ".join(
        f"test_{letter}{digit}" for letter in "abcdefgh" for digit in "0123456789"
    )
    outcomes: dict[str, set[str]] = {}
    for name, outcome, _ in outcomes_of(place, "tests", "-k", names, workers=2):
        plain, _, parameters = name.partition("[")
        for row in {
            *catalogue.rows_of(plain),
            *catalogue.rows_of(f"test_{parameters}"),
        }:
            outcomes.setdefault(row, set()).add(outcome)
    rows = [row for row in catalogue.ROWS if row not in catalogue.IMPOSSIBLE]
    states = {row: outcomes.get(row, {"failed"}) for row in rows}
    bad = [row for row, state in states.items() if "failed" in state]
    good = [row for row in rows if row not in bad and "passed" in states[row]]
    said = f"{len(good)} of {len(rows)} rows"
    said += f"; failed: {', '.join(bad)}" * bool(bad)
    said += f"; only skipped: {len(rows) - len(good) - len(bad)}" * (
        len(good) + len(bad) < len(rows)
    )
    return Figure(len(good) / len(rows), said)


@claim(
    "catalogue",
    "Every row of the catalogue has a test.",
    ("docs/batch_jobs.md", "ends with a table of faults and how they end"),
    limit="== 0",
    unit="tests failed",
)
def _catalogue(place: Place) -> Figure:
    return failures(place, "tests/robustness/test_faults.py")


@claim(
    "faults-files",
    "Input that is missing, cut, damaged or of another kind is refused cleanly.",
    ("docs/files.md", "pickles are never loaded"),
    limit="== 0",
    unit="tests failed",
    long="a minute",
    command="pytest tests/robustness/test_faults_a.py",
)
def _faults_files(place: Place) -> Figure:
    return failures(place, "tests/robustness/test_faults_a.py", workers=2)


stated(
    "faults",
    "coverage",
    "Tests reach 95 % of lines and branches at least.",
    ("CONTRIBUTING.md", "`make coverage` fails below 95 % of lines and branches"),
    command="make coverage",
    why="all tests, under a counter: twenty minutes",
)
stated(
    "faults",
    "tests",
    "All tests pass.",
    ("README.md", "the tests: installs what they need (1.2 GB), then twelve minutes"),
    command="make test",
    why="twelve minutes",
)
