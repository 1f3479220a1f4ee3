"""Where compiled code is kept, for which processors, and whose files are trusted.

A folder of compiled code (a *state*) is named after all that the code in it depends on:
the contents of the modules that hold compiled functions, the versions of what compiles
them, and the kind of processor. Neither times nor paths are part of it, so that a state
fits wherever the same things are installed. Each compiled function is one file; files
are written whole, and nothing is ever changed.

- ``NNKGRAPH_CACHE`` names a directory that ``warm`` has filled; it is only read.
- The private cache is in ``NUMBA_CACHE_DIR``, else in the temporary directory.
- ``NNKGRAPH_CPU`` has numba compile for a level of processors instead of this one.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import importlib
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HANDED_ON = "_NNKGRAPH_CACHE"
"""The environment variable that tells processes of ours where to keep compiled code."""

_HOME = Path(__file__).parent.parent
_FORMAT = "1"
"""To be changed with what is in the files."""

_HOLDS_COMPILED = re.compile(
    rb"^from nnkgraph\.runtime(\.jit import| import .*\bjit\b)", re.MULTILINE
)
_STATE = re.compile(r"([\w.+-]+-)?[0-9a-f]{16}")
_UNUSED = 30 * 86_400
_DAY = 86_400
_SPARE = 16 << 20
"""Bytes that are left to others in a file system: a run needs temporary files, too."""

_LONGEST_WAIT = 120.0
"""Seconds to wait for another process that compiles the same function."""

_LEVELS = {
    "x86-64-v2": "cx16 popcnt sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""Levels of processors, and what each has beyond those before it."""

_NO_LEVEL = {"auto", "native", ""}

refusals: list[str] = []
"""Directories that were not used, each with the reason, for the command to tell."""


# Which processors the code is for


def settle_cpu() -> None:
    """Have numba compile for the level that ``NNKGRAPH_CPU`` asks for.

    ``auto``, which the command sets for itself and its workers, is x86-64-v3 or what
    this processor has of it: one cache then serves many kinds of machines. numba reads
    its variables when it is imported, and they concern all of a process. So nothing is
    changed where numba was imported before, where its own variables are set, and where
    nobody asks, which is so in other people's programs.
    """
    wanted = os.environ.get("NNKGRAPH_CPU", "")
    if wanted and wanted not in {*_NO_LEVEL, *_LEVELS, "generic"}:
        known = ", ".join(("auto", "native", "generic", *_LEVELS))
        raise ParameterError(f"NNKGRAPH_CPU: {wanted!r} is none of {known}")
    given = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"} & set(os.environ)
    features = filter(None, os.environ.get("NUMBA_CPU_FEATURES", "").split(","))
    if not all(one.startswith(("+", "-")) for one in features):  # LLVM would abort
        raise ParameterError("NUMBA_CPU_FEATURES: each has to begin with + or -")
    if wanted in {"", "native"} or given or "numba" in sys.modules:
        return
    level = _level() if wanted == "auto" else wanted
    if level:
        if level in _LEVELS and (missing := _missing(level)):
            raise ParameterError(
                f"NNKGRAPH_CPU: this processor is no {level}: it has no {missing[0]}"
            )
        os.environ |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}


def _level() -> str:
    """Return the level of this processor, v3 at most; "" where none is known."""
    machine = platform.machine().lower()
    if machine in {"aarch64", "arm64"}:
        return "generic"
    if machine not in {"x86_64", "amd64"} or _missing("x86-64-v2"):
        return ""
    return "x86-64-v2" if _missing("x86-64-v3") else "x86-64-v3"


def _missing(level: str) -> list[str]:
    """Return what a level has, those before it included, and this processor has not."""
    import llvmlite.binding

    features = llvmlite.binding.get_host_cpu_features()
    names = list(_LEVELS)
    needed = (_LEVELS[name] for name in names[: names.index(level) + 1])
    return [one for some in needed for one in some.split() if not features.get(one)]


@functools.cache
def target() -> tuple[str, str]:
    """Return the processor that numba compiles for, and its features where told."""
    import llvmlite.binding
    from numba.core import codegen, config

    name, features = config.CPU_NAME, config.CPU_FEATURES
    if name is None:
        name = llvmlite.binding.get_host_cpu_name()
    if features is None:
        features = codegen.get_host_cpu_features()
    return name, features


# The name of a state


@functools.cache
def _sources() -> dict[str, bytes]:
    """Return the modules that hold compiled code, by path, with their contents."""
    texts = {path: path.read_bytes() for path in sorted(_HOME.rglob("*.py"))}
    door = _HOME / "runtime" / "jit.py"
    return {
        path.relative_to(_HOME).as_posix(): text
        for path, text in texts.items()
        if path == door or _HOLDS_COMPILED.search(text)
    }


