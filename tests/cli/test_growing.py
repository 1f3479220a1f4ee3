"""nnkgraph update: files, order, and runs that were ended in the middle."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PROGRAM

import nnkgraph


@pytest.fixture
def day(inside, tmp_path):
    """A graph of yesterday, today's rows, and what a rebuild would give."""
    x = np.random.default_rng(2).normal(size=(330, 4))
    np.save("all.npy", x[:300])
    np.save("new.npy", x[300:])
    (tmp_path / "gone.txt").write_text("3\n17\n")
    both = np.concatenate([np.delete(x[:300], [3, 17], axis=0), x[300:]])
    np.save("both.npy", both)
    assert inside("build", "all.npy", "-o", "g.npz", "--updatable", "-k", 8).code == 0
    done = inside("build", "both.npy", "--like", "g.npz", "--updatable", "-o", "r.npz")
    assert done.code == 0
    return tmp_path


LINE = ["update", "g.npz", "--features", "all.npy", "--add", "new.npy"]
LINE += ["--remove", "gone.txt", "-o", "g.npz", "--write-features", "all.npy"]


def read(*names):
    return [Path(name).read_bytes() for name in names]


def test_in_place_and_again(inside, day):
    old = read("g.npz", "all.npy")
    new = read("r.npz", "both.npy")
    done = inside(*LINE, "--report", "report.json")
    assert done.code == 0
    assert "30 rows added, 2 removed" in done.err
    assert read("g.npz", "all.npy") == new
    report = json.loads((day / "report.json").read_text())
    assert report["update"]["added"] == 30
    # All is there already.
    done = inside(*LINE)
    assert done.code == 0
    assert "already" in done.err
    assert read("g.npz", "all.npy") == new
    # Features are there, the graph is not yet.
    (day / "g.npz").write_bytes(old[0])
    assert inside(*LINE).code == 0
    assert read("g.npz", "all.npy") == new
    # Another change is none that was done before.
    (day / "gone.txt").write_text("5\n")
    assert inside(*LINE).code == 0
    assert nnkgraph.read_graph("g.npz").n_nodes == 328 + 30 - 1


def test_the_graph_alone_in_place_and_again(inside, day):
    line = [*LINE[:-2]]
    assert inside(*line).code == 0
    assert read("g.npz") == read("r.npz")
    done = inside(*line)
    assert done.code == 0
    assert "already" in done.err
    assert read("g.npz") == read("r.npz")


def test_other_names_leave_all_as_it_was(inside, day):
    old = read("g.npz", "all.npy")
    line = [*LINE[:-4], "-o", "h.npz", "--write-features", "h.npy"]
    for _ in range(2):
        assert inside(*line).code == 0
        assert read("h.npz", "h.npy") == read("r.npz", "both.npy")
        assert read("g.npz", "all.npy") == old
    assert not (day / "h.npy.nnk.json").exists()


def test_a_folder_of_parts(inside, day):
    (day / "parts").mkdir()
    shutil.copy("all.npy", "parts/1.npy")
    line = ["update", "g.npz", "--features", "parts/*.npy", "--add", "new.npy"]
    assert inside(*line, "-o", "g.npz").code == 0
    shutil.move("new.npy", "parts/2.npy")
    assert inside("verify", "parts/*.npy", "g.npz").code == 0
    assert inside("build", "parts/*.npy", "--like", "g.npz", "-o", "h.npz").code == 0
    one, two = (nnkgraph.read_graph(name).provenance for name in ("g.npz", "h.npz"))
    assert one == two
    np.save("parts/3.npy", np.ones((2, 3)))
    done = inside("build", "parts/*.npy", "-o", "h.npz")
    assert done.code == 3
    assert "parts/3.npy: 3 columns, but parts/1.npy has 4" in done.err
    assert inside("build", "nothing/*.npy", "-o", "h.npz").code == 3


