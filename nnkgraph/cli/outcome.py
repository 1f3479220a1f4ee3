"""What is left to do once a result is written: the report, and whether it passes."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from nnkgraph import formats, report
from nnkgraph.cli import say
from nnkgraph.errors import ParameterError, QualityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nnkgraph.cli.progress import Progress


def check_report(
    path: str | None, output: str, *, no_clobber: bool, inputs: Sequence[str]
) -> None:
    """Check before any computing that a report can be written."""
    if not path:
        return
    if path == output:
        raise ParameterError(f"{path}: the report and the graph need different names")
    formats.check_file(path, no_clobber=no_clobber, inputs=inputs)


def full_report(
    known: dict[str, Any], stages: Progress, total: float, peak: int
) -> dict[str, Any]:
    """Add what is known about the process."""
    names = ("start", "read", "search", "solve", "symmetrize", "write")
    timings = {name: stages.seconds.get(name, 0.0) for name in names}
    return {
        **known,
        "timings": {**timings, "total": total},
        "peak_memory_bytes": peak,
        "versions": report.versions(),
        "command": shlex.join(["nnkgraph", *sys.argv[1:]]),
    }


def write_report(path: str | None, full: dict[str, Any]) -> None:
    """Write a report, where one is wanted."""
    text = json.dumps(full, indent=2, allow_nan=False)
    if path == "-":
        say.data(text)
    elif path:
        formats.write_file(path, f"{text}\n".encode())


def check_quality(
    output: str, full: dict[str, Any], min_recall: float | None, what: str = "graph"
) -> None:
    """Fail, after all was written, where a node's solution is not proven."""
    recall = full["search"]["recall"]
    if min_recall is not None and (recall is None or recall < min_recall):
        known = "unknown" if recall is None else f"{recall:.4f} (estimated)"
        raise QualityError(
            f"{output}: the recall of the search is {known}, "
            f"below {min_recall:g}; the {what} was written; use --search exact or "
            "more n_trees"
        )
    if full["failure"]:
        raise QualityError(
            f"{output}: {full['failure']}; the {what} was written and is marked"
        )
    proof = full["certificate"]
    if proof and proof["nodes_failed"]:
        nodes = ", ".join(map(str, proof["failed"]))
        raise QualityError(
            f"{output}: {proof['nodes_failed']} nodes miss the certificate of "
            f"{report.CERTIFICATE_LIMIT:g} (worst {proof['kkt_max']:.1e}): {nodes}; "
            f"the {what} was written and is marked; another --sigma may help"
        )
