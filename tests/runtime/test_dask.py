"""Workers of dask: invisible in the result, and missed in time when they are gone."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import pytest
from faults import Case, told

from nnkgraph.build.graph import build_graph
from nnkgraph.errors import ParameterError, ResourceError
from nnkgraph.runtime import registry
from nnkgraph.search import Wanted

pytest.importorskip("distributed")

SCHEDULER = "from distributed.cli.dask_scheduler import main; main()"
WORKER = "from distributed.cli.dask_worker import main; main()"
ELSEWHERE = f"import platform; platform.node = lambda: 'elsewhere'; {WORKER}"
OLD = f"import nnkgraph; nnkgraph.__version__ = '0.0.1'; {WORKER}"
KERNEL = """
import os, signal
import numpy as np

def kernel(a, b):
    fault = "ROLE" in os.environ and os.path.exists("fault") and open("fault").read()
    if fault == "once":
        os.remove("fault")
    if fault in ("once", "always"):
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "scheduler":
        os.kill(int(open("scheduler").read()), signal.SIGKILL)
    if "ROLE" in os.environ:
        print("noise")
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))
"""


SLEEPY = """
import time
from multiprocessing import parent_process

def kernel(a, b):
    if parent_process():
        print("noise", flush=True)
        time.sleep(99)
    return abs(a @ b.T)
"""


class Cluster:
    """A scheduler and workers, as a user starts them."""

    def __init__(self, folder, *options):
        self.folder, self.options = folder, options
        self.file = folder / "scheduler.json"
        self.workers = []
        self.log = (folder / "log").open("w")
        self.scheduler = self._start(
            SCHEDULER, "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--dashboard-address", "127.0.0.1:0",
        )  # fmt: skip
        (folder / "scheduler").write_text(str(self.scheduler.pid))
        end = time.monotonic() + 60
        while not self.file.exists():
            assert time.monotonic() < end
            time.sleep(0.05)

    def add(self, count, text=WORKER):
        limits = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
        rest = ("--memory-limit", "0", "--local-directory", self.folder / "dask")
        self.workers += [self._start(text, *limits, *rest) for _ in range(count)]
        return self

    def _start(self, text, *args):
        file = ("--scheduler-file", self.file)
        return subprocess.Popen(
            [sys.executable, "-c", text, *file, *args, *self.options],
            cwd=self.folder,
            env={**os.environ, "ROLE": "worker"},
            stdout=self.log,
            stderr=self.log,
        )

    def spec(self, **parameters):
        full = {"scheduler_file": self.file, "timeout": 60, **parameters}
        return "dask:" + ",".join(f"{key}={value}" for key, value in full.items())

    def stop(self):
        for one in [*self.workers, self.scheduler]:
            one.kill()
            one.wait()
        self.log.close()


@pytest.fixture
def cluster(case):
    """Workers that stand where the command does, and so find the user's kernel."""
    (case.here / "own.py").write_text(KERNEL)
    one = Cluster(case.here)
    yield one
    one.stop()


def call(case: Case, target, spec, *more):
    rows = case.here / "x.npy"
    options = ("-k", 4, "-q", "--kernel", "own:kernel", "--executor", spec, *more)
    return case.run("build", rows, "-o", case.here / target, *options, timeout=200)


def test_d18_lost_workers_and_a_lost_scheduler(case, cluster):
    fault, target = case.here / "fault", case.here / "g.npz"
    assert call(case, "serial.npz", "serial").code == 0
    expected = (case.here / "serial.npz").read_bytes()
    cluster.add(2)

    fault.write_text("once")
    done = call(case, "g.npz", cluster.spec(workers=2))
    assert (done.code, done.out) == (0, ""), done.err
    assert all(line.startswith("nnkgraph: warning") for line in told(done.err))
    assert not fault.exists()
    assert sum(one.poll() is not None for one in cluster.workers) == 1
    assert target.read_bytes() == expected
    target.unlink()

    fault.write_text("always")
    _fails(case, cluster.spec(timeout=3), "no dask worker is left")
    _opens_not(cluster.spec(timeout=0.5), "0 of 1 dask workers")

    cluster.add(1)
    fault.write_text("scheduler")
    _fails(case, cluster.spec(timeout=9), "the dask scheduler is gone")
    _opens_not(cluster.spec(timeout=0.5), "no dask scheduler answers")


