"""The catalogue of faults: which rows there are, and a way to fail cleanly.

A test names the rows it covers: ``test_a07_...``, ``test_b02_b03_...``.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LENGTHS = {"a": 36, "b": 15, "c": 19, "d": 19, "e": 19, "f": 9, "g": 10, "h": 12}
LENGTHS |= {"j": 12, "k": 20, "l": 22, "m": 8, "n": 21}
ROWS = tuple(
    f"{letter}{number}"
    for letter, length in LENGTHS.items()
    for number in range(1, length + 1)
)

WAITING: dict[str, str] = {}
"""Rows that wait for something, and for what; a test may cover a part of them."""

IMPOSSIBLE: dict[str, str] = {}
"""Rows that no test can show, and why."""

_NAME = re.compile(r"test_((?:[a-hj-n]\d+_)+)")


def rows_of(test: str) -> list[str]:
    """Return the rows that a test's name names."""
    found = _NAME.match(test)
    names = found.group(1).split("_")[:-1] if found else []
    return [f"{name[0]}{int(name[1:])}" for name in names]


def table(outcomes: dict[str, set[str]]) -> list[str]:
    """Return lines that count rows by letter, from the outcomes of their tests."""
    heads = ("rows", "covered", "passed", "failed", "skipped", "waiting", "impossible")
    lines = ["    " + "".join(f"{head:>12}" for head in heads)]
    total = dict.fromkeys(heads, 0)
    for letter in LENGTHS:
        counts = dict.fromkeys(heads, 0)
        for row in (row for row in ROWS if row[0] == letter):
            for head in ("rows", _state(row, outcomes)):
                counts[head] += 1
            counts["covered"] += row in outcomes and row not in WAITING
        lines.append(_line(letter.upper(), counts.values()))
        total = {head: total[head] + counts[head] for head in heads}
    lines.append(_line("all", total.values()))
    for what, rows in (("waiting", WAITING), ("impossible", IMPOSSIBLE)):
        lines += [f"{what} {row.upper()}: {why}" for row, why in rows.items()]
    for state in ("failed", "skipped"):
        rows = [row.upper() for row in ROWS if _state(row, outcomes) == state]
        lines += [f"{state}: {', '.join(rows)}"] if rows else []
    return lines


def _line(head: str, counts: Any) -> str:
    return f"{head:<4}" + "".join(f"{count:>12}" for count in counts)


def _state(row: str, outcomes: dict[str, set[str]]) -> str:
    if row in WAITING:
        return "waiting"
    if row in IMPOSSIBLE:
        return "impossible"
    seen = outcomes.get(row, set())
    # A row counts as passed where all of its tests that can run here have passed.
    for state in ("failed", "passed", "skipped"):
        if state in seen:
            return state
    return "failed"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    peak: int
    """Largest memory of any process, in bytes."""


