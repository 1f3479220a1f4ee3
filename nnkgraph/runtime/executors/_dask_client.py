"""The way to a dask scheduler: one that is there already, or one of our own."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import signal
import ssl
import time
import warnings
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nnkgraph.errors import InputError, ParameterError, ResourceError
from nnkgraph.runtime.arrays import scratch_folder
from nnkgraph.runtime.executors._crew import block_signals, hidden_main
from nnkgraph.runtime.limits import processes_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOISY = {"distributed", "tornado", "asyncio"}
_MUTE = logging.CRITICAL + 10
_SCHEMES = {"tcp", "tls", "ucx", "ws", "wss"}
_CLOSING, _IN_HASTE = 10.0, 1.0
"""Seconds that closing may take. Workers of our own end with this process anyway."""

_QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Keeps dask from watching itself many times a second, which takes time from work."""

_LARGEST = 1 << 20
"""Bytes of a scheduler file; they have a few hundred."""


def check_installed() -> None:
    """Refuse to go on without the packages, before any work is done."""
    if not all(map(importlib.util.find_spec, ("cryptography", "distributed"))):
        raise ResourceError(
            "executor 'dask' needs distributed and cryptography: pip install "
            "'nnkgraph[dask]'"
        )


def _distributed() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import distributed
    return distributed


@contextmanager
def silent() -> Iterator[None]:
    """Keep dask from telling stderr what is told by one error, or need not be told."""
    _distributed()  # which makes its loggers
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
    if not isinstance(address, str) or address.partition("://")[0] not in _SCHEMES:
        raise InputError(f"{path}: is no scheduler file: it has no address")
    return address


def security(ca_file: str, cert: str, key: str) -> Any:
    """Return what dask needs for encrypted connections, None for its own defaults."""
    if not (ca_file or cert or key):
        return None
    return _distributed().Security(
        require_encryption=True,
        tls_ca_file=ca_file or None,
        tls_client_cert=cert or None,
        tls_client_key=key or None,
    )


@contextmanager
def attached(address: str, keys: Any, timeout: float) -> Iterator[Any]:
    """Connect to a scheduler."""
    dask = _distributed()
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
            f"and {left} may still be started (ulimit -u); use fewer `workers`"
        )
    dask = _distributed()
    with scratch_folder() as folder:
        try:
            with block_signals(), hidden_main():
                cluster = _cluster(dask, workers, folder)
        except (OSError, RuntimeError) as error:
            _end_beginnings(dask)
            raise ResourceError(
                f"dask's workers cannot start ({error}); use `workers=1`, or raise "
                "the limit of processes and files"
            ) from error
        except BaseException:
            _end_beginnings(dask)
            raise
        with _closing(cluster):
            client = _connected(dask, cluster, cluster.security, timeout)
            with _closing(client):
                try:
                    yield client
                except BaseException:
                    _kill_workers(cluster)
                    raise


def _cluster(dask: Any, workers: int, folder: str) -> Any:
    from dask.config import set as configured

    with configured({"temporary-directory": folder, **_QUIET}):
        return dask.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            # Whoever reaches a scheduler can run anything: without keys that would be
            # every user of this machine.
            security=dask.Security.temporary(),
            dashboard_address=None,
            # There is a page all the same: not where others may have theirs.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            memory_limit=0,  # mapped files would count
            silence_logs=_MUTE,
        )


def _end_beginnings(dask: Any) -> None:
    """End clusters that were about to start, before their folder is removed."""
    for cluster in list(dask.SpecCluster._instances):
        _kill_workers(cluster)
        with suppress(Exception):  # it may have nothing to close yet
            cluster.close(timeout=1)


def _kill_workers(cluster: Any) -> None:
    """End workers in the middle of their work, which dask would wait for."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        if nanny.pid:
            with suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def ask_all(client: Any, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
    """Call a function on every worker; an error is an answer as well."""
    with _answered(client):
        answers: dict[str, Any] = client.run(function, *args, on_error="return")
    return answers


@contextmanager
def _answered(client: Any) -> Iterator[None]:
    address = client.scheduler.address if client.scheduler else "dask"
    gone = ResourceError(f"{address}: the dask scheduler is gone")
    if client.status != "running":
        raise gone
    try:
        yield
    except (OSError, CancelledError) as error:
        raise gone from error


def wait_for_workers(client: Any, wanted: int, timeout: float) -> None:
    """Wait until some workers are there."""
    end, count = time.monotonic() + timeout, 0
    while count < wanted:
        with _answered(client):
            count = len(client.nthreads())
        if count < wanted and time.monotonic() > end:
            raise ResourceError(
                f"{client.scheduler.address}: {count} of {wanted} dask workers were "
                f"there after {timeout:g} s; start more, or wait longer: "
                "dask:...,timeout=SECONDS"
            )
        time.sleep(0.1 if count < wanted else 0)


def _connected(dask: Any, target: Any, keys: Any, timeout: float) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions are looked at more closely by us
        return dask.Client(target, security=keys, timeout=timeout, set_as_default=False)


@contextmanager
def _closing(thing: Any) -> Iterator[None]:
    """Close a client or cluster in the end; quickly, if that is a bad one."""
    timeout = _IN_HASTE
    try:
        yield
        timeout = _CLOSING
    finally:
        with suppress(TimeoutError, OSError):  # its other end may be gone
            thing.close(timeout=timeout)
