"""A kernel of the user's own."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pickle
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nnkgraph.errors import ParameterError
from nnkgraph.kernels import Kernel, Local, Plain, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from nnkgraph.data import FloatArray

_PROBE = 8
"""Rows that the function is tried on before the work begins."""


@dataclass(frozen=True)
class Function(Plain):
    """A Python function of (n, d) and (m, d) rows that returns n x m similarities."""

    base: ClassVar[str] = "function"
    nearness: ClassVar[str] = "similarity"
    form: ClassVar[str] = ""

    path: str = ""
    """The function as module:name; the current directory is searched, too."""

    ridge: float = 0.0
    """Share of the diagonal that is added, for kernels of low rank: 1e-8."""

    given: Any = field(default=None, init=False)
    """The function itself, where it was handed over: see :meth:`of`."""

    @classmethod
    def of(cls, function: Callable[..., Any], *, ridge: float = 0.0) -> Function:
        """Return a kernel that asks a function that is there already.

        Worker processes need one that can be pickled, as functions of modules can.
        """
        path = f"{function.__module__}:{getattr(function, '__qualname__', 'function')}"
        made = cls(path, ridge)
        object.__setattr__(made, "given", function)
        return made

    def __post_init__(self) -> None:
        module, colon, name = self.path.partition(":")
        if self.path and not (colon and module and name):
            raise ParameterError(
                f"kernel {self.path!r}: write a function as module:name"
            )
        if not 0 <= self.ridge <= 1:
            raise ParameterError(
                f"kernel 'function': ridge must be from 0 to 1, not {self.ridge:g}"
            )

    @property
    def source(self) -> str:
        """Hash of the file that the function is in; what it imports does not count."""
        path = inspect.getsourcefile(inspect.unwrap(self._function()))
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""

    def _function(self) -> Callable[..., Any]:
        return _loaded(self.path) if self.given is None else self.given

    def prepare(self, x: Any, _name: str, /) -> Any:
        """Try the function on a few rows."""
        rows = np.asarray(x[:_PROBE], np.float64)
        values = self(rows, rows)
        if not np.allclose(values, values.T, rtol=1e-6, atol=1e-6 * abs(values).max()):
            raise ParameterError(f"kernel {self.path!r}: its values are not symmetric")
        if (np.diagonal(values) < 0).any():
            raise ParameterError(
                f"kernel {self.path!r}: a row's similarity with itself is negative: it "
                "is not positive definite"
            )
        return x

    def __call__(self, a: FloatArray, b: FloatArray, /) -> FloatArray:
        """Return the similarities of two sets of rows, checked."""
        try:
            values = np.asarray(self._function()(a, b), np.float64)
        except (ParameterError, MemoryError):
            raise
        except (Exception, SystemExit) as error:
            what = str(error).partition("\n")[0]
            raise ParameterError(
                f"kernel {self.path!r}: it raised {type(error).__name__}: {what}"
            ) from error
        if values.shape != (len(a), len(b)):
            raise ParameterError(
                f"kernel {self.path!r}: it returned shape {values.shape} for {len(a)} "
                f"and {len(b)} rows; ({len(a)}, {len(b)}) is needed"
            )
        if not np.isfinite(values).all():
            raise ParameterError(
                f"kernel {self.path!r}: it returned values that are not finite"
            )
        return values

    def local(self, problem: Problem, /) -> Local:
        """Ask the function about every node and its candidates, node by node.

        A call for many nodes at once would compute similarities that nobody needs, and
        its rounding could depend on which nodes came together.
        """
        b, m = problem.index.shape
        gram = np.zeros((b, m, m))
        cross, own = np.zeros((b, m)), np.zeros(b)
        for q in range(b):
            there = np.flatnonzero(problem.index[q] >= 0)
            rows = np.empty((1 + len(there), problem.x.shape[1]))
            rows[0], rows[1:] = problem.queries[q], problem.x[problem.index[q, there]]
            values = self(rows, rows)
            own[q], cross[q, there] = values[0, 0], values[0, 1:]
            gram[q][np.ix_(there, there)] = values[1:, 1:]
        return Local(gram[:, *np.tril_indices(m)], cross, own)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to leave this process with a function that others cannot import."""
        try:
            pickle.dumps(self.given)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ParameterError(
                f"kernel {self.path!r}: other processes cannot import it; define the "
                "function at the top of a module, or use one worker"
            ) from error
        return self.__dict__


def _loaded(path: str) -> Callable[..., Any]:
    """Import the function; the current directory is looked into last."""
    if not path:
        raise ParameterError("kernel 'function' needs path=module:name")
    module, _, name = path.partition(":")
    try:
        found = getattr(_imported(module), name)
    except (Exception, SystemExit) as error:
        what = str(error).partition("\n")[0]
        raise ParameterError(
            f"kernel {path!r}: cannot be imported ({type(error).__name__}: {what})"
        ) from error
    if not callable(found):
        raise ParameterError(f"kernel {path!r}: {name} is no function")
    function: Callable[..., Any] = found
    return function


def _imported(module: str) -> Any:
    # Last, and only now: nothing else is ever imported from where the user stands.
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        return importlib.import_module(module)
    finally:
        last = len(sys.path) - 1 - sys.path[::-1].index(here)
        del sys.path[last]


plugin: type[Kernel] = Function