@pytest.mark.parametrize("name", ["all.h5", "all.h5::deep/x", "all.parquet"])
def test_names_and_other_formats(inside, tmp_path, name):
    x = np.random.default_rng(4).normal(size=(60, 3)).astype(np.float32)
    rows = [f"r{i},{a!r},{b!r},{c!r}" for i, (a, b, c) in enumerate(x.tolist())]
    head = "id,a,b,c\n"
    (tmp_path / "old.csv").write_text(head + "\n".join(rows[:50]))
    (tmp_path / "new.csv").write_text(head + "\n".join(rows[50:]))
    (tmp_path / "gone.txt").write_text("r7\nr0\n")
    assert inside("build", "old.csv", "-k", 5, "--updatable", "-o", "g.npz").code == 0
    first = ["update", "g.npz", "--features", "old.csv", "--add", "new.csv"]
    done = inside(*first, "--write-features", name, "-o", "g.npz")
    assert done.code == 0, done.err
    assert inside("verify", name, "g.npz").code == 0
    assert nnkgraph.read_features(name).ids == tuple(f"r{i}" for i in range(60))
    second = ["update", "g.npz", "--features", name, "--remove", "gone.txt"]
    for _ in range(2):
        done = inside(*second, "--write-features", name, "-o", "g.npz")
        assert done.code == 0, done.err
    ids = nnkgraph.read_graph("g.npz").ids
    assert ids == nnkgraph.read_features(name).ids
    assert ids == tuple(f"r{i}" for i in range(60) if i not in {0, 7})
    assert inside("verify", name, "g.npz").code == 0


WRONG = [
    (["--add", "wide.npy"], 3, "5 columns"),
    (["--remove", "far.txt"], 3, "no row 300"),
    (["--remove", "words.txt"], 3, "line 2"),
    (["--remove", "twice.txt"], 3, "twice"),
    (["--add", "none.npy"], 3, "none.npy"),
    ([], 2, "--add or --remove"),
    (["--add", "new.npy", "--write-features", "g.npz"], 2, "g.npz"),
    (["--add", "new.npy", "--write-features", "x.csv"], 2, "x.csv"),
    (["--add", "new.npy", "--write-features", "none/x.npy"], 4, "none"),
]


@pytest.mark.parametrize(("options", "code", "what"), WRONG)
def test_one_line_and_nothing_changed(inside, day, options, code, what):
    np.save("wide.npy", np.ones((2, 5)))
    (day / "far.txt").write_text("300\n")
    (day / "words.txt").write_text("1\nrow\n")
    (day / "twice.txt").write_text("1\n1\n")
    old, names = read("g.npz", "all.npy"), sorted(Path.cwd().iterdir())
    done = inside("update", "g.npz", "--features", "all.npy", *options, "-o", "g.npz")
    assert done.code == code
    assert what in done.err
    assert len(done.lines) == 1
    assert read("g.npz", "all.npy") == old
    assert sorted(Path.cwd().iterdir()) == names


def test_features_swapped(inside, day):
    done = inside(
        *("update", "g.npz", "--features", "new.npy", "--add", "all.npy"),
        *("-o", "h.npz"),
    )
    assert done.code == 3
    assert "not what g.npz was built from" in done.err
    x = np.load("all.npy")
    np.save("all.npy", x[::-1])
    done = inside(*LINE)
    assert done.code == 3
    assert "sha256" in done.err


