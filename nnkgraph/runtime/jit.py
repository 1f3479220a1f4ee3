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
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler  # noqa: E402
from numba.core.types.misc import unliteral  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from nnkgraph.runtime import compiling  # noqa: E402

__all__ = ["cgutils", "compiled", "frozen", "inner", "intrinsic", "ir", "types"]


class _Linked(JITCodeLibrary):  # type: ignore[misc]
    """The code of an inner function: it is optimized where it is linked into another.

    numba optimizes a function and makes machine code of it before it does so again with
    every function that calls it: a quarter of the time that a first build compiles.
    """

    @property
    def codegen(self) -> _Linked:
        """Where numba sets what functions that Python calls have around them."""
        return self

    def set_env(self, name: str, env: object) -> None:
        """Set nothing: nothing of it is used, nor is it set when a cache is read."""

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Return that there is no machine code."""
        self._ensure_finalized()
        return 0

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _InnerCompiler(Compiler):  # type: ignore[misc]
    def _compile_core(self) -> Any:
        state = self.state
        name = state.func_id.func_qualname
        state.library = _Linked(state.targetctx.codegen(), name)
        return super()._compile_core()


def compiled(function: Callable[..., Any], *, inner: bool = False) -> Any:
    """Compile a function: cached, without the global lock, in strict arithmetic.

    There is no ``fastmath``: the order of every sum is the one that is written down,
    so that a number never depends on the block it was computed in.
    """
    options = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}
    pipeline = _InnerCompiler if inner else Compiler
    made = numba.njit(
        nogil=True, error_model="numpy", pipeline_class=pipeline, **options
    )(function)
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
