"""The way to a dask scheduler: one that is there already, or one of our own."""

from __future__ import annotations

import json
import logging
import ssl
import time
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.executors._crew import deaf, hidden_main
from nnkgraph.resources import processes_left
from nnkgraph.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_NOISY = {"distributed", "tornado", "asyncio"}
_MUTE = logging.CRITICAL + 10
_CLOSING = 5.0
"""Seconds that closing may take."""

_LARGEST = 1 << 20
"""Bytes of a scheduler file; they have a few hundred."""


def distributed() -> Any:
    """Import dask.distributed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import cryptography  # noqa: F401
            import distributed
        except ImportError as error:
            raise ResourceError(
                "the dask executor needs dask: pip install 'nnkgraph[dask]'"
            ) from error
    return distributed


@contextmanager
def silent() -> Iterator[None]:
    """Keep dask from telling stderr what is told by one error, or need not be told."""
    known = [
        logger
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger) and name.partition(".")[0] in _NOISY
    ]
    loud = [logger for logger in known if not logger.disabled]
    for logger in loud:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loud:
            logger.disabled = False


def scheduler_address(path: str) -> str:
    """Read the address from a file that a scheduler has written."""
    try:
        with Path(path).open("rb") as file:
            content: Any = json.loads(file.read(_LARGEST))
    except OSError as error:
        raise InputError(
            f"{path}: cannot read the scheduler file ({error.strerror}); is the "
            "scheduler running?"
        ) from error
    except ValueError as error:
        raise InputError(f"{path}: is no scheduler file, because no JSON") from error
    address = content.get("address") if isinstance(content, dict) else None
    if not isinstance(address, str) or not address:
        raise InputError(f"{path}: is no scheduler file: it has no address")
    return address


def security(ca_file: str, cert: str, key: str) -> Any:
    """Return what dask needs for encrypted connections, None for its own defaults."""
    if not (ca_file or cert or key):
        return None
    return distributed().Security(
        require_encryption=True,
        tls_ca_file=ca_file or None,
        tls_client_cert=cert or None,
        tls_client_key=key or None,
    )


@contextmanager
def attached(address: str, keys: Any, timeout: float) -> Iterator[Any]:
    """Connect to a scheduler."""
    dask = distributed()
    try:
        client = _connected(dask, address, keys, timeout)
    except (ssl.SSLError, FileNotFoundError, PermissionError) as error:
        raise InputError(f"{address}: cannot use the TLS files ({error})") from error
    except (ValueError, TypeError) as error:
        raise ParameterError(f"dask: cannot connect to {address!r}: {error}") from error
    except OSError as error:
        raise ResourceError(
            f"{address}: no dask scheduler answers within {timeout:g} s; see whether "
            "it runs and can be reached from here"
        ) from error
    with _closing(client):
        yield client


@contextmanager
def local(workers: int, timeout: float) -> Iterator[Any]:
    """Start a scheduler and workers on this machine; they end with the context."""
    left, needed = processes_left(), 12 + 12 * workers
    if left is not None and left < needed:
        raise ResourceError(
            f"dask with {workers} workers needs about {needed} processes and threads, "
            f"and {left} may still be started (ulimit -u); use fewer workers (-j)"
        )
    dask = distributed()
    with scratch_folder() as folder:
        try:
            with deaf(), hidden_main():
                # Whoever reaches a scheduler can run anything: without keys that
                # would be every user of this machine. Mapped files count as memory
                # where dask limits it.
                cluster = dask.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    security=dask.Security.temporary(),
                    dashboard_address=None,
                    memory_limit=0,
                    silence_logs=_MUTE,
                    local_directory=folder,
                )
        except (OSError, RuntimeError) as error:
            raise ResourceError(
                f"dask's workers cannot start ({error}); use -j 1, or raise the limit "
                "of processes and files"
            ) from error
        with _closing(cluster):
            client = _connected(dask, cluster, cluster.security, timeout)
            with _closing(client):
                yield client


def wait_for_workers(client: Any, wanted: int, timeout: float) -> None:
    """Wait until some workers are there."""
    end = time.monotonic() + timeout
    while (count := len(client.nthreads())) < wanted:
        if time.monotonic() > end:
            raise ResourceError(
                f"{client.scheduler.address}: {count} of {wanted} dask workers were "
                f"there after {timeout:g} s; start more, or wait longer: "
                "dask:...,timeout=SECONDS"
            )
        time.sleep(0.1)


def _connected(dask: Any, target: Any, keys: Any, timeout: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions are looked at more closely by us
        return dask.Client(target, security=keys, timeout=timeout, set_as_default=False)


@contextmanager
def _closing(thing: Any) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(TimeoutError, OSError):  # its other end may be gone
            thing.close(timeout=_CLOSING)
