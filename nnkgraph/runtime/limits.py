"""What this process may use: processors and memory, as granted and as taken."""

from __future__ import annotations

import os
import re
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Self

from nnkgraph.errors import ResourceError

_CGROUP = Path("/sys/fs/cgroup")
_LEAST, _LEAST_PER_CPU = 500 << 20, 50 << 20
"""Address space that libraries take before any work, and for each processor."""


def available_memory() -> int:
    """Return the bytes that can be allocated, as far as the system says."""
    limits = [_meminfo(), *_cgroups(), free_addresses()]
    return min((limit for limit in limits if limit >= 0), default=sys.maxsize)


def check_address_space() -> None:
    """Refuse a limit under which libraries fail in ways that nobody can catch."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _LEAST + _LEAST_PER_CPU * (os.cpu_count() or 1):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # each takes room of its own
    least = _LEAST + 2 * _LEAST_PER_CPU
    if 0 <= limit < least:
        raise ResourceError(
            f"the limit of the address space (ulimit -v) is {in_words(limit)}, and "
            f"{in_words(least)} are needed to begin with; raise it"
        )


def taken_memory() -> int:
    """Return the memory that this process has in use; 0 where nobody knows."""
    return _pages(1) * resource.getpagesize()


def in_words(size: float) -> str:
    """Return a number of bytes as people say it."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def free_addresses() -> int:
    """Return the bytes that can still be mapped; -1 where nothing limits them."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return -1 if limit < 0 else max(0, limit - _pages(0) * resource.getpagesize())


def _pages(field: int) -> int:
    """Return the pages of this process: addressed (0) or in memory (1)."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field])
    except OSError:
        return 0


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return -1
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else -1


def _cgroups() -> list[int]:
    """Return what is left in the control group and in those around it."""
    try:
        text = Path("/proc/self/cgroup").read_text(encoding="ascii").strip()
    except OSError:
        return []
    inside = _CGROUP / text.rpartition("::")[2].lstrip("/")
    groups = [one for one in (inside, *inside.parents) if one.is_relative_to(_CGROUP)]
    return [_left_in(group) for group in groups]


def _left_in(group: Path) -> int:
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        used = int((group / "memory.current").read_text(encoding="ascii"))
        lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # no limit is the word max
        return -1
    # Files that are only cached give way.
    files = ("inactive_file ", "active_file ")
    cached = [line.split()[1] for line in lines if line.startswith(files)]
    return max(0, limit - used + sum(map(int, cached)))


_SCHEDULERS = ("SLURM_CPUS_PER_TASK", "PBS_NCPUS", "NSLOTS")


def granted_cpus() -> int:
    """Return how many processors were granted, which may be fewer than there are.

    A batch scheduler's word counts first; then the smaller of the processors this
    process may run on and the quota of its control group.
    """
    for name in _SCHEDULERS:
        # Slurm may write 24(x2): the first number is what each node has.
        found = re.match(r"\d+", os.environ.get(name, ""))
        if found and int(found.group()) > 0:
            return int(found.group())
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cpus = os.cpu_count() or 1
    return max(1, min(cpus, _cgroup_quota() or cpus))


def _cgroup_quota() -> int | None:
    """Return the processors of the control group's quota, rounded up."""
    try:
        inside = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
        files = [_CGROUP / inside.lstrip("/") / "cpu.max", _CGROUP / "cpu.max"]
        words = next(f for f in files if f.is_file()).read_text().split()
    except (OSError, StopIteration):
        return None
    if len(words) != 2 or not all(word.isdigit() for word in words):
        return None
    return max(1, -(-int(words[0]) // int(words[1])))


def processes_left() -> int | None:
    """Return how many processes and threads the user may still start, if limited."""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit < 0 or os.geteuid() == 0:  # the limit is not for root
        return None
    own = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == os.geteuid():
                own += sum(1 for _ in (path / "task").iterdir())
        except OSError:
            continue  # it has ended since
    return max(0, limit - own)


def files_left() -> int | None:
    """Return how many files this process may still open, if that is known."""
    try:
        own = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names will do
    except OSError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else max(0, limit - own)


class MemoryWatch:
    """Largest memory of this process and its children, seen while it runs.

    Pages that several processes share count once. Use as a context manager.
    """

    _PART = 0.05
    """Counting shared pages once walks all page tables: it may take so much time."""

    def __init__(self, interval: float = 0.2) -> None:
        self.peak = 0
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look(_family(os.getpid()))

    def _watch(self) -> None:
        pause, page = self._interval, resource.getpagesize()
        while not self._stop.wait(pause):
            start = time.monotonic()
            family = _family(os.getpid())
            resident = sum(map(_resident, family)) * page
            # With what they share counted for each, it is at least what it is in sum.
            if resident > self.peak or not resident:
                self._look(family)
            pause = max(self._interval, (time.monotonic() - start) / self._PART)

    def _look(self, family: list[int]) -> None:
        now = sum(map(_proportional, family))
        if not now:
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            now = own * (1 if sys.platform == "darwin" else 1024)
        self.peak = max(self.peak, now)


def _family(root: int) -> list[int]:
    """Return a process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    try:
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    stat = Path(entry.path, "stat").read_text()
                except OSError:
                    continue  # it has ended since
                parent = int(stat.rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    except OSError:
        return [root]
    family = [root]
    for member in family:
        family.extend(parents.get(member, []))
    return family


def _resident(pid: int) -> int:
    """Return a process's memory with all that it shares, in pages; cheap to ask."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0


def _proportional(pid: int) -> int:
    """Return a process's share of the memory in use, in bytes; 0 if it is unknown."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
