"""The door to numba: one set of compiler options, and a cache of our own.

Import numba's names from here and from nowhere else: what it compiles for has to be
settled before numba is imported for the first time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.runtime import cache

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

cache.settle_cpu()

# Only after that, and therefore here for all who need it.
import numba.core.dispatcher  # noqa: E402
import numpy as np  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core import cgutils, types  # noqa: E402
from numba.core.errors import TypingError  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from nnkgraph.runtime import compiling  # noqa: E402

__all__ = [
    "TypingError",
    "borrowed",
    "cgutils",
    "compiled",
    "frozen",
    "inlined",
    "intrinsic",
    "ir",
    "types",
]


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function: cached, without the global lock, in strict arithmetic.

    There is no ``fastmath``: the order of every sum is the one that is written down,
    so that a number never depends on the block it was computed in.
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    if isinstance(dispatcher, numba.core.dispatcher.Dispatcher):  # not where disabled
        dispatcher._cache = cache.Cache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into every function that calls it."""
    return numba.njit(inline="always", error_model="numpy")(function)


@intrinsic  # type: ignore[untyped-decorator]
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


# At once: workers are told of a directory that only this run has, users of what is
# refused.
cache.private()
cache.shared()
compiling.listen()
