"""What the figures of a diagnosis mean, in words: one line per finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnkgraph.report import CERTIFICATE_LIMIT
from nnkgraph.tasks.doctor._columnwords import column_findings
from nnkgraph.tasks.doctor._figures import NEAR, SATURATED
from nnkgraph.tasks.doctor._finding import Finding, bars_of, share
from nnkgraph.tasks.doctor._reach import distance_findings, outside_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

_HUB = 10.0
"""Times k: nodes that are chosen more often count as hubs."""


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
            f"{rows['largest_group']} alike): --duplicates merge, the default, hangs "
            f"each on the first of its kind; {rows['distinct']} are searched",
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
        "would fail; try another --sigma"
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
        extra = f" --min-degree {line['min_degree']}" if line["min_degree"] else ""
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
        "candidate: rules that want both sides isolate them, --min-degree 3 does not",
        advice=hubs["unchosen_share"] > 0.01,
    )