@functools.cache
def state() -> str:
    """Return a name for all that compiled code depends on."""
    import llvmlite
    import numba
    import numpy as np

    machine = (platform.system(), platform.machine(), *target())
    python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""))
    compilers = (numba.__version__, llvmlite.__version__, np.__version__)
    digest = hashlib.sha256(repr((_FORMAT, machine, python, compilers)).encode())
    for name, text in _sources().items():
        digest.update(f"\0{name}\0{len(text)}\0".encode() + text)
    processor = re.sub(r"[^\w.+-]", "-", target()[0])
    return f"{processor}-{digest.hexdigest()[:16]}"


# Directories, and whether they can be trusted: what is read from them is run


@functools.cache
def shared() -> Path | None:
    """Return the folder of this state that is only read, where there is one."""
    given = os.environ.get("NNKGRAPH_CACHE")
    if not given:
        return None
    try:
        root = Path(os.path.realpath(given, strict=True))
        reason = distrust(root, *root.parents)
    except OSError as error:
        reason = str(error.strerror).lower()
    if reason:
        refusals.append(f"{given}: {reason}, so NNKGRAPH_CACHE is not used")
        return None
    folder = root / state()
    with suppress(OSError):
        return folder if not distrust(folder) else None
    return None


def distrust(*folders: Path) -> str:
    """Return why somebody else could have put files into one of the folders, or ""."""
    owners = {0, os.getuid(), _HOME.stat().st_uid}
    for folder in folders:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return f"{folder} is no directory"
        if found.st_uid not in owners:
            return f"{folder} belongs to somebody else"
        if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
            return f"others could write to {folder}"
    return ""


@functools.cache
def private() -> Path | None:
    """Return the folder of this state that is read and written; None if there is none.

    The home directory is no good place: on clusters it is a network file system that
    many nodes would compile into at once.
    """
    given = os.environ.get(HANDED_ON) or os.environ.get("NUMBA_CACHE_DIR")
    try:
        own = Path(tempfile.gettempdir()) / f"nnkgraph-cache-{os.getuid()}"
    except OSError:  # no directory can be written to
        own = None
    # Who sets a directory may let his group in, as long as a state is his alone.
    for root, closed in ((given and Path(given), 0o002), (own, 0o077)):
        if not root:
            continue
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_mine(root, closed):
                return _temporary(root)
            return _opened(root / state(), tidy=root == own)
        except FileExistsError:
            return _temporary(root, "this is no directory")
        except OSError:
            continue
    return None


def _opened(folder: Path, *, tidy: bool) -> Path:
    """Return a state, made where it was not there, and note that it is in use."""
    try:
        folder.mkdir(mode=0o700)
        fresh = True
    except FileExistsError:
        fresh = time.time() - folder.lstat().st_mtime > _DAY
    if not _is_mine(folder, 0o022):
        return _temporary(folder)
    if fresh:
        with suppress(OSError):
            os.utime(folder)
        if tidy:
            _remove_unused(folder.parent)
    return folder


def _is_mine(path: Path, closed: int) -> bool:
    """Return whether nobody else could have put files into a directory."""
    found = path.lstat() if closed != 0o002 else path.stat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid in {0, os.getuid()}
    return mine and not found.st_mode & closed


