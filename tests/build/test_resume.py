"""Checkpoints: a run that was ended goes on, and nothing foreign is taken over."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from faults import told

from nnkgraph.build.graph import build_graph, find_candidates
from nnkgraph.errors import InputError, OutputError, ResourceError
from nnkgraph.runtime.checkpoint import remove_checkpoint

NNKGRAPH = [sys.executable, "-m", "nnkgraph"]


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).normal(size=(1500, 5))


def differences(one, other):
    return (one.adjacency != other.adjacency).nnz


def notes(graph):
    return " ".join(graph.report["notes"])


@pytest.mark.parametrize("search", ["exact", "kdtree"])
@pytest.mark.parametrize("method", ["nnk", "knn", "kstar"])
def test_blocks_that_are_there_are_not_computed_again(x, tmp_path, search, method):
    settings = {"k": 8, "search": search, "method": method, "resume": tmp_path / "c"}
    plain = build_graph(x, k=8, search=search, method=method)
    first = build_graph(x, **settings)
    again = build_graph(x, **settings)
    assert differences(plain, first) == differences(plain, again) == 0
    assert "0 of" in notes(first)
    files = sorted(p.name for p in (tmp_path / "c").glob("*.npz"))
    assert f"{len(files)} of {len(files)} blocks were there" in notes(again)
    assert {name.partition("-")[0] for name in files} == {"candidates", "solve"}


def test_options_after_the_solution_may_change(x, tmp_path):
    build_graph(x, k=8, resume=tmp_path / "c")
    other = build_graph(x, k=8, resume=tmp_path / "c", symmetrize="max", workers=2)
    assert differences(other, build_graph(x, k=8, symmetrize="max")) == 0
    assert "2 of 2" in notes(other)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"k": 9}, "k was 8, now it is 9"),
        ({"seed": 1}, "seed was 0, now it is 1"),
        ({"method": "knn"}, 'method was "nnk", now it is "knn"'),
        ({"sigma": 0.5}, "kernel was"),
        ({"kernel": "cosine"}, "kernel was"),
        ({"scale": "standard"}, "scale was"),
        ({"search": "exact"}, "search was"),
        ({"duplicates": "keep"}, "duplicates was"),
    ],
)
def test_d15_a_checkpoint_of_another_run_is_refused(x, tmp_path, changed, named):
    how = {"k": 8, "preset": "paper"}
    build_graph(x, **how, resume=tmp_path / "c")
    with pytest.raises(InputError, match=named):
        build_graph(x, **{**how, **changed}, resume=tmp_path / "c")


def test_d15_other_features_and_versions_are_refused(x, tmp_path, monkeypatch):
    build_graph(x, k=8, resume=tmp_path / "c")
    with pytest.raises(InputError, match="sha256 of the features was"):
        build_graph(x + 1e-9, k=8, resume=tmp_path / "c")
    monkeypatch.setattr("nnkgraph.build.settings.__version__", "0.0.0")
    with pytest.raises(InputError, match="nnkgraph was"):
        build_graph(x, k=8, resume=tmp_path / "c")


def test_d15_other_candidates_are_refused(x, tmp_path):
    neighbors = find_candidates(x, k=8).index
    search = f"precomputed:path={tmp_path / 'knn.npz'}"
    np.savez(tmp_path / "knn.npz", neighbors=neighbors)
    build_graph(x, k=8, search=search, resume=tmp_path / "c")
    np.savez(tmp_path / "knn.npz", neighbors=neighbors[:, ::-1])
    with pytest.raises(InputError, match="search was"):
        build_graph(x, k=8, search=search, resume=tmp_path / "c")


def _flip(data):
    half = len(data) // 2
    return data[:half] + bytes([data[half] ^ 16]) + data[half + 1 :]


@pytest.mark.parametrize("stage", ["candidates", "solve"])
@pytest.mark.parametrize(
    "damage", [lambda d: d[:-7], lambda d: d[: len(d) // 2], _flip, lambda _: b""]
)
def test_d16_damaged_blocks_are_computed_again(x, tmp_path, stage, damage):
    plain = build_graph(x, k=8, resume=tmp_path / "c")
    path = next((tmp_path / "c").glob(f"{stage}-*.npz"))
    path.write_bytes(damage(path.read_bytes()))
    again = build_graph(x, k=8, resume=tmp_path / "c")
    assert differences(plain, again) == 0
    assert path.name in " ".join(again.report["warnings"])


@pytest.mark.parametrize("row", [1500, -2])
def test_d16_candidates_that_are_no_rows_are_searched_again(x, tmp_path, row):
    """A block that is whole and of this run may still hold nonsense."""
    plain = build_graph(x, k=8, resume=tmp_path / "c")
    path = next((tmp_path / "c").glob("candidates-*.npz"))
    with np.load(path) as file:
        members = dict(file)
    (index,) = (m for m in members.values() if (m.dtype.kind, m.ndim) == ("i", 2))
    index[700, 3] = row
    np.savez(path, **members)
    again = build_graph(x, k=8, resume=tmp_path / "c")
    assert differences(plain, again) == 0
    assert any("again" in one for one in again.report["warnings"])


def test_d16_blocks_of_another_run_are_computed_again(x, tmp_path):
    plain = build_graph(x, k=8, resume=tmp_path / "a")
    build_graph(x[::-1].copy(), k=8, resume=tmp_path / "b")
    for stage in ("solve", "candidates"):
        path = next((tmp_path / "b").glob(f"{stage}-*.npz"))
        path.replace(tmp_path / "a" / path.name)
        again = build_graph(x, k=8, resume=tmp_path / "a")
        assert differences(plain, again) == 0
        assert sum("another run" in one for one in again.report["warnings"]) == 1


def test_h01_a_pickle_in_a_checkpoint_is_never_loaded(x, tmp_path):
    class Canary:
        def __reduce__(self):
            return Path.touch, (tmp_path / "canary",)

    plain = build_graph(x, k=8, resume=tmp_path / "c")
    for path in (tmp_path / "c").glob("*.npz"):
        np.savez(path, run=np.array([Canary()], dtype=object))
    again = build_graph(x, k=8, resume=tmp_path / "c")
    assert differences(plain, again) == 0
    assert not (tmp_path / "canary").exists()


def test_a_directory_with_other_files_is_refused(x, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'thesis\.tex'"):
        build_graph(x, k=8, resume=tmp_path)
    with pytest.raises(OutputError, match="cannot be written"):
        build_graph(x, k=8, resume=tmp_path / "no" / "where")
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_a_damaged_description_is_refused(x, tmp_path):
    build_graph(x, k=8, resume=tmp_path / "c")
    (tmp_path / "c" / "checkpoint.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        build_graph(x, k=8, resume=tmp_path / "c")


def test_f02_a_second_run_refuses_and_a_dead_one_does_not_count(x, tmp_path):
    import fcntl

    build_graph(x, k=8, resume=tmp_path / "c")
    with (tmp_path / "c" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ResourceError, match=r"another run \(process \d+ on"):
            build_graph(x, k=8, resume=tmp_path / "c")
    build_graph(x, k=8, resume=tmp_path / "c")


SLOW = """
import time, numpy
def f(a, b):
    time.sleep(0.5)
    return numpy.exp(-((a[:, None] - b) ** 2).sum(-1))
