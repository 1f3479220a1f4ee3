"""Workers: invisible in the result, replaced when they die, gone in the end."""

import multiprocessing
import os
import platform
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PROGRAM
from faults import told

from nnkgraph.build.graph import build_graph
from nnkgraph.build.solve import solve
from nnkgraph.errors import ResourceError
from nnkgraph.runtime import blocks, registry
from nnkgraph.search import Wanted

SCRATCH = f"nnkgraph-{platform.node()}-*"


def processes_of(parent: int) -> list[int]:
    """All living descendants of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        state, ppid = text.rpartition(")")[2].split()[:2]
        if int(ppid) == parent and state != "Z":
            child = int(stat.parent.name)
            found += [child, *processes_of(child)]
    return found


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("waited too long")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """20,000 rows: enough that several workers are really at work."""
    path = tmp_path_factory.mktemp("large") / "large.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=(20_000, 12)).astype(np.float32))
    return path


@pytest.mark.parametrize("search", ["exact", "kdtree"])
def test_the_number_of_workers_cannot_be_seen(run, large, tmp_path, search):
    if search == "kdtree":  # made for few dimensions
        x = np.load(large)
        large = tmp_path / "narrow.npy"
        np.save(large, x[:, :4])
    for workers in (1, 2, 4):
        every = search == "exact" and workers != 2
        for ending in ("npz", "tsv", "graphml") if every else ("npz",):
            target = tmp_path / f"{workers}.{ending}"
            result = run(
                "build",
                large,
                "-o",
                target,
                "-j",
                workers,
                "--search",
                search,
                "-k",
                15,
            )
            assert result.code == 0, result.err
            assert target.read_bytes() == (tmp_path / f"1.{ending}").read_bytes()


def test_precomputed_candidates_give_the_same_bytes_with_any_workers(
    run, large, tmp_path
):
    knn = tmp_path / "knn.npz"
    assert run("search", large, "-o", knn, "-k", 15).code == 0
    for workers in (1, 2):
        spec = f"precomputed:path={knn}"
        target = tmp_path / f"{workers}.npz"
        assert (
            run(
                "build", large, "-o", target, "-k", 15, "-j", workers, "--search", spec
            ).code
            == 0
        )
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_several_workers_are_really_at_work(start):
    """d17: every start method; each worker reports its own process number."""
    with registry.create("executors", f"processes:start={start}").open(3) as pool:
        out = pool.output((64,), np.int64)
        blocks.run(pool, _who, None, (out,), rows=64, block=1)
        seen = out.open()
        assert len(set(seen.tolist())) >= 2
        assert os.getpid() not in seen


def _who(_task, start, stop):
    time.sleep(0.02)
    return (np.full(stop - start, os.getpid()),)


@pytest.mark.linux
def test_g07_one_worker_starts_no_process(large):
    started = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            started.extend(processes_of(os.getpid()))
            time.sleep(0.01)

    before = set(processes_of(os.getpid()))  # a server of an earlier test, perhaps
    watcher = threading.Thread(target=watch)
    watcher.start()
    build_graph(np.load(large)[:3000], workers=1)
    done.set()
    watcher.join()
    assert set(started) <= before


def test_small_problems_stay_in_the_process(points, run, tmp_path, monkeypatch):
    from nnkgraph.runtime.executors.processes import Processes

    monkeypatch.setattr(Processes, "open", lambda *_: pytest.fail("processes started"))
    assert run("build", points, "-o", tmp_path / "g.npz").code == 0


def test_executors_and_block_sizes_cannot_be_seen(large):
    x = np.load(large)[:3000]
    graph = build_graph(x, k=12)
    for executor in registry.names("executors"):
        other = build_graph(x, k=12, workers=3, executor=executor)
        assert np.array_equal(graph.adjacency.data, other.adjacency.data)
        assert np.array_equal(graph.adjacency.indices, other.adjacency.indices)
        assert np.array_equal(graph.errors, other.errors)


@pytest.mark.parametrize("block", [1, 7, 100, 5000])
def test_the_block_size_of_the_solver_cannot_be_seen(large, block):
    x = np.load(large)[:500]
    kernel = registry.create("kernels", "gaussian:sigma=1")
    method = registry.create("methods", "nnk")
    with registry.create("executors", "threads").open(2) as pool:
        found = registry.create("search", "exact").find(
            Wanted(x, 12, kernel.base, pool)
        )
        plain = solve(pool, x, found, kernel=kernel, method=method)
        other = solve(pool, x, found, kernel=kernel, method=method, block=block)
    assert np.array_equal(plain.weights, other.weights)
    assert np.array_equal(plain.errors, other.errors)


def _die_once(folder, start, stop):
    mark = Path(folder, f"{start}")
    if start == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return (np.arange(start, stop),)


def test_d01_a_dead_worker_is_replaced(tmp_path):
    with registry.create("executors", "processes").open(2) as pool:
        out = pool.output((20,), np.int64)
        blocks.run(pool, _die_once, str(tmp_path), (out,), rows=20, block=1)
        assert out.open().tolist() == list(range(20))


def _die_always(_task, start, stop):
    if start:  # the first call is made in the parent, to compile
        os._exit(9)
    return (np.arange(start, stop),)


def test_d02_workers_that_always_die_are_reported(tmp_path):
    with (
        registry.create("executors", "processes").open(2) as pool,
        pytest.raises(ResourceError, match="workers died 4 times"),
    ):
        blocks.run(pool, _die_always, None, (None,), rows=20, block=1)
    assert not multiprocessing.active_children()


def test_workers_are_killed_whatever_they_do():
    with registry.create("executors", "processes").open(2) as pool:
        futures = [pool.submit(time.sleep, 1000) for _ in range(5)]
        time.sleep(0.2)
    assert all(future.cancelled() for future in futures)


class _UnsendableError(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def _raise_unsendable():
    raise _UnsendableError(1, 2)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ((int, "x"), ValueError),
        ((_raise_unsendable,), RuntimeError),
        ((threading.Lock,), TypeError),
    ],
)
def test_d05_what_cannot_be_sent_is_an_error_and_no_hang(call, expected):
    with registry.create("executors", "processes").open(1) as pool:
        future = pool.submit(*call)
        assert pool.wait([future]) == {future}
        with pytest.raises(expected):
            future.result()
        again = pool.submit(abs, -1)
        pool.wait([again])
        assert again.result() == 1


def test_d07_a_worker_that_hangs_is_reported():
    with (
        registry.create("executors", "processes").open(2, block_timeout=1.0) as pool,
        pytest.raises(ResourceError, match="no worker finished a block within 1 s"),
    ):
        blocks.run(pool, _hang, None, (None,), rows=4, block=1)


def _hang(_task, _start, _stop):
    time.sleep(1000)  # longer than a test may take
    return (None,)


def test_a_fork_server_that_was_killed_comes_again():
    from multiprocessing import forkserver

    x = np.random.default_rng(0).normal(size=(50, 3))
    before = build_graph(x, k=5, workers=2)
    os.kill(forkserver._forkserver._forkserver_pid, signal.SIGKILL)
    after = build_graph(x, k=5, workers=2)
    assert (before.adjacency != after.adjacency).nnz == 0


def _die_while_sending(_task, start, stop):
    if start and multiprocessing.parent_process() is not None:
        threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGKILL]).start()
    time.sleep(0.05)
    return (np.full((stop - start, 400_000), start),)


def test_d03_workers_that_die_while_they_send_long_results_leave_no_hang():
    """Long results go through files: nobody waits for the rest of a message."""
    with registry.create("executors", "processes").open(2) as pool:
        out = pool.output((40, 400_000), np.int32)
        with pytest.raises(ResourceError, match="workers died"):
            blocks.run(pool, _die_while_sending, None, (out,), rows=40, block=1)


def test_children_of_the_caller_are_left_alone():
    own = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    own.start()
    try:
        build_graph(np.random.default_rng(0).normal(size=(50, 3)), k=5, workers=2)
        assert own.is_alive()
    finally:
        own.kill()
        own.join()


@pytest.mark.linux
def test_d08_files_of_a_killed_run_are_removed_by_the_next(large, tmp_path):
    job = start_large_job(large, tmp_path)
    job.kill()
    job.communicate(timeout=20)
    left = list((tmp_path / "tmp").glob(SCRATCH))
    assert left
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 3)))
    command = [
        PROGRAM,
        "build",
        tmp_path / "x.npy",
        "-o",
        tmp_path / "x.npz",
        "-j",
        "2",
    ]
    subprocess.run(command, env=env, check=True, capture_output=True)
    assert not list((tmp_path / "tmp").glob(SCRATCH))


@pytest.mark.linux
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGTERM, 143),
        (signal.SIGINT, 130),
        (signal.SIGHUP, 143),
        (signal.SIGUSR1, 143),
    ],
)
def test_d09_d10_d12_d13_signals_end_everything(large, tmp_path, number, code):
    job = start_large_job(large, tmp_path)
    children = processes_of(job.pid)
    job.send_signal(number)
    _, err = job.communicate(timeout=20)
    assert job.returncode == code
    assert len(told(err)) == 1, err
    wait_until(lambda: not any(map(alive, children)), 10)
    assert [p.name for p in tmp_path.iterdir()] == ["tmp"]
    assert not list((tmp_path / "tmp").glob(SCRATCH))


@pytest.mark.linux
def test_d08_workers_end_with_a_killed_parent(large, tmp_path):
    job = start_large_job(large, tmp_path)
    children = processes_of(job.pid)
    job.kill()
    job.communicate(timeout=20)
    wait_until(lambda: not any(map(alive, children)), 5)


def alive(pid):
    try:
        return (
            "Z"
            not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        )
    except OSError:
        return False


def start_large_job(large, tmp_path):
    """Start a run and wait until its workers are busy."""
    (tmp_path / "tmp").mkdir()
    job = subprocess.Popen(
        [
            PROGRAM,
            "build",
            large,
            "-o",
            tmp_path / "g.npz",
            "-j",
            "2",
            "-k",
            "300",
            "-q",
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    # the run, the fork server and its tracker, and two workers
    wait_until(lambda: len(processes_of(job.pid)) >= 4)
    time.sleep(0.5)
    assert job.poll() is None
    return job
