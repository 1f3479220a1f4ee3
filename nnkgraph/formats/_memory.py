"""How much memory an input may take."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from nnkgraph.errors import InputError


def available_memory() -> int:
    """Return the bytes that can be allocated, as far as the system says."""
    limits = [_meminfo(), _cgroup(), resource.getrlimit(resource.RLIMIT_AS)[0]]
    return min((limit for limit in limits if limit >= 0), default=sys.maxsize)


def check_fits(size: int, name: str, what: str) -> None:
    """Refuse an input whose declared size is more than the memory there is."""
    limit = available_memory()
    if size > limit:
        raise InputError(
            f"{name}: {what} claims {size:,} bytes, more than the {limit:,} bytes of "
            "memory that are available"
        )


def _meminfo() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return -1
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else -1


def _cgroup() -> int:
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return -1
    return int(text) if text.isdigit() else -1
