"""Ratios of two things that are measured in turns, in one run."""

from __future__ import annotations

import importlib
import itertools
from functools import partial
from types import ModuleType

import numpy as np

import nnkgraph
from bench import data
from bench.commands import _BY_SKLEARN as BY_SKLEARN
from bench.commands import cold_start, seconds_of
from bench.commands import nnkgraph as program
from bench.growing import _line as growing
from bench.growth import report_of
from bench.neighbors import _apart as apart
from bench.neighbors import _truth as truth
from bench.neighbors import _unit as unit
from bench.ratio import Line, compare
from bench.search import by_sklearn, ours
from bench.solver import against_solvers
from claims.claim import Figure, NotRunError, Place, claim, stated
from claims.runs import run, saved

_THREADS = 2


def sklearn(module: str) -> ModuleType:
    """Return a module of scikit-learn, where that is installed."""
    try:
        return importlib.import_module(f"sklearn.{module}")
    except ImportError as error:
        raise NotRunError("scikit-learn is not installed") from error


def _figure(line: Line, more: str = "") -> Figure:
    said = f"{line.our_seconds:.3g} s beside {line.other_seconds:.3g} s"
    said += f", {line.lowest:.2f} to {line.highest:.2f}" * (line.lowest < line.highest)
    return Figure(line.ratio, f"{line.case}: {said}{more}")


@claim(
    "search-sklearn",
    "The exact search takes a quarter of the time of scikit-learn's brute force.",
    ("docs/speed.md", "| scikit-learn, brute force | 0.23, 0.22 |"),
    limit="<= 0.35",
    unit="times the time",
)
def _search_sklearn(_place: Place) -> Figure:
    sklearn("neighbors")
    x = data.manifold(50_000, 64)
    ours(x[:2000], _THREADS)  # what is compiled and imported does not count
    by_sklearn(x[:2000], _THREADS)
    line = compare(
        "",
        "50,000 x 64, k = 30",
        ("exact search", lambda: ours(x, _THREADS)),
        ("scikit-learn", lambda: by_sklearn(x, _THREADS)),
        repeat=2,
        warm=False,
    )
    return _figure(line)


def _command(place: Place, x: np.ndarray, case: str, repeat: int) -> Figure:
    sklearn("neighbors")
    path, out = saved(place, "x.npy", x), place.scratch / "graph.npz"
    build = program("build", str(path), "-o", str(out), "-q", "--search", "exact")
    # -j auto, as users have it, within the same number of processors.
    allowed = {"NNKGRAPH_WORKERS": "auto", "SLURM_CPUS_PER_TASK": str(_THREADS)}
    peer = [program()[0].removesuffix("nnkgraph") + "python", "-c", BY_SKLEARN]
    peer += [str(path), str(_THREADS)]
    line = compare(
        "",
        case,
        ("nnkgraph build", partial(seconds_of, build, **allowed)),
        ("scikit-learn", partial(seconds_of, peer)),
        repeat=repeat,
        warm=False,
    )
    return _figure(line)


@claim(
    "command-sklearn",
    "`build --search exact`, from prompt to file, takes less time than a process that "
    "only calls scikit-learn's `kneighbors_graph`.",
    ("docs/speed.md", "digits, USPS, 20,000 x 784, MNIST 70,000 x 784"),
    limit="<= 0.9",
    unit="times the time",
)
def _command_sklearn(place: Place) -> Figure:
    return _command(place, data.manifold(10_000, 784), "10,000 x 784, k = 30", 3)


@claim(
    "command-mnist",
    "On MNIST it takes a third of that time.",
    ("README.md", "`build --search exact` of MNIST a third of the time of"),
    limit="<= 0.45",
    unit="times the time",
    data=("mnist.npz",),
)
def _command_mnist(place: Place) -> Figure:
    with np.load(place.file("mnist.npz")) as file:
        x = file["X"]
    return _command(place, x, "MNIST 70,000 x 784, k = 30", 1)


