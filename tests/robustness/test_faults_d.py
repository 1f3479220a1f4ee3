"""Workers that fail, and signals, through the command."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse
from faults import Case, assert_one_line, content, processes_of_session

from nnkgraph.runtime import blocks, registry

KERNEL = """
import os, signal, sys, time
from multiprocessing import parent_process
import numpy as np

def kernel(a, b):
    if CONDITION:
        FAULT
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))
"""
ONCE = "parent_process() and not os.path.exists(os.environ['MARK'])"
MARK = "open(os.environ['MARK'], 'w').close(); "


def plant(case: Case, fault: str, condition: str = "parent_process()") -> list[object]:
    """Write a kernel with a fault, and return the options that use it."""
    text = KERNEL.replace("CONDITION", condition).replace("FAULT", fault)
    (case.here / "own.py").write_text(text)
    return ["build", "x.npy", "-o", "g.npz", "-k", 4, "-q", "--kernel", "own:kernel"]


@pytest.mark.parametrize(
    "fault",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGSEGV)",
        "os._exit(0)",
    ],
    ids=["d01_killed", "d03_segfault", "d03_exit"],
)
def test_d01_d03_a_worker_that_dies_once_cannot_be_seen_in_the_graph(
    case, tmp_path, fault
):
    env = {"MARK": str(tmp_path / "mark")}
    call = plant(case, MARK + fault, ONCE)
    assert case.run(*call, "-j", 1).code == 0
    expected = (case.here / "g.npz").read_bytes()
    done = case.run(*call, "-j", 2, env=env)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert (tmp_path / "mark").exists()
    assert (case.here / "g.npz").read_bytes() == expected
    assert not content(case.tmp)


def test_d02_workers_that_always_die_are_an_error(case):
    (case.here / "g.npz").write_text("old")
    call = plant(case, "os.kill(os.getpid(), signal.SIGKILL)")
    case.fails(5, "workers died 4 times, last at rows", *call, "-j", 2)


def test_d04_a_kernel_that_raises_in_a_worker_is_named(case):
    call = plant(case, "raise KeyError('oops')")
    case.fails(2, "own:kernel': it raised KeyError: 'oops'", *call, "-j", 2)
    call = plant(case, "raise SystemExit(0)")
    case.fails(2, "own:kernel': it raised SystemExit", *call, "-j", 2)


def _raise(_task, start, stop):
    if start == 3:
        raise ZeroDivisionError("oops")
    return (np.arange(start, stop),)


def test_d04_a_bug_in_a_worker_names_its_rows():
    with registry.create("executors", "processes").open(2) as pool:
        out = pool.output((8,), np.int64)
        with pytest.raises(ZeroDivisionError, match="oops") as caught:
            blocks.run(pool, _raise, None, (out,), rows=8, block=1)
    assert "in rows 3 to 3" in caught.value.__notes__
    assert "_raise" in str(caught.value.__cause__)  # the worker's own traceback


def test_d04_a_bug_shows_its_traceback_where_asked(run, points, tmp_path, monkeypatch):
    from nnkgraph.methods import qp

    def broken(*args, **options):
        error = ZeroDivisionError("oops")
        error.add_note("in rows 0 to 59")
        raise error

    monkeypatch.setattr(qp, "regress", broken)
    result = run("build", points, "-o", tmp_path / "g.npz", "-q")
    assert result.code == 1
    assert_one_line(result.err, "bug: ZeroDivisionError: oops in rows 0 to 59; please")
    result = run("build", points, "-o", tmp_path / "g.npz", "-vv")
    assert "Traceback" in result.err
    assert "in broken" in result.err


class _UnpicklableError(Exception):
    def __init__(self, first, second):
        super().__init__(first)
        self.lock = threading.Lock()


class _OneWayError(Exception):  # can be pickled, and not be read again
    def __init__(self, first, second):
        super().__init__(first)


def _raise_unpicklable(_task, start, stop):
    raise _UnpicklableError("oops", start)


def _raise_one_way(_task, start, stop):
    raise _OneWayError("oops", start)


@pytest.mark.parametrize(
    "function",
    [
        _raise_unpicklable,
        _raise_one_way,
    ],
)
@pytest.mark.timeout(60)
def test_d05_errors_that_cannot_travel_do_not_hang(function):
    from nnkgraph.errors import NnkGraphError

    with (
        registry.create("executors", "processes").open(2) as pool,
        pytest.raises(Exception, match=r"oops|pickle") as caught,
    ):
        blocks.run(pool, function, None, (None,), rows=8, block=1)
    assert not isinstance(caught.value, NnkGraphError)  # a bug: exit code 1


def test_d06_a_worker_without_memory_is_a_lack_of_resources(case):
    call = plant(case, "raise MemoryError('no room')")
    case.fails(5, "out of resources: no room", *call, "-j", 2)


def wait_for_start(case: Case, job) -> None:
    """Wait until the kernel was called in a process that is busy."""
    end = time.monotonic() + 60
    while not (case.here / "started").exists():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


SLOW = "open('started', 'w').close(); time.sleep(0.2)"


def test_d09_a_run_on_one_worker_ends_on_sigterm(case):
    job = case.start(*plant(case, SLOW, "True"), "-j", 1)
    wait_for_start(case, job)
    job.terminate()
    out, err = job.communicate(timeout=10)
    assert job.returncode == 143
    assert_one_line(err, "stopped by SIGTERM")
    assert not out
    assert not (case.here / "g.npz").exists()
    assert not content(case.tmp)


def test_d10_a_second_interrupt_ends_at_once(case):
    job = case.start(*plant(case, SLOW), "-j", 2)
    wait_for_start(case, job)
    os.killpg(job.pid, signal.SIGINT)
    os.killpg(job.pid, signal.SIGINT)
    job.communicate(timeout=10)
    assert job.returncode in {130, -signal.SIGINT}
    case.assert_alone(job.pid)
    assert not (case.here / "g.npz").exists()


SLOW_END = """
import os, sys, time
from nnkgraph.cli.main import main
real = os.{name}
def slow(*args):
    {before}
    print("now", flush=True)
    time.sleep(1)
    {after}
