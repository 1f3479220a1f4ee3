"""Mutated files, read in a child process that may die without ending the work."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from fuzz import cases
from fuzz.hdf5 import CANARY
from fuzz.seeds import Seed, hdf5
from fuzz.watch import MEGABYTES, SECONDS, Watch

FOUND = Path(__file__).parent / "found"
_SILENCE = 30.0
_BATCH = 200
Answer = tuple[int, str, str, float, float, str]
"""Number, role, error's name or "", processor seconds, peak in MB, finding or ""."""


@dataclass
class Tally:
    """What came of all files so far."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, tuple[float, int]] = field(default_factory=dict)
    largest: dict[str, tuple[float, int]] = field(default_factory=dict)
    findings: list[tuple[int, str, str]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Files read."""
        return self.accepted.total() + self.refused.total() + len(self.findings)

    def take(self, answer: Answer) -> None:
        """Take in the answer of one case."""
        number, role, error, seconds, peak, finding = answer
        if finding:
            self.findings.append((number, role, finding))
        else:
            (self.refused if error else self.accepted)[role] += 1
        for best, value in ((self.slowest, seconds), (self.largest, peak)):
            best[role] = max(best.get(role, (0.0, 0)), (value, number))


def fuzz_files(
    seed: int,
    *,
    seconds: float = float("inf"),
    files: int | None = None,
    first: int = 0,
    found: Path = FOUND,
    say: Callable[[str], object] = print,
) -> Tally:
    """Read mutated files until the time or their number has run out."""
    tally, number = Tally(), first
    end = time.monotonic() + seconds
    last = None if files is None else first + files
    while time.monotonic() < end and (last is None or number < last):
        for answer in _one_child(seed, number, last, end):
            tally.take(answer)
            number = answer[0] + 1
            if answer[5]:
                keep(seed, answer[0], answer[5], found)
                say(f"finding {answer[0]} ({answer[1]}): {answer[5][-150:]!a}")
    return tally


def keep(seed: int, number: int, finding: str, found: Path) -> None:
    """Save the file of a finding, and how to see it again."""
    found.mkdir(parents=True, exist_ok=True)
    case = cases.draw(seed, number)
    name = f"{seed}-{number}-{case.seed.role.replace(' ', '-')}"
    (found / f"{name}-{case.seed.name}").write_bytes(case.data)
    line = f"python -m fuzz --seed {seed} --only {number}"
    text = f"{line}\n\n{finding}\n".encode("utf-8", "backslashreplace")
    (found / f"{name}.finding").write_bytes(text)


def _one_child(seed: int, first: int, last: int | None, end: float):
    """Yield answers until a child ends; its death is the last answer."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    folder = Path(tempfile.mkdtemp(prefix="nnkgraph-fuzz-", dir=_fast()))
    child = context.Process(
        target=_work,
        args=(theirs, cases.seeds(), seed, first, last, end, str(folder)),
        daemon=True,
    )
    child.start()
    theirs.close()
    number = first
    try:
        before, at = -1, number
        while before != at:  # a slow machine is no finding, a file that stands is
            if not ours.poll(_SILENCE):
                before, at = at, _read_number(folder, number)
                continue
            answer = ours.recv()
            if answer is None:
                return
            for one in answer:
                yield one
                number = one[0] + 1
            before = -1
        child.kill()
        yield _death(at, f"no answer for {_SILENCE:g} s")
    except EOFError:
        child.join()
        code = child.exitcode or 0
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if not (folder / "number").exists():
            raise RuntimeError(f"the fuzzer itself failed: {name}") from None
        yield _death(_read_number(folder, number), f"the process ended: {name}")
    finally:
        child.join(5)
        shutil.rmtree(folder, ignore_errors=True)


def _death(number: int, what: str) -> Answer:
    return number, cases.role_of(number), "", 0.0, 0.0, what


def _fast() -> str | None:
    """Return a folder in memory, where there is one: files are short-lived."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _read_number(folder: Path, number: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((folder / "number").read_text())
    return number


def _work(
    pipe: Connection,
    seeds: list[Seed],
    seed: int,
    first: int,
    last: int | None,
    end: float,
    name: str,
) -> None:
    """Read files in the child; answers go to the pipe in batches."""
    cases.seeds = lambda: seeds  # they take a while to make
    outside, folder = Path(name), Path(name, "case")
    folder.mkdir()
    (outside / CANARY).write_bytes(hdf5(x=np.ones((12, 3))))
    watch = Watch(folder, [outside / CANARY, Path("/etc/hostname")])
    batch: list[Answer] = []
    number = first
    with (outside / "number").open("w") as marker:
        while time.monotonic() < end and (last is None or number < last):
            # Read by the parent where this process dies.
            os.pwrite(marker.fileno(), f"{number:<20}".encode(), 0)
            case = cases.draw(seed, number)
            path, error, finding = cases.put(case, folder), "", ""
            watch.start()
            try:
                error = cases.run(case, path)
            except BaseException:
                watch.active = False
                finding = traceback.format_exc()
            used, peak = watch.stop()
            finding = finding or "; ".join(watch.seen)
            if not finding and (used > SECONDS or peak > MEGABYTES):
                finding = f"{used:.2f} s of processor time, {peak:.0f} MB"
            batch.append((number, case.seed.role, error, used, peak, finding))
            number += 1
            if len(batch) >= _BATCH or finding:
                pipe.send(batch)
                batch = []
    pipe.send(batch)
    pipe.send(None)
