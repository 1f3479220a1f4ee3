"""What runs take at their peak, counted by the system and not by nnkgraph."""

from __future__ import annotations

import re

from scipy import sparse

from bench import data
from claims.claim import Figure, Place, claim
from claims.runs import digest, peak, run, saved


@claim(
    "memory-peak",
    "A build of 100,000 x 64 takes half a GB at its peak.",
    (
        "docs/growth.md",
        "| 100,000 x 64 | 5.5 s | 1.000 | 1.3 s | 0.6 s | 0.1 s | 9 s | 0.50 GB |",
    ),
    limit="<= 0.6",
    unit="GB",
)
def _memory_peak(place: Place) -> Figure:
    x = saved(place, "x.npy", data.manifold(100_000, 64))
    line = ("build", x, "-o", "g.npz", "-q", "-j", 1, "--search", "partition")
    most, seconds = peak(place, *line)
    return Figure(most / 1e9, f"-j 1, {seconds:.0f} s")


@claim(
    "memory-bound",
    "`--memory` bounds the peak, and changes no byte.",
    ("docs/batch_jobs.md", "The graph is the same to the byte."),
    ("docs/growth.md", "peak 1.18 GB, 0.98 times the time of the run without"),
    limit="<= 1.2",
    unit="times the limit",
)
def _memory_bound(place: Place) -> Figure:
    x, limit = saved(place, "x.npy", data.manifold(100_000, 64)), 350
    line = ("build", x, "-q", "-j", 1, "--search", "partition", "-o")
    free, slow = peak(place, *line, "free.npz")
    most, seconds = peak(place, *line, "g.npz", "--memory", f"{limit}MB")
    if digest(place.scratch / "free.npz") != digest(place.scratch / "g.npz"):
        raise AssertionError("the bytes are others")
    said = f"100,000 x 64, --memory {limit}MB: {most / 1e6:.0f} MB, {seconds:.0f} s; "
    said += f"without {free / 1e6:.0f} MB, {slow:.0f} s; the same bytes"
    return Figure(most / (limit * 1e6), said)


@claim(
    "memory-sparse",
    "20,000 x 50,000 counts are never made dense: less than half a GB, not 8.",
    ("docs/formats.md", "20,000 x 50,000 counts take about half a GB"),
    ("docs/single_cells.md", "20,000 x 50,000 counts with 60 entries a row"),
    limit="<= 0.5",
    unit="GB",
)
def _memory_sparse(place: Place) -> Figure:
    path = place.scratch / "counts.npz"
    sparse.save_npz(path, data.topics(20_000, 50_000))
    line = ("build", path, "-o", "g.npz", "-q", "-j", 1, "--kernel", "cosine")
    most, seconds = peak(place, *line)
    return Figure(most / 1e9, f"kernel cosine, -j 1, {seconds:.0f} s")


@claim(
    "memory-dry-run",
    "`--dry-run` says about how much memory a run will need.",
    (
        "docs/batch_jobs.md",
        "It prints about how much memory, temporary files and output",
    ),
    limit="<= 1.5",
    unit="is the factor between what is said and the peak",
)
def _memory_dry_run(place: Place) -> Figure:
    x = saved(place, "x.npy", data.manifold(60_000, 64))
    line = ("build", x, "-o", "g.npz", "-j", 1, "--search", "partition")
    said = run(place, *line, "--dry-run")
    number, unit = re.findall(r"about ([\d.]+) (MB|GB) of memory", said)[0]
    needed = float(number) * {"MB": 1e6, "GB": 1e9}[unit]
    most, _ = peak(place, *line, "-q")
    apart = max(needed / most, most / needed)
    return Figure(apart, f"{needed / 1e6:.0f} MB, {most / 1e6:.0f} MB taken")