os.{name} = slow
main()
"""


@pytest.mark.parametrize(
    ("name", "late"), [("fsync", False), ("replace", False), ("replace", True)]
)
def test_d11_a_signal_during_the_final_write_leaves_old_or_new(case, name, late):
    assert case.run("build", "x.npy", "-o", "new.npz", "-j", 1, "-k", 5).code == 0
    new = (case.here / "new.npz").read_bytes()
    (case.here / "g.npz").write_text("old")
    parts = ("real(*args)", "pass") if late else ("pass", "real(*args)")
    script = SLOW_END.format(name=name, before=parts[0], after=parts[1])
    slow = Case(case.here, case.tmp, (sys.executable, "-c", script))
    job = slow.start("build", "x.npy", "-o", "g.npz", "-j", 1, "-k", 5, "-q")
    assert job.stdout.readline() == "now\n"
    job.terminate()
    _, err = job.communicate(timeout=10)
    assert job.returncode == 143
    assert_one_line(err, "stopped by SIGTERM")
    expected = new if late else b"old"
    assert (case.here / "g.npz").read_bytes() == expected
    assert sorted(p.name for p in case.here.iterdir()) == ["g.npz", "new.npz", "x.npy"]


def test_d13_nohup_keeps_a_run_alive(case):
    job = case.start(*plant(case, SLOW, "True"), "-j", 1, before=("nohup",))
    wait_for_start(case, job)
    job.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert job.poll() is None
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=10)
    assert job.returncode == 143


@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_d17_start_methods_cannot_be_seen(case, start):
    call = ["build", "x.npy", "-k", 5, "-q"]
    env = {"PYTHONWARNINGS": "default::DeprecationWarning"}
    executor = ["--executor", f"processes:start={start}"]
    assert case.run(*call, "-o", "a.npz", "-j", 1).code == 0
    done = case.run(*call, "-o", "b.npz", "-j", 2, *executor, env=env)
    assert done.code == 0, done.err
    assert "DeprecationWarning" not in done.err
    read = [(case.here / name).read_bytes() for name in ("a.npz", "b.npz")]
    assert read[0] == read[1]
    assert not content(case.tmp)


def test_d19_noise_of_workers_stays_off_stdout(case):
    call = plant(case, "os.write(2, b'noise\\n'); sys.stderr.write('more\\n')")
    call[call.index("g.npz")] = "-"
    done = case.run(*call, "-j", 2, "--format", "tsv")
    assert done.code == 0
    assert "noise" in done.err
    assert "noise" not in done.out
    rows = [line.split("\t") for line in done.out.splitlines() if line[0] != "#"]
    assert rows
    assert all(len(row) == 3 and float(row[2]) > 0 for row in rows)


@pytest.mark.linux
def test_g06_two_workers_keep_two_threads_busy(case):
    x = np.random.default_rng(0).normal(size=(6000, 12)).astype(np.float32)
    np.save(case.here / "x.npy", x)
    quiet = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"))
    call = ("build", "x.npy", "-o", "g.npz", "-j", 2, "-k", 60, "-q")
    job = case.start(*call, env=quiet)
    samples = []
    while job.poll() is None:
        if busy := running_threads(job.pid):
            samples.append(busy)
        time.sleep(0.02)
    job.communicate()
    assert job.returncode == 0
    assert len(samples) > 20
    # A sample now and then sees a third thread that is about to sleep.
    assert np.mean(np.array(samples) > 2) < 0.15
    assert scipy.sparse.load_npz(case.here / "g.npz").shape == (6000, 6000)


def running_threads(session: int) -> int:
    count = 0
    for pid in processes_of_session(session):
        try:
            for task in os.scandir(f"/proc/{pid}/task"):
                with open(f"{task.path}/stat", encoding="ascii") as file:  # noqa: PTH123
                    count += file.read().rpartition(")")[2].split()[0] == "R"
        except OSError:
            continue
    return count
