"""The bench measures what it says; how fast anything is, is no matter of tests."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import data, ratio, solver
from bench.bound import lower_bound
from nnkgraph.runtime import registry

ROOT = Path(__file__).parents[2]


def test_a_ratio_is_the_median_of_several(monkeypatch):
    times = iter([0.0, 0.0, 2.0, 2.0, 3.0, 3.0, 9.0, 9.0, 10.0])  # 2/1 and 6/1
    monkeypatch.setattr(ratio.time, "perf_counter", lambda: next(times))
    jobs = [("ours", lambda: None), ("theirs", lambda: None)]
    next(times)
    line = ratio.compare("s", "c", *jobs, repeat=2, aim=3.0, warm=False)
    assert (line.lowest, line.ratio, line.highest) == (2.0, 4.0, 6.0)
    assert not line.met


def test_the_lower_bound_is_the_solution(tmp_path):
    with registry.create("executors", "threads").open(2) as pool:
        prepared = solver.Prepared(data.noisy_swiss_roll(600), 20, pool)
        candidates, sigma, stage = prepared.solve(20)
        theta = np.array(stage().weights)
        bound = lower_bound(prepared.x, candidates.index, sigma, theta, pool.submit)
    assert bound == pytest.approx(theta, abs=1e-9)


def test_the_peers_solve_the_same_problem():
    with registry.create("executors", "serial").open(1) as pool:
        prepared = solver.Prepared(data.digits()[:300], 10, pool)
        candidates, sigma, stage = prepared.solve(10)
        theta = stage().weights
    for q in range(50):
        block = solver.kernel_block(prepared.x, q, candidates.index[q], sigma)
        assert solver.by_nnls(*block) == pytest.approx(theta[q], abs=1e-6)


def test_generated_data_is_seeded_and_as_large_as_asked():
    x = data.manifold(5000, 33, seed=1)
    assert x.shape == (5000, 33)
    assert np.array_equal(x, data.manifold(5000, 33, seed=1))


def test_folders_of_npz_files_are_cases(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((30, 2), np.uint8))
    np.savez(tmp_path / "b.npz", other=np.ones(3))
    assert {name: x.shape for name, x in data.of_folder(tmp_path, 20).items()} == {
        "a": (20, 2)
    }


def test_suites_are_named_and_json_is_for_scripts(monkeypatch, capsys):
    from bench import __main__ as bench

    line = ratio.Line("s", "c", "ours", "theirs", 0.5, 0.4, 0.6, 1.0, 2.0, 1.0)
    monkeypatch.setattr(bench, "lines", lambda _: [line])
    monkeypatch.setattr(sys, "argv", ["bench", "--json"])
    bench.main()
    assert json.loads(capsys.readouterr().out)["met"] is True
    wrong = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert wrong.returncode == 2
    assert b"no such suite: nothing" in wrong.stderr


def test_the_picture_of_searches_takes_what_reaches_the_recall_first():
    from bench import neighbors

    runs = [("a", 3.0, 0.94), ("a", 5.0, 0.96), ("a", 9.0, 0.99), ("b", 1.0, 0.5)]
    runs += [("b", 2.0, 0.9), ("c", 4.0, 0.95)]
    found = [
        {"set": "x", "search": name, "seconds": seconds, "recall": recall}
        for name, seconds, recall in runs
    ]
    drawn = neighbors._reached(
        [*found, {"set": "x", "search": "d", "failed": "no"}], "x"
    )
    shown = [(one["search"], one["seconds"]) for one in drawn]
    assert shown == [("c", 4.0), ("a", 5.0), ("b", 2.0)]
