"""Traps that somebody has set, through the command."""

import os
import resource
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from faults import content


@pytest.mark.parametrize("trap", ["others may write", "of somebody else"])
def test_h07_a_cache_that_others_could_fill_is_refused(case, trap):
    default = case.tmp / f"nnkgraph-cache-{os.getuid()}"
    given = case.here / "cache"
    for cache, env in (
        (default, {"NUMBA_CACHE_DIR": None}),
        (given, {"NUMBA_CACHE_DIR": str(given)}),
    ):
        cache.mkdir()
        if trap == "others may write":
            cache.chmod(0o777)
        elif os.geteuid() == 0:
            os.chown(cache, 65534, 65534)
        else:
            pytest.skip("only root can give a directory away")
        # A missing input ends the run before it compiles anything.
        done = case.run("build", "nope.npy", "-o", "g.npz", env=env)
        assert done.code == 3
        error, warning = done.err.splitlines()
        assert "no such file" in error
        assert warning.startswith(f"nnkgraph: warning: {cache}: others could write")
        assert not list(cache.iterdir())
        cache.rmdir()
        assert not content(case.tmp)


def test_h02_h03_other_files_are_not_even_opened(case):
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    x = np.arange(12.0).reshape(4, 3)
    with h5py.File(case.here / "canary.h5", "w") as file:
        file["g/x"] = x
    with h5py.File(case.here / "x.h5", "w") as file:
        file["direct"] = h5py.ExternalLink("canary.h5", "/g/x")
        file["group"] = h5py.ExternalLink("canary.h5", "/g")
        file["soft"] = h5py.SoftLink("/direct")
        file.create_dataset("raw", (2, 2), "u1", external=[("canary.h5", 0, 4)])
        layout = h5py.VirtualLayout((4, 3), "f8")
        layout[:] = h5py.VirtualSource("canary.h5", "g/x", (4, 3))
        file.create_virtual_dataset("virtual", layout)
    log = case.tmp.parent / "strace.log"
    items = ["direct", "group/x", "soft", "raw", "virtual"]
    specs = [f"x.h5::{item}" for item in items]
    tracer = ("strace", "-f", "-qq", "-e", "trace=open,openat", "-o", str(log))
    call = ("build", *specs, "-o", "{name}.npz")
    done = case.run(*call, before=tracer)
    if not log.exists() or not log.read_text():
        pytest.skip(f"nothing can be traced here: {done.err}")
    assert done.code == 3
    assert len(done.err.splitlines()) == len(items)
    assert "x.h5" in log.read_text()
    assert "canary" not in log.read_text()


def test_h08_nothing_is_imported_from_where_the_user_stands(case):
    names = ("csv", "numpy", "socket", "selectors", "random", "pickle", "tempfile")
    for name in names:
        text = "raise SystemExit('imported from the working directory')\n"
        (case.here / f"{name}.py").write_text(text)
    (case.here / "own.py").write_text(
        "import sys, csv, numpy as np\n"
        "def kernel(a, b):\n"
        "    assert '' not in sys.path and sys.path[-1] != HERE, sys.path\n"
        "    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))\n".replace(
            "HERE", repr(str(case.here))
        )
    )
    for executor in ("forkserver", "spawn"):
        done = case.run(
            *("build", "x.npy", "-o", "g.npz", "-j", 2, "-k", 4, "-q"),
            *("--kernel", "own:kernel", "--executor", f"processes:start={executor}"),
        )
        assert done.code == 0, done.err


def test_h01_a_pickle_is_not_run_by_the_command(case):
    class Payload:
        def __reduce__(self):
            return (open, (str(case.here / "canary"), "w"))

    values = np.array([[Payload()]], dtype=object)
    np.save(case.here / "p.npy", values)
    np.savez(case.here / "p.npz", x=values)
    for name in ("p.npy", "p.npz"):
        case.fails(3, "never loaded", "build", name, "-o", "g.npz")
    assert not (case.here / "canary").exists()


def test_h04_a_bomb_is_refused_in_little_memory(case):
    """A gigabyte of zeros in a megabyte, under a limit on memory."""
    path = case.here / "bomb.npz"
    np.savez_compressed(path, x=np.zeros((2**14, 2**13)))
    limits = {resource.RLIMIT_AS: 1 << 30}
    env = {"OPENBLAS_NUM_THREADS": "1"}
    call = ("build", "bomb.npz", "-o", "g.npz", "-q", "-j", 1)
    case.fails(
        3, "claims 1,073,741,952 bytes, more than", *call, limits=limits, env=env
    )


def test_the_library_is_not_changed_by_what_the_command_does():
    """Guards against files that shrink belong to the command alone."""
    script = (
        "import signal, numpy as np, nnkgraph;"
        "nnkgraph.build_graph(np.eye(5), k=2);"
        "assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL;"
        "import sys; assert 'nnkgraph.cli' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
