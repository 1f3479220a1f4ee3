"""Compiled code: whom a cache serves, when it is made anew, and whom it trusts."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import faults
import numba
import numpy as np
import pytest
import scipy.sparse

import nnkgraph
from bench.data import topics
from nnkgraph.runtime import cache, compiling, jit

HOME = Path(nnkgraph.__file__).parent
STOPPED = 99
"""Exit code of a process that has to compile something."""

BUILD = ("-m", "nnkgraph", "build", "x.npy", "-o", "g.npz", "-k", "5", "-q")


@pytest.fixture(scope="module")
def ours():
    """The cache of this suite, with what a build needs."""
    x = np.random.default_rng(5).normal(size=(60, 3))
    nnkgraph.build_graph(x, k=5)
    nnkgraph.build_graph(x, k=5, search="exact")
    return cache.private()


@pytest.fixture
def place(ours):
    """A folder that all may read, with a shared cache and a copy of the package."""
    folder = faults.open_folder()
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, 0, 0)
    state = folder / "cache" / ours.name
    shutil.copytree(ours, state, ignore=shutil.ignore_patterns("pynn*", "warm*"))
    for path in (folder / "cache", state):
        path.chmod(0o755)
    shutil.copytree(
        HOME, folder / "other" / "nnkgraph", ignore=shutil.ignore_patterns("__pyc*")
    )
    for path in (folder / "other").rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    np.save(folder / "x.npy", np.random.default_rng(5).normal(size=(60, 3)))
    yield folder
    shutil.rmtree(folder)


def start(place, *args, tree=None, before=(), env=None):
    """Start Python in a new folder, with a package and the shared cache of a place."""
    here = faults.open_folder()
    for name in ("tmp", "here"):
        (here / name).mkdir()
        if os.geteuid() == 0:
            os.chown(here / name, 65534, 65534)
    shutil.copy(place / "x.npy", here / "here" / "x.npy")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "COV"))}
    changed = {
        "TMPDIR": str(here / "tmp"),
        "PYTHONPATH": str(tree or place / "other"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NNKGRAPH_CPU": None,
        "NNKGRAPH_CACHE": str(place / "cache"),
        compiling.LOG: str(here / "tmp" / "log"),
        **(env or {}),
    }
    full = {k: v for k, v in (kept | changed).items() if v is not None}
    job = subprocess.run(
        [*map(str, before), sys.executable, *args],
        cwd=here / "here",
        env=full,
        capture_output=True,
        text=True,
        check=False,
    )
    log = here / "tmp" / "log"
    job.compiled = log.read_text().split() if log.exists() else []
    job.left = [one.name for one in (here / "tmp").rglob("*") if one.is_file()]
    shutil.rmtree(here)
    return job


def is_v3():
    return cache.target()[0] == "x86-64-v3"


@pytest.mark.slow
def test_a_cache_serves_another_install_path_another_user_and_new_times(place):
    job = start(place, *BUILD, "-j", "2", before=faults.ordinary_user(("env",)))
    assert job.returncode == 0, job.stderr
    assert not job.compiled
    assert not job.left  # the private cache stays empty
    assert "cache" not in job.stderr.lower()


@pytest.mark.slow
def test_a_message_may_change_and_a_compiled_module_not(place):
    stop = {compiling.STOP: str(STOPPED)}
    for name, code in (("errors.py", 0), ("cli/talk.py", 0), ("data/sums.py", STOPPED)):
        with (place / "other" / "nnkgraph" / name).open("a") as stream:
            stream.write("\n# changed\n")
        job = start(place, *BUILD, env=stop)
        assert job.returncode == code, (name, job.stderr)
        assert bool(job.compiled) == bool(code)


@pytest.mark.slow
def test_a_cache_that_others_could_write_to_is_refused(place):
    """With the reason; the run goes on with its private cache."""
    call = ("-m", "nnkgraph", "build", "nope.npy", "-o", "g.npz")
    for path in (place, place / "cache"):
        path.chmod(0o777)
        job = start(place, *call)
        error, warning = job.stderr.splitlines()
        assert "no such file" in error
        assert f"others could write to {path}, so NNKGRAPH_CACHE" in warning
        path.chmod(0o1777)  # as /tmp
        assert len(start(place, *call).stderr.splitlines()) == 1
        path.chmod(0o755)
    job = start(place, *call, env={"NNKGRAPH_CACHE": "/nonexistent"})
    assert "/nonexistent: no such file" in job.stderr.splitlines()[1]


@pytest.mark.slow
def test_a_megabyte_for_temporary_files_is_enough(place):
    """What is missing in the shared cache is compiled, and cannot be kept."""
    for path in (place / "cache").glob("*/*._squared_distances-*"):
        path.unlink()
    here = faults.open_folder()
    wrapper = faults.mounted(here, "1m")
    job = start(place, *BUILD, "-j", "2", before=wrapper, env={"TMPDIR": str(here)})
    here.rmdir()
    assert job.returncode == 0, job.stderr
    assert "nnkgraph.data.pairs._squared_distances" in job.compiled
    assert "cache" not in job.stderr.lower()


CPUS = {
    "haswell": "avx2 bmi bmi2",
    "znver3": "avx2 bmi bmi2 sha vaes",
    "skylake-avx512": "avx2 bmi bmi2 avx512f avx512bw avx512cd avx512dq avx512vl",
}
FAKE = """
import llvmlite.binding, os
name, features = os.environ["FAKE"].split(":")
base = "sse sse2 cx16 popcnt sse3 sse4.1 sse4.2 ssse3 avx f16c fma lzcnt movbe"
known = dict.fromkeys((base + " " + features).split(), True)
class Features(dict):
    def flatten(self): return ",".join("+" + one for one in self)
