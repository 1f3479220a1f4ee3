"""Neighbors on the same machine, and limits, through the command."""

import json
import os
import resource
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import PROGRAM
from faults import Case, content, mounted

from nnkgraph import formats
from nnkgraph.build.graph import build_graph
from nnkgraph.formats import read_graph

BUILD = ("build", "x.npy", "-o", "g.npz", "-j", 1, "-q")


def test_f01_two_runs_to_one_target_leave_one_whole_graph(case):
    rng = np.random.default_rng(0)
    wanted = set()
    for name in "ab":
        np.save(case.here / f"{name}.npy", rng.normal(size=(300, 4)))
        call = ("build", f"{name}.npy", "-j", 1, "-q", "-o")
        assert case.run(*call, f"{name}.npz").code == 0
        wanted.add((case.here / f"{name}.npz").read_bytes())
    jobs = [
        case.start("build", f"{name}.npy", "-j", 1, "-q", "-o", "both.npz")
        for name in "abab"
    ]
    for job in jobs:
        job.communicate(timeout=60)
        assert job.returncode == 0
    assert (case.here / "both.npz").read_bytes() in wanted
    assert not list(case.here.glob(".nnkgraph*"))


def test_f03_make_builds_many_graphs_at_once(case):
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    rng = np.random.default_rng(0)
    for number in range(8):
        np.save(case.here / f"{number}.npy", rng.normal(size=(50, 3)))
    rule = f"%.tsv: %.npy\n\t{PROGRAM} build $< -o $@ -q\n"
    goals = " ".join(f"{number}.tsv" for number in range(8))
    (case.here / "Makefile").write_text(f"all: {goals}\n{rule}")
    maker = Case(case.here, case.tmp, ("make", "-s", "-j8"))
    done = maker.run(timeout=120, env={"NNKGRAPH_WORKERS": "1"})
    assert done.code == 0, done.err
    for number in range(8):
        graph = read_graph(case.here / f"{number}.tsv")
        other = build_graph(np.load(case.here / f"{number}.npy"))
        assert np.array_equal(graph.adjacency.data, other.adjacency.data)


COLD = """
import own
assert own.double(21) == 42
"""


def test_f07_many_processes_may_fill_a_cold_cache_at_once(case):
    """Each compiles the same function into the same new directory."""
    (case.here / "own.py").write_text(
        "from nnkgraph.runtime.jit import compiled\n"
        "@compiled\ndef double(x):\n    return 2 * x\n"
    )
    python = Case(case.here, case.tmp, (sys.executable, "-c", COLD))
    jobs = [python.start(env={"NUMBA_CACHE_DIR": None}) for _ in range(8)]
    for job in jobs:
        _, err = job.communicate(timeout=120)
        assert job.returncode == 0, err
    cache = case.tmp / f"nnkgraph-cache-{os.getuid()}"
    assert cache.stat().st_mode & 0o777 == 0o700
    (state,) = cache.iterdir()
    names = sorted(one.name[:10] for one in state.iterdir())
    assert names == ["locks", "own.double"]


@pytest.mark.parametrize("home", ["read-only", None, "/nonexistent"])
def test_f08_no_home_is_needed(other, home):
    if home == "read-only":
        closed = other.here / "home"
        closed.mkdir(mode=0o555)
        home = str(closed)
    # The fixture's own HOME is set last in its command: replace it there.
    program = [part for part in other.program if not part.startswith("HOME=")]
    place = program.index("env") + 1
    program[place:place] = [f"HOME={home}"] if home else ["-u", "HOME"]
    done = Case(other.here, other.tmp, tuple(program)).run(*BUILD)
    assert done.code == 0, done.err
    assert not content(other.tmp)


