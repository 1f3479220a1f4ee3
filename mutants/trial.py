"""Tests of a broken copy of the package, each run in a child of this process.

What is slow to import is imported once, here, and nothing of the package is: a child is
there in no time and imports the copy. A change of compiled code is tried in plain
Python, which computes the same to the last bit (``tests/uncompiled.py``); all other
compiled code is that of the package, which is in the cache.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutants.sites import ROOT, TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mutants.sites import Mutant

BUILD = ROOT / "build" / "mutants"
TESTS = ROOT / "tests"
HEAVY = ("numpy", "scipy.sparse.csgraph", "scipy.spatial", "scipy.optimize", "numba")
HEAVY += ("llvmlite.binding", "pytest", "hypothesis", "networkx", "click", "h5py")
HEAVY += ("pynndescent", "coverage", "_pytest.assertion.rewrite", "tqdm")
MEMORY = 12 << 30
"""Bytes of addresses that a child may have: a change may ask for no end of memory."""

_HOLDS_COMPILED = re.compile(
    rb"^from nnkgraph\.runtime(\.jit import| import .*\bjit\b)", re.MULTILINE
)


def holds_compiled(path: Path) -> bool:
    """Say whether the compiler reads a module."""
    return bool(_HOLDS_COMPILED.search(path.read_bytes()))


def prepare() -> None:
    """Import what children share, for the processors that tests compile for."""
    os.environ.setdefault("NNKGRAPH_CPU", "auto")
    os.environ.setdefault(
        "NUMBA_CACHE_DIR", f"{tempfile.gettempdir()}/nnkgraph-cache-{os.getuid()}"
    )
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ["CI"] = "1"  # hypothesis draws the same each time
    sys.path.insert(0, str(ROOT))
    importlib.import_module("nnkgraph.runtime.cache").settle_cpu()
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)
    for name in [one for one in sys.modules if one.split(".")[0] == "nnkgraph"]:
        del sys.modules[name]
    sys.path.remove(str(ROOT))


@dataclass
class Copy:
    """A copy of the package, and a folder for what its tests write."""

    folder: Path
    original: dict[str, bytes]
    """The modules as they were: files may be edited while this runs."""

    @classmethod
    def make(cls, name: str) -> Copy:
        """Make one anew, compiled to bytecode."""
        import compileall

        folder = BUILD / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(
            ROOT / "nnkgraph",
            folder / "nnkgraph",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        compileall.compile_dir(folder / "nnkgraph", quiet=1)
        modules = sorted((folder / "nnkgraph").rglob("*.py"))
        return cls(
            folder, {p.relative_to(folder).as_posix(): p.read_bytes() for p in modules}
        )

    def put(self, path: str, source: bytes) -> None:
        """Replace a module; what was kept of its bytecode goes."""
        place = self.folder / path
        for kept in (place.parent / "__pycache__").glob(f"{place.stem}.*.pyc"):
            kept.unlink()
        place.write_bytes(source)


@dataclass
class Job:
    """Tests to run in a child, in this order, and what came of it."""

    tests: list[str]
    plain: str
    """The target whose compiled functions are run in plain Python, if any."""
    seconds: float
    """Of processor time, at most."""
    first: bool = True
    """Stop at the first failure."""
    cover: bool = False
    """Note the lines that each test reaches."""
    longest: int = 0
    """Seconds that a test may take; 0 for no limit of its own."""
    mutant: Mutant | None = None
    """What is changed in the copy meanwhile."""
    copy: Copy = field(init=False)
    child: int = 0
    started: float = 0.0
    seconds_taken: float = 0.0
    result: str = ""
    reason: str = ""
    """The test that noticed."""

    def start(self, copy: Copy) -> None:
        """Begin in a child."""
        self.copy, self.started = copy, time.monotonic()
        if self.mutant:
            source = copy.original[self.mutant.path]
            copy.put(self.mutant.path, self.mutant.applied(source))
        sys.stdout.flush()
        self.child = os.fork()
        if self.child == 0:
            code = 70
            try:
                code = _child(self)
            except BaseException:
                traceback.print_exc()
            finally:
                with suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(code)

    def over(self) -> bool:
        """Look whether it has ended, and end it where it takes too long."""
        done, status = os.waitpid(self.child, os.WNOHANG)
        if not done:
            if time.monotonic() - self.started < 40 + 8 * self.seconds:
                return False
            _end(self.child)
            _, status = os.waitpid(self.child, 0)
            status = signal.SIGXCPU
        _end(self.child)  # and what it has left behind
        self.seconds_taken = time.monotonic() - self.started
        if self.mutant:
            self.copy.put(self.mutant.path, self.copy.original[self.mutant.path])
        code = os.waitstatus_to_exitcode(status)
        told = self.told
        if code == 0:
            self.result = "survived"
        elif code in {-signal.SIGXCPU, -signal.SIGKILL} or "Timeout (>" in told:
            self.result = "timeout"
        else:
            self.result = "killed"
            lines = told.splitlines()
            noticed = [one for one in self.report if not one["passed"]]
            self.reason = (
                f"ended by signal {-code}" if code < 0 else (lines or ["?"])[-1]
            )
            if noticed:
                self.reason = noticed[0]["test"]
        return True

    @property
    def told(self) -> str:
        """What the child has printed."""
        return (self.copy.folder / "out").read_text(errors="replace")

    @property
    def report(self) -> list[dict[str, object]]:
        """What became of each test: name, whether it passed, seconds, lines."""
        path = self.copy.folder / "report.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


def _end(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def run(jobs: Iterable[Job], copies: list[Copy]) -> Iterator[Job]:
    """Run jobs, one on every copy at a time; yield each as it ends.

    A job may have a method ``ready``, which is called with its copy before it starts.
    """
    waiting, free, running = iter(jobs), list(copies), []
    try:
        while True:
            while free and (job := next(waiting, None)) is not None:
                job.start(free.pop())
                running.append(job)
            if not running:
                return
            time.sleep(0.02)
            for job in [one for one in running if one.over()]:
                running.remove(job)
                free.append(job.copy)
                yield job
    finally:
        for job in running:
            _end(job.child)


def _child(job: Job) -> int:
    """Run tests in this process, whose imports are those of the copy."""
    os.setsid()
    folder = job.copy.folder
    out = os.open(folder / "out", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(here, there)
    limit = int(job.seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(ROOT)
    sys.path[:0] = [str(folder), str(ROOT), str(TESTS)]
    os.environ["PYTHONPATH"] = str(folder)
    import pytest

    watch: Callable[..., _Watch] = _Watch
    watcher = watch(job)
    if job.cover:
        watcher.begin()
    import nnkgraph

    assert Path(nnkgraph.__file__).is_relative_to(folder)
    from nnkgraph.runtime import cache

    was = _sources(job.copy.original)
    cache._sources = lambda: was
    if job.plain:
        _leave_out(job.plain)
    options = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-p", "no:randomly", "--override-ini=addopts=", "-rN"]
    options += [f"--basetemp={folder / 'tmp'}", f"--rootdir={ROOT}"]
    options += [f"--timeout={job.longest}"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += ["-x"] if job.first else []
    files = list(dict.fromkeys(one.partition("::")[0] for one in job.tests))
    for some in (files[:1], files) if len(files) > 1 else (files,):
        code = int(pytest.main([*options, *some], plugins=[watcher]))
        if code not in {0, pytest.ExitCode.NO_TESTS_COLLECTED}:
            return code
    return 0 if watcher.seconds else 4


def _sources(original: dict[str, bytes]) -> dict[str, bytes]:
    """Return what names the cache of the package as it was, not of what is broken."""
    return {
        path.removeprefix("nnkgraph/"): text
        for path, text in original.items()
        if path == "nnkgraph/runtime/jit.py" or _HOLDS_COMPILED.search(text)
    }


def _leave_out(target: str) -> None:
    """Run the functions of a target in plain Python, and compile all others.

    Inner functions of others are compiled, too, and plain where plain Python calls.
    """
    import numpy as np
    from numba.core import extending

    from nnkgraph.runtime import jit

    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for pattern in TARGETS[target]
        for path in (ROOT / "nnkgraph").glob(pattern)
    }
    compiled = jit.compiled

    def but_for_some(function: Callable, *, inner: bool = False) -> Any:
        if function.__module__ in names:
            return function
        made = compiled(function, inner=inner)
        if inner:
            made.__class__ = type(
                "Both",
                (type(made),),
                {"__call__": lambda self, *args: self.py_func(*args)},
            )
        return made

    jit.compiled = but_for_some
    extending._Intrinsic.__call__ = lambda self, *args: getattr(
        importlib.import_module("plain"), self._defn.__name__
    )(*args)
    np.seterr(all="ignore")  # compiled code does not warn


class _Watch:
    """A plug-in of pytest: picks tests, puts them in order, notes what happens."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.order = {name: at for at, name in enumerate(job.tests)}
        self.report = (job.copy.folder / "report.jsonl").open("w")
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.cover = None

    def begin(self) -> None:
        """Count lines; `pytest_runtest_protocol` says which test reaches them."""
        import coverage

        source = str(self.job.copy.folder / "nnkgraph")
        self.cover = coverage.Coverage(
            data_file=None, source=[source], config_file=False
        )
        self.cover.start()

    def pytest_collection_modifyitems(self, items: list) -> None:
        whole = {name for name in self.order if "::" not in name}
        items[:] = [
            one
            for one in items
            if one.nodeid not in self.seconds  # run before
            and (one.nodeid in self.order or one.nodeid.partition("::")[0] in whole)
        ]
        items.sort(key=lambda one: self.order.get(one.nodeid, -1))

    def pytest_runtest_logreport(self, report) -> None:
        name = report.nodeid
        self.seconds[name] = self.seconds.get(name, 0.0) + report.duration
        if report.outcome != "passed":
            self.failed.add(name)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.cover:
            self.cover.switch_context(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        lines: dict[str, list[int]] = {}
        if self.cover:
            data = self.cover.get_data()
            data.set_query_context(nodeid)
            for path in data.measured_files():
                if found := data.lines(path):
                    name = Path(path).relative_to(self.job.copy.folder).as_posix()
                    lines[name] = sorted(found)
        record = {
            "test": nodeid,
            "passed": nodeid not in self.failed,
            "seconds": round(self.seconds.get(nodeid, 0.0), 3),
            "lines": lines,
        }
        self.report.write(json.dumps(record) + "\n")
        self.report.flush()
