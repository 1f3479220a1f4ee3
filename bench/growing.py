"""Rows added to a graph, beside building the graph of all rows: whole commands."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench import data
from bench.commands import nnkgraph, seconds_of
from bench.ratio import Line, compare


def against_rebuild(folder: Path | None, repeat: int) -> Iterator[Line]:
    """Compare ``nnkgraph update`` with ``nnkgraph build --like``."""
    surface = data.manifold(300_000, 64)
    cases = [
        ("surface 300000 x 64", surface, ("--search", "exact"), 0.001, 0.1),
        ("surface 300000 x 64", surface, ("--search", "exact"), 0.01, 0.25),
    ]
    if folder is not None and (path := folder / "glove.npy").exists():
        call = ("--search", "partition", "--scale", "unit")
        cases.append(("GloVe", np.load(path), call, 0.001, 0.2))
    for name, x, call, share, aim in cases:
        with tempfile.TemporaryDirectory() as scratch:
            yield _line(Path(scratch), name, x, call, share, aim, repeat)


def _line(
    scratch: Path,
    name: str,
    x: np.ndarray,
    call: tuple[str, ...],
    share: float,
    aim: float,
    repeat: int,
) -> Line:
    paths = {part: str(scratch / f"{part}.npy") for part in ("old", "new", "all")}
    graphs = {part: str(scratch / f"{part}.npz") for part in ("old", "new", "all")}
    stays = len(x) - round(share * len(x))
    for part, rows in zip(paths, (x[:stays], x[stays:], x), strict=True):
        np.save(paths[part], rows)
    first = "build", paths["old"], *call, "--updatable", "-o", graphs["old"], "-q"
    seconds_of(nnkgraph(*first))
    add = ("--features", paths["old"], "--add", paths["new"], "-q")
    update = nnkgraph("update", graphs["old"], *add, "-o", graphs["new"])
    like = ("--like", graphs["old"], "--updatable", "-q")
    build = nnkgraph("build", paths["all"], *like, "-o", graphs["all"])
    return compare(
        "update",
        f"{name}, {share:.1%} more",
        ("nnkgraph update", partial(seconds_of, update)),
        ("nnkgraph build --like", partial(seconds_of, build)),
        repeat=repeat,
        aim=aim,
        warm=False,
    )
