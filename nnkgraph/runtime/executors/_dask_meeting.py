"""Where this process and dask's workers meet: a folder that all of them see."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import ResourceError
from nnkgraph.runtime.arrays import scratch_folder
from nnkgraph.runtime.executors._dask_client import ask_all
from nnkgraph.runtime.executors._dask_worker import (
    Sight,
    Terms,
    look,
    objection,
    own_versions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def meet(
    stack: ExitStack, client: Any, places: Iterable[str], *, own: bool
) -> tuple[Terms, list[str]]:
    """Make a folder that all workers see, in the first place where that is possible.

    Parameters
    ----------
    stack : ExitStack
        What removes the folder in the end.
    client : distributed.Client
        The way to the workers.
    places : iterable of str
        Directories to try.
    own : bool
        Whether the workers were started by this process.

    Returns
    -------
    terms : Terms
        What the workers agree to. They write into arrays themselves if all of them are
        on this machine: on others, maps of a file are not kept equal.
    addresses : list of str
        The workers that were asked.

    Raises
    ------
    ResourceError
        Where a worker has another version, or there is no such folder.
    """
    first: ResourceError | None = None
    for place in dict.fromkeys(places):
        try:
            with ExitStack() as trial:
                folder = trial.enter_context(scratch_folder(place))
                terms, sights = _look_around(client, folder, own=own)
                stack.push(trial.pop_all())
                return terms, list(sights)
        except ResourceError as error:
            first = first or error
    raise first or ResourceError("dask: there is no directory to try")


def _look_around(
    client: Any, folder: str, *, own: bool
) -> tuple[Terms, dict[str, Sight]]:
    probe, token = str(Path(folder, "probe")), secrets.token_hex(16)
    Path(probe).write_text(token, encoding="ascii")
    terms = Terms(own_versions(), probe, token, None, own)
    sights: dict[str, Sight] = ask_all(client, look, probe)
    for address, sight in sights.items():
        if not isinstance(sight, Sight):
            raise ResourceError(
                f"the dask worker at {address} cannot work for nnkgraph "
                f"{dict(terms.versions)['nnkgraph']} ({type(sight).__name__}: "
                f"{sight}): install it there"
            )
        reason = objection(terms, sight)
        if reason:
            raise ResourceError(reason)
    place = look(probe).place
    if all(sight.place == place for sight in sights.values()):
        terms = replace(terms, place=place)
    return terms, sights