@claim(
    "solvers",
    "The solver takes a tenth of the time of a loop over `scipy.optimize.nnls`, or less.",
    ("docs/speed.md", "| a loop over `scipy.optimize.nnls` | 0.012, 0.044, 0.082 |"),
    limit="<= 0.1",
    unit="times the time",
)
def _solvers(_place: Place) -> Figure:
    lines = list(itertools.islice(against_solvers(None, 3), 4))
    said = "; ".join(f"{one.case}, {one.other} {one.ratio:.3f}" for one in lines)
    loops = [one.ratio for one in lines if "nnls" in one.other]
    return Figure(max(loops), said)


def _beside_pynndescent(place: Place, x: np.ndarray, knob: int) -> Figure:
    path = saved(place, "x.npy", np.ascontiguousarray(x, np.float32))
    known = place.scratch / "rows.npz"
    np.savez(known, *truth(x))
    searches = (("nnkgraph partition", "partition"), ("pynndescent", knob))
    found = []
    for name, how in searches:
        one = apart([str(path), _THREADS, name, how, str(known)])
        if "failed" in one:
            raise NotRunError(f"{name}: {one['failed']}")
        found.append(one)
    a, b = found
    said = f"{len(x)} rows: {a['seconds']:.1f} s, recall {a['recall']:.4f}, beside "
    said += f"{b['seconds']:.1f} s, recall {b['recall']:.4f}"
    # A recall that is not reached is no peer: ours has to find as much.
    ratio = a["seconds"] / b["seconds"]
    return Figure(ratio if a["recall"] >= b["recall"] else np.inf, said)


@claim(
    "pynndescent",
    "On points that fill their space `partition` finds more than pynndescent, sooner.",
    ("docs/search.md", "| hard 300,000 x 64 | pynndescent | 61 | 51.0 | 0.9892 |"),
    limit="<= 1",
    unit="times the time, with a recall that is not below",
)
def _pynndescent(place: Place) -> Figure:
    return _beside_pynndescent(place, data.waves(40_000, 64), 61)


@claim(
    "pynndescent-glove",
    "On word vectors the same recall takes pynndescent longer.",
    ("docs/search.md", "On word vectors, where neighbors lead nowhere"),
    limit="<= 1",
    unit="times the time, with a recall that is not below",
    data=("glove.npy",),
)
def _pynndescent_glove(place: Place) -> Figure:
    return _beside_pynndescent(place, unit(np.load(place.file("glove.npy"))), 61)


@claim(
    "pynndescent-mnist",
    "On MNIST pynndescent is faster, which README and page say.",
    ("README.md", "On MNIST pynndescent is faster."),
    ("docs/search.md", "on MNIST pynndescent is twice as fast as `partition`"),
    limit=">= 1",
    unit="times the time of pynndescent",
    data=("mnist.npz",),
)
def _pynndescent_mnist(place: Place) -> Figure:
    with np.load(place.file("mnist.npz")) as file:
        x = np.ascontiguousarray(file["X"], np.float32)
    path, known = saved(place, "x.npy", x), place.scratch / "rows.npz"
    np.savez(known, *truth(x))
    a, b = (
        apart([str(path), _THREADS, name, how, str(known)])
        for name, how in (("nnkgraph partition", "partition"), ("pynndescent", 31))
    )
    said = f"{a['seconds']:.1f} s, recall {a['recall']:.4f}, beside "
    said += f"{b['seconds']:.1f} s, recall {b['recall']:.4f}"
    return Figure(a["seconds"] / b["seconds"], said)


@claim(
    "jaccard",
    "Neighbors of sets take a small part of the time of scikit-learn's brute force.",
    ("docs/kernels.md", "takes 22 s for 500 of them, which is some 900 s for all"),
    limit="<= 0.05",
    unit="times the time, for all rows",
)
def _jaccard(_place: Place) -> Figure:
    neighbors = sklearn("neighbors")
    x = np.random.default_rng(0).random((10_000, 2048)) < 0.05
    asked, ones = 50, x.astype(np.float32)
    how = {"kernel": "jaccard", "search": "exact"}

    def own() -> object:
        return nnkgraph.find_candidates(ones, **how, workers=1)

    def theirs() -> object:
        found = neighbors.NearestNeighbors(
            n_neighbors=30, metric="jaccard", algorithm="brute"
        )
        return found.fit(x).kneighbors(x[:asked])

    nnkgraph.find_candidates(ones[:500], **how)
    line = compare(
        "",
        f"10,000 x 2048, theirs of {asked} rows",
        ("nnkgraph", own),
        ("scikit-learn", theirs),
        repeat=1,
        shares=(1.0, asked / len(x)),
        warm=False,
    )
    return _figure(line)