def test_names_of_features_need_room(inside, tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n" + "\n".join(f"r{i},{i}" for i in range(9)))
    (tmp_path / "b.csv").write_text("id,x\nq,3.5\n")
    assert inside("build", "a.csv", "-k", 2, "-o", "g.npz").code == 0
    line = ["update", "g.npz", "--features", "a.csv", "--add", "b.csv", "-o", "h.npz"]
    done = inside(*line, "--write-features", "h.npy")
    assert done.code == 2
    assert "no room for the names" in done.err
    (tmp_path / "b.csv").write_text("id,x\nr3,3.5\n")
    done = inside(*line)
    assert done.code == 3
    assert "'r3'" in done.err


def test_other_data_in_an_hdf5_file_is_kept(inside, day):
    import h5py

    with h5py.File("all.h5", "w") as file:
        file["features"], file["other"] = np.load("all.npy"), np.arange(3)
    line = ["update", "g.npz", "--features", "all.h5::features", "--add", "new.npy"]
    line += ["-o", "g.npz", "--write-features", "all.h5::features"]
    old = read("all.h5", "g.npz")
    done = inside(*line)
    assert done.code == 4
    assert "'other'" in done.err
    assert read("all.h5", "g.npz") == old


def test_like_and_graph_refuse_what_the_graph_says(inside, day):
    done = inside("build", "both.npy", "--like", "g.npz", "-k", 3, "-o", "h.npz")
    assert done.code == 2
    assert "--k and --like" in done.err
    done = inside(
        *("build", "both.npy", "--like", "g.npz", "-o", "h.npz"),
        env={"NNKGRAPH_BUILD_K": "3"},
    )
    assert done.code == 0
    assert nnkgraph.read_graph("h.npz").provenance["k"] == 8
    done = inside("query", "all.npy", "new.npy", "--graph", "g.npz", "-o", "q.npz")
    assert done.code == 0
    done = inside(
        *("query", "all.npy", "new.npy", "--graph", "g.npz", "--sigma", "1"),
        *("-o", "q.npz"),
    )
    assert done.code == 2
    for more in ["-o", "h.tsv"], ["-o", "h.npz", "--shard", "1/2"]:
        assert inside("build", "all.npy", "--updatable", *more).code == 2


def test_a_full_disk(inside, day):
    """What does not fit is not begun, and what fits no more leaves all as it was."""
    import resource

    old, names = read("g.npz", "all.npy"), sorted(Path.cwd().iterdir())
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
        done = inside(*LINE, "-j", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    assert done.code == 4
    assert read("g.npz", "all.npy") == old
    assert sorted(Path.cwd().iterdir()) == names


def test_a_full_disk_is_said_of_the_file_that_does_not_fit(inside, tmp_path):
    import resource

    x = np.random.default_rng(2).normal(size=(200, 500))
    np.save("wide.npy", x[:190])
    np.save("more.npy", x[190:])
    built = inside("build", "wide.npy", "-o", "w.npz", "--updatable", "-k", 2)
    assert built.code == 0
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    line = ["update", "w.npz", "--features", "wide.npy", "--add", "more.npy"]
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
        done = inside(*line, "-o", "w2.npz", "--write-features", "w2.npy", "-j", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    assert done.code == 4
    assert "w2.npy: cannot be written: " in done.err
    assert not list(tmp_path.glob("w2*"))


@pytest.mark.slow
def test_killed_at_any_moment(inside, day):
    """Files are the old or the new ones; the same line ends with the same bytes."""
    old, new = read("g.npz", "all.npy"), read("r.npz", "both.npy")
    start = time.monotonic()
    subprocess.run([PROGRAM, *LINE, "-q"], check=True)
    whole = time.monotonic() - start
    assert read("g.npz", "all.npy") == new
    rng = np.random.default_rng(0)
    for _ in range(6):
        for name, content in zip(("g.npz", "all.npy"), old, strict=True):
            (day / name).write_bytes(content)
        (day / "all.npy.nnk.json").unlink(missing_ok=True)
        run = subprocess.Popen([PROGRAM, *LINE, "-q"])
        time.sleep(whole * rng.uniform(0.3, 1.0))
        run.kill()
        run.wait()
        graph, features = read("g.npz", "all.npy")
        assert graph in (old[0], new[0])
        assert features in (old[1], new[1])
        assert graph == old[0] or features == new[1]  # features first
        assert inside(*LINE).code == 0
        assert read("g.npz", "all.npy") == new
