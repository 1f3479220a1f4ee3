"""Whether k and the bandwidth reach far enough, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.tasks.doctor._figures import ENOUGH
from nnkgraph.tasks.doctor._finding import Finding, share
from nnkgraph.tasks.doctor._suggest import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator


def outside_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say for how many nodes nothing outside the candidates matters."""
    title = "was k enough?"
    outside, n = figures["outside"], figures["rows"]["distinct"]
    above = outside["nodes_above"]
    proven = "proven" if figures["search"]["exact"] else "likely (search approximate)"
    yield Finding(
        title,
        f"{proven} for {share(n - above, n)} nodes: nothing outside their candidates "
        f"has a similarity above {ENOUGH:g}",
    )
    if above:
        more = (
            "a bandwidth of each node's own leaves it there"
            if figures["local"]
            else f"build --grow {ENOUGH:g} looks further for them"
        )
        yield Finding(
            title,
            f"open for {above}, up to {outside['max']:.3g} (median of all "
            f"{outside['median']:.3g}): {more}",
        )
    yield Finding(
        title,
        f"{100 * outside['last_kept_share']:.1f} % of the nodes keep their last "
        "candidate",
    )


def distance_findings(figures: dict[str, Any]) -> Iterator[Finding]:
    """Say how the bandwidth fits the distances, and those each other."""
    found = figures["distances"]
    kth, sigma = found["kth"], found["sigma"]
    title = "distances" if sigma is None else "bandwidth and distances"
    beside = (
        f"nearest {found['nearest_median']:.4g}, last {kth['median']:.4g} (medians)"
    )
    if sigma is not None:
        mean = "mean sigma" if figures["local"] else "sigma"
        beside = f"{mean} {sigma:.6g} beside the distances of candidates: {beside}"
    yield Finding(title, beside)
    spread = found["kth_spread"]
    factor = "" if spread is None else f", a factor of {spread:.2f}"
    yield Finding(
        title,
        f"last candidate: {kth['q05']:.4g} to {kth['q95']:.4g} for 90 % of the nodes"
        f"{factor}; {kth['min']:.4g} to {kth['max']:.4g} for all",
    )
    if (
        sigma is not None
        and not figures["local"]
        and (spread is None or spread >= LOCAL)
    ):
        yield Finding(title, "that is wide: try --sigma local", advice=True)
    for warning in found["warnings"]:
        yield Finding(title, warning, advice=True)