def _temporary(
    refused: Path, reason: str = "others could write to this directory"
) -> Path:
    """Return a directory of this run alone, which ends with it; workers share it."""
    refusals.append(
        f"{refused}: {reason}, so it is not used and all is compiled again; remove it, "
        "or set NUMBA_CACHE_DIR to another"
    )
    folder = tempfile.mkdtemp(prefix="nnkgraph-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[HANDED_ON] = folder
    return _opened(Path(folder, state()), tidy=False)


def _remove_unused(root: Path) -> None:
    """Remove states that were not in use for a month."""
    oldest = time.time() - _UNUSED
    for path in root.iterdir():
        # Another run may do the same, or begin to use it: a name that is gone at once
        # is found by nobody, and what is missing is compiled again.
        with suppress(OSError):
            found = path.lstat()
            old = stat.S_ISDIR(found.st_mode) and found.st_mtime < oldest
            if old and found.st_uid == os.getuid() and _STATE.fullmatch(path.name):
                gone = path.rename(root / f"old-{uuid.uuid4().hex[:16]}")
                shutil.rmtree(gone, ignore_errors=True)


# Files


def _read(path: Path) -> bytes | None:
    """Return what was written to a file; None where it cannot be relied on."""
    try:
        with path.open("rb") as stream:
            found = os.fstat(stream.fileno())
            trusted = found.st_uid in {0, os.getuid(), _HOME.stat().st_uid}
            if not trusted or found.st_mode & 0o022:
                return None
            content = stream.read()
    except OSError:
        return None
    mark, data = content[:32], content[32:]
    return data if hashlib.sha256(data).digest() == mark else None


def _write(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all; where there is little room, not at all."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}.tmp")
    with suppress(OSError):
        system = os.statvfs(path.parent)
        if system.f_bavail * system.f_frsize < len(data) + _SPARE:
            return
        try:
            with part.open("xb") as stream:
                stream.write(hashlib.sha256(data).digest() + data)
                os.fchmod(stream.fileno(), 0o644)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


LOCKS = "locks"
"""The file of a state that processes lock while they compile."""


@functools.cache
def _locks(folder: Path) -> int | None:
    """Open the locks of a state; None where that cannot be.

    The file stays open: closing it once would end all locks of this process.
    """
    try:
        return os.open(folder / LOCKS, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None


class _Lock:
    """Keeps other processes from compiling the same function at the same time.

    Each function is a byte of one file. Locks end with a process that is killed, and
    leave nothing behind.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._file, self._byte = _locks(folder), int(name[-12:], 16)
        if self._file is not None:
            with suppress(OSError):
                self._wait(time.monotonic() + _LONGEST_WAIT)

    def _wait(self, end: float) -> None:
        while time.monotonic() < end:
            try:
                # Not flock: a process that is forked from this one must not have it.
                self._set(fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                time.sleep(0.02)  # and not in the call, where no signal is heard
            else:
                return

    def _set(self, kind: int) -> None:
        if self._file is not None:
            fcntl.lockf(self._file, kind, 1, self._byte)

    def release(self) -> None:
        self._set(fcntl.LOCK_UN)


class Cache:
    """Keeps the compiled forms of one function; numba's dispatchers ask for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._locks: list[_Lock] = []

    @property
    def cache_path(self) -> str:
        """Where files are written."""
        return str(private() or "")

    def enable(self) -> None:
        """Do nothing: it is always enabled."""

    disable = flush = enable

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return a compiled form, or None, upon which numba compiles it."""
        context.refresh()
        name = self._name(signature, context.codegen())
        folders = [folder for folder in (shared(), private()) if folder]
        for folder in folders:
            if found := self._load(folder / name, context):
                return found
        if (own := private()) is None:
            return None
        lock = _Lock(own, name)
        if found := self._load(own / name, context):  # by another, while we waited
            lock.release()
            return found
        self._locks.append(lock)
        return None

    def _load(self, path: Path, context: Any) -> Any:
        from numba.core.compiler import CompileResult

        if (data := _read(path)) is None:
            return None
        return CompileResult._rebuild(context, *_unpickled(data))

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled form, where that is possible."""
        from numba.core.serialize import dumps

        lifted = any(not one.can_cache for one in result.lifted)
        own = private()
        if own is not None and not lifted and not result.library.has_dynamic_globals:
            data = dumps(result._reduce())
            _write(own / self._name(signature, result.codegen), data)
        self.release()

    def release(self) -> None:
        """Let others compile this function: it was compiled, or that has failed."""
        while self._locks:
            with suppress(OSError):
                self._locks.pop().release()

    def _name(self, signature: Any, codegen: Any) -> str:
        """Return the name of a form's file; the state says all else."""
        place = f"{self._function.__module__}.{self._function.__qualname__}"
        key = (place, repr(signature), codegen.magic_tuple(), _foreign(self._function))
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:32]
        return re.sub(r"[^\w.]", "-", place)[-80:] + f"-{digest}"


def _unpickled(data: bytes) -> Any:
    import pickle

    return pickle.loads(data)  # noqa: S301 - written by us, see `distrust`


@functools.cache
def _foreign(function: Callable[..., Any]) -> str:
    """Return the state of a function that is in none of our modules: its file's."""
    code: Any = function.__code__
    path = Path(code.co_filename)
    if path.is_relative_to(_HOME) and path.relative_to(_HOME).as_posix() in _sources():
        return ""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # typed in somewhere: it is what it is
        return hashlib.sha256(code.co_code + repr(code.co_consts).encode()).hexdigest()


@contextmanager
def numbas_own(package: str) -> Iterator[None]:
    """Have functions of a package that is imported meanwhile cached in our folder.

    numba's way is kept, but for a cache that cannot be written to: that is no error.
    """
    from numba.core import caching, config

    dispatcher: Any = importlib.import_module("numba.core.dispatcher")

    class Tolerant(caching.FunctionCache):  # type: ignore[misc]
        @contextmanager
        def _guard_against_spurious_io_errors(self) -> Iterator[None]:
            with suppress(OSError):
                yield

    kept = config.CACHE_DIR, dispatcher.FunctionCache
    if own := private():
        config.CACHE_DIR = str(own / f"{package}-{version(package)}")
        dispatcher.FunctionCache = Tolerant
    try:
        yield
    finally:
        config.CACHE_DIR, dispatcher.FunctionCache = kept
