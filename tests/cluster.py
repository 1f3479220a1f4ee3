"""The Slurm recipes on a real Slurm of one node, and Snakemake's.

``make test-cluster`` runs this file; it needs root's rights, slurm-wlm and munge.
"""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import PROGRAM, SAMPLES

EXAMPLES = SAMPLES.parent / "examples"
PATH = f"{PROGRAM.parent}:/usr/sbin:/usr/bin:/sbin:/bin"
CONF = """
ClusterName=nnkgraph
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={folder}/munge/socket
SlurmctldPort={port}
SlurmdPort={next}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=15
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus}
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
# Slurm waits for two minutes before a job that was requeued may start again.
AT_ONCE = "StartTime=now"


class Slurm:
    """A controller and one node of our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            "PATH": PATH,
            "HOME": str(folder),
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        munge = self.folder / "munge"
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir()
        (munge / "key").write_bytes(os.urandom(1024))
        (munge / "key").chmod(0o400)
        for path in (munge, munge / "key"):
            shutil.chown(path, "munge")
        values = {
            "host": socket.gethostname().partition(".")[0],
            "folder": self.folder,
            "port": 27817,
            "next": 27818,
            "cpus": os.cpu_count(),
        }
        (self.folder / "slurm.conf").write_text(CONF.format(**values))
        own = [
            f"--{name}-file={munge}/{name}" for name in ("key", "pid", "log", "seed")
        ]
        daemon = ["munged", "-F", *own, f"--socket={munge}/socket"]
        self._spawn("runuser", "-u", "munge", "--", *daemon)
        self._until((munge / "socket").exists)
        self._spawn("slurmctld", "-D")
        self._spawn("slurmd", "-D")
        self._until(lambda: "idle" in self.ask("sinfo", "-h"))

    def stop(self) -> None:
        self.ask("scancel", "--user=root")
        for process in reversed(self._started):
            process.terminate()
            process.wait(30)

    def ask(self, *command: object) -> str:
        done = subprocess.run(
            list(map(str, command)),
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def finished(self, *jobs: str, seconds: float = 240) -> None:
        """Wait until jobs are no longer in the queue."""
        listed = ",".join(jobs)
        self._until(lambda: not self.ask("squeue", "-h", "-j", listed), seconds)

    def _spawn(self, *command: str) -> None:
        name = Path(command[0]).name
        with (self.folder / f"{name}.out").open("wb") as log:
            process = subprocess.Popen(command, env=self.env, stdout=log, stderr=log)
        self._started.append(process)

    def _until(self, true, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, self.logs()
            time.sleep(0.3)

    def logs(self) -> str:
        """Return the ends of all logs, for messages of failed tests."""
        found = [*self.folder.rglob("*.log"), *self.folder.rglob("*.out")]
        return "\n".join(
            f"== {one.name}\n{one.read_text(errors='replace')[-1500:]}" for one in found
        )


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    for one in (folder, *folder.parents):  # munge's user must get to its key
        if one.stat().st_uid == os.getuid() and one != Path("/"):
            one.chmod(one.stat().st_mode | 0o055)
    found = Slurm(folder)
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def rows(slurm) -> Path:
    path = slurm.folder / "x.npy"
    x = np.random.default_rng(3).normal(size=(30_000, 128)).astype(np.float32)
    np.save(path, x)
    return path


@pytest.fixture(scope="module")
def plain(slurm, rows) -> bytes:
    """The graph of one piece."""
    slurm.ask(PROGRAM, "build", rows, "-o", "plain.npz", "-q")
    return (slurm.folder / "plain.npz").read_bytes()


def jobs_of(text: str) -> list[str]:
    return [line.rpartition(" ")[2] for line in text.splitlines()]


def test_an_array_of_five_tasks_gives_the_graph_of_one_piece(slurm, rows):
    said = slurm.ask(EXAMPLES / "slurm_array.sh", rows, "array.npz", 5)
    assert len(jobs_of(said)) == 4
    slurm.finished(*jobs_of(said))
    work = slurm.folder / "array.npz.parts"
    assert len(list(work.glob("search-*.npz"))) == 5, slurm.logs()
    assert len(list(work.glob("solve-*.npz"))) == 5, slurm.logs()
    found = f"precomputed:path={work}/candidates.npz"
    slurm.ask(PROGRAM, "build", rows, "-o", "whole.npz", "--search", found)
    whole = (slurm.folder / "whole.npz").read_bytes()
    assert (slurm.folder / "array.npz").read_bytes() == whole


def test_a_preempted_job_goes_on_where_it_was(slurm, rows, plain):
    script = EXAMPLES / "slurm_requeue.sh"
    log = slurm.folder / "requeue.log"
    options = ("--parsable", f"--output={log}")
    job = slurm.ask("sbatch", *options, script, rows, "requeued.npz")
    checkpoint = slurm.folder / "requeued.npz.checkpoint"
    slurm._until(lambda: len(list(checkpoint.glob("search-*"))) >= 3)
    slurm.ask("scontrol", "requeue", job)
    slurm._until(lambda: "stopped by SIGTERM" in log.read_text())
    assert list(checkpoint.glob("search-*"))
    slurm._until(lambda: slurm.ask("scontrol", "update", f"jobid={job}", AT_ONCE) == "")
    slurm.finished(job)
    assert "blocks were there" in log.read_text(), slurm.logs()
    assert (slurm.folder / "requeued.npz").read_bytes() == plain
    assert not checkpoint.exists()


def test_a_job_at_the_end_of_its_time_asks_for_another_turn(slurm, rows, plain):
    script = EXAMPLES / "slurm_requeue.sh"
    log = slurm.folder / "late.log"
    options = ("--parsable", f"--output={log}")
    job = slurm.ask("sbatch", *options, script, rows, "late.npz")
    checkpoint = slurm.folder / "late.npz.checkpoint"
    slurm._until(lambda: len(list(checkpoint.glob("search-*"))) >= 3)
    # What Slurm sends a minute before the end of the time: a signal for the steps.
    slurm.ask("scancel", "--signal=USR1", job)
    slurm._until(lambda: "stopped by SIGUSR1" in log.read_text())
    slurm._until(lambda: "PD" in slurm.ask("squeue", "-h", "-o", "%t", "-j", job))
    slurm.ask("scontrol", "update", f"jobid={job}", AT_ONCE)
    slurm.finished(job)
    assert (slurm.folder / "late.npz").read_bytes() == plain, slurm.logs()


def test_dask_workers_in_a_job_give_the_same_graph(slurm, rows, plain):
    script = EXAMPLES / "slurm_dask.sh"
    log = slurm.folder / "dask.log"
    options = ("--parsable", f"--output={log}")
    job = slurm.ask("sbatch", *options, script, rows, "dask.npz")
    slurm.finished(job)
    assert (slurm.folder / "dask.npz").read_bytes() == plain, log.read_text()
    assert not (slurm.folder / "dask.npz.scheduler.json").exists()


def test_snakemake_builds_what_is_missing(tmp_path):
    (tmp_path / "features").mkdir()
    for name in ("a", "b"):
        x = np.random.default_rng(len(name)).normal(size=(200, 3))
        np.save(tmp_path / "features" / f"{name}.npy", x)
    snakemake = PROGRAM.parent.parent / "snakemake" / "bin" / "snakemake"
    command = [snakemake, "--cores", "2", "--snakefile", EXAMPLES / "Snakefile"]
    env = {"PATH": PATH, "HOME": str(tmp_path)}
    for made in (2, 0):
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("rule graph:") == made
    assert len(list((tmp_path / "graphs").glob("*.npz"))) == 2
