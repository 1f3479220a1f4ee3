"""Outputs that cannot be, through the command."""

import json
import os
import pty
import resource
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from faults import assert_one_line, content, mounted

BUILD = ("build", "x.npy", "-o", "g.npz", "-j", 1, "-q")


def test_e01_an_older_target_is_replaced_unless_it_is_to_be_kept(case):
    (case.here / "g.npz").write_text("old")
    case.fails(4, "g.npz: exists already", *BUILD, "--no-clobber")
    assert case.run(*BUILD).code == 0
    assert sp.load_npz(case.here / "g.npz").shape == (60, 60)
    assert sorted(p.name for p in case.here.iterdir()) == ["g.npz", "x.npy"]


def test_e02_a_folder_without_rights_is_refused_before_computing(other):
    (other.here / "closed").mkdir(mode=0o555)
    call = ("build", "x.npy", "-o")
    other.fails(4, "directory cannot be written to", *call, "closed/g.npz")
    other.fails(4, "there is no directory", *call, "nowhere/g.npz")


LOOK = '"$@"; code=$?; cat small/g.npz >&2; ls -A small >&2; exit $code'


def test_e03_a_full_disk_leaves_the_old_file(case):
    (case.here / "small").mkdir()
    inside = ("sh", "-c", f"echo old > small/g.npz; {LOOK}", "sh")
    before = (*mounted(case.here / "small", "8k"), *inside)
    call = ("build", "x.npy", "-o", "small/g.npz", "-j", 1, "-q")
    done = case.run(*call, before=before)
    assert done.code == 4
    assert_one_line(done.err.removesuffix("old\ng.npz\n"), "no space left on device")
    assert done.err.endswith("old\ng.npz\n")


def test_e03_full_devices_are_refused(case):
    case.fails(
        4,
        "/dev/full: cannot be written: no space",
        *("build", "x.npy", "-o", "/dev/full", "--format", "npz", "-j", 1, "-q"),
    )
    assert case.run(*BUILD).code == 0
    with open("/dev/full", "w") as full:  # noqa: PTH123
        for line in ("info g.npz", "convert g.npz - --to tsv", "--help", "--version"):
            call = line.split()
            done = case.run(*call, stdout=full)
            assert done.code == 4, done.err
            assert_one_line(done.err, "cannot be written: no space left on device")


def test_e04_a_limit_on_file_sizes_is_an_error_of_the_output(case):
    (case.here / "g.npz").write_text("old")
    limits = {resource.RLIMIT_FSIZE: 2000}
    case.fails(4, "g.npz: cannot be written: file too large", *BUILD, limits=limits)


def test_e06_special_files_are_written_directly(case):
    call = ("build", "x.npy", "-j", 1, "-q", "-k", 5, "-o")
    assert case.run(*call, "a.tsv").code == 0
    text = (case.here / "a.tsv").read_text()
    assert case.run(*call, "/dev/stdout", "--format", "tsv").out == text
    assert case.run(*call, "/dev/null", "--format", "tsv").code == 0
    os.mkfifo(case.here / "pipe.tsv")
    received = []
    reader = threading.Thread(
        target=lambda: received.append((case.here / "pipe.tsv").read_text())
    )
    reader.start()
    assert case.run(*call, "pipe.tsv").code == 0
    reader.join()
    assert received == [text]


def test_e08_binary_data_is_kept_from_a_terminal(case):
    leader, follower = pty.openpty()
    call = ("build", "x.npy", "-o", "-", "--format")
    done = case.run(*call, "npz", stdout=follower)
    assert done.code == 2
    assert_one_line(done.err, "binary format would garble the terminal")
    os.close(follower)
    os.close(leader)


def test_e17_the_umask_counts_for_every_file(case):
    call = ("build", "x.npy", "-o", "g.tsv", "--report", "r.json", "-j", 1, "-q")
    assert case.run(*call, umask=0o027).code == 0
    for name in ("g.tsv", "g.tsv.nnk.npz", "r.json"):
        assert (case.here / name).stat().st_mode & 0o777 == 0o640


def test_e18_what_is_printed_as_json_parses(run, points, tmp_path):
    np.save(tmp_path / "one.npy", [[1.0, 2.0]])
    for source in (points, tmp_path / "one.npy"):
        target = tmp_path / "g.npz"
        assert run("build", source, "-o", target).code == 0
        for call in (["info", target, "--json"], ["list", "--json"]):
            json.loads(run(*call).out, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("target", "code"),
    [("a" * 300 + ".npz", 4), ("g.npz/", 4), (".", 4), ("x.npy", 2), ("link.npz", 2)],
)
def test_e10_e19_impossible_targets_are_refused_before_computing(
    run, points, tmp_path, monkeypatch, target, code
):
    monkeypatch.chdir(tmp_path)
    points.rename("x.npy")
    (tmp_path / "link.npz").symlink_to("x.npy")
    monkeypatch.setattr(
        "nnkgraph.build.graph.build_graph", lambda *_: pytest.fail("built")
    )
    before = content(tmp_path)
    result = run("build", "x.npy", "-o", target)
    assert result.code == code, result.err
    assert_one_line(result.err, "nnkgraph: error: ")
    assert content(tmp_path) == before
