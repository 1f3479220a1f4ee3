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
from numba.core.types.misc import unliteral  # noqa: E402

from nnkgraph.runtime import compiling  # noqa: E402

__all__ = [
    "compiled",
    "frozen",
    "inner",
]


def compiled(function: Callable[..., Any], *, inner: bool = False) -> Any:
    """Compile a function: cached, without the global lock, in strict arithmetic.

    There is no ``fastmath``: the order of every sum is the one that is written down,
    so that a number never depends on the block it was computed in.
    """
    # What only compiled functions call is in their files, and Python cannot call it.
    options = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}
    made = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if isinstance(made, numba.core.dispatcher.Dispatcher):  # not where disabled
        if not inner:
            made._cache = cache.Cache(function)
        template = made.get_call_template

        def by_type(args: Any, kws: Any) -> Any:
            """Take a number that is written in the caller for any number."""
            return template(tuple(map(unliteral, args)), kws)

        made.get_call_template = by_type
    return made


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled functions call: there is less to do."""
    return compiled(function, inner=True)


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
