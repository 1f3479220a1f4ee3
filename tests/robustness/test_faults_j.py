"""Several at once: runs that share files, folders and a machine."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PROGRAM
from faults import assert_one_line, content, told

from nnkgraph import formats
from nnkgraph.runtime.arrays import scratch_folder

UPDATE = "update u.npz --features x.npy --add y.npy -o u.npz -q"
WAITING = """
import os, time
import numpy as np

def kernel(a, b):
    if 'FIRST' in os.environ and os.path.exists('ck/lock'):
        open('started', 'w').close()
        while not os.path.exists('go'):
            time.sleep(0.01)
    return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))
"""


def wait_until(happened, job=None):
    end = time.monotonic() + 60
    while not happened():
        assert job is None or job.poll() is None, job.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def feeding(pipe, content, before=lambda: None):
    """Write to a pipe once somebody reads it, and do something just before."""

    def feed():
        with open(pipe, "wb") as stream:  # noqa: PTH123 - waits for the reader
            before()
            stream.write(content)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    return thread


def test_j01_a_checkpoint_has_one_run_at_a_time(kit):
    (kit.here / "own.py").write_text(WAITING)
    line = "build x.npy -j 1 -k 5 -q --kernel own:kernel --resume ck -o"
    call = line.split()
    first = kit.case.start(*call, "a.npz", env={"FIRST": "1"})
    wait_until((kit.here / "started").exists, first)
    try:
        done = kit.case.run(*call, "b.npz")
    finally:
        (kit.here / "go").touch()
        first.communicate(timeout=60)
    assert done.code == 5
    assert_one_line(done.err, rf"ck: another run \(process {first.pid} on .*wait for")
    assert not (kit.here / "b.npz").exists()
    assert first.returncode == 0
    assert (kit.here / "a.npz").exists()
    assert not (kit.here / "ck").exists()


def test_j02_two_updates_of_a_graph_do_not_lose_rows(kit):
    with (kit.here / "u.npz").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)  # as a run that is at it has
        kit.fails(5, "u.npz: another run is updating it; wait", UPDATE)
    assert kit.run(UPDATE).code == 0
    assert formats.read_graph(kit.here / "u.npz").n_nodes == 67


def test_j03_a_graph_that_is_replaced_during_its_update_stays(kit):
    pipe = kit.here / "new.npy"
    os.mkfifo(pipe)
    other = (kit.here / "g.npz").read_bytes()
    rows = (kit.here / "y.npy").read_bytes()

    def replace():
        shutil.copy("g.npz", "other.npz")
        Path("other.npz").replace("u.npz")

    thread = feeding(pipe, rows, replace)
    done = kit.run(UPDATE.replace("y.npy", "new.npy"))
    thread.join()
    assert done.code == 3
    assert_one_line(done.err, "u.npz: was changed while it was updated, and stays")
    assert (kit.here / "u.npz").read_bytes() == other
    assert not list(kit.here.glob(".nnkgraph*"))


def test_j04_features_that_change_during_an_update_are_refused(kit):
    pipe = kit.here / "new.npy"
    os.mkfifo(pipe)
    before = (kit.here / "u.npz").read_bytes()
    rows = (kit.here / "y.npy").read_bytes()

    def change():
        with Path("x.npy").open("r+b") as stream:
            stream.seek(-8, os.SEEK_END)
            stream.write(np.float64(9).tobytes())
        os.utime("x.npy", ns=(1, 1))

    thread = feeding(pipe, rows, change)
    done = kit.run(UPDATE.replace("y.npy", "new.npy"))
    thread.join()
    assert done.code == 3
    assert_one_line(
        done.err, "x.npy: (the file was changed while|not what u.npz was built)"
    )
    assert (kit.here / "u.npz").read_bytes() == before


def test_j05_folders_of_runs_in_other_containers_are_left_alone(kit):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("a container with numbers of its own needs root and unshare")
    own = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no container can be made here")
    call = ("build", "x.npy", "-j", 2, "-k", 5, "-q", "-o", "new.npz")
    with scratch_folder() as folder:  # of this process, which is not known inside
        assert kit.case.run(*call, before=own).code == 0
        assert Path(folder).is_dir()
        ended = subprocess.Popen(["true"])
        ended.wait()
        orphan = folder.replace(f"-{os.getpid()}-", f"-{ended.pid}-")
        Path(orphan).mkdir()
        assert kit.case.run(*call).code == 0
        assert not Path(orphan).exists()  # nobody holds it
        assert Path(folder).is_dir()
    assert not content(kit.tmp)


@pytest.mark.parametrize("what", ["gone", "directory"])
def test_j06_a_place_that_is_lost_during_a_run_is_an_error(kit, what):
    """The folder of the output is removed, or a directory gets its name."""
    (kit.here / "place").mkdir()
    pipe = kit.here / "late.npy"
    os.mkfifo(pipe)
    rows = (kit.here / "x.npy").read_bytes()

    def lose():
        if what == "gone":
            Path("place").rmdir()
        else:
            Path("place/out.npz").mkdir()

    thread = feeding(pipe, rows, lose)
    done = kit.run("build late.npy -j 1 -k 5 -q -o place/out.npz")
    thread.join()
    assert done.code == 4
    assert_one_line(done.err, "place/out.npz: cannot be written: (no such|is a dir)")
    assert not list(kit.here.rglob(".nnkgraph*"))


def test_j07_what_lies_beside_another_graph_is_not_taken_for_its_own(kit):
    """Of two edge lists of one name, each with a file beside it, a copy mixes them."""
    assert kit.run("build x.npy -j 1 -k 5 -q -o a.tsv").code == 0
    assert kit.run("build y.npy -j 1 -k 3 -q -o b.tsv").code == 0
    shutil.copy("b.tsv", "a.tsv")
    done = kit.run("info a.tsv")
    assert done.code == 0
    assert "a.tsv.nnk.npz: does not belong to a.tsv; ignored" in done.err
    assert "nodes           7" in done.out


def test_j08_candidates_of_other_features_are_said_or_refused(kit):
    np.save("x.npy", np.load("x.npy") + np.arange(180).reshape(60, 3))
    call = "build {} --search precomputed:path=knn.npz -j 1 -k 5 -o out.npz"
    done = kit.run(call.format("x.npy"))
    assert done.code == 0
    assert "knn.npz holds other distances than the features" in done.err
    (kit.here / "out.npz").unlink()
    kit.fails(3, "knn.npz: neighbors of 60 rows, but the f", call.format("y.npy"))


def test_j09_reports_of_two_runs_to_one_name_are_one_whole_report(kit):
    line = "build x.npy -j 1 -q --report r.json -o"
    call = line.split()
    jobs = [kit.case.start(*call, f"{k}.npz", "-k", k) for k in (4, 5, 6)]
    for job in jobs:
        _, err = job.communicate(timeout=60)
        assert job.returncode == 0, err
    import json

    assert json.loads((kit.here / "r.json").read_text())["k"] in {4, 5, 6}
    assert not list(kit.here.glob(".nnkgraph*"))


def test_j10_shards_of_two_runs_with_one_name_are_not_merged(kit):
    """Two job arrays in one folder: the second run's shard replaced the first's."""
    shard = "build x.npy --sigma 1 -j 1 -q -k {} --shard {}/2 -o s{}.npz"
    for k, number in ((5, 1), (5, 2), (6, 2)):
        assert kit.run(shard.format(k, number, number)).code == 0
    kit.fails(3, r"s2\.npz.* k ", "merge s1.npz s2.npz -o out.npz")
    kit.fails(3, "s1.npz", "merge s1.npz s1.npz -o out.npz")
    kit.fails(3, "g.npz: is no shard", "merge s1.npz g.npz -o out.npz")


def test_j11_a_cache_that_is_damaged_is_made_anew(kit, tmp_path):
    """Files cut short, replaced by folders, or by another's bytes."""
    from nnkgraph.runtime import cache

    copy = tmp_path / "cache" / cache.state()
    shutil.copytree(cache.private(), copy)
    call = ("build", "x.npy", "-j", 1, "-k", 5, "-q", "-o", "out.npz")
    env = {"NUMBA_CACHE_DIR": str(copy.parent)}
    assert kit.case.run(*call, env=env).code == 0
    found = sorted(
        one for one in copy.iterdir() if one.name.startswith("nnkgraph.data")
    )
    good = {one.name: one.read_bytes() for one in found[:3]}
    for one, damage in zip(found[:3], ("cut", "folder", "bytes"), strict=True):
        one.unlink()
        if damage == "folder":
            one.mkdir()
        else:
            one.write_bytes(good[one.name][:50] if damage == "cut" else b"\0" * 5000)
    done = kit.case.run(*call, env=env)
    assert done.code == 0, done.err
    assert not told(done.err)
    assert (kit.here / "out.npz").read_bytes() == (kit.here / "g.npz").read_bytes()


CACHE = """
from nnkgraph.runtime import cache
print(cache.private())
print(*cache.refusals)
"""


@pytest.mark.parametrize("what", ["file", "pipe", "loop", "dangling"])
def test_j12_a_cache_that_is_no_directory_is_said(kit, what):
    place = kit.here / "cache"
    {
        "file": place.touch,
        "pipe": lambda: os.mkfifo(place),
        "loop": lambda: place.symlink_to(place),
        "dangling": lambda: place.symlink_to("nowhere"),
    }[what]()
    done = subprocess.run(
        [sys.executable, "-c", CACHE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(place)},
        capture_output=True,
        text=True,
        check=True,
    )
    used, refusal = done.stdout.splitlines()
    assert str(place) not in used
    assert f"{place}: this is no directory, so it is not used" in refusal
    assert not content(kit.tmp)
    assert tempfile.gettempdir() in used
    assert PROGRAM.exists()
