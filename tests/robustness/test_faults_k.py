"""Places: file systems, folders, links, pipes and devices."""

import errno
import io
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from faults import WRITING, Case, assert_one_line, content, mounted

OLD = b"older"


def target_of(line):
    return line.rpartition(" ")[2]


def failing(monkeypatch, name, number, when=lambda *_: True):
    """Have a function of `os` fail with an error of the system."""
    real = getattr(os, name)

    def fake(*args, **options):
        if when(*args):
            raise OSError(number, os.strerror(number))
        return real(*args, **options)

    monkeypatch.setattr(os, name, fake)


@pytest.mark.parametrize("name", ["EXDEV", "ESTALE", "EBUSY", "EACCES"])
def test_k01_renames_that_fail_leave_the_older_graph(kit, monkeypatch, name):
    (kit.here / "out.npz").write_bytes(OLD)
    number = getattr(errno, name)
    failing(monkeypatch, "replace", number)
    words = f"out.npz: cannot be written: {os.strerror(number).lower()}"
    kit.fails(4, words, WRITING["build"])


@pytest.mark.parametrize("command", WRITING)
def test_k02_every_command_keeps_what_was_there_where_a_rename_fails(
    kit, monkeypatch, command
):
    target = target_of(WRITING[command])
    (kit.here / target).write_bytes(OLD)
    failing(monkeypatch, "replace", errno.ESTALE)
    kit.fails(4, f"{target}: cannot be written: stale file handle", WRITING[command])


@pytest.mark.parametrize("name", ["EINVAL", "ENOTSUP", "ENOSYS"])
def test_k03_file_systems_that_cannot_sync_are_written_to(kit, monkeypatch, name):
    failing(monkeypatch, "fsync", getattr(errno, name))
    for more in ("", " --resume ck"):
        assert kit.run(WRITING["build"] + more).code == 0
        assert Path("out.npz").read_bytes() == Path("g.npz").read_bytes()


@pytest.mark.parametrize("name", ["EDQUOT", "EIO", "ENOSPC"])
def test_k04_quotas_and_damage_that_show_late_are_errors(kit, monkeypatch, name):
    """NFS says what went wrong when a file is flushed."""
    (kit.here / "out.npz").write_bytes(OLD)
    number = getattr(errno, name)
    failing(monkeypatch, "fsync", number)
    words = f"out.npz: cannot be written: {os.strerror(number).lower()}"
    kit.fails(4, words, WRITING["build"])


def test_k05_a_quota_in_the_middle_leaves_blocks_that_are_good(kit, monkeypatch):
    calls = []
    with monkeypatch.context() as patch:
        failing(
            patch, "fsync", errno.EDQUOT, lambda _: len(calls) == 1 or calls.append(1)
        )
        done = kit.run(f"{WRITING['build']} --resume ck -q")
    assert done.code == 4
    assert_one_line(done.err, "ck: the checkpoint cannot be written: Disk quota")
    assert not Path("out.npz").exists()
    assert list(Path("ck").glob("*-0-60.npz"))
    again = kit.run(f"{WRITING['build']} --resume ck")
    assert again.code == 0
    assert "ck: 1 of " in again.err
    assert Path("out.npz").read_bytes() == Path("g.npz").read_bytes()


def test_k06_a_temporary_file_that_cannot_go_now_goes_later(kit, monkeypatch):
    with monkeypatch.context() as patch:
        failing(patch, "replace", errno.EBUSY)
        failing(patch, "unlink", errno.EBUSY, lambda path: str(path).endswith(".tmp"))
        done = kit.run(f"{WRITING['build']} -q")
    assert done.code == 4
    assert_one_line(done.err, "out.npz: cannot be written: device or resource busy")
    assert len(list(kit.here.glob(".nnkgraph*.tmp"))) == 1
    assert kit.run(WRITING["build"]).code == 0
    assert not list(kit.here.glob(".nnkgraph*.tmp"))


