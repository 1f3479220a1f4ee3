"""Stages of large runs: how they compare, how they grow, what memory they need."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench import data
from bench.commands import nnkgraph, seconds_of
from bench.ratio import Line

_K = 30


def report_of(path: str, *options: str) -> dict:
    """Build a graph and return the report."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.json")
        out = f"{scratch}/graph.npz"
        command = ("build", path, "-o", out, "-q", "--report", str(report), *options)
        seconds_of(nnkgraph(*command), most=3600)
        return json.loads(report.read_text())


def _line(case: str, ours: str, other: str, pairs: list[tuple], aim: float) -> Line:
    ratios = sorted(a / b for a, b in pairs)
    middle = pairs[len(pairs) // 2]
    ratio = ratios[len(ratios) // 2]
    return Line("stages", case, ours, other, ratio, ratios[0], ratios[-1], *middle, aim)


def progress(repeat: int) -> Iterator[Line]:
    """Compare stages of the same run, and runs with one and two workers."""
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/x.npy"
        np.save(path, data.manifold(50_000, 64))
        pairs = []
        for _ in range(repeat):
            one, two = (
                report_of(path, "-j", j, "--search", "exact")["timings"]["solve"]
                for j in ("1", "2")
            )
            pairs.append((two, one))
        yield _line(
            "generated 50000 x 64", "solve -j 2", "solve -j 1", pairs, aim=1 / 1.7
        )
        np.save(path, data.manifold(200_000, 96))
        report_of(path, "--search", "partition")  # fills the cache
        timings = report_of(path, "--search", "partition")["timings"]
        pairs = [(timings["solve"], timings["search"])]
        yield _line("generated 200000 x 96", "solve", "search", pairs, aim=0.25)


def slopes() -> Iterator[Line]:
    """Compare time and memory of growing data."""
    sizes, d = (25_000, 50_000, 100_000, 200_000, 400_000), 32
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/x.npy"
        for search in ("exact", "partition"):
            times, seconds = [], 0.0
            for n in sizes:
                np.save(path, data.manifold(n, d))
                report = report_of(path, "--search", search, "-j", "2")
                times.append(report["timings"]["solve"])
                seconds = report["timings"]["total"]
                features = 4 * n * d
                allowed = features + 4 * n * _K * (4 + 8) + 1e9
                used = report["peak_memory_bytes"]
                yield Line(
                    "growth",
                    f"{search}, {n} x {d}: peak bytes",
                    "peak",
                    "features + 4 lists + 1 GB",
                    *(used / allowed,) * 3,
                    used,
                    allowed,
                    aim=1.0,
                )
            slope = np.polyfit([math.log(n) for n in sizes], np.log(times), 1)[0]
            yield Line(
                "growth",
                f"{search}, {sizes[0]} to {sizes[-1]} x {d}: slope",
                "log(solve)",
                "log(rows)",
                *(float(slope),) * 3,
                seconds,
                times[-1],
                aim=1.1,
            )
