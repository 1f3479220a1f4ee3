"""Spare pynndescent's compile time, which every process would pay again.

Most of its functions are not marked for numba's cache, because a cached function is not
found again when it takes another compiled function, the distance, as an argument: numba
knows that one by a number drawn in each process. With a name that stays, it is found.
What is cached is the code that pynndescent itself compiles; results are the same.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MODULES = ("distances", "utils", "kernels", "rp_trees", "hybrid_forest")
_MAIN = "pynndescent.pynndescent_"
_DRIVERS = ("nn_descent", "nn_descent_internal")
"""They only call others and cannot be cached; plain Python needs no compiling."""


@contextmanager
def warm_start() -> Iterator[None]:
    """Let pynndescent find its compiled code in the cache while this lasts."""
    main: Any = importlib.import_module(_MAIN)
    modules = [sys.modules.get(f"pynndescent.{name}") for name in _MODULES]
    for module in filter(None, (main, *modules)):
        for name, function in vars(module).items():
            if _is_dispatcher(function) and name not in _DRIVERS:
                _make_cacheable(function)
    drivers: dict[str, Any] = {name: getattr(main, name, None) for name in _DRIVERS}
    for name, function in drivers.items():
        if _is_dispatcher(function):
            setattr(main, name, function.py_func)
    try:
        yield
    finally:
        for name, function in drivers.items():
            if function is not None:
                setattr(main, name, function)


def _is_dispatcher(function: Any) -> bool:
    from numba.core.dispatcher import Dispatcher

    return isinstance(function, Dispatcher)


def _make_cacheable(function: Any) -> None:
    from numba.core.caching import NullCache

    # These are numba's own: without them everything works, and compiles each time.
    if not (hasattr(function, "_set_uuid") and hasattr(function, "enable_caching")):
        return
    original = function.py_func
    # Only where none was drawn yet, which happens when the function is first cached.
    if getattr(function, "_MemoMixin__uuid", None) is None:
        name = f"{original.__module__}.{original.__qualname__}"
        function._set_uuid(f"{name} of {version('pynndescent')}")
    if isinstance(function._cache, NullCache):
        function.enable_caching()
