"""How much memory there is for this process."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

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
