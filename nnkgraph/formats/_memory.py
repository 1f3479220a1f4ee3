"""How much memory an input may take."""

from __future__ import annotations

from nnkgraph.bounded import is_large
from nnkgraph.errors import InputError
from nnkgraph.memory import available_memory, free_addresses
from nnkgraph.scratch import free_scratch


def check_fits(size: int, name: str, what: str, *, mapped: bool = False) -> None:
    """Refuse an input whose declared size is more than the memory there is.

    What may be ``mapped`` goes to a file where it is large against a limit.
    """
    limit, addresses = available_memory(), free_addresses()
    if mapped and is_large(size) and not 0 <= addresses < size:
        limit = max(limit, free_scratch())
    if size > limit:
        raise InputError(
            f"{name}: {what} claims {size:,} bytes, more than the {limit:,} bytes of "
            "memory that are available"
        )
