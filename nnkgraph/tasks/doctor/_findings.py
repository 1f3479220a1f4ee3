"""What the figures of a diagnosis mean, in words: one line per finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nnkgraph.build.report import CERTIFICATE_LIMIT
from nnkgraph.data.pairs import DISTANCES
from nnkgraph.runtime import registry
from nnkgraph.tasks.columns import Finding, bars_of, column_findings, share
from nnkgraph.tasks.doctor._figures import (
    ENOUGH,
    NEAR,
    SATURATED,
    distance_facts,
    overlap_facts,
    support_facts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nnkgraph.tasks.doctor._figures import SearchedRows


SAME_GRAPH = 0.8  # share of common edges from which on two graphs are nearly the same
LOCAL = 4.0  # q95 / q05 of the k-th distances from which on sigma is local
_MUTUAL: dict[str, Any] = {"method": "knn", "symmetrize": "mutual"}
_WAYS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "the default rule leaves no node isolated"),
    ({"min_degree": 3}, "the default rule isolates nodes, `min_degree=3` none"),
    (
        {"symmetrize": "error-union", "min_degree": 3},
        "only a rule that keeps one-sided edges leaves no node isolated",
    ),
    ({"method": "knn"}, "NNK leaves nodes isolated under every rule, kNN does not"),
)
"""What is tried in turn, and the reason where it is taken."""


@dataclass(frozen=True)
class Suggestion:
    """Options for ``build_graph`` that were tried out."""

    settings: dict[str, Any]
    """What differs from the options that the data was looked at with."""

    reasons: list[str]
    """Why, one line each."""

    facts: dict[str, Any]
    """What ``report.facts`` says about the graph."""


def better_scale(
    searched: SearchedRows, scale: str, columns: dict[str, Any]
) -> tuple[str, str]:
    """Return a scaling that should be tried and the reason, or nothing."""
    nearness = searched.settings.kernel.nearness
    if scale != "none" or not columns:
        return "", ""
    if nearness in DISTANCES and columns["scale_apart"] and not columns["principal"]:
        return "standard", (
            f"{len(columns['narrow'])} of {columns['columns']} columns hardly count "
            "beside wider ones without scaling"
        )
    products = nearness == "inner-product" and not columns["zero_rows"]
    if products and searched.facts()["isolated"] > 0.01 * len(searched.rows.x):
        return "unit", "inner products favor long rows, which become hubs"
    return "", ""


def suggest(searched: SearchedRows, *, free_sigma: bool) -> Suggestion | None:
    """Try options in turn and return the first without isolated nodes.

    Parameters
    ----------
    case : Case
        The rows, scaled as they should be.
    free_sigma : bool
        Whether the bandwidth was left to a rule, so that a better one may be taken.

    Returns
    -------
    Suggestion or None
        None where every graph has isolated nodes: of a single row, for instance.
    """
    local, why = _local(searched) if free_sigma else ({}, "")
    for base, first in _bases(searched, local, why):
        ways = [*_saturated_options(searched, base), *_WAYS]
        for way, reason in ways:
            settings = {**way, **base}
            facts = searched.facts(
                **{k: v for k, v in settings.items() if k != "kernel"}
            )
            bad = searched.failed(settings.get("method", "nnk"), settings.get("sigma"))
            if not facts["isolated"] and not bad:
                reasons = [text for text in (first, reason) if text]
                return Suggestion(settings, reasons, facts)
    return None


def _local(searched: SearchedRows) -> tuple[dict[str, Any], str]:
    """Say whether every node should have a bandwidth of its own."""
    distances = distance_facts(searched)
    if not distances or not searched.has_sigma or searched.is_local:
        return {}, ""
    spread = distances["kth_spread"]
    if spread is not None and spread < LOCAL:
        return {}, ""
    apart = "without bound" if spread is None else f"by a factor of {spread:.1f}"
    return _with_local(searched), (
        f"the distance to the last candidate varies {apart}: one bandwidth does not "
        "fit all nodes"
    )


def _with_local(searched: SearchedRows) -> dict[str, Any]:
    """Return the options for local bandwidths; the kernel without its own sigma."""
    name = registry.spec(searched.settings.kernel).partition(":")[0]
    return {"kernel": name, "sigma": "local"}


def _bases(
    searched: SearchedRows, local: dict[str, Any], why: str
) -> list[tuple[dict[str, Any], str]]:
    """Return the bandwidths to try; a local one in the end, whatever the spread."""
    bases = [(local, why)]
    if searched.has_sigma and not searched.is_local and not local:
        forced = "with one bandwidth for all, nodes stay isolated"
        bases.append((_with_local(searched), forced))
    return bases


def _saturated_options(
    searched: SearchedRows, base: dict[str, Any]
) -> list[tuple[dict[str, Any], str]]:
    """Return mutual kNN as the first choice where NNK gives nearly the same graph."""
    support = support_facts(searched)
    if not support["saturated"]:
        return []
    same = overlap_facts(searched, base.get("sigma"))["jaccard"]
    if same < SAME_GRAPH:
        return []
    reason = (
        f"NNK keeps more than {100 * SATURATED:.0f} % of the candidates and shares "
        f"{100 * same:.0f} % of the edges with mutual kNN, which is simpler and faster"
    )
    kept = f"{reason}; `min_degree=3` keeps nodes from being isolated"
    return [(_MUTUAL, reason), ({**_MUTUAL, "min_degree": 3}, kept)]


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
            else f"`grow={ENOUGH:g}` looks further for them"
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
        yield Finding(title, "that is wide: try `sigma='local'`", advice=True)
    for warning in found["warnings"]:
        yield Finding(title, warning, advice=True)


_HUB = 10.0  # times k: nodes that are chosen more often count as hubs


def findings(figures: dict[str, Any]) -> list[Finding]:
    """Put all figures into words, section by section."""
    found = [
        *_data(figures),
        *column_findings(figures),
        *_search(figures),
        *_support(figures["support"], figures["certificate"]),
        *_overlap(figures),
        *_graphs(figures["graphs"], figures["input"]["shape"][0]),
        *_hubs(figures),
    ]
    if figures["outside"]:
        found += outside_findings(figures)
    if figures["distances"]:
        found += distance_findings(figures)
    return found


def _data(figures: dict[str, Any]) -> Iterator[Finding]:
    n, d = figures["input"]["shape"]
    rows = figures["rows"]
    columns = "1 column" if d == 1 else f"{d} columns"
    yield Finding("data", f"{n} rows x {columns}, {figures['input']['dtype']}")
    if rows["copies"]:
        yield Finding(
            "data",
            f"{share(rows['copies'], n)} rows repeat an earlier one (at most "
            f"{rows['largest_group']} alike): `duplicates='merge'`, the default, "
            f"hangs each on the first of its kind; {rows['distinct']} are searched",
        )
    else:
        yield Finding("data", "no identical rows")
    near = rows.get("near_duplicates")
    if near is not None:
        what = f"nearest row closer than {NEAR:g} of the median nearest distance"
        text = f"{share(near, rows['distinct'])} rows are" if near else "no"
        yield Finding("data", f"{text} near-duplicates ({what})")
    for note in figures["replaced"]:
        yield Finding("data", note, advice=True)
    for warning in figures["warnings"]:
        yield Finding("data", warning, advice=True)


def _search(figures: dict[str, Any]) -> Iterator[Finding]:
    search, k = figures["search"], figures["support"]["k"]
    recall = search["recall"]
    if search["exact"]:
        quality = "these are the best by definition"
    elif recall is None:
        quality = "nobody knows whether these are the best"
    else:
        quality = f"recall {recall:.4f} (estimated)"
    yield Finding(
        "search", f"{k} candidates a node, search {search['backend']}: {quality}"
    )


def _support(support: dict[str, Any], certificate: dict[str, Any]) -> Iterator[Finding]:
    title = "support: what NNK keeps of its candidates"
    k, kept = support["k"], support["kept_over_k"]
    yield Finding(
        title,
        f"{support['mean']:.1f} of {k} candidates a node (kept/k {kept:.2f}), "
        f"{support['min']} to {support['max']}",
        bars=bars_of(support["histogram"]),
    )
    if support["saturated"]:
        yield Finding(
            title,
            f"saturated (kept/k above {SATURATED:g}): NNK prunes little here, and "
            "mutual kNN is nearly the same graph",
            advice=True,
        )
    else:
        yield Finding(title, f"not saturated: kept/k is at most {SATURATED:g}")
    failed = certificate["nodes_failed"]
    yield Finding(
        title,
        f"{failed} solutions miss the certificate of {CERTIFICATE_LIMIT:g}: build "
        "would fail; try another `sigma`"
        if failed
        else f"every solution is proven ({certificate['kkt_max']:.1e} at the worst)",
        advice=failed > 0,
    )


def _overlap(figures: dict[str, Any]) -> Iterator[Finding]:
    title = "does NNK matter here?"
    common = figures["overlap"]["jaccard"]
    gone = 1 - figures["overlap"]["covered"]
    nnk = figures["graphs"][0]["edges_per_node"]
    mutual = next(
        line["edges_per_node"]
        for line in figures["graphs"]
        if line["method"] == "knn" and line["symmetrize"] == "mutual"
    )
    yield Finding(
        title,
        f"edges per node: NNK {nnk:.2f}, mutual kNN {mutual:.2f}; overlap of the two "
        f"(Jaccard) {common:.2f}",
    )
    if common >= SATURATED:
        verdict = "hardly: the two graphs are nearly the same"
    elif common >= 0.5:
        verdict = f"yes: NNK drops {100 * gone:.0f} % of the edges of mutual kNN"
    else:
        verdict = f"yes, much: NNK drops {100 * gone:.0f} % of the edges of mutual kNN"
    yield Finding(title, verdict)


def _graphs(lines: list[dict[str, Any]], n: int) -> Iterator[Finding]:
    title = "graphs: what build would give"
    words = ("edges/node", "components", "isolated")
    yield Finding(title, f"{'method, rule':<24}" + "".join(f"{w:>12}" for w in words))
    for line in lines:
        extra = f" `min_degree={line['min_degree']}`" if line["min_degree"] else ""
        name = f"{line['method']} {line['symmetrize']}{extra}"
        yield Finding(
            title,
            f"{name:<24}{line['edges_per_node']:12.2f}{line['components']:12}"
            f"{line['isolated']:12}",
            advice=line["isolated"] > 0.01 * n,
        )


def _hubs(figures: dict[str, Any]) -> Iterator[Finding]:
    title = "hubs: how often nodes are candidates of others"
    hubs = figures["hubs"]
    hub = hubs["largest_over_k"] > _HUB
    name, row = hubs["largest_id"], hubs["largest_row"]
    node = f"row {row}" if name is None else f"{name!r} (row {row})"
    yield Finding(
        title,
        f"{node} most often: {hubs['largest']} times "
        f"({hubs['largest_over_k']:.1f} k)"
        + (": a hub, few of its edges are mutual" if hub else ""),
        bars=bars_of(hubs["histogram"]),
    )
    if not hubs["unchosen"]:
        yield Finding(title, "every node is a candidate of some other")
        return
    yield Finding(
        title,
        f"{share(hubs['unchosen'], figures['rows']['distinct'])} nodes are nobody's "
        "candidate: rules that want both sides isolate them, `min_degree=3` does not",
        advice=hubs["unchosen_share"] > 0.01,
    )