@dataclass(frozen=True)
class Case:
    """A folder with inputs, another for temporary files, and the command."""

    here: Path
    tmp: Path
    program: tuple[str, ...]

    def start(
        self,
        *args: object,
        env: dict[str, str | None] | None = None,
        limits: dict[int, int] | None = None,
        before: tuple[object, ...] = (),
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start the command in a session of its own."""
        changed = {"TMPDIR": str(self.tmp), **(env or {})}
        if limits:  # counting lines would run into them, too
            changed["COVERAGE_PROCESS_CONFIG"] = None
        full = {k: v for k, v in (os.environ | changed).items() if v is not None}

        def limit() -> None:
            for number, value in (limits or {}).items():
                resource.setrlimit(number, (value, value))

        return subprocess.Popen(
            [*map(str, before), *self.program, *map(str, args)],
            **{
                "cwd": self.here,
                "env": full,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "start_new_session": True,
                "preexec_fn": limit if limits else None,
                **options,
            },
        )

    def run(self, *args: object, timeout: float = 60, **options: Any) -> Done:
        """Run the command to its end."""
        job = self.start(*args, **options)
        try:
            out, err = job.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            job.kill()
            raise
        self.assert_alone(job.pid)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        return Done(job.returncode, out or "", err or "", peak)

    def fails(self, code: int, words: str, *args: object, **options) -> Done:
        """Run the command, which has to fail with a code and leave nothing behind."""
        here, tmp = content(self.here), content(self.tmp)
        done = self.run(*args, **options)
        assert done.code == code, (done.code, done.err)
        assert_one_line(done.err, words)
        assert not done.out
        assert content(self.here) == here
        assert content(self.tmp) == tmp
        return done

    def assert_alone(self, session: int, seconds: float = 5) -> None:
        """Wait a little until no process of a session is left."""
        end = time.monotonic() + seconds
        while left := processes_of_session(session):
            assert time.monotonic() < end, f"processes left: {left}"
            time.sleep(0.02)


WRITING = {
    "build": "build x.npy -j 1 -k 5 -o out.npz",
    "search": "search x.npy -k 5 -o out.h5",
    "query": "query x.npy y.npy -k 5 -o out.npz",
    "update": "update u.npz --features x.npy --add y.npy -o out.npz",
    "convert": "convert g.npz out.tsv",
    "cluster": "cluster g.npz -o out.csv",
    "audit": "audit x.npy -o out.csv",
    "embed": "embed g.npz -o out.csv",
    "propagate": "propagate g.npz --labels some.csv -o out.csv",
    "report": "report g.npz -o out.html",
    "plot": "plot g.npz --coords e.csv -o out.svg",
}
"""A command of each kind that writes a file, whose name is the last word."""


@dataclass(frozen=True)
class Kit:
    """A folder with files of every kind, and the command line in this process."""

    here: Path
    tmp: Path
    call: Any
    program: Path

    @property
    def case(self) -> Case:
        """The same folder for processes of their own."""
        return Case(self.here, self.tmp, (str(self.program),))

    def run(self, line: str, *more: object) -> Any:
        """Run a line of words, and more that may have blanks."""
        return self.call(*line.split(), *more)

    def fails(self, code: int, words: str, line: str, *more: object) -> None:
        """Run what has to fail with a code, and leave nothing behind."""
        here, tmp = content(self.here), content(self.tmp)
        done = self.run(line, *more)
        assert done.code == code, (done.code, done.err)
        assert_one_line(done.lines[-1], words)
        assert "Traceback" not in done.err
        assert content(self.here) == here
        assert content(self.tmp) == tmp


def assert_one_line(err: str, words: str) -> None:
    """Check what a failure says: one line that can be printed."""
    lines = told(err)
    assert len(lines) == 1, err
    assert lines[0].startswith("nnkgraph: error: "), err
    assert lines[0].isprintable()
    assert re.search(words, lines[0]), err


def told(err: str) -> list[str]:
    """Return the lines but the one that only the first run of all has."""
    return [line for line in err.splitlines() if not line.startswith("compiling")]


def content(folder: Path) -> dict[str, bytes | str | None]:
    """Return what is in a folder, by name; compile caches do not count."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if "__pycache__" in name:  # of a user's own module, made by Python
            continue
        if path.is_symlink():
            found[name] = str(path.readlink())
        else:
            readable = path.is_file() and os.access(path, os.R_OK)
            found[name] = path.read_bytes() if readable else None
    return found


def processes_of_session(session: int) -> list[int]:
    """Return the living processes that belong to a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == session and words[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


_DROP = """
set -e
base=$1 top=$2; shift 2
if [ -n "$top" ]; then
  stage=$(mktemp -d)
  mount --bind "$base" "$stage"
  mount -t tmpfs -o mode=755 tmpfs "$top"
  mkdir -p "$base"
  mount --move "$stage" "$base"
  rmdir "$stage"
fi
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""
"""Become nobody; where Python is in a closed home, show it in a mount of our own."""


def ordinary_user(program: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command that is run by somebody whom permissions concern."""
    if os.geteuid() != 0:
        return program
    if not (shutil.which("setpriv") and shutil.which("unshare")):
        pytest.skip("root, and no setpriv or unshare to become somebody else")
    base = Path(sys.base_prefix)
    closed = [p for p in (base, *base.parents) if not p.stat().st_mode & 0o001]
    top = str(closed[-1]) if closed else ""
    wrapper = ("unshare", "-m", "sh", "-c", _DROP, "sh", str(base), top)
    tried = subprocess.run(
        [*wrapper, *program, "--version"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"cannot become somebody else: {tried.stderr.decode()!r}")
    return (*wrapper, *program)


def open_folder() -> Path:
    """Return a new folder that belongs to the user whom permissions concern."""
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    return folder


def mounted(place: Path, size: str) -> tuple[str, ...]:
    """Return a wrapper that gives a command a small file system of its own."""
    script = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'
    wrapper = ("unshare", "-m", "sh", "-c", script, "sh", size, str(place))
    try:
        subprocess.run([*wrapper, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing can be mounted here: {error}")
    return wrapper
