"""What a case may use: time, memory, and no file but its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
import time
from pathlib import Path

SECONDS, MEGABYTES = 2.0, 500
_GUARD = 6 << 30
"""Memory that a case can take before it fails; spares the machine."""

_IN_OPEN = 0x20
_CODE = (".py", ".pyc", ".so", ".pyi", ".pth", ".toml", "METADATA", "entry_points.txt")
_SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/usr/share/zoneinfo/")
_FORBIDDEN = ("pickle.find_class", "subprocess.Popen", "os.system", "socket.connect")


class Watch:
    """Looks at a process while it reads one file after the other."""

    def __init__(self, folder: Path, canaries: list[Path]) -> None:
        self.folder = os.path.realpath(folder)
        self.active = False
        self.seen: list[str] = []
        self._notify = _inotify(canaries)
        self._started = 0.0
        # Not RLIMIT_AS: readers ask for it, and would refuse more than usual.
        with contextlib.suppress(ValueError, OSError):
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (_GUARD, hard))
        sys.addaudithook(self._audit)

    def start(self) -> None:
        """Begin a case."""
        self.seen.clear()
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # forget the peak
        self._started = time.process_time()
        self.active = True

    def stop(self) -> tuple[float, float]:
        """End a case; return its processor seconds and the process's peak in MB."""
        self.active = False
        seconds = time.process_time() - self._started
        if self._notify >= 0:
            with contextlib.suppress(BlockingIOError):
                if os.read(self._notify, 4096):
                    self.seen.append("the library opened a file that a link names")
        return seconds, _peak()

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event in _FORBIDDEN:
            self.seen.append(f"{event} {arguments[:2]}")
        elif event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            own = path == self.folder or path.startswith(self.folder + os.sep)
            if not (own or path.endswith(_CODE) or path.startswith(_SYSTEM)):
                self.seen.append(f"opened {path}")


def _inotify(paths: list[Path]) -> int:
    """Return a descriptor that can be read once one of the files was opened."""
    if not sys.platform.startswith("linux"):
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    for path in paths:
        if descriptor >= 0:
            libc.inotify_add_watch(descriptor, os.fsencode(path), _IN_OPEN)
    return descriptor


def _peak() -> float:
    """Return the largest resident memory since it was last forgotten, in MB."""
    try:
        text = Path("/proc/self/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
