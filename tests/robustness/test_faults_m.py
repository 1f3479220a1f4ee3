"""Signals, and processes that stop, hang and die."""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from faults import Case, assert_one_line, content, processes_of_session

from nnkgraph import formats

BUILD = ("build", "x.npy", "-k", 5, "-q", "-o", "out.npz")
UPDATE = "update u.npz --features x.npy --add y.npy -o u.npz --write-features x.npy -q"


def wait_until(happened, job):
    end = time.monotonic() + 60
    while not happened():
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def states(session):
    """The states of the processes of a session, as /proc names them."""
    found = []
    for pid in processes_of_session(session):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        found.append(text.rpartition(")")[2].split()[0])
    return found


HOLD = """
import os, signal, time
real, calls = os.{name}, []
def hold(*args, **options):
    calls.append(args)
    if len(calls) == {call}:
        {what}
    return real(*args, **options)
os.{name} = hold
from nnkgraph.__main__ import main
main()
"""
WAIT = "print('now', flush=True); time.sleep(60)"


def holding(kit, name, call, what=WAIT):
    """The command, held up in a call of the system."""
    script = HOLD.format(name=name, call=call, what=what)
    return Case(kit.here, kit.tmp, (sys.executable, "-c", script))


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
@pytest.mark.parametrize(("name", "call"), [("fsync", 1), ("replace", 1)])
def test_m01_an_update_that_is_stopped_changes_nothing(kit, name, call, number):
    """While files are flushed, and just before the first gets its name."""
    before = content(kit.here)
    job = holding(kit, name, call).start(*UPDATE.split())
    assert job.stdout.readline() == "now\n"
    job.send_signal(getattr(signal, number))
    _, err = job.communicate(timeout=30)
    assert job.returncode == (130 if number == "SIGINT" else 143), err
    assert_one_line(err, "interrupted|stopped by")
    assert content(kit.here) == before
    assert not content(kit.tmp)


@pytest.mark.parametrize("what", ["term", "kill"])
def test_m02_an_update_that_ends_between_its_files_is_finished_by_the_next(kit, what):
    """The features have their name, and the graph has not."""
    shutil.copytree(".", "../whole")
    end = WAIT if what == "term" else "os.kill(os.getpid(), signal.SIGKILL)"
    job = holding(kit, "replace", 3, end).start(*UPDATE.split())
    if what == "term":
        assert job.stdout.readline() == "now\n"
        job.terminate()
    job.communicate(timeout=30)
    assert job.returncode == (143 if what == "term" else -signal.SIGKILL)
    assert len(np.load("x.npy")) == 67
    assert formats.read_graph("u.npz").n_nodes == 60
    for _ in range(2):  # and nothing is added twice
        assert kit.run(UPDATE).code == 0
        assert len(np.load("x.npy")) == 67
    os.chdir("../whole")
    assert kit.run(UPDATE).code == 0
    for name in ("u.npz", "x.npy"):
        assert Path(name).read_bytes() == (kit.here / name).read_bytes()
    assert not list(kit.here.glob(".nnkgraph*"))


HELD = """
import os, time
from multiprocessing import parent_process
import numpy as np

def kernel(a, b):
    if parent_process():
        open('started', 'w').close()
        while not os.path.exists('go'):
            time.sleep(0.01)
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))
"""


@pytest.mark.linux
def test_m03_a_run_that_is_suspended_goes_on(kit):
    """Ctrl-Z and fg, with its workers, in the middle of a block."""
    (kit.here / "own.py").write_text(HELD)
    call = ("build", "x.npy", "-k", 5, "-q", "--kernel", "own:kernel", "-o")
    assert kit.case.run(*call, "one.npz", "-j", 1).code == 0
    job = kit.case.start(*call, "two.npz", "-j", 2)
    wait_until(Path("started").exists, job)
    os.killpg(job.pid, signal.SIGSTOP)
    wait_until(lambda: set(states(job.pid)) == {"T"}, job)
    Path("go").touch()
    os.killpg(job.pid, signal.SIGCONT)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    assert Path("two.npz").read_bytes() == Path("one.npz").read_bytes()
    assert not content(kit.tmp)