@claim(
    "warm-check",
    "After `nnkgraph warm DIR` a run compiles nothing.",
    ("docs/warm.md", "exit code 0: a run would compile nothing; 6: it would"),
    limit="== 0",
    unit="functions compiled by a run",
    long="one to three minutes",
)
def _warm_check(place: Place) -> Figure:
    shared, empty = place.scratch / "shared", place.scratch / "empty"
    run(place, "warm", shared, "-q")
    place.scratch.chmod(0o755)
    own = {"NNKGRAPH_CACHE": str(shared), "NUMBA_CACHE_DIR": str(empty)}
    run(place, "warm", "--check", **own)
    saved(place, "x.npy", data.manifold(300, 5))
    run(place, "build", "x.npy", "-o", "g.npz", "-q", **own)
    made = [one.name for one in empty.rglob("*.nbc")]
    return Figure(len(made), "the check says so, and a build wrote none")


@claim(
    "warm",
    "Only the very first run compiles; later runs take a fraction of its time.",
    ("docs/warm.md", "keeps the result"),
    ("docs/install.md", "used by all later processes of the same user and version"),
    limit="<= 0.5",
    unit="times the time of the first run",
)
def _warm(place: Place) -> Figure:
    line = cold_start(
        str(place.scratch / "x.npy"), str(place.scratch / "g.npz"), str(place.scratch)
    )
    cold, warm = line.our_seconds, line.other_seconds
    return Figure(warm / cold, f"first {cold:.1f} s, later {warm:.1f} s")


@claim(
    "update-speed",
    "An update costs what changed: 0.1 % more rows, a tenth of a rebuild's time.",
    ("docs/update.md", "at the cost of what changed"),
    limit="<= 0.3",
    unit="times the time of a rebuild",
    long="a minute",
)
def _update_speed(place: Place) -> Figure:
    x = data.manifold(100_000, 64)
    how = ("--search", "exact")
    return _figure(growing(place.scratch, "100,000 x 64", x, how, 0.001, 0.3, 1))


@claim(
    "regressions-cheap",
    "Regressions cost little beside the search.",
    ("README.md", "Regressions cost little beside the search"),
    limit="<= 0.4",
    unit="times the time of the search",
)
def _regressions_cheap(place: Place) -> Figure:
    x = saved(place, "x.npy", data.manifold(50_000, 96))
    timings = report_of(str(x), "-j", "2", "--search", "partition")["timings"]
    solve, search = timings["solve"], timings["search"]
    return Figure(solve / search, f"50,000 x 96: {solve:.1f} s beside {search:.1f} s")


stated(
    "speed",
    "bench",
    "The other ratios of the page: lower bounds, faiss, stages.",
    ("docs/speed.md", "| the same | faiss `IndexFlatL2` | 0.23, 0.47 |"),
    command='make bench BENCH="--data DIR"',
    why="twenty minutes, and faiss",
)
stated(
    "speed",
    "growth",
    "Time and memory up to ten million rows; a million rows of 64 columns take 66 s.",
    ("README.md", "a million rows of 64 columns take 66 s from file to graph"),
    ("docs/growth.md", "| 1,000,000 x 64 | 43.5 s | 0.991 |"),
    command="python -m bench growth",
    why="seconds of one machine; growth of time and memory takes fifteen minutes",
)
stated(
    "speed",
    "hundred-nodes",
    "What a hundred million points on a hundred nodes would take.",
    ("docs/growth.md", "Nobody has run this"),
    command="none",
    why="a prediction, and called one",
)
