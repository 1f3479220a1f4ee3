"""Compile beforehand: small problems, solved by the functions that everybody calls.

What they compile is kept in the cache. Several processes take them from one list; a
function that one of them compiles, the others wait for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nnkgraph.data import Features, SparseGram
from nnkgraph.errors import OutputError, QualityWarning, ResourceError
from nnkgraph.runtime import cache, compiling
from nnkgraph.runtime.arrays import scratch_folder
from nnkgraph.runtime.limits import granted_cpus

if TYPE_CHECKING:
    from collections.abc import Callable

_NOT_WARM = 6


@dataclass(frozen=True)
class Warmed:
    """What was compiled, and what there is now."""

    folder: str
    """Where compiled code of this state is kept."""

    cpu: str
    """The processors it is for."""

    compiled: list[str]
    """The functions that were compiled, or would have to be, by name."""

    seconds: float
    files: int
    bytes: int

    @property
    def warm(self) -> bool:
        """Whether nothing had to be compiled."""
        return not self.compiled

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def warm(
    folder: str | Path | None = None,
    *,
    everything: bool = False,
    check: bool = False,
    workers: int | str = "auto",
) -> Warmed:
    """Compile what runs need, so that they start at once.

    Parameters
    ----------
    folder : path, optional
        A directory for many machines or users, who set ``NNKGRAPH_CACHE`` to it; by
        default the private cache of this machine.
    everything : bool
        Also what few people use: all methods and kernels, sparse rows, pynndescent
        (whose own functions are kept in the private cache only).
    check : bool
        Only look whether something would have to be compiled.
    workers : int or "auto"
        Processes that compile at the same time.

    Returns
    -------
    Warmed
        What was compiled, with ``check`` the first function that would be.

    Examples
    --------
    >>> import nnkgraph
    >>> found = nnkgraph.warm()
    >>> nnkgraph.warm(check=True).warm
    True
    """
    begin = time.monotonic()
    place = _opened(Path(folder), check=check) if folder is not None else None
    count = granted_cpus() if workers == "auto" else int(workers)
    with scratch_folder() as scratch:
        _write_inputs(Path(scratch))
        environment = _environment(place, Path(scratch), check=check)
        which = "all" if everything and place is None else "most" if everything else ""
        log = _run(Path(scratch), environment, which, count, check=check)
    own = place / cache.state() if place else cache.private()
    if place and own and not check:
        own.chmod(0o755)
    found = own.rglob("*") if own else ()
    files = [one for one in found if one.is_file() and one.name != cache.LOCKS]
    return Warmed(
        str(own),
        cache.target()[0],
        log,
        time.monotonic() - begin,
        len(files),
        sum(one.stat().st_size for one in files),
    )


def _opened(folder: Path, *, check: bool) -> Path:
    """Return a directory that runs will trust."""
    try:
        if not check:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        place = Path(os.path.realpath(folder, strict=True))
        reason = cache.distrust(place, *place.parents)
    except FileExistsError as error:
        raise OutputError(f"{folder}: is no directory") from error
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}".lower()) from error
    if reason:
        raise OutputError(f"{folder}: {reason}, so that no run would use it")
    if not check and not os.access(place, os.W_OK):
        raise OutputError(f"{folder}: cannot be written to")
    return place


def _environment(place: Path | None, scratch: Path, *, check: bool) -> dict[str, str]:
    """Return the environment of the processes: where they read and write."""
    found = {**os.environ, compiling.LOG: str(scratch / "compiled")}
    found.pop(compiling.STOP, None)
    if check:
        found[compiling.STOP] = str(_NOT_WARM)
    if place:
        found.pop("NNKGRAPH_CACHE", None)
        found[cache.HANDED_ON] = str(place)
    if place and check:
        found |= {"NNKGRAPH_CACHE": str(place), cache.HANDED_ON: str(scratch / "none")}
    return found


def _run(
    scratch: Path, environment: dict[str, str], which: str, count: int, *, check: bool
) -> list[str]:
    """Let processes do all jobs; return the functions that were compiled."""
    call = [sys.executable, "-m", "nnkgraph.tasks.warm", str(scratch), which]
    jobs: list[subprocess.Popen[str]] = []
    try:
        for _ in range(max(1, min(count, len(_jobs(scratch, which))))):
            job = subprocess.Popen(  # noqa: S603 - this Python, this module
                call,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            jobs.append(job)
        said = [job.communicate()[1] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
    log = scratch / "compiled"
    compiled = log.read_text().splitlines() if log.exists() else []
    for job, err in zip(jobs, said, strict=True):
        if job.returncode and not (check and compiled):
            last = (err.strip().splitlines() or ["no word"])[-1]
            raise ResourceError(f"a process that compiles has failed: {last}")
    return compiled


def _write_inputs(scratch: Path) -> None:
    x = np.random.default_rng(0).normal(size=(90, 3))
    x[-3:] = x[:3]  # copies of rows
    np.save(scratch / "float64.npy", x)
    np.save(scratch / "float32.npy", x.astype(np.float32))


def _jobs(scratch: Path, which: str) -> dict[str, Callable[[], object]]:
    """Return the problems: those that begin differently come first."""
    jobs = _common_jobs(scratch)
    if which:
        jobs |= _rare_jobs(scratch)
    if which == "most":  # pynndescent's code is in nobody's shared directory
        del jobs["pynndescent"]
    return jobs


def _common_jobs(scratch: Path) -> dict[str, Callable[[], object]]:
    import nnkgraph
    from nnkgraph.build.symmetrize import RULES
    from nnkgraph.runtime import registry
    from nnkgraph.search import Wanted

    files = (scratch / "float64.npy", scratch / "float32.npy")
    x, x32 = map(np.load, files)
    mapped = [nnkgraph.read_features(str(one)) for one in files]
    classes = np.where(x[:, 0] > 0, "a", "b")
    labels = nnkgraph.Labels.of(classes)
    some = nnkgraph.Labels.of(np.where(np.arange(len(x)) < 60, classes, ""))

    def build(of: Any = x, **options: Any) -> Any:
        return nnkgraph.build_graph(of, **{"k": 5, **options})

    def solve() -> None:
        near = np.argsort(((x[:, None] - x) ** 2).sum(axis=2), axis=1)[:, :6]
        for of in (x, x32):
            build(of, candidates=near)

    def graphs() -> None:
        graph = build()
        nnkgraph.embed(graph, dimensions=2)
        nnkgraph.propagate(graph, some)
        nnkgraph.verify(x, graph)

    def layout() -> None:
        from scipy.sparse import random_array

        from nnkgraph.tasks.layout import lay_out

        draw = np.random.default_rng(0)
        some: Any = random_array((1600, 1600), density=0.003, rng=draw, format="csr")
        lay_out(nnkgraph.Graph(some + some.T))

    # Above some thousand rows every product serves both of its rows.
    many: Any = np.random.default_rng(0).normal(size=(1500, 3))
    large = (many, many.astype(np.float32))

    def partition() -> None:
        from nnkgraph.search.partition import rehearse

        with registry.create("executors", "serial").open(1) as pool:
            for of in large:
                rehearse(Wanted(of, 5, "squared-distance", pool))

    return {
        "partition": partition,
        "search": lambda: [
            nnkgraph.find_candidates(of, k=5, search="exact") for of in (*large, x, x32)
        ],
        "solve": solve,
        "exact": lambda: [build(of, search="exact") for of in (x32, x, *mapped)],
        "kdtree": lambda: [build(of, search="kdtree") for of in (x, *mapped)],
        "query": lambda: [nnkgraph.query(of, of[:9] + 0.1, k=5) for of in (x, x32)],
        "rules": lambda: [build(symmetrize=rule) for rule in RULES],
        "edges": lambda: [
            build(min_degree=2, connect="mst", k=2),
            build(grow=0.5, max_k=9),
            build(duplicates="keep"),
        ],
        "graphs": graphs,
        "layout": layout,
        "classify": lambda: nnkgraph.classify(x, labels),
        "audit": lambda: nnkgraph.audit(x, labels, k=5, duplicate=0.5),
        "compare": lambda: nnkgraph.compare(x, k=[5]),
        "doctor": lambda: nnkgraph.doctor(x, k=5),
        "explain": lambda: nnkgraph.explain(x, 7, k=5),
        "workers": lambda: [
            build(of, workers=2, executor="processes") for of in mapped
        ],
        "memory": lambda: build(mapped[0], memory=1 << 30),
    }


def _rare_jobs(scratch: Path) -> dict[str, Callable[[], object]]:
    from scipy.sparse import csr_array

    from nnkgraph import build_graph, find_candidates, query
    from nnkgraph.data import SparseRows
    from nnkgraph.runtime import registry
    from nnkgraph.search import Wanted
    from nnkgraph.search.partition import rehearse

    x = np.load(scratch / "float64.npy")
    x32 = x.astype(np.float32)
    near = np.exp(-((x[:, None] - x) ** 2).sum(axis=2))
    apart = np.sqrt(-np.log(near))
    many = np.random.default_rng(0).normal(size=(1500, 8))
    sparse: Any = csr_array(np.where(np.abs(x) < np.abs(x).max(axis=1)[:, None], 0, x))

    def build(of: Any = x, **options: Any) -> Any:
        return build_graph(of, **{"k": 5, **options})

    def partition() -> None:
        rows = SparseRows.of(csr_array(np.where(np.abs(many) < 1.0, 0, many)), "")
        with registry.create("executors", "serial").open(1) as pool:
            rehearse(Wanted(rows, 5, "squared-distance", pool))

    jobs: dict[str, Callable[[], object]] = {
        "sparse partition": partition,
        "pynndescent": lambda: find_candidates(
            many, k=20, search="pynndescent:threads=2"
        ),
        "sparse": lambda: [
            *(build(sparse, kernel=one) for one in ("gaussian", "cosine", "linear")),
            query(sparse, sparse[:9], k=5),
        ],
        "gram": lambda: [
            build(near, kernel="precomputed"),
            build(Features(SparseGram.of(csr_array(near))), kernel="precomputed"),
        ],
        "distance": lambda: [
            *(build(of, kernel="distance") for of in (apart, apart.astype(np.float32))),
            build(Features(SparseGram.of(csr_array(apart))), kernel="distance"),
        ],
        "jaccard": lambda: [
            *(build(of, kernel="jaccard") for of in (np.abs(x), (x > 0) * 1.0)),
            query(np.abs(x), np.abs(x[:9]), k=5, kernel="jaccard"),
        ],
        "sigma": lambda: [
            build(sigma=one) for one in ("kth-max", "kth-mean", "local", "matlab", 0.5)
        ],
    }
    for name in registry.names("methods"):
        jobs[f"method {name}"] = lambda name=name: [  # type: ignore[misc]
            build(of, method=name) for of in (x, x32)
        ]
    once = {"distance", "function", "jaccard", "precomputed"}
    for name in set(registry.names("kernels")) - once:
        jobs[f"kernel {name}"] = lambda name=name: [  # type: ignore[misc]
            build(of, kernel=name, connect="mst") for of in (np.abs(x), np.abs(x32))
        ]
    return jobs


def _do_jobs(scratch: Path, which: str) -> None:
    """Do those jobs that no other process has taken."""
    warnings.simplefilter("ignore", QualityWarning)
    for name, job in _jobs(scratch, which).items():
        try:
            (scratch / f"job {name}").touch(exist_ok=False)
        except FileExistsError:
            continue
        job()


if __name__ == "__main__":
    _do_jobs(Path(sys.argv[1]), sys.argv[2])
