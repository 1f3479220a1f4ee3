"""The door to numba: a private compile cache, and one set of compiler options.

Import ``compiled`` from here and numba from nowhere else: the cache directory has to
be settled before numba is imported for the first time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def _private_cache() -> str:
    """Return a directory for compiled code that only this user can write to.

    numba unpickles what it finds there, so a directory that somebody else could have
    filled is never used. The home directory is no good place either: on clusters it
    is a network file system that many nodes would compile into at once.
    """
    path = Path(tempfile.gettempdir()) / f"nnkgraph-cache-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError:
        return tempfile.mkdtemp(prefix="nnkgraph-cache-")
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if mine and not found.st_mode & 0o077:
        return str(path / _source_state())
    return tempfile.mkdtemp(prefix="nnkgraph-cache-")


def _source_state() -> str:
    """Return a name that changes with any file of this package, and pynndescent's.

    numba looks only at the file of the function it has compiled, not at those of the
    functions that were compiled into it: after a change it could run old code.
    """
    home = Path(__file__).parent
    states = [
        f"{path.relative_to(home)} {path.stat().st_mtime_ns} {path.stat().st_size}"
        for path in sorted(home.rglob("*.py"))
    ]
    states.append(f"pynndescent {version('pynndescent')}")
    return hashlib.sha256("\n".join(states).encode()).hexdigest()[:16]


os.environ.setdefault("NUMBA_CACHE_DIR", _private_cache())

FIRST_RUN = not any(Path(os.environ["NUMBA_CACHE_DIR"]).glob("*/*.nbi"))
"""Whether nothing was compiled here before, which takes a while."""

import numba.extending  # noqa: E402 - only after its cache directory is settled
import numpy as np  # noqa: E402


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function: cached, without the global lock, in strict arithmetic.

    There is no ``fastmath``: the order of every sum is the one that is written down,
    so that a number never depends on the block it was computed in.
    """
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into every function that calls it."""
    return numba.njit(inline="always", error_model="numpy")(function)


@numba.extending.intrinsic  # type: ignore[untyped-decorator]
def borrowed(typingctx: Any, array: Any) -> Any:  # noqa: ARG001
    """Return an array of the caller's that is not counted, in compiled code.

    References are counted with atomic instructions at every call; in a loop over small
    problems that is a tenth of the time. The caller's own reference keeps it alive.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        struct = context.make_array(kind)(context, builder, args[0])
        struct.meminfo = struct.meminfo.type(None)
        return struct._getvalue()

    return array(array), codegen


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only plain view, whether the array is mapped or in memory.

    Compiled code is compiled once per kind of array: without this, arrays that are
    mapped from files would need a second version of everything.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