def test_k07_what_nfs_leaves_in_a_checkpoint_is_no_stranger(kit):
    Path("ck").mkdir()
    Path("ck/.nfs000000000a1b2c3d00000001").touch()
    assert kit.run(f"{WRITING['build']} --resume ck").code == 0
    Path("ck/photo.jpg").touch()
    kit.fails(3, "ck: is no checkpoint", f"{WRITING['build']} --resume ck")


def test_k08_links_that_lead_in_a_circle_are_said(kit):
    for name in ("a", "b"):
        for ending in ("npz", "npy", "d"):
            other = "b" if name == "a" else "a"
            Path(f"{name}.{ending}").symlink_to(f"{other}.{ending}")
    kit.fails(4, "a.npz: too many levels of sym", "build x.npy -q -o a.npz")
    kit.fails(3, "a.npy: too many levels of sym", "build a.npy -q -o out.npz")
    kit.fails(4, "a.d: .*this is no directory", f"{WRITING['build']} -q --resume a.d")
    kit.fails(4, "a.d: is no directory", "warm a.d")


def test_k09_links_that_lead_nowhere_yet_are_followed(kit):
    Path("link.npz").symlink_to("made.npz")
    assert kit.run("build x.npy -j 1 -k 5 -o link.npz").code == 0
    assert Path("link.npz").is_symlink()
    assert Path("made.npz").read_bytes() == Path("g.npz").read_bytes()
    Path("far.npz").symlink_to("nowhere/far.npz")
    kit.fails(4, "far.npz: there is no directory", "build x.npy -q -o far.npz")


@pytest.mark.parametrize("command", [one for one in WRITING if one != "build"])
def test_k10_every_command_writes_into_a_pipe(kit, command):
    line = WRITING[command]
    target = target_of(line)
    assert kit.run(line).code == 0
    expected = Path(target).read_bytes()
    Path(target).unlink()
    os.mkfifo(target)
    received = []
    reader = threading.Thread(target=lambda: received.append(Path(target).read_bytes()))
    reader.start()
    assert kit.run(line).code == 0
    reader.join()
    if target.endswith(".npz"):  # sizes come last where nobody can go back
        before, after = (np.load(io.BytesIO(one)) for one in (expected, received[0]))
        assert before.files == after.files
        assert all(before[one].tobytes() == after[one].tobytes() for one in after)
    else:
        assert received[0] == expected
    assert Path(target).is_fifo()


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.linux
def test_k11_every_command_says_that_a_device_is_full(kit, command):
    target = target_of(WRITING[command])
    Path(target).symlink_to("/dev/full")
    kit.fails(4, f"{target}: cannot be written: no space left", WRITING[command])


@pytest.mark.parametrize("command", WRITING)
def test_k12_folders_named_like_files_are_refused(kit, command):
    line, target = WRITING[command], target_of(WRITING[command])
    Path(target).mkdir()
    kit.fails(4, f"{target}: is a directory", line)
    Path(target).rmdir()
    source = line.split()[1]
    Path(source).unlink()
    Path(source).mkdir()
    kit.fails(3, f"{source}: is a directory", line)


@pytest.mark.parametrize("command", WRITING)
def test_k13_no_command_writes_over_what_it_reads(kit, command):
    line = WRITING[command]
    if command == "update":  # the graph itself may be replaced
        line = line.replace(" x.npy", " x.npz")
        np.savez("x.npz", x=np.load("x.npy"))
    source = {"update": "x.npz", "report": "g.npz"}.get(command, line.split()[1])
    Path("link").symlink_to(source)
    for one in (source, "link"):
        told = line.removesuffix(target_of(line)) + one
        kit.fails(2, f"{one}: the output is also an input", told)


