"""What a run needs is estimated, compared with what there is, and said."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest

from nnkgraph.build.budget import Budget, check_budget, check_output_room, estimate
from nnkgraph.build.graph import build_graph
from nnkgraph.build.settings import Running, Settings
from nnkgraph.data import Features
from nnkgraph.errors import OutputError, ResourceError
from nnkgraph.runtime.limits import available_memory, in_words

NNKGRAPH = [sys.executable, "-m", "nnkgraph"]


def budget_of(x, k, workers=1, scale="none"):
    features = Features.of(x)
    plan = Settings.of(features, k=k, scale=scale)
    return estimate(features, plan, Running(workers), 100.0)


def test_more_of_anything_needs_more():
    x = np.random.default_rng(0).normal(size=(2000, 20))
    least = budget_of(x, 10)
    assert budget_of(x, 20).memory > least.memory
    assert budget_of(np.hstack([x, x]), 10).memory > least.memory
    assert budget_of(x, 10, workers=2).memory > least.memory
    assert budget_of(x, 10, workers=2).scratch > least.scratch == 0


def test_the_estimate_is_near_what_a_run_takes(program, tmp_path):
    x = np.random.default_rng(0).normal(size=(20_000, 40))
    np.save(tmp_path / "x.npy", x)
    line = "build x.npy -o g.npz -k 60 --search exact -j 1 --report r.json"
    assert program(*line.split()).code == 0
    peak = json.loads((tmp_path / "r.json").read_text())["peak_memory_bytes"]
    assert 0.4 < budget_of(x, 60).memory / peak < 2.0


def test_g01_what_cannot_fit_is_refused_with_the_estimate(monkeypatch):
    monkeypatch.setattr("nnkgraph.build.budget.available_memory", lambda: 10 << 20)
    monkeypatch.setattr("nnkgraph.build.budget.taken_memory", lambda: 90 << 20)
    with pytest.raises(ResourceError, match=r"about \d+ MB of memory are needed, and"):
        build_graph(np.random.default_rng(0).normal(size=(60, 3)))


def test_rooms_that_are_too_small_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ResourceError, match="set TMPDIR"):
        check_budget(Budget(0, 1 << 62, 0))
    with pytest.raises(OutputError, match="are needed for the graph"):
        check_output_room(str(tmp_path / "g.npz"), 1 << 40, 1 << 20)
    check_output_room("/dev/null", 10, 10)


def test_a_control_group_counts_what_is_left_in_it(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text(
        "anon 5\ninactive_file 150000\nactive_file 50000\n"
    )
    monkeypatch.setattr("nnkgraph.runtime.limits._CGROUP", tmp_path)
    assert available_memory() == 500_000
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() > 500_000


@pytest.mark.parametrize(
    ("size", "words"), [(12, "12 bytes"), (123456, "123 kB"), (2.5e9, "2.5 GB")]
)
def test_sizes_are_said_in_words(size, words):
    assert in_words(size) == words


def test_a_dry_run_says_what_is_needed(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(100, 3)))
    line = [*NNKGRAPH, "build", "x.npy", "-o", "g.npz", "--dry-run"]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "MB of memory," in done.stderr
    assert not (tmp_path / "g.npz").exists()


def test_g01_an_address_space_that_is_too_small_is_refused_at_once(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(100, 3)))

    def limited(*args):
        return subprocess.run(
            [*NNKGRAPH, *args],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (300 << 20, 300 << 20)
            ),
        )

    done = limited("build", "x.npy", "-o", "g.npz")
    assert done.returncode == 5
    assert len(done.stderr.splitlines()) == 1
    assert "ulimit -v" in done.stderr
    assert not (tmp_path / "g.npz").exists()
    assert limited("build", "--help").returncode == 0
