"""The command on random data with random options, killed at random moments."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzz.data import Line, random_line
from fuzz.files import FOUND
from nnkgraph.runtime import cache

DOCUMENTED = {0, 2, 3, 4, 5, 6, 130, 141, 143}
_KILLS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_ENDS = {signal.SIGKILL: -signal.SIGKILL, signal.SIGTERM: 143, signal.SIGINT: 130}
_PATIENCE = 300.0


@dataclass
class Runs:
    """What came of all commands so far."""

    codes: Counter[int] = field(default_factory=Counter)
    built: int = 0
    verified: int = 0
    compared: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def table(self) -> list[str]:
        """Return what to print."""
        codes = ", ".join(f"{code}: {n}" for code, n in sorted(self.codes.items()))
        kills = ", ".join(f"{n} {name}" for name, n in sorted(self.killed.items()))
        return [
            f"lines: {self.codes.total()}; exit codes {codes}",
            f"graphs built: {self.built}, verified: {self.verified}",
            f"equal to the bytes of a run that was not killed: {self.compared}",
            f"killed: {kills or 'none'}",
            f"findings: {len(self.findings)}",
        ]


def fuzz_commands(
    seed: int,
    *,
    seconds: float = float("inf"),
    lines: int | None = None,
    found: Path = FOUND,
    say: Callable[[str], object] = print,
) -> Runs:
    """Run command lines until the time or their number has run out."""
    runs, number = Runs(), 0
    end = time.monotonic() + seconds
    while time.monotonic() < end and (lines is None or number < lines):
        folder = Path(tempfile.mkdtemp(prefix="nnkgraph-fuzz-"))
        case = _Case(folder, Random(f"{seed} line {number}"), runs)
        finding = case.run()
        if finding:
            text = f"line {number} of seed {seed}: {finding}\n{case.shown}"
            runs.findings.append(text)
            say(f"finding: {text}")
            shutil.copytree(folder, found / f"{seed}-line-{number}", dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        number += 1
    return runs


class _Case:
    """One command line, its folders, and what they must look like afterwards."""

    def __init__(self, folder: Path, chance: Random, runs: Runs) -> None:
        self.folder, self.chance, self.runs = folder, chance, runs
        for name in ("out", "tmp"):
            (folder / name).mkdir()
        self.line: Line = random_line(folder, chance)
        self.build = ["build", self.line.features, "-o", self.line.output]
        self.build += self.line.options
        self.shown = " ".join(map(str, self.build))

    def run(self) -> str:
        """Return what is wrong, or nothing."""
        killed = self.chance.random() < 0.4
        if killed:
            number = self.chance.choice(_KILLS)
            # Most of a small run is its start: spread the kills over all of it.
            code, said = self._call(self.build, number, self.chance.uniform(0.05, 2.5))
            self.runs.killed[number.name] += code in {-number, _ENDS[number]}
            wrong = self._judge(code, said, killed=number)
            if wrong:
                return wrong
        code, said = self._call(self.build)
        self.runs.codes[code] += 1
        wrong = self._judge(code, said)
        if wrong or code not in {0, 6}:
            return wrong
        self.runs.built += 1
        if code == 6:
            return ""
        code, said = self._call(["verify", self.line.features, self.line.output])
        if code:
            return f"verify ended with {code}: {said}"
        self.runs.verified += 1
        return self._compare() if killed else ""

    def _compare(self) -> str:
        """Compare with the bytes of a run that was not killed."""
        first = self.line.output.read_bytes()
        code, said = self._call(self.build)
        if code or self.line.output.read_bytes() != first:
            return f"another run gave other bytes, or {code}: {said}"
        self.runs.compared += 1
        return ""

    def _judge(self, code: int, said: str, killed: signal.Signals | None = None) -> str:
        """Judge exit code, messages and what is left in the folders."""
        if killed == signal.SIGKILL and code == -killed:
            return ""  # nobody was left to clean up; the next run does
        # In its first instants the interpreter itself answers to a signal.
        early = killed is not None and code == -killed
        if code not in DOCUMENTED and not early:
            return f"exit code {code}: {said}"
        if ("Traceback" in said or "bug:" in said) and not early:
            return f"a traceback: {said}"
        allowed = {self.line.output.name, f"{self.line.output.name}.nnk.npz"}
        left = [p.name for p in (self.folder / "out").iterdir()]
        strange = [one for one in left if code not in {0, 6} or one not in allowed]
        strange += [p.name for p in (self.folder / "tmp").iterdir()]
        resume = self.line.resume
        if resume is not None and code == 0 and resume.exists():
            strange.append(resume.name)
        return f"left behind after {code}: {strange}; {said}" if strange else ""

    def _call(
        self, words: list, number: int | None = None, after: float = _PATIENCE
    ) -> tuple[int, str]:
        """Run the command in a session of its own, which must be empty afterwards."""
        environment = {**os.environ, "TMPDIR": str(self.folder / "tmp")}
        if kept := cache.private():  # else each would compile into its own folder
            environment["NUMBA_CACHE_DIR"] = str(kept.parent)
        process = subprocess.Popen(
            [sys.executable, "-m", "nnkgraph", *map(str, words)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            said = process.communicate(timeout=after)[1]
        except subprocess.TimeoutExpired:
            process.send_signal(number or signal.SIGKILL)
            said = process.communicate()[1]
        text = said.decode(errors="replace")
        if not _is_gone(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
            return 1, f"processes were left behind; {text}"
        return process.returncode, text


def _is_gone(session: int, seconds: float = 15.0) -> bool:
    """Wait for the last process of a session to end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