def test_k14_a_disk_that_fills_up_at_the_graph_leaves_the_features(kit):
    """The features would fit, and the graph does not: neither is replaced."""
    small = kit.here / "small"
    small.mkdir()
    rng = np.random.default_rng(0)
    np.save("many.npy", rng.normal(size=(2000, 3)))
    np.save("more.npy", rng.normal(size=(500, 3)))
    assert kit.run("build many.npy -j 1 -k 9 -q --sigma 1 -o many.npz").code == 0
    there = Path("many.npz").stat().st_size + Path("many.npy").stat().st_size
    wrapper = mounted(small, f"{there // 1024 + 100}k")  # the graph takes more
    script = (
        'cp many.npz many.npy small/; "$@"; code=$?; cmp many.npz small/many.npz >&2; '
        "cmp many.npy small/many.npy >&2; ls -A small >&2; exit $code"
    )
    call = (
        *("update", "small/many.npz", "--features", "small/many.npy", "-q"),
        *("--add", "more.npy", "-o", "small/many.npz"),
        *("--write-features", "small/many.npy"),
    )
    done = kit.case.run(*call, before=(*wrapper, "sh", "-c", script, "sh"))
    assert done.code == 4, done.err
    line, *left = done.err.splitlines()
    assert_one_line(line, "small.*(no space left on device|free, and about)")
    assert left == ["many.npy", "many.npz"]


@pytest.mark.parametrize("workers", [1, 2])
def test_k15_where_no_file_can_be_written_that_is_said(kit, workers):
    call = ("build", "x.npy", "-k", 5, "-q", "-j", workers, "-o", "out.npz")
    limits = {resource.RLIMIT_FSIZE: 0}
    kit.case.fails(5, r"set TMPDIR .*\(ulimit -f\)", *call, limits=limits)


def test_k16_closed_folders_are_refused_before_computing(other, made):
    for one in ("g.npz", "some.csv", "e.csv"):
        shutil.copy(made / one, other.here / one)
    (other.here / "closed").mkdir(mode=0o555)
    call = WRITING["cluster"].replace("out.csv", "closed/out.csv").split()
    other.fails(4, "directory cannot be written to", *call)
    call = ("build", "x.npy", "-q", "-j", 1, "--resume", "closed/ck", "-o", "out.npz")
    other.fails(4, "closed/ck: the checkpoint cannot be written: Perm", *call)


NAMED = """
import platform, sys
platform.node = lambda: "a/[b]*\\n{}"
from nnkgraph.__main__ import main
main()
"""


def test_k17_machines_may_have_any_name(kit):
    odd = Case(kit.here, kit.tmp, (sys.executable, "-c", NAMED))
    (kit.here / ".nnkgraph-a_[b]*\n{}-0011223344556677.tmp").touch()  # of a killed run
    done = odd.run("build", "x.npy", "-k", 5, "-q", "-j", 2, "-o", "out.npz")
    assert done.code == 0, done.err
    assert Path("out.npz").read_bytes() == Path("g.npz").read_bytes()
    assert not list(kit.here.glob(".nnkgraph*"))
    assert not content(kit.tmp)


@pytest.mark.parametrize("name", ["t m\np é", "x.npy", "d" * 200 + "/" + "e" * 150])
def test_k18_any_folder_does_for_temporary_files(kit, name):
    if name != "x.npy":
        (kit.here / name).mkdir(parents=True)
    call = ("build", "x.npy", "-k", 5, "-q", "-j", 2, "-o", "out.npz")
    where = name if name[0] == "t" else str(kit.here / name)
    done = kit.case.run(*call, env={"TMPDIR": where})
    assert done.code == 0, done.err
    if name != "x.npy":
        assert not content(kit.here / name)


def test_k19_a_working_directory_that_is_gone_is_said(kit):
    script = 'mkdir gone; cd gone; rmdir ../gone; exec "$@"'
    before = ("sh", "-c", script, "sh")
    kit.case.fails(
        3, "the working directory was removed", "info", "g.npz", before=before
    )
    assert kit.case.run("info", "--help", before=before).code == 0


def test_k20_proc_sys_and_shared_memory_may_be_missing(kit):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("file systems can be hidden by root only")
    script = (
        "mount -t tmpfs tmpfs /proc && mount -t tmpfs -o ro tmpfs /sys && "
        'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"'
    )
    before = ("unshare", "-m", "sh", "-c", script, "sh")
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    call = ("build", "x.npy", "-k", 5, "-q", "-j", 2, "-o", "out.npz")
    done = kit.case.run(*call, before=before)
    assert done.code == 0, done.err
    assert Path("out.npz").read_bytes() == Path("g.npz").read_bytes()