def test_f09_a_reader_sees_the_old_or_the_new_graph(tmp_path):
    rng = np.random.default_rng(0)
    graphs = [build_graph(rng.normal(size=(n, 3)), k=5) for n in (40, 400)]
    known = set()
    for graph in graphs:
        formats.write_graph(tmp_path / "g.npz", graph)
        known.add((tmp_path / "g.npz").read_bytes())
    done = threading.Event()

    def write():
        for number in range(60):
            formats.write_graph(tmp_path / "g.npz", graphs[number % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add((tmp_path / "g.npz").read_bytes())
    writer.join()
    assert seen <= known
    assert [p.name for p in tmp_path.iterdir()] == ["g.npz"]


def test_g02_little_shared_memory_is_enough(case):
    wrapper = mounted(Path("/dev/shm"), "1m")
    np.save(case.here / "x.npy", np.random.default_rng(0).normal(size=(3000, 50)))
    done = case.run("build", "x.npy", "-o", "g.npz", "-j", 2, "-k", 9, before=wrapper)
    assert done.code == 0, done.err


def test_g03_a_missing_folder_for_temporary_files_is_replaced(case):
    done = case.run(*BUILD[:-2], 2, env={"TMPDIR": "/nonexistent"})
    assert done.code == 0, done.err


def test_g03_a_read_only_folder_for_temporary_files_is_replaced(other):
    (other.here / "closed").mkdir(mode=0o555)
    done = other.run(*BUILD[:-2], 2, env={"TMPDIR": str(other.here / "closed")})
    assert done.code == 0, done.err


def test_g03_a_full_folder_for_temporary_files_is_named(case):
    wrapper = mounted(case.tmp, "64k")
    np.save(case.here / "x.npy", np.random.default_rng(0).normal(size=(2000, 4)))
    call = ("build", "x.npy", "-o", "g.npz", "-j", 2, "-q")
    case.fails(5, "temporary files.*set TMPDIR", *call, before=wrapper)


@pytest.mark.parametrize("files", [11, 15, 20, 24])
def test_g04_few_open_files_are_enough_or_an_error(case, files):
    call = ("build", "x.npy", "-o", "g.npz", "-q", "-j")
    limits = {resource.RLIMIT_NOFILE: files}
    words = r"2 workers need 22 open files, .* \(ulimit -n\)"
    case.fails(5, words, *call, 2, limits=limits)
    assert case.run(*call, 2, limits={resource.RLIMIT_NOFILE: 64}).code == 0


def test_g04_so_few_processes_that_no_thread_starts_are_an_error(other):
    limits = {resource.RLIMIT_NPROC: 1}
    other.fails(5, "can't start new thread", *BUILD, limits=limits)


def test_g04_too_few_processes_for_the_workers_are_an_error(other):
    call = ("build", "x.npy", "-o", "g.npz", "-q", "-j", 4)
    limits = {resource.RLIMIT_NPROC: 8}
    other.fails(5, "nnkgraph: error: ", *call, limits=limits)


def test_g05_one_processor_is_one_worker(case):
    if shutil.which("taskset") is None:
        pytest.skip("taskset is not installed")
    clean = dict.fromkeys(("SLURM_CPUS_PER_TASK", "PBS_NCPUS", "NSLOTS"))
    first = str(min(os.sched_getaffinity(0)))
    pinned = ("taskset", "-c", first)
    call = ("build", "x.npy", "-o", "g.npz", "-q", "--report", "-")
    for before, env in (
        (pinned, clean),
        ((), clean | {"SLURM_CPUS_PER_TASK": "1"}),
        ((), clean | {"SLURM_CPUS_PER_TASK": "1(x2)"}),
    ):
        done = case.run(*call, before=before, env=env)
        assert done.code == 0, done.err
        assert json.loads(done.out)["workers"] == 1


ALONE = """
import sys
import _multiprocessing
del _multiprocessing.SemLock  # as in containers without sem_open
BAD = {"os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "subprocess.Popen"}
def hook(event, args):
    if event in BAD:
        raise SystemExit(f"{event} {args}")
sys.addaudithook(hook)
from nnkgraph.cli.main import main
main()
"""


def test_g07_one_worker_needs_neither_processes_nor_semaphores(case):
    alone = Case(case.here, case.tmp, (sys.executable, "-c", ALONE))
    done = alone.run(*BUILD)
    assert done.code == 0, done.err


def test_g08_a_large_input_stays_within_its_budget(case):
    """100,000 x 100 with candidates at hand: the search has tests of its own."""
    n, k = 100_000, 10
    x = np.random.default_rng(0).normal(size=(n, 100)).astype(np.float32)
    np.save(case.here / "x.npy", x)
    near = (np.arange(n)[:, np.newaxis] + np.arange(1, k + 1)) % n
    np.savez(case.here / "knn.npz", neighbors=near.astype(np.int32))
    call = ("build", "x.npy", "-o", "g.npz", "-q", "-j", 1, "-k", k, "--report", "-")
    done = case.run(*call, "--search", "precomputed:path=knn.npz", timeout=120)
    assert done.code == 0, done.err
    assert json.loads(done.out)["peak_memory_bytes"] < 700e6
