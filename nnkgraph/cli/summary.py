"""What is said about a graph that was built."""

from __future__ import annotations

from typing import Any

from nnkgraph.cli import say


def say_result(features: str, output: str, full: dict[str, Any]) -> None:
    """Say what was built, from what, and how well."""
    copies = f", {full['duplicates']} copies of rows" if full["duplicates"] else ""
    _say_input(features, full, copies)
    say.summary(
        f"{output}: {full['nodes']} nodes, {full['edges']} edges "
        f"({full['edges_per_node']:.2f} per node), components: {full['components']}, "
        f"isolated: {full['isolated']}; rule {full['rule']} dropped "
        f"{full['dropped']} pairs"
    )
    say_beside(output)
    _say_growth(full)
    _say_end(output, full)


def say_beside(output: str) -> None:
    """Name the second file of a graph, which nobody has asked for."""
    from nnkgraph import formats

    second = formats.file_beside(output)
    if second is not None:
        say.summary(f"{second}: what {output} has no room for; keep it beside")


def say_shard(features: str, output: str, full: dict[str, Any]) -> None:
    """Say what part of a graph was built, and how well."""
    _say_input(features, full, "")
    start, stop = full["rows"]
    say.summary(f"{output}: shard {full['shard']}, {stop - start} rows from {start} on")
    _say_end(output, full)


def _say_input(features: str, full: dict[str, Any], copies: str) -> None:
    """Say what was built from."""
    for note in full["notes"]:
        say.summary(note)
    known = full["search"]["recall"]
    recall = (
        f", recall {known:.4f} (estimated)" if known is not None and known < 1 else ""
    )
    sigma = "" if full["sigma"] is None else f", sigma {full['sigma']:.6g}"
    say.summary(
        f"{features}: {full['method']}, {full['kernel']}{sigma}, k {full['k']}, "
        f"search {full['search']['backend']}{recall}{copies}"
    )


def _say_end(output: str, full: dict[str, Any]) -> None:
    """Say how well the nodes were solved, how long it took, and what to look at."""
    proof = full["certificate"]
    error = f"mean error J {full['error']['mean']:.4g}" if full["error"] else ""
    if proof:
        say.summary(
            f"certificate: {proof['kkt_max']:.1e} at the worst node, failed: "
            f"{proof['nodes_failed']}" + (f"; {error}" if error else "")
        )
    elif error:
        say.summary(error)
    if full.get("method_facts"):
        facts = (
            f"{name} {_shown(value)}" for name, value in full["method_facts"].items()
        )
        say.summary(f"{full['method']}: {', '.join(facts)}")
    say.summary(f"done in {full['timings']['total']:.2f} s")
    for name, seconds in full["timings"].items():
        say.detail(f"  {name:<10} {seconds:8.3f} s")
    for warning in full["warnings"]:
        say.warning(f"{output}: {warning}")


def _say_growth(full: dict[str, Any]) -> None:
    """Say what bridges and more candidates did."""
    if full["bridges"]:
        say.summary(f"connected: {full['bridges']} bridges between components")
    outside = full.get("outside")
    if outside:
        grown = full["candidates_grown"]
        more = f"{grown} nodes grew, up to k {outside['largest_k']}; " if grown else ""
        stuck = outside["nodes_bounded"]
        stuck = f"; {stuck} nodes reached the most candidates" if stuck else ""
        say.summary(
            f"outside the candidates: {more}residuals of at most {outside['max']:.3g}, "
            f"above 0.01 at {outside['nodes_above_0.01']} of {full['nodes']} nodes"
            f"{stuck}"
        )


def _shown(value: Any) -> str:
    """Return a fact in a few characters."""
    if isinstance(value, list):
        return " to ".join(_shown(one) for one in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