llvmlite.binding.get_host_cpu_name = lambda: name
llvmlite.binding.get_host_cpu_features = lambda: Features(known)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", CPUS)
def test_a_cache_serves_other_processors(place, name):
    if not is_v3():
        pytest.skip("this processor is no x86-64-v3")
    (place / "other" / "sitecustomize.py").write_text(FAKE)
    call = (*BUILD, "--report", "-")
    job = start(place, *call, env={"FAKE": f"{name}:{CPUS[name]}"})
    assert job.returncode == 0, job.stderr
    assert not job.compiled
    assert json.loads(job.stdout)["cpu"] == "x86-64-v3"


@pytest.mark.slow
def test_a_level_is_chosen_by_the_command_and_by_who_asks_for_it(place):
    (place / "other" / "sitecustomize.py").write_text(FAKE)
    fake = {"FAKE": f"haswell:{CPUS['haswell']}"}
    if is_v3():
        job = start(place, *BUILD, env={**fake, "NNKGRAPH_CPU": "x86-64-v4"})
        assert job.returncode == 2
        assert "no x86-64-v4: it has no avx512f" in job.stderr
        job = start(place, "-m", "nnkgraph", "warm", "--check", "--json", env=fake)
        assert json.loads(job.stdout)["cpu"] == "x86-64-v3"
    # As a library nothing is changed, and the key is what numba has.
    script = (
        "import numba, nnkgraph.runtime.jit as jit; from nnkgraph.runtime import cache;"
        "assert numba.config.CPU_NAME is None; print(cache.target()[0])"
    )
    assert start(place, "-c", script, env=fake).stdout == "haswell\n"
    own = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "", **fake}
    script = script.replace(" is None", " == 'x86-64'")
    assert start(place, "-c", script, env=own).stdout == "x86-64\n"


@pytest.mark.slow
def test_nothing_is_compiled_after_warm(tmp_path):
    """Neither by builds nor by other commands, from files and in workers."""
    nnkgraph.warm(everything=True)
    assert nnkgraph.warm(check=True).warm
    x = np.random.default_rng(1).normal(size=(1500, 20))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "f.npy", x[:, :3].astype(np.float32))
    np.savetxt(tmp_path / "t.csv", x[:99], delimiter=",")
    np.save(tmp_path / "y.npy", np.arange(1500) % 3)
    scipy.sparse.save_npz(tmp_path / "s.npz", topics(40_000, 300, words=20))
    calls = (
        "build x.npy f.npy t.csv -o {name}.npz -j 2 --min-degree 2 --connect mst",
        "query x.npy x.npy -o q.npz",
        "build x.npy -o x.npz --memory 1GB",
        "classify x.npy --labels y.npy --json",
        "build s.npz -o t.npz -k 15 -j 2 --search partition:recall=0.9",
    )
    script = "from nnkgraph.cli.main import run\n"
    script += f"for call in {calls!r}: assert run(call.split()) == 0, call"
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, compiling.LOG: str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not log.exists(), log.read_text()


