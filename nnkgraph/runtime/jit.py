"""The door to numba: a private compile cache, and one set of compiler options.

Import numba's names from here and from nowhere else: the cache directory has to
be settled before numba is imported for the first time.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ResourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def _cache_directory() -> tuple[str, str]:
    """Return a directory for compiled code, and one that was refused.

    numba unpickles what it finds there, so a directory that somebody else could have
    filled is never used. The home directory is no good place either: on clusters it
    is a network file system that many nodes would compile into at once.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given is not None:
        path = Path(given)
        if not path.exists() or _is_mine(path, closed=0o002):
            return given, ""
        return _temporary(), given
    try:
        path = Path(tempfile.gettempdir()) / f"nnkgraph-cache-{os.getuid()}"
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        return _temporary(), str(path)
    except OSError as error:
        raise ResourceError(
            f"no temporary directory can be written to ({error.strerror}); set TMPDIR "
            "to a directory with room"
        ) from error
    if _is_mine(path, closed=0o077):
        return str(path / _source_state()), ""
    return _temporary(), str(path)


def _is_mine(path: Path, *, closed: int) -> bool:
    """Return whether nobody else could have put files into a directory."""
    found = path.lstat() if closed == 0o077 else path.stat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid in {0, os.getuid()}
    return mine and not found.st_mode & closed


def _temporary() -> str:
    """Return a directory of this run alone, which ends with it."""
    folder = tempfile.mkdtemp(prefix="nnkgraph-cache-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _source_state() -> str:
    """Return a name that changes with the files that hold compiled code.

    numba looks only at the file of the function it has compiled, not at those of the
    functions that were compiled into it: after a change it could run old code.
    """
    home = Path(__file__).parent.parent
    state = hashlib.sha256(f"pynndescent {version('pynndescent')}".encode())
    for path in sorted(home.rglob("*.py")):
        text = path.read_bytes()
        if b"runtime.jit import" in text or path.samefile(__file__):
            state.update(str(path.relative_to(home)).encode() + text)
    return state.hexdigest()[:16]


os.environ["NUMBA_CACHE_DIR"], REFUSED = _cache_directory()
"""``REFUSED``: a cache directory that somebody else could have filled, or ""."""

# Only after the cache directory is settled, and therefore here for all who need it.
import numba.core.event  # noqa: E402
import numpy as np  # noqa: E402
from numba.core import types  # noqa: E402

__all__ = [
    "announce",
    "compiled",
    "frozen",
    "inner",
]


class _Compiling(numba.core.event.Listener):  # type: ignore[misc]
    """Hears of every function that is not found in the cache."""

    tell: Callable[[str], object] | None = None
    told: bool = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        """Say it, of the first function only."""
        if self.tell is not None and not self.told:
            self.told = True
            self.tell("compiling what runs for the first time: up to a minute")

    def on_end(self, event: Any) -> None:
        """Say nothing: there are many functions."""


_compiling = _Compiling()
numba.core.event.register("numba:compile", _compiling)


def announce(tell: Callable[[str], object]) -> None:
    """Have it told, once in a process, that there is code to be compiled."""
    _compiling.tell = tell


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """Compile a function: cached, without the global lock, in strict arithmetic.

    There is no ``fastmath``: the order of every sum is the one that is written down,
    so that a number never depends on the block it was computed in.
    """
    made = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    if hasattr(made, "get_call_template"):  # not where the compiler is switched off
        template = made.get_call_template

        def by_type(args: Any, kws: Any) -> Any:
            """Take a number that is written in the caller for any number."""
            return template(tuple(map(types.unliteral, args)), kws)

        made.get_call_template = by_type
    return made


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call: there is less to do."""
    return compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only plain view, whether the array is mapped or in memory.

    Compiled code is compiled once per kind of array: without this, arrays that are
    mapped from files would need a second version of everything.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
