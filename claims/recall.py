"""What an approximate search finds, beside what it says that it finds."""

from __future__ import annotations

import numpy as np

import nnkgraph
from bench import data
from bench.neighbors import _truth as truth
from bench.neighbors import _unit as unit
from bench.neighbors import hits
from claims.claim import Figure, Place, claim, stated


def _reached(x: np.ndarray) -> tuple[float, nnkgraph.Candidates]:
    """Return the true recall of `partition` by plain float64 arithmetic."""
    found = nnkgraph.find_candidates(x, search="partition", workers=2)
    rows, near = truth(x)
    return hits(found.index, rows, near), found


def _said(found: nnkgraph.Candidates, share: float) -> str:
    low, high = found.recall_interval or (np.nan, np.nan)
    estimate = np.nan if found.recall is None else found.recall
    return f"true {share:.4f}, said {estimate:.4f}, interval {low:.4f} to {high:.4f}"


@claim(
    "recall-reached",
    "`partition` reaches the recall that is aimed at, 0.99 by default, or nearly so.",
    ("README.md", "a recall is aimed at, 0.99 by default"),
    limit=">= 0.98",
    unit="is the least true recall",
)
def _recall(_place: Place) -> Figure:
    rows = {
        "surface": data.manifold(60_000, 64),
        "surface of 8 dimensions": data.manifold(60_000, 64, inner=8, seed=1),
    }
    found = {name: _reached(x) for name, x in rows.items()}
    said = "; ".join(f"{name}: {_said(c, share)}" for name, (share, c) in found.items())
    return Figure(min(share for share, _ in found.values()), f"60,000 x 64; {said}")


@claim(
    "auto-exact",
    "Up to some ten thousand rows the search that is chosen is exact.",
    ("README.md", "Up to some ten thousand rows the search is exact."),
    limit="== 0",
    unit="searches were approximate",
)
def _auto_exact(_place: Place) -> Figure:
    shapes = [(n, d) for n in (100, 2000, 10_000) for d in (2, 16, 64)]
    found = [nnkgraph.find_candidates(data.manifold(n, d), k=10) for n, d in shapes]
    approximate = sum(not one.exact for one in found)
    return Figure(approximate, f"{len(shapes)} shapes up to 10,000 x 64")


@claim(
    "recall-said",
    "The recall that was reached is estimated, and the estimate is true.",
    ("README.md", "the one reached is estimated and said, with its interval"),
    ("docs/search.md", "with an interval of 95 % confidence"),
    limit="<= 0.01",
    unit="is the distance of the true recall from what is said",
)
def _recall_said(_place: Place) -> Figure:
    off, said = 0.0, []
    x = data.manifold(60_000, 64, seed=2)
    rows, near = truth(x)
    for recall in ("0.9", "0.99"):
        search = f"partition:recall={recall}"
        found = nnkgraph.find_candidates(x, search=search, workers=2)
        share = hits(found.index, rows, near)
        said.append(f"aim {recall}: {_said(found, share)}")
        if found.recall is not None:
            off = max(off, abs(share - found.recall))
        elif not found.exact:
            off = np.nan
    return Figure(off, "; ".join(said))


@claim(
    "recall-glove",
    "On word vectors `partition` reaches 0.98 at least.",
    (
        "docs/search.md",
        "GloVe 341,479 x 100, by angle | nnkgraph partition | partition |",
    ),
    limit=">= 0.98",
    unit="is the true recall",
    data=("glove.npy",),
)
def _recall_glove(place: Place) -> Figure:
    share, found = _reached(unit(np.load(place.file("glove.npy"))))
    return Figure(share, _said(found, share))


stated(
    "recall",
    "searches",
    "Seconds and recall beside six other libraries.",
    ("docs/search.md", "All nearest neighbors of a set, k = 30, two threads"),
    ("README.md", "seconds and the recall that was reached"),
    command='make bench BENCH="neighbors --data DIR"',
    why="an hour, and libraries of the extra bench; writes the table anew",
)
