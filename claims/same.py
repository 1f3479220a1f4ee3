"""The same input gives the same bytes, whatever computes them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from bench import data
from claims import sets
from claims.claim import Figure, NotRunError, Place, claim, stated
from claims.machines import is_x86, machines
from claims.runs import digest, failures, run, saved

_FORMATS = ("npz", "tsv", "graphml")


def _others(paths: list[Path]) -> int:
    """Return how many files differ from the first."""
    first = digest(paths[0])
    return sum(digest(path) != first for path in paths[1:])


@claim(
    "workers",
    "One, two and four workers write the same bytes, in three formats.",
    ("README.md", "whatever the number of workers, the shards"),
    limit="== 0",
    unit="files differ",
)
def _workers(place: Place) -> Figure:
    x = saved(place, "x.npy", data.manifold(20_000, 12))
    differ, every = 0, {"npz": (1, 2, 4), "tsv": (1, 2), "graphml": (1, 2)}
    for ending, counts in every.items():
        made = []
        for workers in counts:
            out = place.scratch / f"{workers}.{ending}"
            run(place, "build", x, "-o", out, "-j", workers, "--search", "exact", "-q")
            made.append(out)
        differ += _others(made)
    return Figure(differ, f"{sum(map(len, every.values()))} files of 20,000 rows")


@claim(
    "blocks",
    "Executors and blocks of any size give the same numbers.",
    ("docs/how_it_works.md", "numbers never depend on the block it was computed in"),
    limit="== 0",
    unit="tests failed",
    command="pytest tests/runtime/test_workers.py -k cannot_be_seen",
)
def _blocks(place: Place) -> Figure:
    path = "tests/runtime/test_workers.py"
    return failures(place, path, "-k", "block and cannot_be_seen")


@claim(
    "shards",
    "Shards of the search and of the solution, merged, have the bytes of one run.",
    ("docs/cluster.md", "The result has the same bytes as one run."),
    limit="== 0",
    unit="files differ",
)
def _shards(place: Place) -> Figure:
    x, count = saved(place, "x.npy", data.manifold(3000, 12)), 3
    parts = [f"knn-{i}.npz" for i in range(1, count + 1)]
    for i, part in enumerate(parts, 1):
        run(place, "search", x, "-q", "--shard", f"{i}/{count}", "-o", part)
    run(place, "merge", *parts[::-1], "-o", "knn.npz", "-q")
    run(place, "search", x, "-q", "-o", "plain.npz")
    made = [place.scratch / name for name in ("plain.npz", "knn.npz")]
    differ = _others(made)
    line = ("build", x, "-q", "--search", "precomputed:path=knn.npz")
    parts = [f"part-{i}.npz" for i in range(1, count + 1)]
    for i, part in enumerate(parts, 1):
        run(place, *line, "--shard", f"{i}/{count}", "-o", part)
    for ending in _FORMATS:
        run(place, "merge", *parts[::-1], "-o", f"merged.{ending}", "-q")
        run(place, *line, "-o", f"one.{ending}")
        made = [place.scratch / f"{name}.{ending}" for name in ("one", "merged")]
        differ += _others(made)
    return Figure(
        differ, f"{count} shards, merged in another order, {1 + len(_FORMATS)} files"
    )


@claim(
    "processors",
    "Processors with and without AVX2, FMA and AVX-512, numpy without AVX, and other "
    "kernels of OpenBLAS make the same graph.",
    (
        "docs/cluster.md",
        "Old and new x86-64 nodes make the same graph, to the last bit",
    ),
    ("docs/warm.md", "The graph has the [same bytes]"),
    limit="== 0",
    unit="files differ",
    command="pytest tests/build/test_machines.py",
)
def _processors(place: Place) -> Figure:
    if not is_x86():
        raise NotRunError("only x86-64 processors can be had with less")
    noise = np.random.default_rng(0).normal(size=(600, 64))
    near = (data.digits()[:600] + 0.1 * noise).astype(np.float32)
    x = saved(place, "x.npy", near)
    lines = {
        "gaussian": ("--search", "exact", "--scale", "standard"),
        "cosine": ("--kernel", "cosine"),
        "kdtree": ("--search", "kdtree"),
    }
    every, differ = machines(), 0
    for kind, options in lines.items():
        made = []
        for at, env in enumerate(every.values()):
            made.append(place.scratch / f"{kind}-{at}.npz")
            fixed = {"NNKGRAPH_CPU": "auto", "OPENBLAS_NUM_THREADS": "1", **env}
            line = ("build", x, "-o", made[-1], "-q", "-j", 1, *options)
            run(place, *line, **fixed)
        differ += _others(made)
    return Figure(differ, f"{len(lines)} graphs by {', '.join(every)}")


@claim(
    "update-rebuild",
    "`update` gives the bytes of a rebuild with the settings of the graph.",
    ("README.md", "rows added and removed, to the byte of a rebuild"),
    ("docs/update.md", "gives the graph that a rebuild would give, to the byte"),
    limit="== 0",
    unit="graphs differ",
)
def _update_rebuild(place: Place) -> Figure:
    draw, differ, turns = np.random.default_rng(0), 0, 5
    x = data.manifold(2200, 16)
    now, spare = x[:2000], x[2000:]
    saved(place, "now.npy", now)
    run(
        place,
        "build",
        "now.npy",
        "--updatable",
        "-o",
        "g.npz",
        "-q",
        "--search",
        "exact",
    )
    for turn in range(turns):
        gone = np.sort(draw.choice(len(now), 15, replace=False))
        np.savetxt(place.scratch / "gone.txt", gone, "%d")
        new = spare[20 * turn : 20 * turn + 20]
        saved(place, "new.npy", new)
        line = ("--features", "now.npy", "--add", "new.npy", "--remove", "gone.txt")
        run(place, "update", "g.npz", *line, "-o", "next.npz", "-q")
        now = np.concatenate([np.delete(now, gone, axis=0), new])
        saved(place, "now.npy", now)
        like = ("--like", "g.npz", "--updatable", "-o", "again.npz", "-q")
        run(place, "build", "now.npy", *like)
        made = [place.scratch / name for name in ("next.npz", "again.npz")]
        differ += _others(made)
        made[0].replace(place.scratch / "g.npz")
    return Figure(differ, f"{turns} updates, one after the other: 20 rows come, 15 go")


@claim(
    "pages-same",
    "Equal input gives equal clusters, and pages with equal bytes.",
    ("docs/pages.md", "The same input gives the same bytes."),
    ("docs/clusters.md", "The same graph has the same clusters"),
    limit="== 0",
    unit="files differ",
)
def _pages_same(place: Place) -> Figure:
    run(place, "build", sets.SAMPLES / "two_moons.csv", "-o", "g.npz", "-q")
    run(place, "convert", "g.npz", "g.graphml", "-q")
    differ = 0
    names = {"cluster": "csv", "report": "html"}
    for command, ending in names.items():
        if command == "cluster":
            from importlib.util import find_spec

            if find_spec("graspologic_native") is None:
                raise NotRunError("nnkgraph[cluster] is not installed")
        made = [place.scratch / f"{command}-{i}.{ending}" for i in range(2)]
        source = ("g.npz", "g.graphml") if command == "cluster" else ("g.npz", "g.npz")
        for graph, out in zip(source, made, strict=True):
            run(place, command, graph, "-o", out, "-q")
            time.sleep(0.01)
        differ += _others(made)
    return Figure(differ, "clusters of two files of one graph; two pages")


stated(
    "same",
    "arm",
    "On ARM and on other systems no other bytes are meant.",
    ("docs/cluster.md", "other operating systems, and ARM: no difference is meant"),
    ("docs/schema.md", "On ARM and between systems that is meant, and not tested"),
    command="make claims CLAIMS=workers",
    why="needs other machines, on which to build the same file and compare",
)
stated(
    "same",
    "other-systems",
    "It runs on macOS, and with Python 3.11 to 3.13.",
    ("docs/schema.md", "Python 3.11 to 3.13 on Linux and macOS (x86-64 and ARM)"),
    command=".github/workflows/test.yml",
    why="needs other machines and Pythons: the workflow has them",
)
stated(
    "same",
    "real-cluster",
    "The recipes run on a real Slurm.",
    ("docs/cluster.md", "has scripts for Slurm and PBS"),
    command="make test-cluster",
    why="installs Slurm, as root; several real nodes are nowhere tried",
)