"""


def test_f02_two_real_runs_do_not_share_a_checkpoint(x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW)
    x = x[:100]
    np.save("x.npy", x)
    call = "build x.npy -k 8 --kernel slow:f -o g.npz -j 1 --resume c"
    first = subprocess.Popen([*NNKGRAPH, *call.split()], stderr=subprocess.PIPE)
    try:
        while not Path("c/checkpoint.json").exists():
            assert first.poll() is None, first.stderr.read()
            time.sleep(0.02)
        with pytest.raises(ResourceError, match=rf"process {first.pid} on"):
            build_graph(x, k=8, kernel="slow:f", resume="c")
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()


def test_results_are_kept_out_of_the_directory(x, tmp_path):
    np.save(tmp_path / "x.npy", x[:60])
    line = [*NNKGRAPH, "build", "x.npy", "-o", "c/a-1-2.npz", "--resume", "c"]
    (tmp_path / "c").mkdir()
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    done = subprocess.run(line, **run)  # noqa: PLW1510
    assert done.returncode == 2
    assert "is in the directory of --resume" in done.stderr
    (tmp_path / "c" / "my-old-data.npz").write_text("mine")
    with pytest.raises(InputError, match="my-old-data"):
        build_graph(x, k=8, resume=tmp_path / "c")
    remove_checkpoint(tmp_path / "c")
    assert (tmp_path / "c" / "my-old-data.npz").read_text() == "mine"


def test_a_checkpoint_that_another_run_uses_is_left_to_it(x, tmp_path):
    import fcntl

    build_graph(x, k=8, resume=tmp_path / "c")
    with (tmp_path / "c" / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_checkpoint(tmp_path / "c")
        assert (tmp_path / "c" / "checkpoint.json").exists()
    remove_checkpoint(tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_solutions_go_with_their_candidates(x, tmp_path):
    plain = build_graph(x, k=8, resume=tmp_path / "c")
    next((tmp_path / "c").glob("candidates-*.npz")).unlink()
    again = build_graph(x, k=8, resume=tmp_path / "c")
    assert differences(plain, again) == 0
    assert "0 of" in notes(again)


def test_d15_another_kernel_function_is_refused(x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "similar.py"
    text = (
        "import numpy as np\n"
        "def f(a, b):\n"
        "    return np.exp(-{} * ((a[:, None] - b) ** 2).sum(-1))\n"
    )
    settings = {"k": 4, "kernel": "similar:f", "resume": tmp_path / "c"}
    source.write_text(text.format(1))
    build_graph(x[:80], **settings)
    source.write_text(text.format(2))
    with pytest.raises(InputError, match="source of the kernel was"):
        build_graph(x[:80], **settings)


def test_what_is_removed_is_only_the_checkpoint(x, tmp_path):
    build_graph(x, k=8, resume=tmp_path / "c")
    (tmp_path / "c" / "note.txt").write_text("mine")
    remove_checkpoint(tmp_path / "c")
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["note.txt"]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A run of a second or two, and the bytes it ends with."""
    folder = tmp_path_factory.mktemp("job")
    rng = np.random.default_rng(1)
    np.save(folder / "x.npy", rng.normal(size=(12_000, 24)).astype(np.float32))
    line = [*NNKGRAPH, "build", "x.npy", "-q", "-j", "2", "--search", "exact"]
    subprocess.run([*line, "-o", "plain.npz"], cwd=folder, check=True)
    digest = hashlib.sha256((folder / "plain.npz").read_bytes()).hexdigest()
    return folder, [*line, "-o", "out.npz", "--resume", "c"], digest


