"""Other systems, as far as Linux can play them: what they lack is taken away."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import PROGRAM

import nnkgraph
from nnkgraph.runtime import arrays, limits
from nnkgraph.runtime.executors.processes import Processes

pytestmark = pytest.mark.linux

MACOS = """
import sys
# Packages of others look for libraries by the name of the system: they come first.
import llvmlite.binding, h5py, numba, numpy, scipy.sparse, threadpoolctl
import errno, mmap, os, resource, select, signal
sys.platform = "darwin"
threadpoolctl.threadpool_limits = lambda limits: None  # it would look for dylibs,
# and reads /proc/self/maps, which is left.
for home, names in {
    os: "sched_getaffinity posix_fallocate posix_fadvise memfd_create",
    select: "epoll",
    signal: "sigwaitinfo sigtimedwait",
    mmap: "MAP_POPULATE",
}.items():
    for name in names.split():
        delattr(home, name)

def hide(path):
    path = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else ""
    if path.startswith(("/proc", "/sys")) and path != "/proc/self/maps":
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)

read = {"open", "os.listdir", "os.scandir"}
sys.addaudithook(lambda event, args: event in read and args and hide(args[0]))
stat = os.stat
os.stat = lambda path, **more: hide(path) or stat(path, **more)
limit = resource.getrlimit
resource.RLIM_INFINITY = 2**63 - 1
resource.getrlimit = lambda what: tuple(
    one if one >= 0 else 2**63 - 1 for one in limit(what)
)
"""

WINDOWS = """
import os, signal, sys
sys.platform, os.name = "win32", "nt"
for module in ("fcntl", "resource", "pwd", "termios"):
    sys.modules[module] = None
for name in ("SIGHUP", "SIGUSR1", "SIGALRM", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
"""


@pytest.fixture
def played(tmp_path):
    """Return the environment of a system that is played."""

    def make(text):
        folder = tmp_path / "site"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(text)
        return {"PYTHONPATH": str(folder)}

    return make


@pytest.fixture
def points(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(4).normal(size=(300, 4)))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("-j", 2),
        ("-j", "auto"),
        ("-j", 2, "--executor", "threads"),
        ("-j", 2, "--executor", "processes:start=forkserver"),
        ("--memory", "1GB", "--resume", "state"),
        ("--search", "pynndescent"),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_a_build_on_macos_gives_the_same_bytes(program, played, points, options):
    mac = played(MACOS)
    line = ("build", points, "-k", 10, *options, "--report", "r.json", "-o")
    there = program(*line, "mac.npz", env=mac)
    assert there.code == 0, there.err
    assert program(*line, "linux.npz").code == 0
    here = points.parent
    assert (here / "mac.npz").read_bytes() == (here / "linux.npz").read_bytes()
    assert json.loads((here / "r.json").read_text())["peak_memory_bytes"] > 0
    left = {one.name for one in here.iterdir()} - {"site", "state"}
    assert left == {"x.npy", "mac.npz", "linux.npz", "r.json"}


def test_macos_starts_workers_anew(monkeypatch):
    """Fork is not safe there: its libraries have threads as soon as they are loaded."""
    for system, start in (("linux", "forkserver"), ("darwin", "spawn")):
        monkeypatch.setattr(sys, "platform", system)
        with Processes().open(1) as pool:
            assert pool._context.get_start_method() == start


@pytest.mark.slow
def test_other_commands_run_on_macos(program, played, points):
    mac = played(MACOS)
    for line in (
        ("build", points, "-o", "g.graphml", "-j", 2),
        ("verify", points, "g.graphml", "--sample", 5),
        ("convert", "g.graphml", "g.tsv.gz"),
        ("info", "g.tsv.gz"),
        ("doctor", points),
    ):
        done = program(*line, env=mac)
        assert done.code == 0, done.err


def test_memory_is_what_the_machine_has_where_nobody_says_what_is_free(monkeypatch):
    monkeypatch.setattr(limits, "_content", lambda _path: "")
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert limits.available_memory() == there


def test_open_files_are_counted():
    before = limits.files_left()
    with open(os.devnull):  # noqa: PTH123
        assert limits.files_left() == before - 1


@pytest.mark.parametrize("command", [[PROGRAM], [sys.executable, "-m", "nnkgraph"]])
def test_windows_is_told_in_one_line(played, command, tmp_path):
    env = {**os.environ, **played(WINDOWS)}
    for line in (["--version"], ["build", "x.npy", "-o", "g.npz"]):
        told = {"capture_output": True, "text": True, "cwd": tmp_path}
        done = subprocess.run([*command, *line], env=env, check=False, **told)
        assert done.returncode == 5
        said = "nnkgraph needs Linux or macOS; on Windows, install it in WSL"
        assert done.stderr == f"nnkgraph: error: {said}\n"


def test_the_library_tells_windows_the_same(played):
    done = subprocess.run(
        [sys.executable, "-c", "import nnkgraph; nnkgraph.build_graph([[0.0]])"],
        env={**os.environ, **played(WINDOWS)},
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: nnkgraph needs Linux or macOS")


def test_a_machine_with_a_long_name_has_workers(monkeypatch, tmp_path):
    """Pods are called by up to 63 characters, and paths of sockets are short."""
    names = [f"{'graph-' * 9}7d9f8b6c{last}" for last in "ab"]
    folders = []
    for name in names:
        monkeypatch.setattr("platform.node", lambda name=name: name)
        with arrays.scratch_folder(str(tmp_path)) as folder:
            folders.append(os.path.basename(folder).rsplit("-", 2)[0])  # noqa: PTH119
    assert folders[0] != folders[1]
    assert max(map(len, folders)) <= len("nnkgraph-") + 32
    x = np.random.default_rng(1).normal(size=(50, 3))
    assert nnkgraph.build_graph(x, k=5, workers=2).n_nodes == 50


def test_folders_of_runs_that_were_killed_are_removed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    mine = f"nnkgraph-{arrays._machine()}"
    for number in (ended.pid, 10**12, os.getpid()):
        (tmp_path / f"{mine}-{number}-abcdefgh").mkdir()
    with arrays.scratch_folder(str(tmp_path)):
        pass
    (left,) = tmp_path.iterdir()
    assert left.name == f"{mine}-{os.getpid()}-abcdefgh"
