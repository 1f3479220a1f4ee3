"""The recipes of examples/ that need no cluster; ``make test-cluster`` has the rest."""

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PROGRAM, SAMPLES

EXAMPLES = SAMPLES.parent / "examples"
PATH = f"{PROGRAM.parent}:/usr/bin:/bin"

QSUB = r"""#!/usr/bin/env bash
# Runs at once what PBS would run later, with the variables that PBS sets.
set -euo pipefail
first=0 last=0 vars=() script=
while [ $# -gt 0 ]; do
    case $1 in
    -J) first=${2%-*} last=${2#*-}; shift 2 ;;
    -v) IFS=, read -ra vars <<< "$2"; shift 2 ;;
    -V) shift ;;
    -*) shift 2 ;;
    *) script=$1; shift ;;
    esac
done
for ((at = first; at <= last; at++)); do
    array=()
    if [ "$last" -gt 0 ]; then array=("PBS_ARRAY_INDEX=$at"); fi
    env "${vars[@]}" "${array[@]}" PBS_O_WORKDIR="$PWD" bash "$script" >&2
done
echo "1[].server"
"""


def run_in(folder, *command, **extra):
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": PATH, "HOME": str(folder), **extra},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@pytest.fixture
def rows(tmp_path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(1).normal(size=(500, 4)))
    return path


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.sh")), ids=lambda p: p.name)
def test_a_script_is_in_the_list_and_has_no_mistake_that_bash_sees(script):
    assert f"[{script.name}]({script.name})" in (EXAMPLES / "README.md").read_text()
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_a_pbs_array_gives_the_graph_of_one_piece(tmp_path, rows):
    qsub = tmp_path / "bin" / "qsub"
    qsub.parent.mkdir()
    qsub.write_text(QSUB)
    qsub.chmod(0o755)
    script = EXAMPLES / "pbs_array.sh"
    path = f"{qsub.parent}:{PATH}"
    done = run_in(tmp_path, script, "x.npy", "graph.npz", "3", PATH=path)
    assert done.returncode == 0, done.stderr
    found = "precomputed:path=graph.npz.parts/candidates.npz"
    whole = run_in(
        tmp_path, PROGRAM, "build", "x.npy", "-o", "whole.npz", "--search", found
    )
    assert whole.returncode == 0, whole.stderr
    assert (tmp_path / "graph.npz").read_bytes() == (
        tmp_path / "whole.npz"
    ).read_bytes()


class Threads(threading.Thread):
    """Adds up the processor time of the first and of other threads of processes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.stop = str(folder), threading.Event()
        self.ticks: dict[tuple[int, int], int] = {}

    def run(self) -> None:
        while not self.stop.wait(0.02):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    self._look(process)
                except OSError:
                    continue  # it has ended since

    def _look(self, process: Path) -> None:
        if str((process / "cwd").readlink()) != self.folder:
            return
        for task in (process / "task").glob("*"):
            words = (task / "stat").read_text().rpartition(")")[2].split()
            place = int(process.name), int(task.name)
            self.ticks[place] = int(words[11]) + int(words[12])

    def share_of_others(self) -> float:
        others = sum(spent for (a, b), spent in self.ticks.items() if a != b)
        return others / sum(self.ticks.values())


def test_every_night_adds_what_came_and_once(tmp_path):
    x = np.random.default_rng(3).normal(size=(320, 4))
    make = ["make", "-f", EXAMPLES / "nightly.mk", f"NNKGRAPH={PROGRAM}"]
    make += ["OPTIONS=-k 8", "SAMPLE=50"]
    np.save(tmp_path / "all.npy", x[:300])
    done = run_in(tmp_path, *make, "anew")
    assert done.returncode == 0, done.stderr
    (tmp_path / "incoming").mkdir()
    for start in (300, 310):
        came = tmp_path / "incoming" / "new.npy"
        np.save(came, x[start : start + 10])
        # The first try ends before the file is put away.
        (tmp_path / "done").write_text("in the way")
        assert run_in(tmp_path, *make).returncode == 2
        (tmp_path / "done").unlink()
        done = run_in(tmp_path, *make)
        assert done.returncode == 0, done.stderr
        assert not came.exists()
        shutil.rmtree(tmp_path / "done")
    assert np.array_equal(np.load(tmp_path / "all.npy"), x)
    assert run_in(tmp_path, *make).returncode == 0  # nothing came


def test_f03_make_builds_all_inputs_but_the_bad_one_and_fails_for_it(tmp_path):
    features = tmp_path / "features"
    features.mkdir()
    rng = np.random.default_rng(2)
    for at in range(8):
        np.save(features / f"{at:02}.npy", rng.normal(size=(800, 16)))
    bad = features / "05.npy"
    bad.write_bytes(bad.read_bytes()[:5000])
    threads = Threads(tmp_path)
    threads.start()
    done = run_in(
        tmp_path, "make", "-j4", "-f", EXAMPLES / "Makefile", f"NNKGRAPH={PROGRAM}"
    )
    threads.stop.set()
    threads.join()
    assert done.returncode == 2
    assert "05.npy" in done.stderr
    assert "truncated" in done.stderr
    made = sorted(one.name for one in (tmp_path / "graphs").iterdir())
    assert made == [f"{at:02}.npz" for at in range(8) if at != 5]
    assert threads.share_of_others() < 0.1  # each has one processor, as was asked for

    time.sleep(0.01)
    np.save(bad, rng.normal(size=(800, 16)))
    again = run_in(
        tmp_path, "make", "-j4", "-f", EXAMPLES / "Makefile", f"NNKGRAPH={PROGRAM}"
    )
    assert again.returncode == 0
    assert again.stdout.count("build") == 1  # the others are up to date
