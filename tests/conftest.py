"""What tests share: the command in this process and as a program, and small data."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")

PROGRAM = Path(sys.executable).with_name("nnkgraph")
SAMPLES = Path(__file__).parent.parent / "sample_data"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()


@pytest.fixture
def run(capsys):
    """Run the command line in this process."""
    from nnkgraph.cli import main, say

    def call(*args: object) -> Result:
        say.reset(0)
        code = main.run([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def program(tmp_path):
    """Run the installed command as a process of its own."""

    def call(*args: object, env=None, input_=None, cwd=tmp_path, timeout=120) -> Result:
        done = subprocess.run(
            [PROGRAM, *map(str, args)],
            input=input_,
            capture_output=True,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            timeout=timeout,
            check=False,
        )
        return Result(
            done.returncode,
            done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"),
        )

    return call


@pytest.fixture
def points(tmp_path) -> Path:
    """A small feature file."""
    path = tmp_path / "points.npy"
    np.save(path, np.random.default_rng(5).normal(size=(60, 3)))
    return path


def brute_force(x, k, base="squared-distance"):
    """The definition of exact search, in plain numpy on float64."""
    x = np.asarray(x, np.float64)
    if base == "squared-distance":
        score = ((x[:, np.newaxis] - x[np.newaxis]) ** 2).sum(axis=2)
    else:
        score = -(x @ x.T)
    np.fill_diagonal(score, np.inf)
    # Sums in another order differ in their last digits: ties are decided on rounded
    # scores, so use data whose scores are exact (integers) where ties matter.
    index = np.lexsort((np.broadcast_to(np.arange(len(x)), score.shape), score), axis=1)
    return index[:, :k], np.take_along_axis(score, index[:, :k], axis=1)