def test_warm_refuses_what_no_run_would_use(run, tmp_path):
    tmp_path.chmod(0o777)
    result = run("warm", tmp_path / "cache")
    assert result.code == 4
    assert f"others could write to {tmp_path}" in result.err
    tmp_path.chmod(0o755)
    assert run("warm", "--check", tmp_path / "none").code == 4


def test_a_cache_that_lacks_something_is_not_warm(run, tmp_path):
    tmp_path.chmod(0o755)
    result = run("warm", "--check", tmp_path, "-j", 1)
    assert result.code == 6
    assert "a run would have to compile nnkgraph." in result.err


def test_states_that_nobody_uses_are_removed(tmp_path):
    names = ["x86-64-v3-" + "0" * 16, "znver4-" + "1" * 16, "2" * 16, "mine", "v-1"]
    old = time.time() - 31 * 86_400
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        os.utime(tmp_path / name, (old, old))
    os.utime(tmp_path / names[1])
    (tmp_path / ("3" * 16)).symlink_to(tmp_path / "mine")
    cache._remove_unused(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {names[1], "mine", "v-1", "3" * 16}


def test_a_damaged_file_is_not_read(tmp_path):
    path = tmp_path / "file"
    cache._write(path, b"content")
    assert cache._read(path) == b"content"
    path.chmod(0o666)
    assert cache._read(path) is None
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    assert cache._read(path) is None


def test_compiled_functions_take_names_from_modules_that_the_state_covers():
    """A constant of another module could change, and old code would go on with it."""
    doors = {"compiled", "inner", "intrinsic"}
    sources = cache._sources()
    strange = []
    for file, text in sources.items():
        tree = ast.parse(text)
        foreign = set()
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module.startswith("nnkgraph"):
                for one in node.names:
                    full = f"{node.module}.{one.name}".split(".")[1:]
                    options = {"/".join(full[:-1]), "/".join(full)}
                    files = {
                        f"{o}{end}" for o in options for end in (".py", "/__init__.py")
                    }
                    if not files & set(sources):
                        foreign.add(one.asname or one.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                named = {getattr(one, "id", "") for one in node.decorator_list}
                if named & doors:
                    used = {
                        n.id
                        for part in node.body
                        for n in ast.walk(part)
                        if isinstance(n, ast.Name)
                    }
                    strange += [f"{file}: {node.name}: {n}" for n in used & foreign]
    assert not strange


@pytest.mark.slow
@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "USR1"])
def test_signals_while_compiling_end_a_run_in_good_order(case, name):
    number = getattr(signal, f"SIG{name}")
    for moment, workers in ((0.5, 1), (1.5, 2)):
        job = case.start(
            *BUILD[2:],
            *("-j", workers),
            env={"NUMBA_CACHE_DIR": None, "NNKGRAPH_CACHE": None},
        )
        cold = case.tmp / f"nnkgraph-cache-{os.getuid()}"
        while not cold.exists():  # numba is there, and compiling begins
            assert job.poll() is None
            time.sleep(0.01)
        time.sleep(moment)
        job.send_signal(number)
        out, err = job.communicate(timeout=30)
        assert job.returncode == (130 if name == "INT" else 143), err
        assert len(faults.told(err)) == 1, err
        assert not out
        case.assert_alone(job.pid)
        assert [one.name for one in case.here.iterdir()] == ["x.npy"]
        assert [one.name for one in case.tmp.iterdir()] == [cold.name]


def test_what_we_change_of_numba_ends_with_our_own_compiling():
    from numba.core import registry

    context = registry.cpu_target.typing_context

    @jit.compiled
    def twice(x):
        return 2 * x + 1

    @jit.compiled
    def broken(x):
        return x.no_such_attribute

    assert twice(3) == 7
    with pytest.raises(numba.TypingError):
        broken(3)
    assert "resolve_function_type" not in vars(context)
    theirs = numba.njit(lambda x: 2 * x + 1)
    assert theirs(3.5) == 8.0
    flags = theirs.overloads[theirs.signatures[0]].metadata["pipeline_times"]
    assert any("literal" in step for step in flags["nopython"])  # all of numba's steps
