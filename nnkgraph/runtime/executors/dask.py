"""Workers of dask.distributed, on this machine or on many."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nnkgraph.errors import ParameterError
from nnkgraph.runtime.executors import _dask_client as dask_client
from nnkgraph.runtime.executors import forget_maps
from nnkgraph.runtime.executors._crew import Files
from nnkgraph.runtime.executors._dask_meeting import meet
from nnkgraph.runtime.executors._dask_pool import DaskPool, host_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.runtime.executors import Executor, Pool


@dataclass(frozen=True)
class Dask:
    """Workers of a dask scheduler, of one of our own if none is named."""

    in_process: ClassVar[bool] = False

    scheduler_file: str = ""
    """The file that the scheduler has written its address to."""
    address: str = ""
    """The scheduler's address, as in ``tcp://node1:8786``."""
    workers: int = 1
    """How many workers of a scheduler to wait for before work begins."""
    timeout: float = 60.0
    """Seconds to wait for a scheduler or a worker."""
    folder: str = ""
    """A directory that all workers see, for arrays that are no files yet."""
    tls_ca_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    """Files for encrypted connections."""

    def __post_init__(self) -> None:
        dask_client.check_installed()
        if self.scheduler_file and self.address:
            raise ParameterError("dask: give scheduler_file or address, not both")
        if self.scheduler_file:
            dask_client.scheduler_address(self.scheduler_file)  # found before any work
        if not (self.workers >= 1 and self.timeout > 0):
            raise ParameterError("dask: workers and timeout must be above 0")
        tls = self.tls_ca_file or self.tls_cert or self.tls_key
        if (tls or self.workers > 1) and not self.attached:
            raise ParameterError(
                "dask: tls files and workers are for a scheduler that runs: give its "
                "scheduler_file or address"
            )
        if tls and not (self.tls_ca_file and self.tls_cert):
            raise ParameterError("dask: give both tls_ca_file and tls_cert")

    @property
    def attached(self) -> bool:
        """Whether there is a scheduler already."""
        return bool(self.scheduler_file or self.address)

    @contextmanager
    def open(
        self,
        workers: int,
        /,
        *,
        block_timeout: float | None = None,
        shared_dir: str | None = None,
    ) -> Iterator[Pool]:
        """Find workers, or start some; what was started ends with the context."""
        with dask_client.silent(), ExitStack() as stack:
            wanted = self.workers if self.attached else workers
            client = stack.enter_context(self._client(workers))
            dask_client.wait_for_workers(client, wanted, self.timeout)
            places = [tempfile.gettempdir(), shared_dir or ".", "."]
            places = [
                str(Path(one).absolute())
                for one in ([self.folder] if self.folder else places)
            ]
            terms, addresses = meet(stack, client, places, own=not self.attached)
            stack.callback(forget_maps)
            pool = DaskPool(
                client,
                Files(str(Path(terms.probe).parent)),
                terms,
                hosts={host_of(one) for one in addresses},
                threads=workers,
                timeout=self.timeout,
                block_timeout=block_timeout,
            )
            wait = False  # nobody has time for that where something went wrong
            try:
                yield pool
                wait = True
            finally:
                pool.forget(wait=wait)

    def _client(self, workers: int) -> Any:
        if not self.attached:
            return dask_client.local(workers, self.timeout)
        address = self.address or dask_client.scheduler_address(self.scheduler_file)
        keys = dask_client.security(self.tls_ca_file, self.tls_cert, self.tls_key)
        return dask_client.attached(address, keys, self.timeout)


plugin: type[Executor] = Dask