def _fails(case, spec, words):
    done = call(case, "g.npz", spec)
    assert done.code == 5, done.err
    assert words in done.err
    assert len(told(done.err)) == 1
    assert not (case.here / "g.npz").exists()
    assert not list(case.tmp.glob("nnkgraph-*"))


def _opens_not(spec, words):
    with (
        pytest.raises(ResourceError, match=words),
        registry.create("executors", spec).open(1),
    ):
        pass


@pytest.mark.parametrize(
    "text", [None, "", "{", "[1]", '{"address": 3}', '{"address": "a://b"}']
)
def test_d18_a_bad_scheduler_file_is_bad_input(points, run, tmp_path, text):
    path = tmp_path / "s.json"
    if text is not None:
        path.write_text(text)
    spec = f"dask:scheduler_file={path}"
    result = run("build", points, "-o", tmp_path / "g.npz", "--executor", spec)
    assert result.code == 3
    assert len(result.lines) == 1
    assert str(path) in result.err


def test_a_worker_lost_between_reservoirs_does_not_change_them(cluster):
    """What dask does again by itself must not be counted twice."""
    x = np.random.default_rng(0).normal(size=(20_000, 6)).astype(np.float32)
    search = registry.create("search", "exact")
    with registry.create("executors", "serial").open(1) as pool:
        plain = search.find(Wanted(x, 10, "squared-distance", pool))
    cluster.add(2)
    rows = []

    def kill(count):
        if not rows:
            cluster.workers[0].kill()
        rows.append(count)

    spec = cluster.spec(workers=2)
    with registry.create("executors", spec).open(1) as pool:
        assert pool.in_place
        assert pool.workers == 2
        wanted = Wanted(x, 10, "squared-distance", pool, on_rows=kill)
        found = search.find(wanted)
        assert sum(rows) == len(x)
        assert np.array_equal(found.index, plain.index)
        assert np.array_equal(found.distance, plain.distance)


def test_workers_on_other_machines_return_their_rows(case):
    """With encryption, and through a folder that everybody sees."""
    import dask
    from distributed import Security

    keys = Security.temporary()
    (case.here / "ca.pem").write_text(keys.tls_ca_file)
    (case.here / "key.pem").write_text(keys.tls_worker_key)
    tls = ("--tls-ca-file", "ca.pem", "--tls-cert", "ca.pem", "--tls-key", "key.pem")
    cluster = Cluster(case.here, *tls)
    files = {"CA_FILE": "ca.pem", "CLIENT__CERT": "ca.pem", "CLIENT__KEY": "key.pem"}
    env = {
        f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(case.here / file)
        for name, file in files.items()
    }
    spec = cluster.spec(folder=case.here)
    with ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.add(1, ELSEWHERE)
        config = dask.config.merge(dask.config.config, dask.config.collect_env(env))
        stack.enter_context(dask.config.set(config))
        with registry.create("executors", spec).open(1) as pool:
            assert not pool.in_place
        x = np.random.default_rng(0).normal(size=(3000, 5))
        graph = build_graph(x, k=8)
        other = build_graph(x, k=8, executor=spec)
        assert (graph.adjacency != other.adjacency).nnz == 0
        assert np.array_equal(graph.errors, other.errors)
        assert other.report["workers"] == 1
        assert not list(case.here.glob("nnkgraph-*"))

        cluster.add(1, OLD)
        _opens_not(f"{spec},workers=2", r"has nnkgraph 0\.0\.1, ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_local_cluster(case, number):
    """It also prints nothing where data is expected."""
    (case.here / "own.py").write_text(SLEEPY)
    options = ("-k", 4, "--kernel", "own:kernel", "--executor", "dask", "-j", 2)
    job = case.start("build", "x.npy", "-o", "-", "--format", "tsv", *options, "-q")
    assert job.stderr.readline() == "noise\n"
    job.send_signal(number)
    out, err = job.communicate(timeout=30)
    assert job.returncode == (143 if number == signal.SIGTERM else -number)
    assert not out
    case.assert_alone(job.pid)
    if number == signal.SIGTERM:  # or the next run removes its files
        err = err.replace("noise\n", "")  # of the other worker
        assert len(told(err)) == 1, err
        assert not list(case.tmp.iterdir())


@pytest.mark.parametrize(
    "spec",
    [
        "dask:scheduler_file=a,address=tcp://b:1",
        "dask:timeout=0",
        "dask:workers=2",
    ],
)
def test_parameters_that_make_no_sense_are_refused(spec):
    with pytest.raises(ParameterError, match="dask: "):
        registry.create("executors", spec)
