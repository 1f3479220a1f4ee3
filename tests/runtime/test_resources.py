"""What was granted: the scheduler's word, then affinity and quota."""

import os

import numpy as np
import pytest

from nnkgraph.runtime import limits


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch):
    for name in ("SLURM_CPUS_PER_TASK", "PBS_NCPUS", "NSLOTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", ["SLURM_CPUS_PER_TASK", "PBS_NCPUS", "NSLOTS"])
@pytest.mark.parametrize(("value", "count"), [("3", 3), ("24(x2)", 24)])
def test_g05_the_scheduler_decides(monkeypatch, name, value, count):
    monkeypatch.setenv(name, value)
    assert limits.granted_cpus() == count


@pytest.mark.parametrize("value", ["100000", "9" * 5000])
def test_g05_what_other_machines_have_is_no_help_here(monkeypatch, value):
    monkeypatch.setenv("NSLOTS", value)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert limits.granted_cpus() == 64


@pytest.mark.parametrize("value", ["", "0", "many"])
def test_g05_a_variable_without_a_number_is_ignored(monkeypatch, value):
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", value)
    assert limits.granted_cpus() >= 1


def test_g05_affinity_counts():
    all_ = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(all_)})
        assert limits.granted_cpus() == 1
    finally:
        os.sched_setaffinity(0, all_)


@pytest.mark.parametrize(
    ("text", "count"),
    [("150000 100000", 2), ("50000 100000", 1), ("max 100000", None), ("", None)],
)
def test_g05_quotas_of_control_groups_are_read(monkeypatch, tmp_path, text, count):
    (tmp_path / "cpu.max").write_text(text)
    monkeypatch.setattr(limits, "_CGROUP", tmp_path)
    assert limits._cgroup_quota() == count


def test_memory_is_seen_at_its_peak():
    with limits.MemoryWatch(0.01) as watch:
        block = np.ones(40_000_000)
        for _ in range(20):
            block += 1
    assert watch.peak > block.nbytes
