"""The door to numba: one set of compiler options, and a cache of our own.

Import numba's names from here and from nowhere else: what it compiles for has to be
settled before numba is imported for the first time.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ParameterError
from nnkgraph.runtime import cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

cache.settle_cpu()

# Only after that, and therefore here for all who need it.
try:
    import numba.core.dispatcher
except ValueError as error:
    raise ParameterError(
        f"numba cannot start: {error} Look at the environment variables NUMBA_..."
    ) from error
import numpy as np  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core import cgutils, types  # noqa: E402
from numba.core.codegen import JITCodeLibrary  # noqa: E402
from numba.core.compiler import Compiler, Flags, PassManager  # noqa: E402
from numba.core.types.misc import unliteral  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from nnkgraph.runtime import compiling  # noqa: E402

_SKIPPED = {
    "AnnotateTypes",
    "DeadBranchPrune",
    "FindLiterallyCalls",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "LiteralPropagationSubPipelinePass",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "NopythonRewrites",
    "RewriteDynamicRaises",
    "RewriteSemanticConstants",
    "WithLifting",
}
"""Steps of numba's that change nothing in functions that are as plain as ours."""

__all__ = ["cgutils", "compiled", "frozen", "inner", "intrinsic", "ir", "types"]


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function, which is optimized once, when all of it is there.

    numba simplifies every part before it links them, and the whole twice, the first
    time for functions that count references, which ours hardly do.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Linked(_Library):
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


class _Flags(Flags):  # type: ignore[misc]
    """Options of the compiler that are compared by what was set of them.

    numba looks its own functions up by options, among others, some 20,000 times in a
    first build, and asks for all fifty of them each time.
    """

    def __hash__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, _Flags) and bool(self._values == other._values)
        )


_known: dict[Any, Any] = {}
"""What operators and functions on numbers and arrays give, by their types."""

_PLAIN = types.Number | types.Boolean | types.Array


@contextmanager
def _remembering(context: Any) -> Iterator[None]:
    """Have numba ask once what a function of plain types gives.

    It tries all that could be meant by every ``+`` of a function, one after the other:
    a third of the time it takes to understand ours. Others' functions it compiles as
    it always does.
    """
    if "resolve_function_type" in vars(context):
        yield
        return
    resolve = context.resolve_function_type

    def remembered(function: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(one, _PLAIN) for one in args):
            return resolve(function, args, kws)
        key = context, function, tuple(args)
        if (found := _known.get(key)) is None:
            found = _known[key] = resolve(function, args, kws)
        return found

    context.resolve_function_type = remembered
    try:
        yield
    finally:
        del context.resolve_function_type


class _Compiler(Compiler):  # type: ignore[misc]
    """Compiles plain functions: no closures, no generators, no literal types."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state.flags = _Flags(self.state.flags)

    def define_pipelines(self) -> list[Any]:
        """Leave out what numba does for functions that ours are not."""
        passes = PassManager("plain")
        for one, of in super().define_pipelines()[0].passes:
            if one.__name__ not in _SKIPPED:
                passes.add_pass(one, of)
        passes.finalize()
        return [passes]

    def _new_library(self, *names: Any) -> Any:
        library = _Library(*names)
        library.enable_object_caching()
        return library

    def _compile_core(self) -> Any:
        state = self.state
        name = state.func_id.func_qualname
        state.library = self._new_library(state.targetctx.codegen(), name)
        with _remembering(state.typingctx):
            return super()._compile_core()


class _InnerCompiler(_Compiler):
    def _new_library(self, *names: Any) -> Any:
        return _Linked(*names)


def compiled(function: Callable[..., Any], *, inner: bool = False) -> Any:
    """Compile a function: cached, without the global lock, in strict arithmetic.

    There is no ``fastmath``: the order of every sum is the one that is written down,
    so that a number never depends on the block it was computed in.
    """
    options = {"no_cpython_wrapper": inner, "no_cfunc_wrapper": True}
    pipeline = _InnerCompiler if inner else _Compiler
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
    """Compile a function that only compiled functions call: there is less to do.

    Such functions do without ``min``, ``max`` and ``int``, each of which numba compiles
    as a function of its own, for every type anew.
    """
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
