"""What became of a graph: its report, its summary, and whether it is good enough."""

import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nnkgraph import formats
from nnkgraph.cli import talk
from nnkgraph.cli.files import Files
from nnkgraph.cli.progress import Progress
from nnkgraph.errors import ParameterError, QualityError
from nnkgraph.runtime.limits import MemoryWatch

_METRICS = {
    "euclidean": "euclidean, between the scaled rows",
    "manhattan": "manhattan, between the scaled rows",
    "chord": "chord c between rows of length 1: cosine 1 - c^2 / 2",
    "jaccard": "jaccard, 1 - the similarity of the scaled rows",
    "precomputed": "as given",
}
"""What distances are."""


def metric_text(metric: str | None, scale: object) -> str:
    """Return what distances are; rows that were not scaled are not called so."""
    text = _METRICS.get(metric or "", "-")
    return text.replace("scaled rows", "rows") if scale == "none" else text


_TIMED = ("start", "read", "search", "solve", "symmetrize", "write")


class Measured(Progress):
    """The stages of a whole run, with its time and memory."""

    total, peak = 0.0, 0

    @contextmanager
    def within(self, memory: int | None) -> Iterator[None]:
        """Measure what is done within a limit of memory."""
        from nnkgraph.runtime.arrays import limited

        start = time.perf_counter()
        with MemoryWatch() as watch, limited(memory):
            yield
        self.total, self.peak = time.perf_counter() - start, watch.peak


def check_report(path: str | None, output: str, files: Files) -> None:
    """Check before any computing that a report can be written."""
    if path and path == output:
        raise ParameterError(f"{path}: the report and the graph need different names")
    if path:
        files.check_file(path)


def write_report(
    path: str | None, known: dict[str, Any], run: Measured
) -> dict[str, Any]:
    """Add what is known about the process, write the report where one is wanted."""
    from nnkgraph.build.report import versions
    from nnkgraph.runtime.cache import target

    timings = {name: run.seconds.get(name, 0.0) for name in _TIMED}
    full = {
        **known,
        "timings": {**timings, "total": run.total},
        "peak_memory_bytes": run.peak,
        "versions": versions(),
        "cpu": target()[0],
        "command": shlex.join(["nnkgraph", *sys.argv[1:]]),
    }
    text = talk.json_text(full)
    if path == "-":
        talk.data(text)
    elif path:
        formats.write_file(path, f"{text}\n".encode())
    return full


def say_result(source: str, output: str, full: dict[str, Any]) -> None:
    """Say what was built, from what, and how well."""
    talk.summary(*full["notes"])
    copies = 0 if "shard" in full else full["duplicates"]
    talk.summary(
        f"{source}: {full['method']}, {full['kernel']}"
        + ("" if full["sigma"] is None else f", sigma {full['sigma']:.6g}")
        + (f", pca {full['pca']}" if "pca" in full else "")
        + f", k {full['k']}, search {full['search']['backend']}"
        + recall_words(full["search"])
        + (f", {copies} copies of rows" if copies else "")
    )
    if "shard" in full:
        start, stop = full["rows"]
        text = f"shard {full['shard']}, {stop - start} rows from {start} on"
        talk.summary(f"{output}: {text}")
    else:
        talk.summary(
            f"{output}: {full['nodes']} nodes, {full['edges']} edges "
            f"({full['edges_per_node']:.2f} per node), components: "
            f"{full['components']}, isolated: {full['isolated']}; rule {full['rule']} "
            f"dropped {full['dropped']} pairs"
        )
        say_sidecar(output)
        _say_growth(full)
    _say_end(output, full)


def recall_words(search: dict[str, Any]) -> str:
    """Return the recall of an approximate search, to be appended to its name."""
    recall = search["recall"]
    if recall is None or recall == 1:
        return ""
    low, high = search.get("recall_interval") or (None, None)
    known = "estimated" if low is None else f"estimated, {low:.4f} to {high:.4f}"
    return f", recall {recall:.4f} ({known})"


def say_sidecar(output: str) -> None:
    """Name the second file of a graph, which nobody has asked for."""
    if second := formats.file_beside(output):
        talk.summary(f"{second}: what {output} has no room for; keep it beside")


def _say_growth(full: dict[str, Any]) -> None:
    """Say what bridges and more candidates did."""
    if full["bridges"]:
        talk.summary(f"connected: {full['bridges']} bridges between components")
    if outside := full.get("outside"):
        grown, stuck = full["candidates_grown"], outside["nodes_bounded"]
        more = f"{grown} nodes grew, up to k {outside['largest_k']}; " if grown else ""
        end = f"; {stuck} nodes reached the most candidates" if stuck else ""
        talk.summary(
            f"outside the candidates: {more}residuals of at most {outside['max']:.3g}, "
            f"above 0.01 at {outside['nodes_above_0.01']} of {full['nodes']} nodes{end}"
        )


def _say_end(output: str, full: dict[str, Any]) -> None:
    """Say how well the nodes were solved, how long it took, and what to look at."""
    if said := proofs(full, "node"):
        talk.summary("; ".join(said))
    if facts := full.get("method_facts"):
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in facts.items())
        talk.summary(f"{full['method']}: {shown}")
    talk.summary(f"done in {full['timings']['total']:.2f} s")
    for name, seconds in full["timings"].items():
        talk.detail(f"  {name:<10} {seconds:8.3f} s")
    talk.warning(*(f"{output}: {warning}" for warning in full["warnings"]))


def proofs(full: dict[str, Any], what: str) -> list[str]:
    """Return how well nodes or queries were solved, where it is known."""
    said = []
    if proof := full["certificate"]:
        worst, failed = proof["kkt_max"], proof["nodes_failed"]
        said.append(f"certificate: {worst:.1e} at the worst {what}, failed: {failed}")
    if full["error"]:
        said.append(f"mean error J {full['error']['mean']:.4g}")
    return said


def _shown(value: Any) -> str:
    """Return a fact in a few characters."""
    if isinstance(value, list):
        return " to ".join(_shown(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def check_quality(
    output: str, full: dict[str, Any], min_recall: float | None = None
) -> None:
    """Fail, after all was written, where a node's solution is not proven."""
    from nnkgraph.build.report import CERTIFICATE_LIMIT

    what = "shard" if "shard" in full else "graph"
    recall, proof = full["search"]["recall"], full["certificate"]
    if min_recall is not None and (recall is None or recall < min_recall):
        known = "unknown" if recall is None else f"{recall:.4f} (estimated)"
        raise QualityError(
            f"{output}: the recall of the search is {known}, below {min_recall:g}; the "
            f"{what} was written; use --search exact or more n_trees"
        )
    if full["failure"]:
        raise QualityError(
            f"{output}: {full['failure']}; the {what} was written and is marked"
        )
    if proof and proof["nodes_failed"]:
        nodes = ", ".join(map(str, proof["failed"]))
        raise QualityError(
            f"{output}: {proof['nodes_failed']} nodes miss the certificate of "
            f"{CERTIFICATE_LIMIT:g} (worst {proof['kkt_max']:.1e}): {nodes}; the "
            f"{what} was written and is marked; another --sigma may help"
        )
