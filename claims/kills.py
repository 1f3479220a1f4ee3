"""Runs that are killed, again and again, and what is left of them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from bench import data
from bench.commands import nnkgraph as program
from claims.claim import Figure, Place, claim
from claims.runs import digest, failures, run, saved

_KILLS = 6


def _killed(line: list[str], folder: Path, after: float) -> bool:
    """Start a command, kill it after some seconds; say whether it was still there."""
    process = subprocess.Popen(line, cwd=folder, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@claim(
    "kill-resume",
    "A run that was killed (kill -9) goes on with `--resume`, and ends with the bytes "
    "of one that was not.",
    ("docs/batch_jobs.md", "the bytes of the result are those of a run that was never"),
    ("README.md", "an interruption, the type of x86-64 processor"),
    limit=">= 3",
    unit="kills survived",
)
def _kill_resume(place: Place) -> Figure:
    saved(place, "x.npy", data.manifold(30_000, 24))
    line = ("build", "x.npy", "-q", "-j", "2", "--search", "exact")
    start = time.monotonic()
    run(place, *line, "-o", "plain.npz")
    usual = time.monotonic() - start
    resumed = program(*line, "-o", "out.npz", "--resume", "checkpoint")
    survived, draw = 0, np.random.default_rng(0)
    # From its start on, and often where there are blocks: half of it is its start.
    for after in usual * draw.uniform(0.3, 0.95, _KILLS):
        survived += _killed(resumed, place.scratch, float(after))
        if (place.scratch / "out.npz").exists() and survived < _KILLS:
            if digest(place.scratch / "out.npz") != digest(place.scratch / "plain.npz"):
                return Figure(0, "a run ended with other bytes")
            (place.scratch / "out.npz").unlink()
    run(place, *resumed[1:])
    left = [one.name for one in place.scratch.iterdir()]
    whole = digest(place.scratch / "out.npz") == digest(place.scratch / "plain.npz")
    if not whole or "checkpoint" in left:
        return Figure(0, f"other bytes, or left behind: {left}")
    return Figure(
        survived, f"of {_KILLS} that were tried; the same bytes, nothing left"
    )


@claim(
    "kill-update",
    "An update that is killed leaves files that are the old or the new ones, whole; "
    "the same line again ends with the same bytes.",
    ("docs/update.md", "Files are the old ones or the new ones, whole"),
    limit="== 0",
    unit="files were neither old nor new",
)
def _kill_update(place: Place) -> Figure:
    x = data.manifold(6200, 24)
    old, work = place.scratch / "old", place.scratch / "work"
    old.mkdir()
    np.save(old / "all.npy", x[:6000])
    np.save(old / "new.npy", x[6000:])
    run(place, "build", old / "all.npy", "--updatable", "-o", old / "g.npz", "-q")
    line = program("update", "g.npz", "--features", "all.npy", "--add", "new.npy")
    line += ["-o", "g.npz", "--write-features", "all.npy", "-q"]
    names = ("all.npy", "g.npz")

    shutil.copytree(old, work)
    start = time.monotonic()
    subprocess.run(line, cwd=work, check=True)
    usual = time.monotonic() - start
    before = [digest(old / name) for name in names]
    after = [digest(work / name) for name in names]
    strange, killed, between = 0, 0, 0
    for seconds in usual * np.random.default_rng(1).uniform(0.3, 1.0, _KILLS):
        shutil.rmtree(work)
        shutil.copytree(old, work)
        killed += _killed(line, work, float(seconds))
        now = [digest(work / name) for name in names]
        strange += sum(
            one not in pair for one, *pair in zip(now, before, after, strict=True)
        )
        between += now not in (before, after)
        subprocess.run(line, cwd=work, check=True)
        strange += [digest(work / name) for name in names] != after
    said = f"{killed} kills of {_KILLS} updates, {between} between the two files"
    return Figure(strange if killed else np.nan, said)


@claim(
    "kill-fuzz",
    "Random command lines, killed at random moments: exit codes that are documented, "
    "whole files, nothing left, no traceback.",
    ("README.md", "no partial file, no prompt, no leftover process"),
    limit="== 0",
    unit="findings",
    command="make fuzz",
)
def _kill_fuzz(place: Place) -> Figure:
    from fuzz.commands import fuzz_commands

    found = place.scratch / "found"
    runs = fuzz_commands(7, lines=8, found=found, say=lambda _: None)
    killed = ", ".join(f"{n} {name}" for name, n in sorted(runs.killed.items()))
    said = (
        f"{runs.codes.total()} lines, {runs.built} graphs, {runs.verified} verified, "
    )
    return Figure(len(runs.findings), said + f"killed: {killed}")


@claim(
    "fuzz-files",
    "Damaged files are refused in one line, or read; none crashes, hangs, or takes "
    "memory or files that are not its own.",
    ("docs/batch_jobs.md", "Files are never trusted"),
    limit="== 0",
    unit="findings",
    command="make fuzz",
)
def _fuzz_files(_place: Place) -> Figure:
    from fuzz.files import fuzz_files

    tally = fuzz_files(7, seconds=60, files=500)
    said = f"{tally.count} files: {sum(tally.accepted.values())} read, "
    return Figure(len(tally.findings), f"{said}{sum(tally.refused.values())} refused")


@claim(
    "workers-die",
    "A worker that dies is replaced, one that hangs ends the run, and none is left.",
    ("docs/batch_jobs.md", "A worker that dies is replaced and its block done again"),
    limit="== 0",
    unit="tests failed",
    long="a minute",
    command="pytest tests/runtime/test_workers.py -k test_d0",
)
def _workers_die(place: Place) -> Figure:
    return failures(place, "tests/runtime/test_workers.py", "-k", "test_d0")