def started(job, blocks, tmp_path):
    """Start the run and wait until it has kept some blocks."""
    folder, line, _ = job
    process = subprocess.Popen(
        line,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 100
    while time.monotonic() < end and process.poll() is None:
        if len(list(folder.glob("c/*-*.npz"))) >= blocks:
            return process
        time.sleep(0.001)
    raise AssertionError("it did not get that far")


def finished(job, tmp_path):
    """Start the same line again and compare."""
    folder, line, digest = job
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run(line, cwd=folder, env=env, check=True)
    assert hashlib.sha256((folder / "out.npz").read_bytes()).hexdigest() == digest
    assert sorted(p.name for p in folder.iterdir()) == [
        "out.npz",
        "plain.npz",
        "x.npy",
    ]
    (folder / "out.npz").unlink()
    left = [p.name for p in tmp_path.iterdir() if "cache" not in p.name]
    assert not left


@pytest.mark.parametrize("blocks", [1, 9, 17])
def test_d14_a_killed_run_goes_on_and_ends_with_the_same_bytes(job, tmp_path, blocks):
    process = started(job, blocks, tmp_path)
    process.kill()
    process.communicate()
    assert not (job[0] / "out.npz").exists()
    finished(job, tmp_path)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGUSR1, 143), (signal.SIGINT, 130)],
)
def test_d09_d12_g10_a_run_that_is_told_to_stop_keeps_its_checkpoint(
    job, tmp_path, number, code
):
    process = started(job, 5, tmp_path)
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == code
    assert len(told(err)) == 1
    facts = json.loads((job[0] / "c" / "checkpoint.json").read_text())
    assert facts["k"] == 30
    finished(job, tmp_path)


def test_search_and_several_inputs_take_checkpoints(x, tmp_path):
    np.save(tmp_path / "a.npy", x[:300])
    np.save(tmp_path / "b.npy", x[300:600])
    run = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    line = [*NNKGRAPH, "search", "a.npy", "-o", "knn.npz", "--resume", "c"]
    done = subprocess.run(line, **run)  # noqa: PLW1510
    assert (done.returncode, (tmp_path / "c").exists()) == (0, False), done.stderr
    line = [*NNKGRAPH, "build", "a.npy", "b.npy", "-o", "{name}.npz", "--resume", "c"]
    refused = subprocess.run(line, **run)  # noqa: PLW1510
    assert refused.returncode == 2
    assert "--resume: several inputs need {name}" in refused.stderr
    done = subprocess.run([*line[:-1], "c-{name}"], **run)  # noqa: PLW1510
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.glob("c-*"))
