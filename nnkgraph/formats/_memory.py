"""How much memory an input may take."""

from __future__ import annotations

from nnkgraph.errors import InputError
from nnkgraph.memory import available_memory


def check_fits(size: int, name: str, what: str) -> None:
    """Refuse an input whose declared size is more than the memory there is."""
    limit = available_memory()
    if size > limit:
        raise InputError(
            f"{name}: {what} claims {size:,} bytes, more than the {limit:,} bytes of "
            "memory that are available"
        )
