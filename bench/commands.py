"""Whole commands, from the shell prompt to the file."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench import data
from bench.ratio import Line, compare

_LONGEST = 600.0
"""Seconds after which a command is given up."""

_WIDTHS = (3, 16, 64, 384)

_BY_SKLEARN = """
import sys
import numpy as np
from sklearn.neighbors import kneighbors_graph
kneighbors_graph(np.load(sys.argv[1]), 30, mode="distance", n_jobs=int(sys.argv[2]))
"""


def nnkgraph(*arguments: str) -> list[str]:
    """Return a command of this very installation."""
    return [str(Path(sys.executable).with_name("nnkgraph")), *arguments]


def seconds_of(command: list[str], most: float = _LONGEST, **environment: str) -> float:
    """Run a command and return its time; infinity where it takes too long."""
    start = time.perf_counter()
    try:
        subprocess.run(
            command,
            check=True,
            timeout=most,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
        )
    except subprocess.TimeoutExpired:
        return float("inf")
    return time.perf_counter() - start


def against_sklearn(folder: Path | None, threads: int, repeat: int) -> Iterator[Line]:
    """Compare ``nnkgraph build`` with a process that only finds neighbors."""
    found = data.of_folder(folder, most=70_000)
    cases = {
        "digits 1797 x 64": (data.digits(), 1.0),
        "generated 20000 x 784": (data.manifold(20_000, 784), 1.0),
        **{
            f"{name} {len(x)} x {x.shape[1]}": (x, 0.5 if len(x) > 50_000 else 1.0)
            for name, x in found.items()
        },
    }
    with tempfile.TemporaryDirectory() as scratch:
        path, out = f"{scratch}/x.npy", f"{scratch}/graph.npz"
        for name, (x, aim) in cases.items():
            np.save(path, x)
            build = nnkgraph("build", path, "-o", out, "-q", "--search", "exact")
            # -j auto, as users have it, within the same number of processors.
            allowed = {"NNKGRAPH_WORKERS": "auto", "SLURM_CPUS_PER_TASK": str(threads)}
            peer = [sys.executable, "-c", _BY_SKLEARN, path, str(threads)]
            seconds_of(build, **allowed)  # fills the cache
            yield compare(
                "whole command",
                name,
                ("nnkgraph build", partial(seconds_of, build, **allowed)),
                ("scikit-learn kneighbors_graph", partial(seconds_of, peer)),
                repeat=1 if len(x) > 50_000 else repeat,
                aim=aim,
                warm=False,
            )
        yield cold_start(path, out, scratch)


def cold_start(path: str, out: str, scratch: str) -> Line:
    """Compare a first run, which compiles, with a later one."""
    np.save(path, data.digits())
    build = nnkgraph("build", path, "-o", out, "-q")
    cold = seconds_of(build, NUMBA_CACHE_DIR=f"{scratch}/cache")
    warm = seconds_of(build, NUMBA_CACHE_DIR=f"{scratch}/cache")
    ratio = cold / warm
    return Line(
        "whole command",
        "digits 1797 x 64, compiling first",
        "first run",
        "later runs",
        *(ratio, ratio, ratio, cold, warm),
    )


_SEARCHES = ("exact", "kdtree", "partition", "pynndescent")


def auto_against_best() -> Iterator[Line]:
    """Compare the search that ``auto`` picks with the fastest one."""
    with tempfile.TemporaryDirectory() as scratch:
        path, out = f"{scratch}/x.npy", f"{scratch}/graph.npz"
        for d in _WIDTHS:  # fill the cache
            np.save(path, data.manifold(500, d))
            for search in _SEARCHES:
                seconds_of(nnkgraph("build", path, "-o", out, "-q", "--search", search))
        for n in (1000, 10_000, 50_000, 200_000):
            for d in _WIDTHS:
                np.save(path, data.manifold(n, d))
                build = nnkgraph("build", path, "-o", out, "-q", "--search")
                repeat = 3 if n <= 50_000 else 1
                best, name = float("inf"), ""
                auto = min(seconds_of([*build, "auto"]) for _ in range(repeat))
                for search in _SEARCHES:
                    most = min(_LONGEST, 1.5 * min(best, auto) + 3)
                    took = min(
                        seconds_of([*build, search], most) for _ in range(repeat)
                    )
                    if took < best:
                        best, name = took, search
                ratio = auto / best
                yield Line(
                    "auto / best",
                    f"generated {n} x {d}, k=30",
                    "auto",
                    name,
                    *(ratio, ratio, ratio, auto, best),
                    aim=1.2,
                )