STOPPING = """
import os, signal
from multiprocessing import parent_process
import numpy as np

def kernel(a, b):
    if parent_process():
        os.kill(os.getpid(), signal.SIGSTOP)
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))
"""


def test_m04_workers_that_stand_still_are_given_up(kit):
    (kit.here / "own.py").write_text(STOPPING)
    call = (*BUILD, "-j", 2, "--kernel", "own:kernel", "--block-timeout", 1)
    kit.case.fails(5, "no worker finished a block within 1 s", *call)


def child_of(pid, count):
    """The processes that some process has started, once there are so many."""
    found = []
    for one in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = one.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == pid:
            found.append(int(one.parent.name))
    return found if len(found) >= count else []


@pytest.mark.linux
@pytest.mark.parametrize("who", ["worker", "server"])
def test_m05_what_the_system_kills_for_memory_cannot_be_seen(kit, who):
    """A worker, and the process that starts workers, at some moment."""
    np.save("x.npy", np.random.default_rng(0).normal(size=(1500, 6)))
    call = ("build", "x.npy", "-k", 20, "-q", "-o")
    assert kit.case.run(*call, "one.npz", "-j", 1).code == 0
    job = kit.case.start(*call, "two.npz", "-j", 2)

    def workers():
        every = processes_of_session(job.pid)
        return [two for one in every for two in child_of(one, 2) if one != job.pid]

    wait_until(lambda: workers() or job.poll() is not None, job)
    known = workers()
    if known:
        server = int(
            Path(f"/proc/{known[0]}/stat").read_text().rpartition(")")[2].split()[1]
        )
        os.kill(known[-1] if who == "worker" else server, signal.SIGKILL)
    _, err = job.communicate(timeout=60)
    assert job.returncode == 0, err
    assert Path("two.npz").read_bytes() == Path("one.npz").read_bytes()
    assert not content(kit.tmp)
    kit.case.assert_alone(job.pid)


@pytest.mark.parametrize(
    "call",
    [
        "cluster in.npz -o out.csv",
        "report in.npz -o out.html",
        "audit in.npy -o out.csv",
        "classify in.npy --labels labels.csv",
        "propagate g.npz --labels in.csv -o out.csv",
        "verify x.npy in.npz",
        "merge in.npz -o out.npz",
    ],
)
def test_m06_commands_that_wait_for_a_pipe_end_when_told(kit, call):
    (name,) = [word for word in call.split() if word.startswith("in.")]
    os.mkfifo(name)
    before = content(kit.here)
    job = kit.case.start(*call.split(), "-q")

    # It has a reader only when the command waits for what is written to it.
    writers = []

    def is_read():
        with suppress(OSError):
            writers.append(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
        return writers

    wait_until(is_read, job)
    job.terminate()
    _, err = job.communicate(timeout=30)
    assert job.returncode == 143, err
    assert_one_line(err, "stopped by SIGTERM")
    os.close(writers[0])
    assert content(kit.here) == before
    assert not content(kit.tmp)


def test_m07_a_time_that_is_longer_than_any_clock_is_for_ever(kit):
    done = kit.case.run(*BUILD, "-j", 2, "--block-timeout", "1e300")
    assert done.code == 0, done.err
    assert Path("out.npz").read_bytes() == Path("g.npz").read_bytes()


def test_m08_workers_of_dask_with_another_version_are_refused():
    from nnkgraph.errors import ResourceError
    from nnkgraph.runtime.executors import dask

    setup = dask._WorkerSetup((("nnkgraph", "0.0.1"),), "/tmp", True, None)
    with pytest.raises(ResourceError, match=r"has nnkgraph .*this is 0\.0\.1: install"):
        dask._check_worker(setup)
