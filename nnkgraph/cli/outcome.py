"""What became of a graph: its report, its summary, and whether it is good enough."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from nnkgraph.cli import talk
from nnkgraph.errors import ParameterError, QualityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.runtime.progress import Stages

_TIMED = ("start", "read", "search", "solve", "symmetrize", "write")


def check_report(
    path: str | None, output: str, *, no_clobber: bool, inputs: Sequence[str]
) -> None:
    """Check before any computing that a report can be written."""
    from nnkgraph import formats

    if path and path == output:
        raise ParameterError(f"{path}: the report and the graph need different names")
    if path:
        formats.check_file(path, no_clobber=no_clobber, inputs=inputs)


def write_report(
    path: str | None, known: dict[str, Any], progress: Stages, total: float, peak: int
) -> dict[str, Any]:
    """Add what is known about the process, write the report where one is wanted."""
    from nnkgraph import formats
    from nnkgraph.build.report import versions
    from nnkgraph.runtime.cache import target

    timings = {name: progress.seconds.get(name, 0.0) for name in _TIMED}
    full = {
        **known,
        "timings": {**timings, "total": total},
        "peak_memory_bytes": peak,
        "versions": versions(),
        "cpu": target()[0],
        "command": shlex.join(["nnkgraph", *sys.argv[1:]]),
    }
    text = json.dumps(full, indent=2, allow_nan=False)
    if path == "-":
        talk.data(text)
    elif path:
        formats.write_file(path, f"{text}\n".encode())
    return full


def say_result(source: str, output: str, full: dict[str, Any]) -> None:
    """Say what was built, from what, and how well."""
    for note in full["notes"]:
        talk.summary(note)
    search, recall = full["search"], full["search"]["recall"]
    copies = 0 if "shard" in full else full["duplicates"]
    approximate = recall is not None and recall < 1
    talk.summary(
        f"{source}: {full['method']}, {full['kernel']}"
        + ("" if full["sigma"] is None else f", sigma {full['sigma']:.6g}")
        + f", k {full['k']}, search {search['backend']}"
        + (f", recall {recall:.4f} (estimated)" if approximate else "")
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


def say_sidecar(output: str) -> None:
    """Name the second file of a graph, which nobody has asked for."""
    from nnkgraph import formats

    second = formats.file_beside(output)
    if second is not None:
        talk.summary(f"{second}: what {output} has no room for; keep it beside")


def _say_growth(full: dict[str, Any]) -> None:
    """Say what bridges and more candidates did."""
    if full["bridges"]:
        talk.summary(f"connected: {full['bridges']} bridges between components")
    outside = full.get("outside")
    if outside:
        grown, stuck = full["candidates_grown"], outside["nodes_bounded"]
        more = f"{grown} nodes grew, up to k {outside['largest_k']}; " if grown else ""
        end = f"; {stuck} nodes reached the most candidates" if stuck else ""
        talk.summary(
            f"outside the candidates: {more}residuals of at most {outside['max']:.3g}, "
            f"above 0.01 at {outside['nodes_above_0.01']} of {full['nodes']} nodes{end}"
        )


def _say_end(output: str, full: dict[str, Any]) -> None:
    """Say how well the nodes were solved, how long it took, and what to look at."""
    proof, said = full["certificate"], []
    if proof:
        said.append(
            f"certificate: {proof['kkt_max']:.1e} at the worst node, failed: "
            f"{proof['nodes_failed']}"
        )
    if full["error"]:
        said.append(f"mean error J {full['error']['mean']:.4g}")
    if said:
        talk.summary("; ".join(said))
    if facts := full.get("method_facts"):
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in facts.items())
        talk.summary(f"{full['method']}: {shown}")
    talk.summary(f"done in {full['timings']['total']:.2f} s")
    for name, seconds in full["timings"].items():
        talk.detail(f"  {name:<10} {seconds:8.3f} s")
    for warning in full["warnings"]:
        talk.warning(f"{output}: {warning}")


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
