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
    return memory_of()[1]


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
    return -1 if limit < 0 else max(0, limit - memory_of()[0])


def memory_of(process: int | str = "self") -> list[int]:
    """Return the bytes of a process: addressed, in memory, and of these of files."""
    words = _content(f"/proc/{process}/statm").split()[:3] or (0, 0, 0)
    return [int(word) * resource.getpagesize() for word in words]


def _content(path: str | Path) -> str:
    """Return the text of a system's file, or nothing where there is none."""
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _meminfo() -> int:
    """Return the memory that is free; all there is where nobody says, as on macOS."""
    found = re.search(
        r"^MemAvailable:\s+(\d+)", _content("/proc/meminfo"), re.MULTILINE
    )
    if found:
        return int(found[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return -1


def _own_group() -> Path:
    inside = _content("/proc/self/cgroup").strip().rpartition("::")[2]
    return _CGROUP / inside.lstrip("/")


def _cgroups() -> list[int]:
    """Return what is left in the control group and in those around it."""
    inside = _own_group()
    groups = [one for one in (inside, *inside.parents) if one.is_relative_to(_CGROUP)]
    return [_left_in(group) for group in groups]


def _left_in(group: Path) -> int:
    limit, used = (_content(group / f"memory.{one}") for one in ("max", "current"))
    if not (limit.strip().isdigit() and used.strip().isdigit()):
        return -1  # no limit is the word max
    # Files that are only cached give way.
    stat = _content(group / "memory.stat")
    cached = re.findall(r"^(?:in)?active_file (\d+)", stat, re.MULTILINE)
    return max(0, int(limit) - int(used) + sum(map(int, cached)))


_SCHEDULERS = ("SLURM_CPUS_PER_TASK", "PBS_NCPUS", "NSLOTS")


def granted_cpus() -> int:
    """Return how many processors were granted, which may be fewer than there are.

    A batch scheduler's word counts first; then the smaller of the processors this
    process may run on and the quota of its control group.
    """
    for name in _SCHEDULERS:
        # Slurm may write 24(x2): the first number is what each node has.
        found = re.match(r"\d+", os.environ.get(name, ""))
        if found and int(found.group()[:9]) > 0:
            # Some count what was granted on all machines together.
            return min(int(found.group()[:9]), max(32, 4 * (os.cpu_count() or 1)))
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cpus = os.cpu_count() or 1
    return max(1, min(cpus, _cgroup_quota() or cpus))


def _cgroup_quota() -> int | None:
    """Return the processors of the control group's quota, rounded up."""
    files = (_own_group() / "cpu.max", _CGROUP / "cpu.max")
    words = next(filter(None, map(_content, files)), "").split()
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
        own = len(os.listdir("/dev/fd"))  # noqa: PTH208 - names will do
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
        pause = self._interval
        while not self._stop.wait(pause):
            start = time.monotonic()
            family = _family(os.getpid())
            resident = sum(memory_of(one)[1] for one in family)
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
        numbers = [int(one) for one in os.listdir("/proc") if one.isdecimal()]  # noqa: PTH208
    except OSError:  # there is none, or no more files may be open
        numbers = []
    for number in numbers:
        words = _content(f"/proc/{number}/stat").rpartition(")")[2].split()
        if words:  # it may have ended since
            parents.setdefault(int(words[1]), []).append(number)
    family = [root]
    for member in family:
        family.extend(parents.get(member, []))
    return family


def _proportional(pid: int) -> int:
    """Return a process's share of the memory in use, in bytes; 0 if it is unknown."""
    text = _content(f"/proc/{pid}/smaps_rollup")
    found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
